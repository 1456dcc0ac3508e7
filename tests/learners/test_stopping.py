"""Ctrl-C is heard in the middle of long work, finished shards stay, and the way to go on is said."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import unless

# Both would take a minute or more.
LEARN = """
import sys, threading
import numpy as np
import unless
from unless.learners.grow_shrink import cohorts

cohorts.SHARD_SIZE = 2**20
table = unless.read(np.loadtxt(sys.argv[1] + "/table.csv", delimiter=",", skiprows=1, dtype=np.int8))
for name, n_jobs in (("CSGS", 2), ("CSPC", 1)):
    learner = getattr(unless, name)(n_jobs=n_jobs, work_dir=f"{sys.argv[1]}/{name}", show_progress=False)
    try:
        learner.fit(table)
    except KeyboardInterrupt as stopped:
        print(stopped, flush=True)
"""


# Each would take several seconds or more; small tables first, so that nothing is stopped while it is loaded.
STOP = """
import os, signal, sys, threading
import numpy as np
import unless

rng = np.random.default_rng(0)
columns = [rng.integers(0, 3, 8000)]
for _ in range(59):
    columns.append(np.where(rng.random(8000) < 0.8, columns[-1], rng.integers(0, 3, 8000)))
table = unless.read(np.array(columns).T)
small = unless.read(np.array(columns).T[:300, :6])
learners = [
    unless.GSMN(), unless.GSMN(variant="gsmn*", alpha=0.3), unless.IBMAPHC(), unless.GGS(), unless.DTSL(),
    unless.GSSL(), unless.CSIBMAP(), unless.CSMPL(),
]
for learner in learners:
    learner.fit(small)
for place, learner in enumerate(learners):
    learner.set_params(n_jobs=1 + place % 2, work_dir=f"{sys.argv[1]}/{place}", show_progress=False)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        learner.fit(table)
    except KeyboardInterrupt as stopped:
        print(stopped, flush=True)
"""


def write_table(folder, n_columns=100, n_rows=4000):
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 2, n_rows)]
    for _ in range(n_columns - 1):
        columns.append(np.where(rng.random(n_rows) < 0.8, columns[-1], rng.integers(0, 2, n_rows)))
    pd.DataFrame({f"v{k:03}": column for k, column in enumerate(columns)}).to_csv(
        folder / "table.csv", index=False
    )


def start(*command):
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background job would ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def interrupt_after_the_first_shard(running, work):
    while running.poll() is None and not list(work.glob("*.shard")):
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)


def n_left(work):
    names = [path.stem for path in work.glob("*.shard")]
    return int(names[0].rsplit("-", 1)[1]) - len(names)


def test_learners_stop_and_say_how_to_go_on(tmp_path):
    write_table(tmp_path)
    running = start(sys.executable, "-c", LEARN, str(tmp_path))
    for name in ("CSGS", "CSPC"):
        work = tmp_path / name
        interrupt_after_the_first_shard(running, work)
        said = running.stdout.readline()
        assert said.endswith(f"kept in work_dir={str(work)!r}: go on with resume=True.\n")
        assert n_left(work) > 0
    assert running.communicate(timeout=20) == ("", "")
    assert n_left(tmp_path / "CSGS") > 0


def test_every_other_learner_stops_in_the_middle(tmp_path):
    said, told = start(sys.executable, "-c", STOP, str(tmp_path)).communicate(timeout=300)
    assert told == ""
    for place, line in enumerate(said.splitlines()):
        assert line.startswith("Stopped; ")
        assert f"work_dir={str(tmp_path / str(place))!r}: " in line
        assert line.endswith(("begin again.", "go on with resume=True."))
    assert len(said.splitlines()) == 8


def test_the_command_line_stops_with_one_sentence(tmp_path):
    write_table(tmp_path)
    work = tmp_path / "work"
    program = Path(sys.executable).with_name("unless")
    asked = ("learn", tmp_path / "table.csv", "-o", tmp_path / "m.unless", "--work-dir", work, "--quiet")
    running = start(program, *asked)
    interrupt_after_the_first_shard(running, work)
    said, told = running.communicate(timeout=20)
    assert (running.returncode, said) == (130, "")
    assert told.strip().startswith("Stopped; ")
    assert told.strip().endswith(f"kept in --work-dir {str(work)!r}: go on with --resume.")
    assert "Traceback" not in told
    assert not (tmp_path / "m.unless").exists()


@pytest.mark.parametrize("learner", [unless.GSMN, unless.GGS])
def test_ctrl_c_that_a_kernel_hid_is_heard(learner, tmp_path, monkeypatch):
    def hide(*_):
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    monkeypatch.setattr("unless.learners.gsmn.grow", hide)
    monkeypatch.setattr("unless.learners.ggs.gates.GateSearch.tree", hide)
    table = unless.read(np.tile([[0, 1, 0], [1, 0, 1], [1, 1, 0]], (9, 1)))
    with pytest.raises(KeyboardInterrupt) as stopped:
        learner(work_dir=tmp_path).fit(table)
    assert str(stopped.value).endswith(f"work_dir={str(tmp_path)!r}: begin again.")
