"""What fitting weights took, and how far it came."""

from dataclasses import dataclass, field

from unless.weights.priors import Prior


@dataclass(frozen=True)
class Candidate:
    """A prior that was tried, and the pseudo-log-likelihood per row of rows it had not seen."""

    prior: Prior
    pseudo_log_likelihood: float


@dataclass(frozen=True)
class FitReport:
    """How weights were found.

    `objective` is the penalised negative pseudo-log-likelihood, summed over rows; `gradient_norm` the
    largest component of its gradient (with a Laplace part: of the subgradient nearest to zero).
    """

    prior: Prior
    converged: bool
    n_iterations: int
    n_evaluations: int
    objective: float
    gradient_norm: float
    tolerance: float
    message: str
    candidates: tuple[Candidate, ...] = field(default=())

    def __str__(self) -> str:
        return (
            f"{self.message} Prior {self.prior}: objective {self.objective:,.6f}, largest component of the "
            f"gradient {self.gradient_norm:.1e} after {self.n_iterations:,} iterations and "
            f"{self.n_evaluations:,} passes."
        )
