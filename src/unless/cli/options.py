"""The options that commands share: how names and labels are written, and how a table is to be read."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import click

from unless.cli.failures import option_named

QUOTING = (
    "A name or label that contains a comma, a colon or an equals sign goes in double quotes, and a double "
    "quote inside them is doubled; single quotes keep the shell away: --columns '\"a,b\",c'."
)


def make_command(name: str, summary: str, documentation: str | None) -> Callable[[Any], click.Command]:
    """Make a command whose help ends with the docstring of its file, without the first line."""
    end = (documentation or "").partition("\n")[2].replace("\\b", "\b").replace("{QUOTING}", QUOTING)
    return click.command(name, short_help=summary, epilog=end)


# Generic only in newer versions of click.
class Written(click.ParamType):  # type: ignore[type-arg]
    """A text read by a function that raises ValueError, with a sentence, when it cannot."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self.read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the text as it was given on the command line."""
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def take(text: str, separator: str) -> tuple[str, str | None]:
    """Take the first field off a text; the rest is None where no separator follows."""
    quoted = re.match(rf'\s*"((?:[^"]|"")*)"\s*(?={re.escape(separator)}|$)', text)
    if quoted:
        field, end = quoted[1].replace('""', '"'), quoted.end()
    else:
        end = text.find(separator) if separator in text else len(text)
        field = text[:end].strip()
    return field, text[end + 1 :] if end < len(text) else None


def names(text: str) -> list[str]:
    """Read "a,b,c"."""
    listed: list[str] = []
    rest: str | None = text
    while rest is not None:
        field, rest = take(rest, ",")
        listed.append(field)
    return listed


def pair(text: str) -> tuple[str, str]:
    """Read "A:B"."""
    first, rest = take(text, ":")
    second, more = take(rest or "", ":")
    if rest is None or more is not None or not first or not second:
        raise ValueError(f"{text!r} is not a pair of names; write A:B, names with a colon in double quotes.")
    return first, second


def assignment(text: str) -> tuple[str, str]:
    """Read "Dept=A"; the label is all that follows the first equals sign."""
    name, rest = take(text, "=")
    if rest is None or not name:
        raise ValueError(f"{text!r} gives no label to a name; write NAME=LABEL.")
    # No field of a label ends before the text does.
    return name, take(rest, "\0")[0]


def levels(text: str) -> tuple[str, list[str]]:
    """Read "Dept=A,B,C"."""
    name, rest = take(text, "=")
    if not rest or not name:
        raise ValueError(f"{text!r} gives no levels to a name; write NAME=LEVEL,LEVEL,...")
    return name, names(rest)


def ordered(text: str) -> tuple[str, list[str] | None]:
    """Read "grade=low,mid,high", or "grade" alone."""
    name, rest = take(text, "=")
    if not name or rest == "":
        raise ValueError(f"{text!r} orders no levels; write NAME, or NAME=LEVEL,LEVEL,...")
    return name, None if rest is None else names(rest)


def bins(text: str) -> tuple[str, int | tuple[str, int] | list[float]]:
    """Read "age=4", "age=width:4" or "age=0,18,65"."""
    name, rest = take(text, "=")
    method, colon, number = (rest or "").partition(":")
    try:
        if colon:
            return name, (method.strip(), int(number))
        if "," in method:
            return name, [float(edge) for edge in method.split(",") if edge.strip()]
        return name, int(method)
    except ValueError:
        pass
    raise ValueError(f"{text!r} does not say how to cut; write age=4, age=width:4 or age=0,18,65.")


def rare(text: str) -> tuple[str | None, int]:
    """Read "5", for all columns, or "Dept=5"."""
    name, rest = take(text, "=")
    try:
        return (None, int(text)) if rest is None else (name, int(rest))
    except ValueError:
        raise ValueError(f"{text!r} is not a number of rows; write 5, or Dept=5 for one column.") from None


def delimiter(text: str) -> str:
    r"""Read one character; a shell has no easy way to write a tab, so \t and tab are one."""
    return "\t" if text in (r"\t", "tab") else text


def jobs(text: str) -> int:
    """Read a number of threads; 0 is no number of threads."""
    if not re.fullmatch(r"-?\d+", text) or not int(text):
        raise ValueError(f"{text!r} is not a number of threads; give 1 or more, or -1 for all.")
    return int(text)


def stacked(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make one decorator of several options, shown in the order given."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def gathered(option: str, given: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Make one table of a repeated option; a name given twice is a contradiction."""
    table: dict[Any, Any] = {}
    for name, value in given:
        if name in table:
            raise click.UsageError(f"{option} names {name!r} twice")
        table[name] = value
    return table


def _text(option: str, metavar: str, description: str) -> Callable[[Any], Any]:
    return click.option(option, metavar=metavar, help=description)


def repeated(
    option: str, form: str, read: Callable[[str], Any], description: str, *other_names: str
) -> Callable[[Any], Any]:
    """Make an option that may be given several times, each time a text of this form."""
    return click.option(option, *other_names, type=Written(form, read), multiple=True, help=description)


def file_option(*names: str, **how: Any) -> Callable[[Any], Any]:
    """Make an option that names a file."""
    return click.option(*names, type=click.Path(), **{"metavar": "FILE", **how})


# --- options of models and of running ---------------------------------------------------------------------

given_option = repeated(
    "--given", "NAME=LABEL", assignment, "Where NAME is LABEL; repeat it to say more.", "-g"
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    show_default=True,
    help="The same seed gives the same draws.",
)
memory_option = _text(
    "--max-memory",
    "SIZE",
    "Memory for exact answers, such as '2 GB' (60 % of what the process may take, at most 4 GB).",
)
target_option = _text("--target", "NAME", "Say what matters for this column, most first.")
jobs_option = click.option(
    "--jobs", "n_jobs", type=Written("N", jobs), help="Threads to use, -1 for all (1)."
)
quiet_option = click.option(
    "--quiet", "-q", is_flag=True, help="Print nothing but errors, and the JSON if asked for."
)


def context_option(description: str) -> Callable[[Any], Any]:
    """Make the option that gives labels to some columns."""
    return repeated("--context", "NAME=LABEL", assignment, description, "-c")


# --- options of a table -----------------------------------------------------------------------------------

# Named as the arguments of `unless.read`.
READING = {
    "columns": repeated("--columns", "A,B,...", names, "Relate only these columns."),
    "count_column": _text("--count-column", "NAME", "The column that says how often each row occurs."),
    "weight_column": _text("--weight-column", "NAME", "The column with the survey weight of each row."),
    "cluster_column": _text("--cluster-column", "NAME", "Rows with the same value here are not independent."),
    "strata_column": _text(
        "--strata-column", "NAME", "The column with the strata that rows were drawn from."
    ),
    "exclude": repeated("--exclude", "A,B,...", names, "Leave these columns out."),
    "roles": repeated(
        "--as",
        "NAME=ROLE",
        assignment,
        "What a column is: category, ordered, number, date (or its parts: year+month), choices, count, "
        "weight, cluster, strata, identifier, text, excluded.",
        "roles",
    ),
    "join": repeated(
        "--join",
        "NAME=A,B,...",
        levels,
        "Columns of yes and no, of which one at most is yes in a row, become one column NAME.",
    ),
    "ordered": repeated(
        "--ordered",
        "NAME=A,B,...",
        ordered,
        "The levels of a column have this order; NAME alone keeps the order they have.",
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
    "levels": repeated(
        "--levels", "NAME=A,B,...", levels, "The levels of a column, in order; others are refused."
    ),
    "bins": repeated(
        "--bins",
        "NAME=N",
        bins,
        "Cut numbers: age=4 in groups of equal size, age=width:4 of equal width, age=0,18,65 at edges.",
    ),
    "rare": repeated("--rare", "N", rare, "Merge levels seen in fewer than N rows; NAME=N for one column."),
    "max_levels": click.option(
        "--max-levels", type=int, metavar="N", help="Refuse a column with more levels (256)."
    ),
    "delimiter": click.option(
        "--delimiter", type=Written("CHARACTER", delimiter), help=r"What separates fields, such as ';' or \t."
    ),
    "header": click.option(
        "--no-header", "header", flag_value=False, default=None, help="The first line is data."
    ),
    "encoding": _text("--encoding", "NAME", "How a text file is written (UTF-8)."),
    "sheet": _text(
        "--sheet",
        "SHEET",
        "The sheet of a spreadsheet: its name, or its number from 1 (the first with a table).",
    ),
    "plan": file_option("--plan", help="Read as this plan says, saved by `unless check`."),
    "strict": click.option(
        "--strict",
        is_flag=True,
        default=None,
        help="Decide nothing: refuse a table with too many levels or missing values.",
    ),
    "max_memory": _text(
        "--max-memory",
        "SIZE",
        "Memory to use, such as '2 GB' (60 % of what the process may take, at most 4 GB).",
    ),
}
# Where a table is, if not in a file of its own.
_DATABASE = {
    "sql": _text("--sql", "QUERY", "Read what this query gives, of the database in FILE or --database."),
    "database": file_option(
        "--database", help="A SQLite or DuckDB file, read only; without --sql, the only table that it has."
    ),
}
_ALL = {**_DATABASE, **READING}
# What a table is read with; what a plan is made with; what a table is read with whose columns a model knows.
reading_options = stacked(*_ALL.values())
preparing_options = stacked(*(one for name, one in _ALL.items() if name not in ("plan", "strict")))
MATCHING = tuple(name for name in _ALL if name not in ("columns", "levels"))
matching_options = stacked(*(_ALL[name] for name in MATCHING))


def settings_of(options: dict[str, Any]) -> dict[str, Any]:
    """Keep what was asked for; the rest is left to the defaults of `read`."""
    given = {name: options[name] for name in READING if options.get(name) not in (None, (), False)}
    if options.get("header") is False:
        given["header"] = False
    for name in {"columns", "exclude"} & given.keys():
        given[name] = [one for listed in given[name] for one in listed]
    for name in ("levels", "bins", "rare", "roles", "ordered", "join"):
        if name in given:
            given[name] = gathered(option_named(name), given[name])
    if "ordered" in given:
        # Names without levels keep the order they have, which `levels` cannot say.
        given["levels"] = {**given.get("levels", {}), **{k: v for k, v in given["ordered"].items() if v}}
        given["ordered"] = list(given["ordered"])
    if None in given.get("rare", ()):
        if len(given["rare"]) > 1:
            raise click.UsageError("--rare is given for all columns and for one")
        given["rare"] = given["rare"][None]
    return given
