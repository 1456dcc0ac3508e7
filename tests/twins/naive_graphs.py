"""Slow twins of the learners of one graph, written to be obviously right.

Positions stand for variables, codes for levels; `rows` are distinct rows, `counts` what each is worth.
"""

import math
from itertools import combinations, permutations

import numpy as np
from scipy import special

from twins.naive import (
    log_upsilon,
    naive_df,
    naive_likelihood_ratio,
    naive_pearson,
    naive_pooled,
    naive_power,
    without_empty,
)


def naive_strata(rows, counts, n_levels, a, b, given):
    """Count a against b in every stratum of the given variables that has rows."""
    tables = {}
    for row, count in zip(rows, counts, strict=True):
        stratum = tuple(int(row[position]) for position in sorted(given))
        table = tables.setdefault(stratum, np.zeros((n_levels[a], n_levels[b]), dtype=np.int64))
        table[row[a], row[b]] += count
    return list(tables.values())


def naive_log_tail(df, statistic):
    """Return log p by the finite sums that whole degrees of freedom have."""
    if df == 0:
        return 0.0
    half = statistic / 2
    if df % 2 == 0:
        terms = [k * math.log(half) - math.lgamma(k + 1) if half else (0.0 if k == 0 else -math.inf)
                 for k in range(df // 2)]  # fmt: skip
        return float(special.logsumexp(terms)) - half
    terms = [math.log(2) + float(special.log_ndtr(-math.sqrt(statistic)))]
    if half:
        terms += [(k - 0.5) * math.log(half) - half - math.lgamma(k + 0.5) for k in range(1, (df + 1) // 2)]
    return float(special.logsumexp(terms))


def naive_log_probabilities(tables):
    """Return log Pr(independent) and log Pr(dependent) of Margaritis's test over strata."""
    log_prior = math.log(0.5) / len(tables)
    log_rest = math.log(-math.expm1(log_prior))
    log_odds = [
        log_upsilon(table) - log_upsilon(table.sum(axis=1)) - log_upsilon(table.sum(axis=0))
        + log_rest - log_prior
        for table in tables
    ]  # fmt: skip
    deficit = math.fsum(float(np.logaddexp(0.0, odds)) for odds in log_odds)
    if deficit > math.log(2):
        return -deficit, math.log1p(-math.exp(-deficit))
    if deficit > 1e-300:
        return -deficit, math.log(-math.expm1(-deficit))
    return -deficit, float(special.logsumexp(log_odds))


def settled(value):
    """Keep nine digits of a multiple that is no half of a whole number: rounding must not break a tie."""
    return float(f"{round(1.6180339887 * float(value), 9):.9g}")


class NaivePooledOracle:
    """Answers questions pooled over strata, counting how many were asked and how many were different."""

    def __init__(self, rows, counts, n_levels, *, test, alpha, effect, undecided):
        self.table_arguments = (rows, counts, n_levels)
        self.test, self.alpha, self.effect, self.undecided = test, alpha, effect, undecided
        self.n_tests = 0
        self.answers = {}

    def ask(self, a, b, given):
        self.n_tests += 1
        question = (frozenset([a, b]), frozenset(given))
        if question not in self.answers:
            tables = naive_strata(*self.table_arguments, min(a, b), max(a, b), given)
            self.answers[question] = self.judge(tables)
        return self.answers[question]

    def judge(self, tables):
        """Return the answer, log p and the strength of the association."""
        df = sum(naive_df(table) for table in tables)
        if self.test == "bayesian":
            log_p, strength = naive_log_probabilities(tables)
            # Exact ties are independent, whatever rounding makes of them.
            answer = "dependent" if log_p < math.log(0.5) - 1e-9 else "independent"
            return (answer if df else "undecided"), log_p, strength
        test = {"pearson": naive_pearson, "likelihood_ratio": naive_likelihood_ratio}[self.test]
        statistic, df, p = naive_pooled(test, tables)
        log_p = naive_log_tail(df, statistic)
        if df and p < self.alpha:
            return "dependent", log_p, statistic
        used = sum(int(table.sum()) for table in tables if min(without_empty(table).shape) > 1)
        sure = df and naive_power(df, used, self.alpha, self.effect) >= 0.8
        return ("independent" if sure else "undecided"), log_p, statistic

    def says_dependent(self, a, b, given):
        return self.ask(a, b, given)[0] == "dependent"

    def says_independent(self, a, b, given):
        answer = self.ask(a, b, given)[0]
        return answer == "independent" or (answer == "undecided" and self.undecided == "independent")


def naive_gsmn(
    rows, counts, n_levels, names, *, alpha=0.05, test="pearson", variant="gsmn", rule="or", order=None,
    max_blanket=None, undecided="independent", effect=0.3, required=(), forbidden=(),
):  # fmt: skip
    """Learn one graph; return its edges (frozensets), the number of questions and of different ones.

    `order` is None for association, else a list of positions.
    """
    asker = NaivePooledOracle(
        rows, counts, n_levels, test=test, alpha=alpha, effect=effect, undecided=undecided
    )
    n = len(n_levels)
    required, forbidden = ({frozenset(edge) for edge in edges} for edges in (required, forbidden))
    star = variant == "gsmn*"
    found = {}
    if order is None or star:
        for a, b in combinations(range(n), 2):
            found[a, b] = found[b, a] = asker.ask(a, b, ())
    by_name = sorted(range(n), key=lambda a: names[a])
    visits = by_name if order is None else order
    if order is None and star:
        means = {
            a: settled(math.fsum(settled(found[a, b][1]) for b in range(n) if b != a) / max(n - 1, 1))
            for a in range(n)
        }
        visits = sorted(by_name, key=lambda a: means[a])
    blankets = {}
    for a in visits:
        candidates = [b for b in (by_name if order is None else order) if b != a]
        candidates = [b for b in candidates if frozenset([a, b]) not in forbidden | required]
        if order is None:
            candidates.sort(key=lambda b: (settled(found[a, b][1]), -settled(found[a, b][2])))
        if star:
            candidates = [b for b in candidates if found[a, b][0] == "dependent"]
        start = [b for b in by_name if frozenset([a, b]) in required]
        copied = [b for b in candidates if star and b in blankets and a in blankets[b]]
        unknown = [b for b in candidates if not (star and b in blankets)]
        limit = n if max_blanket is None else max_blanket
        blanket = naive_grow(a, unknown, start, copied, asker, limit)
        turn = list(reversed(blanket)) if star else candidates
        blankets[a] = naive_shrink(a, turn, blanket, start + copied, asker)
    ends = [frozenset([a, b]) for a in blankets for b in blankets[a]]
    edges = {edge for edge in ends if ends.count(edge) >= (2 if rule == "and" else 1)}
    return edges, asker.n_tests, len(asker.answers)


def naive_grow(a, candidates, start, copied, asker, limit):
    """Go round and round the candidates; none is asked about again given the same blanket."""
    blanket, answered = list(start), set()
    for turn in range(len(candidates) + 2):
        for b in candidates:
            question = (b, frozenset(blanket))
            if b not in blanket and question not in answered and len(blanket) < limit:
                answered.add(question)
                if asker.says_dependent(a, b, blanket):
                    blanket.append(b)
        if turn == 0:
            blanket += copied
    return blanket


def naive_shrink(a, turn, blanket, fixed, asker):
    blanket, answered = list(blanket), set()
    for _ in range(len(turn) + 1):
        for b in turn:
            question = (b, frozenset(blanket))
            if b in blanket and b not in fixed and question not in answered:
                answered.add(question)
                if asker.says_independent(a, b, [c for c in blanket if c != b]):
                    blanket.remove(b)
    return blanket


class NaiveScorer:
    """The IB-score of a graph, every assertion of it; remembers what it was asked."""

    def __init__(self, rows, counts, n_levels):
        self.table_arguments = (rows, counts, n_levels)
        self.n = len(n_levels)
        self.answers = {}

    def assertion(self, a, b, edges):
        """Return the log probability of what the blanket of a says about b."""
        blanket = {c for edge in edges if a in edge for c in edge} - {a}
        question = (frozenset([a, b]), frozenset(blanket - {b}))
        if question not in self.answers:
            tables = naive_strata(*self.table_arguments, min(a, b), max(a, b), blanket - {b})
            self.answers[question] = naive_log_probabilities(tables)
        independent, dependent = self.answers[question]
        return dependent if b in blanket else independent

    def score(self, edges):
        return math.fsum(self.assertion(a, b, edges) for a, b in permutations(range(self.n), 2))


class NaiveSliceScorer(NaiveScorer):
    """The IB-score in one context: what a blanket asserts is looked at where it has the context's values."""

    def __init__(self, rows, counts, n_levels, context, answers):
        super().__init__(rows, counts, n_levels)
        self.context, self.answers = context, answers

    def assertion(self, a, b, edges):
        blanket = {c for edge in edges if a in edge for c in edge} - {a}
        fixed = {c: int(self.context[c]) for c in blanket - {b}}
        question = (frozenset([a, b]), frozenset(fixed.items()))
        if question not in self.answers:
            rows, counts, n_levels = self.table_arguments
            agree = [all(row[c] == level for c, level in fixed.items()) for row in rows]
            (table,) = naive_strata(rows[agree], counts[agree], n_levels, min(a, b), max(a, b), ())
            self.answers[question] = naive_log_probabilities([table])
        independent, dependent = self.answers[question]
        return dependent if b in blanket else independent


def naive_csibmap(rows, counts, n_levels, names, **limits):
    """Climb in the context of every row; return edges and score of each, and the numbers of questions."""
    answers, climbs = {}, []
    for context in rows:
        scorer = NaiveSliceScorer(rows, counts, n_levels, context, answers)
        climbs.append(naive_ibmap(rows, counts, n_levels, names, scorer=scorer, **limits))
    return [climb[:2] for climb in climbs], sum(climb[3] for climb in climbs), len(answers)


def naive_ibmap(rows, counts, n_levels, names, *, required=(), forbidden=(), max_blanket=None, scorer=None):
    """Climb from the required edges, scoring every neighbour of a graph in full.

    Return the edges, the score, the path, the number of assertions asked for and that of different tables.
    """
    scorer = scorer or NaiveScorer(rows, counts, n_levels)
    n, limit = len(n_levels), len(n_levels) if max_blanket is None else max_blanket
    by_name = sorted(range(n), key=lambda a: names[a])
    constant = {a for a in range(n) if len({row[a] for row in rows}) < 2}
    untouched = {frozenset(edge) for edge in (*required, *forbidden)}
    pairs = [frozenset(pair) for pair in combinations(by_name, 2)]
    pairs = [pair for pair in pairs if pair not in untouched and not pair & constant]
    edges = {frozenset(edge) for edge in required}
    score, path, n_tests = scorer.score(edges), [], n * (n - 1)
    while True:
        degree = {a: sum(a in edge for edge in edges) for a in range(n)}
        flips = [pair for pair in pairs if pair in edges or all(degree[a] < limit for a in pair)]
        # Of the n (n - 1) assertions of a neighbour, those about two variables are others.
        n_tests += 2 * (n - 1) * len(flips)
        gains = [scorer.score(edges ^ {pair}) - score for pair in flips]
        margin = 1e-9 + 1e-12 * abs(score)
        if not gains or max(gains) <= margin:
            return edges, score, path, n_tests, len(scorer.answers)
        best = next(k for k, gain in enumerate(gains) if gain >= max(gains) - margin)
        edges = edges ^ {flips[best]}
        score = scorer.score(edges)
        path.append((flips[best], score))
