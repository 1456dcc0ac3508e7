"""Logistic regression of one variable on others, from counted patterns, and what its weights are worth."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from unless.independence.statistics import NOTHING, Statistic
from unless.typing import Floats, Integers

# Weights stay finite where levels are separated, and columns that repeat others stay solvable.
RIDGE = 1e-2
# The penalty on the intercept is nearly zero.
RIDGE_OF_INTERCEPT = 1e-6
# Newton's method ends where a round promises no more than this.
_ENOUGH = 1e-6
_RULES = (RIDGE_OF_INTERCEPT, RIDGE), _ENOUGH


class Columns(NamedTuple):
    """Counted patterns: counts (pattern x level of the target), and which columns are on in each.

    Those of a pattern are `active[begins[pattern]:begins[pattern + 1]]`; column 0 always is on. `owners` and
    `levels` name the variable and the level of each column, in ascending order.
    """

    begins: Integers
    active: Integers
    counts: Floats
    owners: Integers
    levels: Integers


class Fit(NamedTuple):
    """Weights (column x level) with the columns and the levels of the target they are for, reference first.

    `covariance` is the inverse of the information, ridge included, over the levels of the target but the
    reference and in each of them the columns.
    """

    weights: Floats
    owners: Integers
    levels: Integers
    shown: Integers
    log_likelihood: float
    covariance: Floats

    @property
    def n_weights(self) -> int:
        """The number of weights."""
        return self.weights.size


class Effect(NamedTuple):
    """The estimate of one pair by a regression: a weight for each pair of levels but the references."""

    cells: tuple[tuple[int, int], ...]
    weights: Floats
    covariance: Floats


NO_EFFECT = Effect((), np.zeros(0), np.zeros((0, 0)))


_NONE: Integers = np.zeros(0, dtype=np.int64)
_NO_FIT = Fit(np.zeros((0, 0)), _NONE, _NONE, _NONE, 0.0, np.zeros((0, 0)))


def fit(columns: Columns, reference: int, start: Fit | None = None) -> Fit:
    """Fit by Newton's method, with a reference level if it is shown; a start that is near saves rounds."""
    from unless.kernels.regression import regress

    before = (_NO_FIT if start is None else start)[:4]
    shown, weights, log_likelihood, matrix, is_covariance = regress(*columns, reference, before, *_RULES)
    covariance = matrix if is_covariance else inverse(matrix)
    return Fit(weights, columns.owners, columns.levels, shown, log_likelihood, covariance)


def likelihood_without(columns: Columns, full: Fit, variable: int) -> float:
    """Fit again without the columns of a variable; return the log-likelihood."""
    from unless.kernels.regression import without

    begins, active, counts, owners, _ = columns
    return float(without(begins, active, counts, full.shown, owners, variable, full.weights, *_RULES))


def probabilities_of(columns: Columns, fitted: Fit) -> Floats:
    """Return what a regression expects: pattern x level of the target but the reference."""
    from unless.kernels.regression import expected_probabilities

    probabilities = np.empty((len(columns.counts), len(fitted.shown) - 1))
    expected_probabilities(columns.begins, columns.active, fitted.weights, probabilities)
    return probabilities


def average(one: Effect, other: Effect) -> Effect:
    """Average the estimates of a pair from its two ends.

    Both are estimates of the same weights from the same rows, and nearly the same: the covariance of their
    mean is taken as the mean of theirs, which it never exceeds.
    """
    shared = [cell for cell in one.cells if cell in other.cells]
    if not shared:
        return NO_EFFECT
    here = [one.cells.index(cell) for cell in shared]
    there = [other.cells.index(cell) for cell in shared]
    covariance = (one.covariance[np.ix_(here, here)] + other.covariance[np.ix_(there, there)]) / 2
    return Effect(tuple(shared), (one.weights[here] + other.weights[there]) / 2, covariance)


def turned(effect: Effect) -> Effect:
    """Say the same of a pair from its other end."""
    return effect._replace(cells=tuple((a, b) for b, a in effect.cells))


def size_of(effect: Effect) -> Statistic:
    """Test that all weights of an effect are zero."""
    if not effect.cells:
        return NOTHING
    return _squared(effect.weights, effect.covariance)


def common(effects: Sequence[Effect]) -> Statistic:
    """Test that weights shared by several strata are zero."""
    effects = [effect for effect in effects if effect.cells]
    if not effects:
        return NOTHING
    if len(effects) == 1:
        return size_of(effects[0])
    if all(effect.cells == effects[0].cells for effect in effects):
        precisions = [inverse(effect.covariance) for effect in effects]
        pulls = [_pull(known, effect) for known, effect in zip(precisions, effects, strict=True)]
        return _squared(np.sum(pulls, axis=0), np.sum(precisions, axis=0))
    cells = sorted({cell for effect in effects for cell in effect.cells})
    position_of = {cell: position for position, cell in enumerate(cells)}
    precision, pull = np.zeros((len(cells), len(cells))), np.zeros(len(cells))
    for effect in effects:
        where = [position_of[cell] for cell in effect.cells]
        known = inverse(effect.covariance)
        precision[np.ix_(where, where)] += known
        pull[where] += _pull(known, effect)
    return _squared(pull, precision)


def difference(effects: Sequence[Effect]) -> Statistic:
    """Test that several strata share their weights."""
    alone, together = total(map(size_of, effects)), common(effects)
    return Statistic(max(0.0, alone.value - together.value), alone.df - together.df)


def total(statistics: Iterable[Statistic]) -> Statistic:
    """Add up statistics of strata, and their degrees of freedom."""
    listed = list(statistics)
    return Statistic(sum(one.value for one in listed), sum(one.df for one in listed))


def _squared(estimate: Floats, covariance: Floats) -> Statistic:
    """Square an estimate, in units of its covariance."""
    value = (estimate * _solution(covariance, estimate[:, None])[:, 0]).sum()
    return Statistic(float(value), len(estimate))


def _pull(precision: Floats, effect: Effect) -> Floats:
    return np.asarray((precision * effect.weights).sum(axis=1))


def inverse(matrix: Floats) -> Floats:
    """Invert a symmetric matrix."""
    return _solution(matrix, np.eye(len(matrix)))


def _solution(matrix: Floats, rights: Floats) -> Floats:
    from unless.kernels.algebra import solve

    solution = np.array(rights, order="C")
    if not solve(np.array(matrix, order="C"), solution):
        raise np.linalg.LinAlgError("Singular matrix")
    return solution
