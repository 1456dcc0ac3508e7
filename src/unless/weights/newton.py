"""Newton steps: few and exact for small feature sets, by conjugate gradients for large ones.

Near the optimum the objective changes by less than its own rounding while its gradient is still far from
zero; there only the gradient is asked whether a step was good.
"""

import numpy as np
import numpy.typing as npt

from unless.weights.objective import Objective, factor_of
from unless.weights.owlqn import Found

Floats = npt.NDArray[np.float64]
Chosen = npt.NDArray[np.bool_]
MAX_PRODUCTS = 250
# Sweeps of coordinate descent between two steps to the minimum over what is not zero.
SWEEPS = 200
MAX_ROUNDS = 40
# Halvings of a step before it is given up.
_HALVINGS = 12
# The part of the objective that may be rounding.
_NOISE = 1e-13


def newton(objective: Objective, weights: Floats, tolerance: float, max_steps: int) -> Found:
    """Take Newton steps on the weights that are not zero (all, without an L1 part) until none helps."""
    n_steps = 0
    while True:
        value, gradient = objective.smooth(weights, keep=True)
        slope = objective.subgradient(weights, gradient)
        norm = float(np.abs(slope).max(initial=0.0))
        if norm <= tolerance or n_steps >= max_steps:
            return Found(weights, norm, n_steps)
        direction = direction_at(objective, weights, gradient, tolerance)
        better = _search(objective, weights, value, slope, direction)
        if better is None:
            return Found(weights, norm, n_steps)
        weights = better
        n_steps += 1
        objective.descent.moved(norm)


def direction_at(objective: Objective, weights: Floats, gradient: Floats, tolerance: float) -> Floats:
    """Return the step to the minimum of the quadratic model at the weights that were kept."""
    slope = objective.subgradient(weights, gradient)
    if objective.hessian_is_cheap:
        matrix = objective.hessian()
        if objective.prior.l1:
            return _sparse_minimum(matrix, gradient, weights, objective.prior.l1, tolerance) - weights
        return _solve(matrix, -slope)
    # A weight at zero that wants to leave it is free to go; the others stay.
    free = (weights != 0) | (slope != 0) if objective.prior.l1 else np.ones(len(slope), dtype=np.bool_)
    share = 0.3 * tolerance / float(np.abs(slope).max())
    return _solve_roughly(objective, slope, free, min(0.1, max(share, 1e-4)))


def _sparse_minimum(matrix: Floats, gradient: Floats, weights: Floats, l1: float, tolerance: float) -> Floats:
    """Minimise the quadratic model with its L1 part.

    Coordinate descent finds which weights are zero, slowly; a step to the minimum over the others, up to
    where the first of them becomes zero, finds what they are, at once.
    """
    from unless.kernels.coordinates import descend
    from unless.kernels.products import add_product

    point, slope = weights.copy(), gradient.copy()
    for _ in range(MAX_ROUNDS):
        if descend(matrix, slope, point, l1, SWEEPS, 0.1 * tolerance):
            break
        kept = np.flatnonzero(point)
        signs = np.sign(point[kept])
        step = -_solve(matrix[np.ix_(kept, kept)], slope[kept] + l1 * signs)
        # How far each may go until it is zero, in steps.
        room = np.divide(-point[kept], step, out=np.full(len(kept), np.inf), where=step * signs < 0)
        length = min(1.0, float(room.min(initial=1.0)))
        moved = np.where(room <= length, 0.0, point[kept] + length * step)
        change = np.zeros_like(point)
        change[kept] = moved - point[kept]
        add_product(matrix, change, slope)
        point[kept] = moved
    return point


def _solve(matrix: Floats, right: Floats) -> Floats:
    """Solve a system that may be singular: features can say the same in several ways."""
    from unless.kernels.cholesky import substitute

    factor = factor_of(matrix)
    if factor is None:
        return right / float(matrix.diagonal().max())
    solution = right.copy()
    substitute(factor, solution)
    return solution


def _solve_roughly(objective: Objective, slope: Floats, free: Chosen, share: float) -> Floats:
    """Solve by preconditioned conjugate gradients, until this share of the slope is left."""
    from unless.kernels.products import dot

    direction = np.zeros_like(slope)
    rest = np.where(free, -slope, 0.0)
    steep = objective.downhill(rest)
    along = steep.copy()
    energy = dot(rest, steep)
    goal = share**2 * energy
    for _ in range(MAX_PRODUCTS):
        bent = np.where(free, objective.product(along), 0.0)
        curvature = dot(along, bent)
        if curvature <= 1e-14 * dot(along, along):
            break
        step = energy / curvature
        direction += step * along
        rest -= step * bent
        steep = objective.downhill(rest)
        before, energy = energy, dot(rest, steep)
        if energy <= goal:
            break
        along = steep + energy / before * along
    return direction


def _search(
    objective: Objective, weights: Floats, value: float, slope: Floats, direction: Floats
) -> Floats | None:
    """Go along the direction as far as the objective, or at least its gradient, becomes smaller."""
    from unless.kernels.products import dot

    l1 = objective.prior.l1
    value += l1 * float(np.abs(weights).sum())
    noise = _NOISE * abs(value)
    size = dot(slope, slope)
    side = np.where(weights != 0, np.sign(weights), -np.sign(slope))
    length = 1.0
    for _ in range(_HALVINGS):
        moved = weights + length * direction
        if l1 and not objective.hessian_is_cheap:
            moved = np.where(moved * side > 0, moved, 0.0)
        smooth, gradient = objective.smooth(moved)
        drop = value - smooth - l1 * float(np.abs(moved).sum())
        hoped = -1e-4 * dot(slope, moved - weights)
        left = objective.subgradient(moved, gradient)
        rest = dot(left, left)
        flatter = rest < size * (1 - 1e-3 * length) ** 2
        if (drop > noise and drop >= hoped) or (abs(drop) <= noise and flatter):
            return moved
        length /= 2
    return None
