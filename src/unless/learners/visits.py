"""The blankets of node after node, in some contexts, by one thread or by several that share a memo."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.counting.slices import PackedTable
from unless.kernels.answers import Rules
from unless.kernels.bits import Words, packed_words
from unless.kernels.grow_shrink import MOST_BUCKETS, Search, begin, grow_shrink, pack_pairs
from unless.kernels.memo import Log
from unless.kernels.slices import CrosstabBuffers
from unless.learners.memo import Memo, Waiting, make_log, question_keys, widened
from unless.runtime.checkpoints import Arrays
from unless.runtime.interrupts import CancelToken
from unless.runtime.parallel import InMemory, OnDisk, Team
from unless.structures.pairs import Packed, packed_width

Contexts = npt.NDArray[np.int32]
# New answers between two returns to Python: some milliseconds, so that Ctrl-C is heard.
_PATIENCE = 2**13
# Nodes are visited with one memo as long as they are expected to have fewer answers, half a cache, in all.
_ANSWERS_AT_ONCE = 2**15
# With more where threads take whole nodes: each time they wait for the last of them.
_ANSWERS_OF_NODES = 2**17
# What an answer may take of a memo, half of it gaps, while it is widened.
_BYTES_OF_ONE = 128
# Answers that a memo is made wide enough for beforehand, 64 MB: more would be much to empty for a guess.
_MOST_EXPECTED = 2**20
# Bytes: two lines of a cache, as they are often fetched in pairs.
_FAR = 128
# The shares of the memory for answers: a memo, and answers for later nodes.
_MEMO, _WAITING = 3 / 4, 1 / 4


@dataclass(frozen=True)
class Strategy:
    """How blankets are learned: shared along the nodes (Algorithm 2), or alone and joined by a rule."""

    rules: Rules
    shared: bool = True
    join_both: bool = False


@dataclass(frozen=True, eq=False)
class Task:
    """Some nodes in some contexts, these in chunks that threads take one after the other."""

    chunks: Sequence[Contexts]
    nodes: range
    max_bytes: int
    n_threads: int = 1
    folder: Path | None = None


def learn_part(
    source: InMemory[PackedTable] | OnDisk[PackedTable], strategy: Strategy, task: Task, token: CancelToken
) -> Arrays:
    """Learn the blankets of some nodes in some contexts."""
    packed = source.load()
    n = len(packed.order)
    with (
        Waiting(n, int(task.max_bytes * _WAITING), task.folder) as waiting,
        Team(task.n_threads, token) as team,
    ):
        visits = _Visits(packed, strategy, task, token, waiting)
        while visits.n_done < len(task.nodes):
            visits.begin()
            team.together(visits.visit)
            token.tick(visits.end())
        return visits.result(team)


class _Visits:
    """What the threads of a part share: graphs so far, the memo of the nodes at hand, answers for later."""

    def __init__(
        self, packed: PackedTable, strategy: Strategy, task: Task, token: CancelToken, waiting: Waiting
    ) -> None:
        self.packed, self.strategy, self.task, self.waiting = packed, strategy, task, waiting
        nodes, required = task.nodes, strategy.rules.required
        self.search = make_search(packed, task.chunks)
        n_contexts = len(self.search.contexts)
        self.graphs = np.repeat(required[nodes.start : nodes.stop : nodes.step, None], n_contexts, axis=1)
        self.memo = Memo(int(task.max_bytes * _MEMO))
        self.hands = [_Hand(packed, strategy, nodes, self.search, token) for _ in range(task.n_threads)]
        self.has_all_nodes = len(nodes) == len(packed.order)
        # Threads that take nodes should not wait for one of them, as long as the memo holds as many.
        takes_nodes = task.n_threads > 1 and not strategy.shared
        self._fewest_at_once = 4 * task.n_threads if takes_nodes else 1
        self._answers_at_once = _ANSWERS_OF_NODES if takes_nodes else _ANSWERS_AT_ONCE
        # How many nodes have been visited, up to which they are visited now, and how many at once.
        self.n_done, self._last, self._n_at_once = 0, 0, 1 if strategy.shared else task.n_threads
        self._n_expected = 0

    def begin(self) -> None:
        """Take up what is known about the next nodes."""
        nodes = self.task.nodes
        self._last = min(self.n_done + self._n_at_once, len(nodes))
        first = nodes[self.n_done - 1] + 1 if self.n_done else 0
        # Those for nodes that other parts visit are taken too, as they lie before.
        taken = {node: self.waiting.take(node) for node in range(first, nodes[self._last - 1] + 1)}
        known = [some for node in nodes[self.n_done : self._last] for some in taken[node]]
        room = len(self.hands) * self.hands[0].room
        # For as many in all as there were before: to widen a memo takes time.
        n_new = min(self._n_expected, _MOST_EXPECTED) - sum(map(len, known))
        self.memo.begin(known, room + max(0, n_new))

    def visit(self, member: int) -> None:
        """Learn the blankets of nodes in one chunk after the other, as long as there are some."""
        log = self.hands[member].visit(self._last, self.graphs, self.memo)
        node = self.task.nodes[self._last - 1]
        self.waiting.add(node, log)

    def end(self) -> int:
        """Return how many nodes have been visited, and choose how many will be at once."""
        n_visited, self.n_done = self._last - self.n_done, self._last
        each = max(1, self.memo.n_known // n_visited)
        wanted = max(self._fewest_at_once, min(self._answers_at_once // each, 4 * n_visited))
        self._n_at_once = max(1, min(wanted, self.memo.max_bytes // (_BYTES_OF_ONE * each)))
        self._n_expected = self.memo.n_known * self._n_at_once // n_visited
        return n_visited

    def result(self, team: Team) -> Arrays:
        """Return graphs (or blankets, where other parts have other nodes) and what they cost."""
        return {
            "n_tests": np.array(sum(hand.n_asked for hand in self.hands)),
            "n_distinct": np.array(sum(hand.n_new for hand in self.hands)),
            **({"edges": self._pack(team)} if self.has_all_nodes else {"graphs": self.graphs}),
        }

    def _pack(self, team: Team) -> Packed:
        """Write the graphs as one bit a pair."""
        n_contexts, n = self.graphs.shape[1], len(self.packed.order)
        edges = np.zeros((n_contexts, packed_width(n)), dtype=np.uint8)
        ends = np.linspace(0, n_contexts, team.n_members + 1).astype(np.int64).tolist()
        columns, shared, both = np.array(self.packed.order), self.strategy.shared, self.strategy.join_both
        team.together(lambda k: pack_pairs(self.graphs, columns, shared, both, edges, ends[k], ends[k + 1]))
        return edges


class _Hand:
    """What one thread needs for itself to visit a node."""

    def __init__(
        self, packed: PackedTable, strategy: Strategy, nodes: range, search: Search, token: CancelToken
    ) -> None:
        self.table, self.strategy, self.nodes, self.token = packed.table, strategy, np.array(nodes), token
        n = len(packed.order)
        self.keys = question_keys(int(self.table.offsets[-1]), n)
        limit = packed.list_limit()
        # Slots 0..n for the search, as many for the shrink phase, two to scribble on.
        self.slices = packed.slices(2 * n + 4, limit)
        self.crosstab = CrosstabBuffers(*map(_apart, packed.crosstab_buffers(limit)))
        self.room = _PATIENCE + 2 * n
        self.log = make_log(self.room)
        self.n_asked = self.n_new = 0
        self.search = search._replace(**_arrays_of_a_thread(packed))
        if not strategy.shared:
            self.search = self.search._replace(**_arrays_of_contexts(len(search.contexts), packed_words(n)))
        begin(self.table, self.slices, self.search)

    def visit(self, last: int, graphs: Words, memo: Memo) -> Log:
        """Write blankets of nodes into their graphs and return the answers that were not known."""
        top = n_logged = 0
        while top >= 0:
            self.token.check()
            self.log = widened(self.log, n_logged, self.room)
            with memo.room(self.room, self.token.check) as guest:
                top, asked, guest.n_new = grow_shrink(
                    self.nodes,
                    last,
                    self.strategy.shared,
                    graphs,
                    self.table,
                    self.strategy.rules,
                    self.keys,
                    guest.places,
                    Log(self.log.answers[n_logged:], self.log.others[n_logged:]),
                    self.slices,
                    self.crosstab,
                    self.search,
                    top,
                    _PATIENCE,
                )
            self.n_asked += asked
            n_logged += guest.n_new
            if top == 0:
                # Perhaps it waits for a thread that waits for a core.
                time.sleep(0)
        self.n_new += n_logged
        return Log(self.log.answers[:n_logged], self.log.others[:n_logged])


def make_search(packed: PackedTable, chunks: Sequence[Contexts]) -> Search:
    """Make room for a search over chunks of contexts."""
    n = len(packed.order)
    contexts = np.concatenate(chunks)
    return Search(
        chunks=np.cumsum([0, *map(len, chunks)]),
        queue=np.zeros(1, dtype=np.int64),
        done=np.zeros(len(chunks), dtype=np.int64),
        contexts=contexts,
        **_arrays_of_contexts(len(contexts), packed_words(n)),
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
    return {name: _apart(array) for name, array in arrays.items()}


def _apart(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy that shares no line of a cache with other arrays: cores would fight for it."""
    margin = _FAR // array.itemsize
    place = np.empty(array.size + 2 * margin, dtype=array.dtype)[margin : margin + array.size]
    place[:] = array.ravel()
    return place.reshape(array.shape)
