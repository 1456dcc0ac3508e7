"""A thousand variables: every canonical graph within 4 GB, in a process of its own."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.child import in_child
from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import timed

TITLE = "A wide table: 5,000 rows x 1,000 columns"
N_COLUMNS, N_ROWS = 1000, 5000


def run(_options: Options) -> Iterator[Entry]:
    """Make the table and learn it elsewhere."""
    found = in_child(learn)
    yield Line("peak memory", found["peak"] / 1e6, "MB", at_most=4000)
    yield Line("wall", found["wall"], "s")
    yield Line("CPU", found["cpu"], "s")
    yield Line("questions asked", found["n_tests"])
    yield Line("tables counted", found["n_distinct_tests"])
    yield Note(
        "Binary; each column follows one of the five before it in four rows of five. CSGS with max_memory="
        '"4 GB"; answers that do not fit wait in nameless files of some gigabytes.'
    )


def make_table(n_columns: int = N_COLUMNS, n_rows: int = N_ROWS, seed: int = 0) -> np.ndarray:
    """Make a table in which each column mostly follows one that is near."""
    rng = np.random.default_rng(seed)
    table = np.zeros((n_rows, n_columns), dtype=np.int8)
    table[:, 0] = rng.random(n_rows) < 0.5
    for column in range(1, n_columns):
        near = rng.integers(max(0, column - 5), column)
        table[:, column] = np.where(rng.random(n_rows) < 0.8, table[:, near], rng.random(n_rows) < 0.5)
    return table


def learn() -> dict[str, Any]:
    """Learn, and tell what it took."""
    import unless

    data = unless.read(make_table())
    learner, taken = timed(lambda: unless.CSGS(max_memory="4 GB").fit(data))
    return {**asdict(taken), "n_tests": learner.n_tests_, "n_distinct_tests": learner.n_distinct_tests_}
