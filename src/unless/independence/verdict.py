"""The answer to a question of independence, with the evidence it rests on."""

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy.typing as npt

from unless.data.showing import html_table

Answer = Literal["independent", "dependent", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Independent, dependent or undecided, and why.

    `p`, `method` and `power` belong to the chi-square tests, `log_probability` (of independence) to the
    Bayesian one; where there is none it is None. `method` is what p comes from: chi-square, or, where cells
    are nearly empty, permutations or moments of Pearson's X2 given the margins. `effect_size` is Cohen's w
    and `cramers_v` Cramer's V, both by Pearson's statistic whatever the test, so that answers can be
    compared. `small_expectations` is Cochran's share of cells expected below 5: shown, never a verdict.
    `rows_used` leaves out strata in which nothing varies.
    """

    answer: Answer
    statistic: float
    df: int
    p: float | None = None
    n_rows: int
    rows_used: int
    effect_size: float
    cramers_v: float
    power: float | None = None
    small_expectations: float
    log_probability: float | None = None
    method: str | None = None

    @property
    def is_independent(self) -> bool:
        """Whether independence was found."""
        return self.answer == "independent"

    @property
    def is_dependent(self) -> bool:
        """Whether dependence was found."""
        return self.answer == "dependent"

    @property
    def is_undecided(self) -> bool:
        """Whether the data could not tell."""
        return self.answer == "undecided"

    @property
    def probability(self) -> float | None:
        """The probability of independence, for a Bayesian test."""
        return None if self.log_probability is None else math.exp(self.log_probability)

    def __bool__(self) -> bool:
        # Three answers do not fit into two, and "undecided" must not pass for either.
        raise TypeError("A verdict has three answers; use is_independent, is_dependent or is_undecided.")

    def __str__(self) -> str:
        reasons = [f"{self.rows_used:,} of {self.n_rows:,} rows used", f"df = {self.df}"]
        if self.p is not None:
            reasons += [f"statistic = {self.statistic:.4g}", f"p = {self.p:.3g}{self._by}"]
        if self.probability is not None:
            reasons.append(f"probability of independence = {self.probability:.3g}")
        if self.is_undecided and self.power is not None:
            reasons.append(f"power = {self.power:.2f}")
        return f"{self.answer} ({', '.join(reasons)})"

    @property
    def _by(self) -> str:
        return "" if self.method in (None, "chi-square") else f" by {self.method}"

    def _repr_html_(self) -> str:
        shown = {
            "statistic": self.statistic,
            "degrees of freedom": self.df,
            "p": self.p,
            "probability of independence": self.probability,
            "power": self.power,
            "Cramer's V": self.cramers_v,
        }
        rows = [
            (name, f"{value:.4g}{self._by if name == 'p' else ''}")
            for name, value in shown.items()
            if value is not None
        ]
        used = f"{self.rows_used:,} of {self.n_rows:,} rows used"
        return html_table(self.answer, ("", ""), [*rows, ("rows", used)])


class IndependenceTest(Protocol):
    """What every test offers: a name for files and messages, and a verdict on a table or strata."""

    @property
    def name(self) -> str:
        """The name under which the catalogue knows the test."""
        ...

    def on(self, table: npt.ArrayLike) -> Verdict:
        """Judge one table (a x b), or strata (z x a x b) pooled."""
        ...
