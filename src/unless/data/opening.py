"""Any kind of table is opened here, and the columns to relate are chosen from it."""

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from unless.data.arff import open_arff
from unless.data.arrays import as_array, open_array, open_columns, open_records
from unless.data.delimited import open_delimited
from unless.data.domain import shorten
from unless.data.duck import DuckDBSession
from unless.data.excel import open_excel
from unless.data.files import TableFile, find_files, prepare
from unless.data.frames import open_frame
from unless.data.labelled import open_labelled
from unless.data.settings import Settings, check_names
from unless.data.source import Field, Source, nested
from unless.data.sql import Query, is_relation, open_database, open_query, open_relation, refuse_connection
from unless.data.structured import open_json, open_parquet
from unless.errors import DataError, SettingError


def open_source(source: Any, session: DuckDBSession, how: Settings) -> Source:
    """Open a path, a query, a frame, an array or a plain Python table, and lock the database on it."""
    found = _files(source)
    if how.sheet is not None and not found:
        raise SettingError(f"sheet={how.sheet!r} is for spreadsheets, and the table is none; leave it out.")
    if isinstance(source, Query):
        return open_query(source, session, how)
    if is_relation(source):
        return open_relation(source, session, how)
    if found:
        return _open_files([prepare(one, session) for one in found], session, how)
    if isinstance(source, np.ndarray):
        opened: Source | None = open_array(source, session, how)
    else:
        opened = open_frame(source, session, how) or _open_python(source, session, how)
    if opened is None:
        refuse_connection(source)
        raise DataError(
            f"An object of type {type(source).__name__} cannot be read; give a path, a DataFrame, an Arrow "
            "table or an array."
        )
    session.lock()
    return opened


def _files(source: Any) -> list[Any]:
    """Return the files meant by a path, a glob, an open file or a list; none if it is no such thing."""
    several = source if isinstance(source, list | tuple) else [source]
    if not all(isinstance(one, str | os.PathLike) or _is_open_file(one) for one in several):
        return []
    return [found for one in several for found in ([one] if _is_open_file(one) else find_files(one))]


def _is_open_file(source: Any) -> bool:
    return callable(getattr(source, "read", None)) and callable(getattr(source, "readable", None))


def _open_python(source: Any, session: DuckDBSession, how: Settings) -> Source | None:
    if isinstance(source, Mapping):
        return open_columns(source, session, how)
    if isinstance(source, list | tuple):
        return open_records(source, session, how)
    array = as_array(source)
    return None if array is None else open_array(array, session, how)


def _open_files(files: list[TableFile], session: DuckDBSession, how: Settings) -> Source:
    session.title = files[0].title
    formats = {one.format for one in files}
    if len(formats) > 1:
        raise DataError(
            f"The pattern matches files of different formats ({shorten(sorted(formats))}); name one kind."
        )
    form = formats.pop()
    if how.sheet is not None and form != "excel":
        raise SettingError(
            f"sheet={how.sheet!r} is for spreadsheets, and {files[0].title} is none; leave it out."
        )
    if form in _ONE_BY_ONE:
        if len(files) > 1:
            raise DataError(
                f"Files such as {files[0].title} are read one at a time; name one of the {len(files):,}."
            )
        # Before the database is made: a child process is started from a small parent.
        opened = _ONE_BY_ONE[form](files[0], session, how)
        session.lock()
        return opened
    session.lock(one.path for one in files)
    return {"delimited": open_delimited, "parquet": open_parquet, "json": open_json}[form](
        files, session, how
    )


_ONE_BY_ONE: dict[str, Callable[[TableFile, DuckDBSession, Settings], Source]] = {
    "arff": open_arff,
    "excel": open_excel,
    "database": open_database,
    "labelled": open_labelled,
}


def row_numbers(source: Source) -> list[str]:
    """Return the columns in which pandas hides the row numbers of a frame it writes to Arrow or Parquet."""
    return [name for name in source.names if re.fullmatch(r"__index_level_\d+__", name)]


def choose_columns(source: Source, how: Settings, *, usable: bool = True) -> tuple[list[Field], Field | None]:
    """Return the columns to relate and the column of counts; only `usable` ones, or all."""
    check_names(how.columns or (), source.names, "columns=")
    for argument, named in (("bins=", how.bins), ("levels=", how.levels), ("rare=", how.rare)):
        check_names(named if isinstance(named, dict) else (), source.names, argument)
    count = None
    if how.count_column is not None:
        check_names([how.count_column], source.names, "count_column=")
        count = source.field(how.count_column)
        if how.columns and how.count_column in how.columns and not source.nameless:
            raise SettingError(
                f"{how.count_column!r} is the count_column and cannot be a column to relate too; take it out "
                "of columns=."
            )
    for says, name in how.design.items():
        check_names([name], source.names, f"{says}_column=")
    hidden = set(row_numbers(source))
    shown = [name for name in source.names if name not in hidden]
    asked = shown if how.columns is None else how.columns
    aside = {how.count_column, *_aside(how)}
    names = tuple(name for name in asked if name not in aside)
    if len(names) < 2:
        have = f"one column, {names[0]!r}," if names else "no column"
        raise DataError(f"The table has {have} to look at, so there is nothing to relate; {_more(source)}.")
    fields = [source.field(name) for name in names]
    for one in [*fields, *([count] if count else [])]:
        if usable and one.form == "unusable":
            raise nested(one.name)
    return fields, count


def _aside(how: Settings) -> list[str]:
    """Return the columns that say how rows were drawn; strata that are named in columns= are related, too."""
    return [name for says, name in how.design.items() if says != "strata" or name not in (how.columns or ())]


def _more(source: Source) -> str:
    if source.repair is not None and len(source.names) == 1:
        return "give two or more columns, or the character that separates them with delimiter="
    return "give two or more columns"
