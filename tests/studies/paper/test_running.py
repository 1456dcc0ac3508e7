"""A run that is killed, however often, ends with the files of one that was left alone."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from studies.paper.plan import Plan, Run, Study
from studies.paper.running import measure_missing
from studies.paper.store import Store

# Small, but of every kind: both references, a canonical model, a graph, features, two variants.
STUDY = Study(
    variants=("headline", "w-first"),
    n_variables=(4,),
    sizes=(20, 60),
    n_networks=2,
    methods=("CSGS", "CSPC", "GSMN", "DTSL", "generating", "canonical"),
)
PLAN = Plan(STUDY, None)
BEFORE = Plan(replace(STUDY, n_networks=1), None)
# Runs are forked from a process that has imported everything: only the work itself is killed, and each as
# a group, so that the two with workers die with their workers.
SCRIPT = """
import os, random, signal, sys, time
from pathlib import Path
sys.path[:0] = [{here!r}, {root!r}]
import matplotlib.backends.backend_svg, scipy.stats
from test_running import BEFORE, PLAN
from studies.paper.paper import run_paper

def start(folder, n_jobs):
    child = os.fork()
    if child:
        return child
    os.setsid()
    run_paper(PLAN, Path(folder), n_jobs, False)
    os._exit(0)

undisturbed, killed, before = sys.argv[1:]
# Kernels are compiled or loaded and numbers typeset here, once: in the runs that would take longer than their
# work. One network of every kind has them do it.
run_paper(BEFORE, Path(before), 1, False)
begin = time.monotonic()
code = os.waitpid(start(undisturbed, 1), 0)[1]
seconds = time.monotonic() - begin
rng = random.Random(5)
# From before the first run to the last of the figures, which take most of the time; the early ones first, so
# that there are runs left to measure.
for turn in range(10):
    child = start(killed, 2 if turn in (3, 6) else 1)
    time.sleep(seconds * ((turn + rng.random()) / 10) ** 2)
    os.kill(child, 0)
    while os.getpgid(child) != child:
        time.sleep(0.001)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
code = code or os.waitpid(start(killed, 2), 0)[1]
sys.exit(1 if code else 0)
"""
# Times are the only files that no run repeats, and figure 4 draws them.
NOT_REPEATED = ("times", "times.csv", "figure4.svg")


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[0] not in NOT_REPEATED
    }


@pytest.fixture(scope="module")
def undisturbed_and_killed(tmp_path_factory):
    folders = [tmp_path_factory.mktemp(name) for name in ("undisturbed", "killed", "before")]
    script = SCRIPT.format(here=str(Path(__file__).parent), root=str(Path(__file__).parents[3]))
    # Compiled from the first: as plain Python the same small work takes twice the time.
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, folders)], capture_output=True, text=True, check=False,
        env={**os.environ, "UNLESS_KERNELS": "numba"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folders[:2]


def test_a_run_killed_ten_times_ends_with_the_same_files(undisturbed_and_killed):
    undisturbed, killed = map(files, undisturbed_and_killed)
    assert len(undisturbed) == len(PLAN.runs()) + 7
    assert killed.keys() == undisturbed.keys()
    assert killed == undisturbed


def test_finished_cells_are_left_alone(undisturbed_and_killed):
    assert measure_missing(PLAN, undisturbed_and_killed[1], 1, False) == 0


def test_another_version_or_a_torn_file_is_measured_again(tmp_path):
    plan = Plan(Study(n_variables=(4,), sizes=(20,), n_networks=1, methods=("GSMN",)), None)
    (run,) = plan.runs()
    assert measure_missing(plan, tmp_path, 1, False) == 1
    path = tmp_path / "runs" / f"{run.name}.json"
    whole = path.read_text()
    for spoilt in (whole[:-10], whole.replace('"protocol": 2', '"protocol": 0'), "[]", ""):
        path.write_text(spoilt)
        assert not Store(tmp_path).has(run)
        measure_missing(plan, tmp_path, 1, False)
        assert path.read_text() == whole


def test_only_drafts_of_runs_are_cleared(tmp_path):
    store = Store(tmp_path)
    ours = [
        store.results / "headline" / ".complete-n04-00-N000020-GSMN.json.0123456789ab.part",
        store.times / "headline" / ".complete-n04-00-N000020-GSMN.json.0123456789ab.part",
        tmp_path / ".figure1.svg.0123456789ab.part",
        tmp_path / ".means.csv.0123456789ab.part",
        tmp_path / ".claims.md.0123456789ab.part",
    ]
    others = [tmp_path / ".film.part", tmp_path / "elsewhere" / ".claims.md.0123456789ab.part"]
    for path in (*ours, *others):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    store.clear_drafts()
    assert [path.exists() for path in (*ours, *others)] == [False] * 5 + [True] * 2


def test_a_cell_has_one_file_of_its_own():
    runs = PLAN.runs()
    assert len({run.name for run in runs}) == len(runs) == len(set(runs))
    assert all(isinstance(run, Run) for run in runs)
    # A variant runs those it changes, and no others.
    assert {run.method for run in runs if run.table.variant == "w-first"} == {"CSGS", "CSPC"}
