"""Questions of independence given some variables, pooled over their strata, as a learner asks them."""

import math
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy import special

from unless.counting.joint import JointCounter, JointTable
from unless.counting.strata import StrataTable
from unless.data.dataset import Dataset
from unless.independence.bayesian import PRIOR, TIE
from unless.independence.power import ENOUGH_POWER, power_of
from unless.independence.tails import log_tail
from unless.independence.thresholds import critical_values
from unless.independence.verdict import Answer
from unless.kernels.strata import Desk, Strata

Floats = npt.NDArray[np.float64]
Scalar = TypeVar("Scalar", bound=np.generic)
# Degrees of freedom whose critical values are looked up, and how close to one a statistic must be for its p.
_MOST_CRITICAL, _CLOSE = 1024, 1e-9


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
    # Answers most chi-square questions much faster than the table of strata does.
    joint: JointTable | None = None
    _counter: JointCounter | None = field(default=None, repr=False)
    _desk: Desk | None = field(default=None, repr=False)
    _last: tuple[frozenset[int], Strata] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls, data: Dataset, test: str, alpha: float, effect: float, *, weighs_power: bool
    ) -> "PooledAsker":
        """Take a dataset that has some rows."""
        table = StrataTable.of(data)
        columns = table.columns
        joint = None if test == "bayesian" else JointTable.of(columns.codes, columns.counts, columns.n_used)
        return cls(table, test, alpha, effect, weighs_power, joint)

    @property
    def n_variables(self) -> int:
        """The number of variables."""
        return self.table.n_variables

    def fresh(self) -> "PooledAsker":
        """Return one that shares the table and nothing that is written to."""
        return replace(self, _counter=None, _desk=None, _last=None)

    def ask(self, a: int, b: int, given: frozenset[int]) -> Answer:
        """Tell whether a and b are independent given the values of some variables."""
        if self.test == "bayesian":
            return self._ask_bayesian(a, b, given)
        counted = None
        if self.joint is not None:
            counter = self._counter = self._counter or JointCounter(self.joint)
            counted = counter.ask_one(a, b, sorted(given), self._is_ratio)
        if counted is None:
            desk = self._desk = self._desk or self.table.desk()
            strata = self._strata(given, desk)
            statistic, df, used = self.table.chi_square(
                strata, [(a, b)], desk, likelihood_ratio=self._is_ratio
            )
            counted = float(statistic[0]), int(df[0]), int(used[0])
        return self._answer(*counted)

    def _ask_bayesian(self, a: int, b: int, given: frozenset[int]) -> Answer:
        desk = self._desk = self._desk or self.table.desk()
        strata = self._strata(given, desk)
        log_independent = float(self.table.bayesian(strata, a, [b], desk)[0][0])
        if not _is_independent(log_independent):
            return "dependent"
        # Where nothing varies the Bayesian test always says "independent" (decision 16).
        return "undecided" if self.weighs_power and not self._df(strata, a, b, desk) else "independent"

    def associations(self) -> Associations:
        """Ask about every two variables, given nothing."""
        desk = self._desk = self._desk or self.table.desk()
        n = self.n_variables
        if self.test == "bayesian":
            log_p, strength = self._log_probabilities(self.table.everything(), desk)
            dependent = np.array([not _is_independent(value) for value in log_p], dtype=np.bool_)
        else:
            strength, df = self._statistics(desk)
            log_p = log_tail(df, strength)
            dependent = (special.chdtrc(np.maximum(df, 1), strength) < self.alpha) & (df > 0)
        return Associations(_symmetric(log_p, n), _symmetric(strength, n), _symmetric(dependent, n))

    def _statistics(self, desk: Desk) -> tuple[Floats, npt.NDArray[np.int64]]:
        """Return the statistic and df of every pair, given nothing."""
        n, everything = self.n_variables, self.table.everything()
        counter = None if self.joint is None else JointCounter(self.joint)
        found = []
        for a in range(n - 1):
            others = range(a + 1, n)
            counted, left = np.empty((len(others), 3)), list(range(len(others)))
            if counter is not None:
                counted, left = counter.ask_many(a, others, (), self._is_ratio)
            if left:
                pairs = [(a, others[i]) for i in left]
                rest = self.table.chi_square(everything, pairs, desk, likelihood_ratio=self._is_ratio)
                counted[left] = np.stack(rest, axis=1)
            found.append(counted)
        counted = np.concatenate(found) if found else np.empty((0, 3))
        return counted[:, 0], counted[:, 1].astype(np.int64)

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
        if self._is_beyond(statistic, df):
            return "dependent"
        if self.weighs_power and power_of(df, rows_used, self.alpha, self.effect) < ENOUGH_POWER:
            return "undecided"
        return "independent"

    @property
    def _is_ratio(self) -> bool:
        return self.test == "likelihood_ratio"

    def _is_beyond(self, statistic: float, df: int) -> bool:
        """Tell whether p is below alpha, by a critical value unless that is too close."""
        if df <= _MOST_CRITICAL:
            critical = critical_values(self.alpha, _MOST_CRITICAL)[df]
            if abs(statistic - critical) > _CLOSE * critical:
                return bool(statistic > critical)
        return bool(special.chdtrc(df, statistic) < self.alpha)


def _is_independent(log_probability: float) -> bool:
    return log_probability >= math.log(PRIOR) - TIE


def _symmetric(by_pair: npt.NDArray[Scalar], n: int) -> npt.NDArray[Scalar]:
    matrix = np.zeros((n, n), dtype=by_pair.dtype)
    first, second = np.triu_indices(n, 1)
    matrix[first, second] = matrix[second, first] = by_pair
    return matrix
