"""CSIBMAP: canonical graphs by the climb of IBMAP-HC in every context, and how probable their links are.

The probability of a link is weighed given some variables, in every stratum of these. The link is there in all
strata, or in none, or one of the given variables decides, level by level: each of these readings has the same
prior probability. A link that is there is the same in all strata or another one in each, both as probable.

Weights of the cells of a linked table have the prior N(0, 1), as in `fit_weights`. Margins are held fixed: a
stratum in which one of the two hardly varies says nothing, while the Dirichlet evidence of Margaritis's test
would count it as a sign of independence. The likelihood is that of the score at independence.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, compress
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.counting.reference import CountSource
from unless.counting.slices import PackedTable, bitmap_words, longest_list
from unless.data.dataset import Dataset
from unless.errors import SettingError, TooLarge
from unless.independence.statistics import log_bayes_factors
from unless.kernels.bits import pack_sets, packed_words
from unless.kernels.grow_shrink import pack_pairs
from unless.kernels.ibmap import (
    N_ASKED,
    N_QUESTIONS,
    N_VALUES,
    STATE_SIZE,
    Ascent,
    FlipRules,
    ValueMemo,
    ascend_contexts,
    move_values,
)
from unless.learners.base import Learner, Run
from unless.learners.grow_shrink.algorithm import Context, Links
from unless.learners.grow_shrink.cohorts import ContextGraphs, Contexts, cut_contexts, n_shards
from unless.learners.ibmap import (
    FlipLimits,
    LocalOptimum,
    PlainScorer,
    SearchState,
    ascend,
    flip_in_turn,
    flippable,
    tolerance,
)
from unless.learners.memo import question_keys
from unless.learners.settings import EdgeNames, at_least, edge_limits, learned, setting
from unless.runtime.checkpoints import Arrays, settled_seed
from unless.runtime.interrupts import CancelToken
from unless.runtime.memory import show_memory
from unless.runtime.parallel import InMemory, OnDisk
from unless.structures.canonical import CanonicalModel
from unless.structures.structure import Edge, agreeing, packed_width, pair_names, unpack
from unless.typing import Floats, Integers

# Scores looked up between two returns to Python: some milliseconds, so that Ctrl-C is noticed.
_MAX_SPENT = 2**17
_BYTES_OF_A_VALUE = 24
_FEWEST_SLOTS = 2**12
# The prior probability of a link wherever it may be there or not: docs/decisions/0036.
LINK_PRIOR = 0.57
# Of variables with more levels, all but the most frequent count as one.
_MOST_LEVELS = 7
# Strata times cells, squared, that are held at once.
_BLOCK = 2**20
# The share of the rows in whose graphs a link is part of the blankets that links are weighed given.
_USUAL = 0.5


class CSIBMAP(Learner):
    """Learn one graph for every distinct row of a table by climbing on the probability of what it asserts.

    In a context a graph asserts, for every ordered pair, that b depends on a where the rest of a's blanket
    has the context's values, if b is in it, else that b is independent of a where the blanket has them. The
    score is the sum of the logs of the posterior probabilities of these assertions by the Bayesian test, on
    the rows that agree with the context so far. From the graph of the required edges, the edge whose flip
    gains most is flipped until none gains. `scores_` has the score of each context's graph, in the order of
    `structure_.contexts()`; `link_probabilities(context)` tells how probable each link is there.

    Parameters
    ----------
    n_restarts
        How often to climb again, in every context, from the best graph so far with some of its edges flipped
        at random; in all contexts the same ones.
    random_state
        The seed the restarts are drawn from; None draws others every time.
    max_blanket
        No variable gets more neighbours than this, unless more are required.
    required_edges, forbidden_edges
        Pairs of names that are in every graph, or in none.

    Examples
    --------
    >>> import unless
    >>> est = unless.CSIBMAP().fit(unless.datasets.load_ucb_admissions())
    >>> est.structure_.given({"Dept": "C"}).has_edge("Admit", "Gender")
    False
    >>> [round(est.link_probabilities({"Dept": dept})["Admit", "Gender"], 2) for dept in "AC"]
    [0.96, 0.12]
    """

    kept_structure = CanonicalModel
    _work = "{m:,} graphs over {n:,} variables"
    _relative_cost = 20.0

    n_restarts: int = setting(default=0, check=at_least(0, optional=False))
    random_state: int | None = setting(default=0, check=at_least(0))
    max_blanket: int | None = setting(default=None, check=at_least(0))
    required_edges: EdgeNames = setting(default=None)
    forbidden_edges: EdgeNames = setting(default=None)
    scores_: Floats = learned()

    def _bytes_needed(self, data: Dataset, run: Run) -> int:
        n, m, words = data.n_variables, data.n_distinct, bitmap_words(data.counts)
        levels, most = int(data.domain.n_levels.sum()), int(data.domain.n_levels.max())
        # The table; graphs while they are learned, then one bit a pair, sorted and compared.
        shared = levels * words * 8 + 4 * n * m + n * m * packed_words(n) * 8 + 6 * m * packed_width(n)
        # The edges that each restart flips.
        shared += int(self.n_restarts) * n * (n - 1) // 2 * 16
        limit = longest_list(data.domain.n_levels, words, m)
        # Slices by depth, what crosses two variables on one; scores after each flip, and the least memo.
        scratch = (n + 1) * (8 * words + 4 * limit + 16) + 8 * most * (words + most + 3) + 10 * limit
        scratch += 8 * n * n + 2 * _BYTES_OF_A_VALUE * max(_FEWEST_SLOTS, 4 * n)
        return shared + min(run.n_sharing_memory, m) * scratch

    def _learn(self, data: Dataset, run: Run, *_: Dataset) -> None:
        # By name: the order of the columns must not decide anything, not even the rounding.
        order = [data.domain.index(name) for name in sorted(data.names)]
        limits, must = flip_limits(data, order, self.required_edges, self.forbidden_edges, self.max_blanket)
        shuffled = shuffled_pairs(limits, self.n_restarts, settled_seed(run.store, self.random_state))
        rules = FlipRules(pack_sets(must), pack_sets(limits.flippable), limits.max_blanket, shuffled)
        n, m = data.n_variables, data.n_distinct
        packed = PackedTable.of(data, tuple(order))
        source = run.share(packed, PackedTable.of, data, tuple(order))
        # Cut by the table alone, so that the memo of a part stays within bounds whatever the machine.
        chunks = cut_contexts(packed, max(1, n_shards(n, n * m)), in_turn=True)
        max_bytes = run.bytes_left // min(run.n_sharing_memory, len(chunks))
        # The bar counts contexts if there is one part, else parts.
        is_one = len(chunks) == 1
        tasks = [(source, rules, contexts, max_bytes, is_one) for contexts in chunks]
        token = run.steps(m) if is_one else run.steps(len(chunks), "parts")
        parts = run.shards(ascend_part, tasks, token=token, ticks=m if is_one else 1)
        edges, self.scores_ = np.zeros((m, packed_width(n)), dtype=np.uint8), np.empty(m)
        for part, contexts in zip(parts, chunks, strict=True):
            rows = packed.row_order[contexts]
            edges[rows], self.scores_[rows] = part["edges"], part["scores"]
        graphs = ContextGraphs.of(edges, parts, is_kept=True)
        self.structure_ = CanonicalModel.from_edges(data.domain, data.rows, data.counts, edges)
        self.n_tests_ = graphs.n_tests
        self.n_distinct_tests_ = graphs.n_distinct_tests
        self.max_distinct_tests_ = graphs.max_distinct_tests

    def link_probabilities(self, context: Mapping[str, Any] | None = None) -> dict[Edge, float]:
        """Return for every pair how probable a link is in an observed context.

        It is weighed given the blankets of both ends: in the context's graph, and in most rows' graphs. In a
        partial context it is the mean over the rows of the observed ones that agree with it. A link of
        the graph need not be probable: the climb looks at one slice, this at all strata. A gate that the
        graphs miss is in no blanket, and a link that it cuts then looks probable everywhere: `n_restarts=3`
        finds most of those that single flips miss. Links that are required have probability 1, those that are
        forbidden 0.
        """
        self.check_fitted()
        model = self.structure_
        # Raises where no context agrees.
        model.given(context)
        agrees = agreeing(model.rows, model.domain.encode(context))
        counts = model.counts[agrees]
        weighted = probabilities_in(model, np.flatnonzero(agrees)) * counts[:, None]
        pairs = pair_names(model.domain, np.arange(weighted.shape[1]))
        # Exactly rounded: the order of contexts follows from that of the columns.
        shares = [math.fsum(column) / int(counts.sum()) for column in weighted.T.tolist()]
        limits = edge_limits(model.domain, self.required_edges, self.forbidden_edges)
        must, never = (matrix[np.triu_indices(len(matrix), 1)] for matrix in limits)
        known = np.where(must, 1.0, np.where(never, 0.0, shares))
        return dict(zip(pairs, known.tolist(), strict=True))

    def _to_record(self) -> tuple[CanonicalModel, dict[str, Any]]:
        return self.structure_, {"scores": self.scores_.tolist()}

    def _from_record(self, structure: Any, results: Mapping[str, Any]) -> None:
        super()._from_record(structure, results)
        scores = np.array(results["scores"], dtype=np.float64)
        if scores.shape != (len(structure),):
            raise SettingError("its scores are not one for each context")
        self.scores_ = scores


def probabilities_in(model: CanonicalModel, contexts: npt.NDArray[np.intp]) -> Floats:
    """Return how probable each link is in some of a model's contexts (contexts x pairs)."""
    # By name: the order of the columns must not decide anything, not even the rounding.
    names = sorted(model.domain.names)
    named = model.observed.select(names)
    column = [model.domain.index(name) for name in names]
    pairs = list(combinations(range(len(names)), 2))
    position = np.argsort(column)

    @cache
    def evidence(a: int, b: int, given: frozenset[int]) -> LinkEvidence:
        return link_evidence(named, a, b, sorted(given))

    # What is linked in most rows belongs to a blanket, even where one context's graph lacks it.
    usual = np.array(list(model.link_shares().values())) >= _USUAL
    probabilities = np.empty((len(contexts), len(pairs)))
    for number, context in enumerate(contexts):
        linked = usual | unpack(model.packed[model.graph_index[context]], len(names))
        blankets: list[set[int]] = [set() for _ in names]
        for a, b in compress(pairs, linked):
            blankets[position[a]].add(int(position[b]))
            blankets[position[b]].add(int(position[a]))
        levels = model.rows[context][column]
        for pair, ends in enumerate(pairs):
            a, b = sorted(int(position[end]) for end in ends)
            weighed = evidence(a, b, frozenset((blankets[a] | blankets[b]) - {a, b}))
            probabilities[number, pair] = weighed.probability(levels)
    return probabilities


def ascend_plainly(
    counts: CountSource,
    contexts: Iterable[Context],
    required: Links,
    limits: FlipLimits,
    shuffled: Iterable[Integers] = (),
) -> list[LocalOptimum]:
    """Climb in every context: the reference. Every neighbour of a graph is scored in full."""
    optima = []
    for context in contexts:
        scorer = PlainScorer(SliceScores(counts, context).log_probability)
        best = ascend(scorer, SearchState(required.copy()), limits)
        for pairs in shuffled:
            again = ascend(scorer, SearchState(flip_in_turn(best.links, limits, pairs)), limits)
            if again.score > best.score + tolerance(best.score):
                best = again
        optima.append(best)
    return optima


@dataclass(frozen=True)
class SliceScores:
    """What the rows that agree with a context say of assertions, by the Bayesian test."""

    counts: CountSource
    context: Context

    def log_probability(self, a: int, b: int, given: Iterable[int], dependent: bool) -> float:
        """Return log Pr(dependent), or of independence, where given variables have the context's levels."""
        table = self.counts.count(min(a, b), max(a, b), {c: int(self.context[c]) for c in given})
        log_ratio = float(log_bayes_factors(table))
        return -float(np.logaddexp(0.0, -log_ratio if dependent else log_ratio))


def flip_limits(
    data: Dataset, order: Sequence[int], required: EdgeNames, forbidden: EdgeNames, max_blanket: int | None
) -> tuple[FlipLimits, Links]:
    """Return the limits of climbs over columns in an order, and the edges that must be there."""
    must, never = (matrix[np.ix_(order, order)] for matrix in edge_limits(data.domain, required, forbidden))
    varies = np.array([len(np.unique(data.rows[:, column])) > 1 for column in order])
    return FlipLimits(
        flippable(varies, must, never), len(order) if max_blanket is None else max_blanket
    ), must


def shuffled_pairs(limits: FlipLimits, n_restarts: int, seed: Any) -> Integers:
    """Return the edges to flip before each restart, in the order of their turns."""
    rng, pairs = np.random.default_rng(seed), np.argwhere(np.triu(limits.flippable, 1))
    shuffled = np.empty((n_restarts, *pairs.shape), dtype=np.int64)
    for turn in shuffled:
        turn[:] = rng.permutation(pairs)
    return shuffled


def ascend_part(
    source: InMemory[PackedTable] | OnDisk[PackedTable],
    rules: FlipRules,
    contexts: Contexts,
    max_bytes: int,
    shows_contexts: bool,
    token: CancelToken,
) -> Arrays:
    """Climb in some contexts, each of them a step to show, or all together."""
    packed = source.load()
    table, n = packed.table, len(packed.order)
    keys, limit = question_keys(int(table.offsets[-1]), n), packed.list_limit()
    slices, crosstab = packed.slices(n + 1, limit), packed.crosstab_buffers(limit)
    graphs, scores = np.zeros((n, len(contexts), packed_words(n)), dtype=np.uint64), np.empty(len(contexts))
    ascent, memo, n_done = make_ascent(n), make_memo(max(_FEWEST_SLOTS, 4 * n)), 0
    while n_done < len(contexts):
        token.check()
        before = n_done
        n_done = ascend_contexts(
            contexts, graphs, scores, table, keys, rules, memo, slices, crosstab, ascent, _MAX_SPENT
        )
        token.tick((n_done - before) if shows_contexts else n_done // len(contexts))
        # The kernel stops where the next score, of up to n values, could fill more than half of the memo.
        if 2 * (int(ascent.state[N_VALUES]) + n) > len(memo.values):
            memo = _widened(memo, max_bytes, int(ascent.state[N_QUESTIONS]))
    edges = np.zeros((len(contexts), packed_width(n)), dtype=np.uint8)
    pack_pairs(graphs, np.array(packed.order), True, False, edges, 0, len(contexts))
    return {
        "edges": edges,
        "scores": scores,
        "n_tests": ascent.state[N_ASKED],
        "n_distinct": ascent.state[N_QUESTIONS],
    }


def make_ascent(n: int) -> Ascent:
    """Make room for climbs over graphs of n variables."""
    words = packed_words(n)
    return Ascent(
        state=np.zeros(STATE_SIZE, dtype=np.int64),
        levels=np.empty(n, dtype=np.int64),
        links=np.empty((n, words), dtype=np.uint64),
        names=np.empty((n, 2), dtype=np.uint64),
        scores=np.empty(n),
        flipped=np.empty((n, n)),
        best=np.empty((n, words), dtype=np.uint64),
        best_score=np.empty(1),
        path=np.empty((n + 1, 2), dtype=np.int64),
        log_odds=np.empty(n),
    )


def make_memo(n_slots: int) -> ValueMemo:
    """Make an empty memo of a power of two slots, or a few more than are asked for."""
    n_slots = 1 << (n_slots - 1).bit_length()
    return ValueMemo(np.zeros((n_slots, 2), dtype=np.uint64), np.empty(n_slots))


def _widened(memo: ValueMemo, max_bytes: int, n_questions: int) -> ValueMemo:
    need = 3 * len(memo.values) * _BYTES_OF_A_VALUE
    if need > max_bytes:
        raise TooLarge(
            f"After {n_questions:,} distinct questions the memo would need {show_memory(need)}, more than "
            f"the {show_memory(max_bytes)} left; raise max_memory=, or set max_blanket=, which asks fewer."
        )
    wider = make_memo(2 * len(memo.values))
    move_values(memo, wider)
    return wider


@dataclass(frozen=True)
class LinkEvidence:
    """What a table says of one pair given some variables: log Bayes factors for a link, by reading."""

    # In all strata together, and for each given variable by its level.
    everywhere: float
    gated: Mapping[int, Floats]

    def probability(self, context: Sequence[int] | npt.NDArray[np.integer]) -> float:
        """Return the probability of a link where the given variables have a context's levels."""
        log_prior = math.log(LINK_PRIOR) - math.log1p(-LINK_PRIOR)
        readings = [(_log_evidence(np.array([self.everywhere])), self.everywhere)]
        readings += [(_log_evidence(ratios), float(ratios[context[c]])) for c, ratios in self.gated.items()]
        evidence, ratios = np.array(readings).T
        # Here, because it takes long to load.
        from scipy import special

        return float((special.softmax(evidence) * special.expit(log_prior + ratios)).sum())


def _log_evidence(ratios: Floats) -> float:
    """Return the log evidence of a reading, in which each level may have the link or not."""
    return float(np.logaddexp(math.log(LINK_PRIOR) + ratios, math.log1p(-LINK_PRIOR)).sum())


def link_evidence(data: Dataset, a: int, b: int, given: Sequence[int]) -> LinkEvidence:
    """Weigh the evidence for a link of a and b given some variables, by position."""
    n_levels = data.domain.n_levels
    everywhere = _Sums.zeros(1)
    gated = {c: _Sums.zeros(int(n_levels[c])) for c in given}
    for levels, scores, information in _scored_strata(data, a, b, given):
        separate = _log_ratios(scores, information)
        everywhere.add(np.zeros(len(scores), dtype=np.int64), scores, information, separate)
        for position, c in enumerate(given):
            gated[c].add(levels[:, position], scores, information, separate)
    return LinkEvidence(float(everywhere.log_ratios()[0]), {c: one.log_ratios() for c, one in gated.items()})


@dataclass
class _Sums:
    """The scores of strata, their information and their log ratios, summed by level."""

    scores: Floats
    information: Floats
    separate: Floats

    @classmethod
    def zeros(cls, n_levels: int) -> "_Sums":
        return cls(np.zeros((n_levels, 1)), np.zeros((n_levels, 1, 1)), np.zeros(n_levels))

    def add(self, levels: Integers, scores: Floats, information: Floats, separate: Floats) -> None:
        if self.scores.shape[1] != scores.shape[1]:
            self.scores = np.zeros((len(self.separate), scores.shape[1]))
            self.information = np.zeros((len(self.separate), *information.shape[1:]))
        np.add.at(self.scores, levels, scores)
        np.add.at(self.information, levels, information)
        np.add.at(self.separate, levels, separate)

    def log_ratios(self) -> Floats:
        """Return the log ratio of each level: one link in all its strata, or another in each."""
        return np.logaddexp(_log_ratios(self.scores, self.information), self.separate) - math.log(2)


def _log_ratios(scores: Floats, information: Floats) -> Floats:
    """Return the log Bayes factor of weights N(0, 1) over none, by the law of the score at none."""
    spread, rest = np.eye(scores.shape[1]) + information, scores.copy()
    doubled = np.zeros(len(scores))
    # By elimination, written out: LAPACK's last digits depend on the number of its threads.
    for k in range(scores.shape[1]):
        pivot = spread[:, k, k]
        doubled += rest[:, k] ** 2 / pivot - np.log(pivot)
        share = spread[:, k + 1 :, k] / pivot[:, None]
        rest[:, k + 1 :] -= share * rest[:, k, None]
        spread[:, k + 1 :, k + 1 :] -= share[:, :, None] * spread[:, k, None, k + 1 :]
    return doubled / 2


def _scored_strata(
    data: Dataset, a: int, b: int, given: Sequence[int]
) -> Iterator[tuple[Integers, Floats, Floats]]:
    """Yield strata in which both vary: levels, the score of the table's contrasts, and its variance."""
    firsts, seconds = (_merged(data, column) for column in (a, b))
    n_a, n_b = int(firsts.max()) + 1, int(seconds.max()) + 1
    if min(n_a, n_b) < 2:
        return
    stratum = np.zeros(data.n_distinct, dtype=np.int64)
    for column in given:
        stratum = stratum * int(data.domain.n_levels[column]) + data.rows[:, column]
        stratum = np.unique(stratum, return_inverse=True)[1].ravel()
    varies = np.ones(int(stratum.max()) + 1, dtype=np.bool_)
    for codes in (firsts, seconds):
        low, high = np.full(len(varies), n_a + n_b), np.full(len(varies), -1)
        np.minimum.at(low, stratum, codes)
        np.maximum.at(high, stratum, codes)
        varies &= low < high
    kept = np.flatnonzero(varies)
    number = np.full(len(varies), -1)
    number[kept] = np.arange(len(kept))
    first_row = np.unique(stratum, return_index=True)[1][kept]
    at_once = max(1, _BLOCK // (n_a * n_b) ** 2)
    for begin in range(0, len(kept), at_once):
        here = (number[stratum] >= begin) & (number[stratum] < begin + at_once)
        tables = np.zeros((min(at_once, len(kept) - begin), n_a, n_b))
        np.add.at(tables, (number[stratum[here]] - begin, firsts[here], seconds[here]), data.counts[here])
        levels = data.rows[first_row[begin : begin + at_once]][:, list(given)].astype(np.int64)
        yield levels, *_score(tables)


def _score(tables: Floats) -> tuple[Floats, Floats]:
    """Return what tables have above independence, in contrasts, and its variance where margins are fixed."""
    total = tables.sum(axis=(1, 2))
    by_row, by_column = tables.sum(axis=2) / total[:, None], tables.sum(axis=1) / total[:, None]
    above = tables - total[:, None, None] * by_row[:, :, None] * by_column[:, None, :]
    left, right = _contrasts(tables.shape[1]), _contrasts(tables.shape[2])
    scores = (above[:, :, None, :, None] * left[:, :, None, None] * right).sum(axis=(1, 3))
    spread_a, spread_b = _spread(by_row, left), _spread(by_column, right)
    information = spread_a[:, :, None, :, None] * spread_b[:, None, :, None, :]
    size = left.shape[1] * right.shape[1]
    scaled = information.reshape(-1, size, size) * (total**2 / (total - 1))[:, None, None]
    return scores.reshape(-1, size), scaled


def _spread(shares: Floats, contrasts: Floats) -> Floats:
    """Return the covariance of contrasts of one draw from each row of shares."""
    means = (shares[:, :, None] * contrasts).sum(axis=1)
    products = shares[:, :, None, None] * contrasts[:, :, None] * contrasts[:, None, :]
    return np.asarray(products.sum(axis=1) - means[:, :, None] * means[:, None, :])


def _contrasts(n_levels: int) -> Floats:
    """Return orthonormal columns that sum to nothing (Helmert's)."""
    columns = np.tril(np.full((n_levels, n_levels), -1.0), -1).T[:, 1:]
    columns[np.arange(1, n_levels), np.arange(n_levels - 1)] = np.arange(1, n_levels)
    return np.asarray(columns / np.sqrt((columns**2).sum(axis=0)))


def _merged(data: Dataset, column: int) -> Integers:
    """Return the codes of a column without gaps, its rarest levels as one where there are many."""
    codes = data.rows[:, column].astype(np.int64)
    weights = np.bincount(codes, weights=data.counts, minlength=int(data.domain.n_levels[column]))
    ranked = np.argsort(-weights, kind="stable")[: np.count_nonzero(weights)]
    number = np.zeros(len(weights), dtype=np.int64)
    number[ranked] = np.minimum(np.arange(len(ranked)), _MOST_LEVELS - 1)
    return number[codes]
