"""The canonical graphs of a dataset, learned the fastest way its shape allows."""

import numpy as np

from unless.counting.slices import build_cube, fits_cube
from unless.data.dataset import Dataset
from unless.errors import TooLarge
from unless.kernels.answers import Rules
from unless.kernels.bits import unpack_sets
from unless.kernels.cube import CubeWorkspace, grow_shrink_rows
from unless.learners.cohorts import Learned, bytes_to_learn, learn_by_cohorts
from unless.learners.pc import bytes_for_pc, learn_by_pc
from unless.learners.visits import Strategy
from unless.runtime.checkpoints import Arrays, CheckpointStore
from unless.runtime.interrupts import CancelToken, Step
from unless.runtime.memory import parse_memory, show_memory
from unless.runtime.parallel import n_workers, run_shards, shares_memory
from unless.runtime.progress import Bar
from unless.structures.pairs import pack


def learn_graphs(
    data: Dataset,
    order: list[int],
    strategy: Strategy,
    max_bytes: int | None = None,
    n_jobs: int | None = None,
    step: Step = lambda: None,
    store: CheckpointStore | None = None,
) -> Learned:
    """Learn the canonical graph of every distinct row; `step` is called once for each variable."""
    if fits_cube(data.domain.n_levels):
        # Done in less time than workers need to begin.
        (part,) = run_shards(_learn_by_cube, [(data, order, strategy)], n_jobs=1, store=store)
        for _ in range(data.n_variables):
            step()
        return Learned.of(part["edges"], [part], is_kept=store is not None)
    left = memory_left(data, parse_memory(None) if max_bytes is None else max_bytes, n_jobs)
    most = data.n_distinct if strategy.shared else data.n_variables
    return learn_by_cohorts(data, order, strategy, left, min(n_workers(n_jobs), most), step, store)


def memory_left(data: Dataset, max_bytes: int, n_jobs: int | None = None) -> int:
    """Return the memory that learning leaves for answers, or refuse with the estimate before any work."""
    if fits_cube(data.domain.n_levels):
        return max_bytes
    return _left(data, bytes_to_learn(data, _n_sharing(data, n_jobs)), max_bytes)


def learn_pc_graphs(
    data: Dataset,
    order: list[int],
    rules: Rules,
    max_condition: int,
    max_bytes: int,
    n_jobs: int | None = None,
    bar: Bar | None = None,
    store: CheckpointStore | None = None,
) -> Learned:
    """Learn the graph of every distinct row by PC."""
    left = pc_memory_left(data, max_bytes, n_jobs)
    workers = min(n_workers(n_jobs), data.n_distinct)
    return learn_by_pc(data, order, rules, max_condition, left, workers, bar, store)


def pc_memory_left(data: Dataset, max_bytes: int, n_jobs: int | None = None) -> int:
    """Return the memory that PC leaves for answers, or refuse with the estimate before any work."""
    return _left(data, bytes_for_pc(data, _n_sharing(data, n_jobs)), max_bytes)


def _left(data: Dataset, need: int, max_bytes: int) -> int:
    if need > max_bytes:
        raise TooLarge(
            f"{data.n_distinct:,} graphs over {data.n_variables:,} variables would need about "
            f"{show_memory(need)}, more than the {show_memory(max_bytes)} allowed; choose fewer columns or "
            "raise max_memory=."
        )
    return max_bytes - need


def _n_sharing(data: Dataset, n_jobs: int | None) -> int:
    """Return how many workers share the memory of one process."""
    return min(n_workers(n_jobs), data.n_distinct) if shares_memory() else 1


def _learn_by_cube(data: Dataset, order: list[int], strategy: Strategy, _: CancelToken) -> Arrays:
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
