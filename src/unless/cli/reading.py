"""The options that say how a table is read, and the reading."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unless.cli.options import Written, bins, delimiter, gathered, levels, names, rare, stacked

if TYPE_CHECKING:
    from unless.data.dataset import Dataset
    from unless.data.domain import Domain

# Named as the arguments of `unless.read`.
_OPTIONS = {
    "columns": click.option(
        "--columns", type=Written("A,B,...", names), multiple=True, help="Relate only these columns."
    ),
    "count_column": click.option(
        "--count-column", metavar="NAME", help="The column that says how often each row occurs."
    ),
    "missing": click.option(
        "--missing",
        type=click.Choice(["error", "drop", "level"]),
        help="Refuse missing values (the default), drop their rows, or make them a level.",
    ),
    "missing_values": click.option(
        "--missing-value",
        "missing_values",
        metavar="TEXT",
        multiple=True,
        help="What stands for a missing value.",
    ),
    "levels": click.option(
        "--levels",
        type=Written("NAME=A,B,...", levels),
        multiple=True,
        help="The levels of a column, in order; others are refused.",
    ),
    "bins": click.option(
        "--bins",
        type=Written("NAME=N", bins),
        multiple=True,
        help="Cut numbers: age=4 in groups of equal size, age=width:4 of equal width, age=0,18,65 at edges.",
    ),
    "rare": click.option(
        "--rare",
        type=Written("N", rare),
        multiple=True,
        help="Merge levels seen in fewer than N rows; NAME=N for one column.",
    ),
    "max_levels": click.option(
        "--max-levels", type=int, metavar="N", help="Refuse a column with more levels (256)."
    ),
    "delimiter": click.option(
        "--delimiter", type=Written("CHARACTER", delimiter), help=r"What separates fields, such as ';' or \t."
    ),
    "header": click.option(
        "--no-header", "header", flag_value=False, default=None, help="The first line is data."
    ),
    "encoding": click.option("--encoding", metavar="NAME", help="How a text file is written (UTF-8)."),
    "max_memory": click.option(
        "--max-memory",
        metavar="SIZE",
        help="Memory to use, such as '2 GB' (60 % of what the process may take, at most 4 GB).",
    ),
}
reading_options = stacked(*_OPTIONS.values())
READING = tuple(_OPTIONS)
# A model brings its columns and their levels along.
MATCHING = tuple(name for name in READING if name not in ("columns", "levels"))
matching_options = stacked(*(_OPTIONS[name] for name in MATCHING))


def read_files(files: Sequence[str], options: dict[str, Any], *, quiet: bool = False) -> "Dataset":
    """Read one table from a file, or from several of the same columns."""
    from unless.data.read import read

    return read(found_files(files), **_settings(options), show_progress=_shown(quiet))


def _shown(quiet: bool) -> bool | None:
    return False if quiet else None


def read_like(
    domain: "Domain",
    files: Sequence[str],
    options: dict[str, Any],
    model: str | None = None,
    *,
    quiet: bool = False,
) -> "Dataset":
    """Read a table whose columns and levels are those of a model; other columns are left out."""
    from unless.data.read import read
    from unless.inference.rows import of_the_model, read_rows

    given = _settings({"columns": (), "levels": (), **options})
    if given.keys() <= {"missing", "header", "max_memory"} and _is_libra(domain, files, model):
        return _read_libra(domain, files, given.get("missing", "error"))
    if len(domain) == 1 and not given:
        return read_rows(domain, found_files(files), _shown(quiet))
    rare = given.get("rare", {})
    # Labels that are about to be merged are no levels yet.
    merged = set(domain.names if isinstance(rare, int) else rare)
    levels = {one.name: one.levels for one in domain if one.name not in merged}
    with of_the_model():
        matched = {**given, "columns": domain.names, "levels": levels}
        data = read(found_files(files), **matched, show_progress=_shown(quiet))
    return read_rows(domain, data)


def table_of(
    kept: Any, files: Sequence[str], options: dict[str, Any], model: str | None = None
) -> "Dataset | None":
    """Return the table of a record or a structure: the files named, or the rows that it keeps, if it does."""
    from unless.formats.record import Record

    if files:
        return read_like(kept.domain, files, options, model)
    return (kept if isinstance(kept, Record) else Record(kept)).table


def _is_libra(domain: "Domain", files: Sequence[str], model: str | None) -> bool:
    """Tell whether all files are Libra's tables of codes; a model of codes or a schema must vouch for it."""
    from unless.cli.models import ending
    from unless.formats.libra_data import holds_codes, is_described

    found = found_files(files)
    # What can be read only once is not looked into.
    if not all(ending(path) == ".data" and path.is_file() and holds_codes(path) for path in found):
        return False
    coded = all(one.levels == tuple(map(str, range(len(one.levels)))) for one in domain)
    return coded or ending(model or "") == ".mn" or all(map(is_described, found))


def _read_libra(domain: "Domain", files: Sequence[str], missing: Any) -> "Dataset":
    import numpy as np

    from unless.data.dataset import Dataset
    from unless.formats.libra_data import read_codes
    from unless.inference.rows import read_rows

    tables = [read_rows(domain, read_codes(path, domain, missing)) for path in found_files(files)]
    rows = np.concatenate([table.rows for table in tables])
    counts = np.concatenate([table.counts for table in tables])
    return Dataset.from_codes(domain, rows, counts, [note for table in tables for note in table.notes])


def say_notes(data: "Dataset") -> None:
    """Tell what was done to a table that is compared with a model."""
    from unless.cli.display import note
    from unless.cli.wording import visible

    for line in data.notes:
        # This is said of learning, and nothing is learned here.
        if not line.endswith("linked to nothing."):
            note(visible(line))


def found_files(patterns: Sequence[str]) -> list[Path]:
    """Return the files meant, refusing any that is missing or named twice."""
    from unless.data.files import find_files
    from unless.errors import SettingError

    found = [path for pattern in patterns for path in find_files(pattern)]
    known: dict[str, Path] = {}
    for path in found:
        if known.setdefault(os.path.realpath(path), path) is not path:
            raise SettingError(f"{str(path)!r} is given twice; its rows would count twice.")
    return found


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """Keep what was asked for; the rest is left to the defaults of `read`."""
    given = {name: options[name] for name in READING if options[name] not in (None, ())}
    if "columns" in given:
        given["columns"] = [name for listed in given["columns"] for name in listed]
    for name in {"levels", "bins", "rare"} & given.keys():
        given[name] = gathered(f"--{name}", given[name])
    if None in given.get("rare", ()):
        if len(given["rare"]) > 1:
            raise click.UsageError("--rare is given for all columns and for one")
        given["rare"] = given["rare"][None]
    return given
