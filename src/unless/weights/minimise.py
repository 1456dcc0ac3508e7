"""From a start to the optimum: quasi-Newton steps as long as they pay, then Newton steps."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.weights.newton import newton
from unless.weights.objective import Objective
from unless.weights.owlqn import owlqn

Floats = npt.NDArray[np.float64]
# Relative progress below which quasi-Newton steps give way to Newton steps, in round after round.
_STALLS = (1e-5, 1e-7, 1e-9, 0.0)
# Where a Newton step costs many passes, only the last digits are left to it.
_STALLS_OF_LARGE = (1e-10, 0.0)
_NEWTON_STEPS = 30


class Minimum(NamedTuple):
    """Weights, the largest component of the subgradient there, and the iterations taken."""

    weights: Floats
    norm: float
    n_iterations: int


def minimise(objective: Objective, start: Floats, tolerance: float, max_iterations: int) -> Minimum:
    """Minimise until no component of the subgradient exceeds the tolerance."""
    objective.precondition(start)
    weights, norm, n_iterations = start, np.inf, 0
    stalls = _STALLS if objective.hessian_is_cheap else _STALLS_OF_LARGE
    for stall in stalls:
        left = max_iterations - n_iterations
        found = owlqn(objective, weights, tolerance, left, stall)
        n_iterations += found.n_iterations
        if found.norm > tolerance:
            left = min(_NEWTON_STEPS, max_iterations - n_iterations)
            found = newton(objective, found.weights, tolerance, left)
            n_iterations += found.n_iterations
        weights, norm = found.weights, found.norm
        if norm <= tolerance or n_iterations >= max_iterations:
            break
    return Minimum(weights, norm, n_iterations)
