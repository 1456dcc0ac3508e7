"""Statements in words and as JSON."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from unless.cli.display import say
from unless.cli.wording import count, visible
from unless.data.domain import Domain
from unless.structures.pairs import Edge

if TYPE_CHECKING:
    from unless.knowledge.statements import Statements

# What the figures behind a sentence are.
LEGEND = (
    "V is Cramer's V, without what chance alone gives: 0 for no link, 1 where one column tells the other. "
    "What a link\nis given is held fixed, and cannot account for it: percentages are averages over the same "
    "mix of it, and differ from\nthose of the plain table. Confidence is the probability that the sentence "
    "is true."
)
# What is said of the pairs that no finding is about, by their state in a context.
OTHERS = {"absent": "not linked", "not settled": "not settled", "fixed": "fixed"}


def edge_text(edge: Edge) -> str:
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
    told = [f"{others.count(state):,} {words}" for state, words in OTHERS.items() if state in others]
    if told:
        say(f"Other pairs: {', '.join(told)}.")
    if statements.note:
        say(visible(statements.note))


def summary(statements: "Statements") -> str:
    """Count what is said, by kinds: "3 pairs: linked 2, gated 1."."""
    kinds = [f"{kind} {number:,}" for kind, number in statements.counts().items() if number]
    return f"{count(len({one.pair for one in statements}), 'pair')}: {', '.join(kinds)}."


def document(
    statements: "Statements",
    domain: Domain,
    n_rows: int | None,
    context: Mapping[str, str],
    about: tuple[str | None, Mapping[str, Any], Mapping[str, Any]],
) -> dict[str, Any]:
    """Make the JSON that `unless show --help` describes; `about` is learner, settings and results."""
    learner, settings, results = about
    told = statements.to_dict()
    for one, read in zip(told["statements"], statements.given(context), strict=True):
        one["state"] = read.state if context else None
    return {
        "format": "unless-statements",
        "version": 2,
        "learner": learner,
        "settings": dict(settings),
        "results": results_told(results),
        "variables": variables(domain),
        "context": dict(context),
        "n_rows": n_rows,
        "made_by": told["settings"],
        "note": told["note"],
        "counts": statements.counts(),
        "statements": told["statements"],
        **({} if statements.target is None else {"target": statements.target}),
    }


def results_told(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return what learning cost and chose; what a learner proposed is told by the statements alone."""
    return {name: value for name, value in results.items() if name != "claims"}


def variables(domain: Domain) -> list[dict[str, Any]]:
    """List the variables and their levels, in their order."""
    return [{"name": variable.name, "levels": list(variable.levels)} for variable in domain]
