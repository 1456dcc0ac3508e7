"""Chi-square statistics pooled over strata, from one dense table.

Cells lie as (level of b, level of a, stratum): strata are neighbours, so that margins, expectations and terms
are loops over strata, which compile into vector instructions whatever the numbers of levels.
"""

import math

from unless.kernels.compiling import borrowed, compiled, inlined


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
def _sum_up_a(cells, n_a, n_b, n_z, of_a, inverse_a, kept_a, totals):
    """Write the margins of a in every stratum, and the totals."""
    for z in range(n_z):
        kept_a[z], totals[z] = 0.0, 0.0
    for x in range(n_a):
        part = of_a[x * n_z :]
        _sum_up(cells[x * n_z :], n_a * n_z, n_b, part, inverse_a[x * n_z :], kept_a, n_z)
        for z in range(n_z):
            totals[z] += part[z]
    for z in range(n_z):
        # Nothing is expected in an empty stratum; dividing by one keeps it so.
        totals[z] = max(totals[z], 1.0)


@inlined
def _add_pearson(cells, of_a, of_b, inverse_a, inverse_b, totals, terms, n_z):
    for z in range(n_z):
        gap = float(cells[z]) - of_a[z] * of_b[z] / totals[z]
        terms[z] += gap * gap * (inverse_a[z] * inverse_b[z])


@inlined
def _add_ratio(cells, of_a, of_b, totals, terms, n_z):
    for z in range(n_z):
        observed = float(cells[z])
        if observed > 0.0:
            terms[z] += observed * math.log(observed / (of_a[z] * of_b[z] / totals[z]))


@compiled
def judge(a, b, n_a, n_b, n_z, cells, is_ratio, knows_a, work, answer):
    """Write statistic, df and rows used of one table; what concerns a may be known from the one before."""
    cells, work, answer = borrowed(cells), borrowed(work), borrowed(answer)
    totals, kept_a, kept_b, terms = work, work[n_z:], work[2 * n_z :], work[3 * n_z :]
    of_a = work[4 * n_z :]
    inverse_a = of_a[n_a * n_z :]
    of_b = inverse_a[n_a * n_z :]
    inverse_b = of_b[n_b * n_z :]
    if not knows_a:
        _sum_up_a(cells, n_a, n_b, n_z, of_a, inverse_a, kept_a, totals)
    for z in range(n_z):
        kept_b[z], terms[z] = 0.0, 0.0
    for y in range(n_b):
        _sum_up(cells[y * n_a * n_z :], n_z, n_a, of_b[y * n_z :], inverse_b[y * n_z :], kept_b, n_z)
    # Asked from either side, a question has the same answer to the last bit.
    n_low, n_high = (n_a, n_b) if a < b else (n_b, n_a)
    for low in range(n_low):
        for high in range(n_high):
            x, y = (low, high) if a < b else (high, low)
            part, in_a, in_b = cells[(y * n_a + x) * n_z :], of_a[x * n_z :], of_b[y * n_z :]
            if is_ratio:
                _add_ratio(part, in_a, in_b, totals, terms, n_z)
            else:
                _add_pearson(part, in_a, in_b, inverse_a[x * n_z :], inverse_b[y * n_z :], totals, terms, n_z)
    statistic, freedom, used = 0.0, 0.0, 0.0
    for z in range(n_z):
        if kept_a[z] > 1.0 and kept_b[z] > 1.0:
            # Rounding may leave a perfectly independent table slightly below zero.
            statistic += max(terms[z] * (2.0 if is_ratio else totals[z]), 0.0)
            freedom += (kept_a[z] - 1.0) * (kept_b[z] - 1.0)
            used += totals[z]
    answer[0], answer[1], answer[2] = statistic, freedom, used
