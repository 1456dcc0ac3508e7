"""From a counted table to an answer, by a critical value instead of a p-value."""

import math
from typing import Any, NamedTuple

from unless.kernels.compiling import helper, inlined, log

# 0 stands for "not asked yet".
UNDECIDED, INDEPENDENT, DEPENDENT = 1, 2, 3
PEARSON, LIKELIHOOD_RATIO, BAYESIAN = 0, 1, 2
# Some small tables are exact ties of the Bayesian test, and ties are independent whatever rounding makes
# of them.
_TIE = 2e-9
# So near to the critical value, as a share of the rows, a quick statistic is not trusted; rounding is less.
_MARGIN = 1e-7


class Rules(NamedTuple):
    """What counts as an answer, and what a blanket may hold."""

    critical: Any  # float64 by degrees of freedom: a larger statistic means dependent
    minimum_rows: Any  # int64 by degrees of freedom: with fewer rows "independent" is "undecided"
    test: int
    keep_undecided: bool
    max_blanket: int
    required: Any  # uint64 (variables, words): edges that are never removed
    forbidden: Any  # uint64 (variables, words): edges that are never asked about


@helper
def _log_evidence(cells, n_first, n_second, first_step, second_step, total):
    """Log of the Dirichlet evidence of counts, all parameters one."""
    n_cells = n_first * n_second
    evidence = math.lgamma(n_cells) - math.lgamma(n_cells + total)
    for i in range(n_first):
        for j in range(n_second):
            evidence += math.lgamma(1.0 + cells[i * first_step + j * second_step])
    return evidence


@inlined
def log_bayes_factor(buffers, n_a, n_b, total, flipped):
    """Log of the evidence of a table for dependence over that for independence, whatever its order.

    Its row totals are there already. Sums run as those of `decide`.
    """
    cells, totals, columns = buffers.cells, buffers.totals, buffers.columns
    for j in range(n_b):
        columns[j] = 0
        for i in range(n_a):
            columns[j] += cells[i * n_b + j]
    margins = _log_evidence(totals, n_a, 1, 1, 1, total) + _log_evidence(columns, n_b, 1, 1, 1, total)
    if flipped:
        return _log_evidence(cells, n_b, n_a, 1, n_b, total) - margins
    return _log_evidence(cells, n_a, n_b, n_b, 1, total) - margins


@inlined
def _quick_pearson(cells, n_a, n_b, totals, columns, inverses, total):
    """Return Pearson's statistic up to rounding: a division for a row or a column, not two for a cell."""
    for j in range(n_b):
        inverses[j] = 1.0 / columns[j] if columns[j] > 0 else 0.0
    shares = 0.0
    for i in range(n_a):
        if totals[i] > 0:
            row = 0.0
            for j in range(n_b):
                observed = float(cells[i * n_b + j])
                row += observed * observed * inverses[j]
            shares += row / totals[i]
    return total * (shares - 1.0)


@inlined
def cell_term(observed, expected, is_ratio):
    """Return what a cell adds to Pearson's statistic, or to the likelihood ratio."""
    if is_ratio:
        return 2.0 * observed * log(observed / expected) if observed > 0.0 else 0.0
    return (observed - expected) * (observed - expected) / expected


@helper
def _exact_statistic(cells, n_first, n_second, first_step, second_step, rows, others, total, test):
    statistic = 0.0
    for i in range(n_first):
        for j in range(n_second):
            expected = float(rows[i]) * float(others[j]) / total
            if expected > 0.0:
                observed = float(cells[i * first_step + j * second_step])
                statistic += cell_term(observed, expected, test != PEARSON)
    return statistic


@inlined
def decide(buffers, n_a, n_b, total, rules, flipped):
    """Answer from a table and its row totals; empty rows and columns carry no degrees of freedom.

    Sums run over the table's own order, or over that of its mirror image if it is `flipped`: asked from
    either side, a question has the same answer to the last bit.
    """
    cells, totals, columns = buffers.cells, buffers.totals, buffers.columns
    kept_a = 0
    for i in range(n_a):
        kept_a += totals[i] > 0
    kept_b = 0
    for j in range(n_b):
        column = 0
        for i in range(n_a):
            column += cells[i * n_b + j]
        columns[j] = column
        kept_b += column > 0
    freedom = (kept_a - 1) * (kept_b - 1)
    if kept_a == 0 or freedom == 0:
        return UNDECIDED
    critical, statistic, is_sure = rules.critical[freedom], 0.0, False
    if rules.test == PEARSON:
        statistic = _quick_pearson(cells, n_a, n_b, totals, columns, buffers.inverses, total)
        is_sure = abs(statistic - critical) > _MARGIN * (total + statistic)
    if not is_sure:
        n_first, n_second, first_step, second_step = n_a, n_b, n_b, 1
        rows, others = totals, columns
        if flipped:
            n_first, n_second, first_step, second_step = n_b, n_a, 1, n_b
            rows, others = columns, totals
        if rules.test == BAYESIAN:
            # One stratum and an even prior: independent unless the joint counts are the better evidence.
            ratio = log_bayes_factor(buffers, n_a, n_b, total, flipped)
            return INDEPENDENT if ratio <= _TIE else DEPENDENT
        statistic = _exact_statistic(
            cells, n_first, n_second, first_step, second_step, rows, others, total, rules.test
        )
    if statistic > critical:
        return DEPENDENT
    return INDEPENDENT if total >= rules.minimum_rows[freedom] else UNDECIDED
