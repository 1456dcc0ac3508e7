"""What a sentence rests on: a test of the pair given other columns, its strength, and tables to look at."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import ceil, log, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri

from unless.data.dataset import MISSING_LABELS, Dataset, unknown_levels
from unless.data.domain import Domain, Variable
from unless.data.showing import MOST_LETTERS, html_table, visible
from unless.knowledge.measures import rounded
from unless.knowledge.strata import Counter, Strata
from unless.referee.regressions import LinkEstimate
from unless.structures.labelled import Region

Integers = npt.NDArray[np.int64]
# Fewer rows with a level are too few to say a percentage of.
LEAST_ROWS = 10
# Levels that are compared, the most frequent; and the least difference of shares that is worth a word.
MOST_CONTRASTED, LEAST_GAP = 12, 0.01
# Shares of all strata, and of those that show both levels, may differ by this.
SAME_MIX = 0.03
# The least tau that is worth a word, and the standard error of tau by chance times the root of the rows.
LEAST_TAU, CHANCE_TAU = 0.1, 2 / 3
# What ranks begin with.
RANKS_BEGIN = ("1st", "first", "first class", "1st class")
# A pair with a p below the second is open; with one below the first it would be a finding in most tables.
SETTLED, UNCLEAR = 0.001, 0.05
# Beyond this no table will ever grow.
MOST_ROWS_ASKED = 10**9


@dataclass(frozen=True)
class Contrast:
    """The share of one level at two levels of the other column, the same mix of strata for both.

    `level` of `column` is seen in `high` of the rows where `other` is `at_high`, and in `low` of those where
    it is `at_low`. `cut` names those of the two columns whose levels are groups of numbers.
    """

    column: str
    level: str
    other: str
    at_high: str
    high: float
    at_low: str
    low: float
    cut: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "column": self.column,
            "level": self.level,
            "other": self.other,
            "at_high": self.at_high,
            "high": rounded(self.high),
            "at_low": self.at_low,
            "low": rounded(self.low),
        }

    def _repr_html_(self) -> str:
        rows = [(self.at_high, f"{100 * self.high:.1f} %"), (self.at_low, f"{100 * self.low:.1f} %")]
        heads = (visible(self.other)[:MOST_LETTERS], "share")
        return html_table(f"{visible(self.column)} = {visible(self.level)}", heads, rows)


def rank_ends(variable: Variable) -> tuple[str, ...]:
    """Return the first and last level of a column of ranks (1st, 2nd, ...); nothing for others.

    The first rank is the highest, so that "more" and "less" would be read the wrong way round.
    """
    known = [level for level in variable.levels if level not in MISSING_LABELS]
    is_rank = bool(known) and known[0].casefold() in RANKS_BEGIN
    return (known[0], known[-1]) if variable.ordered and is_rank else ()


@dataclass(frozen=True)
class Trend:
    """How far two ordered columns rise together: Kendall's tau-b, from pairs of rows of the same stratum.

    The second may have two levels without an order; `level` is then the one that goes with more of the first.
    """

    first: str
    second: str
    tau: float
    n_rows: int
    level: str = ""
    # The first and last level of a column of ranks.
    first_ends: tuple[str, ...] = ()
    second_ends: tuple[str, ...] = ()

    @property
    def is_clear(self) -> bool:
        """Whether chance alone would hardly give so large a tau (three standard errors), and it matters."""
        return abs(self.tau) >= max(LEAST_TAU, 3 * CHANCE_TAU / sqrt(max(1, self.n_rows)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        level = {"level": self.level} if self.level else {}
        return {"first": self.first, "second": self.second, "tau": rounded(self.tau), **level}

    def _repr_html_(self) -> str:
        return html_table(f"{visible(self.first)} and {visible(self.second)}: tau = {self.tau:.2f}", (), ())

    @classmethod
    def of(cls, domain: Domain, pair: tuple[int, int], tables: Integers) -> "Trend | None":
        """Measure it in tables (stratum x first x second); None where a column has no order."""
        variables = [domain.variables[c] for c in pair]
        ordered = [bool(one.ordered or one.cuts) for one in variables]
        if not len(tables) or not any(ordered):
            return None
        if ordered == [False, True]:
            return cls.of(domain, pair[::-1], tables.transpose(0, 2, 1))
        if not ordered[1] and len(variables[1].levels) != 2:
            return None
        # Levels beyond those of the cuts stand for no number.
        known = [len(one.cuts) + 1 if one.cuts else len(one.levels) for one in variables]
        tau = pooled_tau(tables[:, : known[0], : known[1]])
        if tau is None:
            return None
        level = "" if ordered[1] else variables[1].levels[int(tau > 0)]
        return cls(
            variables[0].name, variables[1].name, abs(tau) if level else tau, int(tables.sum()), level,
            *map(rank_ends, variables),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PairEvidence:
    """A test of a pair in some contexts, given other columns, and how strong the pair is there.

    `where` are the contexts, empty for all rows. The statistic is the mean of the likelihood ratios of two
    regressions, one of each column of the pair on the other beside the columns given (`method` says if it was
    another). `p` is corrected for the choice of the gate, `q` over all pairs of the table. `information` is
    in bits a row and `cramers_v` without what chance alone gives; `cramers_v_limit` is the largest V that is
    not ruled out (95 %). `tables` count the pair in the strata of `table_given`, as many of the columns given
    as the rows bear: to look at, and for the contrast and the trend.
    """

    where: tuple[Region, ...]
    n_rows: int
    statistic: float
    df: int
    p: float
    q: float
    information: float
    cramers_v: float
    cramers_v_limit: float
    contrast: Contrast | None
    more_rows: int | None
    method: str
    table_given: tuple[str, ...]
    tables: Integers = field(repr=False, compare=False)
    strata: tuple[tuple[str, ...], ...] = field(repr=False)
    trend: Trend | None = None
    # How many rows of a survey tell as much of the pair as one that is drawn alike; None for plain rows.
    design_effect: float | None = None

    def to_dict(self, tables: bool = True) -> dict[str, Any]:
        """Return plain values; `tables=False` leaves the tables out."""
        plain: dict[str, Any] = {
            name: rounded(getattr(self, name))
            for name in (
                "n_rows", "statistic", "df", "p", "q", "information", "cramers_v", "cramers_v_limit",
                "more_rows", "method",
            )
        }  # fmt: skip
        plain["where"] = [region.to_dict() for region in self.where]
        plain["contrast"] = self.contrast and self.contrast.to_dict()
        if self.trend is not None:
            plain["trend"] = self.trend.to_dict()
        if self.design_effect is not None:
            plain["design_effect"] = rounded(self.design_effect)
        if tables:
            plain["table_given"] = list(self.table_given)
            plain["tables"] = [
                {"given": dict(zip(self.table_given, labels, strict=True)), "counts": table.tolist()}
                for labels, table in zip(self.strata, self.tables, strict=True)
            ]
        return plain

    def _repr_html_(self) -> str:
        rows = [
            ("rows", f"{self.n_rows:,}"),
            ("V", f"{self.cramers_v:.2f}, at most {self.cramers_v_limit:.2f}"),
            ("test", f"{self.method}, statistic {self.statistic:.2f}, {self.df} degrees of freedom"),
            ("p, q", f"{self.p:.3g}, {self.q:.3g}"),
        ]
        if self.design_effect is not None:
            rows.append(("design effect", f"{self.design_effect:.2f}"))
        return html_table("Evidence", ("", ""), rows)


class Grounds:
    """Makes the evidence of pairs of one table, whose columns are in the order of their names."""

    def __init__(self, data: Dataset, effect: float) -> None:
        self.data, self.effect = data, effect
        self.counter = Counter(data)
        self._unknown = {data.domain.index(name): code for name, code in unknown_levels(data).items()}

    def of(
        self,
        pair: tuple[int, int],
        side: LinkEstimate,
        given: Sequence[int],
        *,
        where: tuple[Region, ...] = (),
        p: float,
        q: float,
        with_tables: bool,
        method: str = "regression",
    ) -> PairEvidence:
        """Put together what is known of a pair on one side."""
        inside = self._inside(where)
        n_rows = int(self.data.counts.sum() if inside is None else self.data.counts[inside].sum())
        if self._unknown or (self.data.detail is not None and self.data.detail.missing):
            # Those that have what the test needs.
            n_rows = round(side.n_rows * side.design_effect)
        counted = self._counted(pair, given, self._known(inside, [*pair, *given])) if with_tables else None
        names = self.data.domain.names
        beyond = side.beyond_chance
        n_told = float(n_rows) if self.data.design is None else side.n_rows
        return PairEvidence(
            where=where,
            n_rows=n_rows,
            statistic=side.statistic.value,
            df=side.statistic.df,
            p=p,
            q=q,
            information=beyond / (2 * log(2) * (n_told or 1.0)),
            cramers_v=side.v,
            cramers_v_limit=side.largest_v,
            contrast=None if counted is None else self._contrast(pair, counted.tables),
            # A finding is settled; the tables are its own.
            more_rows=None if with_tables else self._more_rows(side, n_rows),
            method=method,
            table_given=() if counted is None else tuple(names[c] for c in counted.given),
            tables=np.zeros((0, 0, 0), dtype=np.int64) if counted is None else counted.tables,
            strata=() if counted is None else self._labels(counted),
            trend=None if counted is None else Trend.of(self.data.domain, pair, counted.tables),
            design_effect=None if self.data.design is None else side.design_effect,
        )

    def _inside(self, where: tuple[Region, ...]) -> npt.NDArray[np.bool_] | None:
        if not where:
            return None
        masks = [region.holds(self.data.domain, self.data.rows) for region in where]
        return np.asarray(np.logical_or.reduce(masks))

    def _known(
        self, inside: npt.NDArray[np.bool_] | None, columns: Sequence[int]
    ) -> npt.NDArray[np.bool_] | None:
        """Leave out rows that lack a value in one of some columns, where that is a level."""
        for column in columns:
            if column in self._unknown:
                known = self.data.rows[:, column] != self._unknown[column]
                inside = known if inside is None else inside & known
        return inside

    def _counted(
        self, pair: tuple[int, int], given: Sequence[int], inside: npt.NDArray[np.bool_] | None
    ) -> Strata:
        return self.counter.count_within_bounds(*pair, [given], inside)

    def _labels(self, counted: Strata) -> tuple[tuple[str, ...], ...]:
        variables = self.data.domain.variables
        return tuple(
            tuple(variables[c].levels[code] for c, code in zip(counted.given, row, strict=True))
            for row in counted.codes.tolist()
        )

    def _more_rows(self, side: LinkEstimate, n_rows: int) -> int | None:
        """Say how many more rows would bring the limit of V down to the effect worth seeing, about.

        Where the limit is as low already, how many would make a link of what is seen.
        """
        if not side.statistic.df:
            return None
        if side.largest_v <= self.effect:
            wanted = float(chdtri(side.statistic.df, SETTLED))
            missing = n_rows * (wanted / max(side.statistic.value, 1.0) - 1)
            return int(min(max(ceil(missing), 1), MOST_ROWS_ASKED)) if side.statistic.p < UNCLEAR else None
        missing = n_rows * ((side.largest_v / self.effect) ** 2 - 1)
        return int(min(ceil(missing), MOST_ROWS_ASKED))

    def _contrast(self, pair: tuple[int, int], tables: Integers) -> Contrast | None:
        """Return the level, and the two levels of the other column, whose shares are furthest apart."""
        shown = [int((tables.sum(axis=(0, axis)) > 0).sum()) for axis in (2, 1)]
        # The column with fewer levels is told in percent; nothing is said about which depends on which.
        if shown[0] <= shown[1]:
            column, other, by_stratum = pair[0], pair[1], tables
        else:
            column, other, by_stratum = pair[1], pair[0], tables.transpose(0, 2, 1)
        first, second = self.data.domain.variables[column], self.data.domain.variables[other]
        return furthest_apart(first, second, by_stratum)


def furthest_apart(
    first: Variable,
    second: Variable,
    by_stratum: Integers,
    level: int | None = None,
    as_pictured: bool = True,
) -> Contrast | None:
    """Return a level of the first column, or the one named, and two of the second with shares furthest apart.

    Tables are stratum x level of the first x level of the second. Shares are those that pictures show, where
    strata that show both levels say the same; or, if they need not be, those of such strata. None where no
    difference is worth a word.
    """
    shares = standardised_shares(by_stratum)
    if shares is None:
        return None
    totals = by_stratum.sum(axis=(0, 1))
    places = [k for k in np.argsort(-totals, kind="stable")[:MOST_CONTRASTED].tolist() if totals[k]]
    best: tuple[float, int, int, int, float, float] | None = None
    for one, two in combinations(sorted(places), 2):
        compared = _compared(by_stratum[:, :, [one, two]])
        if compared is None:
            continue
        for told in range(len(shares)) if level is None else (level,):
            left, right = float(shares[told, one]), float(shares[told, two])
            if not as_pictured:
                left, right = compared[told].tolist()
            elif np.abs(compared[told] - (left, right)).max() > SAME_MIX:
                continue
            high, low = ((one, left), (two, right)) if left >= right else ((two, right), (one, left))
            gap = round(high[1] - low[1], 12)
            if best is None or gap > best[0]:
                best = gap, told, high[0], low[0], high[1], low[1]
    if best is None or best[0] < LEAST_GAP:
        return None
    _, told, high_at, low_at, high_share, low_share = best
    return Contrast(
        first.name, first.levels[told], second.name,
        second.levels[high_at], high_share, second.levels[low_at], low_share, cut_names(first, second),
    )  # fmt: skip


def cut_names(*variables: Variable) -> tuple[str, ...]:
    """Name those variables whose levels are groups of numbers."""
    return tuple(one.name for one in variables if one.cuts)


def pooled_tau(tables: Integers) -> float | None:
    """Return Kendall's tau-b of pairs of rows in the same table; None where a column does not vary in any.

    >>> [pooled_tau(np.array([table])) for table in ([[9, 0], [0, 9]], [[5, 5], [5, 5]], [[1, 1], [0, 0]])]
    [1.0, 0.0, None]
    """
    counts = tables.astype(np.float64)
    # Rows with both columns larger, and with one larger and the other smaller.
    above = counts[:, ::-1, ::-1].cumsum(axis=1).cumsum(axis=2)[:, ::-1, ::-1]
    across = counts[:, ::-1, :].cumsum(axis=1).cumsum(axis=2)[:, ::-1, :]
    agree = (counts[:, :-1, :-1] * above[:, 1:, 1:]).sum()
    differ = (counts[:, :-1, 1:] * across[:, 1:, :-1]).sum()
    totals = counts.sum(axis=(1, 2))
    untied = [(totals**2).sum() - (counts.sum(axis=axis) ** 2).sum() for axis in (2, 1)]
    if min(untied) <= 0:
        return None
    return float(2 * (agree - differ) / sqrt(untied[0] * untied[1]))


def _compared(tables: Integers) -> npt.NDArray[np.float64] | None:
    """Return shares at two levels of the second column, for the same mix of the strata that show both.

    None where fewer rows than a percentage needs are left of either.
    """
    rows = tables.sum(axis=1)
    both = (rows > 0).all(axis=1)
    if not both.any() or rows[both].sum(axis=0).min() < LEAST_ROWS:
        return None
    tables, rows = tables[both].astype(np.float64), rows[both].astype(np.float64)
    weights = rows.sum(axis=1)
    shares = (tables / rows[:, None, :] * weights[:, None, None]).sum(axis=0) / weights.sum()
    return np.asarray(shares)


def standardised_shares(tables: Integers) -> npt.NDArray[np.float64] | None:
    """Return shares of levels of the first column at each level of the second, for the same mix of strata.

    The mix is that of the strata in which at least two levels of the second column are seen; a level that
    some of them miss is told by those that have it.
    """
    by_second = tables.sum(axis=1)
    useful = (by_second > 0).sum(axis=1) >= 2
    if not useful.any():
        return None
    tables, by_second = tables[useful].astype(np.float64), by_second[useful].astype(np.float64)
    weights = by_second.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        within = np.where(by_second[:, None, :] > 0, tables / by_second[:, None, :], 0.0)
        there = np.where(by_second > 0, weights[:, None], 0.0)
        shares = (within * there[:, None, :]).sum(axis=0) / there.sum(axis=0)
    return np.asarray(shares)
