"""One question put to the data and to a structure, side by side."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Context, Domain, quote_label
from unless.data.showing import MOST_LETTERS, html_table, visible
from unless.errors import SettingError
from unless.independence.design_effects import drawn_alike
from unless.independence.power import rows_needed
from unless.independence.statistics import check_effect, check_rate, gamma_below, noncentrality_of
from unless.independence.tests import Answer, PearsonTest, refuse_repeats
from unless.inference.tables import read_rows
from unless.knowledge.evidence import (
    MOST_ROWS_ASKED,
    StrataCounter,
    StratifiedTables,
    information,
    plain_fields,
    rounded,
    tables_to_dicts,
)
from unless.knowledge.sentences import chance, decimal, more_rows_text, rows_text
from unless.structures.graph import Graph
from unless.structures.structure import as_structure, link_shares, observed, pair_names, pair_numbers
from unless.typing import Integers

# Limits and intervals hold with this confidence.
CONFIDENCE = 0.95
# A link that a structure draws in at least this share of the rows of a context is one of its graph there.
DRAWN = 0.1
# More strata than this are counted, and not shown.
MOST_TABLES = 12


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
        return {**plain_fields(self, "value", "low", "high"), "levels": [list(one) for one in self.levels]}

    def _repr_html_(self) -> str:
        rows = [
            (name, "unknown" if value is None else f"{value:.3g}")
            for name, value in (("odds ratio", self.value), ("at least", self.low), ("at most", self.high))
        ]
        return html_table("Odds ratio, with its 95 % interval", ("", ""), rows)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A test of a pair in some contexts, pooled over the strata of its blanket, and how strong the pair is.

    `n_rows` are the rows of these contexts, `rows_used` those of strata in which both variables vary.
    `information` is the conditional mutual information in bits, `cramers_v` pooled as the statistic is, and
    `cramers_v_limit` the largest V that is not ruled out (95 %) where no dependence was found. `more_rows`
    says, of an undecided test, how many more rows of these contexts would settle it four times in five; None
    where no number would, because nothing varies. `critical_p` is what p would have to be below to show a
    dependence. `method` is what p comes from: chi-square where the cells are full enough, else permutations
    or moments of the statistic given the margins. One question that was not chosen among others needs no
    correction: `n_choices` is 1, `q` is p, and no variable is `left_out`.
    """

    answer: Answer
    n_rows: int
    rows_used: int
    statistic: float
    df: int
    p: float
    method: str
    q: float
    n_choices: int = 1
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
    left_out: tuple[str, ...] = ()
    tables: Integers = field(repr=False, compare=False)
    strata: tuple[tuple[str, ...], ...] = field(repr=False)

    def to_dict(self, tables: bool = True) -> dict[str, Any]:
        """Return plain values; `tables=False` leaves the tables out."""
        plain = plain_fields(
            self, "answer", "n_rows", "rows_used", "statistic", "df", "p", "method", "q", "n_choices",
            "critical_p", "information", "cramers_v", "cramers_v_limit", "effect_size", "power", "more_rows",
            "small_expectations",
        )  # fmt: skip
        plain["odds_ratio"] = self.odds_ratio and self.odds_ratio.to_dict()
        plain["given"], plain["left_out"] = list(self.given), list(self.left_out)
        if tables:
            plain["tables"] = tables_to_dicts(self.given, self.strata, self.tables)
        return plain

    def _repr_html_(self) -> str:
        rows = [
            ("rows", f"{self.rows_used:,} of {self.n_rows:,} used"),
            ("V", f"{self.cramers_v:.2f}, at most {self.cramers_v_limit:.2f}"),
            ("test", f"{self.method}, statistic {self.statistic:.2f}, {self.df} degrees of freedom"),
            ("p", f"{self.p:.3g}"),
        ]
        return html_table(self.answer, ("", ""), rows)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question about a pair in a context, and its two answers.

    `data` is the test on the rows of the context, pooled over the strata of the given variables; a single
    question needs no correction, so that q is p. `separated` tells whether the structure's graph in the
    context separates the two given the others, None where it knows no such context; `share` in which share
    of the context's rows it links them directly.
    """

    pair: tuple[str, str]
    given: tuple[str, ...]
    context: Context
    data: Evidence
    separated: bool | None
    share: float | None
    n_rows: int
    domain: Domain

    @property
    def answer(self) -> str:
        """The answer of the data."""
        return self.data.answer

    @property
    def agrees(self) -> bool | None:
        """Whether data and structure say the same; None where one of them says nothing."""
        if self.separated is None or self.data.answer == "undecided":
            return None
        return self.separated == (self.data.answer == "independent")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "pair": list(self.pair),
            "given": list(self.given),
            "context": dict(self.context),
            "answer": self.answer,
            "data": self.data.to_dict(),
            "model": {"separated": self.separated, "share": rounded(self.share)},
            "agrees": self.agrees,
        }

    def __str__(self) -> str:
        a, b = map(quote_label, self.pair)
        given = f" given {', '.join(map(quote_label, self.given))}" if self.given else ""
        where = f" where {self.context}" if self.context else ""
        lines = [f"{a} and {b}{given}{where}", f"  data:  {self._data()}", f"  model: {self._model()}"]
        return "\n".join([*lines, *self._tables()])

    def _repr_html_(self) -> str:
        title, *_ = str(self).split("\n", 1)
        parts = [html_table(title, (), (), [f"data: {self._data()}", f"model: {self._model()}"])]
        if len(self.data.tables) > MOST_TABLES:
            return parts[0]
        for labels, table in zip(self.data.strata, self.data.tables.tolist(), strict=True):
            head, *lines = _cells(table, self.pair, self.domain)
            heads = ["", *(visible(level)[:MOST_LETTERS] for level in head[1:])]
            parts.append(html_table(self._stratum(labels) or "Rows", heads, lines))
        return "".join(parts)

    def _data(self) -> str:
        side, rows = self.data, rows_text(self.data.n_rows, self.n_rows)
        if not side.df:
            return f"undecided, for nothing varies ({rows})"
        odds = side.odds_ratio
        ratio = ""
        if odds is not None and odds.low is not None:
            ratio = f", odds ratio {odds.value:.2f} ({odds.low:.2f} to {odds.high:.2f})"
        there = " there" if self.context else ""
        how = "" if side.method == "chi-square" else f" by {side.method}"
        more = f"; {more_rows_text(side.more_rows, there)}" if side.more_rows else ""
        return (
            f"{side.answer} ({rows}, V = {decimal(side.cramers_v)}, {chance('p', side.p)}{how}{ratio}){more}"
        )

    def _model(self) -> str:
        if self.separated is None or self.share is None:
            return "it knows no such context"
        said = "independent" if self.separated else "dependent"
        return f"{said} (a link in {100 * self.share:.0f} % of these rows)"

    def _tables(self) -> list[str]:
        side = self.data
        if len(side.tables) > MOST_TABLES:
            return [f"  ({len(side.tables):,} tables)"]
        lines = []
        for labels, table in zip(side.strata, side.tables, strict=True):
            named = self._stratum(labels)
            lines += ["", f"  {named}"] if named else [""]
            lines += _table_lines(table.tolist(), self.pair, self.domain)
        return lines

    def _stratum(self, labels: tuple[str, ...]) -> str:
        return ", ".join(
            f"{quote_label(name)} = {quote_label(label)}"
            for name, label in zip(self.given, labels, strict=True)
        )


def ask(
    structure: Any,
    data: object,
    a: str,
    b: str,
    *,
    given: Iterable[str] = (),
    context: Mapping[str, object] | None = None,
    alpha: float = 0.05,
    effect: float = 0.3,
) -> Asked:
    """Ask data and structure whether a and b are independent given some variables in a context."""
    check_rate("alpha", alpha)
    check_effect(effect)
    domain = as_structure(structure).domain
    table = read_rows(domain, data).select(sorted(domain.names))
    if not isinstance(given, Iterable):
        raise SettingError(f"given={given!r} is no list of names; give one, or () for none.")
    by = [given] if isinstance(given, str) else list(given)
    fixed = table.domain.encode(context)
    refuse_repeats([a, b, *by, *(table.names[column] for column in fixed)])
    index = table.domain.index
    pair, given_columns = (index(a), index(b)), [index(one) for one in by]
    table = drawn_alike(table, pair)
    inside = observed(table, fixed)
    counted = StrataCounter(table).count(*pair, given_columns, inside)
    separated, share = _drawn(
        structure, table, pair, [*by, *(table.names[column] for column in fixed)], fixed
    )
    return Asked(
        pair=(a, b),
        given=tuple(table.names[one] for one in sorted(given_columns)),
        context=table.domain.decode(fixed),
        data=evidence_of(counted, pair, table.domain, alpha, effect),
        separated=separated,
        share=share,
        n_rows=table.n_rows,
        domain=table.domain,
    )


def _drawn(
    structure: Any, table: Dataset, pair: tuple[int, int], given: Sequence[str], fixed: Mapping[int, int]
) -> tuple[bool | None, float | None]:
    """Ask the graph of the links that are drawn in most rows of a context."""
    shares = link_shares(structure, table, fixed)
    if not len(shares):
        return None, None
    graph = Graph(table.domain, pair_names(table.domain, np.flatnonzero(shares >= DRAWN)))
    names = table.names[pair[0]], table.names[pair[1]]
    return graph.is_independent(*names, given), float(shares[pair_numbers(len(table.domain))[pair]])


def _table_lines(table: list[list[int]], pair: tuple[str, str], domain: Domain) -> list[str]:
    """Write a table with the levels that occur, numbers to the right."""
    cells = _cells(table, pair, domain)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  " + "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in cells
    ]


def _cells(table: list[list[int]], pair: tuple[str, str], domain: Domain) -> list[list[str]]:
    """Return a table with the levels that occur, its head first."""
    rows = [code for code, line in enumerate(table) if any(line)]
    columns = [code for code in range(len(table[0])) if any(line[code] for line in table)]
    a, b = (domain[name].levels for name in pair)
    cells = [["", *(b[code] for code in columns)]]
    return cells + [[a[code], *(f"{table[code][other]:,}" for other in columns)] for code in rows]


def evidence_of(
    counted: StratifiedTables, pair: tuple[int, int], domain: Domain, alpha: float, effect: float
) -> Evidence:
    """Test a pair by its tables, pooled, and say how many more rows an undecided test needs."""
    verdict = PearsonTest(alpha, effect).on_any(counted.tables)
    scale = (verdict.statistic / verdict.cramers_v**2) if verdict.cramers_v else 0.0
    p = 1.0 if verdict.p is None else verdict.p
    n_rows, more_rows = int(counted.tables.sum()), None
    if verdict.answer == "undecided" and verdict.df:
        needed = int(rows_needed(verdict.df, alpha, effect))
        # Only the share of the rows that lies in strata where something varies helps.
        missing = max(needed - verdict.rows_used, 1) * n_rows / verdict.rows_used
        more_rows = min(math.ceil(missing), MOST_ROWS_ASKED)
    return Evidence(
        answer=verdict.answer,
        n_rows=n_rows,
        rows_used=verdict.rows_used,
        statistic=verdict.statistic,
        df=verdict.df,
        p=p,
        q=p,
        method=verdict.method or "chi-square",
        critical_p=alpha,
        information=information(counted.tables),
        cramers_v=verdict.cramers_v,
        cramers_v_limit=_limit(verdict.statistic, verdict.df, scale or verdict.rows_used),
        effect_size=verdict.effect_size,
        odds_ratio=_odds_ratio(counted.tables, pair, domain),
        power=verdict.power or 0.0,
        more_rows=more_rows,
        small_expectations=verdict.small_expectations,
        given=tuple(domain.names[one] for one in counted.given),
        tables=counted.tables,
        strata=counted.labels(domain),
    )


def _limit(statistic: float, df: int, scale: float) -> float:
    """Return the largest V not ruled out; where V is zero the rows are the best scale there is."""
    return min(1.0, math.sqrt(largest_noncentrality(statistic, df) / scale)) if df else 1.0


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
    reach = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    factor = math.exp(min(reach * math.sqrt(variance), 700.0))
    return ratio, ratio / factor, ratio * factor


def largest_noncentrality(statistic: float, df: int) -> float:
    """Return the largest noncentrality that makes so small a statistic at most twenty times less likely.

    Less likely than without any dependence: a statistic that is smaller than chance alone makes most of them
    rules no more out than chance can, so that the limit is never zero.
    """
    by_chance = gamma_below(df / 2, statistic / 2)
    if by_chance < 1e-250:
        # What the limit comes to as the statistic goes to zero, whatever the degrees of freedom.
        return -2 * math.log(1 - CONFIDENCE)
    return noncentrality_of(df, statistic, (1 - CONFIDENCE) * by_chance)
