"""The paper's domain: nine variables, 100,000 rows, through the dense cube."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import interleave, loops_for, measured, median, spread, times

TITLE = "The paper's domain: 9 variables, 100,000 rows"


def run(options: Options) -> Iterator[Entry]:
    """Measure from the collapsed Dataset to the edge sets."""
    import unless
    from benchmarks.rules import default_rules
    from unless.learners.csgs import learn_graphs
    from unless.learners.grow_shrink.cohorts import Strategy
    from unless.learners.settings import resolve_order

    data = unless.datasets.make_csi(n_variables=9, random_state=0).sample(100_000, random_state=1)
    order = resolve_order(data, "association")
    strategy = Strategy(default_rules(data, order))
    whole = partial(learn_graphs, data, order, strategy)
    kernels = _kernels(data, order, strategy)
    ways = {
        "Dataset to edge sets": measured(whole, loops_for(whole, 0.05)),
        "kernels alone": measured(kernels, loops_for(kernels, 0.05)),
        "CSGS().fit": measured(lambda: unless.CSGS(n_jobs=1).fit(data), 10),
    }
    samples = interleave(ways, options.repeats)
    for name, taken in samples.items():
        target = 2.0 if name == "Dataset to edge sets" else None
        yield Line(f"{name}: CPU", median(taken) * 1e3, "ms", spread(times(taken, unit=1e-3)), at_most=target)
    learned = whole()
    yield Line("questions asked", learned.n_tests)
    yield Line("tables counted", learned.n_distinct_tests or 0)
    yield Note(
        f"{data.n_distinct:,} contexts; {options.repeats} turns; fit adds the order, the rules and the model."
    )


def _kernels(data, order, strategy):
    """Return a call of the two kernels, everything around them prepared."""
    from unless.counting.slices import build_cube
    from unless.kernels.cube import CubeWorkspace, fill, grow_shrink_rows

    n, m = data.n_variables, data.n_distinct
    rows = np.ascontiguousarray(data.rows[:, order])
    cube = build_cube(data, order)
    graphs = np.zeros((m, n, n), dtype=np.bool_)
    most = int(cube.n_levels.max())
    work = CubeWorkspace(
        answers=np.zeros(n * (n - 1) // 2 * len(cube.counts), dtype=np.uint8),
        cells=np.empty(most * most, dtype=np.int64),
        totals=np.empty(most, dtype=np.int64),
        columns=np.empty(most, dtype=np.int64),
        inverses=np.empty(most),
    )

    def call() -> None:
        cube.counts[:] = 0
        work.answers[:] = 0
        graphs[:] = False
        fill(rows, data.counts, cube)
        grow_shrink_rows(rows, graphs, cube, strategy.rules, True, work)

    return call
