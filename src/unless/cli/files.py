"""The files that commands name: tables and models that are read, and where results may be written."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unless.cli.options import settings_of
from unless.cli.output import either
from unless.errors import DataError, SettingError
from unless.formats import FORMATS, WITHOUT_NAMES

if TYPE_CHECKING:
    from unless.data.dataset import Dataset
    from unless.data.domain import Domain
    from unless.formats.record import Record
    from unless.formats.text import PathLike

# What says how columns are made of a table; a model brings its columns and their levels along.
_PLANNING = ("columns", "levels", "exclude", "roles", "ordered", "join", "plan")


# --- tables -----------------------------------------------------------------------------------------------


def with_database(
    files: tuple[str, ...], options: dict[str, Any], *, required: bool = False
) -> tuple[str, ...]:
    """Return the files to read: those named, or that of --database."""
    from unless.data.sources.sql import database_kind

    database = options.get("database")
    if database is not None:
        if files:
            raise click.UsageError("a table is given by FILE and by --database; give one of them")
        for path in found_files([database]):
            if path.is_file() and not database_kind(path):
                raise DataError(f"{path.name!r} is neither a SQLite nor a DuckDB database; give it as FILE.")
        return (database,)
    if options.get("sql") is not None and not files:
        raise click.UsageError("--sql needs a database; name its file with --database")
    if required and not files:
        context = click.get_current_context()
        argument = next(one for one in context.command.params if one.name == "files")
        raise click.MissingParameter(ctx=context, param=argument)
    return files


def source_of(files: Sequence[str], options: dict[str, Any]) -> Any:
    """Return what is read: files, or what the query of --sql gives of one."""
    from unless.data.sources.sql import with_connection

    found = found_files(files)
    if options.get("sql") is None:
        return found
    if len(found) != 1:
        raise click.UsageError(f"--sql asks one database, and {len(found):,} files are named")
    return with_connection(options["sql"], found[0])


def read_files(
    files: Sequence[str],
    options: dict[str, Any],
    *,
    quiet: bool = False,
    beside: "Domain | None" = None,
) -> "Dataset":
    """Read one table from a file, or from several of the same columns; cut as another is, `beside` it."""
    from unless.data.read import read, read_beside

    given = {**settings_of(options), "show_progress": _shown(quiet)}
    if beside is None:
        return read(source_of(files, options), **given)
    return read_beside(source_of(files, options), beside, **given)


def _shown(quiet: bool) -> bool | None:
    return False if quiet else None


def read_like(
    domain: "Domain",
    files: Sequence[str],
    options: dict[str, Any],
    model: str | None = None,
    *,
    quiet: bool = False,
    holes: bool = False,
) -> "Dataset":
    """Read a table whose columns and levels are those of a model; other columns are left out.

    What is said of columns, or a plan, is followed first; numbers are cut where those of the model are.
    `holes` keeps rows with missing values, unless --missing says what is done with them.
    """
    from unless.data.read import read, read_beside
    from unless.inference.tables import of_the_model, read_rows, with_holes

    given = settings_of(options)
    source = source_of(files, options)
    if given.keys() & set(_PLANNING):
        with of_the_model():
            planned = read_beside(source, domain, **given, show_progress=_shown(quiet))
        return read_rows(domain, planned)
    # Nothing is decided where all columns and levels are known.
    given.pop("strict", None)
    is_plain = options.get("sql") is None and given.keys() <= {"missing", "header", "max_memory"}
    if is_plain and _is_libra(domain, files, model):
        return _read_libra(domain, files, given.get("missing", "error"))
    if len(domain) == 1 and not given:
        return read_rows(domain, source, _shown(quiet))
    rare = given.get("rare", {})
    # Labels that will be merged are not levels yet.
    merged = set(domain.names if isinstance(rare, int) else rare)
    levels = domain.select(one.name for one in domain if one.name not in merged)
    with of_the_model():
        matched = {**given, "columns": domain.names, "levels": levels}
        holes = holes and "missing" not in given
        how = matched | {"missing": "level"} if holes else matched
        data = read(source, **how, show_progress=_shown(quiet))
    return read_rows(domain, with_holes(domain, data) if holes else data)


def table_of(
    record: "Record", files: Sequence[str], options: dict[str, Any], model: str | None = None
) -> "Dataset | None":
    """Return the table of a record: the files named, or the rows that it keeps, if it does."""
    return read_like(record.domain, files, options, model) if files else record.table


def _is_libra(domain: "Domain", files: Sequence[str], model: str | None) -> bool:
    """Return whether all files are Libra's tables of codes, by the model or by a schema beside them."""
    from unless.formats.libra import holds_codes, is_described
    from unless.formats.text import ending_of

    found = found_files(files)
    # What can be read only once is not looked into.
    if not all(ending_of(path) == ".data" and path.is_file() and holds_codes(path) for path in found):
        return False
    coded = all(one.levels == tuple(map(str, range(len(one.levels)))) for one in domain)
    return coded or ending_of(model or "") == ".mn" or all(map(is_described, found))


def _read_libra(domain: "Domain", files: Sequence[str], missing: Any) -> "Dataset":
    import numpy as np

    from unless.data.dataset import Dataset
    from unless.formats.libra import read_codes
    from unless.inference.tables import read_rows

    tables = [read_rows(domain, read_codes(path, domain, missing)) for path in found_files(files)]
    rows = np.concatenate([table.rows for table in tables])
    counts = np.concatenate([table.counts for table in tables])
    return Dataset.from_codes(domain, rows, counts, [note for table in tables for note in table.notes])


def found_files(patterns: Sequence[str]) -> list[Path]:
    """Return the files meant, refusing any that is missing or named twice."""
    from unless.data.sources.opening import find_files

    found = [path for pattern in patterns for path in find_files(pattern)]
    known: dict[str, Path] = {}
    for path in found:
        if known.setdefault(os.path.realpath(path), path) is not path:
            raise SettingError(f"{str(path)!r} is given twice; its rows would count twice.")
    return found


# --- models -----------------------------------------------------------------------------------------------


def open_record(path: "str | PathLike") -> "Record":
    """Read a structure or a model by its ending; what has none that is known should be an .unless file."""
    from unless.formats.catalogue import read_model
    from unless.formats.graphml import read_graphml
    from unless.formats.record import Record, load_record
    from unless.formats.text import ending_of, take

    path = take(path)
    ending = ending_of(path)
    if ending == ".graphml":
        return Record(read_graphml(path))
    if ending in FORMATS and ending != ".unless":
        return Record(read_model(path))
    return load_record(path)


# --- results ----------------------------------------------------------------------------------------------


def check_output(output: str, inputs: Sequence[Path] = (), what: str = "table") -> None:
    """Refuse, before the work begins, a file that the result cannot be written to."""
    from unless.runtime.files import sweep_folders, try_writing

    target = Path(output)
    if target.is_dir():
        raise SettingError(f"{output!r} is a folder; name a file in it.")
    if not target.parent.is_dir():
        raise SettingError(f"{output!r} cannot be written: there is no folder {str(target.parent)!r}.")
    if target.exists() and not target.is_file():
        # Replacing /dev/null with a file would harm the machine.
        raise SettingError(f"{output!r} is not an ordinary file; name another place.")
    if target.exists() and any(source.exists() and target.samefile(source) for source in inputs):
        raise SettingError(f"{output!r} is the {what} itself; write to another file.")
    # What processes left behind that were killed goes now, even if this command is stopped as well.
    sweep_folders()
    try_writing(output)


def check_model_output(output: str, tables: Sequence[Path], model: str, endings: Iterable[str]) -> None:
    """Refuse, before the work begins, a file that no format has a place for, or that would hide an input."""
    from unless.formats.json_model import names_path

    ending, known = Path(output).suffix.lower(), list(endings)
    if ending not in known:
        raise SettingError(f"{output!r} has no ending that tells a format; end it in {either(known)}.")
    beside = [str(names_path(output))] if ending in WITHOUT_NAMES else []
    for path in (output, *beside):
        check_output(path, tables)
        check_output(path, [source for source in [Path(model)] if source.exists()], "input")
