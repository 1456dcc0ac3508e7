"""OWL-QN: limited-memory quasi-Newton steps within one orthant at a time (Andrew and Gao, ICML 2007).

Of a step only the weights that are zero, and would leave it uphill, are held back: Andrew and Gao hold back
all that go uphill, which took twice as many iterations. Without an L1 part it is plain L-BFGS. scipy's
L-BFGS-B is not used for that: its calls of LAPACK wake all threads of the linear algebra library in every
iteration, which took three times the CPU time, and its digits depend on their number.
"""

from collections import deque
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.weights.objective import Objective

Floats = npt.NDArray[np.float64]
MEMORY = 20
_HALVINGS = 40
# Iterations over which progress is judged.
_SPAN = 5


class _Pair(NamedTuple):
    """A step, what it changed of the gradient, and the product of both."""

    moved: Floats
    bent: Floats
    curvature: float


class Found(NamedTuple):
    """Weights, the largest component of the subgradient there, and the iterations taken."""

    weights: Floats
    norm: float
    n_iterations: int


def owlqn(
    objective: Objective,
    weights: Floats,
    tolerance: float,
    max_iterations: int,
    stall: float = 0.0,
    memory: int = MEMORY,
) -> Found:
    """Minimise in scaled coordinates until the tolerance, or until progress is slow.

    It is where the last five iterations together gained no more than a share of `stall` of the objective.
    """
    from unless.kernels.products import dot

    scale, costs = objective.scale, objective.prior.l1 * objective.scale
    here = weights / scale
    value, gradient = _evaluate(objective, here, costs)
    values = deque([value], maxlen=_SPAN + 1)
    pairs: deque[_Pair] = deque(maxlen=memory)
    n_iterations = 0
    while True:
        slope = _pseudo_gradient(here, gradient, costs)
        norm = float(np.abs(slope / scale).max(initial=0.0))
        slow = len(values) > _SPAN and values[0] - values[-1] <= stall * abs(value)
        if norm <= tolerance or n_iterations >= max_iterations or slow:
            return Found(here * scale, norm, n_iterations)
        direction = -_two_loops(slope, pairs)
        if costs.any():
            direction[(here == 0) & (direction * slope >= 0)] = 0.0
            if dot(direction, slope) >= 0:
                # What is left may lead uphill; against the slope in every coordinate is surely downhill.
                direction[direction * slope >= 0] = 0.0
        there, new_value, new_gradient = _search(objective, here, value, slope, direction, costs, not pairs)
        if there is None and pairs and costs.any():
            # Cut at the border of the orthant, the step led nowhere; the plain slope leads on.
            pairs.clear()
            continue
        if there is None:
            return Found(here * scale, norm, n_iterations)
        moved, bent = there - here, new_gradient - gradient
        curvature = dot(moved, bent)
        if curvature > 1e-12 * dot(bent, bent):
            pairs.append(_Pair(moved, bent, curvature))
        here, value, gradient = there, new_value, new_gradient
        values.append(value)
        n_iterations += 1
        objective.descent.moved(norm)


def _evaluate(objective: Objective, here: Floats, costs: Floats) -> tuple[float, Floats]:
    from unless.kernels.products import dot

    smooth, gradient = objective.scaled(here)
    return smooth + dot(costs, np.abs(here)), gradient


def _search(
    objective: Objective,
    here: Floats,
    value: float,
    slope: Floats,
    direction: Floats,
    costs: Floats,
    first: bool,
) -> tuple[Floats | None, float, Floats]:
    """Go along the direction, less and less far, until the value has fallen enough."""
    from unless.kernels.products import dot

    orthant = np.where(here != 0, np.sign(here), -np.sign(slope))
    length = min(1.0, 1.0 / max(float(np.sqrt(dot(slope, slope))), 1e-300)) if first else 1.0
    for _ in range(_HALVINGS):
        there = here + length * direction
        if costs.any():
            there = np.where(there * orthant > 0, there, 0.0)
        new_value, gradient = _evaluate(objective, there, costs)
        if new_value < value and new_value <= value + 1e-4 * dot(slope, there - here):
            return there, new_value, gradient
        length /= 2
        if length * float(np.abs(direction).max(initial=0.0)) < 1e-14:
            break
    return None, value, slope


def _pseudo_gradient(here: Floats, gradient: Floats, costs: Floats) -> Floats:
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - costs, 0.0)
    return np.where((here == 0) & (costs > 0), at_zero, gradient + costs * np.sign(here))


def _two_loops(slope: Floats, pairs: deque[_Pair]) -> Floats:
    """Multiply the slope with the inverse Hessian that the last steps suggest."""
    from unless.kernels.products import dot

    result = slope.copy()
    shares = []
    for moved, bent, curvature in reversed(pairs):
        share = dot(moved, result) / curvature
        shares.append(share)
        result -= share * bent
    if pairs:
        result *= pairs[-1].curvature / dot(pairs[-1].bent, pairs[-1].bent)
    for (moved, bent, curvature), share in zip(pairs, reversed(shares), strict=True):
        result += (share - dot(bent, result) / curvature) * moved
    return result
