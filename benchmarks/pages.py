"""Building the report: what its statements and its page take, and how large it is."""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.options import DataError, Options
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import Sample, measured, median, spread, times

if TYPE_CHECKING:
    from unless.data.dataset import Dataset

TITLE = "Pages: est.report"
TURNS = 3
N_COLUMNS, N_ROWS = 60, 10_000


def run(options: Options) -> Iterator[Entry]:
    """Write the report of the demo's table, of ALARM and of a wide one."""
    import unless
    from benchmarks.networks import sample_network

    turns = min(TURNS, options.repeats)
    tables: dict[str, Callable[[], Dataset]] = {
        "Berkeley": unless.datasets.load_ucb_admissions,
        "ALARM": lambda: unless.read(options.need("bnlearn_alarm/data.csv.gz")),
        f"{N_COLUMNS} columns": lambda: sample_network(N_COLUMNS, 4, N_ROWS, with_fields=True, seed=0),
    }
    for name, load in tables.items():
        try:
            data = load()
        except DataError as missing:
            yield Note(f"No {name}: {missing}.")
            continue
        yield from _measure(name, data, turns)
    yield Note(
        f"{turns} turns after one to warm up, from a fitted CSGS; the time of the page is without that "
        "of its statements, which are kept once they are made."
    )


def _measure(name: str, data: "Dataset", turns: int) -> Iterator[Entry]:
    import unless

    explained: list[Sample] = []
    written: list[Sample] = []
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        for turn in range(-1, turns):
            est = unless.CSGS(show_progress=False).fit(data)
            costs = measured(partial(getattr, est, "statements_"))(), measured(partial(est.report, page))()
            if turn >= 0:
                explained.append(costs[0])
                written.append(costs[1])
        size = page.stat().st_size
    yield Line(f"{name}: statements, CPU", median(explained), "s", spread(times(explained)))
    yield Line(f"{name}: page, CPU", median(written), "s", spread(times(written)))
    yield Line(f"{name}: size", size / 1e6, "MB", at_most=6)
