"""Rows of codes as a table of the kinds of values its columns had before they became labels."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Rows
from unless.data.domain import Domain, Variable
from unless.errors import MissingExtra, SettingError

# In this order, the first that is installed.
BACKENDS = ("pandas", "polars", "pyarrow")


def to_frame(domain: Domain, rows: Rows, backend: str | None = None, method: str | None = None) -> Any:
    """Return rows of codes as a DataFrame of pandas, else of polars, else a table of pyarrow, else a dict.

    `backend` names one of them, or "dict" for numpy arrays by name. `method`, how the rows came about, is
    noted where a frame has a place for it.
    """
    chosen = _chosen(backend)
    columns = {variable.name: (variable, rows[:, i]) for i, variable in enumerate(domain)}
    build: dict[str, Callable[[dict[str, tuple[Variable, Rows]]], Any]] = {
        "pandas": _pandas,
        "polars": _polars,
        "pyarrow": _pyarrow,
        "dict": lambda named: {name: values(*column) for name, column in named.items()},
    }
    frame = build[chosen](columns)
    if method is not None and chosen == "pandas":
        frame.attrs["method"] = method
    if method is not None and chosen == "pyarrow":
        return frame.replace_schema_metadata({"method": method})
    return frame


def columns_to_frame(columns: dict[str, list[Any]], backend: str | None = None) -> Any:
    """Return columns of plain values as the same kinds of frames; None is a missing value."""
    chosen = _chosen(backend)
    if chosen == "dict":
        return dict(columns)
    module = import_module(chosen)
    return module.table(columns) if chosen == "pyarrow" else module.DataFrame(columns)


def _chosen(backend: str | None) -> str:
    if backend not in (None, "dict", *BACKENDS):
        raise SettingError(f"There is no backend {backend!r}; use 'pandas', 'polars', 'pyarrow' or 'dict'.")
    installed = [name for name in BACKENDS if find_spec(name)]
    chosen = backend or (installed[0] if installed else "dict")
    if chosen != "dict" and chosen not in installed:
        raise MissingExtra(f"{chosen} is not installed; install it or choose another backend=.")
    return chosen


def values(variable: Variable, codes: npt.NDArray[np.uint16]) -> npt.NDArray[Any]:
    """Return what the codes of a variable stand for; text where its labels are not what its kind says."""
    levels = _typed(variable)
    return np.asarray(levels[codes])


def _typed(variable: Variable) -> npt.NDArray[Any]:
    text = np.array(variable.levels, dtype=object)
    try:
        if variable.kind == "integer":
            return np.array([int(label) for label in variable.levels], dtype=np.int64)
        if variable.kind == "float":
            return np.array([float(label) for label in variable.levels])
    except (ValueError, OverflowError):
        # Levels that were merged or added no longer read as numbers.
        return text
    if variable.kind == "boolean" and {label.lower() for label in variable.levels} <= {"true", "false"}:
        return np.array([label.lower() == "true" for label in variable.levels])
    return text


def _pandas(columns: dict[str, tuple[Variable, Rows]]) -> Any:
    import pandas as pd

    return pd.DataFrame(
        {
            name: pd.Categorical.from_codes(codes.astype(np.int32), categories=list(variable.levels))
            if variable.kind == "category"
            else values(variable, codes)
            for name, (variable, codes) in columns.items()
        }
    )


def _polars(columns: dict[str, tuple[Variable, Rows]]) -> Any:
    import polars as pl

    def series(name: str, variable: Variable, codes: Rows) -> Any:
        column = values(variable, codes)
        if variable.kind == "category":
            return pl.Series(name, column.tolist(), dtype=pl.Enum(list(variable.levels)))
        if column.dtype == object:
            return pl.Series(name, column.tolist(), dtype=pl.String)
        return pl.Series(name, column)

    return pl.DataFrame([series(name, *column) for name, column in columns.items()])


def _pyarrow(columns: dict[str, tuple[Variable, Rows]]) -> Any:
    import pyarrow as pa

    def array(variable: Variable, codes: Rows) -> Any:
        column = values(variable, codes)
        if variable.kind == "category":
            return pa.DictionaryArray.from_arrays(codes.astype(np.int32), list(variable.levels))
        return pa.array(column.tolist(), type=pa.string()) if column.dtype == object else pa.array(column)

    return pa.table({name: array(*column) for name, column in columns.items()})
