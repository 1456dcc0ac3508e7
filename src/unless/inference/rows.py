"""Tables read with the variables and levels of a model, so that codes mean the same in both."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset, Detail, Rows
from unless.data.domain import Code, Domain, shorten
from unless.errors import DataError, MissingValues, UnknownLevel, UnknownName

# What reading calls the level it makes of missing values.
_MISSING_LABELS = {"missing", "(missing)"}


def read_rows(domain: Domain, X: object, show_progress: bool | None = None) -> Dataset:
    """Read a Dataset, a frame or a file as rows of a domain; columns it does not know are left out.

    Missing values are the level "missing" of a variable that has it, as reading with missing="level" made it;
    elsewhere they are refused.
    """
    if isinstance(X, Dataset):
        return X if X.domain == domain else _recoded(domain, X)
    from unless.data.read import read

    has_level = any(_MISSING_LABELS & set(variable.levels) for variable in domain)
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


def checked_codes(domain: Domain, rows: npt.ArrayLike) -> Rows:
    """Refuse what are no rows of codes of a domain."""
    codes: npt.NDArray[Any] = np.asarray(rows)
    if codes.ndim != 2 or codes.shape[1] != len(domain) or codes.dtype.kind not in "iu":
        raise DataError(
            f"Codes of the shape {codes.shape} and type {codes.dtype} are no rows of this model; give "
            f"rows of {len(domain)} whole numbers."
        )
    if codes.size and ((codes < 0) | (codes >= domain.n_levels)).any():
        raise DataError("A code is outside the levels of its variable; give codes from 0 to levels - 1.")
    return np.ascontiguousarray(codes, dtype=Code)


def _read_column(domain: Domain, X: object, show_progress: bool | None) -> Dataset:
    from unless.inference.cells import HOLE, read_cells

    cells = read_cells(domain, X, show_progress)
    holes = cells == HOLE
    label = next((label for label in domain.variables[0].levels if label in _MISSING_LABELS), None)
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


def _recoded_holes(domain: Domain, data: Dataset, lookups: list[npt.NDArray[np.int64]]) -> Detail | None:
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
