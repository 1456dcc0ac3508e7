"""From a start to the optimum: quasi-Newton steps as long as they pay, then Newton steps."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.inference.fit_report import StoppedBy
from unless.weights.newton import newton
from unless.weights.objective import Objective
from unless.weights.owlqn import Found, owlqn

Floats = npt.NDArray[np.float64]
# Relative progress below which quasi-Newton steps give way to Newton steps, in round after round.
_STALLS = (1e-5, 1e-7, 1e-9, 0.0)
# Where a Newton step costs many passes, only the last digits are left to it.
_STALLS_OF_LARGE = (1e-10, 0.0)
_NEWTON_STEPS = 30
# The steps that Libra's optimiser remembers; it moves in plain coordinates.
LIBRAS_MEMORY = 6


class Limits(NamedTuple):
    """When to stop: at a flat gradient, after many iterations, or, if asked, after five that gain little."""

    tolerance: float
    max_iterations: int
    relative_tolerance: float | None = None


class Minimum(NamedTuple):
    """Weights, the largest component of the subgradient there, the iterations taken, and why no more were."""

    weights: Floats
    norm: float
    n_iterations: int
    stopped_by: StoppedBy


def minimise(objective: Objective, start: Floats, limits: Limits) -> Minimum:
    """Minimise until no component of the subgradient exceeds the tolerance."""
    tolerance, max_iterations, relative_tolerance = limits
    if relative_tolerance is not None:
        found = owlqn(objective, start, tolerance, max_iterations, relative_tolerance, LIBRAS_MEMORY)
        return Minimum(*found, _why(found, limits))
    objective.precondition(start)
    weights, n_iterations = start, 0
    newton_is_cheap = objective.hessian_is_cheap or objective.hessian_is_guide
    stalls = _STALLS if newton_is_cheap else _STALLS_OF_LARGE
    for stall in stalls:
        left = max_iterations - n_iterations
        found = owlqn(objective, weights, tolerance, left, stall)
        n_iterations += found.n_iterations
        if found.norm > tolerance:
            left = min(_NEWTON_STEPS, max_iterations - n_iterations)
            found = newton(objective, found.weights, tolerance, left)
            n_iterations += found.n_iterations
        weights = found.weights
        if found.norm <= tolerance or n_iterations >= max_iterations:
            break
    found = found._replace(n_iterations=n_iterations)
    return Minimum(*found, _why(found, limits))


def _why(found: Found, limits: Limits) -> StoppedBy:
    if found.norm <= limits.tolerance:
        return "tolerance"
    if found.n_iterations >= limits.max_iterations:
        return "max_iterations"
    return "rounding" if limits.relative_tolerance is None else "relative_tolerance"
