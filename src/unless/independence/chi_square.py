"""What Pearson's and the likelihood-ratio test share: three verdicts from a statistic that is chi-square."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import special

from unless.data.showing import html_table
from unless.independence.evidence import Floats, Integers, as_strata, show
from unless.independence.power import ENOUGH_POWER, power_of
from unless.independence.settings import check_effect, check_rate
from unless.independence.sparse import independence_within_strata
from unless.independence.verdict import Answer, Verdict


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
        shown = show(strata)
        if shown["df"] == 0:
            return Verdict(answer="undecided", statistic=0.0, power=0.0, **shown)
        statistic = float(self.statistic(strata)[0].sum())
        p = float(special.chdtrc(shown["df"], statistic))
        power = float(power_of(shown["df"], shown["rows_used"], self.alpha, self.effect))
        return Verdict(
            answer=self._answer(p, power), statistic=statistic, p=p, method="chi-square", power=power, **shown
        )

    def on_any(self, table: npt.ArrayLike) -> Verdict:
        """Judge as `on` does where the cells are full enough, else by p of Pearson's X2 given the margins.

        No chi-square law holds in cells that are nearly empty: five rows of two kinds are no dependence.
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
