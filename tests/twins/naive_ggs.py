"""The tests of GGS, literally: all rows, one by one; no pattern shared and nothing kept."""

from typing import NamedTuple

import numpy as np

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
    shown = np.argmax([target == level for level in levels], axis=0)
    return (energy[np.arange(len(energy)), shown] - np.logaddexp.reduce(energy, axis=1)).sum()


class Fitted(NamedTuple):
    """Weights (column x level) of a target, and all that follows from them."""

    weights: np.ndarray
    log_likelihood: float
    owners: list
    levels: list
    columns: np.ndarray
    chances: np.ndarray
    information: np.ndarray


def probabilities_of(weights, columns):
    """Return what weights expect of each row: the chance of each level but the first."""
    energy = np.column_stack([np.zeros(len(columns)), columns @ weights])
    return np.exp(energy - np.logaddexp.reduce(energy, axis=1)[:, None])[:, 1:]


def curve_of(chances, columns):
    """Return minus the second derivative of the log-likelihood, over levels and in each of them columns."""
    blocks = [
        [columns.T @ ((one * ((i == j) - other))[:, None] * columns) for j, other in enumerate(chances.T)]
        for i, one in enumerate(chances.T)
    ]
    return np.block(blocks)


def slope_of(chances, columns, target, levels):
    """Return the derivative of the log-likelihood, over levels and in each of them columns."""
    shown = np.column_stack([target == level for level in levels[1:]])
    return ((shown - chances).T @ columns).ravel()


def regress(rows, target, blanket, references):
    """Fit the target on a blanket by Newton's method, halving steps that go down."""
    columns, owners = design(rows, blanket, references)
    levels = order_of_levels(rows[:, target], references[target])
    shape = columns.shape[1], len(levels) - 1
    if not shape[1]:
        nothing = np.zeros((0, 0))
        return Fitted(np.zeros(shape), 0.0, owners, levels, columns, np.zeros((len(rows), 0)), nothing)
    ridge = np.r_[RIDGE_OF_INTERCEPT, np.full(shape[0] - 1, RIDGE)]
    shown = rows[:, target]

    def value(weights):
        return log_likelihood(weights, columns, shown, levels) - (ridge[:, None] * weights**2).sum() / 2

    weights, gain = np.zeros(shape), np.inf
    while gain > 1e-11:
        chances = probabilities_of(weights, columns)
        slope = slope_of(chances, columns, rows[:, target], levels) - (ridge[:, None] * weights).T.ravel()
        information = curve_of(chances, columns) + np.diag(np.tile(ridge, shape[1]))
        step = np.linalg.solve(information, slope)
        gain = slope @ step
        step = step.reshape(shape[::-1]).T
        while gain > 1e-11 and value(weights + step) < value(weights):
            step = step / 2
        weights = weights + step
    chances = probabilities_of(weights, columns)
    information = curve_of(chances, columns) + np.diag(np.tile(ridge, shape[1]))
    likelihood = log_likelihood(weights, columns, shown, levels)
    return Fitted(weights, likelihood, owners, levels, columns, chances, information)


def drop(rows, target, blanket, variable, references):
    """Test by likelihood ratio that a variable of the blanket can be spared: statistic and df."""
    full = regress(rows, target, blanket, references)
    return ratio(full, regress(rows, target, [b for b in blanket if b != variable], references), variable)


def ratio(full, fewer, variable):
    """Compare two regressions of which one lacks a variable: statistic and df."""
    n_columns = sum(owner is not None and owner[0] == variable for owner in full.owners)
    gained = max(0.0, 2 * (full.log_likelihood - fewer.log_likelihood))
    return gained, n_columns * (len(full.levels) - 1)


def score(rows, target, blanket, variable, references):
    """Test by score that a variable adds nothing to a blanket: statistic and df."""
    found = regress(rows, target, blanket, references)
    return score_of(found, rows[:, target], design(rows, [variable], references)[0][:, 1:])


def gate_score(rows, target, blanket, gate, levels, references):
    """Test by score that all columns but the gate's have the same weights at some levels as elsewhere."""
    found = regress(rows, target, blanket, references)
    places = [place for place, owner in enumerate(found.owners) if owner is None or owner[0] != gate]
    extra = [found.columns[:, place] * (rows[:, gate] == level) for level in levels for place in places]
    return score_of(found, rows[:, target], np.column_stack(extra))


def score_of(found, target, extra):
    """Test by score that columns add nothing to a regression: statistic and df."""
    if not found.weights.size or not extra.shape[1]:
        return 0.0, 0
    n_free, n_columns = len(found.levels) - 1, found.columns.shape[1]
    everything = np.column_stack([found.columns, extra])
    slope = slope_of(found.chances, everything, target, found.levels)
    curve = curve_of(found.chances, everything)
    is_extra = np.tile(np.arange(everything.shape[1]) >= n_columns, n_free)
    across = curve[np.ix_(is_extra, ~is_extra)]
    variance = curve[np.ix_(is_extra, is_extra)] - across @ np.linalg.solve(found.information, across.T)
    sizes, axes = np.linalg.eigh(variance)
    kept = sizes > 1e-7 * max(1.0, curve[np.ix_(is_extra, is_extra)].diagonal().max())
    return float(((axes.T @ slope[is_extra])[kept] ** 2 / sizes[kept]).sum()), int(kept.sum())


class Told(NamedTuple):
    """What a regression says of one pair: weights by pair of levels, and their covariance."""

    cells: list
    weights: np.ndarray
    covariance: np.ndarray


def effect(found, variable):
    """Take the weights of one variable out of a regression."""
    covariance, cells, places = np.linalg.inv(found.information), [], []
    for column, owner in enumerate(found.owners):
        for place, level in enumerate(found.levels[1:]):
            if owner is not None and owner[0] == variable:
                cells.append((owner[1], level))
                places.append(place * len(found.owners) + column)
    weights = found.weights.T.ravel()[places]
    return Told(cells, weights, covariance[np.ix_(places, places)])


def size(told):
    """Test that all weights are zero: statistic and df."""
    if not told.cells:
        return 0.0, 0
    return float(told.weights @ np.linalg.inv(told.covariance) @ told.weights), len(told.cells)


def common(several):
    """Test that weights that are the same in several strata are zero: generalised least squares."""
    cells = sorted({cell for told in several for cell in told.cells})
    if not cells:
        return 0.0, 0
    precision, pull = np.zeros((len(cells), len(cells))), np.zeros(len(cells))
    for told in several:
        chosen = np.array([[one == other for other in cells] for one in told.cells], dtype=float)
        chosen = chosen.reshape(len(told.cells), len(cells))
        inverse = np.linalg.inv(told.covariance)
        precision += chosen.T @ inverse @ chosen
        pull += chosen.T @ inverse @ told.weights
    return float(pull @ np.linalg.solve(precision, pull)), len(cells)


def difference(several):
    """Test that weights are the same in several strata: what is left of the sizes; statistic and df."""
    alone = [size(told) for told in several]
    value, df = common(several)
    return max(0.0, sum(one[0] for one in alone) - value), sum(one[1] for one in alone) - df


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


def two_stages(p_values, level):
    """Return which hypotheses the two stages of 2006 reject, none whose p is above the level."""
    n, lower = len(p_values), level / (1 + level)
    n_first = sum(q <= lower for q in benjamini_hochberg(p_values))
    if n_first == n:
        return [p <= level for p in p_values]
    raised = lower * n / (n - n_first)
    return [q <= raised and p <= level for q, p in zip(benjamini_hochberg(p_values), p_values, strict=True)]
