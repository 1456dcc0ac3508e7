"""Margaritis's Bayesian test of one variable and many others, pooled over strata."""

import math

import numpy as np

from unless.kernels.compiling import borrowed, compiled, inlined
from unless.kernels.strata import clear, count_stratum, refine

_LOG_2 = math.log(2.0)
# Odds below exp(-9) are added by a series, above exp(30) they are their own logarithm to the last digit.
_FAINT, _STRONG = -9.0, 30.0


@inlined
def _log_factorial(k, log_factorials):
    return log_factorials[k] if k < log_factorials.shape[0] else math.lgamma(k + 1.0)


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


@compiled
def _weigh(codes_a, counts, rows, starts, n_strata, weights, with_a, totals, sums):
    """Write what each row is worth, and what it is worth if a has its second level; sum both by stratum."""
    for stratum in range(n_strata):
        total, ones = 0, 0
        for i in range(starts[stratum], starts[stratum + 1]):
            row = rows[i]
            weight = counts[row]
            weights[i] = weight
            with_a[i] = weight & -np.int64(codes_a[row] == 1)
            total += weight
            ones += with_a[i]
        totals[stratum], sums[stratum] = total, ones


@inlined
def _odds_of_two_levels(codes_b, rows, starts, n_strata, weights, with_a, totals, sums, by_size, table, out):
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
def _odds_of_levels(
    low, high, n_high, rows, counts, starts, n_strata, by_size, table, cells, margins, seen, out
):
    """Write log h / g of each stratum, whatever the levels."""
    for stratum in range(n_strata):
        n_first, n_second, _ = count_stratum(
            starts[stratum], starts[stratum + 1], rows, counts, low, high, n_high, cells, margins, seen
        )
        evidence = 0.0
        for i in range(n_first):
            x = seen[0, i]
            evidence -= _log_factorial(margins[0, x], table)
            for j in range(n_second):
                evidence += _log_factorial(cells[x * n_high + seen[1, j]], table)
        for j in range(n_second):
            evidence -= _log_factorial(margins[1, seen[1, j]], table)
        out[stratum] = by_size[stratum] + evidence
        clear(n_first, n_second, n_high, cells, margins, seen)


@inlined
def _pool(log_ratios, n_ratios, n_ones, prior_odds):
    """Log Pr(independent) and log Pr(dependent) from log h / g of each stratum; `n_ones` more are zero."""
    deficit, product = n_ones * math.log1p(math.exp(prior_odds)), 1.0
    top = prior_odds if n_ones > 0 else -np.inf
    for k in range(n_ratios):
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
    deficit += math.log(product)
    if deficit > _LOG_2:
        return -deficit, math.log1p(-math.exp(-deficit))
    if deficit > 1e-300:
        return -deficit, math.log(-math.expm1(-deficit))
    # Where the probability of independence rounds to one, that of dependence is the sum of the odds.
    shares = 0.0
    for k in range(n_ratios):
        shares += math.exp(log_ratios[k] + prior_odds - top)
    return -deficit, top + math.log(shares)


@compiled
def _judge(a, others, columns, rows, starts, lone, n_strata, n_lone, n_ones, desk, independent, dependent):
    codes, counts = borrowed(columns.codes), borrowed(columns.counts)
    n_used, n_levels = borrowed(columns.n_used), borrowed(columns.n_levels)
    table, rows, starts, lone = (
        borrowed(columns.log_factorials),
        borrowed(rows),
        borrowed(starts),
        borrowed(lone),
    )
    cells, margins, seen = borrowed(desk.cells), borrowed(desk.margins), borrowed(desk.seen)
    weights, with_a = borrowed(desk.weights[0]), borrowed(desk.weights[1])
    totals, sums = borrowed(desk.sums[0]), borrowed(desk.sums[1])
    ratios, by_size = borrowed(desk.log_ratios[0]), borrowed(desk.log_ratios[1])
    # Each of K strata is independent with prior 2^(-1/K), so that all of them are with prior 1/2.
    log_prior = -_LOG_2 / (n_strata + n_lone + n_ones)
    prior_odds = math.log(-math.expm1(log_prior)) - log_prior
    _weigh(codes[a], counts, rows, starts, n_strata, weights, with_a, totals, sums)
    known_size = -1
    for question in range(others.shape[0]):
        b = others[question]
        if n_levels[b] != known_size:
            known_size = n_levels[b]
            for stratum in range(n_strata):
                by_size[stratum] = _log_ratio_of_sizes(n_levels[a], known_size, totals[stratum], table)
            for k in range(n_lone):
                # A row alone fills one cell: its factorial stands once above and twice below.
                by_levels = _log_ratio_of_sizes(n_levels[a], known_size, lone[k], table)
                by_size[n_strata + k] = by_levels - _log_factorial(lone[k], table)
        if n_used[a] == 2 and n_used[b] == 2:
            codes_b = borrowed(codes[b])
            _odds_of_two_levels(
                codes_b, rows, starts, n_strata, weights, with_a, totals, sums, by_size, table, ratios
            )
        else:
            # Asked from either side, a question has the same answer to the last bit.
            low, high, n_high = borrowed(codes[min(a, b)]), borrowed(codes[max(a, b)]), n_used[max(a, b)]
            _odds_of_levels(
                low,
                high,
                n_high,
                rows,
                counts,
                starts,
                n_strata,
                by_size,
                table,
                cells,
                margins,
                seen,
                ratios,
            )
        for k in range(n_lone):
            ratios[n_strata + k] = by_size[n_strata + k]
        independent[question], dependent[question] = _pool(ratios, n_strata + n_lone, n_ones, prior_odds)


@compiled
def bayesian(a, others, columns, strata, desk, independent, dependent):
    """Write log Pr(independent) and log Pr(dependent) of a and each other, given what makes the strata."""
    rows, starts, lone = strata.rows, strata.starts, strata.lone
    n_strata, n_lone, n_ones = starts.shape[0] - 1, lone.shape[0], strata.n_ones
    _judge(a, others, columns, rows, starts, lone, n_strata, n_lone, n_ones, desk, independent, dependent)


@compiled
def bayesian_refined(variable, a, others, columns, strata, desk, independent, dependent):
    """Do the same given one more variable."""
    _, n_strata, n_lone, n_ones = refine(variable, columns, strata, desk)
    rows, starts, lone = desk.rows, desk.starts, desk.lone
    _judge(a, others, columns, rows, starts, lone, n_strata, n_lone, n_ones, desk, independent, dependent)
