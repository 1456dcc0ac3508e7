"""What a person or a program reads: results on stdout, notes on stderr, in words or as JSON.

Tables fold on a terminal and keep their lines in a pipe. `unless show --help` describes the documents.
"""

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from unless.cli.failures import in_options
from unless.data.showing import count, visible

if TYPE_CHECKING:
    from unless.data.dataset import Dataset
    from unless.data.domain import Domain
    from unless.knowledge.statements import Statements
    from unless.structures.structure import Edge, Structure

# In a pipe nothing is folded or cut: another program reads the lines.
_PIPE_WIDTH = 1_000_000
# Line ends of the layout, and joiners, without which names of some scripts fall apart.
_SHOWN = "\n\u200c\u200d"


def of(part: int, whole: int, noun: str) -> str:
    """Write a part of a whole: "933 of 4,526 rows"."""
    return f"{part:,} of {count(whole, noun)}"


def either(words: list[str]) -> str:
    """Join alternatives: "A", "A or B", "A, B or C"."""
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def probability_text(probability: float) -> str:
    """Write a probability; only what is certain is 1, and only what is impossible is 0."""
    if probability in (0, 1):
        return "1" if probability else "0"
    if probability < 0.0001:
        return "<0.0001"
    return ">0.9999" if probability > 0.9999 else f"{probability:.4f}"


def say(text: str = "") -> None:
    """Print a result."""
    click.echo(text)


def note(text: str) -> None:
    """Print what is not a result: what was done, what to do next; the work is done even if it is not read."""
    with suppress(OSError):
        click.echo(text, err=True)


def say_json(document: object) -> None:
    """Print one JSON document in UTF-8, whatever the terminal's encoding, keys sorted.

    Characters that a terminal obeys or does not show (controls, marks that turn the direction of text) are
    written as escapes: the document means the same, and no label can move the cursor.
    """
    text = json.dumps(document, ensure_ascii=False, indent=2, sort_keys=True)
    text = "".join(one if one.isprintable() or one in _SHOWN else _escape(one) for one in text)
    click.echo(text.encode("utf-8"))


def _escape(character: str) -> str:
    """Write a character as JSON escapes it: two of them beyond the first plane."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[start]:02x}{units[start + 1]:02x}" for start in range(0, len(units), 2))


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
    for position, header in enumerate(headers):
        number = position in numbers
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
    """Show on a terminal that something is going on, as long as no bar is shown."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    from unless.runtime.progress import giving_way

    console: Any = Console(stderr=True, highlight=False)
    with console.status(Text(visible(text)), spinner="line") as status, giving_way(status.stop, status.start):
        yield


# Scores in words.
MEASURES = {
    "log_likelihood": "Log-likelihood",
    "pseudo_log_likelihood": "Pseudo-log-likelihood",
    "conditional_marginal_log_likelihood": "Conditional marginal log-likelihood",
}
# What the figures behind a sentence are.
LEGEND = (
    "V is Cramer's V, without what chance alone gives: 0 for no link, 1 where one column tells the other. "
    "What a link\nis given is held fixed, and cannot account for it: percentages are averages over the same "
    "mix of it, and differ from\nthose of the plain table. Confidence is the probability that the sentence "
    "is true."
)
# What is said of the pairs that no finding is about, by their state in a context.
OTHERS = {"absent": "not linked", "not settled": "not settled", "fixed": "fixed"}


def edge_text(edge: "Edge") -> str:
    """Name a pair."""
    return " - ".join(map(visible, edge))


def context_text(context: Mapping[str, str]) -> str:
    """Write a context: "Dept = A, Gender = Male"."""
    return ", ".join(f"{visible(name)} = {visible(label)}" for name, label in context.items())


def say_statements(statements: "Statements", indent: str = "", at_most: int | None = None) -> None:
    """Print findings, one a line, what is determined as a block of its own, and counts of other pairs."""
    determined = {f"{one.sentence}." for one in statements.of_kind("determined")}
    previous = None
    for line in statements.lines(at_most):
        block = line in determined
        if previous is not None and block != previous:
            say()
        say(f"{indent}{visible(line)}")
        previous = block


def say_states(statements: "Statements", context: Mapping[str, str]) -> None:
    """Print the state of each finding in a context, one a line, and how many other pairs are in which."""
    read = statements.given(context)
    for one in read:
        if one.statement.is_finding:
            say(visible(f"{one}."))
    others = [one.state for one in read if not one.statement.is_finding]
    counts = [f"{others.count(state):,} {words}" for state, words in OTHERS.items() if state in others]
    if counts:
        say(f"Other pairs: {', '.join(counts)}.")
    if statements.note:
        say(visible(statements.note))


def summary(statements: "Statements") -> str:
    """Count what is said, by kinds: "3 pairs: linked 2, gated 1."."""
    kinds = [f"{kind} {number:,}" for kind, number in statements.counts().items() if number]
    return f"{count(len({one.pair for one in statements}), 'pair')}: {', '.join(kinds)}."


def document(
    statements: "Statements",
    domain: "Domain",
    n_rows: int | None,
    context: Mapping[str, str],
    about: tuple[str | None, Mapping[str, Any], Mapping[str, Any]],
) -> dict[str, Any]:
    """Make the JSON that `unless show --help` describes; `about` is learner, settings and results."""
    written = statements.to_dict()
    for one, read in zip(written["statements"], statements.given(context), strict=True):
        one["state"] = read.state if context else None
    return {
        "format": "unless-statements",
        "version": 2,
        **how_learned(domain, *about),
        "context": dict(context),
        "n_rows": n_rows,
        "made_by": written["settings"],
        "note": written["note"],
        "counts": statements.counts(),
        "statements": written["statements"],
        **({} if statements.target is None else {"target": statements.target}),
    }


def how_learned(
    domain: "Domain", learner: str | None, settings: Mapping[str, Any], results: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what documents begin with: the learner, what learning cost and chose, and the variables."""
    return {
        "learner": learner,
        "settings": dict(settings),
        # What a learner proposed is in the statements.
        "results": {name: value for name, value in results.items() if name != "claims"},
        "variables": [{"name": variable.name, "levels": list(variable.levels)} for variable in domain],
    }


def size_of(structure: "Structure") -> dict[str, Any]:
    """Return the kind and the size of a structure."""
    noun, size = structure.size
    return {"kind": structure.kind, "n_variables": len(structure.domain), noun: size}


def size_text(size: Mapping[str, Any]) -> str:
    """Write what `size_of` returns in words."""
    names = {
        "model": ("a model", "n_features", "weight"),
        "features": ("a set of features", "n_features", "feature"),
        "graph": ("a graph", "n_edges", "edge"),
        "links": ("a graph with gates", "n_links", "link"),
        "contexts": ("a graph for each context", "n_contexts", "context"),
    }
    kind, field, noun = names[size["kind"]]
    return f"{kind}, {count(size['n_variables'], 'variable')}, {count(size[field], noun)}"


def say_plan(data: "Dataset") -> None:
    """Print what was done with each column, unless all are read as they stand, and what else was done."""
    said = [] if data.plan is None else data.plan.sentences()
    if data.plan is not None and not data.plan.is_plain:
        note(in_options(str(data.plan)))
    for line in data.notes:
        if line not in said:
            note(in_options(visible(line)))


def say_notes(data: "Dataset") -> None:
    """Print what was done to a table that is compared with a model."""
    for line in data.notes:
        # This is said of learning, and nothing is learned here.
        if not line.endswith("linked to nothing."):
            note(visible(line))
