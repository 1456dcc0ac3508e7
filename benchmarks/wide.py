"""Wide tables, each in a process of its own: a thousand variables by CSGS, a hundred by the default learner.

Beside them what sentences cost on ALARM, against learning.
"""

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.child import in_child
from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import Measured, Sample, interleave, measured, median, spread, timed, times

TITLE = "Wide tables: 5,000 rows x 1,000 columns, 20,000 x 100, and the sentences of ALARM"
N_COLUMNS, N_ROWS = 1000, 5000
# The table that the default learner is measured on, from data to page.
N_COLUMNS_OF_NETWORK, N_ROWS_OF_NETWORK = 100, 20_000


def run(options: Options) -> Iterator[Entry]:
    """Make the tables and learn them elsewhere."""
    yield from _sentences_of_alarm(options)
    yield from _default_road()
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


def _sentences_of_alarm(options: Options) -> Iterator[Entry]:
    """Compare what is said of ALARM with what learning it costs, in turns."""
    import unless

    data = unless.read(options.need("bnlearn_alarm/data.csv.gz"))
    learners = {"CSGS": unless.CSGS(n_jobs=1), "GGS (the default)": unless.GGS(n_jobs=1)}
    ways: dict[str, Measured] = {}
    for name, learner in learners.items():
        ways[name] = measured(partial(learner.fit, data))
        # A fit forgets the statements of the one before.
        ways[f"{name}: statements"] = partial(_statements_cost, learner, data)
    samples = interleave(ways, options.repeats)
    for name in learners:
        learned, said = samples[name], samples[f"{name}: statements"]
        yield Line(f"ALARM, {name}: learning, CPU", median(learned), "s", spread(times(learned)))
        yield Line(f"ALARM, {name}: statements, CPU", median(said), "s", spread(times(said)))
        ratio = median(said) / median(learned)
        yield Line(f"ALARM, {name}: statements against learning", ratio, "times")


def _statements_cost(learner: Any, data: Any) -> Sample:
    learner.fit(data)
    return timed(lambda: learner.statements_)[1]


def _default_road() -> Iterator[Entry]:
    found = in_child(learn_network)
    for what in ("learning", "statements", "page"):
        yield Line(f"20,000 x 100 by the default learner: {what}, CPU", found[what], "s")
    total = found["learning"] + found["statements"] + found["page"]
    yield Line("20,000 x 100 by the default learner: all, CPU", total, "s", at_most=60)
    yield Line("20,000 x 100: peak memory", found["peak"] / 1e6, "MB", at_most=1500)
    yield Note(
        "Columns of 2 to 5 levels; each follows one to three of the twelve before it, whose weights add up. "
        "Compiling is left out: a smaller table is learned first."
    )


def make_network(
    n_columns: int = N_COLUMNS_OF_NETWORK, n_rows: int = N_ROWS_OF_NETWORK, seed: int = 0
) -> np.ndarray:
    """Draw a sparse network: the log odds of each column are a sum over one to three that came before."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, n_columns)
    table = np.zeros((n_rows, n_columns), dtype=np.int8)
    for column, size in enumerate(sizes.tolist()):
        near = np.arange(max(0, column - 12), column)
        n_parents = min(len(near), int(rng.integers(1, 4)))
        energies = np.tile(rng.normal(0, 0.5, size), (n_rows, 1))
        for parent in rng.choice(near, n_parents, replace=False).tolist() if n_parents else []:
            energies += rng.normal(0, 1, (sizes[parent], size))[table[:, parent]]
        table[:, column] = np.argmax(energies + rng.gumbel(size=energies.shape), axis=1)
    return table


def learn_network() -> dict[str, Any]:
    """Learn the network, say what was found and write the page; tell what each step took."""
    import unless

    with TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        unless.GGS().fit(unless.read(make_network(8, 2000))).report(page)
        data = unless.read(make_network())
        learner, learning = timed(lambda: unless.GGS(n_jobs=1).fit(data))
        statements = timed(lambda: learner.statements_)[1]
        written = timed(lambda: learner.report(page))[1]
    return {"learning": learning.cpu, "statements": statements.cpu, "page": written.cpu}


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
