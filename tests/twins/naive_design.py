"""The design effect of a pair, row by row: the readable form of `independence/design_effects.py`."""

import numpy as np


def naive_design_effect(a, b, weights, clusters=None, strata=None):
    """Return the mean of the generalised design effects of a pair (Rao and Scott 1984), and that of weights.

    One row for each row of the table. The variance is that of sums over clusters, within strata; the first is
    divided by the design effect of the weights, which is never made up for.
    """
    weights = np.asarray(weights, dtype=float)
    n_a, n_b = a.max() + 1, b.max() + 1
    clusters = np.arange(len(a)) if clusters is None else clusters
    strata = np.zeros(len(a), dtype=int) if strata is None else strata
    kish = len(a) * (weights**2).sum() / weights.sum() ** 2
    weights = weights / weights.sum() * len(a) / kish
    total = weights.sum()
    p = np.array([weights[a == k].sum() for k in range(n_a)]) / total
    q = np.array([weights[b == m].sum() for m in range(n_b)]) / total
    effect = 0.0
    for k in range(n_a):
        for m in range(n_b):
            adds = ((a == k) - p[k]) * ((b == m) - q[m])
            adds = adds - (weights * adds).sum() / total
            variance = 0.0
            for stratum in np.unique(strata):
                inside = strata == stratum
                sums = [
                    (weights * adds)[inside & (clusters == one)].sum() for one in np.unique(clusters[inside])
                ]
                if len(sums) > 1:
                    variance += len(sums) * np.var(sums, ddof=1)
            effect += variance / (total * p[k] * q[m])
    df = (np.count_nonzero(p) - 1) * (np.count_nonzero(q) - 1)
    return max(effect / df, 1 / kish), kish
