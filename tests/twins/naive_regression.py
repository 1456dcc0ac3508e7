"""Slow twins of the referee's regressions and of its gates: all rows, plain numpy, every set of levels."""

from itertools import combinations
from math import log
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.stats import chi2

# Ridges of the intercept and of all other weights.
RIDGE_OF_INTERCEPT, RIDGE = 1e-6, 1e-1


def expanded(data):
    """Return every row as often as it was counted."""
    return np.repeat(np.asarray(data.rows, dtype=int), data.counts, axis=0)


def reference(column):
    """Return the most frequent level: it has no weight of its own."""
    return int(np.argmax(np.bincount(column)))


def dummies(rows, term):
    """Return an indicator for each combination of levels that occurs, none of them a reference level."""
    codes = rows[:, list(term)]
    references = [reference(rows[:, column]) for column in term]
    kept = codes[(codes != references).all(axis=1)]
    return [(codes == levels).all(axis=1).astype(float) for levels in np.unique(kept, axis=0)]


class Fitted(NamedTuple):
    """A regression: columns of its design, those shown of its target, chances of its levels but the first."""

    columns: np.ndarray
    shown: np.ndarray
    chances: np.ndarray
    log_likelihood: float
    n_columns: int


def regress(rows, target, terms, extra=()):
    """Fit a target on terms, and on further columns, by a general optimiser with the ridges as a penalty."""
    made = [column for term in sorted(terms) for column in dummies(rows, term)]
    columns = np.column_stack([np.ones(len(rows)), *made, *extra])
    first = reference(rows[:, target])
    others = [level for level in np.unique(rows[:, target]) if level != first]
    shown = np.column_stack([rows[:, target] == level for level in others]).astype(float)
    ridge = np.r_[RIDGE_OF_INTERCEPT, np.full(columns.shape[1] - 1, RIDGE)][:, None]

    def expect(weights):
        energy = np.column_stack([np.zeros(len(rows)), columns @ weights])
        total = np.logaddexp.reduce(energy, axis=1)
        chances = np.exp(energy - total[:, None])[:, 1:]
        return chances, (shown * (columns @ weights)).sum() - total.sum()

    def loss(flat):
        weights = flat.reshape(columns.shape[1], -1)
        chances, likelihood = expect(weights)
        slope = columns.T @ (shown - chances) - ridge * weights
        return (ridge * weights**2).sum() / 2 - likelihood, -slope.ravel()

    start = np.zeros(columns.shape[1] * shown.shape[1])
    found = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-6, "maxiter": 10_000})
    return Fitted(columns, shown, *expect(found.x.reshape(columns.shape[1], -1)), columns.shape[1])


def likelihood_ratio(rows, target, terms, more):
    """Test that more terms say nothing: twice the gain of log-likelihood, and the weights added."""
    small, large = regress(rows, target, set(terms)), regress(rows, target, {*terms, *more})
    df = (large.n_columns - small.n_columns) * large.shown.shape[1]
    return max(0.0, 2 * (large.log_likelihood - small.log_likelihood)), df


def curve(chances, left, right):
    """Return minus the second derivatives between two sets of columns, levels of the target outermost."""
    return np.block(
        [
            [left.T @ ((one * ((i == j) - other))[:, None] * right) for j, other in enumerate(chances.T)]
            for i, one in enumerate(chances.T)
        ]
    )


def score(rows, target, terms, product):
    """Test that a term says nothing beside others by its slope, without fitting it: statistic and df."""
    fitted = regress(rows, target, terms)
    extra = np.column_stack(dummies(rows, product))
    slope = ((fitted.shown - fitted.chances).T @ extra).ravel()
    ridge = np.r_[RIDGE_OF_INTERCEPT, np.full(fitted.n_columns - 1, RIDGE)]
    inside = curve(fitted.chances, fitted.columns, fitted.columns)
    inside += np.diag(np.tile(ridge, fitted.shown.shape[1]))
    across = curve(fitted.chances, extra, fitted.columns)
    variance = curve(fitted.chances, extra, extra) - across @ np.linalg.solve(inside, across.T)
    return float(slope @ np.linalg.solve(variance, slope)), len(slope)


def p_of(test):
    return float(chi2.sf(test[0], test[1])) if test[1] else 1.0


def blanket(rows, target, alpha):
    """Grow by score, the least p first, then shrink by likelihood ratio, the largest p first."""
    inside = []
    while True:
        rest = [c for c in range(rows.shape[1]) if c != target and c not in inside]
        tests = {c: score(rows, target, [(one,) for one in inside], (c,)) for c in rest}
        best = min(rest, key=lambda c: (p_of(tests[c]), -tests[c][0]), default=None)
        if best is None or p_of(tests[best]) >= alpha:
            break
        inside.append(best)
    while inside:
        ratios = {
            c: p_of(likelihood_ratio(rows, target, [(one,) for one in inside if one != c], [(c,)]))
            for c in inside
        }
        worst = max(inside, key=ratios.get)
        if ratios[worst] < alpha:
            break
        inside.remove(worst)
    return sorted(inside)


def best_levels(rows, pair, gate):
    """Try every set of levels of a gate, and return the one whose link, both ends alike, scores best.

    The score is the mean of the likelihood ratios of a link inside the set only, less df log N; each end is
    regressed on all other columns.
    """
    levels = np.unique(rows[:, gate]).tolist()
    scores = {}
    for size in range(1, len(levels)):
        for chosen in combinations(levels, size):
            inside = np.isin(rows[:, gate], chosen)
            if min(inside.sum(), (~inside).sum()) < 20:
                continue
            found = [link_inside(rows, end, other, inside) for end, other in (pair, pair[::-1])]
            value = sum(one[0] for one in found) / 2
            scores[chosen] = value - max(one[1] for one in found) * log(len(rows))
    return max(scores, key=lambda chosen: (scores[chosen], chosen))


def link_inside(rows, end, other, inside):
    """Test a link that is there in some rows only, beside all other columns: statistic and df."""
    terms = [(c,) for c in range(rows.shape[1]) if c not in (end, other)]
    extra = [inside * one for one in dummies(rows, (other,))]
    small, large = regress(rows, end, terms), regress(rows, end, terms, extra)
    gained = max(0.0, 2 * (large.log_likelihood - small.log_likelihood))
    return gained, len(extra) * small.shown.shape[1]


def screen(rows, target, terms, second, third):
    """Compare the counts of (target, second, third) with what a regression expects: Pearson's statistic.

    Margins of the target and the third are made to agree first, for the regression may lack the third.
    """
    fitted = regress(rows, target, terms)
    chances = np.column_stack([1 - fitted.chances.sum(axis=1), fitted.chances])
    first = reference(rows[:, target])
    levels = [first, *(level for level in np.unique(rows[:, target]) if level != first)]
    total = 0.0
    for other in np.unique(rows[:, third]):
        for k, level in enumerate(levels):
            here = rows[:, third] == other
            expected_here = chances[here, k].sum()
            excess_here = (rows[here, target] == level).sum() - expected_here
            for value in np.unique(rows[:, second]):
                cell = here & (rows[:, second] == value)
                expected = chances[cell, k].sum()
                if expected > 1e-9:
                    excess = (rows[cell, target] == level).sum() - expected
                    total += (excess - excess_here * expected / expected_here) ** 2 / expected
    return total
