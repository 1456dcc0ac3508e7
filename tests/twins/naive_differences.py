"""The test of a difference, plainly: counts, and what they would be if all groups were linked alike."""

from itertools import product

import numpy as np
from scipy.stats import chi2


def fitted_alike(counts, n_rounds=2_000):
    """Scale ones until all margins of two of the three columns are those of the counts (a x b x group)."""
    fitted = np.ones(counts.shape)
    for _ in range(n_rounds):
        for axis in range(3):
            wanted, here = counts.sum(axis=axis, keepdims=True), fitted.sum(axis=axis, keepdims=True)
            fitted = fitted * np.where(here > 0, wanted / np.where(here > 0, here, 1), 0)
    return fitted


def naive_df(counts):
    """Count the cells that can have rows, less the rank of what the three margins fix."""
    shapes = counts.shape
    possible = [
        cell
        for cell in product(*map(range, shapes))
        if counts[cell[0], :, cell[2]].sum() and counts[:, cell[1], cell[2]].sum()
    ]
    columns = []
    for axis in range(3):
        rest = [one for one in range(3) if one != axis]
        for first, second in product(range(shapes[rest[0]]), range(shapes[rest[1]])):
            columns.append([cell[rest[0]] == first and cell[rest[1]] == second for cell in possible])
    return len(possible) - int(np.linalg.matrix_rank(np.array(columns, dtype=float)))


def naive_difference(counts):
    """Return the likelihood ratio, its degrees of freedom and p of a link that is another in each group."""
    fitted, seen = fitted_alike(counts), counts > 0
    value = 2 * float((counts[seen] * np.log(counts[seen] / fitted[seen])).sum())
    df = naive_df(counts)
    return value, df, float(chi2.sf(value, df)) if df else 1.0


def naive_q(p_values):
    """Benjamini and Yekutieli, by their definition: the least level at which each would be said."""
    p = sorted(p_values)
    n = len(p)
    harmonic = sum(1 / (k + 1) for k in range(n))
    return [min(1.0, min(p[k] * n * harmonic / (k + 1) for k in range(n) if p[k] >= one)) for one in p_values]
