"""Files appear whole or not at all, keep who may read them, and leave no drafts behind."""

import errno
import os
import stat
import subprocess
import sys
import time

import pytest

from unless.data.domain import Domain, Variable
from unless.errors import SettingError
from unless.formats.libra import write_mn
from unless.inference.model import LogLinearModel
from unless.runtime import files
from unless.runtime.files import replacing, replacing_all, this_machine, try_writing


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


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("kept", [0o600, 0o640, 0o604, 0o444])
def test_a_file_that_is_replaced_keeps_its_permissions(private, kept, tmp_path, open_umask):
    target = tmp_path / "x"
    target.write_bytes(b"old")
    target.chmod(kept)
    with replacing(target, private=private) as stream:
        stream.write(b"new")
        (draft,) = tmp_path.glob(".*")
        # Nobody looks into it before it has them.
        assert mode(draft) == 0o600
    assert (target.read_bytes(), mode(target)) == (b"new", kept)


def test_a_new_file_is_private_where_that_is_asked_for(tmp_path, open_umask):
    for private, expected in ((False, 0o644), (True, 0o600)):
        with replacing(tmp_path / str(private), private=private):
            pass
        assert mode(tmp_path / str(private)) == expected


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may give files away")
def test_owner_and_group_are_kept_where_that_is_allowed(tmp_path):
    target = tmp_path / "x"
    target.write_bytes(b"old")
    os.chown(target, 12345, 23456)
    with replacing(target):
        pass
    assert (target.stat().st_uid, target.stat().st_gid) == (12345, 23456)


def test_a_group_that_cannot_be_kept_gets_no_more_than_all_others(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    target = tmp_path / "x"
    target.write_bytes(b"old")
    target.chmod(0o664)
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    os.chown(target, -1, 23456)
    monkeypatch.setattr(os, "fchown", refuse)
    with replacing(target):
        pass
    assert mode(target) == 0o644


def test_a_link_is_replaced_where_it_must_not_be_followed(tmp_path):
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_bytes(b"old")
    link.symlink_to(victim)
    with replacing(link, follow_links=False) as stream:
        stream.write(b"new")
    assert not link.is_symlink()
    assert (link.read_bytes(), victim.read_bytes()) == (b"new", b"old")


def test_what_cannot_be_cleaned_up_hides_no_reason(tmp_path, monkeypatch):
    def refuse(path, *_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    # As on a disk that is mounted read-only: neither is the draft made, nor could it be removed.
    with monkeypatch.context() as patch:
        for name in ("open", "unlink", "remove"):
            patch.setattr(os, name, refuse)
        with pytest.raises(OSError, match="Read-only file system") as caught, replacing(tmp_path / "x"):
            pass
    assert caught.value.filename == str(tmp_path / "x")


def test_what_fails_elsewhere_while_a_file_is_written_is_not_said_of_that_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "x"):
        (tmp_path / "other").read_bytes()
    assert caught.value.filename == str(tmp_path / "other")
    assert list(tmp_path.iterdir()) == []


def test_a_long_name_is_no_obstacle(tmp_path):
    for name in ("x" * 250, "ü" * 120):
        with replacing(tmp_path / name):
            pass
        assert (tmp_path / name).exists()


def test_data_are_synced_before_a_file_takes_its_name_and_the_folder_after(tmp_path, monkeypatch):
    seen, target = [], tmp_path / "x"
    real = os.fsync

    def watched(handle):
        seen.append((stat.S_ISDIR(os.fstat(handle).st_mode), target.exists(), os.fstat(handle).st_size))
        real(handle)

    monkeypatch.setattr(os, "fsync", watched)
    with replacing(target) as stream:
        stream.write(b"content")
    assert [one[:2] for one in seen] == [(False, False), (True, True)]
    assert seen[0][2] == len(b"content")


# --- what processes leave behind that are killed ----------------------------------------------------------

WRITE = """
import sys
from unless.runtime.files import replacing
with replacing(sys.argv[1]) as stream:
    stream.write(b"half")
    stream.flush()
    print(flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writer(tmp_path):
    """Start processes that are in the middle of writing."""
    started = []

    def start(name):
        command = [sys.executable, "-c", WRITE, str(tmp_path / name)]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert started[-1].stdout.readline() == b"\n"
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.communicate()


def drafts(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".unless-part"))


def test_a_draft_of_a_killed_process_goes_with_the_next_file_and_that_of_a_living_one_stays(writer, tmp_path):
    dead, living = writer("dead"), writer("living")
    dead.kill()
    dead.wait()
    assert len(drafts(tmp_path)) == 2
    with replacing(tmp_path / "other") as stream, replacing(tmp_path / "third"):
        stream.write(b"whole")
    (left,) = drafts(tmp_path)
    assert left.startswith(".living.")
    living.communicate()
    assert living.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["living", "other", "third"]


def test_to_look_whether_a_file_can_be_written_changes_nothing_but_sweeps(writer, tmp_path):
    dead = writer("dead")
    dead.kill()
    dead.wait()
    (tmp_path / "x").write_bytes(b"old")
    try_writing(tmp_path / "x")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_bytes() == b"old"
    with pytest.raises(FileNotFoundError) as caught:
        try_writing(tmp_path / "no" / "x")
    assert caught.value.filename == str(tmp_path / "no" / "x")


def left_behind(folder, name="x", machine=None):
    return folder / f".{name}.{machine or this_machine()}-0123456789ab.unless-part"


def test_what_only_looks_like_a_draft_stays(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("years of work")
    left_behind(tmp_path, "link").symlink_to(victim)
    left_behind(tmp_path, "hard").hardlink_to(victim)
    left_behind(tmp_path, "folder").mkdir()
    os.mkfifo(left_behind(tmp_path, "pipe"))
    others = [tmp_path / ".x.part", tmp_path / "x.unless-part", tmp_path / ".x.0123.unless-part"]
    for path in others:
        path.write_text("x")
    before = sorted(tmp_path.iterdir())
    with replacing(victim, follow_links=False):
        pass
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may give files away")
def test_a_draft_of_another_user_stays(tmp_path):
    left_behind(tmp_path).write_text("half")
    os.chown(left_behind(tmp_path), 12345, -1)
    try_writing(tmp_path / "y")
    assert drafts(tmp_path) == [left_behind(tmp_path).name]


@pytest.mark.parametrize("why", ["no locks", "another machine"])
def test_where_locks_cannot_tell_only_what_is_old_goes(why, tmp_path, monkeypatch):
    def refuse(_):
        raise OSError(errno.ENOLCK, "No locks available")

    machine = None if why == "no locks" else "0" * 8
    if why == "no locks":
        monkeypatch.setattr("unless.runtime.files._lock", refuse)
    old, new = left_behind(tmp_path, "old", machine), left_behind(tmp_path, "new", machine)
    for path in (old, new):
        path.write_text("half")
    os.utime(old, (time.time() - 2 * files._OLD,) * 2)
    with replacing(tmp_path / "y"):
        pass
    assert sorted(tmp_path.iterdir()) == [new, tmp_path / "y"]


def test_a_draft_that_is_swept_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    real, n_calls = files.try_lock, []

    def swept_in_between(handle):
        n_calls.append(handle)
        if len(n_calls) == 1:
            for path in tmp_path.glob(".x.*"):
                path.unlink()
        return real(handle)

    monkeypatch.setattr(files, "try_lock", swept_in_between)
    with replacing(tmp_path / "x") as stream:
        stream.write(b"whole")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"whole"]
    assert len(n_calls) == 2
