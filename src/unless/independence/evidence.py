"""What a stack of contingency tables shows, whatever test judges it."""

import math
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from unless.errors import DataError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Shown(TypedDict):
    """The fields of a verdict that do not depend on the test."""

    df: int
    n_rows: int
    rows_used: int
    effect_size: float
    cramers_v: float
    small_expectations: float


@dataclass(frozen=True, slots=True)
class Sides:
    """The sizes of tables without their empty rows and columns."""

    n_rows: Integers
    n_columns: Integers

    @property
    def df(self) -> Integers:
        """The degrees of freedom of each table."""
        return np.maximum(self.n_rows - 1, 0) * np.maximum(self.n_columns - 1, 0)


def as_strata(table: npt.ArrayLike) -> Integers:
    """Return the strata with anything in them, as z x a x b; a single table is one stratum."""
    tables = np.asarray(table)
    if tables.ndim not in {2, 3}:
        raise DataError(f"A contingency table has 2 axes and strata have 3, not {tables.ndim}.")
    if tables.size and not (np.isfinite(tables).all() and (tables == np.rint(tables)).all()):
        raise DataError("A count is not a whole number; give whole counts.")
    if tables.size and tables.min() < 0:
        raise DataError("A count is negative; give counts of 0 or more.")
    strata: Integers = tables.astype(np.int64).reshape(-1, *tables.shape[-2:])
    return np.asarray(strata[strata.sum(axis=(1, 2)) > 0])


def sides(tables: npt.ArrayLike) -> Sides:
    """Measure each of a batch of tables (... x a x b) without its empty rows and columns."""
    counts = np.asarray(tables)
    return Sides(
        np.asarray((counts.sum(axis=-1) > 0).sum(axis=-1)), np.asarray((counts.sum(axis=-2) > 0).sum(axis=-1))
    )


def expected_counts(tables: npt.ArrayLike) -> Floats:
    """Return the counts expected under independence for each of a batch of tables (... x a x b)."""
    counts = np.asarray(tables, dtype=np.float64)
    total = counts.sum(axis=(-2, -1), keepdims=True)
    # An empty table expects nothing; dividing by one keeps its zeros.
    return np.asarray(
        counts.sum(axis=-1, keepdims=True) * counts.sum(axis=-2, keepdims=True) / np.maximum(total, 1)
    )


def pearson_terms(tables: npt.ArrayLike) -> Floats:
    """Return (observed - expected)^2 / expected per cell, 0 where nothing was expected."""
    observed, expected = np.asarray(tables, dtype=np.float64), expected_counts(tables)
    return np.divide((observed - expected) ** 2, expected, out=np.zeros_like(expected), where=expected > 0)


def show(strata: Integers) -> Shown:
    """Describe strata as every verdict does."""
    size = sides(strata)
    informative = strata[size.df > 0]
    smaller = np.minimum(size.n_rows, size.n_columns)[size.df > 0] - 1
    rows = informative.sum(axis=(1, 2))
    expected = expected_counts(informative)
    cells = expected[expected > 0]
    statistic = float(pearson_terms(informative).sum())
    return Shown(
        df=int(size.df.sum()),
        n_rows=int(strata.sum()),
        rows_used=int(rows.sum()),
        effect_size=_root_of_ratio(statistic, int(rows.sum())),
        cramers_v=_root_of_ratio(statistic, int((rows * smaller).sum())),
        small_expectations=float((cells < 5).mean()) if cells.size else 0.0,
    )


def _root_of_ratio(statistic: float, scale: int) -> float:
    return math.sqrt(statistic / scale) if scale else 0.0
