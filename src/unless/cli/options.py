"""Options that hold names and labels: how they are written, and how they are read."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import click

QUOTING = (
    "A name or label that contains a comma, a colon or an equals sign goes in double quotes, and a double "
    "quote inside them is doubled; single quotes keep the shell away: --columns '\"a,b\",c'."
)


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
    found: list[str] = []
    rest: str | None = text
    while rest is not None:
        field, rest = take(rest, ",")
        found.append(field)
    return found


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


def gathered(option: str, given: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Make one table of a repeated option; a name given twice is a contradiction."""
    table: dict[Any, Any] = {}
    for name, value in given:
        if name in table:
            raise click.UsageError(f"{option} names {name!r} twice")
        table[name] = value
    return table


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
