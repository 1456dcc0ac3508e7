"""The tests of independence, their verdicts, and `ask`, which puts one question by names and labels.

To add a test: a class with `name` and `on` (for a statistic that is chi-square, a subclass of
`ChiSquareTest`) and one line in `TESTS`; what it takes for learners to use it is in ARCHITECTURE.md.
Statistics and p-values are computed in `statistics.py`, for nearly empty cells in `sparse.py`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from unless.counting.reference import stratified_tables
from unless.data.dataset import Dataset
from unless.data.showing import html_table
from unless.errors import SettingError, UnknownContext
from unless.independence.design_effects import drawn_alike
from unless.independence.power import ENOUGH_POWER, power_of
from unless.independence.sparse import independence_within_strata
from unless.independence.statistics import (
    Statistic,
    as_strata,
    check_effect,
    check_rate,
    describe,
    likelihood_ratio_statistic,
    log_probabilities,
    pearson_statistic,
)
from unless.typing import Floats, Integers

Answer = Literal["independent", "dependent", "undecided"]
# Some tables are exact ties (one stratum [[1, 0, 0, 1], [1, 0, 0, 0]]), which rounding must not decide:
# "at least the threshold" includes a log probability that is lower by this much. At the threshold 1/2 a log
# Bayes factor moves twice as far, so that kernels, which compare that, allow 2e-9 (`kernels/answers.py`).
LOG_PROBABILITY_SLACK = 1e-9


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
        """The name of the test in `TESTS`."""
        ...

    def on(self, table: npt.ArrayLike) -> Verdict:
        """Judge one table (a x b), or strata (z x a x b) pooled."""
        ...


@dataclass(frozen=True)
class ChiSquareTest(ABC):
    """Dependent when p < alpha; otherwise independent if an effect of Cohen's w would have been seen."""

    alpha: float = 0.05
    effect: float = 0.3

    name: ClassVar[str]

    def __post_init__(self) -> None:
        check_rate("alpha", self.alpha)
        check_effect(self.effect)

    @staticmethod
    @abstractmethod
    def statistic(tables: npt.ArrayLike) -> tuple[Floats, Integers]:
        """Return the statistic and the degrees of freedom of each of a batch of tables."""

    def on(self, table: npt.ArrayLike) -> Verdict:
        """Judge one table (a x b), or strata (z x a x b) pooled: statistics and df are summed."""
        strata = as_strata(table)
        shown = describe(strata)
        if shown["df"] == 0:
            return Verdict(answer="undecided", statistic=0.0, power=0.0, **shown)
        statistic = float(self.statistic(strata)[0].sum())
        p = Statistic(statistic, shown["df"]).p
        power = float(power_of(shown["df"], shown["rows_used"], self.alpha, self.effect))
        return Verdict(
            answer=self._answer(p, power), statistic=statistic, p=p, method="chi-square", power=power, **shown
        )

    def on_any(self, table: npt.ArrayLike) -> Verdict:
        """Judge a table whose cells may be nearly empty: like `on`, or by p of X2 given the margins.

        A chi-square law does not hold there: by it, a few rows in two opposite cells would be a dependence.
        """
        verdict, tables = self.on(table), as_strata(table)
        if verdict.p is None or verdict.power is None:
            return verdict
        strata, a, b = np.nonzero(tables)
        test = independence_within_strata(a, b, strata, tables[strata, a, b], *tables.shape[1:])
        if test.method == "chi-square":
            return verdict
        return replace(verdict, p=test.p, method=test.method, answer=self._answer(test.p, verdict.power))

    def _answer(self, p: float, power: float) -> Answer:
        if p < self.alpha:
            return "dependent"
        return "independent" if power >= ENOUGH_POWER else "undecided"

    def _repr_html_(self) -> str:
        return html_table(repr(self), (), ())


@dataclass(frozen=True)
class PearsonTest(ChiSquareTest):
    """Pearson's chi-square test without continuity correction, on a slice or pooled over strata.

    >>> PearsonTest().on([[30, 10], [10, 30]]).answer
    'dependent'
    """

    name: ClassVar[str] = "pearson"
    statistic = staticmethod(pearson_statistic)


@dataclass(frozen=True)
class LikelihoodRatioTest(ChiSquareTest):
    """The likelihood-ratio test, also called G, on a slice or pooled over strata.

    >>> LikelihoodRatioTest().on([[30, 10], [10, 30]]).answer
    'dependent'
    """

    name: ClassVar[str] = "likelihood_ratio"
    statistic = staticmethod(likelihood_ratio_statistic)


@dataclass(frozen=True)
class BayesianTest:
    """Margaritis's test (2005) by the probability of independence under uniform Dirichlet priors.

    Independent when that has at least the probability `threshold`; undecided only where nothing varies.

    >>> BayesianTest().on([[30, 10], [10, 30]]).answer
    'dependent'
    """

    threshold: float = 0.5

    name: ClassVar[str] = "bayesian"

    def __post_init__(self) -> None:
        check_rate("threshold", self.threshold)

    def on(self, table: npt.ArrayLike) -> Verdict:
        """Judge one table (a x b), or strata (z x a x b) pooled."""
        strata = as_strata(table)
        shown = describe(strata)
        log_independent, _ = log_probabilities(strata)
        least = math.log(self.threshold) - LOG_PROBABILITY_SLACK
        answer: Answer = "independent" if log_independent >= least else "dependent"
        return Verdict(
            answer=answer if shown["df"] else "undecided",
            statistic=float(pearson_statistic(strata)[0].sum()),
            log_probability=log_independent,
            **shown,
        )

    def _repr_html_(self) -> str:
        return html_table(repr(self), (), ())


TESTS: dict[str, Callable[[float, float], IndependenceTest]] = {
    "pearson": PearsonTest,
    "likelihood_ratio": LikelihoodRatioTest,
    # It decides by a probability and needs neither alpha nor effect.
    "bayesian": lambda _alpha, _effect: BayesianTest(),
}


def make_test(test: str | IndependenceTest, alpha: float = 0.05, effect: float = 0.3) -> IndependenceTest:
    """Return the test of this name with these settings; a test that is one already comes back as it is."""
    if not isinstance(test, str):
        return test
    if test not in TESTS:
        raise SettingError(f"There is no test {test!r}; use one of {', '.join(map(repr, TESTS))}.")
    return TESTS[test](alpha, effect)


def refuse_repeats(names: list[str]) -> None:
    """Refuse a question in which a variable has two parts."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise SettingError(
            f"{repeated[0]!r} appears twice in the question; give each variable one part in it."
        )


def ask(
    dataset: Dataset,
    a: str,
    b: str,
    *,
    given: Iterable[str] = (),
    context: Mapping[str, object] | None = None,
    test: str | IndependenceTest = "pearson",
    alpha: float = 0.05,
    effect: float = 0.3,
) -> Verdict:
    """Test I(a, b | given, context): given variables pool their strata, a context picks a slice.

    Where cells are nearly empty, p of the chi-square tests comes from permutations (`Verdict.method`).

    >>> from unless.datasets import load_ucb_admissions
    >>> ask(load_ucb_admissions(), "Admit", "Gender", context={"Dept": "A"}).answer
    'dependent'
    """
    judge = make_test(test, alpha, effect)
    fixed = {} if context is None else dict(context)
    by = [given] if isinstance(given, str) else list(given)
    refuse_repeats([a, b, *by, *fixed])
    domain = dataset.domain
    pair = domain.index(a), domain.index(b)
    # Rows of a survey are taken as fewer that were drawn alike.
    dataset = drawn_alike(dataset, pair)
    codes = domain.encode(fixed)
    tables, _ = stratified_tables(dataset, *pair, [domain.index(name) for name in by], codes)
    if not len(tables):
        raise UnknownContext(f"No row has {domain.decode(codes)}; ask about a context the data shows.")
    return judge.on_any(tables) if isinstance(judge, ChiSquareTest) else judge.on(tables)
