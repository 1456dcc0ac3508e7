"""Slow twins of the fast paths, written to be obviously right.

Counts and tests are computed here; the algorithms that ask them are the package's references.

Positions stand for variables, codes for levels; `rows` are distinct rows, `counts` what each is worth.
"""

import math
from functools import partial
from itertools import combinations
from types import SimpleNamespace

import numpy as np
from scipy import special

from unless.learners.cspc import pc, pc_apart
from unless.learners.grow_shrink.algorithm import EdgeLimits, SliceOracle, csgs


def naive_table(rows, counts, n_levels, a, b, context):
    """Count a against b over the rows that agree with the context (position -> code)."""
    table = np.zeros((n_levels[a], n_levels[b]), dtype=np.int64)
    for row, count in zip(rows, counts, strict=True):
        if all(row[position] == code for position, code in context.items()):
            table[row[a], row[b]] += count
    return table


def without_empty(table):
    """Drop the rows and columns in which nothing was counted."""
    table = np.asarray(table)
    table = table[table.sum(axis=1) > 0]
    return table[:, table.sum(axis=0) > 0]


def naive_df(table):
    n_rows, n_columns = without_empty(table).shape
    return max(n_rows - 1, 0) * max(n_columns - 1, 0)


def naive_expected(table):
    table = without_empty(table).astype(float)
    return np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()


def naive_p(statistic, df):
    return float(special.chdtrc(df, statistic)) if df else math.nan


def naive_pearson(table):
    """Return statistic, df and p of Pearson's chi-square; p is nan where nothing can be tested."""
    df = naive_df(table)
    if df == 0:
        return 0.0, 0, math.nan
    observed, expected = without_empty(table).astype(float), naive_expected(table)
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return statistic, df, naive_p(statistic, df)


def naive_likelihood_ratio(table):
    """Return statistic, df and p of the likelihood-ratio test (G)."""
    df = naive_df(table)
    if df == 0:
        return 0.0, 0, math.nan
    observed, expected = without_empty(table).astype(float), naive_expected(table)
    statistic = 2 * sum(
        o * math.log(o / e) for o, e in zip(observed.flat, expected.flat, strict=True) if o > 0
    )
    statistic = max(statistic, 0.0)
    return statistic, df, naive_p(statistic, df)


def naive_pooled(test, tables):
    """Sum the statistics and the degrees of freedom of one test over strata."""
    answers = [test(table) for table in tables]
    statistic, df = sum(answer[0] for answer in answers), sum(answer[1] for answer in answers)
    return statistic, df, naive_p(statistic, df)


def log_upsilon(counts):
    """Return the log of Margaritis's Y: the evidence of counts under a uniform Dirichlet prior."""
    counts = [int(count) for count in np.ravel(counts)]
    n_cells, total = len(counts), sum(counts)
    return (
        math.lgamma(n_cells) - math.lgamma(n_cells + total) + sum(math.lgamma(1 + count) for count in counts)
    )


def naive_bayesian_pooled(tables):
    """Return log Pr(independent), log Pr(dependent) and the df of Margaritis's test over strata."""
    prior = 0.5 ** (1 / len(tables))
    log_independent = math.log(0.5)
    for table in tables:
        table = np.asarray(table)
        log_g = log_upsilon(table.sum(axis=1)) + log_upsilon(table.sum(axis=0))
        log_h = log_upsilon(table)
        log_independent += log_g - np.logaddexp(math.log(prior) + log_g, math.log1p(-prior) + log_h)
    log_independent = min(float(log_independent), 0.0)
    probability = math.exp(log_independent)
    log_dependent = math.log1p(-probability) if probability < 1 else -math.inf
    return log_independent, log_dependent, sum(naive_df(table) for table in tables)


def naive_bayesian(table):
    """Return log Pr(independent), log Pr(dependent) and the df of Margaritis's test on one slice."""
    return naive_bayesian_pooled([table])


def naive_power(df, n_rows, alpha, effect):
    """Return the power of a chi-square test against Cohen's w = effect."""
    critical = special.chdtri(df, alpha)
    return float(1 - special.chndtr(critical, df, n_rows * effect**2))


def naive_answer(table, *, test="pearson", alpha=0.05, effect=0.3):
    """Answer "independent", "dependent" or "undecided" from one slice."""
    if naive_df(table) == 0:
        return "undecided"
    if test == "bayesian":
        # Exact ties are independent, whatever rounding makes of them.
        return "independent" if naive_bayesian(table)[0] >= math.log(0.5) - 1e-9 else "dependent"
    _, df, p = {"pearson": naive_pearson, "likelihood_ratio": naive_likelihood_ratio}[test](table)
    if p < alpha:
        return "dependent"
    return "independent" if naive_power(df, int(np.sum(table)), alpha, effect) >= 0.8 else "undecided"


class NaiveCounts:
    """Counts two variables in a context, row by row."""

    def __init__(self, rows, counts, n_levels):
        self.table_arguments = (rows, counts, n_levels)

    def count(self, a, b, context):
        return naive_table(*self.table_arguments, a, b, context)


class NaiveTest:
    """Answers from one table."""

    def __init__(self, **settings):
        self.settings = settings

    def on(self, table):
        return SimpleNamespace(answer=naive_answer(table, **self.settings))


def naive_slices(rows, counts, n_levels, undecided, **settings):
    """Make the oracle that the package's reference algorithms ask, with counts and answers of this file."""
    rows = [tuple(int(code) for code in row) for row in rows]
    return SliceOracle(NaiveCounts(rows, counts, n_levels), NaiveTest(**settings), undecided == "keep")


def links_of(edges, n):
    links = np.zeros((n, n), dtype=bool)
    for a, b in edges:
        links[a, b] = links[b, a] = True
    return links


def as_pairs(links):
    return frozenset((int(a), int(b)) for a, b in np.argwhere(np.triu(links)))


def reference_csgs(
    rows, counts, n_levels, *, alpha=0.05, test="pearson", order=None, blankets="shared", rule="or",
    max_blanket=None, required=(), forbidden=(), undecided="independent", effect=0.3,
):  # fmt: skip
    """Run the literal Algorithms 1 and 2; return edge sets, the numbers of questions and distinct ones."""
    n = len(n_levels)
    slices = naive_slices(rows, counts, n_levels, undecided, test=test, alpha=alpha, effect=effect)
    limits = EdgeLimits(
        links_of(required, n), links_of(forbidden, n), n if max_blanket is None else max_blanket
    )
    order = range(n) if order is None else order
    graphs = csgs(slices, rows, order, limits, shared=blankets == "shared", join_both=rule == "and")
    return [as_pairs(graph) for graph in graphs], slices.n_tests, slices.n_distinct_tests


def reference_cspc(
    rows, counts, n_levels, *, alpha=0.05, test="pearson", order=None, adjacency="independent", rule="or",
    max_condition=None, required=(), forbidden=(), undecided="independent", effect=0.3,
):  # fmt: skip
    """Run PC in each context alone; return as `reference_csgs` does."""
    n = len(n_levels)
    slices = naive_slices(rows, counts, n_levels, undecided, test=test, alpha=alpha, effect=effect)
    start = ~(links_of(forbidden, n) | np.eye(n, dtype=bool))
    order = range(n) if order is None else order
    search = pc if adjacency == "shared" else partial(pc_apart, join_both=rule == "and")
    graphs = [
        search(start.copy(), order, slices.in_context(row), links_of(required, n), max_condition)
        for row in rows
    ]
    return [as_pairs(graph) for graph in graphs], slices.n_tests, slices.n_distinct_tests


def naive_mutual_information(table):
    """Return the mutual information of a table in nats, exactly rounded, so that equal tables tie exactly."""
    table = [[int(count) for count in row] for row in table]
    total = sum(map(sum, table))
    by_row, by_column = [sum(row) for row in table], [sum(column) for column in zip(*table, strict=True)]
    terms = [
        count / total * math.log(count * total / (by_row[i] * by_column[j]))
        for i, row in enumerate(table)
        for j, count in enumerate(row)
        if count
    ]
    return math.fsum(terms)


def naive_association_order(rows, counts, n_levels, names):
    """Order positions by the sum of mutual informations with all others, largest first, ties by name."""
    totals = [0] * len(n_levels)
    for a, b in combinations(range(len(n_levels)), 2):
        information = naive_mutual_information(naive_table(rows, counts, n_levels, a, b, {}))
        # In units of 2^-40 nats: neither the last bit of a logarithm nor the order of a sum may break a tie.
        totals[a] += round(information * 2**40)
        totals[b] += round(information * 2**40)
    return sorted(range(len(n_levels)), key=lambda position: (-totals[position], names[position]))
