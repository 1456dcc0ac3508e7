"""Tables read with the variables and levels of a model, so that codes mean the same in both.

`read_rows` gives distinct rows with their counts; `read_cells` gives all rows in their order, with holes
where a row shows nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.columns.levels import MISSING_CODE, RawColumn, label_column
from unless.data.dataset import Dataset, Detail, distinct_rows
from unless.data.domain import MAX_LEVELS, MISSING_LABELS, Code, Domain, Variable, shorten
from unless.data.encode import Encoding, encode_shape, fetch_codes, with_shapes
from unless.data.settings import Settings, made_up_names, make_settings
from unless.data.showing import to_label
from unless.data.sources.frames import is_missing
from unless.data.sources.opening import open_source
from unless.data.sources.session import DuckDBSession, Field, nested
from unless.errors import DataError, MissingValues, UnknownLevel, UnknownName
from unless.inference.frames import values
from unless.runtime.progress import BAR_DELAY, progress
from unless.typing import Floats, Integers

Cells = Integers
HOLE = -1
# A level that the domain does not know, where it is not refused.
UNKNOWN = -2


def read_rows(domain: Domain, X: object, show_progress: bool | None = None) -> Dataset:
    """Read a Dataset, a frame or a file as rows of a domain; columns it does not know are left out.

    Missing values are the level "missing" of a variable that has it, as reading with missing="level" made it;
    elsewhere they are refused.
    """
    if isinstance(X, Dataset):
        return X if X.domain == domain else _recoded(domain, X)
    from unless.data.read import read

    has_level = any({*MISSING_LABELS} & set(variable.levels) for variable in domain)
    with of_the_model():
        if len(domain) == 1:
            # A table of one column is nothing to learn from, but can be compared with a model.
            return _read_column(domain, X, show_progress)
        how: dict[str, Any] = {"missing": "level" if has_level else "error", "show_progress": show_progress}
        try:
            data = read(X, columns=domain.names, levels=domain, **how)
        except MissingValues as error:
            raise _no_holes(str(error).partition("; ")[0]) from None
    strange = [one.name for one, said in zip(data.domain, domain, strict=True) if one != said]
    if strange:
        raise _no_holes(f"There are missing values in {shorten(strange)}")
    return data


def read_incomplete(domain: Domain, X: object, show_progress: bool | None = None) -> Dataset:
    """Read a table as `read_rows` does, but keep rows with missing values: they are in its `detail`."""
    if isinstance(X, Dataset) or len(domain) == 1:
        return read_rows(domain, X, show_progress)
    from unless.data.read import read

    with of_the_model():
        named = read(X, columns=domain.names, levels=domain, missing="level", show_progress=show_progress)
    return read_rows(domain, with_holes(domain, named))


def with_holes(domain: Domain, data: Dataset) -> Dataset:
    """Make missing values again of the levels that reading made of them, where a model has none for them."""
    missing = {}
    for made in data.domain:
        known = domain[made.name].levels if made.name in domain else made.levels
        label = next((one for one in made.levels if one.strip("()") == "missing" and one not in known), None)
        if label is not None:
            missing[made.name] = data.rows[:, data.domain.index(made.name)] == made.code(label)
    if not missing:
        return data
    whole = ~np.logical_or.reduce(list(missing.values()))
    notes = [note for note in data.notes if not note.startswith("Made missing values ")]
    complete = Dataset.from_codes(data.domain, data.rows[whole], data.counts[whole], notes)
    return replace(complete, detail=Detail.of(data.rows, data.counts, None, missing))


def rows_to_score(domain: Domain, X: object, show_progress: bool | None = None) -> Dataset:
    """Read a table that has at least one row."""
    data = read_rows(domain, X, show_progress)
    if not data.n_rows:
        raise nothing_to_score()
    return data


def nothing_to_score() -> DataError:
    """Say that a table has no rows."""
    return DataError("The table has no rows; there is nothing to score.")


@contextmanager
def of_the_model() -> Iterator[None]:
    """Speak of the model where the reader speaks of arguments, which are the model's here."""
    try:
        yield
    except (UnknownName, UnknownLevel) as error:
        sentence = str(error).replace("columns= names", "The model speaks of")
        for listed in ("its levels=", "the levels given by ordered="):
            sentence = sentence.replace(
                f" is not among {listed}", " is not among the levels the model knows, "
            )
        sentence = sentence.replace("; add it there or correct the table.", "; correct the table.")
        raise type(error)(sentence) from None


def _read_column(domain: Domain, X: object, show_progress: bool | None) -> Dataset:
    cells = read_cells(domain, X, show_progress)
    holes = cells == HOLE
    label = next((label for label in domain.variables[0].levels if label in MISSING_LABELS), None)
    if holes.any() and label is None:
        raise _no_holes(f"There are missing values in {domain.names[0]!r} ({int(holes.sum()):,})")
    if label is not None:
        cells[holes] = domain.variables[0].code(label)
    return Dataset.from_codes(domain, cells)


def _no_holes(fact: str) -> MissingValues:
    return MissingValues(
        f"{fact}, and the model has no level for them; drop those rows by unless.read(table, "
        "missing='drop'), or fill them by impute()."
    )


def _recoded(domain: Domain, data: Dataset) -> Dataset:
    missing = [name for name in domain.names if name not in data.domain]
    if missing:
        raise UnknownName(f"The table has no column {shorten(missing)}, of which the model speaks.")
    columns, lookups = [], []
    for variable in domain:
        column = data.rows[:, data.domain.index(variable.name)]
        known = {label: code for code, label in enumerate(variable.levels)}
        codes = np.array([known.get(label, -1) for label in data.domain[variable.name].levels])
        strange = [data.domain[variable.name].levels[code] for code in np.unique(column[codes[column] < 0])]
        if strange:
            raise UnknownLevel(
                f"Column {variable.name!r} holds {shorten(strange)}, which the model does not know; its "
                f"levels are {shorten(variable.levels)}."
            )
        columns.append(codes[column])
        lookups.append(codes)
    recoded = Dataset.from_codes(domain, np.column_stack(columns), data.counts, data.notes, data.weights)
    return replace(recoded, detail=_recoded_holes(domain, data, lookups))


def _recoded_holes(domain: Domain, data: Dataset, lookups: list[Integers]) -> Detail | None:
    """Return the rows with missing values of a table in the codes of another domain, if there are some.

    A level that only they show, and the domain does not know, is missing, too.
    """
    if data.detail is None or not any(name in domain for name in data.detail.missing):
        return None
    columns, missing = [], {}
    for name, codes in zip(domain.names, lookups, strict=True):
        column = codes[data.detail.rows[:, data.domain.index(name)]]
        holes = (column < 0) | data.detail.missing.get(name, np.zeros(len(column), dtype=np.bool_))
        columns.append(np.where(holes, 0, column))
        missing[name] = holes
    rows = np.column_stack(columns).astype(Code)
    return Detail.of(rows, data.detail.counts, None, missing, data.detail.design)


def read_cells(
    domain: Domain,
    table: object,
    show_progress: bool | None = None,
    unknown: Literal["refuse", "mark"] = "refuse",
) -> Cells:
    """Read a table, row by row, as codes of a domain, and holes where it shows nothing.

    A Dataset, which knows no order of rows, gives its distinct ones. Levels that the domain does not know are
    refused, or marked as UNKNOWN. Numbers fall into the levels of a variable that was cut.
    """
    if isinstance(table, Dataset):
        if unknown == "mark":
            return _recoded_cells(domain, table)
        return read_rows(domain, table).rows.astype(np.int64)
    how = _settings(domain)
    with (
        progress("Reading", show_progress, after=BAR_DELAY) as bar,
        DuckDBSession(how.max_memory, bar) as session,
    ):
        source, how = with_shapes(open_source(_without_blank(table), session, how), how)
        fields = [one for one in source.fields if one.name in domain]
        if not fields:
            raise UnknownName(f"The table has none of the model's columns, {shorten(domain.names)}.")
        plans = [
            encode_shape(one, how) if one.name in how.shapes else Encoding(one, _expression(one))
            for one in fields
        ]
        fields = [plan.field for plan in plans]
        listed = ", ".join(f"{plan.expression} as v{place}" for place, plan in enumerate(plans))
        # Every name in the SQL is our own; the database keeps the order of rows it does not group.
        session.run(f"create temp table collapsed as select {listed}, 1 as n from {source.relation}")  # noqa: S608
        n_rows = int(session.value("select count(*) from collapsed"))
        spelled, codes, _ = fetch_codes(plans, n_rows, session)
    cells = np.full((n_rows, len(domain)), HOLE)
    for place, one in enumerate(fields):
        column = label_column(one, spelled[place], codes[:, place], how)
        cells[:, domain.index(one.name)] = _coded(domain[one.name], column, unknown)
    return cells


def _without_blank(table: Any) -> Any:
    """Leave out the columns that polars knows to hold nothing, which no database reads; they are holes."""
    if not type(table).__module__.startswith("polars."):
        return table
    from polars import Null, selectors

    return table.drop(selectors.by_dtype(Null))


def _settings(domain: Domain) -> Settings:
    how = make_settings(
        {"columns": domain.names, "missing": "level", "levels": domain, "max_levels": MAX_LEVELS}
    )
    # Levels are looked up here, row by row; only cuts and parts of dates are the reader's.
    return replace(how, levels={})


def _expression(one: Field) -> str:
    if one.form == "unusable":
        raise nested(one.name)
    return f"nullif({one.column}, -1)" if one.form == "code" else one.column


def _recoded_cells(domain: Domain, data: Dataset) -> Cells:
    """Return the rows of a Dataset as codes of another domain, UNKNOWN where it does not know a level."""
    cells = np.full((data.n_distinct, len(domain)), HOLE)
    for place, variable in enumerate(domain):
        if variable.name in data.domain:
            codes = [_code(variable, label) for label in data.domain[variable.name].levels]
            cells[:, place] = np.array(codes)[data.rows[:, data.domain.index(variable.name)]]
    return cells


def _code(variable: Variable, label: str) -> int:
    try:
        return variable.code(label)
    except UnknownLevel:
        return UNKNOWN


def _coded(variable: Variable, column: RawColumn, unknown: Literal["refuse", "mark"]) -> Cells:
    known = {label: code for code, label in enumerate(variable.levels)}
    lookup = np.full(MISSING_CODE + 1, HOLE)
    for place, label in enumerate(column.labels):
        lookup[place] = known[label] if label in known else _code_of_number(variable, label)
    if unknown == "mark":
        return lookup[column.codes]
    strange = lookup[column.codes] == UNKNOWN
    if strange.any():
        row = int(np.argmax(strange))
        raise UnknownLevel(
            f"{column.labels[column.codes[row]]!r} in column {variable.name!r} (row {row + 1:,}) is not a "
            f"level the model knows; its levels are {shorten(variable.levels)}."
        )
    return lookup[column.codes]


def _code_of_number(variable: Variable, label: str) -> int:
    """Return the level that a number written as text falls into, where the variable was cut."""
    return _code(variable, label) if variable.cuts else UNKNOWN


class Incomplete(NamedTuple):
    """Distinct rows of codes, HOLE where a value is missing; how often each occurs, and what it weighs.

    A row of a survey weighs what its design says, any other 1.
    """

    cells: Cells
    counts: Integers
    weights: Floats


def incomplete_rows(data: Dataset) -> Incomplete:
    """Return the rows of a table that lack a value but show some; those of like codes are put together."""
    detail = data.detail
    if detail is None or not detail.missing:
        none = np.empty((0, data.n_variables), dtype=np.int64)
        return Incomplete(none, np.empty(0, dtype=np.int64), np.empty(0))
    cells = detail.rows.astype(np.int64)
    for name, holes in detail.missing.items():
        cells[holes, data.domain.index(name)] = HOLE
    n_holes = (cells == HOLE).sum(axis=1)
    some = (n_holes > 0) & (n_holes < data.n_variables)
    distinct, place = distinct_rows(cells[some])
    counts, weights = np.zeros(len(distinct), dtype=np.int64), np.zeros(len(distinct))
    np.add.at(counts, place, detail.counts[some])
    np.add.at(weights, place, (detail.counts if detail.design is None else detail.design.weights)[some])
    return Incomplete(distinct, counts, weights)


def with_levels(table: Any, domain: Domain, changes: Mapping[str, tuple[Cells, Cells]]) -> Any:
    """Return a copy of a table of the same kind; `changes` gives, by column, rows and their new codes."""
    if isinstance(table, np.ndarray) and table.ndim == 2:
        names = made_up_names(table.shape[1], _settings(domain))
        columns = {
            name: _replaced(column, domain[name], *changes[name]) if name in changes else column
            for name, column in zip(names, table.T, strict=True)
        }
        return np.column_stack(list(columns.values()))
    if isinstance(table, Mapping):
        return {
            name: _replaced(column, domain[str(name)], *changes[str(name)])
            if str(name) in changes
            else column
            for name, column in table.items()
        }
    return _frame_with_levels(table, domain, changes)


def _frame_with_levels(table: Any, domain: Domain, changes: Mapping[str, tuple[Cells, Cells]]) -> Any:
    import narwhals as nw

    frame: Any = nw.from_native(table, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, nw.DataFrame):
        raise DataError(
            f"An object of type {type(table).__name__} cannot be given back with its holes filled; give a "
            "DataFrame, an Arrow table, a dictionary of columns or an array."
        )
    fill = _fill_polars
    if not frame.implementation.is_polars():
        fill = _fill_arrow if frame.implementation.is_pyarrow() else _fill_pandas
    filled = [fill(frame[name], domain[name], *changes[name]) for name in frame.columns if name in changes]
    return frame.with_columns(*filled).to_native()


def _fill_pandas(column: Any, variable: Variable, rows: Cells, codes: Cells) -> Any:
    import narwhals as nw

    series = column.to_native().copy()
    categories = getattr(series.dtype, "categories", None)
    called = _values(variable, series.dropna().unique() if categories is None else categories)
    wanted = [called[code] for code in codes.tolist()]
    if categories is None and series.dtype.kind in "biufcmM" and any(isinstance(one, str) for one in wanted):
        # An empty column of any type, as pandas reads it, may be one of text to the model.
        series = series.astype(object)
    if categories is not None:
        series = series.cat.add_categories([one for one in dict.fromkeys(wanted) if one not in categories])
    series.iloc[rows] = wanted
    return nw.from_native(series, series_only=True)


def _fill_polars(column: Any, variable: Variable, rows: Cells, codes: Cells) -> Any:
    import narwhals as nw
    from polars.exceptions import PolarsError

    called = _values(variable, column.drop_nulls().unique().to_list())
    wanted = [called[code] for code in codes.tolist()]
    try:
        made = nw.new_series(column.name, wanted, column.dtype, backend=column.implementation)
        return column.scatter(rows.tolist(), made)
    except (TypeError, PolarsError):
        # A type that cannot hold the level, such as an Enum of other ones: text can.
        labels = [variable.levels[code] for code in codes.tolist()]
        made = nw.new_series(column.name, labels, nw.String, backend=column.implementation)
        return column.cast(nw.String).scatter(rows.tolist(), made)


def _fill_arrow(column: Any, variable: Variable, rows: Cells, codes: Cells) -> Any:
    import narwhals as nw

    native = column.to_native()
    listed = _replaced(native.to_pylist(), variable, rows, codes)
    pa = nw.get_native_namespace(column)
    try:
        made = pa.chunked_array([listed], type=native.type)
    except pa.ArrowException:
        made = pa.chunked_array([[to_label(value) for value in listed]], type=pa.string())
    return nw.from_native(made, series_only=True).alias(column.name)


def _replaced(column: Any, variable: Variable, rows: Cells, codes: Cells) -> Any:
    called = _values(variable, [value for value in column if not is_missing(value)])
    wanted = [called[code] for code in codes.tolist()]
    made = _room_for(column, wanted) if isinstance(column, np.ndarray) else list(column)
    for row, value in zip(rows.tolist(), wanted, strict=True):
        made[row] = value
    return made


def _room_for(column: npt.NDArray[Any], wanted: list[Any]) -> npt.NDArray[Any]:
    """Copy an array to one of a type that can hold these values too."""
    if column.dtype.kind in "US":
        # Longer text would be cut off in silence.
        longest = max(
            column.dtype.itemsize // (4 if column.dtype.kind == "U" else 1),
            *(len(str(value)) for value in wanted),
        )
        return column.astype(f"{column.dtype.kind}{longest}")
    holds = column.dtype.kind == "O" or not any(isinstance(value, str) for value in wanted)
    return column.copy() if holds else column.astype(object)


def _values(variable: Variable, seen: Iterable[object]) -> list[Any]:
    """Return what a column calls each level: as it does already, where it does."""
    known = {to_label(value): value for value in seen}
    typed = values(variable, np.arange(len(variable.levels), dtype=Code)).tolist()
    return [known.get(label, value) for label, value in zip(variable.levels, typed, strict=True)]
