"""Chi-square statistics pooled over strata, from one dense table.

Cells lie as (level of b, level of a, stratum): strata are neighbours, so that margins, expectations and terms
are loops over strata, which compile into vector instructions whatever the numbers of levels.
"""

import math

from unless.kernels.compiling import borrowed, helper, inlined

# Strata are judged in parts of so many: all that is known of a part stays in the fastest cache.
_PART = 128


@inlined
def _sum_up(cells, step, n_terms, sums, inverses, n_kept, n_z):
    """Sum cells in each stratum, write the inverse too, and count the sums that are not zero."""
    for z in range(n_z):
        sums[z] = float(cells[z])
    for term in range(1, n_terms):
        more = cells[term * step :]
        for z in range(n_z):
            sums[z] += float(more[z])
    for z in range(n_z):
        inverses[z] = 1.0 / sums[z] if sums[z] > 0.0 else 0.0
        n_kept[z] += 1.0 if sums[z] > 0.0 else 0.0


@inlined
def _sum_up_a(cells, n_a, n_b, step, of_a, inverse_a, kept_a, totals, over_totals, n_z):
    """Write the margins of a in some strata, and the totals and their inverses."""
    for z in range(n_z):
        kept_a[z], totals[z] = 0.0, 0.0
    for x in range(n_a):
        part = of_a[x * step :]
        _sum_up(cells[x * step :], n_a * step, n_b, part, inverse_a[x * step :], kept_a, n_z)
        for z in range(n_z):
            totals[z] += part[z]
    for z in range(n_z):
        over_totals[z] = 1.0 / totals[z] if totals[z] > 0.0 else 0.0


@inlined
def _add_pearson(cells, of_low, share, inverse_low, inverse_high, terms, n_z):
    for z in range(n_z):
        gap = float(cells[z]) - of_low[z] * share[z]
        terms[z] += gap * gap * (inverse_low[z] * inverse_high[z])


@inlined
def _add_ratio(cells, of_low, share, terms, n_z):
    for z in range(n_z):
        observed = float(cells[z])
        if observed > 0.0:
            terms[z] += observed * math.log(observed / (of_low[z] * share[z]))


@inlined
def _add_terms(cells, low, high, is_ratio, over_totals, share, terms, n_z):
    """Add what every cell contributes in some strata; a side is its levels, steps, sums and inverses."""
    n_low, low_cell, low_step, of_low, inverse_low = low
    n_high, high_cell, high_step, of_high, inverse_high = high
    for z in range(n_z):
        terms[z] = 0.0
    for j in range(n_high):
        in_high, over_high = of_high[j * high_step :], inverse_high[j * high_step :]
        for z in range(n_z):
            share[z] = in_high[z] * over_totals[z]
        for i in range(n_low):
            part, in_low = cells[i * low_cell + j * high_cell :], of_low[i * low_step :]
            if is_ratio:
                _add_ratio(part, in_low, share, terms, n_z)
            else:
                _add_pearson(part, in_low, share, inverse_low[i * low_step :], over_high, terms, n_z)


@inlined
def _keep_varying(kept_a, kept_b, scale, totals, terms, freedom, used, n_z):
    """Drop the terms of strata in which nothing varies; add the degrees of freedom and rows of the others."""
    for z in range(n_z):
        free = max(kept_a[z] - 1.0, 0.0) * max(kept_b[z] - 1.0, 0.0)
        # Rounding may leave a perfectly independent table slightly below zero.
        terms[z] = max(terms[z] * scale[z], 0.0) if free > 0.0 else 0.0
        freedom[z] += free
        used[z] += totals[z] if free > 0.0 else 0.0


@helper
def judge(a, b, n_a, n_b, n_z, cells, is_ratio, knows_a, work, answer):
    """Write statistic, df and rows used of one table; what concerns a may be known from the one before."""
    cells, work, answer = borrowed(cells), borrowed(work), borrowed(answer)
    all_totals, all_over, all_kept = work, work[n_z:], work[2 * n_z :]
    all_of_a, all_inverse_a = work[3 * n_z :], work[(3 + n_a) * n_z :]
    size = min(_PART, n_z)
    room = all_inverse_a[n_a * n_z :]
    freedom, used, kept_b, terms = room, room[size:], room[2 * size :], room[3 * size :]
    share, of_b, inverse_b = room[4 * size :], room[5 * size :], room[(5 + n_b) * size :]
    for z in range(size):
        freedom[z], used[z] = 0.0, 0.0
    statistic = 0.0
    for first in range(0, n_z, _PART):
        n = min(_PART, n_z - first)
        part, totals, over_totals, kept_a = (
            cells[first:],
            all_totals[first:],
            all_over[first:],
            all_kept[first:],
        )
        of_a, inverse_a = all_of_a[first:], all_inverse_a[first:]
        if not knows_a:
            _sum_up_a(part, n_a, n_b, n_z, of_a, inverse_a, kept_a, totals, over_totals, n)
        for z in range(n):
            kept_b[z] = 0.0
        for y in range(n_b):
            sums, inverses = of_b[y * size :], inverse_b[y * size :]
            _sum_up(part[y * n_a * n_z :], n_z, n_a, sums, inverses, kept_b, n)
        # Asked from either side, a question has the same answer to the last bit.
        low, high = (n_a, n_z, n_z, of_a, inverse_a), (n_b, n_a * n_z, size, of_b, inverse_b)
        if a > b:
            low, high = high, low
        _add_terms(part, low, high, is_ratio, over_totals, share, terms, n)
        scale = totals
        if is_ratio:
            scale = share
            for z in range(n):
                scale[z] = 2.0
        _keep_varying(kept_a, kept_b, scale, totals, terms, freedom, used, n)
        for z in range(n):
            statistic += terms[z]
    answer[0], answer[1], answer[2] = statistic, 0.0, 0.0
    for z in range(size):
        answer[1] += freedom[z]
        answer[2] += used[z]
