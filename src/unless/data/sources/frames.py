"""Tables in memory: DataFrames and Arrow tables of any library, NumPy arrays, and plain Python tables.

Columns become arrays that the database reads without a copy: numbers as they are, all else as codes with
labels. No library of frames is imported for them; they are known by what they offer. Tables that lie on a
cluster in partitions (Dask) are collapsed there, and only distinct rows come back.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.domain import Kind
from unless.data.settings import Settings, made_up_names
from unless.data.showing import to_label
from unless.data.sources.session import (
    DuckDBSession,
    Field,
    Source,
    aliased,
    nested,
    table_names,
    typed_fields,
)
from unless.errors import DataError
from unless.runtime.memory import check_rows
from unless.typing import Integers

Array = npt.NDArray[Any]
# Partitions that are joined by one task: a tree of joins keeps every task small.
_FAN_IN = 8


def as_array(table: Any) -> Array | None:
    """Return an array or what makes itself one; None if it is neither."""
    if hasattr(table, "toarray"):
        raise DataError("Sparse data are not supported; give table.toarray(), whose cells are all there.")
    return np.asarray(table) if hasattr(table, "__array__") else None


def open_array(array: Array, session: DuckDBSession, how: Settings) -> Source:
    """Open a 2-D array, whose columns are called x0, x1, ..., or a structured array."""
    if array.dtype.kind == "c":
        raise DataError("Complex data not supported; give categories, such as texts or whole numbers.")
    if array.dtype.names is not None:
        return open_columns({name: array[name] for name in array.dtype.names}, session, how)
    if array.ndim != 2:
        raise DataError(f"The array has {array.ndim} dimension(s); give a table of rows and columns.")
    names = made_up_names(array.shape[1], how)
    return open_columns(dict(zip(names, array.T, strict=True)), session, how, nameless=True)


def open_records(records: Sequence[Any], session: DuckDBSession, how: Settings) -> Source:
    """Open a list of rows: dictionaries by name, or sequences of equal length."""
    if not records:
        raise DataError("The table has no rows; give at least one.")
    if all(isinstance(record, Mapping) for record in records):
        keys = list(records[0])
        if any(list(record) != keys for record in records):
            # Rows that differ in their keys: the order of rows must not decide the order of columns.
            keys = sorted({key for record in records for key in record}, key=str)
        return open_columns({key: [record.get(key) for record in records] for key in keys}, session, how)
    if any(isinstance(record, str | bytes) or not isinstance(record, Iterable) for record in records):
        raise DataError("The list does not hold rows; give a list of dictionaries or of equally long lists.")
    rows = [list(record) for record in records]
    uneven = next((number for number, row in enumerate(rows, 1) if len(row) != len(rows[0])), None)
    if uneven is not None:
        raise DataError(
            f"Row {uneven:,} has {len(rows[uneven - 1]):,} values where row 1 has {len(rows[0]):,}."
        )
    names = made_up_names(len(rows[0]), how)
    return open_columns(dict(zip(names, zip(*rows, strict=True), strict=True)), session, how, nameless=True)


def open_columns(
    columns: Mapping[Any, Any], session: DuckDBSession, how: Settings, *, nameless: bool = False
) -> Source:
    """Open a dictionary of columns."""
    names = table_names(columns, "the table", how)
    encoded = [
        encode(name, f"c{position}", values, numeric=name in how.numeric)
        for position, (name, values) in enumerate(zip(names, columns.values(), strict=True))
        if how.wants(name)
    ]
    return _register(encoded, names, session, nameless=nameless)


def _register(
    encoded: Sequence[tuple[Field, Array]],
    names: tuple[str, ...],
    session: DuckDBSession,
    beside: Mapping[str, Array] | None = None,
    *,
    nameless: bool = False,
) -> Source:
    """Register encoded columns of equal length with the database, and other arrays `beside` them."""
    lengths = {len(array) for _, array in encoded}
    if len(lengths) > 1:
        first, other = next((a, b) for a, b in pairwise(encoded) if len(a[1]) != len(b[1]))
        raise DataError(
            f"Column {first[0].name!r} has {len(first[1]):,} values and {other[0].name!r} {len(other[1]):,}; "
            "give columns of equal length."
        )
    # Where the chosen columns do not exist, the names are still needed to say so.
    arrays = {field.column: array for field, array in encoded} or {"c0": np.zeros(0)}
    arrays |= beside or {}
    session.register("given", arrays)
    fields = tuple(field for field, _ in encoded)
    return Source("The table", "given", names, fields, session, nameless=nameless, keep_alive=(arrays,))


def encode(name: str, column: str, values: Any, *, numeric: bool = False) -> tuple[Field, Array]:
    """Give numbers as they are and all else as codes with labels."""
    if isinstance(values, np.ndarray) and values.ndim == 0:
        values = values.item()
    if isinstance(values, np.ndarray) and values.ndim != 1:
        return Field(name, column, "unusable"), np.zeros(len(values))
    if isinstance(values, np.ma.MaskedArray):
        values = [None if hidden else value for value, hidden in _unmasked(values)]
    array = values if isinstance(values, np.ndarray) else None
    if array is not None and array.dtype.kind in "iufb":
        return encode_numbers(name, column, array)
    if array is not None and array.dtype.kind == "U":
        distinct, codes = np.unique(array, return_inverse=True)
        return encode_codes(name, column, codes, distinct.tolist(), numeric=numeric)
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise DataError(f"Column {name!r} holds {values!r}, which is no column; give a list of values.")
    listed = list(values) if array is None else array
    try:
        codes, objects = factorize(name, listed)
    except DataError:
        return Field(name, column, "unusable"), np.zeros(len(listed))
    return encode_codes(name, column, codes, objects, numeric=numeric)


def _unmasked(array: "np.ma.MaskedArray[Any, Any]") -> Iterable[tuple[object, bool]]:
    return zip(array.data.tolist(), np.ma.getmaskarray(array).tolist(), strict=True)


def encode_numbers(name: str, column: str, array: Array) -> tuple[Field, Array]:
    """Pass numbers and booleans through, in a width the database knows."""
    kinds: dict[str, Kind] = {"i": "integer", "u": "integer", "f": "float", "b": "boolean"}
    kind = kinds[array.dtype.kind]
    if kind == "float" and array.dtype.itemsize not in (4, 8):
        array = array.astype(np.float32 if array.dtype.itemsize == 2 else np.float64)
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return Field(name, column, "integer" if kind == "integer" else kind, kind), np.ascontiguousarray(native)  # type: ignore[arg-type]


def encode_codes(
    name: str, column: str, codes: Array, values: Sequence[Any], *, numeric: bool = False
) -> tuple[Field, Array]:
    """Give distinct values as codes; objects that are all numbers become numbers again."""
    kind = kind_of(values)
    if kind in ("integer", "float") and values and _fit_numbers(values):
        return _numbers_again(name, column, codes, values, kind)
    labels = tuple(to_label(value) for value in values)
    if numeric:
        # Text that should be numbers: the database will say which row is none.
        spelled = np.array([*labels, None], dtype=object)
        return Field(name, column, "words", kind), spelled[codes]
    return Field(name, column, "code", kind, labels), codes.astype(np.int32, copy=False)


def _fit_numbers(values: Sequence[Any]) -> bool:
    """Tell whether no two of these numbers become one when written as floats."""
    return all(not isinstance(value, Integral) or abs(int(value)) < 2**53 for value in values)


def _numbers_again(
    name: str, column: str, codes: Array, values: Sequence[Any], kind: Kind
) -> tuple[Field, Array]:
    exact = kind == "integer" and not (codes < 0).any()
    numbers = np.array([int(value) for value in values]) if exact else np.array([*map(float, values), np.nan])
    return Field(name, column, "integer" if exact else "float", kind), numbers[codes]


def kind_of(values: Iterable[object]) -> Kind:
    """Name the kind of a column by the values it holds."""
    kinds: set[Kind] = {_kind(value) for value in values}
    if kinds == {"integer", "float"}:
        return "float"
    return kinds.pop() if len(kinds) == 1 else "text"


def _kind(value: object) -> Kind:
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, np.timedelta64):
        # numpy counts spans of time among the integers.
        return "text"
    if isinstance(value, Integral):
        return "integer"
    return "float" if isinstance(value, Real) else "text"


def factorize(name: str, values: Iterable[Any]) -> tuple[Array, list[Any]]:
    """Give the distinct values of a column of objects a number each, -1 where there is none."""
    # 1, 1.0 and True are one key to Python but three labels to a person.
    numbers: dict[tuple[type, Any], int] = {}
    try:
        codes = np.fromiter(
            (
                -1 if is_missing(value) else numbers.setdefault((type(value), value), len(numbers))
                for value in values
            ),
            dtype=np.int32,
        )
    except TypeError:
        raise nested(name) from None
    return codes, [value for _, value in numbers]


def is_missing(value: Any) -> bool:
    """Tell None, NaN, NaT and pandas' NA from values."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, float | np.floating):
        return bool(value != value)  # noqa: PLR0124 (only NaN differs from itself)
    return isinstance(value, datetime | np.datetime64) and bool(value != value)  # noqa: PLR0124


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
    names = table_names(frame.columns, "the DataFrame", how)
    encoded = [
        # By position: a name may be a number or anything else.
        _encode_series(name, f"c{position}", frame.iloc[:, position], name in how.numeric)
        for position, name in enumerate(names)
        if how.wants(name)
    ]
    return _register(encoded, names, session)


def _open_dask(frame: Any, session: DuckDBSession, how: Settings) -> Source:
    """Collapse a table on its cluster and open its distinct rows, with their numbers and first rows."""
    names = table_names(frame.columns, "the DataFrame", how)
    wanted = [position for position, name in enumerate(names) if how.wants(name)]
    if not wanted:
        return _register([], names, session)
    # What is cut or merged here may become few rows; anything else is as many here as it was there.
    limit = None if how.bins or how.rare else how.max_memory
    found = collapse_partitions(frame[[frame.columns[position] for position in wanted]], limit)
    encoded = [
        _encode_series(
            names[position], f"c{position}", found.frame.iloc[:, order], names[position] in how.numeric
        )
        for order, position in enumerate(wanted)
    ]
    beside = {"times": found.times, "row_number": found.first_rows}
    return replace(_register(encoded, names, session, beside), times="times", row_number="row_number")


def _encode_series(name: str, column: str, series: Any, numeric: bool) -> tuple[Field, Array]:
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
    columns = table.columns if hasattr(table, "get_columns") else table.column_names
    names = table_names(columns, "the table", how)
    stream = ArrowStream(table)
    session.register("given", stream)
    source = _given(names, session)
    fields = [_with_declared(one, table, position) for position, one in enumerate(source.fields)]
    return replace(source, fields=tuple(fields), keep_alive=(stream, table))


def _open_stream(table: Any, session: DuckDBSession, how: Settings) -> Source:
    """Copy what may be readable only once into the database, where it can spill to disk."""
    session.register("stream", ArrowStream(table))
    names = table_names([row[0] for row in session.rows("describe stream")], "the table", how)
    session.run("create temp table given as select * from stream")
    return _given(names, session)


def _given(names: tuple[str, ...], session: DuckDBSession) -> Source:
    fields = typed_fields(names, [row[1] for row in session.rows("describe given")])
    return Source("The table", aliased("given", len(names)), names, tuple(fields), session)


def _with_declared(field: Field, table: Any, position: int) -> Field:
    """Add the levels that a column declares, whether they are in order, and whether that order is a scale.

    A polars Categorical and an Arrow dictionary that is not marked as ordered list their values as they
    came: the values may be levels, but their order says nothing.
    """
    if hasattr(table, "get_columns"):
        kind = table.dtypes[position]
        if type(kind).__name__ != "Enum":
            return field
        return replace(field, kind="category", levels=tuple(kind.categories))
    kind = table.schema.field(position).type
    if not hasattr(kind, "dictionary") and not hasattr(kind, "index_type"):
        return field
    chunks = table.column(position).chunks
    values = (value for chunk in chunks for value in chunk.dictionary.to_pylist() if value is not None)
    levels = tuple(dict.fromkeys(map(to_label, values)))
    ordered = bool(kind.ordered)
    return replace(field, kind="category", levels=levels, levels_are_ordered=ordered, is_ordered=ordered)


@dataclass(frozen=True)
class Collapsed:
    """Distinct rows in the order of their first appearance, how often each occurs, and where first."""

    frame: Any
    times: Integers
    first_rows: Integers

    @property
    def n_rows(self) -> int:
        """The number of rows, repeated ones included."""
        return int(self.times.sum())


def collapse_partitions(frame: Any, max_bytes: int | None) -> Collapsed:
    """Collapse a Dask DataFrame where its partitions are; beyond `max_bytes` it is refused there."""
    import dask

    parts = [dask.delayed(_collapse_part)(part, max_bytes) for part in frame.to_delayed()]
    while len(parts) > 1:
        groups = [parts[start : start + _FAN_IN] for start in range(0, len(parts), _FAN_IN)]
        parts = [dask.delayed(_join)(group, max_bytes) for group in groups]
    (found,) = dask.compute(parts[0])
    return found  # type: ignore[no-any-return]


def _collapse_part(part: Any, max_bytes: int | None) -> Collapsed:
    n_rows = len(part)
    return _collapse(part, np.ones(n_rows, dtype=np.int64), np.arange(1, n_rows + 1), max_bytes)


def _join(parts: Sequence[Collapsed], max_bytes: int | None) -> Collapsed:
    """Join neighbours: rows of a later part come after all rows of those before it."""
    from dask.dataframe.dispatch import concat

    before = np.cumsum([0, *(part.n_rows for part in parts)])
    filled = [part for part in parts if len(part.times)]
    frame = concat([part.frame for part in filled or parts[:1]])
    times = np.concatenate([part.times for part in parts])
    first_rows = np.concatenate(
        [part.first_rows + skip for part, skip in zip(parts, before[:-1], strict=True)]
    )
    return _collapse(frame, times, first_rows, max_bytes)


def _collapse(frame: Any, times: Integers, first_rows: Integers, max_bytes: int | None) -> Collapsed:
    """Keep the first of equal rows as it is: types, categories and their order stay."""
    import narwhals as nw

    factorize = nw.get_native_namespace(nw.from_native(frame, eager_only=True)).factorize
    keys = np.zeros(len(frame), dtype=np.int64)
    for position, name in enumerate(frame.columns):
        codes = _codes(frame.iloc[:, position], str(name), factorize)
        # Numbered anew after each column, in order of appearance, so that no key outgrows its type.
        keys = factorize(keys * (codes.max(initial=0) + 2) + codes + 1)[0]
    n_distinct = int(keys.max(initial=-1)) + 1
    if max_bytes is not None:
        check_rows(n_distinct, len(frame.columns), max_bytes)
    first = np.zeros(n_distinct, dtype=np.int64)
    # Written from the end: what is written last is the first of its kind.
    first[keys[::-1]] = np.arange(len(keys))[::-1]
    totals = np.zeros(n_distinct, dtype=np.int64)
    np.add.at(totals, keys, times)
    return Collapsed(frame.iloc[first].reset_index(drop=True), totals, first_rows[first])


def _codes(series: Any, name: str, factorize: Callable[[Any], tuple[Any, Any]]) -> Integers:
    """Give the values of a column numbers, -1 where there is none, as reading itself tells them apart."""
    if getattr(series.dtype, "categories", None) is not None:
        return np.asarray(series.cat.codes, dtype=np.int64)
    try:
        return np.asarray(factorize(series)[0], dtype=np.int64)
    except TypeError:
        raise nested(name) from None
