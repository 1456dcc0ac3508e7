"""Weights given beside a table, as scikit-learn does it, become a column of counts inside."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.data.read import read
from unless.data.sources.frames import as_array
from unless.errors import DataError
from unless.typing import Integers


def read_weighted(table: Any, weights: npt.ArrayLike, show_progress: bool | None = None) -> Dataset:
    """Read a table whose rows each stand for as many rows as their weight says."""
    table = as_table(table)
    counts = whole_weights(weights)
    columns = columns_of(table)
    name = free_column("sample_weight", columns)
    n_rows = n_rows_of(columns)
    if len(counts) != n_rows:
        raise DataError(f"There are {len(counts):,} weights for {n_rows:,} rows; give one for each row.")
    weighted = with_columns(table, columns, {name: counts})
    return read(weighted, count_column=name, show_progress=show_progress)


def as_table(table: Any) -> Any:
    """Return what makes itself an array as that array, and all else as it is."""
    import narwhals.dependencies as known

    if known.is_into_dataframe(table) or isinstance(table, Mapping | Sequence | str | os.PathLike):
        return table
    made = as_array(table)
    return table if made is None else made


def free_column(name: str, taken: Iterable[str]) -> str:
    """Return a name for a new column that no other column has."""
    used = set(taken)
    while name in used:
        name += "_"
    return name


def n_rows_of(columns: Mapping[str, Any]) -> int:
    """Return the number of rows of columns."""
    return len(next(iter(columns.values()), ()))


def with_columns(
    table: Any, columns: Mapping[str, Any], more: Mapping[str, npt.NDArray[Any]], without: Iterable[str] = ()
) -> Any:
    """Return a table that `read` understands, with more columns and without some; `columns` are its own."""
    if isinstance(table, Mapping | np.ndarray | Sequence):
        kept = {name: column for name, column in columns.items() if name not in set(without)}
        return {**kept, **more}
    import narwhals as nw

    frame = _frame(table)
    made = [nw.new_series(name, values, backend=frame.implementation) for name, values in more.items()]
    left_out = [name for name in frame.columns if str(name) in set(without)]
    return frame.drop(*left_out).with_columns(*made).to_native()


def whole_weights(weights: npt.ArrayLike) -> Integers:
    """Return weights as whole numbers, or refuse them, naming the first row whose weight is none."""
    try:
        numbers = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty((0, 0))
    if numbers.ndim != 1:
        raise DataError("Weights must be a plain list of numbers, one for each row.")
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers == np.floor(numbers)) & (numbers < 2**53)))
    if wrong.size:
        raise DataError(
            f"The weight of row {wrong[0] + 1:,} is {numbers[wrong[0]]:g}; a row counts 0, 1 or more times."
        )
    if numbers.size and not numbers.any():
        raise DataError("Every weight is zero, so the table has no rows; give some rows one of 1 or more.")
    return numbers.astype(np.int64)


def columns_of(table: Any) -> dict[str, Any]:
    """Return the columns by name, of whatever has its rows in memory."""
    if isinstance(table, Dataset | str | os.PathLike):
        raise DataError("Weights go with rows in memory; a Dataset or a file has its own count_column.")
    if isinstance(table, np.ndarray):
        if table.dtype.names is not None:
            return {name: table[name] for name in table.dtype.names}
        rows = table if table.ndim == 2 else table.reshape(len(table), -1)
        return {f"x{place}": column for place, column in enumerate(rows.T)}
    if isinstance(table, Mapping):
        return {str(name): column for name, column in table.items()}
    if isinstance(table, Sequence):
        if all(isinstance(row, Mapping) for row in table):
            names = dict.fromkeys(name for row in table for name in row)
            return {str(name): [row.get(name) for row in table] for name in names}
        return columns_of(np.array(table, dtype=object))
    frame = _frame(table)
    return {str(name): frame.get_column(name) for name in frame.columns}


def _frame(table: Any) -> Any:
    import narwhals as nw

    if hasattr(table, "collect"):
        table = table.collect()
    try:
        return nw.from_native(table, eager_only=True)
    except Exception:  # narwhals and the frames behind it refuse in many ways
        kind = type(table).__name__
        raise DataError(
            f"A {kind} cannot be weighted by rows; give a DataFrame with distinct names."
        ) from None
