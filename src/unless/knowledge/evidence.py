"""What the data say about a pair in some contexts, whatever a structure says."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.domain import Domain
from unless.data.showing import html_table
from unless.independence.power import ENOUGH_POWER, rows_needed
from unless.independence.tests import Answer, PearsonTest
from unless.knowledge.measures import OddsRatio, information, largest_noncentrality, odds_ratio, rounded
from unless.knowledge.strata import Strata

Integers = npt.NDArray[np.int64]
# Beyond this no table will ever grow; "about 3e12 more rows" helps nobody.
MOST_ROWS_ASKED = 10**9


@dataclass(frozen=True)
class Levels:
    """What an alpha, a rate of false discoveries and an effect worth seeing are."""

    alpha: float
    fdr: float
    effect: float


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A test of a pair in some contexts, pooled over the strata of its blanket, and how strong the pair is.

    `n_rows` are the rows of these contexts, `rows_used` those of strata in which both variables vary.
    `information` is the conditional mutual information in bits, `cramers_v` pooled as the statistic is, and
    `cramers_v_limit` the largest V that is not ruled out (95 %) where no dependence was found. `more_rows`
    says, of an undecided test, how many more rows of these contexts would settle it four times in five; None
    where no number would, because nothing varies. `left_out` are neighbours that the strata could not bear.
    `n_choices` is the number of descriptions of the same length that contexts could have been chosen from: q
    pays for that choice. `critical_p` is what p would have to be below, all other tests as they are, to show
    a dependence. `method` is what p comes from: chi-square where the cells are full enough, else permutations
    or moments of the statistic given the margins.
    """

    answer: Answer
    n_rows: int
    rows_used: int
    statistic: float
    df: int
    p: float
    method: str
    q: float
    n_choices: int
    critical_p: float
    information: float
    cramers_v: float
    cramers_v_limit: float
    effect_size: float
    odds_ratio: OddsRatio | None
    power: float
    more_rows: int | None
    small_expectations: float
    given: tuple[str, ...]
    left_out: tuple[str, ...]
    tables: Integers = field(repr=False, compare=False)
    strata: tuple[tuple[str, ...], ...] = field(repr=False)

    def to_dict(self, tables: bool = True) -> dict[str, Any]:
        """Return plain values; `tables=False` leaves the tables out."""
        plain = {
            name: rounded(getattr(self, name))
            for name in (
                "answer", "n_rows", "rows_used", "statistic", "df", "p", "method", "q", "n_choices",
                "critical_p", "information", "cramers_v", "cramers_v_limit", "effect_size", "power",
                "more_rows", "small_expectations",
            )
        }  # fmt: skip
        plain["odds_ratio"] = self.odds_ratio and self.odds_ratio.to_dict()
        plain["given"], plain["left_out"] = list(self.given), list(self.left_out)
        if tables:
            plain["tables"] = [
                {"given": dict(zip(self.given, labels, strict=True)), "counts": table.tolist()}
                for labels, table in zip(self.strata, self.tables, strict=True)
            ]
        return plain

    def _repr_html_(self) -> str:
        rows = [
            ("rows", f"{self.rows_used:,} of {self.n_rows:,} used"),
            ("V", f"{self.cramers_v:.2f}, at most {self.cramers_v_limit:.2f}"),
            ("test", f"{self.method}, statistic {self.statistic:.2f}, {self.df} degrees of freedom"),
            ("p", f"{self.p:.3g}"),
        ]
        return html_table(self.answer, ("", ""), rows)


def weigh(
    counted: Strata, pair: tuple[int, int], domain: Domain, levels: Levels, n_choices: int = 1
) -> Evidence:
    """Test counted strata; q and the answer wait for `settle`."""
    verdict = PearsonTest(levels.alpha, levels.effect).on_any(counted.tables)
    names = domain.names
    scale = (verdict.statistic / verdict.cramers_v**2) if verdict.cramers_v else 0.0
    p = 1.0 if verdict.p is None else verdict.p
    return Evidence(
        answer="undecided",
        n_rows=int(counted.tables.sum()),
        rows_used=verdict.rows_used,
        statistic=verdict.statistic,
        df=verdict.df,
        p=p,
        method=verdict.method or "chi-square",
        q=p,
        n_choices=n_choices,
        critical_p=levels.alpha,
        information=information(counted.tables),
        cramers_v=verdict.cramers_v,
        cramers_v_limit=_limit(verdict.statistic, verdict.df, scale, verdict.rows_used),
        effect_size=verdict.effect_size,
        odds_ratio=_odds_ratio(counted.tables, pair, domain),
        power=verdict.power or 0.0,
        more_rows=None,
        small_expectations=verdict.small_expectations,
        given=tuple(names[one] for one in counted.given),
        left_out=tuple(names[one] for one in counted.left_out),
        tables=counted.tables,
        strata=tuple(
            tuple(domain.variables[one].levels[code] for one, code in zip(counted.given, row, strict=True))
            for row in counted.codes.tolist()
        ),
    )


def settle(evidence: Evidence, q: float, critical_p: float, levels: Levels) -> Evidence:
    """Give a verdict: dependent by q, independent where p and the power allow it, else undecided."""
    if not evidence.df:
        return replace(evidence, q=1.0, critical_p=critical_p, answer="undecided", more_rows=None)
    settled = replace(evidence, q=q, critical_p=critical_p)
    if q < levels.fdr:
        return replace(settled, answer="dependent")
    if evidence.p >= levels.alpha and evidence.power >= ENOUGH_POWER:
        return replace(settled, answer="independent")
    return replace(settled, answer="undecided", more_rows=_more_rows(settled, levels))


def _more_rows(evidence: Evidence, levels: Levels) -> int:
    """Say how many more rows give a power of 80 %.

    Against the effect worth seeing; where p lies between alpha and what the correction asks for, against the
    effect that was seen, at the level that the correction asks for.
    """
    level, effect = levels.alpha, levels.effect
    if evidence.p < levels.alpha:
        # Chance alone gives a statistic of one for each degree of freedom.
        beyond_chance = max(evidence.statistic - evidence.df, 1.0) / evidence.rows_used
        level, effect = max(evidence.critical_p, 1e-300), math.sqrt(beyond_chance)
    needed = int(rows_needed(evidence.df, level, effect))
    # Only the share of the rows that lies in strata where something varies helps.
    missing = max(needed - evidence.rows_used, 1) * evidence.n_rows / evidence.rows_used
    return min(math.ceil(missing), MOST_ROWS_ASKED)


def _limit(statistic: float, df: int, scale: float, rows_used: int) -> float:
    if not df:
        return 1.0
    # Where the statistic is zero, so is V, and the rows are the best scale there is.
    return min(1.0, math.sqrt(largest_noncentrality(statistic, df) / (scale or rows_used)))


def _odds_ratio(tables: Integers, pair: tuple[int, int], domain: Domain) -> OddsRatio | None:
    """Return the odds ratio of two variables that show two levels each."""
    whole = tables.sum(axis=0)
    used = [np.flatnonzero(whole.sum(axis=axis)).tolist() for axis in (1, 0)]
    if [len(codes) for codes in used] != [2, 2]:
        return None
    found = odds_ratio(tables[:, used[0]][:, :, used[1]])
    if found is None:
        return None
    first, second = (
        (domain.variables[one].levels[codes[0]], domain.variables[one].levels[codes[1]])
        for one, codes in zip(pair, used, strict=True)
    )
    return OddsRatio(*found, levels=(first, second))
