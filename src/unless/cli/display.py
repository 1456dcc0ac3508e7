"""Results on stdout, notes on stderr; tables fold on a terminal and keep their lines in a pipe."""

import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import click

from unless.cli.wording import visible

# Nothing is folded or cut where nobody looks: another program reads the lines.
_PIPE_WIDTH = 1_000_000
# Line ends of the layout, and joiners, without which names of some scripts fall apart.
_SHOWN = "\n\u200c\u200d"


def say(text: str = "") -> None:
    """Print a result."""
    click.echo(text)


def note(text: str) -> None:
    """Print what is not a result: what was done, what to do next; the work is done even if it is not read."""
    with suppress(OSError):
        click.echo(text, err=True)


def say_json(document: object) -> None:
    """Print one JSON document in UTF-8, whatever the terminal speaks, keys sorted.

    Characters that a terminal obeys or does not show (controls, marks that turn the direction of text) are
    written as escapes: the document means the same, and no label can move the cursor.
    """
    text = json.dumps(document, ensure_ascii=False, indent=2, sort_keys=True)
    text = "".join(one if one.isprintable() or one in _SHOWN else _escape(one) for one in text)
    click.echo(text.encode("utf-8"))


def _escape(character: str) -> str:
    """Write a character as JSON escapes it: two of them beyond the first plane."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))


def number(value: float) -> float | None:
    """Return a number as JSON can hold it: what is not finite becomes null."""
    return float(value) if math.isfinite(value) else None


def say_table(headers: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> None:
    """Print columns side by side, those at `numbers` to the right; no cell is taken for markup."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    watched = sys.stdout.isatty()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for place, header in enumerate(headers):
        number = place in numbers
        table.add_column(Text(header), justify="right" if number else "left", no_wrap=number, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    plain = not watched or bool(os.environ.get("NO_COLOR"))
    console = Console(
        file=sys.stdout,
        width=None if watched else _PIPE_WIDTH,
        color_system=None if plain else "auto",
        highlight=False,
        markup=False,
    )
    with console.capture() as captured:
        console.print(table)
    say("\n".join(line.rstrip() for line in captured.get().splitlines()))


@contextmanager
def busy(text: str, *, quiet: bool = False) -> Iterator[None]:
    """Show on a terminal that something is going on, as long as no bar tells more."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    from unless.runtime.progress import giving_way

    console: Any = Console(stderr=True, highlight=False)
    with console.status(Text(visible(text)), spinner="line") as status, giving_way(status.stop, status.start):
        yield
