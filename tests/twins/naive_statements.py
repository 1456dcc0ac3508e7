"""Slow twins of what questions rest on: presence, and tests stratum by stratum."""

import math

import numpy as np
from scipy import stats


def presence(model, a, b):
    """Return, for each context of a canonical model, whether its graph has a link."""
    return [graph.has_edge(a, b) for _, graph in model]


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
