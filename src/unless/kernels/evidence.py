"""Margaritis's Bayesian test of one variable and many others, pooled over strata."""

import math

import numpy as np

from unless.kernels.compiling import borrowed, compiled, helper, inlined
from unless.kernels.strata import clear, count_stratum, refine

_LOG_2 = math.log(2.0)
# Odds below exp(-9) are added by a series, above exp(30) they are their own logarithm to the last digit.
_FAINT, _STRONG = -9.0, 30.0


@inlined
def _log_factorial(k, log_factorials):
    # Unsigned: numba looks twice at an index that might be negative.
    return log_factorials[np.uint64(k)] if k < log_factorials.shape[0] else math.lgamma(k + 1.0)


@inlined
def _log_ratio_of_sizes(n_a, n_b, total, table):
    """Log of h / g but for the factorials of the counts, which the caller adds."""
    n_cells = n_a * n_b
    by_levels = _log_factorial(n_a - 1, table) + _log_factorial(n_b - 1, table)
    by_total = _log_factorial(n_a + total - 1, table) + _log_factorial(n_b + total - 1, table)
    # Symmetric in a and b to the last bit.
    return (_log_factorial(n_cells - 1, table) - by_levels) + (
        by_total - _log_factorial(n_cells + total - 1, table)
    )


@helper
def _keep_varying(
    codes_a, counts, rows, starts, n_strata, to_rows, to_starts, weights, with_a, totals, sums, still
):
    """Keep the strata in which a varies, and of the others their totals; return how many of each.

    Where a does not vary, no other variable can tell anything about it: log h / g depends on the total only.
    """
    n_kept, n_still, n_rows = 0, 0, 0
    to_starts[0] = 0
    for stratum in range(n_strata):
        first, last = starts[stratum], starts[stratum + 1]
        code = codes_a[rows[first]]
        total, ones, varies = 0, 0, 0
        k = n_rows
        for i in range(first, last):
            row = rows[i]
            weight = counts[row]
            to_rows[k] = row
            weights[k] = weight
            # What the row is worth if a has its second level: read only where it has no third.
            with_a[k] = weight & -np.int64(codes_a[row] == 1)
            total += weight
            ones += with_a[k]
            varies |= codes_a[row] != code
            k += 1
        if varies:
            n_rows = k
            totals[n_kept], sums[n_kept] = total, ones
            n_kept += 1
            to_starts[n_kept] = n_rows
        else:
            still[n_still] = total
            n_still += 1
    return n_kept, n_still


@inlined
def _ratios_of_two_levels(
    codes_b, rows, starts, n_strata, weights, with_a, totals, sums, by_size, table, out
):
    """Write log h / g of each stratum where both variables show two levels."""
    for stratum in range(n_strata):
        second, both = 0, 0
        for i in range(starts[stratum], starts[stratum + 1]):
            mask = -np.int64(codes_b[rows[i]])
            second += weights[i] & mask
            both += with_a[i] & mask
        first, total = sums[stratum], totals[stratum]
        # Symmetric in a and b to the last bit.
        cells = (_log_factorial(both, table) + _log_factorial(total - first - second + both, table)) + (
            _log_factorial(first - both, table) + _log_factorial(second - both, table)
        )
        margins = (_log_factorial(first, table) + _log_factorial(total - first, table)) + (
            _log_factorial(second, table) + _log_factorial(total - second, table)
        )
        out[stratum] = by_size[stratum] + (cells - margins)


@inlined
def _ratios_of_levels(
    low, high, n_high, rows, counts, starts, n_strata, by_size, table, cells, margins, seen, out
):
    """Write log h / g of each stratum, whatever the levels."""
    for stratum in range(n_strata):
        n_first, n_second, _ = count_stratum(
            starts[stratum], starts[stratum + 1], rows, counts, low, high, n_high, cells, margins, seen
        )
        evidence, by_row, by_column = 0.0, 0.0, 0.0
        for i in range(n_first):
            x = seen[0, i]
            by_row += _log_factorial(margins[0, x], table)
            for j in range(n_second):
                evidence += _log_factorial(cells[x * n_high + seen[1, j]], table)
        for j in range(n_second):
            by_column += _log_factorial(margins[1, seen[1, j]], table)
        out[stratum] = by_size[stratum] + (evidence - (by_row + by_column))
        clear(n_first, n_second, n_high, cells, margins, seen)


@inlined
def _add_up(log_ratios, begin, end, prior_odds):
    """Sum log(1 + odds) over strata; return the largest log odds too."""
    deficit, product, top = 0.0, 1.0, -np.inf
    for k in range(begin, end):
        x = log_ratios[k] + prior_odds
        top = max(top, x)
        if x < _FAINT:
            odds = math.exp(x)
            deficit += odds * (1.0 - odds * (0.5 - odds * (1.0 / 3.0)))
        elif x > _STRONG:
            deficit += x + math.exp(-x)
        else:
            # One logarithm serves many strata.
            product *= 1.0 + math.exp(x)
            if product > 1e250:
                deficit += math.log(product)
                product = 1.0
    return deficit + math.log(product), top


@helper
def _sum_of_exps(log_ratios, begin, end, shift):
    """Sum exp(log ratio + shift)."""
    total = 0.0
    for k in range(begin, end):
        total += math.exp(log_ratios[k] + shift)
    return total


@inlined
def _log_of_rest(deficit):
    """Log of 1 - exp(-deficit), without losing digits at either end."""
    return math.log1p(-math.exp(-deficit)) if deficit > _LOG_2 else math.log(-math.expm1(-deficit))


@inlined
def _write_sizes(n_a, n_b, totals, n_kept, still, n_still, lone, n_lone, table, by_size):
    """Write what log h / g owes to the size of a stratum; of strata in which a does not vary, all of it."""
    for stratum in range(n_kept):
        by_size[stratum] = _log_ratio_of_sizes(n_a, n_b, totals[stratum], table)
    # One row of the table holds everything: its factorial stays below, the other ones cancel.
    for k in range(n_still):
        size = _log_ratio_of_sizes(n_a, n_b, still[k], table)
        by_size[n_kept + k] = size - _log_factorial(still[k], table)
    for k in range(n_lone):
        size = _log_ratio_of_sizes(n_a, n_b, lone[k], table)
        by_size[n_kept + n_still + k] = size - _log_factorial(lone[k], table)


@helper
def _judge(a, others, columns, rows, starts, lone, n_strata, n_lone, n_ones, work, independent, dependent):
    codes, counts = borrowed(columns.codes), borrowed(columns.counts)
    n_used, n_levels, table = columns.n_used, columns.n_levels, borrowed(columns.log_factorials)
    cells, margins, seen = borrowed(work.cells), borrowed(work.margins), borrowed(work.seen)
    weights, with_a = borrowed(work.weights[0]), borrowed(work.weights[1])
    totals, sums, still = borrowed(work.sums[0]), borrowed(work.sums[1]), borrowed(work.still)
    ratios, by_size = borrowed(work.log_ratios[0]), borrowed(work.log_ratios[1])
    kept, ends = borrowed(work.spare), borrowed(work.kept_starts)
    # Each of K strata is independent with prior 2^(-1/K), so that all of them are with prior 1/2.
    log_prior = -_LOG_2 / (n_strata + n_lone + n_ones)
    prior_odds = math.log(-math.expm1(log_prior)) - log_prior
    n_kept, n_still = _keep_varying(
        codes[a], counts, rows, starts, n_strata, kept, ends, weights, with_a, totals, sums, still
    )
    n_all = n_kept + n_still + n_lone
    known_size, rest_deficit, rest_top = -1, 0.0, 0.0
    for question in range(others.shape[0]):
        b = others[question]
        if n_levels[b] != known_size:
            known_size = n_levels[b]
            _write_sizes(
                n_levels[a], known_size, totals, n_kept, still, n_still, lone, n_lone, table, by_size
            )
            rest_deficit, rest_top = _add_up(by_size, n_kept, n_all, prior_odds)
            # A row alone that is worth one tells nothing: h and g are the same.
            rest_deficit += n_ones * math.log1p(math.exp(prior_odds))
        if n_used[a] == 2 and n_used[b] == 2:
            codes_b = borrowed(codes[b])
            _ratios_of_two_levels(
                codes_b, kept, ends, n_kept, weights, with_a, totals, sums, by_size, table, ratios
            )
        else:
            # Asked from either side, a question has the same answer but for the order of the sum.
            low, high, n_high = borrowed(codes[min(a, b)]), borrowed(codes[max(a, b)]), n_used[max(a, b)]
            _ratios_of_levels(
                low, high, n_high, kept, counts, ends, n_kept, by_size, table, cells, margins, seen, ratios
            )
        deficit, top = _add_up(ratios, 0, n_kept, prior_odds)
        deficit += rest_deficit
        independent[question] = -deficit
        if deficit > 1e-300:
            dependent[question] = _log_of_rest(deficit)
        else:
            # Where the probability of independence rounds to one, that of dependence is the sum of the odds.
            top = max(top, rest_top)
            shares = _sum_of_exps(ratios, 0, n_kept, prior_odds - top)
            shares += _sum_of_exps(by_size, n_kept, n_all, prior_odds - top)
            dependent[question] = top + math.log(shares)


@compiled
def bayesian(a, others, columns, strata, work, independent, dependent):
    """Write log Pr(independent) and log Pr(dependent) of a and each other, given what makes the strata."""
    rows, starts, lone = strata.rows, strata.starts, strata.lone
    n_strata, n_lone, n_ones = starts.shape[0] - 1, lone.shape[0], strata.n_ones
    _judge(a, others, columns, rows, starts, lone, n_strata, n_lone, n_ones, work, independent, dependent)


@compiled
def bayesian_refined(variable, a, others, columns, strata, work, independent, dependent):
    """Do the same given one more variable."""
    _, n_strata, n_lone, n_ones = refine(variable, columns, strata, work)
    rows, starts, lone = work.rows, work.starts, work.lone
    _judge(a, others, columns, rows, starts, lone, n_strata, n_lone, n_ones, work, independent, dependent)
