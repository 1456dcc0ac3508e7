"""DataFrames and Arrow tables of any library, without importing one of them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from unless.data.arrays import Array, encode_codes, encode_numbers, register
from unless.data.duck import DuckDBSession
from unless.data.labels import to_label
from unless.data.partitions import collapse_partitions
from unless.data.settings import Settings
from unless.data.source import Field, Source, aliased, form_of, outer_names
from unless.errors import DataError
from unless.runtime.memory import check_columns


def open_frame(frame: Any, session: DuckDBSession, how: Settings) -> Source | None:
    """Open a DataFrame or Arrow object; None if it is neither."""
    import narwhals.dependencies as known

    if known.is_polars_lazyframe(frame):
        frame = frame.collect()
    if known.is_dask_dataframe(frame):
        return _open_dask(frame, session, how)
    if known.is_pandas_like_dataframe(frame):
        return _open_pandas(frame, session, how)
    if known.is_polars_dataframe(frame) or known.is_pyarrow_table(frame):
        return _open_arrow(frame, session, how)
    if known.is_into_series(frame):
        raise DataError("The table has a single column, so there is nothing to relate; give two or more.")
    if hasattr(frame, "__arrow_c_stream__"):
        return _open_stream(frame, session, how)
    return None


def _open_pandas(frame: Any, session: DuckDBSession, how: Settings) -> Source:
    names = outer_names(frame.columns, "the DataFrame")
    check_columns(len(names), sum(map(how.wants, names)), how.max_memory)
    encoded = [
        # By position: a name may be a number or anything else.
        _encode_series(name, f"c{position}", frame.iloc[:, position], numeric=name in how.numeric)
        for position, name in enumerate(names)
        if how.wants(name)
    ]
    return register(encoded, names, session)


def _open_dask(frame: Any, session: DuckDBSession, how: Settings) -> Source:
    """Collapse a table on its cluster and open its distinct rows, with their numbers and first places."""
    names = outer_names(frame.columns, "the DataFrame")
    check_columns(len(names), sum(map(how.wants, names)), how.max_memory)
    wanted = {name: place for place, name in enumerate(names) if how.wants(name)}
    if not wanted:
        return register([], names, session)
    # What is cut or merged here may become few rows; anything else is as many here as it was there.
    limit = None if how.bins or how.rare else how.max_memory
    found = collapse_partitions(frame[[frame.columns[place] for place in wanted.values()]], limit)
    encoded = [
        _encode_series(name, f"c{place}", found.frame.iloc[:, position], numeric=name in how.numeric)
        for position, (name, place) in enumerate(wanted.items())
    ]
    beside = {"times": found.times, "place": found.places}
    return replace(register(encoded, names, session, beside), times="times", place="place")


def _encode_series(name: str, column: str, series: Any, *, numeric: bool) -> tuple[Field, Array]:
    import narwhals as nw

    dtype = series.dtype
    if getattr(dtype, "categories", None) is not None:
        return _encode_category(name, column, series, numeric=numeric)
    if isinstance(dtype, np.dtype) and dtype.kind in "iufb":
        return encode_numbers(name, column, series.to_numpy())
    if getattr(dtype, "kind", "O") in "iuf":
        # Nullable numbers: only those with holes have to become floats.
        if series.isna().any() and not _is_huge(series):
            field, array = encode_numbers(name, column, series.to_numpy(dtype=np.float64, na_value=np.nan))
            kind = "float" if dtype.kind == "f" else "integer"
            return Field(name, column, field.form, kind), array  # type: ignore[arg-type]
        if not series.isna().any():
            return encode_numbers(name, column, series.to_numpy(dtype=f"{dtype.kind}8"))
    try:
        codes, distinct = nw.get_native_namespace(nw.from_native(series, series_only=True)).factorize(series)
    except TypeError:
        return Field(name, column, "unusable"), np.zeros(len(series))
    return encode_codes(name, column, np.asarray(codes), list(distinct), numeric=numeric)


def _is_huge(series: Any) -> bool:
    """Tell whether a column of integers holds some that no float holds."""
    return series.dtype.kind in "iu" and bool((series.abs() >= 2**53).any())


def _encode_category(name: str, column: str, series: Any, *, numeric: bool) -> tuple[Field, Array]:
    labels = tuple(to_label(value) for value in series.dtype.categories)
    codes = np.asarray(series.cat.codes)
    if numeric:
        return Field(name, column, "words"), np.array([*labels, None], dtype=object)[codes]
    levels = tuple(dict.fromkeys(labels))
    said = bool(series.dtype.ordered)
    return Field(name, column, "code", "category", labels, levels, is_ordered=said), codes


class ArrowStream:
    """Shows an object to the database as Arrow only, whatever else it is."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def _open_arrow(table: Any, session: DuckDBSession, how: Settings) -> Source:
    names = outer_names(_names(table), "the table")
    check_columns(len(names), sum(map(how.wants, names)), how.max_memory)
    stream = ArrowStream(table)
    session.register("given", stream)
    declared = [_declared(table, position) for position in range(len(names))]
    return _typed("given", names, declared, session, (stream, table))


def _open_stream(table: Any, session: DuckDBSession, how: Settings) -> Source:
    """Copy what may be readable only once into the database, where it can spill to disk."""
    session.register("stream", ArrowStream(table))
    described = session.rows("describe stream")
    names = outer_names([row[0] for row in described], "the table")
    check_columns(len(names), sum(map(how.wants, names)), how.max_memory)
    session.run("create temp table given as select * from stream")
    return _typed("given", names, [(None, False, False)] * len(names), session, ())


def _names(table: Any) -> Iterable[object]:
    return table.columns if hasattr(table, "get_columns") else table.column_names  # type: ignore[no-any-return]


Declared = tuple[tuple[str, ...] | None, bool, bool]


def _declared(table: Any, position: int) -> Declared:
    """Return the levels a column declares, whether they are in order, and whether that order is a scale.

    A polars Categorical and an Arrow dictionary that is not marked as ordered list their values as they
    came: the values may be levels, but their order says nothing.
    """
    if hasattr(table, "get_columns"):
        kind = table.dtypes[position]
        if type(kind).__name__ == "Enum":
            return tuple(kind.categories), True, False
        return None, False, False
    kind = table.schema.field(position).type
    if not hasattr(kind, "dictionary") and not hasattr(kind, "index_type"):
        return None, False, False
    chunks = table.column(position).chunks
    values = (value for chunk in chunks for value in chunk.dictionary.to_pylist() if value is not None)
    return tuple(dict.fromkeys(map(to_label, values))), bool(kind.ordered), bool(kind.ordered)


def _typed(
    relation: str,
    names: tuple[str, ...],
    declared: list[Declared],
    session: DuckDBSession,
    held: tuple[object, ...],
) -> Source:
    types = [row[1] for row in session.rows(f"describe {relation}")]
    fields = []
    for position, (name, kind, (levels, ordered, said)) in enumerate(
        zip(names, types, declared, strict=True)
    ):
        form, made = form_of(kind)
        if levels is None:
            fields.append(Field(name, f"c{position}", form, made))
        else:
            fields.append(Field(name, f"c{position}", form, "category", (), levels, ordered, said))
    return Source("The table", aliased(relation, len(names)), names, tuple(fields), held=held)
