"""A fast form of CSGS: the blankets of all contexts at once, by cohorts of contexts.

A cohort is a set of contexts with the same blanket and the same values of it; the kernel walks them
(`unless.kernels.grow_shrink`). Here the work is cut into parts that need nothing of each other, each part is
searched node after node, by one thread or by several that share a memo, and the graphs are put together.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.counting.slices import PackedTable, bitmap_words, longest_list
from unless.data.dataset import Dataset, code_order
from unless.kernels.answers import Rules
from unless.kernels.bits import Words, packed_words
from unless.kernels.grow_shrink import MOST_BUCKETS, Search, begin, grow_shrink, pack_pairs
from unless.kernels.memo import Log
from unless.kernels.slices import CrosstabBuffers
from unless.learners.base import Run
from unless.learners.memo import DeferredAnswers, Memo, make_log, question_keys, widened
from unless.runtime.checkpoints import Arrays
from unless.runtime.interrupts import CancelToken
from unless.runtime.parallel import InMemory, OnDisk, Team
from unless.structures.structure import Packed, packed_width

Contexts = npt.NDArray[np.int32]
# The contexts of a part, in chunks that threads take one after the other, and its nodes.
Part = tuple[list[Contexts], range]
# Pairs of variables times contexts in a shard that is kept: about a second.
SHARD_SIZE = 2**24
# Where workers take `_MANY` parts or more in turn, the sizes of parts fall evenly from 1 + _FALL to 1 - _FALL
# times their mean: while the last parts, which are small, are done, other workers idle for a short time only.
_FALL, _MANY = 0.75, 8
# How far from where parts would have these sizes a cut may be, as a share of a part.
_LEEWAY = 0.2
# Chunks of contexts that threads take one after the other; with more of them fewer wait for the last, but
# more is looked up twice.
_CHUNKS_PER_THREAD = 4
# New answers between two returns to Python: some milliseconds, so that Ctrl-C is noticed.
_MAX_NEW = 2**13
# Several nodes share one memo while they are expected to add fewer answers than this for each thread, of two
# at most: half of what a cache holds. Threads wait for each other at each new memo.
_ANSWERS_AT_ONCE = 2**15
# The same where each thread takes whole nodes; it is larger, because before each new memo all threads wait
# for the slowest.
_ANSWERS_OF_NODES = 2**18
# How many times as many nodes share a memo as shared the one before, at most.
_MOST_TIMES = 4
# Bytes of memo for one answer while the memo is widened: old and new slots, at least half of them empty.
_BYTES_OF_ONE = 128
# A memo is made wide enough beforehand for at most so many answers (64 MB): how many will come is a guess,
# and all slots must be cleared.
_MOST_EXPECTED = 2**20
# Bytes: two cache lines, as the processor often fetches them in pairs.
_PADDING = 128
# The shares of the memory for answers: a memo, and answers for later nodes.
_MEMO_SHARE, _DEFERRED_SHARE = 3 / 4, 1 / 4


@dataclass(frozen=True)
class Strategy:
    """How blankets are learned: shared along the nodes (Algorithm 2), or alone and joined by a rule."""

    rules: Rules
    shared: bool = True
    join_both: bool = False


@dataclass(frozen=True)
class ContextGraphs:
    """The edges of every context, one bit a pair, and what they cost.

    Distinct questions are counted where one part asks them all. Parts that share no memory may ask the same,
    so that only a bound is known, which must not depend on the number of workers.
    """

    edges: Packed
    n_tests: int
    n_distinct_tests: int | None
    max_distinct_tests: int | None = None

    @classmethod
    def of(cls, edges: Packed, parts: Sequence[Arrays], *, is_kept: bool) -> "ContextGraphs":
        """Add up what the parts cost; those that are kept are cut by the table alone."""
        n_tests, n_distinct = (sum(int(part[name]) for part in parts) for name in ("n_tests", "n_distinct"))
        if len(parts) == 1:
            return cls(edges, n_tests, n_distinct)
        return cls(edges, n_tests, None, n_distinct if is_kept else n_tests)


def learn_by_cohorts(
    data: Dataset,
    order: Sequence[int],
    strategy: Strategy,
    run: Run,
) -> ContextGraphs:
    """Learn the canonical graph of every row with the memory that is left for answers.

    There are as many steps as variables.
    """
    n, m = data.n_variables, data.n_distinct
    workers = min(run.n_workers, m if strategy.shared else n)
    packed = PackedTable.of(data, tuple(order))
    source = run.share(packed, PackedTable.of, data, tuple(order))
    # Threads without a folder to fill work on one part together, and ask nothing twice.
    n_threads = 1 if run.is_kept else min(run.n_sharing_memory, workers)
    n_parts = n_shards(n, m) if run.is_kept else workers // n_threads
    work = _cut(packed, strategy, n_parts, n_threads, in_turn=run.is_kept)
    each = run.bytes_left // min(run.n_sharing_memory, len(work))
    n_searches = sum(len(nodes) for _, nodes in work)
    token = run.steps(n, n_ticks=n_searches)
    folder = None if run.store is None else run.store.folder
    tasks = [(source, strategy, part, each, n_threads, folder) for part in work]
    parts = run.shards(learn_part, tasks, token=token, ticks=n_searches // len(work))
    return ContextGraphs.of(_join(packed, strategy, parts, work), parts, is_kept=run.is_kept)


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
    """Return into how many shards kept work is cut: it follows from the table, not from the workers."""
    return -(-n * n * m // SHARD_SIZE)


def cut_contexts(packed: PackedTable, n_parts: int, *, in_turn: bool) -> list[Contexts]:
    """Cut the contexts into parts; those that agree in the first variables ask alike, and stay together.

    They are sorted, and cut between two that differ as early as can be found near the wanted position.
    """
    m = packed.table.codes.shape[1]
    n_parts = min(n_parts, m)
    if n_parts == 1:
        return [np.arange(m, dtype=np.int32)]
    alike = code_order(packed.table.codes.T)
    fall = _FALL if in_turn and n_parts >= _MANY else 0.0
    sizes = np.linspace(1 + fall, 1 - fall, n_parts) * m / n_parts
    ideals = np.cumsum(sizes)[:-1].round().astype(np.int64).clip(1, m - 1)
    ends = set()
    for ideal, size in zip(ideals.tolist(), sizes[1:].tolist(), strict=True):
        reach = int(_LEEWAY * size)
        near = np.arange(max(1, ideal - reach), min(m - 1, ideal + reach) + 1)
        ordered = packed.table.codes[:, alike[near[0] - 1 : near[-1] + 1]]
        differ_at = (ordered[:, 1:] != ordered[:, :-1]).argmax(axis=0)
        ends.add(int(near[np.lexsort([abs(near - ideal), differ_at])[0]]))
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
    return [(everyone, range(number, n, n_parts)) for number in range(n_parts)]


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


def learn_part(
    source: InMemory[PackedTable] | OnDisk[PackedTable],
    strategy: Strategy,
    part: Part,
    max_bytes: int,
    n_threads: int,
    folder: Path | None,
    token: CancelToken,
) -> Arrays:
    """Learn the blankets of the nodes of a part in its contexts."""
    packed = source.load()
    with (
        DeferredAnswers(len(packed.order), int(max_bytes * _DEFERRED_SHARE), folder) as deferred,
        Team(n_threads, token) as team,
    ):
        search = BlanketSearch(packed, strategy, part, max_bytes, team, token, deferred)
        while not search.is_done:
            search.begin()
            team.together(search.run)
            token.tick(search.end())
        return search.result()


class BlanketSearch:
    """What the threads of a part share: graphs so far, the memo of some nodes, answers for later ones."""

    def __init__(
        self,
        packed: PackedTable,
        strategy: Strategy,
        part: Part,
        max_bytes: int,
        team: Team,
        token: CancelToken,
        deferred: DeferredAnswers,
    ) -> None:
        self.packed, self.strategy, self.team, self.deferred = packed, strategy, team, deferred
        self.token = token
        chunks, self.nodes = part
        search, required = make_search(packed, chunks), strategy.rules.required
        self.graphs = np.repeat(
            required[self.nodes.start : self.nodes.stop : self.nodes.step, None], len(search.contexts), axis=1
        )
        self.memo = Memo(int(max_bytes * _MEMO_SHARE))
        self.workers = [
            WorkerState(packed, strategy, self.nodes, search, token) for _ in range(team.n_members)
        ]
        # Threads that take nodes should not wait for one of them, as long as the memo holds as many.
        takes_nodes = team.n_members > 1 and not strategy.shared
        self._fewest_at_once = 4 * team.n_members if takes_nodes else 1
        self._answers_at_once = (
            _ANSWERS_OF_NODES if takes_nodes else min(team.n_members, 2) * _ANSWERS_AT_ONCE
        )
        # So many times as many nodes as before; with room for all, two rounds are enough.
        self._most_times = len(self.nodes) if takes_nodes else _MOST_TIMES
        # How many nodes have been searched, up to which they are searched now, and how many at once.
        self._n_done, self._last, self._n_at_once = 0, 0, 1 if strategy.shared else team.n_members
        self._n_expected = 0

    @property
    def is_done(self) -> bool:
        """Whether all nodes have been searched."""
        return self._n_done == len(self.nodes)

    def begin(self) -> None:
        """Make room in the memo for what is known about the next nodes, which `run` puts in."""
        self._last = min(self._n_done + self._n_at_once, len(self.nodes))
        first = self.nodes[self._n_done - 1] + 1 if self._n_done else 0
        # Those for nodes of other parts are taken too, as they lie before.
        taken = {node: self.deferred.take(node) for node in range(first, self.nodes[self._last - 1] + 1)}
        known = [some for node in self.nodes[self._n_done : self._last] for some in taken[node]]
        reserved = len(self.workers) * self.workers[0].n_reserved
        # For as many in all as there were before: widening a memo takes time.
        n_new = min(self._n_expected, _MOST_EXPECTED) - sum(map(len, known))
        self.memo.make_room(known, reserved + max(0, n_new))

    def run(self, member: int) -> None:
        """Learn the blankets of nodes in one chunk after the other, as long as there are some."""
        self.memo.fill(self.token.check)
        log = self.workers[member].run(self._last, self.graphs, self.memo)
        self.deferred.add(self.nodes[self._last - 1], log)

    def end(self) -> int:
        """Return how many nodes have been searched, and choose how many will be at once."""
        n_searched, self._n_done = self._last - self._n_done, self._last
        each = max(1, self.memo.n_known // n_searched)
        wanted = max(self._fewest_at_once, min(self._answers_at_once // each, self._most_times * n_searched))
        self._n_at_once = max(1, min(wanted, self.memo.max_bytes // (_BYTES_OF_ONE * each)))
        self._n_expected = self.memo.n_known * self._n_at_once // n_searched
        return n_searched

    def result(self) -> Arrays:
        """Return graphs (or blankets, where other parts have other nodes) and what they cost."""
        has_all_nodes = len(self.nodes) == len(self.packed.order)
        return {
            "n_tests": np.array(sum(worker.n_asked for worker in self.workers)),
            "n_distinct": np.array(sum(worker.n_new for worker in self.workers)),
            **({"edges": self._pack()} if has_all_nodes else {"graphs": self.graphs}),
        }

    def _pack(self) -> Packed:
        """Write the graphs as one bit a pair."""
        n_contexts, n = self.graphs.shape[1], len(self.packed.order)
        edges = np.zeros((n_contexts, packed_width(n)), dtype=np.uint8)
        ends = np.linspace(0, n_contexts, self.team.n_members + 1).astype(np.int64).tolist()
        columns, shared = np.array(self.packed.order), self.strategy.shared
        join_both = self.strategy.join_both
        self.team.together(
            lambda k: pack_pairs(self.graphs, columns, shared, join_both, edges, ends[k], ends[k + 1])
        )
        return edges


class WorkerState:
    """The buffers of one thread, and what it has asked."""

    def __init__(
        self, packed: PackedTable, strategy: Strategy, nodes: range, search: Search, token: CancelToken
    ) -> None:
        self.table, self.strategy, self.nodes, self.token = packed.table, strategy, np.array(nodes), token
        n = len(packed.order)
        self.keys = question_keys(int(self.table.offsets[-1]), n)
        limit = packed.list_limit()
        # Slots 0..n for the search, as many for the shrink phase, two for scratch.
        self.slices = packed.slices(2 * n + 4, limit)
        self.crosstab = CrosstabBuffers(*map(_padded, packed.crosstab_buffers(limit)))
        self.n_reserved = _MAX_NEW + 2 * n
        self.log = make_log(self.n_reserved)
        self.n_asked = self.n_new = 0
        self.search = search._replace(**_arrays_of_a_thread(packed))
        if not strategy.shared:
            self.search = self.search._replace(**_arrays_of_contexts(len(search.contexts), packed_words(n)))
        begin(self.table, self.slices, self.search)

    def run(self, last: int, graphs: Words, memo: Memo) -> Log:
        """Write blankets of nodes into their graphs and return the answers that were not known."""
        top = n_logged = 0
        while top >= 0:
            self.token.check()
            self.log = widened(self.log, n_logged, self.n_reserved)
            with memo.reserve(self.n_reserved, self.token.check) as reserved:
                top, asked, reserved.n_new = grow_shrink(
                    self.nodes,
                    last,
                    self.strategy.shared,
                    graphs,
                    self.table,
                    self.strategy.rules,
                    self.keys,
                    reserved.slots,
                    Log(self.log.answers[n_logged:], self.log.others[n_logged:]),
                    self.slices,
                    self.crosstab,
                    self.search,
                    top,
                    _MAX_NEW,
                )
            self.n_asked += asked
            n_logged += reserved.n_new
            if top == 0:
                # It waits for another thread to finish a chunk; give that one the core.
                time.sleep(0)
        self.n_new += n_logged
        return Log(self.log.answers[:n_logged], self.log.others[:n_logged])


def make_search(packed: PackedTable, chunks: Sequence[Contexts]) -> Search:
    """Make the state of a search over chunks of contexts."""
    contexts = np.concatenate(chunks)
    return Search(
        chunks=np.cumsum([0, *map(len, chunks)]),
        queue=np.zeros(1, dtype=np.int64),
        done=np.zeros(len(chunks), dtype=np.int64),
        contexts=contexts,
        **_arrays_of_contexts(len(contexts), packed_words(len(packed.order))),
        **_arrays_of_a_thread(packed),
    )


def _arrays_of_contexts(n_contexts: int, n_words: int) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays by context: threads share them where each takes some contexts."""
    return {
        "members": np.empty(n_contexts, dtype=np.int32),
        "spare": np.empty(n_contexts, dtype=np.int32),
        "levels": np.empty(n_contexts, dtype=np.int32),
        "final": np.zeros((n_contexts, n_words), dtype=np.uint64),
    }


def _arrays_of_a_thread(packed: PackedTable) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that threads never share."""
    n, n_levels, words = len(packed.order), packed.n_levels, packed_words(len(packed.order))
    arrays: dict[str, npt.NDArray[Any]] = {
        "visit": np.full(2, -1, dtype=np.int64),
        "stack": np.empty((int(n_levels.sum()) + 2 * n + 2, 7), dtype=np.int64),
        "buckets": np.empty(int(n_levels.max()) + 1, dtype=np.int64),
        "bucket_starts": np.empty(MOST_BUCKETS + 1, dtype=np.int32),
        "path": np.zeros((n + 1, 2), dtype=np.int64),
        "names": np.zeros((n + 1, 2), dtype=np.uint64),
        "grown": np.zeros((n + 1, words), dtype=np.uint64),
        "shrink_path": np.empty((n + 1, 2), dtype=np.int64),
        "slots": np.empty(n + 1, dtype=np.int64),
        "blanket": np.empty((1, words), dtype=np.uint64),
    }
    return {name: _padded(array) for name, array in arrays.items()}


def _padded(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy that shares no cache line with other arrays: cores would wait for each other's writes."""
    margin = _PADDING // array.itemsize
    copy = np.empty(array.size + 2 * margin, dtype=array.dtype)[margin : margin + array.size]
    copy[:] = array.ravel()
    return copy.reshape(array.shape)
