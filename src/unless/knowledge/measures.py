"""How strong a dependence is, pooled over strata: information, odds ratios, limits."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from unless.data.showing import html_table
from unless.independence.statistics import likelihood_ratio_statistic

Integers = npt.NDArray[np.int64]
# Limits and intervals hold with this confidence.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class OddsRatio:
    """The odds ratio of two levels each after Mantel and Haenszel; interval of Robins, Breslow and Greenland.

    It is the factor by which the odds of `levels[0]` grow from its first to its second level as the other
    variable goes from its first to its second. None stands for a limit that the table does not give.
    """

    value: float
    low: float | None
    high: float | None
    levels: tuple[tuple[str, str], tuple[str, str]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; an infinite ratio is null."""
        return {
            "value": rounded(self.value),
            "low": rounded(self.low),
            "high": rounded(self.high),
            "levels": [list(one) for one in self.levels],
        }

    def _repr_html_(self) -> str:
        rows = [
            (name, "unknown" if value is None else f"{value:.3g}")
            for name, value in (("odds ratio", self.value), ("at least", self.low), ("at most", self.high))
        ]
        return html_table("Odds ratio, with its 95 % interval", ("", ""), rows)


def rounded(value: Any) -> Any:
    """Round a number to ten digits, which all machines agree on; what is not finite becomes None."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.10g}") if math.isfinite(value) else None


def information(tables: npt.ArrayLike) -> float:
    """Return the mutual information of two variables given the stratum, in bits, as the tables show it."""
    counts = np.asarray(tables)
    total = float(counts.sum())
    if not total:
        return 0.0
    return float(likelihood_ratio_statistic(counts)[0].sum()) / (2 * total * math.log(2))


def odds_ratio(tables: Integers) -> tuple[float, float | None, float | None] | None:
    """Return the ratio and its interval for strata of two by two; None where no stratum has any say."""
    cells = tables.astype(np.float64).reshape(-1, 4)
    total = cells.sum(axis=1)
    cells, total = cells[total > 0], total[total > 0]
    a, b, c, d = cells.T
    concordant, discordant = a * d / total, b * c / total
    top, bottom = float(concordant.sum()), float(discordant.sum())
    if not top and not bottom:
        return None
    if not top or not bottom:
        return (math.inf if top else 0.0), None, None
    along, across = (a + d) / total, (b + c) / total
    variance = (
        float((along * concordant).sum()) / (2 * top**2)
        + float((along * discordant + across * concordant).sum()) / (2 * top * bottom)
        + float((across * discordant).sum()) / (2 * bottom**2)
    )
    ratio = top / bottom
    factor = math.exp(min(float(special.ndtri((1 + CONFIDENCE) / 2)) * math.sqrt(variance), 700.0))
    return ratio, ratio / factor, ratio * factor


def largest_noncentrality(statistic: float, df: int) -> float:
    """Return the largest noncentrality that makes so small a statistic at most twenty times less likely.

    Less likely than without any dependence: a statistic that is smaller than chance alone makes most of them
    rules no more out than chance can, so that the limit is never zero.
    """
    by_chance = float(special.chdtr(df, statistic))
    if by_chance < 1e-250:
        # What the limit comes to as the statistic goes to zero, whatever the degrees of freedom.
        return -2 * math.log(1 - CONFIDENCE)
    return float(special.chndtrinc(statistic, df, (1 - CONFIDENCE) * by_chance))
