"""The options that say how a table is read, and the reading."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unless.cli.options import (
    Written,
    assignment,
    bins,
    delimiter,
    gathered,
    levels,
    names,
    ordered,
    rare,
    stacked,
)

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
    "weight_column": click.option(
        "--weight-column", metavar="NAME", help="The column with the survey weight of each row."
    ),
    "cluster_column": click.option(
        "--cluster-column", metavar="NAME", help="Rows with the same value here are not independent."
    ),
    "strata_column": click.option(
        "--strata-column", metavar="NAME", help="The column with the strata that rows were drawn from."
    ),
    "exclude": click.option(
        "--exclude", type=Written("A,B,...", names), multiple=True, help="Leave these columns out."
    ),
    "roles": click.option(
        "--as",
        "roles",
        type=Written("NAME=ROLE", assignment),
        multiple=True,
        help="What a column is: category, ordered, number, date (or its parts: year+month), choices, count, "
        "weight, cluster, strata, identifier, text, excluded.",
    ),
    "join": click.option(
        "--join",
        type=Written("NAME=A,B,...", levels),
        multiple=True,
        help="Columns of yes and no, of which one at most is yes in a row, become one column NAME.",
    ),
    "ordered": click.option(
        "--ordered",
        type=Written("NAME=A,B,...", ordered),
        multiple=True,
        help="The levels of a column have this order; NAME alone keeps the order they have.",
    ),
    "missing": click.option(
        "--missing",
        type=click.Choice(["error", "drop", "level"]),
        help="Refuse missing values, drop their rows, or make them a level (as the plan says).",
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
    "sheet": click.option(
        "--sheet",
        metavar="SHEET",
        help="The sheet of a spreadsheet: its name, or its number from 1 (the first with a table).",
    ),
    "plan": click.option(
        "--plan", metavar="FILE", type=click.Path(), help="Read as this plan says, saved by `unless check`."
    ),
    "strict": click.option(
        "--strict",
        is_flag=True,
        default=None,
        help="Decide nothing: refuse a table with too many levels or missing values.",
    ),
    "max_memory": click.option(
        "--max-memory",
        metavar="SIZE",
        help="Memory to use, such as '2 GB' (60 % of what the process may take, at most 4 GB).",
    ),
}
# Where a table is, if not in a file of its own.
_PLACES = {
    "sql": click.option(
        "--sql", metavar="QUERY", help="Read what this query gives, of the database in FILE or --database."
    ),
    "database": click.option(
        "--database",
        metavar="FILE",
        type=click.Path(),
        help="A SQLite or DuckDB file, read only; without --sql, the only table that it has.",
    ),
}
_GATHERED = {
    "levels": "--levels", "bins": "--bins", "rare": "--rare", "roles": "--as", "ordered": "--ordered",
    "join": "--join",
}  # fmt: skip
reading_options = stacked(*_PLACES.values(), *_OPTIONS.values())
READING = tuple(_OPTIONS)
preparing_options = stacked(
    *_PLACES.values(), *(one for name, one in _OPTIONS.items() if name not in ("plan", "strict"))
)
# What says how columns are made of a table; a model brings its columns and their levels along.
_PLANNING = ("columns", "levels", "exclude", "roles", "ordered", "join", "plan")
MATCHING = (*_PLACES, *(name for name in READING if name not in ("columns", "levels")))
matching_options = stacked(*({**_PLACES, **_OPTIONS}[name] for name in MATCHING))


def with_database(
    files: tuple[str, ...], options: dict[str, Any], *, required: bool = False
) -> tuple[str, ...]:
    """Return the files to read: those named, or that of --database."""
    from unless.data.sources.sql import database_kind
    from unless.errors import DataError

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
    # Labels that are about to be merged are no levels yet.
    merged = set(domain.names if isinstance(rare, int) else rare)
    levels = domain.select(one.name for one in domain if one.name not in merged)
    with of_the_model():
        matched = {**given, "columns": domain.names, "levels": levels}
        holes = holes and "missing" not in given
        how = matched | {"missing": "level"} if holes else matched
        data = read(source, **how, show_progress=_shown(quiet))
    return read_rows(domain, with_holes(domain, data) if holes else data)


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
    from unless.formats.libra import holds_codes, is_described

    found = found_files(files)
    # What can be read only once is not looked into.
    if not all(ending(path) == ".data" and path.is_file() and holds_codes(path) for path in found):
        return False
    coded = all(one.levels == tuple(map(str, range(len(one.levels)))) for one in domain)
    return coded or ending(model or "") == ".mn" or all(map(is_described, found))


def _read_libra(domain: "Domain", files: Sequence[str], missing: Any) -> "Dataset":
    import numpy as np

    from unless.data.dataset import Dataset
    from unless.formats.libra import read_codes
    from unless.inference.tables import read_rows

    tables = [read_rows(domain, read_codes(path, domain, missing)) for path in found_files(files)]
    rows = np.concatenate([table.rows for table in tables])
    counts = np.concatenate([table.counts for table in tables])
    return Dataset.from_codes(domain, rows, counts, [note for table in tables for note in table.notes])


def say_plan(data: "Dataset") -> None:
    """Tell what was done with each column, unless all are read as they stand, and what else was done."""
    from unless.cli.display import note
    from unless.cli.failures import in_options
    from unless.cli.wording import visible

    told = [] if data.plan is None else data.plan.sentences()
    if data.plan is not None and not data.plan.is_plain:
        note(in_options(str(data.plan)))
    for line in data.notes:
        if line not in told:
            note(in_options(visible(line)))


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
    from unless.data.sources.opening import find_files
    from unless.errors import SettingError

    found = [path for pattern in patterns for path in find_files(pattern)]
    known: dict[str, Path] = {}
    for path in found:
        if known.setdefault(os.path.realpath(path), path) is not path:
            raise SettingError(f"{str(path)!r} is given twice; its rows would count twice.")
    return found


def settings_of(options: dict[str, Any]) -> dict[str, Any]:
    """Keep what was asked for; the rest is left to the defaults of `read`."""
    given = {name: options[name] for name in READING if options.get(name) not in (None, (), False)}
    if options.get("header") is False:
        given["header"] = False
    for name in {"columns", "exclude"} & given.keys():
        given[name] = [one for listed in given[name] for one in listed]
    for name, option in _GATHERED.items():
        if name in given:
            given[name] = gathered(option, given[name])
    if "ordered" in given:
        # Names without levels keep the order they have, which `levels` cannot say.
        given["levels"] = {**given.get("levels", {}), **{k: v for k, v in given["ordered"].items() if v}}
        given["ordered"] = list(given["ordered"])
    if None in given.get("rare", ()):
        if len(given["rare"]) > 1:
            raise click.UsageError("--rare is given for all columns and for one")
        given["rare"] = given["rare"][None]
    return given
