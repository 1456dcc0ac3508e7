"""A penalised negative log-likelihood, pseudo or full, in coordinates in which it is about equally steep."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.errors import SettingError
from unless.inference.cases import Counts
from unless.inference.conditionals import Conditionals
from unless.inference.expectations import Expectations
from unless.inference.fit_report import Measure
from unless.inference.priors import Prior
from unless.runtime.progress import Bar, Look, unseen
from unless.structures.features import FeatureSet
from unless.weights.descent import Descent

Floats = npt.NDArray[np.float64]
# Above, a dense Hessian takes too long to solve in every Newton step, or even once.
_MOST_DENSE = 2_000
_MOST_DENSE_ONCE = 4_000
# Multiplications in one call of a kernel: a tenth of a second.
_AT_ONCE = 2**28


class Loss(Protocol):
    """What data say against weights: minus a log-likelihood, with its first two derivatives."""

    @property
    def measure(self) -> Measure:
        """What is to be large."""

    @property
    def n_features(self) -> int:
        """The number of features, and so of weights."""

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

    def __init__(
        self, loss: Loss, prior: Prior, step: Callable[[], object], descent: Descent | None = None
    ) -> None:
        self.loss = loss
        self.prior = prior
        self.descent = Descent(step, math.nan, is_guessed=False) if descent is None else descent
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
        from unless.kernels.products import dot

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
        from unless.kernels.cholesky import substitute

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
        l1 = self.prior.l1
        if not l1:
            return gradient
        at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0)
        return np.where(weights == 0, at_zero, gradient + l1 * np.sign(weights))


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
    """Replace a matrix by its factor, in calls short enough that Ctrl-C is heard between them."""
    from unless.kernels.cholesky import PANEL, factorise, factorise_some

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
