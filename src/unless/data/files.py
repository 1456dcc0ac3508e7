"""Paths, globs and streams become regular files of a known format that the database can open."""

import codecs
import errno
import glob
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import IO, Any, AnyStr, Literal

from unless.data.duck import DuckDBSession
from unless.data.unpacking import PACKED
from unless.errors import DataError
from unless.runtime.child import ChildFailed, run_in_child
from unless.runtime.streams import (
    STANDARD_INPUT,
    is_stream,
    room_in,
    spool,
    stream_title,
    too_large,
    writing_temporary,
)

Format = Literal["delimited", "parquet", "json", "arff", "excel", "database", "labelled"]

_FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".arff": "arff",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xlsb": "excel",
    ".xls": "excel",
    ".ods": "excel",
    ".db": "database",
    ".db3": "database",
    ".sqlite": "database",
    ".sqlite3": "database",
    ".duckdb": "database",
    ".ddb": "database",
    ".dta": "labelled",
    ".sav": "labelled",
    ".zsav": "labelled",
    ".por": "labelled",
}
_FOREIGN = {
    ".feather": "polars.read_ipc",
    ".arrow": "polars.read_ipc",
    ".ipc": "polars.read_ipc",
    ".sas7bdat": "pandas.read_sas",
    ".xpt": "pandas.read_sas",
    ".pkl": "pandas.read_pickle",
}
# What files begin with that are no text.
_MAGIC = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ\0": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"PAR1": ".parquet",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ".xls",
    b"SQLite format 3\0": ".sqlite",
}
# Address space of the process that unpacks: what `xz -9` needs, and Python.
_MEMORY = 112 * 2**20
_BLOCK = 2**20
# What begins like a query, and is no path unless there is such a file.
_QUERY = re.compile(r"\s*(?:select\s+\S|with\s+[^\0]+\bselect\s|from\s+\w+\s)", re.IGNORECASE)


@dataclass(frozen=True)
class TableFile:
    """A file ready to be opened: where it is, what to call it, what it holds."""

    path: Path
    title: str
    suffix: str
    format: Format
    compression: str = ""


def find_files(source: str | os.PathLike[str]) -> list[Path]:
    """Return the file at a path, or the sorted files a pattern matches; "-" is standard input."""
    if str(source) == STANDARD_INPUT:
        return [Path(STANDARD_INPUT)]
    if not str(source).strip():
        raise DataError("The path is empty; name a file.")
    if _QUERY.match(str(source)) and not _is_there(str(source)):
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


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


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
    close = get_close_matches(path.name, [other.name for other in folder.iterdir()], n=1)
    return f"did you mean {close[0]!r}?" if close else "check the name and the folder."


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
    form = _format(path, suffix, title, packing)
    if packing and form not in ("delimited", "json"):
        raise DataError(f"{title} is packed in a way that cannot be opened for this format; unpack it first.")
    return TableFile(_staged(path, packing, session), title, suffix, form, packing)


def _spooled(source: Any, session: DuckDBSession) -> tuple[Path, str, str]:
    """Copy a stream to the temporary folder, once; its name is made of what it begins with."""
    title = stream_title(source)
    target = session.place("")
    session.stage(f"reading {title}")
    spool(source, target, title, lambda: session.bar.share(-1.0))
    named = source if isinstance(source, str | os.PathLike) else getattr(source, "name", "")
    name = PurePath(os.fsdecode(named)).name if isinstance(named, str | bytes | os.PathLike) else ""
    if PurePath(name).suffix.lower() not in {*_FORMATS, *_FOREIGN, *PACKED}:
        name = "stream" + _recognised(target, is_text_too=True)
    return target, title, name


def _packing(path: Path, name: str) -> str:
    """Return how a file is packed: as its name says, else as its first bytes do."""
    suffix = PurePath(name).suffix.lower()
    if suffix in PACKED:
        return suffix
    found = "" if suffix in {*_FORMATS, *_FOREIGN} else _recognised(path)
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
    if start.startswith((b"$FL2", b"$FL3")):
        return ".sav"
    if start.startswith(b"<stata_dta>"):
        return ".dta"
    if not is_text_too:
        return ""
    text = start.removeprefix(codecs.BOM_UTF8).lstrip()
    if re.match(rb"\{\s*[\"}]|\[\s*[{\]]", text):
        return ".json"
    return ".arff" if re.match(rb"(?:%[^\n]*\n\s*)*@relation\s", text, re.IGNORECASE) else ""


def database_kind(path: Path) -> Literal["sqlite", "duckdb", ""]:
    """Tell by its first bytes which database a file is of."""
    with path.open("rb") as stream:
        start = stream.read(16)
    if start == b"SQLite format 3\0":
        return "sqlite"
    return "duckdb" if start[8:12] == b"DUCK" else ""


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


def _format(path: Path, suffix: str, title: str, packing: str) -> Format:
    if suffix in _FOREIGN:
        raise DataError(
            f"{title} is not a format Unless opens; pass it as a DataFrame, from {_FOREIGN[suffix]}(...)."
        )
    if suffix in _FORMATS:
        return _FORMATS[suffix]
    # An unknown ending says nothing: what is not text is known by its first bytes, all else is tried as text.
    found = "" if packing else _recognised(path)
    return _FORMATS.get(found, "delimited")


def _unpacked(
    path: Path, name: str, packing: str, session: DuckDBSession, title: str
) -> tuple[Path, str, str]:
    """Unpack a file in a child process; one of Zstandard, which only the database can, is measured there."""
    size = path.stat().st_size
    target = session.place("")
    session.stage("unpacking")
    told = write_in_child(
        "unless.data.unpacking:unpack",
        {"source": str(path.absolute()), "packing": packing, "title": title},
        target,
        session,
        memory=_MEMORY,
        # bzip2, the slowest, takes a third of this.
        seconds=4 + size / 2**21,
        way_out="unpack it by hand and name the table.",
    )
    inner = told["name"] or PurePath(name).stem
    if packing == ".zst":
        return path, inner, packing
    _check_readable(target, title)
    if PurePath(inner).suffix.lower() not in _FORMATS:
        found = _recognised(target, is_text_too=PurePath(name).stem == "stream" and not told["name"])
        if found in PACKED or PurePath(inner).suffix.lower() in (*PACKED, ".tar"):
            raise DataError(f"{title} holds another packed file; unpack it by hand and name the table.")
        inner += found
    return target, inner, ""


def write_in_child(
    work: str,
    arguments: dict[str, Any],
    target: Path,
    session: DuckDBSession,
    *,
    packages: tuple[str, ...] = (),
    memory: int,
    seconds: float,
    way_out: str,
) -> Any:
    """Let a child process write a file in the temporary folder, and say in one sentence why it did not."""
    title, folder = arguments["title"], target.parent
    try:
        with writing_temporary(folder):
            return run_in_child(
                work,
                {**arguments, "target": str(target)},
                packages=packages,
                memory=memory,
                seconds=seconds,
                n_bytes=room_in(folder),
                look=lambda: session.bar.share(-1.0),
            )
    except ChildFailed as failure:
        if failure.want == "nothing":
            raise DataError(f"{title} is damaged: it cannot be opened; {way_out}") from None
        raise DataError(
            f"{title} takes more {failure.want} to open than a file of its size may; {way_out}"
        ) from None
    except OSError as error:
        if error.errno == errno.EFBIG:
            # The bound on what a child may write is the room on the disk.
            raise too_large(f"what {title} holds", folder) from None
        raise DataError(f"{title} cannot be opened ({error.strerror}); {way_out}") from None


def copy_all(
    stream: IO[AnyStr],
    out: IO[AnyStr],
    session: DuckDBSession,
    done: Callable[[], float],
    stage: str = "unpacking",
) -> None:
    """Copy a stream to its end, telling how far it is."""
    session.stage(stage)
    while block := stream.read(_BLOCK):
        out.write(block)
        session.bar.share(done())


def _staged(path: Path, packing: str, session: DuckDBSession) -> Path:
    """Give a path the database will not take for a pattern, with the ending by which it knows Zstandard."""
    absolute = path.absolute()
    # A name of bytes that are no text is nothing that a library could open.
    is_plain = not glob.has_magic(str(absolute)) and str(absolute).isprintable()
    if is_plain and (not packing or path.suffix.lower() == packing):
        return absolute
    target = session.place(packing or path.suffix)
    try:
        target.symlink_to(absolute)
    except OSError:
        shutil.copyfile(absolute, target)
    return target
