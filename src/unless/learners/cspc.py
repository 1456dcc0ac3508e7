"""CSPC: canonical graphs by PC in every context (Edera, Schlueter and Bromberg, ICTAI 2013)."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import numpy as np

from unless.counting.slices import PackedTable, bitmap_words, longest_list
from unless.counting.slices import pack as pack_table
from unless.data.dataset import Dataset
from unless.kernels.answers import Rules
from unless.kernels.bits import packed_words, unpack_sets
from unless.kernels.pc import ContextSet, Walk, begin_round, pack_links, run_round
from unless.learners.base import Learner, Run
from unless.learners.grow_shrink.algorithm import Links, Oracle, blanket_of
from unless.learners.grow_shrink.cohorts import (
    ContextGraphs,
    Contexts,
    Strategy,
    cut_contexts,
    n_shards,
)
from unless.learners.memo import Memo, question_keys
from unless.learners.settings import EdgeNames, at_least, between, kernel_rules, resolve_order, setting
from unless.runtime.checkpoints import Arrays
from unless.runtime.interrupts import CancelToken
from unless.runtime.parallel import InMemory, OnDisk, Team, shares_memory
from unless.structures.canonical import CanonicalModel
from unless.structures.structure import n_pairs, packed_width, pair_numbers
from unless.typing import Integers

# New answers, and nanoseconds or so of work, between two returns to Python: Ctrl-C must be noticed.
_MAX_NEW = 2**15
_EFFORT = 2**26
# The time of one word of contexts in units of one listed context: flat around its optimum.
_WORD_COST = 0.12
_ADVICE = "raise max_memory=, or set max_condition=, which asks fewer"


class CSPC(Learner):
    """Learn one graph for every distinct row of a table by taking links away, all of them at once.

    In every context PC starts with all links and takes a - b away as soon as a and b are independent where
    k of a's other neighbours have the context's values: k = 0 for all pairs, then k = 1, and so on. Of a
    large table it asks more questions than CSGS, on larger slices, and finds fewer links that are not there.

    The neighbours of every variable are learned alone and joined by `rule`. With `adjacency="shared"` a link
    taken away at one variable is gone when its other end is visited: fewer links are left. Both depend on the
    order: neighbours go one after the other, and those that are left are conditioned on.

    Parameters
    ----------
    alpha
        Two variables are dependent where the test's p is below this.
    test
        "pearson", "likelihood_ratio" or "bayesian".
    order
        "association" (most strongly associated variables first, whatever the order of the columns),
        "columns", or a list of all names. One order serves a, b and the sets of neighbours.
    adjacency
        "independent" or "shared", as above.
    rule
        How independent neighbours are joined: "or" needs one end of an edge, "and" both.
    max_condition
        The largest k; None goes on while some variable has enough neighbours.
    undecided
        How a test without enough data is read: "independent" (the link goes) or "keep" (it stays).
    effect
        A test that finds nothing is undecided when its power against Cohen's w = effect is below 80 %.
    required_edges, forbidden_edges
        Pairs of names that are in every graph, or in none; neither are asked about.

    Examples
    --------
    >>> import unless
    >>> est = unless.CSPC().fit(unless.datasets.load_ucb_admissions())
    >>> est.structure_.given({"Dept": "C"}).has_edge("Admit", "Gender")
    False
    """

    kept_structure = CanonicalModel
    _work = "{m:,} graphs over {n:,} variables"

    alpha: float = setting(default=0.05, check=between(0, 1), kw_only=False)
    test: Literal["pearson", "likelihood_ratio", "bayesian"] = setting(default="pearson")
    order: str | Sequence[str] = setting(default="association")
    adjacency: Literal["independent", "shared"] = setting(default="independent")
    rule: Literal["or", "and"] = setting(default="or")
    max_condition: int | None = setting(default=None, check=at_least(0))
    undecided: Literal["independent", "keep"] = setting(default="independent")
    effect: float = setting(default=0.3, check=between(0, math.inf))
    required_edges: EdgeNames = setting(default=None)
    forbidden_edges: EdgeNames = setting(default=None)

    def _bytes_needed(self, data: Dataset, run: Run) -> int:
        return bytes_for_pc(
            data, min(run.n_sharing_memory, data.n_distinct), shared=self.adjacency == "shared"
        )

    def _learn(self, data: Dataset, run: Run, *_: Dataset) -> None:
        order = resolve_order(data, self.order)
        rules = kernel_rules(data, order, self.get_params())
        strategy = Strategy(rules, shared=self.adjacency == "shared", join_both=self.rule == "and")
        most = data.n_variables if self.max_condition is None else int(self.max_condition)
        learned = learn_by_pc(data, order, strategy, most, run)
        self.structure_ = CanonicalModel.from_edges(data.domain, data.rows, data.counts, learned.edges)
        self.n_tests_ = learned.n_tests
        self.n_distinct_tests_ = learned.n_distinct_tests
        self.max_distinct_tests_ = learned.max_distinct_tests


def pc(
    graph: Links, order: Sequence[int], oracle: Oracle, required: Links, max_condition: int | None = None
) -> Links:
    """Run PC in one context: the reference. From the links of `graph`, those found independent go one by one.

    Round k asks about every link a - b given each set of k other neighbours of a, as a's neighbours are when
    the link's turn comes.
    """
    k = 0
    while k <= (len(graph) if max_condition is None else max_condition) and (graph.sum(axis=1) > k).any():
        for a in order:
            for b in order:
                if graph[a, b] and not required[a, b]:
                    others = blanket_of(a, graph) - {b}
                    for given in combinations([c for c in order if c in others], k):
                        if oracle.says_independent(a, b, given):
                            graph[a, b] = graph[b, a] = False
                            break
        k += 1
    return graph


def pc_apart(
    graph: Links,
    order: Sequence[int],
    oracle: Oracle,
    required: Links,
    max_condition: int | None = None,
    *,
    join_both: bool = False,
) -> Links:
    """Learn the neighbours of every variable alone, from those in `graph`: the reference.

    What one variable removes no other sees; a link of the result needs one of its ends, or both.
    """
    alone = np.zeros_like(graph)
    for a in order:
        adjacent = [b for b in order if graph[a, b]]
        k = 0
        while len(adjacent) > k and k <= (len(graph) if max_condition is None else max_condition):
            for b in [b for b in adjacent if not required[a, b]]:
                others = [c for c in adjacent if c != b]
                if any(oracle.says_independent(a, b, given) for given in combinations(others, k)):
                    adjacent.remove(b)
            k += 1
        alone[a, adjacent] = True
    return alone & alone.T if join_both else alone | alone.T


def learn_by_pc(
    data: Dataset,
    order: Sequence[int],
    strategy: Strategy,
    max_condition: int,
    run: Run,
) -> ContextGraphs:
    """Learn the graph of every row with the memory that is left for answers."""
    n, m = data.n_variables, data.n_distinct
    workers = min(run.n_workers, m)
    packed = PackedTable.of(data, tuple(order))
    source = run.share(packed, PackedTable.of, data, tuple(order))
    chunks = cut_contexts(packed, n_shards(n, m) if run.is_kept else workers, in_turn=run.is_kept)
    # Threads without a folder to fill work on one part together, and ask nothing twice.
    work = [chunks] if not run.is_kept and shares_memory() else [[contexts] for contexts in chunks]
    each = run.bytes_left // min(run.n_sharing_memory, len(work))
    n_rounds = min(max_condition, n - 2) + 1
    # Parts are at different rounds: what is shown is how many are done.
    token = run.steps(len(work), "parts") if len(work) > 1 else CancelToken()
    tasks = [(source, strategy, n_rounds, part, each, run if len(work) == 1 else None) for part in work]
    parts = run.shards(_run_rounds, tasks, token=token)
    edges = np.zeros((m, packed_width(n)), dtype=np.uint8)
    for part, contexts in zip(parts, work, strict=True):
        edges[packed.row_order[np.concatenate(contexts)]] = part["edges"]
    return ContextGraphs.of(edges, parts, is_kept=run.is_kept)


def bytes_for_pc(data: Dataset, n_workers: int, *, shared: bool) -> int:
    """Estimate the memory that learning needs besides the memo of answers."""
    n, m, words = data.n_variables, data.n_distinct, bitmap_words(data.counts)
    levels, most = int(data.domain.n_levels.sum()), int(data.domain.n_levels.max())
    # The table and the shards cut from it; links by pair, then one bit a pair, sorted and compared.
    tables = 2 * (levels * words * 8 + 4 * n * m)
    links = (
        (n_pairs(n) if shared else n * n) * words * 8
        + 8 * n * n
        + m * packed_words(n) * 8
        + 6 * m * packed_width(n)
    )
    # Slices and contexts by depth, each as a bitmap and as a list, and what crosses two variables on a slice.
    n_levels = data.domain.n_levels
    limit, longest = longest_list(n_levels, words, m), _longest_walk(n_levels, words, m)
    scratch = (n + 1) * (16 * words + 4 * limit + 4 * longest + 8 * (most + packed_words(n)) + 64)
    scratch += 8 * most * words + 10 * limit + 8 * most * (most + 3)
    return tables + links + n_workers * scratch


def _run_rounds(
    source: InMemory[PackedTable] | OnDisk[PackedTable],
    strategy: Strategy,
    n_rounds: int,
    chunks: Sequence[Contexts],
    max_bytes: int,
    run: Run | None,
    token: CancelToken,
) -> Arrays:
    """Ask all questions of some contexts, a thread for each chunk of them.

    No part needs another, and no round the answers of another. How many rounds there will be is not known
    beforehand: the steps of each are shown, if there is a run to report them to.
    """
    packed = source.load()
    n = len(packed.order)
    members = [make_context_set(packed, contexts, strategy) for contexts in chunks]
    asked, n_tests, n_distinct = [0] * len(members), 0, 0
    for k in range(n_rounds):
        memo = Memo(max_bytes, _ADVICE)
        steps = CancelToken() if run is None else run.steps(n, f"round {k + 1}", n * len(members))

        def ask(member: int, k: int = k, memo: Memo = memo, steps: CancelToken = steps) -> None:
            asked[member] = _run_round(k, packed, members[member], strategy.rules, memo, token, steps)

        with Team(len(members), token) as team:
            team.together(ask)
        if not sum(asked):
            break
        n_tests += sum(asked)
        # Questions of round k have k conditions: those of two rounds are different.
        n_distinct += memo.n_known
    token.tick()
    edges = np.zeros((sum(map(len, chunks)), packed_width(n)), dtype=np.uint8)
    row = 0
    for contexts, context_set in zip(chunks, members, strict=True):
        rows = np.arange(row, row + len(contexts))
        pack_links(context_set, np.array(packed.order), strategy.join_both, rows, edges)
        row += len(contexts)
    return {"edges": edges, "n_tests": np.array(n_tests), "n_distinct": np.array(n_distinct)}


def _run_round(
    k: int,
    packed: PackedTable,
    context_set: ContextSet,
    rules: Rules,
    memo: Memo,
    token: CancelToken,
    steps: CancelToken,
) -> int:
    """Ask every question of one round in the contexts of one set, and return their number."""
    table = packed.table
    n = len(packed.order)
    keys = question_keys(int(table.offsets[-1]), n)
    limit = packed.list_limit()
    slices, crosstab = packed.slices(k + 1, limit), packed.crosstab_buffers(limit)
    walk = make_walk(packed, context_set, k)
    begin_round(table, slices, walk)
    n_asked, node = 0, -1
    while node < n:
        token.check()
        before = max(node, 0)
        with memo.reserve(_MAX_NEW, token.check) as reserved:
            node, asked, reserved.n_new = run_round(
                k, context_set, table, rules, keys, reserved.slots, slices, crosstab, walk, _MAX_NEW, _EFFORT
            )
        n_asked += asked
        steps.tick(node - before)
    return n_asked


def make_context_set(packed: PackedTable, contexts: Contexts, strategy: Strategy) -> ContextSet:
    """Take some rows of a table as contexts, which link at first whatever is not forbidden."""
    table, n_words, n = packed.table, packed_words(len(contexts)), len(packed.order)
    if len(contexts) < table.codes.shape[1]:
        ones = np.ones(len(contexts), dtype=np.int64)
        table = pack_table(np.ascontiguousarray(table.codes[:, contexts]), ones, packed.n_levels)
    bitmaps = np.ascontiguousarray(table.bitmaps[:, :n_words])
    # One variable's levels are shown by all contexts together, one each.
    everyone = np.bitwise_or.reduce(bitmaps[: table.offsets[1]], axis=0)
    linked = ~unpack_sets(strategy.rules.forbidden, n)
    link_row = pair_numbers(n) if strategy.shared else np.arange(n * n).reshape(n, n)
    by_row = linked[np.triu_indices(n, 1)] if strategy.shared else linked.ravel()
    return ContextSet(
        codes=table.codes,
        offsets=packed.table.offsets,
        bitmaps=bitmaps,
        links=np.where(by_row[:, None], everyone, np.uint64(0)),
        link_row=link_row,
        near=np.empty((len(contexts), packed_words(n)), dtype=np.uint64),
        able=np.empty(n_words, dtype=np.uint64),
    )


def _longest_walk(n_levels: Integers, n_words: int, n_contexts: int) -> int:
    """Return how long lists of contexts get beside bitmaps of so many words."""
    return min(int(_WORD_COST * n_words * n_levels.mean()), n_contexts)


def make_walk(packed: PackedTable, context_set: ContextSet, k: int) -> Walk:
    """Make room for a walk over sets of k variables."""
    n, words = len(packed.order), context_set.bitmaps.shape[1]
    longest = _longest_walk(packed.n_levels, words, context_set.codes.shape[1])
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
