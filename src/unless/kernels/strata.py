"""Rows grouped into strata; tables of two variables counted in them, and their statistics summed up.

Chi-square statistics of pairs, and Margaritis's Bayesian test of one variable and many others.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from unless.kernels.answers import cell_term
from unless.kernels.compiling import compiled, exp, helper, inlined, log, without_refcount

# Beyond this many rows a stratum is sorted by counting; below it, by insertion.
_SHORT = 16
_LOG_2 = log(2.0)
# Odds below exp(-9) are added by a series, above exp(30) they are their own logarithm to the last digit.
_FAINT, _STRONG = -9.0, 30.0


class StrataColumns(NamedTuple):
    """Distinct rows by columns; codes number the levels that occur, without gaps."""

    codes: Any  # uint16 (variables, rows)
    counts: Any  # int64: what each row is worth
    n_used: Any  # int64: the levels of each variable that occur
    n_levels: Any  # int64: the levels of each variable that its prior knows
    log_factorials: Any  # float64: of 0, 1, 2, ...


class RowGroups(NamedTuple):
    """The rows that agree in some variables, grouped. A row alone in its stratum is kept as its count.

    Numbers of rows are unsigned: numba looks twice at an index that might be negative.
    """

    rows: Any  # uint32: the rows of strata of two or more, stratum by stratum
    starts: Any  # uint32: where each stratum begins, and the end of the last
    lone: Any  # int64: the counts above one of rows that are alone
    n_ones: int  # how many more rows are alone, worth one each


class StrataWorkspace(NamedTuple):
    """Buffers to work in, owned by the caller."""

    rows: Any  # uint32 (rows)
    starts: Any  # uint32 (rows + 1)
    lone: Any  # int64 (rows)
    buckets: Any  # int64 (most levels + 1)
    spare: Any  # uint32 (rows)
    kept_starts: Any  # uint32 (rows + 1)
    still: Any  # int64 (rows)
    weights: Any  # int64 (2, rows)
    sums: Any  # int64 (2, rows)
    log_ratios: Any  # float64 (2, rows)
    cells: Any  # int64 (most levels squared), all zero
    margins: Any  # int64 (2, most levels), all zero
    seen: Any  # int64 (2, most levels)


@inlined
def _sort_by_code(first, last, codes, n_used, rows, begin, to_rows, buckets):
    """Write the rows of a stratum to another place, sorted by their codes and else in their order."""
    size = np.int64(last) - np.int64(first)
    if size <= _SHORT:
        for i in range(size):
            row = rows[np.int64(first) + i]
            code = codes[row]
            k = begin + i
            while k > begin and codes[to_rows[k - 1]] > code:
                to_rows[k] = to_rows[k - 1]
                k -= 1
            to_rows[k] = row
        return
    for code in range(n_used + 1):
        buckets[code] = 0
    for i in range(first, last):
        buckets[codes[rows[i]] + 1] += 1
    for code in range(n_used):
        buckets[code + 1] += buckets[code]
    for i in range(first, last):
        row = rows[i]
        code = codes[row]
        to_rows[begin + buckets[code]] = row
        buckets[code] += 1


@inlined
def _split_in_two(first, last, codes, rows, begin, to_rows, spare):
    """Do the same where there are two codes; return how many rows have the first."""
    n_zeros, n_ones = 0, 0
    for i in range(first, last):
        row = rows[i]
        code = np.int64(codes[row])
        # Written to both places and kept in one: no branch to guess.
        to_rows[begin + n_zeros] = row
        spare[n_ones] = row
        n_zeros += 1 - code
        n_ones += code
    for i in range(n_ones):
        to_rows[begin + n_zeros + i] = spare[i]
    return n_zeros


@compiled
def refine(variable, columns, strata, work):
    """Write to the workspace the strata cut by one more variable.

    Return how many rows, strata, lone rows and ones there are.
    """
    codes, counts = without_refcount((columns.codes[variable], columns.counts))
    rows, starts, old_lone = without_refcount((strata.rows, strata.starts, strata.lone))
    to_rows, to_starts, lone = without_refcount((work.rows, work.starts, work.lone))
    buckets, spare = without_refcount((work.buckets, work.spare))
    n_used = columns.n_used[variable]
    n_lone = old_lone.shape[0]
    for i in range(n_lone):
        lone[i] = old_lone[i]
    n_ones, n_rows, n_strata = strata.n_ones, 0, 0
    to_starts[0] = 0
    for stratum in range(starts.shape[0] - 1):
        first, last = starts[stratum], starts[stratum + 1]
        # Written behind what is kept so far, which is never more than what was read.
        read, end = n_rows, n_rows + np.int64(last) - np.int64(first)
        n_first = 0
        if n_used == 2:
            n_first = _split_in_two(first, last, codes, rows, n_rows, to_rows, spare)
        else:
            _sort_by_code(first, last, codes, n_used, rows, n_rows, to_rows, buckets)
        while read < end:
            begin = read
            if n_used == 2:
                read = begin + n_first if n_first > 0 else end
                n_first = 0
            else:
                code = codes[to_rows[begin]]
                while read < end and codes[to_rows[read]] == code:
                    read += 1
            if read - begin == 1:
                worth = counts[to_rows[begin]]
                if worth == 1:
                    n_ones += 1
                else:
                    lone[n_lone] = worth
                    n_lone += 1
                continue
            if n_rows < begin:
                for i in range(read - begin):
                    to_rows[n_rows + i] = to_rows[begin + i]
            n_rows += read - begin
            n_strata += 1
            to_starts[n_strata] = n_rows
    return n_rows, n_strata, n_lone, n_ones


@inlined
def _count_stratum(first, last, rows, counts, codes_a, codes_b, n_b, cells, margins, seen):
    """Fill cells and margins from a stratum; return the levels seen on either side and the total."""
    n_first, n_second, total = 0, 0, 0
    for i in range(first, last):
        row = rows[i]
        count = counts[row]
        x, y = np.int64(codes_a[row]), np.int64(codes_b[row])
        cells[x * n_b + y] += count
        if margins[0, x] == 0:
            seen[0, n_first] = x
            n_first += 1
        margins[0, x] += count
        if margins[1, y] == 0:
            seen[1, n_second] = y
            n_second += 1
        margins[1, y] += count
        total += count
    return n_first, n_second, total


@inlined
def _fill_two_by_two(first, last, rows, counts, codes_a, codes_b, cells, margins, seen):
    """Do the same for two levels on both sides, without touching memory in the loop."""
    total, with_a, with_b, with_both = 0, 0, 0, 0
    for i in range(first, last):
        row = rows[i]
        count = counts[row]
        mask_a, mask_b = -np.int64(codes_a[row]), -np.int64(codes_b[row])
        total += count
        with_a += count & mask_a
        with_b += count & mask_b
        with_both += count & mask_a & mask_b
    cells[0], cells[1] = total - with_a - with_b + with_both, with_b - with_both
    cells[2], cells[3] = with_a - with_both, with_both
    margins[0, 0], margins[0, 1] = total - with_a, with_a
    margins[1, 0], margins[1, 1] = total - with_b, with_b
    for side in range(2):
        seen[side, 0] = 0 if margins[side, 0] > 0 else 1
        seen[side, 1] = 1
    return 1 + (0 < with_a < total), 1 + (0 < with_b < total), total


@inlined
def _clear(n_first, n_second, n_b, cells, margins, seen):
    """Set to zero what was counted."""
    for i in range(n_first):
        x = seen[0, i]
        margins[0, x] = 0
        for j in range(n_second):
            cells[x * n_b + seen[1, j]] = 0
    for j in range(n_second):
        margins[1, seen[1, j]] = 0


@compiled
def chi_square(pairs, columns, strata, likelihood_ratio, work, statistics, freedoms, used):
    """Write for each pair its statistic and degrees of freedom, summed over strata, and the rows they use."""
    codes, counts = without_refcount((columns.codes, columns.counts))
    rows, starts = without_refcount((strata.rows, strata.starts))
    cells, margins, seen = without_refcount((work.cells, work.margins, work.seen))
    for question in range(pairs.shape[0]):
        # Asked from either side, a question has the same answer to the last bit.
        a, b = min(pairs[question, 0], pairs[question, 1]), max(pairs[question, 0], pairs[question, 1])
        n_b = columns.n_used[b]
        codes_a, codes_b = without_refcount((codes[a], codes[b]))
        is_small = columns.n_used[a] == 2 and n_b == 2
        pooled, freedom, n_rows = 0.0, 0, 0
        for stratum in range(starts.shape[0] - 1):
            first, last = starts[stratum], starts[stratum + 1]
            if is_small:
                n_first, n_second, total = _fill_two_by_two(
                    first, last, rows, counts, codes_a, codes_b, cells, margins, seen
                )
            else:
                n_first, n_second, total = _count_stratum(
                    first, last, rows, counts, codes_a, codes_b, n_b, cells, margins, seen
                )
            if n_first > 1 and n_second > 1:
                freedom += (n_first - 1) * (n_second - 1)
                n_rows += total
                statistic = 0.0
                for i in range(n_first):
                    for j in range(n_second):
                        x, y = seen[0, i], seen[1, j]
                        expected = float(margins[0, x]) * float(margins[1, y]) / total
                        observed = float(cells[x * n_b + y])
                        statistic += cell_term(observed, expected, likelihood_ratio)
                # Rounding may leave a perfectly independent table slightly below zero.
                pooled += max(statistic, 0.0)
            _clear(n_first, n_second, n_b, cells, margins, seen)
        statistics[question], freedoms[question], used[question] = pooled, freedom, n_rows


# ---------------------------------------------------------------------- the Bayesian test


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
        n_first, n_second, _ = _count_stratum(
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
        _clear(n_first, n_second, n_high, cells, margins, seen)


@inlined
def _add_up(log_ratios, begin, end, prior_odds):
    """Sum log(1 + odds) over strata; return the largest log odds too."""
    deficit, product, top = 0.0, 1.0, -np.inf
    for k in range(begin, end):
        x = log_ratios[k] + prior_odds
        top = max(top, x)
        if x < _FAINT:
            odds = exp(x)
            deficit += odds * (1.0 - odds * (0.5 - odds * (1.0 / 3.0)))
        elif x > _STRONG:
            deficit += x + exp(-x)
        else:
            # One logarithm serves many strata.
            product *= 1.0 + exp(x)
            if product > 1e250:
                deficit += log(product)
                product = 1.0
    return deficit + log(product), top


@helper
def _sum_of_exps(log_ratios, begin, end, shift):
    """Sum exp(log ratio + shift)."""
    total = 0.0
    for k in range(begin, end):
        total += exp(log_ratios[k] + shift)
    return total


@inlined
def _log_of_rest(deficit):
    """Log of 1 - exp(-deficit), without losing digits at either end."""
    return math.log1p(-exp(-deficit)) if deficit > _LOG_2 else log(-math.expm1(-deficit))


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
    codes, counts = without_refcount((columns.codes, columns.counts))
    n_used, n_levels, table = columns.n_used, columns.n_levels, without_refcount(columns.log_factorials)
    cells, margins, seen = without_refcount((work.cells, work.margins, work.seen))
    weights, with_a = without_refcount((work.weights[0], work.weights[1]))
    totals, sums, still = without_refcount((work.sums[0], work.sums[1], work.still))
    ratios, by_size = without_refcount((work.log_ratios[0], work.log_ratios[1]))
    kept, ends = without_refcount((work.spare, work.kept_starts))
    # Each of K strata is independent with prior 2^(-1/K), so that all of them are with prior 1/2.
    log_prior = -_LOG_2 / (n_strata + n_lone + n_ones)
    prior_odds = log(-math.expm1(log_prior)) - log_prior
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
            rest_deficit += n_ones * math.log1p(exp(prior_odds))
        if n_used[a] == 2 and n_used[b] == 2:
            codes_b = without_refcount(codes[b])
            _ratios_of_two_levels(
                codes_b, kept, ends, n_kept, weights, with_a, totals, sums, by_size, table, ratios
            )
        else:
            # Asked from either side, a question has the same answer but for the order of the sum.
            low, high = without_refcount((codes[min(a, b)], codes[max(a, b)]))
            n_high = n_used[max(a, b)]
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
            dependent[question] = top + log(shares)


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
