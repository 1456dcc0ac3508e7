"""Slow twins of what statements rest on: presence, one split of a gate, tests stratum by stratum."""

import math
from itertools import combinations

import numpy as np
from scipy import stats


def presence(model, a, b):
    """Return, for each context of a canonical model, whether its graph has a link."""
    return [graph.has_edge(a, b) for _, graph in model]


def all_splits(rows, variable):
    """Yield every way to cut the levels of a variable that occur into two sets."""
    levels = sorted(set(rows[:, variable].tolist()))
    for size in range(1, len(levels)):
        for first in combinations(levels, size):
            yield set(first)


def gini(linked, weights):
    """Return the disorder of weighted answers: the weight of a linked row met with an unlinked one."""
    total = sum(weights)
    on = sum(weight for answer, weight in zip(linked, weights, strict=True) if answer)
    return on * (total - on) / total if total else 0.0


def gain(rows, counts, linked, variable, first):
    """Return the share of all disorder that one question removes."""
    inside = [code in first for code in rows[:, variable].tolist()]
    left = 0.0
    for side in (True, False):
        chosen = [place for place, where in enumerate(inside) if where == side]
        left += gini([linked[place] for place in chosen], [int(counts[place]) for place in chosen])
    whole = gini(linked, counts.tolist())
    return (whole - left) / whole


def best_gain(rows, counts, linked, variables, least=0):
    """Return the largest gain of all questions to all variables that leave enough rows on both sides."""
    best = 0.0
    for variable in variables:
        for first in all_splits(rows, variable):
            inside = np.isin(rows[:, variable], list(first))
            if min(counts[inside].sum(), counts[~inside].sum()) >= least:
                best = max(best, gain(rows, counts, linked, variable, first))
    return best


def strata(data, a, b, given, inside=None):
    """Count two variables in every stratum, row by row: a dictionary from labels to tables."""
    tables = {}
    shape = tuple(len(data.domain[name].levels) for name in (a, b))
    for place, (row, count) in enumerate(zip(data.rows, data.counts, strict=True)):
        if inside is not None and not inside[place]:
            continue
        context = data.domain.decode(row)
        table = tables.setdefault(tuple(context[name] for name in given), np.zeros(shape, dtype=np.int64))
        table[data.domain[a].code(context[a]), data.domain[b].code(context[b])] += count
    return tables


def chi_square(tables):
    """Sum Pearson's statistics and df; return them with p and the rows of strata that vary."""
    statistic, df, rows_used = 0.0, 0, 0
    for table in tables:
        kept = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        if min(kept.shape) < 2:
            continue
        found = stats.chi2_contingency(kept, correction=False)
        statistic, df, rows_used = statistic + found.statistic, df + found.dof, rows_used + int(kept.sum())
    return statistic, df, stats.chi2.sf(statistic, df) if df else 1.0, rows_used


def conditional_information(tables):
    """Return sum_xyz p(x, y, z) log2 [p(x, y | z) / p(x | z) p(y | z)], cell by cell."""
    total = sum(int(table.sum()) for table in tables)
    bits = 0.0
    for table in (table.astype(object) for table in tables):
        n = table.sum()
        for i, j in np.ndindex(*table.shape):
            if table[i, j]:
                bits += (
                    table[i, j] / total * math.log2(table[i, j] * n / (table[i].sum() * table[:, j].sum()))
                )
    return bits


def mantel_haenszel(tables):
    """Return the pooled odds ratio and its 95 % interval by the formulas of Robins, Breslow and Greenland."""
    r = s = pr = ps_qr = qs = 0.0
    for table in tables:
        (a, b), (c, d) = table.tolist()
        n = a + b + c + d
        if not n:
            continue
        p, q, concordant, discordant = (a + d) / n, (b + c) / n, a * d / n, b * c / n
        r += concordant
        s += discordant
        pr += p * concordant
        ps_qr += p * discordant + q * concordant
        qs += q * discordant
    if not r or not s:
        return None
    error = math.sqrt(pr / (2 * r * r) + ps_qr / (2 * r * s) + qs / (2 * s * s))
    return (
        r / s,
        r / s * math.exp(-stats.norm.ppf(0.975) * error),
        r / s * math.exp(stats.norm.ppf(0.975) * error),
    )


def benjamini_hochberg(p_values):
    """Return q of each p: the smallest of p_(j) m / j over all j from its rank on."""
    ordered = sorted(p_values)
    m = len(ordered)
    return [min(1.0, *(ordered[j] * m / (j + 1) for j in range(m) if ordered[j] >= p), 1.0) for p in p_values]
