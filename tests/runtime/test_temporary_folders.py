"""Temporary folders go with their process, whatever ends it."""

import os
import signal
import stat
import subprocess
import sys
import tempfile

import pytest

from unless.runtime.files import TemporaryFolder, sweep_folders, this_machine

HOLD = """
import sys
from unless.runtime.files import TemporaryFolder
folder = TemporaryFolder()
(folder.path / "rows").write_text("rows")
(folder.path / "spill").mkdir()
(folder.path / "spill" / "more").write_text("rows")
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def base(tmp_path, monkeypatch):
    """Let temporary files go to a folder of their own."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


@pytest.fixture
def holder(base):
    started = []

    def start():
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", HOLD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "TMPDIR": str(base)},
            )
        )
        assert started[-1].stdout.readline() == b"\n"
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.communicate()


def test_a_folder_is_for_its_owner_and_goes_with_all_that_is_in_it(base):
    folder = TemporaryFolder()
    assert folder.path.parent == base
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    (folder.path / "deep").mkdir()
    (folder.path / "deep" / "file").write_text("x")
    folder.clean_up()
    folder.clean_up()
    assert list(base.iterdir()) == []


def test_a_folder_that_nobody_removed_goes_when_its_process_ends(base, holder):
    ended = holder()
    ended.communicate()
    assert ended.returncode == 0
    assert list(base.iterdir()) == []


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_folder_of_a_killed_process_is_swept_and_that_of_a_living_one_stays(end, base, holder):
    dead, _living = holder(), holder()
    own = TemporaryFolder()
    before = set(base.iterdir())
    dead.send_signal(end)
    dead.wait()
    assert set(base.iterdir()) == before
    sweep_folders()
    left = set(base.iterdir())
    assert len(left) == 2
    assert own.path in left
    # Looking at its own folder must not have let go of it.
    code = "from unless.runtime.files import sweep_folders; sweep_folders()"
    environment = {**os.environ, "TMPDIR": str(base)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert set(base.iterdir()) == left
    own.clean_up()


def test_the_next_folder_sweeps(base, holder):
    dead = holder()
    dead.kill()
    dead.wait()
    own = TemporaryFolder()
    assert list(base.iterdir()) == [own.path]
    own.clean_up()


def test_links_are_not_followed_and_other_folders_stay(base, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / ".lock").write_text("")
    (victim / "file").write_text("years of work")
    name = f"unless-{this_machine()}-0123456789ab"
    (base / name).symlink_to(victim)
    (base / "unless-mine").mkdir()
    (base / f"unless-00000000-{name[-12:]}").mkdir()
    before = sorted(base.iterdir())
    sweep_folders()
    assert sorted(base.iterdir()) == before
    # Nor is a link in a folder that goes.
    (base / name).unlink()
    (base / name).mkdir()
    (base / name / ".lock").write_text("")
    (base / name / "link").symlink_to(victim)
    sweep_folders()
    assert not (base / name).exists()
    assert (victim / "file").read_text() == "years of work"


def test_a_folder_without_a_lock_goes_only_if_it_is_empty(base):
    empty, full = (base / f"unless-{this_machine()}-{digit * 12}" for digit in "01")
    for folder in (empty, full):
        folder.mkdir()
    (full / "file").write_text("")
    sweep_folders()
    assert list(base.iterdir()) == [full]


FORK = """
import os, sys
from unless.runtime.files import TemporaryFolder
folder = TemporaryFolder()
child = os.fork()
if not child:
    sys.exit()
os.waitpid(child, 0)
print(folder.path.exists())
"""


def test_a_child_that_was_forked_leaves_the_folder_to_its_parent(base):
    environment = {**os.environ, "TMPDIR": str(base)}
    command = [sys.executable, "-c", FORK]
    done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    assert done.stdout == "True\n"
    assert list(base.iterdir()) == []
