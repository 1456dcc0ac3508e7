"""Paths and globs become files of a known format that the database can open."""

import bz2
import glob
import gzip
import lzma
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import IO, Any, AnyStr, Literal

from unless.data.domain import shorten
from unless.data.duck import Workshop
from unless.errors import DataError

Format = Literal["delimited", "parquet", "json", "arff", "excel"]

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
}
_FOREIGN = {
    ".feather": "polars.read_ipc",
    ".arrow": "polars.read_ipc",
    ".ipc": "polars.read_ipc",
    ".dta": "pandas.read_stata",
    ".sav": "pandas.read_spss",
    ".sas7bdat": "pandas.read_sas",
    ".xpt": "pandas.read_sas",
    ".pkl": "pandas.read_pickle",
}
_OPENERS: dict[str, Callable[..., Any]] = {".bz2": bz2.open, ".xz": lzma.open, ".gz": gzip.open}
# The database opens these itself, in the formats of which it reads text.
_NATIVE = {".gz", ".zst"}
_BLOCK = 2**20


@dataclass(frozen=True)
class TableFile:
    """A file ready to be opened: where it is, what to call it, what it holds."""

    path: Path
    title: str
    suffix: str
    format: Format
    compression: str = ""


def find_files(source: str | os.PathLike[str]) -> list[Path]:
    """Return the file at a path, or the sorted files a pattern matches."""
    if not str(source).strip():
        raise DataError("The path is empty; name a file.")
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
        return [path]
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


def prepare(path: Path, shop: Workshop) -> TableFile:
    """Find out what a file holds, and unpack it where the database cannot."""
    title = repr(path.name)
    _check_readable(path, title)
    packing = path.suffix.lower() if path.suffix.lower() in {*_OPENERS, *_NATIVE, ".zip"} else ""
    inner = PurePath(path.stem if packing else path.name)
    suffix = inner.suffix.lower()
    if packing == ".zip":
        path, suffix = _unzip(path, shop, title)
        packing = ""
    form = _format(path, suffix, title, packing)
    if packing and not (packing in _NATIVE and form in ("delimited", "json")):
        path, packing = _unpack(path, packing, suffix, shop, title), ""
        form = _format(path, suffix, title, packing)
    return TableFile(_staged(path, shop), title, suffix, form, packing)


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
    with path.open("rb") as stream:
        # An unknown ending says nothing: Parquet is known by its first bytes, all else is tried as text.
        return "parquet" if not packing and stream.read(4) == b"PAR1" else "delimited"


def _unpack(path: Path, packing: str, suffix: str, shop: Workshop, title: str) -> Path:
    if packing not in _OPENERS:
        raise DataError(f"{title} is packed in a way that cannot be opened for this format; unpack it first.")
    target = shop.place(suffix)
    try:
        with path.open("rb") as packed, _OPENERS[packing](packed, "rb") as stream, target.open("wb") as out:
            size = path.stat().st_size
            copy_all(stream, out, shop, lambda: packed.tell() / size)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise DataError(f"{title} is damaged or not a {packing} file ({error}); unpack it by hand.") from None
    _check_readable(target, title)
    return target


def copy_all(
    stream: IO[AnyStr],
    out: IO[AnyStr],
    shop: Workshop,
    done: Callable[[], float],
    stage: str = "unpacking",
) -> None:
    """Copy a stream to its end, telling how far it is."""
    shop.stage(stage)
    while block := stream.read(_BLOCK):
        out.write(block)
        shop.bar.share(done())


def _unzip(path: Path, shop: Workshop, title: str) -> tuple[Path, str]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [
                one for one in archive.infolist() if not one.is_dir() and "__MACOSX" not in one.filename
            ]
            if len(members) != 1:
                listed = shorten([one.filename for one in members]) or "nothing"
                raise DataError(f"{title} holds {listed}; unpack it and name one table.")
            suffix = PurePath(members[0].filename).suffix.lower()
            target = shop.place(suffix)
            with archive.open(members[0]) as stream, target.open("wb") as out:
                copy_all(stream, out, shop, lambda: out.tell() / max(1, members[0].file_size))
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError) as error:
        raise DataError(
            f"{title} is damaged or not a readable .zip file ({error}); unpack it first."
        ) from None
    _check_readable(target, title)
    return target, suffix


def _staged(path: Path, shop: Workshop) -> Path:
    """Give a path the database will not take for a pattern."""
    absolute = path.absolute()
    if not glob.has_magic(str(absolute)):
        return absolute
    target = shop.place(path.suffix)
    try:
        target.symlink_to(absolute)
    except OSError:
        shutil.copyfile(absolute, target)
    return target
