import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unless.errors import DataError, SettingError
from unless.runtime import child
from unless.runtime.child import ChildFailed, run_in_child

BOUNDS = {"memory": 2**28, "seconds": 5.0, "n_bytes": 2**20}
UNPACK = "unless.data.sources.unpacking:unpack"
linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not bound address space")


def test_a_child_gives_its_answer():
    assert (
        run_in_child("unless.data.sources.unpacking:most_unpacked", {"packed": 1}, **BOUNDS)
        == 128 * 2**20 + 200
    )


def test_an_error_of_the_child_is_raised_in_the_parent(tmp_path):
    (tmp_path / "t.zip").write_bytes(b"no archive")
    arguments = {"source": str(tmp_path / "t.zip"), "target": "x", "packing": ".zip", "title": "'t.zip'"}
    with pytest.raises(DataError, match=r"'t.zip' is damaged or not a .zip file"):
        run_in_child(UNPACK, arguments, **BOUNDS)
    with pytest.raises(FileNotFoundError):
        run_in_child(UNPACK, {**arguments, "source": str(tmp_path / "none")}, **BOUNDS)


@linux
def test_memory_beyond_the_bound_fails_in_the_child():
    with pytest.raises(ChildFailed, match="memory"):
        run_in_child("builtins:bytearray", {"source": 2**30}, **BOUNDS)


@pytest.mark.parametrize(("work", "want"), [("os:abort", "memory"), ("sys:exit", "nothing")])
def test_a_child_that_ends_by_itself_costs_a_sentence(work, want):
    with pytest.raises(ChildFailed, match=want):
        run_in_child(work, {}, **BOUNDS)


def test_a_child_that_takes_too_long_is_ended():
    with pytest.raises(ChildFailed, match="time"):
        run_in_child("signal:pause", {}, **{**BOUNDS, "seconds": 0.2})


@linux
def test_a_child_that_computes_too_long_is_ended():
    with pytest.raises(ChildFailed, match="time"):
        run_in_child("timeit:timeit", {"number": 10**15}, **{**BOUNDS, "seconds": 0.9})


def test_a_report_without_end_is_not_kept():
    with pytest.raises(ChildFailed):
        run_in_child("builtins:print", {"end": "x" * 200_000}, **BOUNDS)


def test_a_program_that_is_no_python_starts_no_child(monkeypatch):
    monkeypatch.setattr(child.sys, "executable", "")
    with pytest.raises(SettingError, match="save it as CSV"):
        run_in_child("os:abort", {}, **BOUNDS)


@linux
def test_a_child_dies_with_its_parent():
    code = (
        "from unless.runtime.child import run_in_child\n"
        "run_in_child('signal:pause', {}, memory=2**28, seconds=60.0, n_bytes=1)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    found = []
    while not found and parent.poll() is None:
        found = children.read_text().split()
    time.sleep(0.3)
    parent.kill()
    parent.wait()
    for _ in range(100):
        if not _runs(int(found[0])):
            return
        time.sleep(0.05)
    os.kill(int(found[0]), signal.SIGKILL)
    pytest.fail("the child outlives its parent")


def _runs(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@linux
def test_ctrl_c_ends_the_child_at_once():
    code = (
        "from unless.runtime.child import run_in_child\n"
        "run_in_child('signal:pause', {}, memory=2**28, seconds=60.0, n_bytes=1)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        stderr=subprocess.DEVNULL,
        # A shell's background job would ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    found = []
    while not found and parent.poll() is None:
        found = children.read_text().split()
    time.sleep(0.3)
    parent.send_signal(signal.SIGINT)
    parent.wait(timeout=10)
    assert not _runs(int(found[0]))
