"""Rows grouped into strata, and tables of two variables counted and pooled over them."""

import math
from typing import Any, NamedTuple

import numpy as np

from unless.kernels.compiling import borrowed, compiled, inlined

# Beyond this many rows a stratum is sorted by counting; below it, by insertion.
_SHORT = 16


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
    codes, counts = borrowed(columns.codes[variable]), borrowed(columns.counts)
    rows, starts, old_lone = borrowed(strata.rows), borrowed(strata.starts), borrowed(strata.lone)
    to_rows, to_starts, lone = borrowed(work.rows), borrowed(work.starts), borrowed(work.lone)
    buckets, spare = borrowed(work.buckets), borrowed(work.spare)
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
def count_stratum(first, last, rows, counts, codes_a, codes_b, n_b, cells, margins, seen):
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
def clear(n_first, n_second, n_b, cells, margins, seen):
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
    codes, counts = borrowed(columns.codes), borrowed(columns.counts)
    rows, starts = borrowed(strata.rows), borrowed(strata.starts)
    cells, margins, seen = borrowed(work.cells), borrowed(work.margins), borrowed(work.seen)
    for question in range(pairs.shape[0]):
        # Asked from either side, a question has the same answer to the last bit.
        a, b = min(pairs[question, 0], pairs[question, 1]), max(pairs[question, 0], pairs[question, 1])
        n_b = columns.n_used[b]
        codes_a, codes_b = borrowed(codes[a]), borrowed(codes[b])
        is_small = columns.n_used[a] == 2 and n_b == 2
        pooled, freedom, n_rows = 0.0, 0, 0
        for stratum in range(starts.shape[0] - 1):
            first, last = starts[stratum], starts[stratum + 1]
            if is_small:
                n_first, n_second, total = _fill_two_by_two(
                    first, last, rows, counts, codes_a, codes_b, cells, margins, seen
                )
            else:
                n_first, n_second, total = count_stratum(
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
                        if not likelihood_ratio:
                            statistic += (observed - expected) * (observed - expected) / expected
                        elif observed > 0.0:
                            statistic += 2.0 * observed * math.log(observed / expected)
                # Rounding may leave a perfectly independent table slightly below zero.
                pooled += max(statistic, 0.0)
            clear(n_first, n_second, n_b, cells, margins, seen)
        statistics[question], freedoms[question], used[question] = pooled, freedom, n_rows
