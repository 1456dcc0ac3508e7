"""The tests of GGS, literally: one row at a time, minimised by scipy, no pattern shared and nothing kept."""

import numpy as np
from scipy.optimize import minimize

from unless.independence.logistic import RIDGE, RIDGE_OF_INTERCEPT


def expanded(data):
    """Return every row as often as it was counted."""
    return np.repeat(data.rows.astype(int), data.counts, axis=0)


def order_of_levels(column, reference):
    """Return the levels a column shows, the reference first."""
    present = sorted(set(column.tolist()))
    first = reference if reference in present else present[0]
    return [first, *(level for level in present if level != first)]


def reference_level(rows, variable):
    """Return the most frequent level of the whole table."""
    return int(np.argmax(np.bincount(rows[:, variable])))


def design(rows, blanket, references):
    """Return a column of ones, then an indicator for each level but the reference; and whose each is."""
    columns, owners = [np.ones(len(rows))], [None]
    for variable in blanket:
        for level in order_of_levels(rows[:, variable], references[variable])[1:]:
            columns.append((rows[:, variable] == level).astype(float))
            owners.append((variable, level))
    return np.column_stack(columns), owners


def log_likelihood(weights, columns, target, levels):
    energy = np.column_stack([np.zeros(len(columns)), columns @ weights])
    shown = np.array([levels.index(level) for level in target])
    return (energy[np.arange(len(energy)), shown] - np.logaddexp.reduce(energy, axis=1)).sum()


def regress(rows, target, blanket, references):
    """Fit the target on a blanket; return weights (column x level), log-likelihood, owners and levels."""
    columns, owners = design(rows, blanket, references)
    levels = order_of_levels(rows[:, target], references[target])
    shape = columns.shape[1], len(levels) - 1
    ridge = np.full((shape[0], 1), RIDGE)
    ridge[0] = RIDGE_OF_INTERCEPT

    def loss(flat):
        weights = flat.reshape(shape)
        penalty = (ridge * weights**2).sum() / 2
        return penalty - log_likelihood(weights, columns, rows[:, target].tolist(), levels)

    if not shape[1]:
        return np.zeros(shape), 0.0, owners, levels
    found = minimize(loss, np.zeros(shape[0] * shape[1]), method="BFGS", options={"gtol": 1e-6})
    weights = found.x.reshape(shape)
    return weights, log_likelihood(weights, columns, rows[:, target].tolist(), levels), owners, levels


def drop(rows, target, blanket, variable, references):
    """Test by likelihood ratio that a variable of the blanket can be spared: statistic and df."""
    _, full, owners, levels = regress(rows, target, blanket, references)
    fewer = regress(rows, target, [b for b in blanket if b != variable], references)[1]
    n_columns = sum(owner is not None and owner[0] == variable for owner in owners)
    return max(0.0, 2 * (full - fewer)), n_columns * (len(levels) - 1)


def score(rows, target, blanket, variable, references):
    """Test by score that a variable adds nothing to a blanket: statistic and df."""
    weights, _, _, levels = regress(rows, target, blanket, references)
    columns, _ = design(rows, blanket, references)
    extra = design(rows, [variable], references)[0][:, 1:]
    n_free, n_rows = len(levels) - 1, len(rows)
    energy = np.column_stack([np.zeros(n_rows), columns @ weights])
    chances = np.exp(energy - np.logaddexp.reduce(energy, axis=1)[:, None])[:, 1:]
    everything = np.column_stack([columns, extra])
    slope = np.zeros(n_free * everything.shape[1])
    curve = np.zeros((len(slope), len(slope)))
    for row in range(n_rows):
        shown = np.array([rows[row, target] == level for level in levels[1:]], dtype=float)
        slope += np.kron(shown - chances[row], everything[row])
        spread = np.diag(chances[row]) - np.outer(chances[row], chances[row])
        curve += np.kron(spread, np.outer(everything[row], everything[row]))
    is_extra = np.tile(np.arange(everything.shape[1]) >= columns.shape[1], n_free)
    ridge = np.tile(np.r_[RIDGE_OF_INTERCEPT, np.full(columns.shape[1] - 1, RIDGE)], n_free)
    inside = curve[np.ix_(~is_extra, ~is_extra)] + np.diag(ridge)
    across = curve[np.ix_(is_extra, ~is_extra)]
    variance = curve[np.ix_(is_extra, is_extra)] - across @ np.linalg.solve(inside, across.T)
    sizes, axes = np.linalg.eigh(variance)
    kept = sizes > 1e-7 * max(1.0, curve[np.ix_(is_extra, is_extra)].diagonal().max())
    return float(((axes.T @ slope[is_extra])[kept] ** 2 / sizes[kept]).sum()), int(kept.sum())


def benjamini_hochberg(p_values):
    """Return q for each p: the least rate at which the procedure of 1995 would reject it."""
    n = len(p_values)
    return [
        min(
            1.0,
            min(n * other / sum(one <= other for one in p_values) for other in p_values if other >= p),
        )
        for p in p_values
    ]
