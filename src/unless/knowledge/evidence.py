"""What a sentence rests on: a test of the pair given other columns, its strength, and tables to look at.

The test is the referee's. Here its strength is measured, the pair is counted in the strata of as many of the
columns given as the rows allow, and from these tables come percentages (`Contrast`) and trends (`Trend`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import ceil, log, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.counting.reference import MAX_BYTES
from unless.data.dataset import Counts, Dataset, unknown_levels
from unless.data.domain import MISSING_LABELS, Domain, Region, Variable
from unless.data.showing import MOST_LETTERS, html_table, visible
from unless.errors import SettingError, TooLarge
from unless.independence.statistics import check_effect, critical_value, likelihood_ratio_statistic
from unless.referee.regressions import LinkEstimate
from unless.typing import Bools, Floats, Integers

# Fewer rows with a level are too few to say a percentage of.
LEAST_ROWS = 10
# Levels that are compared, the most frequent; and the least difference of shares that is mentioned.
MOST_CONTRASTED, LEAST_GAP = 12, 0.01
# Shares of all strata, and of those that show both levels, may differ by this.
SAME_MIX = 0.03
# The least tau that is mentioned, and the standard error of tau by chance times the root of the rows.
LEAST_TAU, CHANCE_TAU = 0.1, 2 / 3
# What ranks begin with.
RANKS_BEGIN = ("1st", "first", "first class", "1st class")
# A pair with a p below the second is open; with one below the first it would be a finding in most tables.
SETTLED, UNCLEAR = 0.001, 0.05
# No table will ever have more rows than this: "about 3e12 more rows" is of no use.
MOST_ROWS_ASKED = 10**9
# Cochran's rule, on average: so many rows for each cell of the strata.
ROWS_PER_CELL = 5
# The most cells, empty ones too, of strata that the data chose.
MOST_CELLS = 2**24
# Numbers are looked up in an array of up to this many times the rows, and sorted beyond that.
_DENSE = 16
NO_TABLES: Integers = np.zeros((0, 0, 0), dtype=np.int64)


def check_fdr_and_effect(fdr: float, effect: float) -> None:
    """Refuse a share of false findings outside (0, 1], and an effect that is no positive number."""
    if isinstance(fdr, bool) or not isinstance(fdr, int | float | np.number) or not 0 < fdr <= 1:
        raise SettingError(f"fdr={fdr!r} must be a number above 0, at most 1.")
    check_effect(effect)


def rounded(value: Any) -> Any:
    """Round a number to ten digits, which all machines agree on; what is not finite becomes None."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.10g}") if math.isfinite(value) else None


def plain_fields(result: object, *names: str) -> dict[str, Any]:
    """Return some fields of a result as plain values, numbers rounded."""
    return {name: rounded(getattr(result, name)) for name in names}


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
        return plain_fields(self, "column", "level", "other", "at_high", "high", "at_low", "low")

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
    as there are rows for: to look at, and for the contrast and the trend.
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
    contrast: Contrast | None = None
    # None for a finding: it is settled.
    more_rows: int | None = None
    method: str
    table_given: tuple[str, ...] = ()
    tables: Integers = field(default_factory=lambda: NO_TABLES, repr=False, compare=False)
    strata: tuple[tuple[str, ...], ...] = field(default=(), repr=False)
    trend: Trend | None = None
    # How many rows of a survey are as informative of the pair as one drawn alike; None for plain rows.
    design_effect: float | None = None

    def to_dict(self, tables: bool = True) -> dict[str, Any]:
        """Return plain values; `tables=False` leaves the tables out."""
        plain = plain_fields(
            self, "n_rows", "statistic", "df", "p", "q", "information", "cramers_v", "cramers_v_limit",
            "more_rows", "method",
        )  # fmt: skip
        plain["where"] = [region.to_dict() for region in self.where]
        plain["contrast"] = self.contrast and self.contrast.to_dict()
        if self.trend is not None:
            plain["trend"] = self.trend.to_dict()
        if self.design_effect is not None:
            plain["design_effect"] = rounded(self.design_effect)
        if tables:
            plain["table_given"] = list(self.table_given)
            plain["tables"] = tables_to_dicts(self.table_given, self.strata, self.tables)
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


class EvidenceBuilder:
    """Makes the evidence of pairs of one table, whose columns are in the order of their names."""

    def __init__(self, data: Dataset, effect: float) -> None:
        self.data, self.effect = data, effect
        self.counter = StrataCounter(data)
        self._unknown = {data.domain.index(name): code for name, code in unknown_levels(data).items()}

    def of(
        self,
        pair: tuple[int, int],
        link: LinkEstimate,
        given: Sequence[int],
        *,
        where: tuple[Region, ...] = (),
        p: float,
        q: float,
        with_tables: bool,
        method: str = "regression",
    ) -> PairEvidence:
        """Put together what is known of a pair in some regions, all rows if there are none."""
        inside = None
        if where:
            masks = [region.holds(self.data.domain, self.data.rows) for region in where]
            inside = np.asarray(np.logical_or.reduce(masks))
        n_rows = int(self.data.counts.sum() if inside is None else self.data.counts[inside].sum())
        if self._unknown or (self.data.detail is not None and self.data.detail.missing):
            # Those that have what the test needs.
            n_rows = round(link.n_rows * link.design_effect)
        n_informative = float(n_rows) if self.data.design is None else link.n_rows
        measured: dict[str, Any] = {
            "where": where,
            "n_rows": n_rows,
            "statistic": link.statistic.value,
            "df": link.statistic.df,
            "p": p,
            "q": q,
            "information": link.beyond_chance / (2 * log(2) * (n_informative or 1.0)),
            "cramers_v": link.v,
            "cramers_v_limit": link.largest_v,
            "method": method,
            "design_effect": None if self.data.design is None else link.design_effect,
        }
        if not with_tables:
            return PairEvidence(**measured, more_rows=self._more_rows(link, n_rows))
        counted = self.counter.count_within_bounds(*pair, given, self._known(inside, [*pair, *given]))
        return PairEvidence(
            **measured,
            contrast=self._contrast(pair, counted.tables),
            table_given=tuple(self.data.domain.names[c] for c in counted.given),
            tables=counted.tables,
            strata=counted.labels(self.data.domain),
            trend=Trend.of(self.data.domain, pair, counted.tables),
        )

    def _known(self, inside: Bools | None, columns: Sequence[int]) -> Bools | None:
        """Leave out rows that lack a value in one of some columns, where that is a level."""
        for column in columns:
            if column in self._unknown:
                known = self.data.rows[:, column] != self._unknown[column]
                inside = known if inside is None else inside & known
        return inside

    def _more_rows(self, link: LinkEstimate, n_rows: int) -> int | None:
        """Estimate how many more rows would bring the limit of V down to the effect worth seeing.

        Where the limit is as low already, how many would make a link of what is seen.
        """
        if not link.statistic.df:
            return None
        if link.largest_v <= self.effect:
            wanted = critical_value(link.statistic.df, SETTLED)
            missing = n_rows * (wanted / max(link.statistic.value, 1.0) - 1)
            return int(min(max(ceil(missing), 1), MOST_ROWS_ASKED)) if link.statistic.p < UNCLEAR else None
        missing = n_rows * ((link.largest_v / self.effect) ** 2 - 1)
        return int(min(ceil(missing), MOST_ROWS_ASKED))

    def _contrast(self, pair: tuple[int, int], tables: Integers) -> Contrast | None:
        """Return the level, and the two levels of the other column, whose shares are furthest apart."""
        # Shares are given of the column with fewer levels; that does not say which depends on which.
        column = smaller_axis(tables)
        by_stratum = tables.transpose(0, 2, 1) if column else tables
        first, second = (self.data.domain.variables[pair[one]] for one in (column, 1 - column))
        return furthest_apart(first, second, by_stratum)


def smaller_axis(tables: Integers) -> int:
    """Return which of the two columns of some tables, 0 or 1, shows fewer levels; the first if none does."""
    n_shown = [int((tables.sum(axis=(0, axis)) > 0).sum()) for axis in (2, 1)]
    return int(n_shown[0] > n_shown[1])


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
    difference is large enough.
    """
    shares = standardised_shares(by_stratum)
    if shares is None:
        return None
    totals = by_stratum.sum(axis=(0, 1))
    frequent = [k for k in np.argsort(-totals, kind="stable")[:MOST_CONTRASTED].tolist() if totals[k]]
    best: tuple[float, int, int, int, float, float] | None = None
    for one, two in combinations(sorted(frequent), 2):
        compared = _compared(by_stratum[:, :, [one, two]])
        if compared is None:
            continue
        for shown_level in range(len(shares)) if level is None else (level,):
            left, right = float(shares[shown_level, one]), float(shares[shown_level, two])
            if not as_pictured:
                left, right = compared[shown_level].tolist()
            elif np.abs(compared[shown_level] - (left, right)).max() > SAME_MIX:
                continue
            high, low = ((one, left), (two, right)) if left >= right else ((two, right), (one, left))
            gap = round(high[1] - low[1], 12)
            if best is None or gap > best[0]:
                best = gap, shown_level, high[0], low[0], high[1], low[1]
    if best is None or best[0] < LEAST_GAP:
        return None
    _, shown_level, high_at, low_at, high_share, low_share = best
    return Contrast(
        first.name, first.levels[shown_level], second.name,
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


def _compared(tables: Integers) -> Floats | None:
    """Return shares at two levels of the second column, for the same mix of the strata that show both.

    None where fewer rows than a percentage needs are left of either.
    """
    rows = tables.sum(axis=1)
    both = (rows > 0).all(axis=1)
    if not both.any() or rows[both].sum(axis=0).min() < LEAST_ROWS:
        return None
    return standardised_shares(tables)


def standardised_shares(tables: Integers) -> Floats | None:
    """Return shares of levels of the first column at each level of the second, for the same mix of strata.

    The mix is that of the strata in which at least two levels of the second column are seen; a level that
    some of them miss is measured in those that have it.
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


def tables_to_dicts(
    given: Sequence[str], strata: Sequence[tuple[str, ...]], tables: Integers
) -> list[dict[str, Any]]:
    """Return tables as plain values, each with the levels of its stratum."""
    return [
        {"given": dict(zip(given, labels, strict=True)), "counts": table.tolist()}
        for labels, table in zip(strata, tables, strict=True)
    ]


def information(tables: npt.ArrayLike) -> float:
    """Return the mutual information of two variables given the stratum, in bits, as the tables show it."""
    counts = np.asarray(tables)
    total = float(counts.sum())
    if not total:
        return 0.0
    return float(likelihood_ratio_statistic(counts)[0].sum()) / (2 * total * log(2))


@dataclass(frozen=True)
class StratifiedTables:
    """Tables of two variables (stratum x a x b), and the codes of the variables that make the strata."""

    tables: Integers
    given: tuple[int, ...]
    codes: npt.NDArray[np.uint16]

    def labels(self, domain: Domain) -> tuple[tuple[str, ...], ...]:
        """Return the levels that make each stratum."""
        if not self.given:
            return ((),) * len(self.codes)
        # Column by column: strata are many, given variables few.
        levels = [domain.variables[c].levels for c in self.given]
        return tuple(
            zip(
                *(
                    map(one.__getitem__, codes)
                    for one, codes in zip(levels, self.codes.T.tolist(), strict=True)
                ),
                strict=True,
            )
        )


class StrataCounter:
    """Counts two variables in the strata of others, in a table whose columns are sorted by name."""

    def __init__(self, data: Dataset) -> None:
        # Column by column: each is read alone, and often.
        self.columns = np.ascontiguousarray(data.rows.T)
        # Weighted counts of a survey are shown as whole numbers, which add up to about the rows.
        self.counts = data.counts if data.weights is None else data.weights
        self.n_levels = [int(n) for n in data.domain.n_levels]
        self._strength: dict[tuple[int, int], float] = {}

    def count(self, a: int, b: int, given: Sequence[int], inside: Bools | None = None) -> StratifiedTables:
        """Count two variables in every observed stratum of the given ones."""
        rows, ordered = _Rows.of(self, a, b, inside), tuple(sorted(given))
        for variable in ordered:
            rows = rows.cut(variable)
        first = np.zeros(rows.n_strata, dtype=np.intp)
        first[rows.stratum[::-1]] = np.arange(len(rows.stratum))[::-1]
        codes = np.empty((rows.n_strata, len(ordered)), dtype=np.uint16)
        for position, variable in enumerate(ordered):
            codes[:, position] = rows.column(variable)[first]
        return StratifiedTables(rows.tables(), ordered, codes)

    def count_within_bounds(
        self, a: int, b: int, candidates: Sequence[int], inside: Bools | None = None
    ) -> StratifiedTables:
        """Count given as many candidates as there are rows for, the strongest first.

        A candidate is as strong as the weaker of its mutual informations with a and with b, over the whole
        table: what explains a dependence away must depend on both. Once a variable is too much, those with as
        many levels are not tried.
        """
        rows = _Rows.of(self, a, b, inside)
        given: list[int] = []
        too_many = math.inf
        strength = {c: min(self._information(c, a), self._information(c, b)) for c in candidates}
        for variable in sorted(strength, key=lambda c: (-strength[c], c)):
            if self.n_levels[variable] >= too_many:
                continue
            finer = rows.cut(variable)
            if finer.n_strata == rows.n_strata:
                # It has one level wherever the others have theirs.
                continue
            if finer.are_enough():
                rows = finer
                given.append(variable)
            else:
                too_many = self.n_levels[variable]
        return self.count(a, b, given, inside)

    def _information(self, one: int, other: int) -> float:
        pair = (min(one, other), max(one, other))
        if pair not in self._strength:
            # A table that is too large to be counted comes after all others.
            is_small = self.n_levels[one] * self.n_levels[other] <= MOST_CELLS
            bits = information(_Rows.of(self, *pair, None).tables()) if is_small else 0.0
            self._strength[pair] = round(bits, 12)
        return self._strength[pair]


@dataclass(frozen=True)
class _Rows:
    """Rows that two variables are counted in, and the stratum of each, numbered in lexicographic order."""

    counter: StrataCounter
    pair: tuple[int, int]
    # Which rows, all of them if None.
    chosen: npt.NDArray[np.intp] | None
    counts: Counts | Floats
    stratum: Integers
    n_strata: int

    @classmethod
    def of(cls, counter: StrataCounter, a: int, b: int, inside: Bools | None) -> "_Rows":
        """Take all rows, or some, as one stratum, if there are any."""
        chosen = None if inside is None else np.flatnonzero(inside)
        counts = counter.counts if chosen is None else counter.counts[chosen]
        stratum = np.zeros(len(counts), dtype=np.int64)
        return cls(counter, (a, b), chosen, counts, stratum, min(1, len(counts)))

    def column(self, variable: int) -> npt.NDArray[np.uint16]:
        """Return the codes of a variable."""
        column: npt.NDArray[np.uint16] = self.counter.columns[variable]
        return column if self.chosen is None else column[self.chosen]

    def cut(self, variable: int) -> "_Rows":
        """Cut each stratum by one more variable."""
        key, occurring = self._seen(variable)
        if self._is_dense(variable):
            number = np.empty(self.n_strata * self.counter.n_levels[variable], dtype=np.int64)
            number[occurring] = np.arange(len(occurring))
            return replace(self, stratum=number[key], n_strata=len(occurring))
        return replace(self, stratum=np.searchsorted(occurring, key), n_strata=len(occurring))

    def are_enough(self) -> bool:
        """Tell whether the cells, those of empty rows and columns left out, hold enough rows on average."""
        n_a, n_b = (self.counter.n_levels[end] for end in self.pair)
        if self.n_strata * n_a * n_b > MOST_CELLS:
            return False
        seen_a, seen_b = (
            np.bincount(self._seen(end)[1] // self.counter.n_levels[end], minlength=self.n_strata)
            for end in self.pair
        )
        return int(self.counts.sum()) >= ROWS_PER_CELL * int((seen_a * seen_b).sum())

    def _seen(self, variable: int) -> tuple[Integers, Integers]:
        """Return a number for each row's stratum and level, and those that occur, sorted."""
        width = self.counter.n_levels[variable]
        key = self.stratum * width + self.column(variable)
        if not self._is_dense(variable):
            return key, np.unique(key)
        seen = np.zeros(self.n_strata * width, dtype=np.bool_)
        seen[key] = True
        return key, np.flatnonzero(seen)

    def _is_dense(self, variable: int) -> bool:
        return self.n_strata * self.counter.n_levels[variable] <= _DENSE * max(len(self.stratum), 1000)

    def tables(self) -> Integers:
        """Count, exactly."""
        (a, b), (n_a, n_b) = self.pair, (self.counter.n_levels[end] for end in self.pair)
        n_cells = self.n_strata * n_a * n_b
        if 8 * n_cells > MAX_BYTES:
            raise TooLarge(
                f"{self.n_strata:,} strata of {n_a:,} x {n_b:,} levels do not fit into "
                f"{MAX_BYTES / 1e6:,.0f} MB; merge levels with rare= or bins=."
            )
        key = (self.stratum * n_a + self.column(a)) * n_b + self.column(b)
        # Sums of whole numbers below 2^53, which a Dataset keeps to: exact.
        sums = np.bincount(key, weights=self.counts, minlength=n_cells)
        return np.rint(sums).astype(np.int64).reshape(self.n_strata, n_a, n_b)
