"""Files appear whole or not at all."""

import os

import pytest

from unless.errors import SettingError
from unless.formats.atomic import replacing


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
