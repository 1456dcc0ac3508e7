"""The options that say how a table is read, and the reading."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unless.cli.options import Written, bins, delimiter, gathered, levels, names, rare, stacked

if TYPE_CHECKING:
    from unless.data.dataset import Dataset

# Named as the arguments of `unless.read`.
reading_options = stacked(
    click.option(
        "--columns", type=Written("A,B,...", names), multiple=True, help="Relate only these columns."
    ),
    click.option("--count-column", metavar="NAME", help="The column that says how often each row occurs."),
    click.option(
        "--missing",
        type=click.Choice(["error", "drop", "level"]),
        help="Refuse missing values (the default), drop their rows, or make them a level.",
    ),
    click.option(
        "--missing-value",
        "missing_values",
        metavar="TEXT",
        multiple=True,
        help="What stands for a missing value.",
    ),
    click.option(
        "--levels",
        type=Written("NAME=A,B,...", levels),
        multiple=True,
        help="The levels of a column, in order; others are refused.",
    ),
    click.option(
        "--bins",
        type=Written("NAME=N", bins),
        multiple=True,
        help="Cut numbers: age=4 into groups of equal size, age=width:4 of equal width, age=18,65 at edges.",
    ),
    click.option(
        "--rare",
        type=Written("N", rare),
        multiple=True,
        help="Merge levels seen in fewer than N rows; NAME=N for one column.",
    ),
    click.option("--max-levels", type=int, metavar="N", help="Refuse a column with more levels (256)."),
    click.option(
        "--delimiter", type=Written("CHARACTER", delimiter), help=r"What separates fields, such as ';' or \t."
    ),
    click.option("--no-header", "header", flag_value=False, default=None, help="The first line is data."),
    click.option("--encoding", metavar="NAME", help="How a text file is written (UTF-8)."),
    click.option(
        "--max-memory",
        metavar="SIZE",
        help="Memory to use, such as '2 GB' (60 % of the machine, at most 4 GB).",
    ),
)
READING = (
    "columns", "count_column", "missing", "missing_values", "levels", "bins", "rare", "max_levels",
    "delimiter", "header", "encoding", "max_memory",
)  # fmt: skip


def read_files(files: Sequence[str], options: dict[str, Any]) -> "Dataset":
    """Read one table from a file, or from several of the same columns."""
    from unless.data.read import read

    return read(found_files(files), **_settings(options))


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
