"""From a start to the optimum of a penalised negative log-likelihood, pseudo or full.

`Objective` is the loss with its prior, in coordinates in which it is about equally steep. `minimise` takes
quasi-Newton steps as long as they pay, then Newton steps. Where these are dear it may stop by what is left to
gain: about as much as the last fifth of the iterations gained (docs/decisions/0011-weights.md).

OWL-QN: limited-memory quasi-Newton steps within one orthant at a time (Andrew and Gao, ICML 2007). Of a step
only the weights that are zero, and would leave it uphill, are held back: Andrew and Gao hold back all that go
uphill, which took twice as many iterations. Without an L1 part it is plain L-BFGS. scipy's L-BFGS-B is not
used for that: its calls of LAPACK wake all threads of the linear algebra library in every iteration, which
took three times the CPU time, and its digits depend on their number.

Newton steps: few and exact for small feature sets, by conjugate gradients for large ones. Near the optimum
the objective changes by less than its own rounding while its gradient is still far from zero; there only the
gradient decides whether a step was good.
"""

import math
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from unless.data.dataset import Dataset
from unless.errors import SettingError
from unless.inference.pseudo_likelihood import Conditionals, Counts
from unless.inference.results import Measure
from unless.runtime.progress import Bar, Look, unseen
from unless.structures.graph import FeatureSet
from unless.typing import Bools, Floats
from unless.weights.likelihood import Expectations
from unless.weights.priors import Prior
from unless.weights.report import StoppedBy

# Above, a dense Hessian takes too long to solve in every Newton step, or even once.
_MOST_DENSE = 2_000
_MOST_DENSE_ONCE = 5_000
# Multiplications in one call of a kernel: a tenth of a second.
_AT_ONCE = 2**28
MEMORY = 20
# Where a pass takes long, more steps are remembered: they halve the number of iterations.
_LONG_MEMORY = 200
_ORTHANT_HALVINGS = 40
# Iterations over which progress is judged; what is left to gain is judged by a fifth of them, at least 20.
_SPAN, _SHORTEST = 5, 20
Chosen = Bools
MAX_PRODUCTS = 250
# Sweeps of coordinate descent between two steps to the minimum over what is not zero.
SWEEPS = 200
MAX_ROUNDS = 40
# Halvings of a step before it is given up.
_HALVINGS = 12
# The part of the objective that may be rounding.
_NOISE = 1e-13
# Relative progress below which quasi-Newton steps give way to Newton steps, in round after round.
_STALLS = (1e-5, 1e-7, 1e-9, 0.0)
# Where a Newton step costs many passes, only the last digits are left to it.
_STALLS_OF_LARGE = (1e-10, 0.0)
_NEWTON_STEPS = 30
# The steps that Libra's optimiser keeps; it moves in plain coordinates.
LIBRAS_MEMORY = 6


class Descent:
    """Counts iterations, and tells a bar of them and of the slope, or the gain, that is left.

    How many there will be shows only at the end. What is known is how far it has fallen, in orders of
    magnitude, of what it has to. The first of them are quick: of the fits that were measured, half of the way
    took a quarter of the time, so that the share of the time is guessed as the square of that of the way.
    """

    def __init__(
        self, step: Callable[[], object], tolerance: float, is_guessed: bool = True, of: str = "slope"
    ) -> None:
        self._step, self._tolerance, self._is_guessed, self._of = step, tolerance, is_guessed, of
        self._first = self._least = math.nan
        self._n_iterations = 0

    def moved(self, left: float) -> None:
        """Count an iteration that began where this was left."""
        self._n_iterations += 1
        if self._n_iterations == 1 or self._first == math.inf:
            self._first = self._least = left
        self._least = min(self._least, left)
        if not isinstance(self._step, Bar):
            self._step()
        self.look()

    def look(self) -> None:
        """Tell how far it is, between two iterations too: some take long."""
        if isinstance(self._step, Bar) and not self._step.is_silent and self._n_iterations:
            told = f"iteration {self._n_iterations:,}"
            if self._least < math.inf:
                told += f", {self._of} {self._least:.1e}"
            if self._is_guessed:
                told += f", to be {self._tolerance:.1e}"
            self._step.share(self.share, told)

    @property
    def share(self) -> float:
        """The share of the time that has passed, at a guess; below 0 where there is nothing to guess from."""
        if not self._is_guessed or not self._least < self._first or self._first <= self._tolerance:
            return -1.0
        way = math.log(self._first / max(self._least, self._tolerance)) / math.log(
            self._first / self._tolerance
        )
        return way**2


class Loss(Protocol):
    """What data say against weights: minus a log-likelihood, with its first two derivatives."""

    @property
    def measure(self) -> Measure:
        """What is to be large."""

    @property
    def n_features(self) -> int:
        """The number of features, and so of weights."""

    @property
    def n_rows(self) -> float:
        """How many rows there are, by their counts."""

    @property
    def work(self) -> float:
        """About how many steps one pass takes."""

    @property
    def hessian_work(self) -> float:
        """About how many steps the whole Hessian takes."""

    def losses(self, weights: Floats) -> Floats:
        """Return the parts whose sum is the loss."""

    def value_and_gradient(self, weights: Floats, keep: bool = False) -> tuple[float, Floats]:
        """Return the loss and its gradient; `keep` remembers where, for the second derivatives."""

    def product(self, direction: Floats) -> Floats:
        """Return the product of the Hessian with a vector, at the weights that were kept."""

    def diagonal(self) -> Floats:
        """Return the diagonal of the Hessian at the weights that were kept, or a little more."""

    def hessian(self) -> Floats:
        """Return the whole Hessian at the weights that were kept."""

    def tallies(self) -> tuple[Floats, Floats]:
        """Return, for each feature, how often it could be true or false, and how often it then was true."""

    def threads(self) -> AbstractContextManager[None]:
        """Keep the threads alive between passes."""


def make_loss(
    features: FeatureSet,
    data: Dataset,
    *,
    objective: str = "pseudo",
    n_jobs: int | None = None,
    max_memory: int | str | None = None,
    once: bool = False,
    look: Look = unseen,
    counts: Counts | None = None,
) -> Loss:
    """Lay out what data say against weights; `once` saves what only pays when weights are tried often.

    `counts` are used in place of those of the table; they need not be whole numbers.
    """
    if objective == "likelihood":
        return Expectations(features.arrays, data, max_memory=max_memory, counts=counts)
    if objective != "pseudo":
        raise SettingError(f"objective={objective!r} is not known; use 'pseudo' or 'likelihood'.")
    how: dict[str, Any] = {"n_jobs": n_jobs, "max_memory": max_memory, "once": once}
    return Conditionals.of(features.arrays, data, **how, look=look, counts=counts)


class Objective:
    """f(w) = loss(w) + sum w^2 / (2 sd^2) + l1 sum |w|, the last part left to the optimiser.

    Optimisers move u where w = u * scale: the scale evens out features that hold in nearly all rows and
    features that hold in a few, which saves most of the iterations.
    """

    def __init__(self, loss: Loss, prior: Prior, step: Callable[[], object]) -> None:
        self.loss = loss
        self.prior = prior
        self.descent = Descent(step, math.nan, is_guessed=False)
        self.n_evaluations = 0
        self.scale = np.ones(loss.n_features)

    def precondition(self, weights: Floats) -> None:
        """Choose the scale by the curvature at these weights."""
        self.smooth(weights, keep=True)
        curvature = self.loss.diagonal() + self.prior.precision
        # A feature that no row tells anything about has no curvature, and no gradient either.
        self.scale = 1.0 / np.sqrt(np.where(curvature > 1e-12, curvature, 1.0))

    def smooth(self, weights: Floats, keep: bool = False) -> tuple[float, Floats]:
        """Return the value without the L1 part, and its gradient."""
        from unless.kernels.algebra import dot

        self.n_evaluations += 1
        self.descent.look()
        value, gradient = self.loss.value_and_gradient(weights, keep)
        precision = self.prior.precision
        return value + 0.5 * precision * dot(weights, weights), gradient + precision * weights

    def scaled(self, moved: Floats) -> tuple[float, Floats]:
        """Return value and gradient in the optimiser's coordinates."""
        value, gradient = self.smooth(moved * self.scale)
        return value, gradient * self.scale

    def product(self, direction: Floats) -> Floats:
        """Return the product of the Hessian, where it was kept, with a direction of weights."""
        self.n_evaluations += 1
        self.descent.look()
        return self.loss.product(direction) + self.prior.precision * direction

    @cached_property
    def hessian_is_cheap(self) -> bool:
        """Whether the whole Hessian costs about as much as some tens of passes."""
        return self._hessian_costs_less_than(_MOST_DENSE, 100)

    @property
    def memory(self) -> int:
        """How many steps to keep: more where a pass takes longer than to go through them."""
        by_cost = int(self.loss.work / (4 * max(1, self.loss.n_features)))
        return MEMORY if self.hessian_is_cheap else min(max(by_cost, MEMORY), _LONG_MEMORY)

    @cached_property
    def hessian_is_guide(self) -> bool:
        """Whether the whole Hessian is too dear for every Newton step, but worth having once as a guide."""
        # With an L1 part only some weights are free, and the guide of all misleads them.
        return (
            not self.prior.l1
            and not self.hessian_is_cheap
            and self._hessian_costs_less_than(_MOST_DENSE_ONCE, 300)
        )

    def _hessian_costs_less_than(self, most: int, passes: int) -> bool:
        return len(self.scale) <= most and self.loss.hessian_work < passes * max(self.loss.work, 10**7)

    def downhill(self, slope: Floats) -> Floats:
        """Multiply with about the inverse of the Hessian."""
        if not self.hessian_is_guide or self._guide is None:
            return self.scale**2 * slope
        from unless.kernels.algebra import substitute

        solution = slope.copy()
        substitute(self._guide, solution)
        return solution

    @cached_property
    def _guide(self) -> Floats | None:
        """The factor of the Hessian at the weights that were kept when it was first needed."""
        return factor_of(self.hessian())

    def hessian(self) -> Floats:
        """Return the Hessian where it was kept."""
        matrix = self.loss.hessian()
        matrix[np.diag_indices_from(matrix)] += self.prior.precision
        return matrix

    def value(self, weights: Floats) -> float:
        """Return the whole objective."""
        return self.smooth(weights)[0] + self.prior.l1 * float(np.abs(weights).sum())

    def subgradient(self, weights: Floats, gradient: Floats) -> Floats:
        """Return the subgradient of the whole objective that is nearest to zero."""
        return _pseudo_gradient(weights, gradient, self.prior.l1) if self.prior.l1 else gradient


def factor_of(matrix: Floats) -> Floats | None:
    """Return Cholesky's factor, in the lower triangle, of a matrix that may be singular but for rounding."""
    largest = float(matrix.diagonal().max(initial=1e-300))
    for ridge in (1e-13, 1e-11, 1e-9, 1e-7):
        factor = matrix.copy()
        factor[np.diag_indices_from(factor)] += ridge * largest
        if factorise_in_calls(factor):
            return factor
    return None


def factorise_in_calls(matrix: Floats, bar: Bar | None = None) -> bool:
    """Replace a matrix by its factor, in calls short enough for Ctrl-C between them."""
    from unless.kernels.algebra import PANEL, factorise, factorise_some

    n = len(matrix)
    at_once = PANEL * max(1, _AT_ONCE // (n * n * PANEL))
    if n <= at_once:
        return bool(factorise(matrix))
    panel = np.zeros((PANEL, n))
    for begin in range(0, n, at_once):
        if not factorise_some(matrix, panel, begin, min(begin + at_once, n)):
            return False
        if bar is not None:
            # What is left of a matrix is a smaller one.
            bar.share(1 - ((n - begin - at_once) / n) ** 3)
    return True


class _QuasiNewtonPair(NamedTuple):
    """A step, what it changed of the gradient, and the product of both."""

    moved: Floats
    bent: Floats
    curvature: float


class Point(NamedTuple):
    """Weights, the largest component of the subgradient there, the iterations taken, and why no more were."""

    weights: Floats
    norm: float
    n_iterations: int
    stopped_by: StoppedBy = "rounding"


def owlqn(
    objective: Objective,
    weights: Floats,
    tolerance: float,
    max_iterations: int,
    stall: float = 0.0,
    memory: int = MEMORY,
    gain: float = 0.0,
) -> Point:
    """Minimise in scaled coordinates until the tolerance, or until progress is slow, or about `gain` is left.

    It is slow where the last five iterations together gained no more than a share of `stall` of it.
    """
    from unless.kernels.algebra import dot

    scale, costs = objective.scale, objective.prior.l1 * objective.scale
    here = weights / scale
    value, gradient = _evaluate(objective, here, costs)
    values = [value]
    pairs: deque[_QuasiNewtonPair] = deque(maxlen=memory)
    n_iterations = 0
    while True:
        slope = _pseudo_gradient(here, gradient, costs)
        norm = float(np.abs(slope / scale).max(initial=0.0))
        slow = n_iterations >= _SPAN and values[-1 - _SPAN] - value <= stall * abs(value)
        span = max(_SHORTEST, n_iterations // 5)
        left = values[-1 - span] - value if n_iterations >= span else math.inf
        if norm <= tolerance or n_iterations >= max_iterations or slow or left <= gain:
            return Point(here * scale, norm, n_iterations, "gain" if left <= gain else "rounding")
        direction = -_two_loops(slope, pairs)
        if costs.any():
            direction[(here == 0) & (direction * slope >= 0)] = 0.0
            if dot(direction, slope) >= 0:
                # What is left may lead uphill; against the slope in every coordinate is surely downhill.
                direction[direction * slope >= 0] = 0.0
        there, new_value, new_gradient = _search_orthant(
            objective, here, value, slope, direction, costs, not pairs
        )
        if there is None and pairs and costs.any():
            # Cut at the border of the orthant, the step led nowhere; the plain slope leads on.
            pairs.clear()
            continue
        if there is None:
            return Point(here * scale, norm, n_iterations)
        moved, bent = there - here, new_gradient - gradient
        curvature = dot(moved, bent)
        if curvature > 1e-12 * dot(bent, bent):
            pairs.append(_QuasiNewtonPair(moved, bent, curvature))
        here, value, gradient = there, new_value, new_gradient
        values.append(value)
        n_iterations += 1
        objective.descent.moved(left if gain else norm)


def _evaluate(objective: Objective, here: Floats, costs: Floats) -> tuple[float, Floats]:
    from unless.kernels.algebra import dot

    smooth, gradient = objective.scaled(here)
    return smooth + dot(costs, np.abs(here)), gradient


def _search_orthant(
    objective: Objective,
    here: Floats,
    value: float,
    slope: Floats,
    direction: Floats,
    costs: Floats,
    first: bool,
) -> tuple[Floats | None, float, Floats]:
    """Go along the direction, less and less far, until the value has fallen enough."""
    from unless.kernels.algebra import dot

    orthant = np.where(here != 0, np.sign(here), -np.sign(slope))
    length = min(1.0, 1.0 / max(float(np.sqrt(dot(slope, slope))), 1e-300)) if first else 1.0
    for _ in range(_ORTHANT_HALVINGS):
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


def _pseudo_gradient(here: Floats, gradient: Floats, costs: Floats | float) -> Floats:
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - costs, 0.0)
    return np.where((here == 0) & (costs > 0), at_zero, gradient + costs * np.sign(here))


def _two_loops(slope: Floats, pairs: deque[_QuasiNewtonPair]) -> Floats:
    """Multiply the slope with the inverse Hessian that the last steps suggest."""
    from unless.kernels.algebra import dot

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


def newton(objective: Objective, weights: Floats, tolerance: float, max_steps: int) -> Point:
    """Take Newton steps on the weights that are not zero (all, without an L1 part) until none helps."""
    n_steps = 0
    while True:
        value, gradient = objective.smooth(weights, keep=True)
        slope = objective.subgradient(weights, gradient)
        norm = float(np.abs(slope).max(initial=0.0))
        if norm <= tolerance or n_steps >= max_steps:
            return Point(weights, norm, n_steps)
        direction = direction_at(objective, weights, gradient, tolerance)
        better = _search(objective, weights, value, slope, direction)
        if better is None:
            return Point(weights, norm, n_steps)
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
    # A weight at zero whose gradient exceeds the penalty may move; the others stay.
    free = (weights != 0) | (slope != 0) if objective.prior.l1 else np.ones(len(slope), dtype=np.bool_)
    share = 0.3 * tolerance / float(np.abs(slope).max())
    return _solve_roughly(objective, slope, free, min(0.1, max(share, 1e-4)))


def _sparse_minimum(matrix: Floats, gradient: Floats, weights: Floats, l1: float, tolerance: float) -> Floats:
    """Minimise the quadratic model with its L1 part.

    Coordinate descent finds which weights are zero, slowly; a step to the minimum over the others, up to
    where the first of them becomes zero, finds what they are, at once.
    """
    from unless.kernels.algebra import add_product, descend

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
    from unless.kernels.algebra import substitute

    factor = factor_of(matrix)
    if factor is None:
        return right / float(matrix.diagonal().max())
    solution = right.copy()
    substitute(factor, solution)
    return solution


def _solve_roughly(objective: Objective, slope: Floats, free: Chosen, share: float) -> Floats:
    """Solve by preconditioned conjugate gradients, until this share of the slope is left."""
    from unless.kernels.algebra import dot

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
    from unless.kernels.algebra import dot

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


class StopRules(NamedTuple):
    """When to stop: at a flat gradient, after many iterations, or, if asked, after five that gain little.

    Or, if `gain` is not 0, where about so much of the objective is left to gain.
    """

    tolerance: float
    max_iterations: int
    relative_tolerance: float | None = None
    gain: float = 0.0


def minimise(objective: Objective, start: Floats, limits: StopRules) -> Point:
    """Minimise until no component of the subgradient exceeds the tolerance."""
    tolerance, max_iterations, relative_tolerance, gain = limits
    if relative_tolerance is not None:
        point = owlqn(objective, start, tolerance, max_iterations, relative_tolerance, LIBRAS_MEMORY)
        return point._replace(stopped_by=_why(point, limits))
    objective.precondition(start)
    weights, n_iterations = start, 0
    newton_is_cheap = not gain and (objective.hessian_is_cheap or objective.hessian_is_guide)
    stalls = _STALLS if newton_is_cheap else _STALLS_OF_LARGE
    for stall in stalls:
        left = max_iterations - n_iterations
        point = owlqn(objective, weights, tolerance, left, stall, objective.memory, gain)
        n_iterations += point.n_iterations
        if point.norm > tolerance and point.stopped_by != "gain":
            left = min(_NEWTON_STEPS, max_iterations - n_iterations)
            point = newton(objective, point.weights, tolerance, left)
            n_iterations += point.n_iterations
        weights = point.weights
        if point.norm <= tolerance or n_iterations >= max_iterations or point.stopped_by == "gain":
            break
    point = point._replace(n_iterations=n_iterations)
    return point._replace(stopped_by=_why(point, limits))


def _why(point: Point, limits: StopRules) -> StoppedBy:
    if point.norm <= limits.tolerance:
        return "tolerance"
    if point.n_iterations >= limits.max_iterations:
        return "max_iterations"
    if point.stopped_by == "gain":
        return "gain"
    return "rounding" if limits.relative_tolerance is None else "relative_tolerance"
