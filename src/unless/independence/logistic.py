"""Logistic regression of one variable on others, from counted patterns, and what its weights are worth."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

Floats = npt.NDArray[np.float64]
# Weights stay finite where levels are separated, and columns that repeat others stay solvable.
RIDGE = 1e-2
# The intercept alone is hardly held back.
RIDGE_OF_INTERCEPT = 1e-6
_ENOUGH = 1e-9
_MAX_ROUNDS = 50
_LEAST_STEP = 1e-4


class Fit(NamedTuple):
    """Weights (column x level), with the first level as reference, and what they make of the patterns.

    `information` is the negative second derivative, ridge included, over the levels and in each of them the
    columns.
    """

    weights: Floats
    log_likelihood: float
    chances: Floats
    information: Floats

    @property
    def n_weights(self) -> int:
        """The number of weights."""
        return self.weights.size


class Effect(NamedTuple):
    """What a regression says of one pair: a weight for each pair of levels but the references."""

    cells: tuple[tuple[int, int], ...]
    weights: Floats
    covariance: Floats


class Statistic(NamedTuple):
    """A statistic that is chi-square with `df` degrees of freedom if the hypothesis is true."""

    value: float
    df: int

    @property
    def p(self) -> float:
        """The chance of a larger one; 1 where nothing was free to differ."""
        return float(chdtrc(self.df, self.value)) if self.df else 1.0


NO_EFFECT = Effect((), np.zeros(0), np.zeros((0, 0)))
NOTHING = Statistic(0.0, 0)


def fit(design: Floats, counts: Floats, start: Floats | None = None) -> Fit:
    """Fit by Newton's method: `design` (pattern x column, the first all ones), `counts` (pattern x level)."""
    n_columns, n_free = design.shape[1], counts.shape[1] - 1
    if not n_free:
        return Fit(np.zeros((n_columns, 0)), 0.0, np.zeros((len(design), 0)), np.zeros((0, 0)))
    totals, free = counts.sum(axis=1), counts[:, 1:]
    ridge = np.full((n_columns, 1), RIDGE)
    ridge[0] = RIDGE_OF_INTERCEPT
    weights = np.zeros((n_columns, n_free)) if start is None else start
    if start is None:
        all_counts = counts.sum(axis=0)
        weights[0] = np.log(all_counts[1:] / all_counts[0])
    energy, log_norm = _energies(design, weights)
    value = _value(free, totals, energy, log_norm, ridge, weights)
    for _ in range(_MAX_ROUNDS):
        chances = np.exp(energy - log_norm[:, None])
        slope = (design.T @ (free - totals[:, None] * chances) - ridge * weights).T.ravel()
        step = np.linalg.solve(information(design, chances, totals), slope)
        size, direction = 1.0, step.reshape(n_free, n_columns).T
        while True:
            moved = weights + size * direction
            energy, log_norm = _energies(design, moved)
            reached = _value(free, totals, energy, log_norm, ridge, moved)
            if reached >= value - 1e-12 * abs(value) or size < _LEAST_STEP:
                break
            size /= 2
        weights, value = moved, reached
        if step @ slope < _ENOUGH:
            break
    chances = np.exp(energy - log_norm[:, None])
    log_likelihood = float((free * energy).sum() - totals @ log_norm)
    return Fit(weights, log_likelihood, chances, information(design, chances, totals))


def information(design: Floats, chances: Floats, totals: Floats) -> Floats:
    """Return the negative second derivative of the penalised log-likelihood."""
    n_columns, n_free = design.shape[1], chances.shape[1]
    matrix = np.empty((n_free, n_columns, n_free, n_columns))
    for one in range(n_free):
        for other in range(one, n_free):
            spread = -totals * chances[:, one] * chances[:, other]
            if one == other:
                spread += totals * chances[:, one]
            block = design.T @ (spread[:, None] * design)
            matrix[one, :, other], matrix[other, :, one] = block, block.T
    ridge = np.full(n_columns, RIDGE)
    ridge[0] = RIDGE_OF_INTERCEPT
    square = matrix.reshape(n_free * n_columns, n_free * n_columns)
    square[np.diag_indices(len(square))] += np.tile(ridge, n_free)
    return square


def average(one: Effect, other: Effect) -> Effect:
    """Join what the two ends of a pair say of it; the other's pairs of levels are turned round.

    Both are estimates of the same weights from the same rows, and nearly the same: the covariance of their
    mean is taken as the mean of theirs, which it never exceeds.
    """
    turned = [(a, b) for b, a in other.cells]
    shared = [cell for cell in one.cells if cell in turned]
    if not shared:
        return NO_EFFECT
    here = [one.cells.index(cell) for cell in shared]
    there = [turned.index(cell) for cell in shared]
    covariance = (one.covariance[np.ix_(here, here)] + other.covariance[np.ix_(there, there)]) / 2
    return Effect(tuple(shared), (one.weights[here] + other.weights[there]) / 2, covariance)


def size_of(effect: Effect) -> Statistic:
    """Test that all weights of an effect are zero."""
    if not effect.cells:
        return NOTHING
    return Statistic(
        float(effect.weights @ np.linalg.solve(effect.covariance, effect.weights)), len(effect.cells)
    )


def common(effects: Sequence[Effect]) -> Statistic:
    """Test that weights shared by several strata are zero."""
    cells = sorted({cell for effect in effects for cell in effect.cells})
    if not cells:
        return NOTHING
    place = {cell: position for position, cell in enumerate(cells)}
    precision, pull = np.zeros((len(cells), len(cells))), np.zeros(len(cells))
    for effect in effects:
        if effect.cells:
            where = [place[cell] for cell in effect.cells]
            known = np.linalg.inv(effect.covariance)
            precision[np.ix_(where, where)] += known
            pull[where] += known @ effect.weights
    return Statistic(float(pull @ np.linalg.solve(precision, pull)), len(cells))


def difference(effects: Sequence[Effect]) -> Statistic:
    """Test that several strata share their weights."""
    alone, together = total(map(size_of, effects)), common(effects)
    return Statistic(max(0.0, alone.value - together.value), alone.df - together.df)


def total(statistics: Iterable[Statistic]) -> Statistic:
    """Add up statistics of strata, and their degrees of freedom."""
    listed = list(statistics)
    return Statistic(sum(one.value for one in listed), sum(one.df for one in listed))


def _energies(design: Floats, weights: Floats) -> tuple[Floats, Floats]:
    energy = design @ weights
    top = np.maximum(energy.max(axis=1), 0.0)
    return energy, top + np.log(np.exp(-top) + np.exp(energy - top[:, None]).sum(axis=1))


def _value(
    free: Floats, totals: Floats, energy: Floats, log_norm: Floats, ridge: Floats, weights: Floats
) -> float:
    return float((free * energy).sum() - totals @ log_norm - (ridge * weights * weights).sum() / 2)
