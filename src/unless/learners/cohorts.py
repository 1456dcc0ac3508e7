"""Canonical graphs of all contexts at once: drives the cohort kernels over nodes, shards and threads."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unless.counting.packed import PackedTable
from unless.data.dataset import Dataset
from unless.kernels.answers import Rules
from unless.kernels.bitsets import Words, packed_words
from unless.kernels.blankets import pack_pairs, share_blankets
from unless.kernels.cohorts import Search, begin, grow_shrink
from unless.kernels.memo import Log
from unless.learners.memo import Memo, Tally, Waiting, count_parts, make_log, no_answers, question_keys
from unless.learners.shards import Filed, Held, Pulse, Step, run_shards, shares_memory, within_reach
from unless.learners.workplace import Arrays, Workplace
from unless.structures.pairs import Packed, packed_width

Contexts = npt.NDArray[np.int32]
# New answers between two returns to Python: some tens of milliseconds, so that Ctrl-C is heard.
_PATIENCE = 2**15
# Pairs of variables times contexts in a shard that is kept: about a second.
SHARD_SIZE = 2**24
# The shares of the memory for answers that the memo, answers for later nodes and uncounted ones may take.
_MEMO, _WAITING, _UNCOUNTED = 1 / 2, 1 / 4, 1 / 4


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


@dataclass(frozen=True, eq=False)
class Task:
    """Some nodes in some contexts; questions are counted by a tally that threads share, or kept."""

    contexts: Contexts
    nodes: range
    max_bytes: int
    folder: Path | None = None
    tally: Tally | None = None
    keeps_questions: bool = False


def learn_by_cohorts(
    data: Dataset,
    order: Sequence[int],
    strategy: Strategy,
    max_bytes: int,
    n_workers: int = 1,
    step: Step = lambda: None,
    place: Workplace | None = None,
) -> Learned:
    """Learn the canonical graph of every row with this much memory for answers.

    `step` is called as many times as there are variables.
    """
    n, m = data.n_variables, data.n_distinct
    reach = within_reach(data, place, PackedTable.of, tuple(order))
    packed = reach.load()
    work = _cut(packed, strategy, n_workers if place is None else n_shards(n, m))
    in_threads = shares_memory()
    each = max_bytes // (min(n_workers, len(work)) if in_threads else 1)
    n_visits = sum(len(nodes) for _, nodes in work)
    pulse = Pulse(step, n, n_visits)
    with Tally(n, len(work), int(each * _UNCOUNTED)) as tally:
        counts = tally if in_threads and place is None and len(work) > 1 else None
        folder = None if place is None else place.folder
        tasks = [
            (reach, strategy, Task(contexts, nodes, each, folder, counts, len(work) > 1))
            for contexts, nodes in work
        ]
        ticks = n_visits // len(work)
        parts = run_shards(_learn_part, tasks, n_jobs=n_workers, place=place, pulse=pulse, ticks=ticks)
        edges, n_tests = _join(packed, strategy, parts, work)
        n_distinct = tally.n_distinct if counts is not None else count_parts(parts, n_workers, each)
    return Learned(edges, n_tests, n_distinct)


def bytes_to_learn(data: Dataset, n_workers: int) -> int:
    """Estimate the memory that learning needs besides the memo of answers."""
    n, m, words = data.n_variables, data.n_distinct, (data.n_distinct + 63) // 64
    levels, most = int(data.domain.n_levels.sum()), int(data.domain.n_levels.max())
    # Graphs while they are learned and joined, then one bit a pair, sorted and compared.
    graphs = n * m * packed_words(n) * 8 * min(n_workers, 2) + 6 * m * packed_width(n)
    table = levels * words * 8 + 4 * n * m
    # Lists of rows are a few times longer than there are words.
    scratch = (2 * n + 3) * words * 32 + most * words * 16 + most * most * 8
    return graphs + table + n_workers * scratch


def n_shards(n: int, m: int) -> int:
    """Return into how many shards kept work is cut: it follows from the table, whoever works on it."""
    return -(-n * n * m // SHARD_SIZE)


def cut_contexts(packed: PackedTable, n_parts: int) -> list[Contexts]:
    """Cut the contexts into parts; those that agree in the first variables ask alike, and stay together."""
    m = packed.table.codes.shape[1]
    alike = np.lexsort(packed.table.codes[::-1]) if n_parts > 1 else np.arange(m)
    return [np.sort(part).astype(np.int32) for part in np.array_split(alike, min(n_parts, m))]


def _cut(packed: PackedTable, strategy: Strategy, n_parts: int) -> list[tuple[Contexts, range]]:
    """Cut the work by contexts where blankets are shared, else by nodes: no part needs another."""
    n, m = packed.table.codes.shape
    if strategy.shared:
        return [(contexts, range(n)) for contexts in cut_contexts(packed, n_parts)]
    everyone, n_parts = np.arange(m, dtype=np.int32), min(n_parts, n)
    return [(everyone, range(place, n, n_parts)) for place in range(n_parts)]


def _join(
    packed: PackedTable,
    strategy: Strategy,
    parts: Sequence[Arrays],
    work: Sequence[tuple[Contexts, range]],
) -> tuple[Packed, int]:
    """Put the graphs of all parts together, the rows back in the dataset's order."""
    n, m = packed.table.codes.shape
    by_count = np.zeros((m, packed_width(n)), dtype=np.uint8)
    graphs = None if strategy.shared else np.zeros((n, m, packed_words(n)), dtype=np.uint64)
    n_tests = 0
    for part, (contexts, nodes) in zip(parts, work, strict=True):
        n_tests += int(part["n_tests"])
        if graphs is None:
            by_count[contexts] = part["edges"]
        else:
            graphs[nodes.start : nodes.stop : nodes.step] = part["graphs"]
    if graphs is not None:
        pack_pairs(graphs, np.array(packed.order), strategy.join_both, by_count)
    edges = np.empty_like(by_count)
    edges[packed.row_order] = by_count
    return edges, n_tests


def _learn_part(
    reach: Held[PackedTable] | Filed[PackedTable], strategy: Strategy, task: Task, pulse: Pulse
) -> Arrays:
    """Learn the blankets of some nodes in some contexts."""
    packed = reach.load()
    n, contexts = len(packed.order), task.contexts
    visitor = _Visitor(packed, strategy, task, pulse)
    graphs = np.repeat(strategy.rules.required[task.nodes, None], len(contexts), axis=1)
    closed = _Closed(n, task)
    n_distinct = 0
    with Waiting(n, int(task.max_bytes * _WAITING), task.folder) as waiting:
        for node in range(n):
            answers = waiting.take(node)
            found = no_answers()
            if node in task.nodes:
                initial = graphs[task.nodes.index(node)]
                logs = visitor.visit(node, initial, answers)
                n_distinct += sum(len(log.others) for log in logs)
                found = waiting.add(node, logs)
                if strategy.shared:
                    share_blankets(node, visitor.final, graphs)
                else:
                    initial[:] = visitor.final
                pulse.tick()
            closed.add(node, answers, found)
    told = {"n_tests": np.array(visitor.n_tests), "n_distinct": np.array(n_distinct), **closed.arrays()}
    if not strategy.shared:
        return {**told, "graphs": graphs}
    edges = np.zeros((len(contexts), packed_width(n)), dtype=np.uint8)
    pack_pairs(graphs, np.array(packed.order), False, edges)
    return {**told, "edges": edges}


class _Closed:
    """The questions about pairs whose nodes have both been visited: counted, or kept to be counted."""

    def __init__(self, n: int, task: Task) -> None:
        self.task = task
        self.kept: list[Words] = []
        self.begins = np.zeros(n + 1, dtype=np.int64)

    def add(self, node: int, early: Words, late: Words) -> None:
        if not self.task.keeps_questions:
            return
        if self.task.tally is not None:
            self.task.tally.close(node, np.concatenate([early, late]))
            return
        self.kept += [early, late]
        self.begins[node + 1] = self.begins[node] + len(early) + len(late)

    def arrays(self) -> Arrays:
        if not self.kept:
            return {}
        return {"answers": np.concatenate(self.kept), "begins": self.begins}


class _Visitor:
    """Learns the blankets of one node after another."""

    def __init__(self, packed: PackedTable, strategy: Strategy, task: Task, pulse: Pulse) -> None:
        self.table, self.rules, self.pulse = packed.table, strategy.rules, pulse
        self.n = len(packed.order)
        self.keys = question_keys(int(self.table.offsets[-1]), self.n)
        limit = packed.list_limit()
        # Slots 0..n for the search, as many for the shrink phase, one to scribble on.
        self.slices, self.crossing = packed.slices(2 * self.n + 3, limit), packed.crossing(limit)
        self.search = make_search(packed, task.contexts)
        self.memo, self.log = Memo(int(task.max_bytes * _MEMO)), make_log(_PATIENCE + 2 * self.n)
        self.final = np.zeros((len(task.contexts), packed_words(self.n)), dtype=np.uint64)
        self.n_tests = 0

    def visit(self, node: int, initial: Words, known: Words) -> list[Log]:
        """Write the blankets of a node into `final` and return the answers that were not known."""
        logs = []
        self.memo.begin(known)
        top = begin(self.table.codes.shape[1], self.slices, self.search)
        while top:
            self.pulse.check()
            self.memo.make_room(_PATIENCE + 2 * self.n)
            top, asked, new = grow_shrink(
                node,
                initial,
                self.final,
                self.table,
                self.rules,
                self.keys,
                self.memo.places,
                self.log,
                self.slices,
                self.crossing,
                self.search,
                top,
                _PATIENCE,
            )
            self.memo.n_known += new
            self.n_tests += asked
            logs.append(Log(self.log.answers[:new].copy(), self.log.others[:new].copy()))
        return logs


def make_search(packed: PackedTable, contexts: Contexts) -> Search:
    """Make room for a search over some contexts."""
    n, n_levels = len(packed.order), packed.n_levels
    words = packed_words(n)
    return Search(
        stack=np.empty((int(n_levels.sum()) + 2 * n + 2, 7), dtype=np.int64),
        contexts=contexts,
        members=np.empty(len(contexts), dtype=np.int32),
        spare=np.empty(len(contexts), dtype=np.int32),
        groups=np.empty(len(contexts), dtype=np.int32),
        buckets=np.empty(int(n_levels.max()) + 2, dtype=np.int64),
        path=np.zeros((n + 1, 2), dtype=np.int64),
        names=np.zeros((n + 1, 2), dtype=np.uint64),
        held=np.zeros((n + 1, words), dtype=np.uint64),
        kept=np.empty((n + 1, 2), dtype=np.int64),
        slots=np.empty(n + 1, dtype=np.int64),
        blanket=np.empty((1, words), dtype=np.uint64),
    )
