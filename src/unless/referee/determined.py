"""Columns that are a copy or a function of one other column, or nearly so."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv

from unless.data.dataset import Dataset, unknown_levels

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

# At most one row of this many breaks a function,
NEARLY = 100
# and at most one of this many that the most frequent level of the column gets wrong.
NEARLY_OF_WRONG = 20
# Rows for each level of the source, on average: with fewer, chance makes functions.
ROWS_A_LEVEL = 5
# A small table may hold few of the rows that break a function, or none. So the upper limit of their expected
# number, at this confidence, is at most this share of the rows that the most frequent level gets wrong; and
# at most one row of NEARLY, unless none breaks it. In tables of 200 rows from ALARM, which has no function,
# 47 were found without this (200 tables), 2 at 95 % (200 others) and none at 99 % (800 others).
CONFIDENCE, MOST_OF_WRONG = 0.99, 0.1


@dataclass(frozen=True)
class Determined:
    """A column that another one determines; rows that break it are counted.

    Attributes
    ----------
    source
        The position of the column that tells the other.
    column
        The position of the column that it determines.
    n_broken
        The rows whose level of `column` is not the one most frequent at their level of `source`.
    is_copy
        Whether `column` determines `source` as well; that is an entry of its own, with its own `n_broken`.
    """

    source: int
    column: int
    n_broken: int
    is_copy: bool


def find_determined(data: Dataset) -> tuple[Determined, ...]:
    """Return all pairs of columns of which one determines the other, by the names of source and column.

    Two columns that determine each other are two entries with `is_copy`. A source has at least five rows a
    level on average, and at most `most_broken` rows break what it tells. A row whose level of the source
    occurs only once breaks nothing and shows nothing: it does not count as one that the source gets right
    and the most frequent level wrong. Constant columns neither tell nor are told; columns that need two
    others are not looked for.
    """
    from unless.kernels.determined import count_broken

    n_columns, n_rows = data.n_variables, data.n_rows
    totals = [_totals(data, column) for column in range(n_columns)]
    is_source = np.array([ROWS_A_LEVEL * np.count_nonzero(one) <= n_rows for one in totals], dtype=np.bool_)
    limits = np.array([most_broken(n_rows, _n_wrong(one)) for one in totals], dtype=np.int64)
    # The rows of a dataset are sorted, but a function is refuted soonest by rows that come in no order.
    order = np.random.default_rng(0).permutation(data.n_distinct)
    codes = np.ascontiguousarray(data.rows.T[:, order])
    broken = np.full((n_columns, n_columns), -1, dtype=np.int64)
    n_levels = np.array([len(one) for one in totals], dtype=np.int64)
    count_broken(codes, data.counts[order], n_levels, is_source, limits, broken)

    for source in np.flatnonzero((broken >= 0).any(axis=1)).tolist():
        once = totals[source] == 1
        if once.any():
            repeated = ~once[data.rows[:, source]]
            for column in np.flatnonzero(broken[source] >= 0).tolist():
                limit = most_broken(n_rows, _n_wrong(_totals(data, column, repeated)))
                if broken[source, column] > limit:
                    broken[source, column] = -1

    for source, column in np.argwhere(broken >= 0).tolist():
        if not _varies_where_known(data, source, column):
            broken[source, column] = -1

    pairs = sorted(np.argwhere(broken >= 0).tolist(), key=lambda pair: [data.names[one] for one in pair])
    return tuple(Determined(i, j, int(broken[i, j]), bool(broken[j, i] >= 0)) for i, j in pairs)


def _varies_where_known(data: Dataset, source: int, column: int) -> bool:
    """Tell whether a column that another determines shows two levels where neither is missing.

    A question that only some people are asked tells, where it is empty, who was not: that is no function.
    """
    unknown = unknown_levels(data)
    known = np.ones(data.n_distinct, dtype=np.bool_)
    for one in (source, column):
        if data.names[one] in unknown:
            known &= data.rows[:, one] != unknown[data.names[one]]
    return bool(known.all()) or len(np.unique(data.rows[known, column])) > 1


def apart(determined: Iterable[Determined], n_columns: int) -> Bools:
    """Return a matrix that is True where one of two columns determines the other."""
    matrix = np.zeros((n_columns, n_columns), dtype=np.bool_)
    for one in determined:
        matrix[one.source, one.column] = matrix[one.column, one.source] = True
    return matrix


def most_broken(n_rows: int, n_wrong: int) -> int:
    """Return the largest number of rows that may break a function, or -1 if even none shows no function.

    Parameters
    ----------
    n_rows
        All rows.
    n_wrong
        The rows that a guess of the column's most frequent level gets wrong. None may break where these are
        fewer than 67 or all rows fewer than 664; where they are fewer than 47, nothing is shown.
    """
    if _upper_limit(0) > MOST_OF_WRONG * n_wrong:
        return -1
    most = min(n_rows // NEARLY, n_wrong // NEARLY_OF_WRONG)
    # Where no row breaks it, it need not be shown that fewer than 1 % would: it is most likely exact.
    return bisect_right(range(1, most + 1), min(n_rows / NEARLY, MOST_OF_WRONG * n_wrong), key=_upper_limit)


def _upper_limit(n_broken: int) -> float:
    """Return the expected number of which so few, or fewer, would be seen with 1 % chance."""
    return float(gammaincinv(n_broken + 1, CONFIDENCE))


def _totals(data: Dataset, column: int, keep: Bools | slice = slice(None)) -> Ints:
    """Count the rows of each level, of those to keep."""
    # In floats, which are exact: a dataset has fewer than 2^53 rows.
    n_levels = int(data.domain.n_levels[column])
    totals = np.bincount(data.rows[keep, column], weights=data.counts[keep], minlength=n_levels)
    return totals.astype(np.int64)


def _n_wrong(totals: Ints) -> int:
    return int(totals.sum() - totals.max(initial=0))
