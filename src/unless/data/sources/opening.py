"""Any kind of table is opened here: a path, a stream, a query, a frame, an array or a plain Python table.

Paths, patterns and streams become regular files first: a stream is copied to the temporary folder, a packed
file is unpacked there, and the format is known by the ending or by the first bytes.

To add a file format, write one file in this folder with a function `open_...(file, session, how)`, or
`open_...(files, session, how)` for one that reads `several` files as one table, that returns a `Source`
(`session.py`; `structured.py` has short examples), and add a line to `FORMATS`.
Take its endings out of `_FOREIGN` if they are there, and add its first bytes to `_MAGIC` if it has some, so
that streams and files without an ending are known.
"""

import codecs
import glob
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from unless.data.domain import nearest, shorten
from unless.data.settings import Settings, check_names
from unless.data.sources.arff import open_arff
from unless.data.sources.delimited import open_delimited
from unless.data.sources.excel import open_excel
from unless.data.sources.frames import as_array, open_array, open_columns, open_frame, open_records
from unless.data.sources.labelled import open_labelled
from unless.data.sources.session import DuckDBSession, Field, Source, TableFile, nested
from unless.data.sources.sql import (
    Query,
    is_relation,
    open_database,
    open_query,
    open_relation,
    refuse_connection,
)
from unless.data.sources.structured import open_json, open_parquet
from unless.data.sources.unpacking import PACKED
from unless.errors import DataError, SettingError
from unless.runtime.files import STANDARD_INPUT, is_stream, spool, stream_title


@dataclass(frozen=True)
class FileFormat:
    """How files with one of these endings are opened: one file, or a list of files where `several` may be."""

    open: Callable[..., Source]
    endings: tuple[str, ...]
    several: bool = False


FORMATS = {
    # Also what no other format is known by.
    "delimited": FileFormat(open_delimited, (), several=True),
    "parquet": FileFormat(open_parquet, (".parquet", ".pq"), several=True),
    "json": FileFormat(open_json, (".json", ".jsonl", ".ndjson"), several=True),
    "arff": FileFormat(open_arff, (".arff",)),
    "excel": FileFormat(open_excel, (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")),
    "database": FileFormat(open_database, (".db", ".db3", ".sqlite", ".sqlite3", ".duckdb", ".ddb")),
    "labelled": FileFormat(open_labelled, (".dta", ".sav", ".zsav", ".por")),
}
_BY_ENDING = {ending: name for name, one in FORMATS.items() for ending in one.endings}
# Endings of formats that are not read here, and what reads them.
_FOREIGN = {
    ".feather": "polars.read_ipc",
    ".arrow": "polars.read_ipc",
    ".ipc": "polars.read_ipc",
    ".sas7bdat": "pandas.read_sas",
    ".xpt": "pandas.read_sas",
    ".pkl": "pandas.read_pickle",
}
# The first bytes of files that are not text.
_MAGIC = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ\0": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"PAR1": ".parquet",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ".xls",
    b"SQLite format 3\0": ".sqlite",
    b"$FL2": ".sav",
    b"$FL3": ".sav",
    b"<stata_dta>": ".dta",
}
# Address space of the process that unpacks: what `xz -9` needs, and Python.
_MEMORY = 112 * 2**20
# What begins like a query, and is one unless there is a file of this name.
_QUERY = re.compile(r"\s*(?:select\s+\S|with\s+[^\0]+\bselect\s|from\s+\w+\s)", re.IGNORECASE)


def open_source(source: Any, session: DuckDBSession, how: Settings) -> Source:
    """Open a path, a query, a frame, an array or a plain Python table, and lock the database on it."""
    if files := _files(source):
        return _open_files([prepare(one, session) for one in files], session, how)
    if how.sheet is not None:
        raise SettingError(f"sheet={how.sheet!r} is for spreadsheets, and the table is none; leave it out.")
    if isinstance(source, Query):
        if isinstance(source.connection, str | os.PathLike):
            return open_database(_database(source.connection, session), session, how, source.text)
        return open_query(source, session, how)
    if is_relation(source):
        return open_relation(source, session, how)
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


def _database(path: str | os.PathLike[str], session: DuckDBSession) -> TableFile:
    """Return the only file at a path, which should be a database to ask a query of."""
    found = find_files(path)
    if len(found) > 1:
        raise SettingError(
            f"A query is asked of one database, and {str(path)!r} matches {len(found):,} files."
        )
    file = prepare(found[0], session)
    if file.format != "database":
        raise DataError(
            f"{file.title} is neither a SQLite nor a DuckDB database, so no query can be asked of it."
        )
    return file


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
    name = formats.pop()
    if how.sheet is not None and name != "excel":
        raise SettingError(
            f"sheet={how.sheet!r} is for spreadsheets, and {files[0].title} is none; leave it out."
        )
    if FORMATS[name].several:
        session.lock(one.path for one in files)
        return FORMATS[name].open(files, session, how)
    if len(files) > 1:
        raise DataError(
            f"Files such as {files[0].title} are read one at a time; name one of the {len(files):,}."
        )
    # Before the database is made: a child process is started from a small parent.
    opened = FORMATS[name].open(files[0], session, how)
    session.lock()
    return opened


def find_files(source: str | os.PathLike[str]) -> list[Path]:
    """Return the file at a path, or the sorted files a pattern matches; "-" is standard input."""
    if str(source) == STANDARD_INPUT:
        return [Path(STANDARD_INPUT)]
    if not str(source).strip():
        raise DataError("The path is empty; name a file.")
    if _QUERY.match(str(source)) and not os.path.exists(source):  # noqa: PTH110 (a text that can be no path is not there)
        start = " ".join(str(source).split())[:40]
        raise DataError(
            f"'{start} ...' is a query; say which database to ask with connection=, or with --sql and "
            "--database on the command line."
        )
    try:
        return _find(source)
    except DataError:
        raise
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise DataError(f"{str(source)[:60]!r} cannot be the path of a file ({why}).") from None


def _find(source: str | os.PathLike[str]) -> list[Path]:
    path = Path(os.path.expanduser(source))  # noqa: PTH111 (Path.expanduser raises where there is no home)
    if path.is_dir():
        raise DataError(
            f"{str(source)!r} is a folder; name a file in it, or all of a kind with '{path.name}/*.csv'."
        )
    if path.exists():
        # "./-" is a file of this name.
        return [path.absolute() if str(path) == STANDARD_INPUT else path]
    if glob.has_magic(str(path)):
        found = sorted(Path(match) for match in glob.glob(str(path), recursive=True))  # noqa: PTH207
        files = [match for match in found if match.is_file()]
        if not files:
            raise DataError(f"No file matches {str(source)!r}; check the folder and the pattern.")
        return files
    raise DataError(f"There is no file {str(source)!r}; {_hint(path)}")


def _hint(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"the folder {str(folder)!r} does not exist either."
    return nearest(path.name, [other.name for other in folder.iterdir()], "check the name and the folder.")


def prepare(source: Any, session: DuckDBSession) -> TableFile:
    """Make a regular file of whatever is to be read, find out what it holds, and unpack it."""
    if is_stream(source):
        path, title, name = _spooled(source, session)
    else:
        path, title, name = Path(source), repr(Path(source).name), Path(source).name
        session.watch(path, title)
    _check_readable(path, title)
    packing = _packing(path, name)
    if packing:
        path, name, packing = _unpacked(path, name, packing, session, title)
    # It becomes part of the names of temporary files, and an archive may hold any.
    ending = re.fullmatch(r"\.\w{1,12}", PurePath(name).suffix.lower())
    suffix = ending[0] if ending else ""
    if suffix in _FOREIGN:
        raise DataError(
            f"{title} is not a format Unless opens; pass it as a DataFrame, from {_FOREIGN[suffix]}(...)."
        )
    form = _BY_ENDING.get(suffix)
    if form is None:
        # What is not text is known by its first bytes, all else is tried as text.
        form = _BY_ENDING.get("" if packing else _recognised(path), "delimited")
    if packing and form not in ("delimited", "json"):
        raise DataError(f"{title} is packed in a way that cannot be opened for this format; unpack it first.")
    return TableFile(_staged(path, packing, session), title, suffix, form, packing)


def _spooled(source: Any, session: DuckDBSession) -> tuple[Path, str, str]:
    """Copy a stream to the temporary folder, once; its name is made of what it begins with."""
    title = stream_title(source)
    target = session.temporary_path("")
    session.stage(f"reading {title}")
    spool(source, target, title, lambda: session.bar.share(-1.0))
    named = source if isinstance(source, str | os.PathLike) else getattr(source, "name", "")
    name = PurePath(os.fsdecode(named)).name if isinstance(named, str | bytes | os.PathLike) else ""
    if PurePath(name).suffix.lower() not in {*_BY_ENDING, *_FOREIGN, *PACKED}:
        name = "stream" + _recognised(target, is_text_too=True)
    return target, title, name


def _packing(path: Path, name: str) -> str:
    """Return how a file is packed: as its name says, else as its first bytes do."""
    suffix = PurePath(name).suffix.lower()
    if suffix in PACKED:
        return suffix
    found = "" if suffix in {*_BY_ENDING, *_FOREIGN} else _recognised(path)
    return found if found in PACKED else ""


def _recognised(path: Path, *, is_text_too: bool = False) -> str:
    """Return the ending that the first bytes of a file call for, empty for text.

    With `is_text_too`, formats are told apart that are text themselves: then there is no name to go by.
    """
    with path.open("rb") as stream:
        start = stream.read(2**16)
    if start.startswith(b"PK\3\4"):
        return _zip_ending(path)
    for magic, ending in _MAGIC.items():
        if start.startswith(magic):
            return ending
    if start[8:12] == b"DUCK":
        return ".duckdb"
    if not is_text_too:
        return ""
    text = start.removeprefix(codecs.BOM_UTF8).lstrip()
    if re.match(rb"\{\s*[\"}]|\[\s*[{\]]", text):
        return ".json"
    return ".arff" if re.match(rb"(?:%[^\n]*\n\s*)*@relation\s", text, re.IGNORECASE) else ""


def _zip_ending(path: Path) -> str:
    """Tell spreadsheets from other archives: by names that stand near the beginning, or at the end."""
    with path.open("rb") as stream:
        start = stream.read(2**12)
        stream.seek(max(0, stream.seek(0, 2) - 2**17))
        seen = start + stream.read()
    if b"opendocument.spreadsheet" in start:
        return ".ods"
    if b"xl/workbook.bin" in seen:
        return ".xlsb"
    return ".xlsx" if b"xl/workbook.xml" in seen or b"[Content_Types].xml" in start else ".zip"


def _check_readable(path: Path, title: str) -> None:
    try:
        with path.open("rb") as stream:
            start = stream.read(1)
    except OSError as error:
        raise DataError(f"{title} cannot be opened ({error.strerror}); check its permissions.") from None
    if not start:
        raise DataError(f"{title} is empty; give a table with a header line and rows.")


def _unpacked(
    path: Path, name: str, packing: str, session: DuckDBSession, title: str
) -> tuple[Path, str, str]:
    """Unpack a file in a child process; one of Zstandard, which only the database can, is measured there."""
    target, found = session.write_in_child(
        "unless.data.sources.unpacking:unpack",
        {"source": str(path.absolute()), "packing": packing, "title": title},
        stage="unpacking",
        memory=_MEMORY,
        # bzip2, the slowest, takes a third of this.
        seconds=4 + path.stat().st_size / 2**21,
        way_out="unpack it by hand and name the table.",
    )
    inner = found["name"] or PurePath(name).stem
    if packing == ".zst":
        return path, inner, packing
    _check_readable(target, title)
    if PurePath(inner).suffix.lower() not in _BY_ENDING:
        ending = _recognised(target, is_text_too=PurePath(name).stem == "stream" and not found["name"])
        if ending in PACKED or PurePath(inner).suffix.lower() in (*PACKED, ".tar"):
            raise DataError(f"{title} holds another packed file; unpack it by hand and name the table.")
        inner += ending
    return target, inner, ""


def _staged(path: Path, packing: str, session: DuckDBSession) -> Path:
    """Give a path the database will not take for a pattern, with the ending by which it knows Zstandard."""
    absolute = path.absolute()
    # No library could open a name whose bytes are not text.
    is_plain = not glob.has_magic(str(absolute)) and str(absolute).isprintable()
    if is_plain and (not packing or path.suffix.lower() == packing):
        return absolute
    target = session.temporary_path(packing or path.suffix)
    try:
        target.symlink_to(absolute)
    except OSError:
        shutil.copyfile(absolute, target)
    return target


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
    aside = {how.count_column, *_design_columns(how)}
    names = tuple(name for name in asked if name not in aside)
    if len(names) < 2:
        have = f"one column, {names[0]!r}," if names else "no column"
        raise DataError(f"The table has {have} to look at, so there is nothing to relate; {_more(source)}.")
    fields = [source.field(name) for name in names]
    for one in [*fields, *([count] if count else [])]:
        if usable and one.form == "unusable":
            raise nested(one.name)
    return fields, count


def _design_columns(how: Settings) -> list[str]:
    """Return the columns that say how rows were drawn; strata that are named in columns= are related, too."""
    return [name for says, name in how.design.items() if says != "strata" or name not in (how.columns or ())]


def _more(source: Source) -> str:
    if source.repair is not None and len(source.names) == 1:
        return "give two or more columns, or the character that separates them with delimiter="
    return "give two or more columns"
