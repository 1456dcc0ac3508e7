"""Files appear whole or not at all."""

import os

import pytest

from unless.data.domain import Domain, Variable
from unless.errors import SettingError
from unless.formats.libra import write_mn
from unless.inference.model import LogLinearModel
from unless.runtime.files import replacing, replacing_all


def test_a_file_takes_its_name_when_it_is_whole(tmp_path):
    target = tmp_path / "x"
    with replacing(target) as stream:
        stream.write(b"new")
        assert not target.exists()
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "x"
    target.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), replacing(target) as stream:
        stream.write(bytes(1 // len(b"")))
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_link_is_written_through(tmp_path):
    target, link = tmp_path / "x", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with replacing(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_device_is_never_replaced():
    with pytest.raises(SettingError, match="not an ordinary file"), replacing(os.devnull):
        pass


def test_a_missing_folder_is_named_as_the_caller_named_it(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "no" / "x"):
        pass
    assert caught.value.filename == str(tmp_path / "no" / "x")


def test_files_of_a_pair_take_their_names_together(tmp_path):
    first, second = tmp_path / "x", tmp_path / "y"
    with replacing_all(first, second) as (one, two):
        one.write(b"1")
        two.write(b"2")
        two.flush()
        assert not first.exists()
        assert not second.exists()
    assert (first.read_bytes(), second.read_bytes()) == (b"1", b"2")
    assert sorted(tmp_path.iterdir()) == [first, second]


@pytest.mark.parametrize("fails", ["open", "fsync"])
def test_a_pair_whose_second_file_fails_leaves_nothing(tmp_path, monkeypatch, fails):
    calls, real = [], getattr(os, fails)

    def failing(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return real(*arguments)

    monkeypatch.setattr(os, fails, failing)
    domain = Domain((Variable("A", ("a", "b")),))
    model = LogLinearModel.from_potentials(domain, [(("A",), [1.0, 2.0])])
    with pytest.raises(OSError, match="No space") as caught:
        write_mn(model, tmp_path / "m.mn")
    assert caught.value.filename == str(tmp_path / "m.mn")
    assert list(tmp_path.iterdir()) == []
