"""The shares of a pair that a picture shows, from the tables of its evidence: no rows are counted here."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from unless.knowledge.evidence import PairEvidence, smaller_axis, standardised_shares
from unless.knowledge.statements import Statement

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
# More strata than this are not shown one by one: those with the most rows are.
MOST_STRATA = 8


@dataclass(frozen=True, kw_only=True)
class Shares:
    """The share of each level of one column at each level of the other: [level][level of the other].

    `given` are the columns whose levels are mixed alike at each level of the other column, or none for plain
    shares, whose `counts` are kept. `stratum` are the levels of columns that all rows have. `low` and `high`
    are 95 % limits after Wilson, with as many rows as would give plain shares the same variance. `rows` are
    those with each level of the other column; where there are none, shares are not numbers.
    """

    given: tuple[str, ...]
    stratum: tuple[tuple[str, str], ...]
    n_rows: int
    shares: Floats
    counts: Integers | None
    rows: Integers
    low: Floats
    high: Floats


@dataclass(frozen=True, kw_only=True)
class SideShares:
    """One side of a statement, by position: its shares given other columns, and those of the strata."""

    side: int
    whole: Shares
    strata: tuple[Shares, ...]
    n_left_out: int


def told_column(statement: Statement) -> int:
    """Say which column of the pair, 0 or 1, is told in shares: as the sentence does, or the smaller one."""
    for side in statement.evidence:
        if side.contrast is not None:
            return statement.pair.index(side.contrast.column)
    for side in statement.evidence:
        if side.tables.size:
            return smaller_axis(side.tables)
    return 0


def shares_of(statement: Statement) -> tuple[SideShares, ...]:
    """Return the shares of each side whose tables are kept, the linked side first."""
    column = told_column(statement)
    sides = (_side(place, one, column) for place, one in enumerate(statement.evidence) if one.tables.size)
    return tuple(side for side in sides if side is not None)


def _side(side: int, evidence: PairEvidence, column: int) -> SideShares | None:
    tables = evidence.tables.transpose(0, 2, 1) if column else evidence.tables
    shares = standardised_shares(tables)
    if shares is None:
        return None
    useful = np.flatnonzero((tables.sum(axis=1) > 0).sum(axis=1) >= 2)
    if len(tables) == 1:
        # One stratum is no mix: the columns given have one level each.
        only = _plain(tables[0], _stratum(evidence, 0))
        return SideShares(side=side, whole=only, strata=(), n_left_out=0)
    sizes = tables.sum(axis=(1, 2))
    kept = sorted(sorted(useful.tolist(), key=lambda place: (-sizes[place], place))[:MOST_STRATA])
    return SideShares(
        side=side,
        whole=_mixed(tables[useful], shares, evidence.table_given),
        strata=tuple(_plain(tables[place], _stratum(evidence, place)) for place in kept),
        n_left_out=len(tables) - len(kept),
    )


def _stratum(evidence: PairEvidence, place: int) -> tuple[tuple[str, str], ...]:
    return tuple(zip(evidence.table_given, evidence.strata[place], strict=True))


def _plain(table: Integers, stratum: tuple[tuple[str, str], ...]) -> Shares:
    rows = table.sum(axis=0)
    low, high = wilson(table, rows[None, :])
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = table / rows[None, :]
    return Shares(
        given=(), stratum=stratum, n_rows=int(table.sum()), shares=shares, counts=table, rows=rows, low=low,
        high=high,
    )  # fmt: skip


def _mixed(tables: Integers, shares: Floats, given: tuple[str, ...]) -> Shares:
    by_other = tables.sum(axis=1)
    weights = by_other.sum(axis=1, keepdims=True).astype(np.float64)
    there = np.where(by_other > 0, weights, 0.0)
    spread = np.where(by_other > 0, weights**2 / np.maximum(by_other, 1), 0.0).sum(axis=0)
    rows = by_other.sum(axis=0)
    # The rows that would give plain shares the variance of the mix.
    worth = np.where(rows > 0, there.sum(axis=0) ** 2 / np.where(spread > 0, spread, 1.0), 0.0)
    low, high = wilson(np.where(rows > 0, shares, 0.0) * worth, np.broadcast_to(worth, shares.shape))
    return Shares(
        given=given, stratum=(), n_rows=int(tables.sum()), shares=shares, counts=None, rows=rows, low=low,
        high=high,
    )  # fmt: skip


def wilson(counts: Integers | Floats, totals: Integers | Floats) -> tuple[Floats, Floats]:
    """Return the limits of shares after Wilson; 0 to 1 where nothing was counted.

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
