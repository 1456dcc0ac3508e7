"""The pictures of a statement's evidence: shares with their limits, from tables that were counted before.

A side of a statement has one picture of all its rows and one for each stratum. In the first, the columns
given are mixed alike at each level of the other column; in the others shares are plain.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import special

from unless.data.domain import Domain
from unless.knowledge.evidence import PairEvidence, smaller_axis, standardised_shares
from unless.knowledge.sentences import regions_text
from unless.knowledge.statements import Statement
from unless.report.disclosure import Disclosure
from unless.report.html import count
from unless.report.page import Bars, Chart
from unless.structures.labelled import Region

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
# More strata than this are not shown one by one: those with the most rows are.
MOST_STRATA = 8
# More levels of a variable than this are too many bars.
MOST_BARS = 8
# More cells than this are too many for one page.
MOST_CELLS = 60_000


def charts_of_all(
    statements: Sequence[Statement], domain: Domain, disclosure: Disclosure
) -> tuple[list[list[Chart]], list[str]]:
    """Make the pictures of statements until a page has enough, and say how many are left out."""
    if not disclosure.keeps_charts:
        return [[] for _ in statements], []
    charts: list[list[Chart]] = []
    n_cells = n_without = 0
    for one in statements:
        if n_cells > MOST_CELLS:
            n_without += any(evidence.tables.size for evidence in one.evidence)
            charts.append([])
            continue
        charts.append(charts_of(one, domain, disclosure))
        n_cells += sum(
            len(bars.a) * len(bars.b) for chart in charts[-1] for bars in (chart.whole, *chart.strata)
        )
    if not n_without:
        return charts, []
    return charts, [f"The pictures of {count(n_without, 'statement')} further down the list are left out."]


def charts_of(statement: Statement, domain: Domain, disclosure: Disclosure) -> list[Chart]:
    """Return a picture of each side whose tables are kept, the linked side first."""
    column = column_in_shares(statement)
    charts = []
    for number, evidence in enumerate(statement.evidence):
        tables = evidence.tables.transpose(0, 2, 1) if column else evidence.tables
        shares = standardised_shares(tables) if tables.size else None
        if shares is None:
            continue
        if len(tables) == 1:
            # One stratum is no mix: the columns given have one level each.
            whole = _plain_bars(evidence, 0, tables[0], domain, disclosure)
            charts.append(Chart(number, column, whole, [], 0))
            continue
        useful = np.flatnonzero((tables.sum(axis=1) > 0).sum(axis=1) >= 2)
        sizes = tables.sum(axis=(1, 2)).tolist()
        largest = sorted(sorted(useful.tolist(), key=lambda one: (-sizes[one], one))[:MOST_STRATA])
        # A stratum of so few rows that their number may not be shown has no picture.
        strata = [
            _plain_bars(evidence, one, tables[one], domain, disclosure)
            for one in largest
            if disclosure.shown(sizes[one]) is not None
        ]
        whole = _mixed_bars(evidence, tables, useful, shares, disclosure)
        charts.append(Chart(number, column, whole, strata, len(tables) - len(strata)))
    return charts


def column_in_shares(statement: Statement) -> int:
    """Return which column of the pair, 0 or 1, has its shares shown: that of the sentence, or the smaller."""
    for side in statement.evidence:
        if side.contrast is not None:
            return statement.pair.index(side.contrast.column)
    return next((smaller_axis(side.tables) for side in statement.evidence if side.tables.size), 0)


def _plain_bars(
    evidence: PairEvidence, stratum: int, table: Integers, domain: Domain, disclosure: Disclosure
) -> Bars:
    """Make the picture of one stratum."""
    rows = table.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = table / rows[None, :]
    levels = zip(evidence.table_given, evidence.strata[stratum], strict=True)
    where = Region.of(domain, {name: [label] for name, label in levels})
    words = regions_text((where,), domain) if where.conditions else ""
    bars, shown = _bars(shares, rows, wilson(table, rows[None, :]), where=words, n_rows=int(table.sum()))
    counts = table[shown]
    return without_small(msgspec.structs.replace(bars, counts=counts.tolist()), counts, disclosure)


def _mixed_bars(
    evidence: PairEvidence, tables: Integers, useful: Integers, shares: Floats, disclosure: Disclosure
) -> Bars:
    """Make the picture of several strata, mixed alike; limits as of the plain shares of the same variance."""
    by_other = tables[useful].sum(axis=1)
    weights = by_other.sum(axis=1, keepdims=True).astype(np.float64)
    there = np.where(by_other > 0, weights, 0.0)
    spread = np.where(by_other > 0, weights**2 / np.maximum(by_other, 1), 0.0).sum(axis=0)
    rows = by_other.sum(axis=0)
    # The rows that would give plain shares the variance of the mix.
    worth = np.where(rows > 0, there.sum(axis=0) ** 2 / np.where(spread > 0, spread, 1.0), 0.0)
    limits = wilson(np.where(rows > 0, shares, 0.0) * worth, np.broadcast_to(worth, shares.shape))
    bars, shown = _bars(shares, rows, limits, given=evidence.table_given, n_rows=int(by_other.sum()))
    return without_small(bars, tables.sum(axis=0)[shown], disclosure)


def _bars(
    shares: Floats,
    rows: Integers,
    limits: tuple[Floats, Floats],
    *,
    where: str = "",
    given: Sequence[str] = (),
    n_rows: int,
) -> tuple[Bars, tuple[npt.NDArray[np.intp], ...]]:
    """Make one picture of the levels that are frequent enough; return it with their positions."""
    a = _frequent((np.nan_to_num(shares) * rows).sum(axis=1).tolist())
    b = _frequent(rows.tolist())
    shown = np.ix_(a, b)
    low, high = (np.round(limit[shown], 6).tolist() for limit in limits)
    rounded = np.round(shares[shown], 6).tolist()
    return Bars(where, list(given), n_rows, a, b, rounded, None, rows[b].tolist(), low, high), shown


def _frequent(totals: list[float]) -> list[int]:
    """Return the levels that occur, in their order; of too many the most frequent."""
    seen = [code for code, total in enumerate(totals) if total]
    return sorted(sorted(seen, key=lambda code: (-totals[code], code))[:MOST_BARS])


def without_small(bars: Bars, cells: Integers, disclosure: Disclosure) -> Bars:
    """Return a picture without small counts; `cells` are the counts behind each of its shares."""
    if not disclosure.min_cell:
        return bars
    rounded = np.array([[disclosure.shown(cell) or 0 for cell in row] for row in cells.tolist()])
    rows = [disclosure.shown(total) for total in bars.rows if total is not None]
    totals = np.array([total or 0 for total in rows])
    is_shown = (rounded > 0) & (totals > 0)
    if bars.counts is None:
        # Standardised shares are no quotients of counts; one of a column could tell the others.
        is_shown = np.broadcast_to(is_shown.all(axis=0), rounded.shape)
        values = [np.array(one, dtype=float) for one in (bars.shares, bars.low, bars.high)]
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            values = [np.minimum(rounded / totals, 1.0), *wilson(np.minimum(rounded, totals), totals)]
    shares, low, high = (
        [
            [round(float(value), 2) if shown else None for value, shown in zip(*line, strict=True)]
            for line in zip(table, is_shown, strict=True)
        ]
        for table in values
    )
    counts = None if bars.counts is None else [[cell or None for cell in row] for row in rounded.tolist()]
    n_rows = disclosure.shown(bars.n_rows or 0)
    return msgspec.structs.replace(
        bars, n_rows=n_rows, shares=shares, counts=counts, rows=rows, low=low, high=high
    )


def wilson(counts: Integers | Floats, totals: Integers | Floats) -> tuple[Floats, Floats]:
    """Return the 95 % limits of shares after Wilson; 0 to 1 where nothing was counted.

    >>> low, high = wilson(np.array([0, 5]), np.array([10, 10]))
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.237], [0.278, 0.763])
    """
    z = float(special.ndtri(0.975))
    n = np.where(totals > 0, totals, 1).astype(np.float64)
    share = counts / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(np.maximum(share * (1 - share), 0.0) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    low = np.where(totals > 0, np.clip(centre - half, 0, 1), 0.0)
    high = np.where(totals > 0, np.clip(centre + half, 0, 1), 1.0)
    return np.where(counts > 0, low, 0.0), np.where(counts < totals, high, 1.0)
