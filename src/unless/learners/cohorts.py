"""Canonical graphs of all contexts at once: drives the cohort kernels over nodes, shards and threads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from threading import Lock

import numpy as np
import numpy.typing as npt

from unless.counting.packed import PackedTable
from unless.data.dataset import Dataset
from unless.data.memory import show_memory
from unless.errors import TooLarge
from unless.kernels.answers import Rules
from unless.kernels.bitsets import Words, packed_words
from unless.kernels.blankets import pack_pairs, share_blankets
from unless.kernels.cohorts import Search, begin, grow_shrink
from unless.kernels.memo import Keys, merge
from unless.structures.pairs import Packed, packed_width

Contexts = npt.NDArray[np.int32]
Step = Callable[[], object]
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
    """Answers by question, widened as they come, within a number of bytes."""

    max_bytes: int
    advice: str = "raise max_memory=, set max_blanket=, or learn blankets='independent', which asks fewer"
    places: Words = field(default_factory=lambda: np.zeros((2**12, 2), dtype=np.uint64))
    n_known: int = 0

    def make_room(self, n_new: int) -> None:
        """Keep the places at most half full after `n_new` more answers."""
        wanted = 1 << (2 * (self.n_known + n_new) - 1).bit_length()
        if wanted <= len(self.places):
            return
        # While it is widened, the old places stand beside the new ones.
        need = (wanted + len(self.places)) * self.places.itemsize * 2
        if need > self.max_bytes:
            raise TooLarge(
                f"After {self.n_known:,} distinct questions the memo would need {show_memory(need)}, "
                f"more than the {show_memory(self.max_bytes)} left; {self.advice}."
            )
        # Twice as wide as needed, where that is allowed: each widening places every answer anew.
        roomy = 2 * wanted if 2 * need <= self.max_bytes else wanted
        wider = np.zeros((roomy, 2), dtype=np.uint64)
        merge(wider, self.places)
        self.places = wider

    def add(self, other: "Memo") -> None:
        """Take over the answers of another memo."""
        self.make_room(other.n_known)
        self.n_known += merge(self.places, other.places)


def learn_by_cohorts(
    packed: PackedTable,
    strategy: Strategy,
    max_bytes: int,
    n_workers: int = 1,
    step: Step = lambda: None,
) -> Learned:
    """Learn the canonical graph of every row with this much memory for answers.

    `step` is called as many times as there are variables.
    """
    from joblib import Parallel, delayed

    n, m = packed.table.codes.shape
    work = _cut(packed, strategy, n_workers)
    tick = ticker(step, len(work), n, sum(len(nodes) for _, nodes in work))
    # Threads share the table and the kernels release the interpreter; the backend stays the user's choice.
    parts = Parallel(n_jobs=len(work), prefer="threads")(
        delayed(_learn_part)(packed, strategy, *task, max_bytes // len(work), tick) for task in work
    )
    n_tests = sum(part.n_tests for part in parts)
    whole = parts[0] if len(parts) == 1 else _join(parts, work, (n, m), max_bytes)
    return Learned(_edges(packed, whole.graphs, strategy.join_both), n_tests, whole.memo.n_known)


def ticker(step: Step, n_parts: int, n_steps: int, n_ticks: int) -> Step | None:
    """Return what a part calls after each node, so that all parts together make `n_steps` steps."""
    from joblib.parallel import get_active_backend

    if n_parts > 1 and not getattr(get_active_backend(prefer="threads")[0], "supports_sharedmem", False):
        # Other processes could not move a bar here.
        return None
    ticks, lock = count(1), Lock()

    def tick() -> None:
        with lock:
            done = next(ticks)
            if done * n_steps // n_ticks > (done - 1) * n_steps // n_ticks:
                step()

    return tick


@dataclass(frozen=True)
class _Part:
    graphs: Words
    memo: Memo
    n_tests: int


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


def _cut(packed: PackedTable, strategy: Strategy, n_parts: int) -> list[tuple[Contexts, range]]:
    """Cut the work by contexts where blankets are shared, else by nodes: no part needs another."""
    n, m = packed.table.codes.shape
    if not strategy.shared or n_parts == 1:
        everyone = np.arange(m, dtype=np.int32)
        return [(everyone, range(place, n, n_parts)) for place in range(n_parts)]
    # Contexts that agree in the first variables ask alike: they stay together.
    alike = np.lexsort(packed.table.codes[::-1]).astype(np.int32)
    return [(np.sort(part), range(n)) for part in np.array_split(alike, n_parts)]


def _join(
    parts: Sequence[_Part], work: Sequence[tuple[Contexts, range]], shape: tuple[int, int], max_bytes: int
) -> _Part:
    """Put the graphs of all parts together, and count the questions that several of them asked once."""
    graphs = np.zeros((*shape, packed_words(shape[0])), dtype=np.uint64)
    memo = parts[0].memo
    memo.max_bytes = max_bytes
    for part, (contexts, nodes) in zip(parts, work, strict=True):
        graphs[np.ix_(np.array(nodes), contexts)] = part.graphs
        if part.memo is not memo:
            memo.add(part.memo)
    return _Part(graphs, memo, 0)


def _learn_part(
    packed: PackedTable,
    strategy: Strategy,
    contexts: Contexts,
    nodes: Sequence[int],
    max_bytes: int,
    tick: Step | None,
) -> _Part:
    """Learn the blankets of some nodes in some contexts."""
    table, rules = packed.table, strategy.rules
    n = len(table.codes)
    keys = question_keys(int(table.offsets[-1]), n)
    limit = packed.list_limit()
    # Slots 0..n for the search, as many for the shrink phase, one to scribble on.
    slices, crossing = packed.slices(2 * n + 3, limit), packed.crossing(limit)
    search = make_search(packed, contexts)
    memo, n_tests = Memo(max_bytes), 0
    graphs = np.repeat(rules.required[nodes, None], len(contexts), axis=1)
    final = np.zeros(graphs.shape[1:], dtype=np.uint64)
    for place, node in enumerate(nodes):
        initial = graphs[place]
        top = begin(table.codes.shape[1], slices, search)
        while top:
            memo.make_room(_PATIENCE + 2 * n)
            top, asked, new = grow_shrink(
                node,
                initial,
                final,
                table,
                rules,
                keys,
                memo.places,
                slices,
                crossing,
                search,
                top,
                _PATIENCE,
            )
            memo.n_known += new
            n_tests += asked
        if strategy.shared:
            share_blankets(node, final, graphs)
        else:
            initial[:] = final
        if tick is not None:
            tick()
    return _Part(graphs, memo, n_tests)


def _edges(packed: PackedTable, graphs: Words, join_both: bool) -> Packed:
    """Write the blankets as one bit a pair of columns, the rows back in the dataset's order."""
    by_count = np.zeros((graphs.shape[1], packed_width(len(graphs))), dtype=np.uint8)
    pack_pairs(graphs, np.array(packed.order), join_both, by_count)
    edges = np.empty_like(by_count)
    edges[packed.row_order] = by_count
    return edges


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


def question_keys(n_conditions: int, n_variables: int) -> Keys:
    """Return the random words that questions are named by."""
    rng = np.random.default_rng(_KEY_SEED)
    words = rng.integers(0, 2**64, size=(n_conditions + n_variables, 2), dtype=np.uint64)
    return Keys(words[:n_conditions], words[n_conditions:])
