"""Slow twins of the fast paths, written to be obviously right, without the library's own algorithms.

Positions stand for variables, codes for levels; `rows` are distinct rows, `counts` what each is worth.
"""

import math
from itertools import combinations

import numpy as np
from scipy import special


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


class NaiveOracle:
    """Answers questions about slices, counting how many were asked and how many were different."""

    def __init__(self, rows, counts, n_levels, undecided="independent", **settings):
        self.table_arguments = (rows, counts, n_levels)
        self.undecided = undecided
        self.settings = settings
        self.n_tests = 0
        # Remembered, so that a question asked twice is surely answered alike: the table of (b, a) rounds
        # otherwise than that of (a, b).
        self.answers = {}

    def ask(self, a, b, assignment):
        self.n_tests += 1
        question = (frozenset([a, b]), frozenset(assignment.items()))
        if question not in self.answers:
            table = naive_table(*self.table_arguments, a, b, assignment)
            self.answers[question] = naive_answer(table, **self.settings)
        return self.answers[question]

    def says_dependent(self, a, b, assignment):
        return self.ask(a, b, assignment) == "dependent"

    def says_independent(self, a, b, assignment):
        answer = self.ask(a, b, assignment)
        return answer == "independent" or (answer == "undecided" and self.undecided == "independent")


def naive_csgs(
    rows,
    counts,
    n_levels,
    *,
    alpha=0.05,
    test="pearson",
    order=None,
    blankets="shared",
    rule="or",
    max_blanket=None,
    required=(),
    forbidden=(),
    undecided="independent",
    effect=0.3,
):
    """Learn one canonical graph per distinct row, one context at a time (Algorithm 1).

    Return the edge sets (frozensets of positions i < j), the number of questions, that of distinct ones.
    """
    rows = [tuple(int(code) for code in row) for row in rows]
    order = list(range(len(n_levels))) if order is None else list(order)
    oracle = NaiveOracle(rows, counts, n_levels, undecided, test=test, alpha=alpha, effect=effect)
    constraints = {
        "required": {frozenset(edge) for edge in required},
        "forbidden": {frozenset(edge) for edge in forbidden},
        "max_blanket": len(n_levels) if max_blanket is None else max_blanket,
    }
    learn = learn_shared if blankets == "shared" else learn_independent
    graphs = [learn(row, order, oracle, rule, **constraints) for row in rows]
    return graphs, oracle.n_tests, len(oracle.answers)


def learn_shared(row, order, oracle, rule, *, required, forbidden, max_blanket):
    """Run the GS strategy on one context (Algorithm 2): edges are symmetric throughout."""
    edges = set(required)
    for a in order:
        grow(a, row, order, oracle, edges, forbidden, max_blanket)
        shrink(a, row, order, oracle, edges, required)
    return as_pairs(edges)


def learn_independent(row, order, oracle, rule, *, required, forbidden, max_blanket):
    """Learn every blanket alone, then join them: an edge needs one of its ends ("or") or both ("and")."""
    learned = []
    for a in order:
        edges = {edge for edge in required if a in edge}
        grow(a, row, order, oracle, edges, forbidden, max_blanket)
        shrink(a, row, order, oracle, edges, required)
        learned.extend(edges)
    needed = 1 if rule == "or" else 2
    return as_pairs({edge for edge in learned if learned.count(edge) >= needed} | required)


def grow(a, row, order, oracle, edges, forbidden, max_blanket):
    candidates = [
        b for b in order if b != a and b not in blanket(a, edges) and frozenset([a, b]) not in forbidden
    ]
    for b in candidates:
        if len(blanket(a, edges)) >= max_blanket:
            return
        if oracle.says_dependent(a, b, assignment(row, blanket(a, edges))):
            edges.add(frozenset([a, b]))


def shrink(a, row, order, oracle, edges, required):
    for b in [b for b in order if b in blanket(a, edges)]:
        if frozenset([a, b]) in required:
            continue
        # A blanket is tested without b itself, else b would explain itself away.
        if oracle.says_independent(a, b, assignment(row, blanket(a, edges) - {b})):
            edges.remove(frozenset([a, b]))


def naive_cspc(
    rows,
    counts,
    n_levels,
    *,
    alpha=0.05,
    test="pearson",
    order=None,
    max_condition=None,
    required=(),
    forbidden=(),
    undecided="independent",
    effect=0.3,
):
    """Run PC in each context alone.

    Return the edge sets (frozensets of positions i < j), the number of questions, that of distinct ones.
    """
    rows = [tuple(int(code) for code in row) for row in rows]
    order = list(range(len(n_levels))) if order is None else list(order)
    oracle = NaiveOracle(rows, counts, n_levels, undecided, test=test, alpha=alpha, effect=effect)
    required = {frozenset(edge) for edge in required}
    forbidden = {frozenset(edge) for edge in forbidden}
    most = len(n_levels) if max_condition is None else max_condition
    graphs = [learn_pc(row, order, oracle, required, forbidden, most) for row in rows]
    return graphs, oracle.n_tests, len(oracle.answers)


def learn_pc(row, order, oracle, required, forbidden, max_condition):
    """Run PC on one context: from all edges that are allowed, those found independent go one by one."""
    near = {a: {b for b in order if b != a and frozenset([a, b]) not in forbidden} for a in order}
    k = 0
    while k <= max_condition and any(len(near[a]) - 1 >= k for a in order):
        for a in order:
            for b in order:
                # Looked at when b's turn comes, whatever near[a] was before.
                if b in near[a] and frozenset([a, b]) not in required:
                    ask_given_neighbours(a, b, k, row, order, oracle, near)
        k += 1
    return as_pairs({frozenset([a, b]) for a in order for b in near[a]})


def ask_given_neighbours(a, b, k, row, order, oracle, near):
    for chosen in combinations([w for w in order if w in near[a] and w != b], k):
        if oracle.says_independent(a, b, assignment(row, chosen)):
            near[a].remove(b)
            near[b].remove(a)
            return


def blanket(a, edges):
    return {b for edge in edges if a in edge for b in edge if b != a}


def assignment(row, positions):
    return {position: row[position] for position in positions}


def as_pairs(edges):
    return frozenset(tuple(sorted(edge)) for edge in edges)


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
