"""PC in all contexts at once: drives the kernel over rounds, shards of contexts and threads."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from unless.counting.packed import PackedTable, pack
from unless.data.dataset import Dataset
from unless.kernels.answers import Rules
from unless.kernels.bitsets import Words, packed_words, unpack_sets
from unless.kernels.pc import begin_round, pack_links, run_round
from unless.kernels.pc_walk import Crowd, Walk
from unless.learners.cohorts import Contexts, Learned, Memo, Step, question_keys, ticker
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
        if len(contexts) == table.codes.shape[1]:
            codes, bitmaps = table.codes, table.bitmaps
        else:
            shown = pack(table.codes[:, contexts].T, np.ones(len(contexts), dtype=np.int64), packed.n_levels)
            codes, bitmaps = shown.codes, shown.bitmaps
        # One variable's levels are shown by all contexts together, one each.
        everyone = np.bitwise_or.reduce(bitmaps[: table.offsets[1]], axis=0)
        return cls(contexts, codes, bitmaps, np.where(linked[:, None], everyone, np.uint64(0)))


def learn_by_pc(
    packed: PackedTable,
    rules: Rules,
    max_condition: int,
    max_bytes: int,
    n_workers: int = 1,
    step: Step = lambda: None,
) -> Learned:
    """Learn the graph of every row with this much memory for answers.

    `step` is called as many times as there are variables, in every round.
    """
    from joblib import Parallel, delayed

    n, n_tests, n_distinct = len(packed.order), 0, 0
    shards = _cut(packed, rules, n_workers)
    with Parallel(n_jobs=len(shards), prefer="threads") as parallel:
        for k in range(min(max_condition, n - 2) + 1):
            tick = ticker(step, len(shards), n, n * len(shards))
            # Questions of round k have k conditions: no round needs the answers of another.
            parts = parallel(
                delayed(_run_round)(k, packed, shard, rules, max_bytes // len(shards), tick)
                for shard in shards
            )
            shards = [shard for shard, _, _ in parts]
            asked = sum(n_asked for _, n_asked, _ in parts)
            if not asked:
                break
            n_tests += asked
            n_distinct += _count_distinct([memo for _, _, memo in parts], max_bytes)
    edges = np.zeros((len(packed.row_order), packed_width(n)), dtype=np.uint8)
    for shard in shards:
        pack_links(shard.links, np.array(packed.order), packed.row_order[shard.contexts], edges)
    return Learned(edges, n_tests, n_distinct)


def bytes_for_pc(data: Dataset, n_workers: int) -> int:
    """Estimate the memory that learning needs besides the memo of answers."""
    n, m, words = data.n_variables, data.n_distinct, (data.n_distinct + 63) // 64
    levels, most = int(data.domain.n_levels.sum()), int(data.domain.n_levels.max())
    # The table and the shards cut from it; links by pair, then one bit a pair, sorted and compared.
    tables = 2 * (levels * words * 8 + 4 * n * m)
    links = n_pairs(n) * words * 8 + m * packed_words(n) * 8 + 6 * m * packed_width(n)
    # Slices and contexts by depth, each as a bitmap and as a list a few times as long.
    scratch = 2 * (n + 1) * words * 32 + most * words * 16 + most * most * 8
    return tables + links + n_workers * scratch


def _cut(packed: PackedTable, rules: Rules, n_parts: int) -> list[Shard]:
    """Cut the contexts into parts; no part needs another."""
    n, m = packed.table.codes.shape
    forbidden = unpack_sets(rules.forbidden, n)[np.triu_indices(n, 1)]
    # Contexts that agree in the first variables ask alike: they stay together.
    alike = np.lexsort(packed.table.codes[::-1]) if n_parts > 1 else np.arange(m)
    return [
        Shard.of(packed, np.sort(part).astype(np.int32), ~forbidden)
        for part in np.array_split(alike, n_parts)
    ]


def _count_distinct(memos: list[Memo], max_bytes: int) -> int:
    """Count the questions of one round, those that several shards asked once."""
    memo = memos[0]
    memo.max_bytes = max_bytes
    for other in memos[1:]:
        memo.add(other)
    return memo.n_known


def _run_round(
    k: int, packed: PackedTable, shard: Shard, rules: Rules, max_bytes: int, tick: Step | None
) -> tuple[Shard, int, Memo]:
    """Ask every question of one round in the contexts of one shard."""
    # In another process the links are a copy that cannot be written.
    shard = replace(shard, links=np.require(shard.links, requirements="W"))
    table = packed.table
    n, m = table.codes.shape
    keys = question_keys(int(table.offsets[-1]), n)
    limit = packed.list_limit()
    slices, crossing = packed.slices(k + 1, limit), packed.crossing(limit)
    crowd, walk = make_crowd(packed, shard), make_walk(packed, shard, k)
    begin_round(m, slices, walk)
    memo, n_asked, node = Memo(max_bytes, _ADVICE), 0, -1
    while node < n:
        memo.make_room(_PATIENCE)
        before = max(node, 0)
        node, asked, new = run_round(
            k, crowd, table, rules, keys, memo.places, slices, crossing, walk, _PATIENCE, _EFFORT
        )
        memo.n_known += new
        n_asked += asked
        if tick is not None:
            for _ in range(before, node):
                tick()
    return shard, n_asked, memo


def make_crowd(packed: PackedTable, shard: Shard) -> Crowd:
    """Make room for the neighbours that each context links to a node."""
    n, m = shard.codes.shape
    return Crowd(
        codes=shard.codes,
        offsets=packed.table.offsets,
        bitmaps=shard.bitmaps,
        links=shard.links,
        near=np.empty((m, packed_words(n)), dtype=np.uint64),
        able=np.empty(shard.links.shape[1], dtype=np.uint64),
    )


def make_walk(packed: PackedTable, shard: Shard, k: int) -> Walk:
    """Make room for a walk over sets of k variables."""
    n, words = len(packed.order), shard.bitmaps.shape[1]
    longest = min(int(_WORD_COST * words * packed.n_levels.mean()), len(shard.contexts))
    return Walk(
        wide=np.empty((k + 1, words), dtype=np.uint64),
        listed=np.empty((k + 1, longest + 1), dtype=np.int32),
        bounds=np.empty((k + 1, 2), dtype=np.int64),
        buckets=np.empty((k + 1, int(packed.n_levels.max()) + 1), dtype=np.int64),
        todo=np.empty((k + 1, packed_words(n)), dtype=np.uint64),
        level=np.empty(k + 1, dtype=np.int64),
        path=np.empty((k + 1, 2), dtype=np.int64),
        names=np.empty((k + 1, 2), dtype=np.uint64),
        place=np.empty(4, dtype=np.int64),
    )
