"""The penalised negative pseudo-log-likelihood, in coordinates in which it is about equally steep."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from unless.inference.conditionals import Conditionals
from unless.weights.priors import Prior

Floats = npt.NDArray[np.float64]
# Above, a dense Hessian takes too long to solve.
_MOST_DENSE = 2_000


class Objective:
    """f(w) = loss(w) + sum w^2 / (2 sd^2) + l1 sum |w|, the last part left to the optimiser.

    Optimisers move u where w = u * scale: the scale evens out features that hold in nearly all rows and
    features that hold in a few, which saves most of the iterations.
    """

    def __init__(self, conditionals: Conditionals, prior: Prior, step: Callable[[], object]) -> None:
        self.conditionals = conditionals
        self.prior = prior
        self.step = step
        self.n_evaluations = 0
        self.scale = np.ones(conditionals.n_features)

    def precondition(self, weights: Floats) -> None:
        """Choose the scale by the curvature at these weights."""
        self.smooth(weights, keep=True)
        curvature = self.conditionals.diagonal() + self.prior.precision
        # A feature that no row tells anything about has no curvature, and no gradient either.
        self.scale = 1.0 / np.sqrt(np.where(curvature > 1e-12, curvature, 1.0))

    def smooth(self, weights: Floats, keep: bool = False) -> tuple[float, Floats]:
        """Return the value without the L1 part, and its gradient."""
        self.n_evaluations += 1
        value, gradient = self.conditionals.value_and_gradient(weights, keep)
        precision = self.prior.precision
        return value + 0.5 * precision * float(weights @ weights), gradient + precision * weights

    def scaled(self, moved: Floats) -> tuple[float, Floats]:
        """Return value and gradient in the optimiser's coordinates."""
        value, gradient = self.smooth(moved * self.scale)
        return value, gradient * self.scale

    def product(self, direction: Floats) -> Floats:
        """Return the product of the Hessian, where it was kept, with a direction of weights."""
        self.n_evaluations += 1
        return self.conditionals.product(direction) + self.prior.precision * direction

    @cached_property
    def hessian_is_cheap(self) -> bool:
        """Whether the whole Hessian costs about as much as some tens of passes."""
        return len(self.scale) <= _MOST_DENSE and self.conditionals.hessian_work < 100 * max(
            self.conditionals.work, 10**7
        )

    def hessian(self) -> Floats:
        """Return the Hessian where it was kept."""
        matrix = self.conditionals.hessian()
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
