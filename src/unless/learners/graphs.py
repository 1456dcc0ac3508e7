"""The canonical graphs of a dataset, learned the fastest way its shape allows."""

import numpy as np

from unless.counting.slices import build_cube, fits_cube
from unless.data.dataset import Dataset
from unless.kernels.answers import Rules
from unless.kernels.bits import unpack_sets
from unless.kernels.cube import CubeWorkspace, grow_shrink_rows
from unless.learners.base import Run
from unless.learners.cohorts import Learned, bytes_to_learn, learn_by_cohorts
from unless.learners.pc import bytes_for_pc, learn_by_pc
from unless.learners.visits import Strategy
from unless.runtime.checkpoints import Arrays
from unless.runtime.memory import check_need
from unless.runtime.parallel import shares_memory
from unless.structures.pairs import pack


def learn_graphs(data: Dataset, order: list[int], strategy: Strategy, run: Run | None = None) -> Learned:
    """Learn the canonical graph of every distinct row."""
    run = run or Run()
    with run.progress(data.n_variables) as step:
        if not fits_cube(data.domain.n_levels):
            most = data.n_distinct if strategy.shared else data.n_variables
            workers = min(run.n_workers, most)
            return learn_by_cohorts(data, order, strategy, memory_left(data, run), workers, step, run.store)
        # Done in less time than workers need to begin.
        part = run.once("cube", lambda: _learn_by_cube(data, order, strategy))
        for _ in range(data.n_variables):
            step()
    return Learned.of(part["edges"], [part], is_kept=run.store is not None)


def memory_left(data: Dataset, run: Run) -> int:
    """Return the memory that learning leaves for answers, or refuse with the estimate before any work."""
    if fits_cube(data.domain.n_levels):
        return run.max_bytes
    return _left(data, bytes_to_learn(data, _n_sharing(data, run)), run)


def learn_pc_graphs(
    data: Dataset, order: list[int], rules: Rules, max_condition: int, run: Run | None = None
) -> Learned:
    """Learn the graph of every distinct row by PC."""
    run = run or Run()
    workers = min(run.n_workers, data.n_distinct)
    with run.progress() as bar:
        left = pc_memory_left(data, run)
        return learn_by_pc(data, order, rules, max_condition, left, workers, bar, run.store)


def pc_memory_left(data: Dataset, run: Run) -> int:
    """Return the memory that PC leaves for answers, or refuse with the estimate before any work."""
    return _left(data, bytes_for_pc(data, _n_sharing(data, run)), run)


def _left(data: Dataset, need: int, run: Run) -> int:
    check_need(need, run.max_bytes, f"{data.n_distinct:,} graphs over {data.n_variables:,} variables")
    return run.max_bytes - need


def _n_sharing(data: Dataset, run: Run) -> int:
    """Return how many workers share the memory of one process."""
    return min(run.n_workers, data.n_distinct) if shares_memory() else 1


def _learn_by_cube(data: Dataset, order: list[int], strategy: Strategy) -> Arrays:
    cube = build_cube(data, order)
    n, most = data.n_variables, int(cube.n_levels.max())
    graphs = np.repeat(unpack_sets(strategy.rules.required, n)[None], data.n_distinct, axis=0)
    work = CubeWorkspace(
        np.zeros(n * (n - 1) // 2 * len(cube.counts), dtype=np.uint8),
        np.empty(most * most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(most),
    )
    rows = np.ascontiguousarray(data.rows[:, order])
    n_asked, n_distinct = grow_shrink_rows(rows, graphs, cube, strategy.rules, strategy.shared, work)
    mirrored = graphs.transpose(0, 2, 1)
    joined = graphs & mirrored if strategy.join_both else graphs | mirrored
    # From the order of the learner back to the order of the columns.
    rank = np.argsort(order)
    first, second = np.triu_indices(n, 1)
    edges = pack(joined[:, rank[first], rank[second]])
    return {"edges": edges, "n_tests": np.array(n_asked), "n_distinct": np.array(n_distinct)}
