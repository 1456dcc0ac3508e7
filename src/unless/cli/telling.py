"""Statements in words and as JSON."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from unless.cli.display import say
from unless.cli.wording import count, visible
from unless.data.domain import Domain
from unless.structures.pairs import Edge

if TYPE_CHECKING:
    from unless.knowledge.statements import Statements

# What the numbers behind a sentence are.
LEGEND = (
    "V is Cramer's V: 0 for no dependence, 1 where one tells the other. q is the false discovery rate: a "
    "dependence\ncounts as found where it is below .05. p is that of a test that found none."
)


def edge_text(edge: Edge) -> str:
    """Name a pair."""
    return " - ".join(map(visible, edge))


def context_text(context: Mapping[str, str]) -> str:
    """Write a context: "Dept = A, Gender = Male"."""
    return ", ".join(f"{visible(name)} = {visible(label)}" for name, label in context.items())


def say_statements(statements: "Statements", indent: str = "", at_most: int | None = None) -> None:
    """Print sentences, one a line."""
    for line in statements.lines(at_most):
        say(f"{indent}{visible(line)}")


def summary(statements: "Statements") -> str:
    """Count what is said: "3 pairs: 2 linked, 1 linked in some contexts, 0 undecided, 0 not linked."."""
    gated = sum(one.claim == "gated" and one.is_dependent for one in statements)
    linked = sum(one.claim != "gated" and one.is_dependent for one in statements)
    undecided = sum(one.verdict == "undecided" and not one.is_dependent for one in statements)
    return (
        f"{count(len(statements), 'pair')}: {linked:,} linked, {gated:,} linked in some contexts, "
        f"{undecided:,} undecided, {len(statements) - linked - gated - undecided:,} not linked."
    )


def document(
    statements: "Statements",
    domain: Domain,
    n_rows: int,
    context: Mapping[str, str],
    about: tuple[str | None, Mapping[str, Any], Mapping[str, Any]],
) -> dict[str, Any]:
    """Make the JSON that `unless show --help` describes; `about` is learner, settings and results."""
    learner, settings, results = about
    told = statements.to_dict()
    return {
        "format": "unless-statements",
        "version": 1,
        "learner": learner,
        "settings": dict(settings),
        "results": dict(results),
        "variables": variables(domain),
        "context": dict(context),
        "n_rows": n_rows,
        "made_by": told["settings"],
        "note": told["note"],
        "statements": told["statements"],
    }


def variables(domain: Domain) -> list[dict[str, Any]]:
    """List the variables and their levels, in their order."""
    return [{"name": variable.name, "levels": list(variable.levels)} for variable in domain]
