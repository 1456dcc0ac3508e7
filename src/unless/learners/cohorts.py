"""Canonical graphs of all contexts at once: drives the kernels over nodes, shards of contexts and threads."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from unless.counting.cube import build_cube, fits_cube
from unless.counting.packed import PackedTable
from unless.data.dataset import Dataset
from unless.kernels.answers import Rules
from unless.kernels.bitsets import packed_words, unpack_sets
from unless.kernels.cohorts import Search, begin, grow_shrink, pack_pairs, share_blankets
from unless.kernels.cube import Desk, grow_shrink_rows
from unless.kernels.memo import Keys, merge
from unless.structures.pairs import Packed, packed_width

Graphs = npt.NDArray[np.uint64]
Contexts = npt.NDArray[np.int32]
# New answers between two returns to Python: some tens of milliseconds, so that Ctrl-C is heard.
_PATIENCE = 2**15
# A fixed seed: the keys only name questions, no answer depends on them.
_KEY_SEED = 20140


@dataclass(frozen=True)
class Strategy:
    """How blankets are learned: shared along the nodes (Algorithm 2), or alone and joined by a rule."""

    rules: Rules
    shared: bool = True
    join_both: bool = False


@dataclass(frozen=True)
class Learned:
    """The edges of every context, one bit a pair, and what they cost."""

    edges: Packed
    n_tests: int
    n_distinct_tests: int


@dataclass
class Memo:
    """Answers by question, widened as they come."""

    places: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros((2**12, 2), dtype=np.uint64))
    n_known: int = 0

    def make_room(self, n_new: int) -> None:
        """Keep the places at most half full after `n_new` more answers."""
        wanted = 2 * (self.n_known + n_new)
        if wanted > len(self.places):
            wider = np.zeros((1 << (wanted - 1).bit_length(), 2), dtype=np.uint64)
            merge(wider, self.places)
            self.places = wider

    def add(self, other: "Memo") -> None:
        """Take over the answers of another memo."""
        self.make_room(other.n_known)
        self.n_known += merge(self.places, other.places)


def learn_graphs(
    data: Dataset,
    order: list[int],
    strategy: Strategy,
    n_jobs: int | None = None,
    step: Callable[[], object] = lambda: None,
) -> Learned:
    """Learn the canonical graph of every distinct row; `step` is called once for each variable learned."""
    if fits_cube(data.domain.n_levels):
        return _learn_by_cube(data, order, strategy, step)
    return _learn_by_cohorts(PackedTable.of(data, order), strategy, n_jobs, step)


def _learn_by_cube(data: Dataset, order: list[int], strategy: Strategy, step: Callable[[], object]) -> Learned:
    cube = build_cube(data, order)
    rows = np.ascontiguousarray(data.rows[:, order])
    n, m = data.n_variables, data.n_distinct
    required = unpack_sets(strategy.rules.required, n)
    graphs = np.repeat(required[None], m, axis=0)
    most = int(cube.n_levels.max())
    desk = Desk(
        np.zeros(n * (n - 1) // 2 * len(cube.counts), dtype=np.uint8),
        np.empty(most * most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
    )
    n_asked, n_distinct = grow_shrink_rows(rows, graphs, cube, strategy.rules, strategy.shared, desk)
    joined = graphs & graphs.transpose(0, 2, 1) if strategy.join_both else graphs | graphs.transpose(0, 2, 1)
    # From the order of the learner back to the order of the columns.
    rank = np.argsort(order)
    first, second = np.triu_indices(n, 1)
    edges = np.packbits(joined[:, rank[first], rank[second]], axis=1, bitorder="little")
    for _ in range(n):
        step()
    return Learned(edges, int(n_asked), int(n_distinct))


def _learn_by_cohorts(
    packed: PackedTable, strategy: Strategy, n_jobs: int | None, step: Callable[[], object]
) -> Learned:
    from joblib import Parallel, delayed, effective_n_jobs

    n, m = packed.table.codes.shape
    n_workers = max(1, min(effective_n_jobs(n_jobs), n))
    shards = _shards(packed, n_workers) if strategy.shared else [np.arange(m, dtype=np.int32)] * n_workers
    nodes = [range(n)] * n_workers if strategy.shared else [range(worker, n, n_workers) for worker in range(n_workers)]
    # Threads share the table, and the kernels release the interpreter; a cluster of the user's choice works too.
    parts = Parallel(n_jobs=n_workers, prefer="threads")(
        delayed(_learn_shard)(packed, strategy, shard, own, step if worker == 0 else _silent)
        for worker, (shard, own) in enumerate(zip(shards, nodes, strict=True))
    )
    graphs = np.zeros((n, m, packed_words(n)), dtype=np.uint64)
    memo = Memo()
    for (part, known, _), shard, own in zip(parts, shards, nodes, strict=True):
        graphs[np.ix_(list(own), shard)] = part
        memo.add(known)
    edges = np.zeros((m, packed_width(n)), dtype=np.uint8)
    by_count = np.zeros_like(edges)
    pack_pairs(graphs, np.array(packed.order), strategy.join_both, by_count)
    edges[packed.row_order] = by_count
    return Learned(edges, sum(asked for _, _, asked in parts), memo.n_known)


def _silent() -> None:
    return None


def _shards(packed: PackedTable, n_shards: int) -> list[Contexts]:
    """Cut the contexts into parts that agree in the variables visited first, so that a part shares its questions."""
    alike = np.lexsort(packed.table.codes[::-1])
    return [np.sort(part).astype(np.int32) for part in np.array_split(alike, n_shards)]


def _learn_shard(
    packed: PackedTable,
    strategy: Strategy,
    contexts: Contexts,
    nodes: Iterable[int],
    step: Callable[[], object],
) -> tuple[Graphs, Memo, int]:
    """Learn the blankets of some nodes in some contexts."""
    table, rules = packed.table, strategy.rules
    n = len(table.codes)
    keys = question_keys(int(table.offsets[-1]), n)
    limit = packed.list_limit()
    # Slots 0..n for the search, as many for the shrink phase, one to scribble on.
    slices, crossing = packed.slices(2 * n + 3, limit), packed.crossing(limit)
    search = make_search(packed, contexts)
    memo, n_asked = Memo(), 0
    own = list(nodes)
    initial = np.repeat(rules.required[:, None], len(contexts), axis=1)
    graphs = initial if strategy.shared else np.empty((len(own), *initial.shape[1:]), dtype=np.uint64)
    final = np.zeros(initial.shape[1:], dtype=np.uint64)
    for place, node in enumerate(own):
        top = begin(table.codes.shape[1], slices, search)
        while top:
            memo.make_room(_PATIENCE + 2 * n)
            top, asked, new = grow_shrink(
                node, initial[node], final, table, rules, keys, memo.places, slices, crossing, search, top, _PATIENCE
            )
            memo.n_known += new
            n_asked += asked
        if strategy.shared:
            share_blankets(node, final, graphs)
        else:
            graphs[place] = final
        step()
    return graphs, memo, n_asked


def make_search(packed: PackedTable, contexts: Contexts) -> Search:
    """Make room for a search over some contexts."""
    n, n_levels = len(packed.order), packed.n_levels
    words = packed_words(n)
    return Search(
        stack=np.empty((int(n_levels.sum()) + 2 * n + 2, 7), dtype=np.int64),
        contexts=contexts,
        members=np.empty(len(contexts), dtype=np.int32),
        spare=np.empty(len(contexts), dtype=np.int32),
        buckets=np.empty(int(n_levels.max()) + 2, dtype=np.int64),
        path=np.zeros((n + 1, 2), dtype=np.int64),
        names=np.zeros((n + 1, 2), dtype=np.uint64),
        held=np.zeros((n + 1, words), dtype=np.uint64),
        kept=np.empty((n + 1, 2), dtype=np.int64),
        slots=np.empty(n + 1, dtype=np.int64),
        blanket=np.empty((1, words), dtype=np.uint64),
    )


def question_keys(n_conditions: int, n_variables: int) -> Keys:
    """Return the random words that questions are named by."""
    rng = np.random.default_rng(_KEY_SEED)
    words = rng.integers(0, 2**64, size=(n_conditions + n_variables, 2), dtype=np.uint64)
    return Keys(words[:n_conditions], words[n_conditions:])
