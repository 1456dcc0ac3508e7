"""NumPy arrays and plain Python tables, column by column, as arrays the database reads in place."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.domain import Kind
from unless.data.duck import DuckDBSession
from unless.data.labels import to_label
from unless.data.settings import Settings, made_up_names
from unless.data.source import Field, Source, nested, outer_names
from unless.errors import DataError
from unless.runtime.memory import check_columns

Array = npt.NDArray[Any]


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
    names = outer_names(columns, "the table")
    check_columns(len(names), sum(map(how.wants, names)), how.max_memory)
    encoded = [
        encode(name, f"c{position}", values, numeric=name in how.numeric)
        for position, (name, values) in enumerate(zip(names, columns.values(), strict=True))
        if how.wants(name)
    ]
    return register(encoded, names, session, nameless=nameless)


def register(
    encoded: Sequence[tuple[Field, Array]],
    names: tuple[str, ...],
    session: DuckDBSession,
    beside: Mapping[str, Array] | None = None,
    *,
    nameless: bool = False,
) -> Source:
    """Hand encoded columns of equal length to the database, and what stands `beside` them."""
    lengths = {len(array) for _, array in encoded}
    if len(lengths) > 1:
        first, other = next((a, b) for a, b in pairwise(encoded) if len(a[1]) != len(b[1]))
        raise DataError(
            f"Column {first[0].name!r} has {len(first[1]):,} values and {other[0].name!r} {len(other[1]):,}; "
            "give columns of equal length."
        )
    held = {field.column: array for field, array in encoded}
    if not held:
        # The chosen columns do not exist; the names are still needed to say so.
        held = {"c0": np.zeros(0)}
    held |= beside or {}
    session.register("given", held)
    return Source(
        "The table", "given", names, tuple(field for field, _ in encoded), nameless=nameless, held=(held,)
    )


def encode(name: str, column: str, values: Any, *, numeric: bool = False) -> tuple[Field, Array]:
    """Give numbers as they are and all else as codes with labels."""
    if isinstance(values, np.ma.MaskedArray):
        values = [None if hidden else value for value, hidden in _unmasked(values)]
    array = values if isinstance(values, np.ndarray) else None
    if array is not None and array.ndim != 1:
        return Field(name, column, "unusable"), np.zeros(len(array))
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
    found: set[Kind] = {_kind(value) for value in values}
    if found == {"integer", "float"}:
        return "float"
    return found.pop() if len(found) == 1 else "text"


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
    places: dict[tuple[type, Any], int] = {}
    try:
        codes = np.fromiter(
            (
                -1 if is_missing(value) else places.setdefault((type(value), value), len(places))
                for value in values
            ),
            dtype=np.int32,
        )
    except TypeError:
        raise nested(name) from None
    return codes, [value for _, value in places]


def is_missing(value: Any) -> bool:
    """Tell None, NaN, NaT and pandas' NA from values."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, float | np.floating):
        return bool(value != value)  # noqa: PLR0124 (only NaN differs from itself)
    return isinstance(value, datetime | np.datetime64) and bool(value != value)  # noqa: PLR0124
