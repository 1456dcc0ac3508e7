"""PC in all contexts at once: drives the kernel over rounds, shards of contexts and threads."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unless.counting.slices import PackedTable, bitmap_words, longest_list, pack
from unless.data.dataset import Dataset
from unless.kernels.answers import Rules
from unless.kernels.bits import Words, packed_words, unpack_sets
from unless.kernels.pc import ContextSet, Walk, begin_round, pack_links, run_round
from unless.learners.cohorts import Learned, cut_contexts, n_shards
from unless.learners.memo import Memo, question_keys
from unless.learners.visits import Contexts
from unless.runtime.checkpoints import Arrays, CheckpointStore
from unless.runtime.interrupts import CancelToken
from unless.runtime.parallel import InMemory, OnDisk, Team, run_shards, share_input, shares_memory
from unless.runtime.progress import Bar
from unless.structures.pairs import n_pairs, packed_width

# New answers, and nanoseconds or so of work, between two returns to Python: Ctrl-C must be heard.
_PATIENCE = 2**15
_EFFORT = 2**26
# The time of one word of contexts in units of one listed context: flat around its optimum.
_WORD_COST = 0.12
_ADVICE = "raise max_memory=, or set max_condition=, which asks fewer"


@dataclass(frozen=True)
class Shard:
    """Some of the contexts: the rows they are, what they show, and the links they still have."""

    contexts: Contexts
    codes: npt.NDArray[np.uint16]
    bitmaps: Words
    links: Words

    @classmethod
    def of(cls, packed: PackedTable, contexts: Contexts, linked: npt.NDArray[np.bool_]) -> "Shard":
        """Take some rows of a table; `linked` tells which pairs they link."""
        table = packed.table
        if len(contexts) < table.codes.shape[1]:
            ones = np.ones(len(contexts), dtype=np.int64)
            table = pack(table.codes[:, contexts].T, ones, packed.n_levels)
        codes, bitmaps = table.codes, np.ascontiguousarray(table.bitmaps[:, : packed_words(len(contexts))])
        # One variable's levels are shown by all contexts together, one each.
        everyone = np.bitwise_or.reduce(bitmaps[: table.offsets[1]], axis=0)
        return cls(contexts, codes, bitmaps, np.where(linked[:, None], everyone, np.uint64(0)))


class Rounds(CancelToken):
    """A bar for the parts of the work where they are many, else for one round after another.

    Nobody knows beforehand how many rounds there will be, nor how long the next one takes: what is shown is
    how far all parts are in the first round that is not done.
    """

    def __init__(
        self, bar: Bar | None = None, n_parts: int = 0, n: int = 0, n_rounds: int = 0, by_round: bool = False
    ) -> None:
        self._bar = Bar() if bar is None else bar
        super().__init__(self._bar, n_parts, n_parts)
        self._n_parts, self._n, self._by_round = n_parts, n, by_round
        self._visits = [0] * n_rounds
        self._shown, self._furthest = (0, -1), -1
        if not by_round:
            self._bar.begin("parts", n_parts)

    def visit(self, k: int, n_nodes: int) -> None:
        """Say that a part has visited some more nodes in round k."""
        if self._by_round:
            with self._lock:
                self._visits[k] += n_nodes
                self._furthest = max(self._furthest, k)
                self._show()

    def end(self, n_rounds: int) -> None:
        """Say that a part needed so many rounds."""
        if not self._by_round:
            super().tick()
            return
        with self._lock:
            for k in range(n_rounds, len(self._visits)):
                self._visits[k] += self._n
            self._show()

    def tick(self, n_times: int = 1) -> None:
        """Say that some parts were there."""
        for _ in range(n_times):
            self.end(0)

    def _show(self) -> None:
        """Move the bar of the round that is shown, and go on to the next while it is done."""
        k, shown = self._shown
        while k <= self._furthest:
            if shown < 0:
                self._bar.begin(f"round {k + 1}", self._n)
                shown = 0
            steps = self._visits[k] // self._n_parts
            for _ in range(steps - shown):
                self._bar()
            if steps < self._n:
                self._shown = (k, steps)
                return
            k, shown = k + 1, -1
        self._shown = (k, shown)

    def __reduce__(self) -> tuple[type["Rounds"], tuple[()]]:
        return Rounds, ()


def learn_by_pc(
    data: Dataset,
    order: Sequence[int],
    rules: Rules,
    max_condition: int,
    max_bytes: int,
    n_workers: int = 1,
    bar: Bar | None = None,
    store: CheckpointStore | None = None,
) -> Learned:
    """Learn the graph of every row with this much memory for answers."""
    n, m = data.n_variables, data.n_distinct
    source = share_input(data, store, PackedTable.of, tuple(order))
    packed = source.load()
    is_kept = store is not None
    chunks = cut_contexts(packed, n_shards(n, m) if is_kept else n_workers, in_turn=is_kept)
    # Threads without a folder to fill work on one part together, and ask nothing twice.
    work = [chunks] if not is_kept and shares_memory() else [[contexts] for contexts in chunks]
    each = max_bytes // (min(n_workers, len(work)) if shares_memory() else 1)
    n_rounds = min(max_condition, n - 2) + 1
    by_round = len(chunks) <= n_workers and shares_memory()
    token = Rounds(bar, len(chunks), n, n_rounds, by_round)
    tasks = [(source, rules, n_rounds, part, each) for part in work]
    parts = run_shards(_run_rounds, tasks, n_jobs=n_workers, store=store, token=token)
    edges = np.zeros((m, packed_width(n)), dtype=np.uint8)
    for part, contexts in zip(parts, work, strict=True):
        edges[packed.row_order[np.concatenate(contexts)]] = part["edges"]
    return Learned.of(edges, parts, is_kept=is_kept)


def bytes_for_pc(data: Dataset, n_workers: int) -> int:
    """Estimate the memory that learning needs besides the memo of answers."""
    n, m, words = data.n_variables, data.n_distinct, bitmap_words(data.counts)
    levels, most = int(data.domain.n_levels.sum()), int(data.domain.n_levels.max())
    # The table and the shards cut from it; links by pair, then one bit a pair, sorted and compared.
    tables = 2 * (levels * words * 8 + 4 * n * m)
    links = n_pairs(n) * words * 8 + m * packed_words(n) * 8 + 6 * m * packed_width(n)
    # Slices and contexts by depth, each as a bitmap and as a list, and what crosses two variables on a slice.
    n_levels = data.domain.n_levels
    limit, longest = longest_list(n_levels, words, m), _longest_walk(n_levels, words, m)
    scratch = (n + 1) * (16 * words + 4 * limit + 4 * longest + 8 * (most + packed_words(n)) + 64)
    scratch += 8 * most * words + 10 * limit + 8 * most * (most + 3)
    return tables + links + n_workers * scratch


def _run_rounds(
    source: InMemory[PackedTable] | OnDisk[PackedTable],
    rules: Rules,
    n_rounds: int,
    chunks: Sequence[Contexts],
    max_bytes: int,
    token: Rounds,
) -> Arrays:
    """Ask all questions of some contexts, a thread for each chunk of them.

    No part needs another, and no round the answers of another.
    """
    packed = source.load()
    n = len(packed.order)
    forbidden = unpack_sets(rules.forbidden, n)[np.triu_indices(n, 1)]
    shards = [Shard.of(packed, contexts, ~forbidden) for contexts in chunks]
    asked, n_tests, n_distinct, n_made = [0] * len(shards), 0, 0, 0
    with Team(len(shards), token) as team:
        for k in range(n_rounds):
            memo = Memo(max_bytes, _ADVICE)

            def run(member: int, k: int = k, memo: Memo = memo) -> None:
                asked[member] = _run_round(k, packed, shards[member], rules, memo, token)

            team.together(run)
            n_made += 1
            if not sum(asked):
                break
            n_tests += sum(asked)
            # Questions of round k have k conditions: those of two rounds are different.
            n_distinct += memo.n_known
    edges = np.zeros((sum(map(len, chunks)), packed_width(n)), dtype=np.uint8)
    row = 0
    for shard in shards:
        token.end(n_made)
        pack_links(shard.links, np.array(packed.order), np.arange(row, row + len(shard.contexts)), edges)
        row += len(shard.contexts)
    return {"edges": edges, "n_tests": np.array(n_tests), "n_distinct": np.array(n_distinct)}


def _run_round(k: int, packed: PackedTable, shard: Shard, rules: Rules, memo: Memo, token: Rounds) -> int:
    """Ask every question of one round in the contexts of one shard, and return their number."""
    table = packed.table
    n = len(packed.order)
    keys = question_keys(int(table.offsets[-1]), n)
    limit = packed.list_limit()
    slices, crosstab = packed.slices(k + 1, limit), packed.crosstab_buffers(limit)
    context_set, walk = make_context_set(packed, shard), make_walk(packed, shard, k)
    begin_round(table, slices, walk)
    n_asked, node = 0, -1
    while node < n:
        token.check()
        before = max(node, 0)
        with memo.room(_PATIENCE, token.check) as guest:
            node, asked, guest.n_new = run_round(
                k, context_set, table, rules, keys, guest.places, slices, crosstab, walk, _PATIENCE, _EFFORT
            )
        n_asked += asked
        token.visit(k, node - before)
    return n_asked


def make_context_set(packed: PackedTable, shard: Shard) -> ContextSet:
    """Make room for the neighbours that each context links to a node."""
    n, m = shard.codes.shape
    return ContextSet(
        codes=shard.codes,
        offsets=packed.table.offsets,
        bitmaps=shard.bitmaps,
        links=shard.links,
        near=np.empty((m, packed_words(n)), dtype=np.uint64),
        able=np.empty(shard.links.shape[1], dtype=np.uint64),
    )


def _longest_walk(n_levels: npt.NDArray[np.int64], n_words: int, n_contexts: int) -> int:
    """Return how long lists of contexts get beside bitmaps of so many words."""
    return min(int(_WORD_COST * n_words * n_levels.mean()), n_contexts)


def make_walk(packed: PackedTable, shard: Shard, k: int) -> Walk:
    """Make room for a walk over sets of k variables."""
    n, words = len(packed.order), shard.bitmaps.shape[1]
    longest = _longest_walk(packed.n_levels, words, len(shard.contexts))
    return Walk(
        wide=np.empty((k + 1, words), dtype=np.uint64),
        listed=np.empty((k + 1, longest + 1), dtype=np.int32),
        bounds=np.empty((k + 1, 2), dtype=np.int64),
        buckets=np.empty((k + 1, int(packed.n_levels.max()) + 1), dtype=np.int64),
        todo=np.empty((k + 1, packed_words(n)), dtype=np.uint64),
        level=np.empty(k + 1, dtype=np.int64),
        path=np.empty((k + 1, 2), dtype=np.int64),
        names=np.empty((k + 1, 2), dtype=np.uint64),
        position=np.empty(4, dtype=np.int64),
    )
