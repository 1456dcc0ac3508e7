"""A command that is stopped cleans up, whichever signal stops it."""

import lzma
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])


def start(folder, *words):
    (folder / "temporary").mkdir(exist_ok=True)

    def listen():
        # A shell's background job would ignore some.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for one in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(one, signal.SIG_DFL)

    return subprocess.Popen(
        [sys.executable, "-m", "unless", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "temporary")},
        preexec_fn=listen,
    )


def wait_for(running, path, pattern):
    while running.poll() is None and not list(path.glob(pattern)):
        time.sleep(0.005)


def left(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """Pack a table that takes a second or more to unpack and to read."""
    rows = np.random.default_rng(0).integers(0, 2, (400_000, 12), dtype=np.uint8)
    text = np.full((len(rows), 24), ord(","), dtype=np.uint8)
    text[:, ::2] = rows + ord("0")
    text[:, -1] = ord("\n")
    path = tmp_path_factory.mktemp("tables") / "t.csv.xz"
    header = ",".join(f"v{place}" for place in range(12)) + "\n"
    path.write_bytes(lzma.compress(header.encode() + text.tobytes(), preset=0))
    return path


@SIGNALS
def test_a_signal_while_a_table_is_unpacked_leaves_nothing(number, packed, tmp_path):
    running = start(tmp_path, "learn", packed, "-o", "m.unless")
    wait_for(running, tmp_path / "temporary", "*/*")
    running.send_signal(number)
    said, told = running.communicate(timeout=60)
    assert (running.returncode, said, told.strip()) == (128 + number, "", "Stopped.")
    assert left(tmp_path) == ["temporary"]


@SIGNALS
def test_a_signal_while_learning_leaves_what_was_finished_and_says_how_to_go_on(number, tmp_path):
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 2, 4000)]
    for _ in range(99):
        columns.append(np.where(rng.random(4000) < 0.8, columns[-1], rng.integers(0, 2, 4000)))
    names = ",".join(f"v{place}" for place in range(100))
    np.savetxt(tmp_path / "t.csv", np.array(columns).T, "%d", ",", header=names, comments="")
    running = start(tmp_path, "learn", "t.csv", "-o", "m.unless", "--work-dir", "work", "--quiet")
    wait_for(running, tmp_path, "work/*.shard")
    running.send_signal(number)
    said, told = running.communicate(timeout=60)
    assert (running.returncode, said) == (128 + number, "")
    assert told.strip().startswith("Stopped; ")
    assert told.endswith("go on with --resume.\n")
    assert left(tmp_path / "temporary") == []
    assert not list(tmp_path.rglob("*.unless-part"))
    assert not (tmp_path / "m.unless").exists()


def test_the_next_command_removes_what_a_killed_one_left(packed, tmp_path):
    running = start(tmp_path, "learn", packed, "-o", "m.unless")
    wait_for(running, tmp_path / "temporary", "*/*")
    running.kill()
    running.communicate()
    assert left(tmp_path / "temporary") != []
    done = start(tmp_path, "datasets", "titanic", "-o", "t.csv")
    assert done.communicate()[1] == ""
    assert left(tmp_path) == ["t.csv", "temporary"]
