"""Questions of independence given some variables, pooled over their strata, as a learner asks them."""

import math
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy import special

from unless.counting.strata import StrataTable
from unless.independence.bayesian import PRIOR, TIE
from unless.independence.power import ENOUGH_POWER, power_of
from unless.independence.tails import log_tail
from unless.independence.verdict import Answer
from unless.kernels.strata import Desk, Strata

Floats = npt.NDArray[np.float64]
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True)
class Associations:
    """How strongly every two variables depend on each other when nothing is given: n x n, symmetric."""

    # Log p, or the log of the probability of independence: the smaller, the stronger.
    log_p: Floats
    # The statistic, or the log of the probability of dependence: the larger, the stronger.
    strength: Floats
    is_dependent: npt.NDArray[np.bool_]


@dataclass
class PooledAsker:
    """Answers questions about a table; each thread needs its own (`fresh`)."""

    table: StrataTable
    test: str = "pearson"
    alpha: float = 0.05
    effect: float = 0.3
    # Only a learner that treats "undecided" in its own way needs to know about power.
    weighs_power: bool = False
    _desk: Desk | None = field(default=None, repr=False)
    _last: tuple[frozenset[int], Strata] | None = field(default=None, repr=False)

    @property
    def n_variables(self) -> int:
        """The number of variables."""
        return self.table.n_variables

    def fresh(self) -> "PooledAsker":
        """Return one that shares the table and nothing that is written to."""
        return replace(self, _desk=self.table.desk(), _last=None)

    def ask(self, a: int, b: int, given: frozenset[int]) -> Answer:
        """Tell whether a and b are independent given the values of some variables."""
        desk = self._desk = self._desk or self.table.desk()
        strata = self._strata(given, desk)
        if self.test == "bayesian":
            log_independent = float(self.table.bayesian(strata, a, [b], desk)[0][0])
            if not _is_independent(log_independent):
                return "dependent"
            # Where nothing varies the Bayesian test always says "independent" (decision 16).
            return "undecided" if self.weighs_power and not self._df(strata, a, b, desk) else "independent"
        statistic, df, rows_used = self.table.chi_square(
            strata, [(a, b)], desk, likelihood_ratio=self.test == "likelihood_ratio"
        )
        return self._answer(float(statistic[0]), int(df[0]), int(rows_used[0]))

    def associations(self) -> Associations:
        """Ask about every two variables, given nothing."""
        desk = self._desk = self._desk or self.table.desk()
        n = self.n_variables
        strata, pairs = self.table.everything(), list(combinations(range(n), 2))
        if self.test == "bayesian":
            log_p, strength = self._log_probabilities(strata, desk)
            dependent = np.array([not _is_independent(value) for value in log_p], dtype=np.bool_)
        else:
            strength, df, _ = self.table.chi_square(
                strata, pairs, desk, likelihood_ratio=self.test == "likelihood_ratio"
            )
            log_p = log_tail(df, strength)
            dependent = (special.chdtrc(np.maximum(df, 1), strength) < self.alpha) & (df > 0)
        return Associations(_symmetric(log_p, n), _symmetric(strength, n), _symmetric(dependent, n))

    def _log_probabilities(self, strata: Strata, desk: Desk) -> tuple[Floats, Floats]:
        n = self.n_variables
        answers = [self.table.bayesian(strata, a, range(a + 1, n), desk) for a in range(n)]
        independent, dependent = (np.concatenate(side) for side in zip(*answers, strict=True))
        return independent, dependent

    def _strata(self, given: frozenset[int], desk: Desk) -> Strata:
        """Group the rows, from the last grouping where that only lacks one variable."""
        last = self._last
        if last is None or not last[0] <= given or len(given) - len(last[0]) > 1:
            strata = self.table.given(given, desk)
        elif last[0] == given:
            return last[1]
        else:
            (added,) = given - last[0]
            strata = self.table.refined(last[1], added, desk)
        self._last = (given, strata)
        return strata

    def _df(self, strata: Strata, a: int, b: int, desk: Desk) -> int:
        return int(self.table.chi_square(strata, [(a, b)], desk, likelihood_ratio=False)[1][0])

    def _answer(self, statistic: float, df: int, rows_used: int) -> Answer:
        if df == 0:
            return "undecided"
        if special.chdtrc(df, statistic) < self.alpha:
            return "dependent"
        if self.weighs_power and power_of(df, rows_used, self.alpha, self.effect) < ENOUGH_POWER:
            return "undecided"
        return "independent"


def _is_independent(log_probability: float) -> bool:
    return log_probability >= math.log(PRIOR) - TIE


def _symmetric(by_pair: npt.NDArray[Scalar], n: int) -> npt.NDArray[Scalar]:
    matrix = np.zeros((n, n), dtype=by_pair.dtype)
    first, second = np.triu_indices(n, 1)
    matrix[first, second] = matrix[second, first] = by_pair
    return matrix
