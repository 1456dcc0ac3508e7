"""Two workers of a cluster against one process, and what a task costs the scheduler."""

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.learner_run import read_debd
from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import Sample, interleave, measured, median, ratios, spread, times

TITLE = "A cluster of two processes, against one process"
# Larger blankets, in the paper's order, of every row there is: work of more than half a minute.
HARDER: dict[str, Any] = {"alpha": 0.35, "order": "columns"}
# What docs/cluster.md advises: Dask looks after itself a hundred times a second, on the cores that work.
CALM = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "500ms"}
_MOST_TURNS = 5
_PARTS = ("train", "valid", "test")
_N_TASKS = 1000


def run(options: Options) -> Iterator[Entry]:
    """Learn all graphs of accidents by one process, then by two workers that load the table from its file."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        yield Note("Skipped: the extra 'dask' is not installed.")
        return
    source = options.need("debd/accidents")
    table = read_debd(source, *_PARTS)
    # One turn takes minutes: the kernels are loaded by smaller tables, here and in the workers.
    with two_workers() as client, tempfile.TemporaryDirectory() as folder:
        sizes: list[int] = []
        ways = {
            "one": measured(lambda: _learn(table)),
            "apart": measured(lambda: _learn_apart(client, source)),
            "two": measured(lambda: sizes.extend(_learn_on_cluster(table, Path(folder)))),
        }
        small = table.select(table.names[:30])
        _learn(small)
        _learn_on_cluster(small, Path(folder))
        samples = interleave(ways, min(options.repeats, _MOST_TURNS), warm=False)
        per_task = _task_seconds()
    yield from _figures(samples, sizes)
    yield Line("scheduler: wall of a task that does nothing", per_task * 1000, "ms")
    yield Note(
        f"CSGS(alpha={HARDER['alpha']}, order='columns') on {table.n_distinct:,} contexts x "
        f"{table.n_variables} columns. The efficiency is the wall time of one process over twice that of two "
        "workers, each a process of one thread. The next line says what the machine allowed: both workers "
        "learn the whole, each for itself, and the efficiency is the wall time of one process over theirs. "
        "Client, scheduler and workers share two cores; Dask is set as docs/cluster.md advises."
    )


def _figures(samples: dict[str, list[Sample]], sizes: list[int]) -> Iterator[Line]:
    efficiencies = [ratio / 2 for ratio in ratios(samples["one"], samples["two"], "wall")]
    middle = statistics.median(efficiencies)
    yield Line("efficiency of two workers", middle, "", spread(efficiencies), at_least=0.8)
    ceilings = ratios(samples["one"], samples["apart"], "wall")
    middle = statistics.median(ceilings)
    yield Line("efficiency of two workers that share nothing (the machine now)", middle, "", spread(ceilings))
    for name, what in (("one", "one process"), ("two", "two workers")):
        yield Line(f"{what}: wall", median(samples[name], "wall"), "s", spread(times(samples[name], "wall")))
    n_shards = len(sizes) // len(samples["two"])
    yield Line("shards", n_shards)
    yield Line("a shard's file", sum(sizes) / len(sizes) / 1e6, "MB", spread([size / 1e6 for size in sizes]))


@contextmanager
def two_workers() -> Iterator[Any]:
    """Start two processes on this machine, and let joblib use them."""
    import dask
    import joblib
    from distributed import Client, LocalCluster

    settings = {"host": "127.0.0.1", "dashboard_address": None, "n_workers": 2, "threads_per_worker": 1}
    with (
        dask.config.set(CALM),
        LocalCluster(**settings) as cluster,
        Client(cluster) as client,
        joblib.parallel_config("dask"),
    ):
        yield client


def _learn(table: Any) -> None:
    import joblib

    import unless

    with joblib.parallel_config("threading"):
        unless.CSGS(**HARDER, n_jobs=1).fit(table)


def _learn_apart(client: Any, source: Path) -> None:
    """Let each worker learn the whole by itself, at the same time."""
    workers = client.scheduler_info()["workers"]
    client.gather([client.submit(_read_and_learn, source, workers=[one], pure=False) for one in workers])


def _read_and_learn(source: Path) -> None:
    _learn(read_debd(source, *_PARTS))


def _learn_on_cluster(table: Any, folder: Path) -> list[int]:
    """Learn on the workers and return the sizes of the shards' files."""
    import unless

    with tempfile.TemporaryDirectory(dir=folder) as work:
        unless.CSGS(**HARDER, n_jobs=-1, work_dir=work).fit(table)
        return [path.stat().st_size for path in Path(work).glob("*.shard")]


def _task_seconds() -> float:
    from joblib import Parallel, delayed

    pool = Parallel(n_jobs=-1, batch_size=1)
    pool(delayed(abs)(one) for one in range(20))
    start = time.perf_counter()
    pool(delayed(abs)(one) for one in range(_N_TASKS))
    return (time.perf_counter() - start) / _N_TASKS
