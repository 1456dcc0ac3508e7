"""What fitting weights took, and how far it came."""

from dataclasses import dataclass, field
from typing import Literal

from unless.data.showing import html_table
from unless.inference.results import Measure
from unless.weights.priors import Prior

# Nats a row that may be left to gain where no tolerance is given and the optimum is costly.
GAIN = 2e-3
StoppedBy = Literal["tolerance", "gain", "relative_tolerance", "max_iterations", "rounding"]
_MESSAGES = {
    "tolerance": "Converged.",
    "gain": f"Converged: no more than about {GAIN:g} nats a row are left to gain.",
    "relative_tolerance": "Stopped by relative_tolerance, before the tolerance was reached.",
    "max_iterations": "Stopped at max_iterations, before the tolerance was reached.",
    "rounding": "Stopped where rounding hides all further progress, before the tolerance was reached.",
}


@dataclass(frozen=True)
class Candidate:
    """A prior that was tried, and what rows it had not seen score per row: the mean of what is maximised."""

    prior: Prior
    score: float

    def _repr_html_(self) -> str:
        return html_table(f"{self.prior!r}: {self.score:.6g} per row of held-out rows", (), ())


@dataclass(frozen=True)
class Completed:
    """How rows with missing values were used: by EM, in so many rounds.

    `n_drawn` of the different rows with missing values had too many completions to list, and were completed
    by draws. `change` is what the last round changed of the completions of an average row with missing
    values: half the sum of what the probability of each changed. Rows that were completed by draws are not
    looked at; it is None where all were.
    """

    n_complete: int
    n_incomplete: int
    n_rounds: int
    n_drawn: int
    change: float | None = None

    def __str__(self) -> str:
        rows = "1 complete row" if self.n_complete == 1 else f"{self.n_complete:,} complete rows"
        rounds = "1 round" if self.n_rounds == 1 else f"{self.n_rounds:,} rounds"
        return f"{rows} and {self.n_incomplete:,} with missing values, by EM in {rounds}"


@dataclass(frozen=True)
class FitReport:
    """How weights were found.

    `objective` is the penalised negative (pseudo-)log-likelihood, summed over rows; `gradient_norm` the
    largest component of its gradient (with a Laplace part: of the subgradient nearest to zero). `measure`
    says which of the two likelihoods it is, `stopped_by` which rule ended the search. `completed` tells of
    rows with missing values, where some were used; the other figures are then those of the last round, but
    for the iterations and passes, which are those of all rounds.
    """

    prior: Prior
    measure: Measure
    stopped_by: StoppedBy
    n_iterations: int
    n_evaluations: int
    objective: float
    gradient_norm: float
    tolerance: float
    candidates: tuple[Candidate, ...] = field(default=())
    completed: Completed | None = None

    @property
    def converged(self) -> bool:
        """Whether the gradient is as flat as was asked for, or about nothing is left to gain."""
        return self.stopped_by in ("tolerance", "gain")

    @property
    def message(self) -> str:
        """What ended the search, in words."""
        return _MESSAGES[self.stopped_by]

    def __str__(self) -> str:
        rows = f"Fitted to {self.completed}. " if self.completed else ""
        return (
            f"{rows}{self.message} Prior {self.prior}: objective {self.objective:,.6f}, largest component of "
            f"the gradient {self.gradient_norm:.1e} after {self.n_iterations:,} iterations and "
            f"{self.n_evaluations:,} passes."
        )

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("prior", self.prior),
            ("measure", self.measure.replace("_", " ")),
            ("objective", f"{self.objective:,.6f}"),
            ("largest component of the gradient", f"{self.gradient_norm:.1e}"),
            ("iterations", f"{self.n_iterations:,}"),
            ("passes", f"{self.n_evaluations:,}"),
        ]
        if self.completed is not None:
            rows.insert(0, ("rows", self.completed))
        tried = [(f"{one.prior}, tried", f"{one.score:.6f} a row") for one in self.candidates]
        return html_table(self.message, ("", ""), [*rows, *tried])
