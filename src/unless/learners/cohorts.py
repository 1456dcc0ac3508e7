"""Canonical graphs of all contexts at once: cuts the work, and joins what its parts have learned."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unless.counting.slices import PackedTable, bitmap_words, longest_list
from unless.data.dataset import Dataset
from unless.data.ordering import code_order
from unless.kernels.bits import packed_words
from unless.kernels.grow_shrink import MOST_BUCKETS, pack_pairs
from unless.learners.visits import Contexts, Strategy, Task, learn_part
from unless.runtime.checkpoints import Arrays, CheckpointStore
from unless.runtime.interrupts import CancelToken, Step
from unless.runtime.parallel import run_shards, share_input, shares_memory
from unless.structures.pairs import Packed, packed_width

# The contexts of a part, in chunks, and its nodes.
Part = tuple[list[Contexts], range]
# Pairs of variables times contexts in a shard that is kept: about a second.
SHARD_SIZE = 2**24
# Where workers take many parts in turn, these fall from seven quarters to a quarter of their mean: the last
# should be waited for as little as can be.
_FALL, _MANY = 0.75, 8
# How far from where parts would have these sizes a cut may be, as a share of a part.
_LEEWAY = 0.2
# Chunks of contexts that threads take one after the other; with more of them fewer wait for the last, but
# more is looked up twice.
_CHUNKS_PER_THREAD = 4


@dataclass(frozen=True)
class Learned:
    """The edges of every context, one bit a pair, and what they cost.

    Distinct questions are counted where one part asks them all. Parts that share no memory may ask the same,
    so that only a bound is known, which must not depend on the number of workers.
    """

    edges: Packed
    n_tests: int
    n_distinct_tests: int | None
    max_distinct_tests: int | None = None

    @classmethod
    def of(cls, edges: Packed, parts: Sequence[Arrays], *, is_kept: bool) -> "Learned":
        """Add up what the parts cost; those that are kept are cut by the table alone."""
        n_tests, n_distinct = (sum(int(part[name]) for part in parts) for name in ("n_tests", "n_distinct"))
        if len(parts) == 1:
            return cls(edges, n_tests, n_distinct)
        return cls(edges, n_tests, None, n_distinct if is_kept else n_tests)


def learn_by_cohorts(
    data: Dataset,
    order: Sequence[int],
    strategy: Strategy,
    max_bytes: int,
    n_workers: int = 1,
    step: Step = lambda: None,
    store: CheckpointStore | None = None,
) -> Learned:
    """Learn the canonical graph of every row with this much memory for answers.

    `step` is called as many times as there are variables.
    """
    n, m = data.n_variables, data.n_distinct
    source = share_input(data, store, PackedTable.of, tuple(order))
    packed = source.load()
    # Threads without a folder to fill work on one part together, and ask nothing twice.
    n_threads = n_workers if store is None and shares_memory() else 1
    n_parts = n_shards(n, m) if store is not None else n_workers // n_threads
    work = _cut(packed, strategy, n_parts, n_threads, in_turn=store is not None)
    each = max_bytes // (min(n_workers, len(work)) if shares_memory() else 1)
    n_visits = sum(len(nodes) for _, nodes in work)
    token = CancelToken(step, n, n_visits)
    folder = None if store is None else store.folder
    tasks = [(source, strategy, Task(chunks, nodes, each, n_threads, folder)) for chunks, nodes in work]
    ticks = n_visits // len(work)
    parts = run_shards(learn_part, tasks, n_jobs=n_workers, store=store, token=token, ticks=ticks)
    return Learned.of(_join(packed, strategy, parts, work), parts, is_kept=store is not None)


def bytes_to_learn(data: Dataset, n_workers: int) -> int:
    """Estimate the memory that learning needs besides the memo of answers."""
    n, m, words = data.n_variables, data.n_distinct, bitmap_words(data.counts)
    levels, most = int(data.domain.n_levels.sum()), int(data.domain.n_levels.max())
    # Graphs while they are learned and joined, then one bit a pair, sorted and compared.
    graphs = n * m * packed_words(n) * 8 * min(n_workers, 2) + 6 * m * packed_width(n)
    # Its bitmaps and codes, counts, the order of rows; critical values.
    table = levels * words * 8 + 4 * n * m + 24 * m + 16 * most * most
    # Slices as bitmaps and as lists, and what crosses two variables on one of them.
    limit = longest_list(data.domain.n_levels, words, m)
    scratch = (2 * n + 4) * (8 * words + 4 * limit + 16)
    scratch += 2 * (8 * most * words + 10 * limit + 8 * most * (most + 3))
    # What is known of each context while it is searched, and the way through them.
    search = m * (12 + 8 * packed_words(n)) + 4 * MOST_BUCKETS + 56 * (levels + 3 * n)
    return graphs + table + n_workers * scratch + (n_workers + 1) * search


def n_shards(n: int, m: int) -> int:
    """Return into how many shards kept work is cut: it follows from the table, whoever works on it."""
    return -(-n * n * m // SHARD_SIZE)


def cut_contexts(packed: PackedTable, n_parts: int, *, in_turn: bool) -> list[Contexts]:
    """Cut the contexts into parts; those that agree in the first variables ask alike, and stay together.

    They are sorted, and cut between two that differ as early as can be found near the place that is wished
    for.
    """
    m = packed.table.codes.shape[1]
    n_parts = min(n_parts, m)
    if n_parts == 1:
        return [np.arange(m, dtype=np.int32)]
    alike = code_order(packed.table.codes.T)
    ordered = packed.table.codes[:, alike]
    differ_at = (ordered[:, 1:] != ordered[:, :-1]).argmax(axis=0)
    fall = _FALL if in_turn and n_parts >= _MANY else 0.0
    sizes = np.linspace(1 + fall, 1 - fall, n_parts) * m / n_parts
    ideals = np.cumsum(sizes)[:-1].round().astype(np.int64).clip(1, m - 1)
    ends = set()
    for ideal, size in zip(ideals.tolist(), sizes[1:].tolist(), strict=True):
        source = int(_LEEWAY * size)
        near = np.arange(max(1, ideal - source), min(m - 1, ideal + source) + 1)
        ends.add(int(near[np.lexsort([abs(near - ideal), differ_at[near - 1]])[0]]))
    parts = [np.sort(part).astype(np.int32) for part in np.split(alike, sorted(ends))]
    # The largest first.
    return sorted(parts, key=len, reverse=True)


def _cut(
    packed: PackedTable, strategy: Strategy, n_parts: int, n_threads: int, *, in_turn: bool
) -> list[Part]:
    """Cut the work by contexts where blankets are shared, else by nodes: no part needs another."""
    n = len(packed.order)
    if n_threads > 1:
        n_chunks = n_threads * _CHUNKS_PER_THREAD if strategy.shared else 1
        return [(cut_contexts(packed, n_chunks, in_turn=True), range(n))]
    if strategy.shared:
        return [([contexts], range(n)) for contexts in cut_contexts(packed, n_parts, in_turn=in_turn)]
    n_parts, everyone = min(n_parts, n), cut_contexts(packed, 1, in_turn=False)
    return [(everyone, range(place, n, n_parts)) for place in range(n_parts)]


def _join(packed: PackedTable, strategy: Strategy, parts: Sequence[Arrays], work: Sequence[Part]) -> Packed:
    """Put the graphs of all parts together, the rows back in the dataset's order."""
    n, m = packed.table.codes.shape
    edges = np.zeros((m, packed_width(n)), dtype=np.uint8)
    if len(work[0][1]) == n:
        for part, (chunks, _) in zip(parts, work, strict=True):
            edges[packed.row_order[np.concatenate(chunks)]] = part["edges"]
        return edges
    graphs = np.zeros((n, m, packed_words(n)), dtype=np.uint64)
    for part, (_, nodes) in zip(parts, work, strict=True):
        graphs[nodes.start : nodes.stop : nodes.step] = part["graphs"]
    by_count = np.zeros_like(edges)
    pack_pairs(graphs, np.array(packed.order), False, strategy.join_both, by_count, 0, m)
    edges[packed.row_order] = by_count
    return edges
