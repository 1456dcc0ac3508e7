"""What matters for one column: what is said of it, the strongest first, and in which direction it goes."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unless.data.domain import Domain
from unless.data.showing import html_table
from unless.knowledge.grounds import Contrast, furthest_apart
from unless.knowledge.sentences import level_text, name_text, percent, regions_text

if TYPE_CHECKING:
    from unless.knowledge.statements import Statement, Statements


def by_strength(statements: "tuple[Statement, ...]", target: str) -> "tuple[Statement, ...]":
    """Order what is said of a column: what tells all of it, findings by strength, then the rest."""
    ordered = sorted(enumerate(statements), key=lambda one: (_rank(one[1], target), one[0]))
    return tuple(statement for _, statement in ordered)


def strength(statement: "Statement") -> float:
    """Return confidence x bits a row of the table; of a link that holds in part of it, the bits there."""
    sides = statement.evidence if statement.kind == "differs" else statement.evidence[:1]
    bits = sum(side.n_rows * side.information for side in sides)
    return (statement.confidence or 0.0) * bits / max(1, statement.n_rows)


def _rank(statement: "Statement", target: str) -> tuple[int, float]:
    if not statement.is_finding:
        return 3, 0.0
    if statement.kind == "determined":
        # A column that tells all of the target comes first; one of which the target tells all says less.
        return (0 if statement.source != target else 2), 0.0
    return 1, -round(strength(statement), 9)


class Direction(NamedTuple):
    """Which level of the target is more common at which level of the other column, and where that holds."""

    contrast: Contrast
    where: str

    def __str__(self) -> str:
        one = self.contrast
        where = f"Where {self.where}, " if self.where else ""
        # "age is 45 or more is more common" cannot be read.
        told = f"{name_text(one.column)} = {one.level if one.column in one.cut else name_text(one.level)}"
        low = one.at_low if one.other in one.cut else name_text(one.at_low)
        return (
            f"{where}{told} is more common when {level_text(one, one.other, one.at_high)}: "
            f"{percent(one.high)} against {percent(one.low)} when {low}"
        )

    def _repr_html_(self) -> str:
        return html_table(f"{self}.", (), ())


def direction_of(statement: "Statement", target: str, domain: Domain | None) -> Direction | None:
    """Say in which direction a finding goes, in shares of one level of the target.

    Of a target of two levels it is the second; of others the level whose shares are furthest apart. The
    columns that the statement is given are mixed alike at each level of the other column. None where there is
    no finding, or where neither tables nor shares of the target are kept.
    """
    if domain is None or not statement.is_finding or not statement.evidence:
        return None
    side = statement.evidence[0]
    where = regions_text(side.where, domain) if side.where else ""
    found = side.contrast
    if side.tables.size:
        other = statement.pair[0] if statement.pair[1] == target else statement.pair[1]
        tables = side.tables if statement.pair[0] == target else side.tables.transpose(0, 2, 1)
        shown = np.flatnonzero(tables.sum(axis=(0, 2)))
        level = int(shown[-1]) if len(shown) == 2 else None
        pair = domain[target], domain[other]
        found = furthest_apart(*pair, tables, level) or furthest_apart(*pair, tables, level, False)
    return None if found is None or found.column != target else Direction(found, where)


def target_lines(statements: "Statements", target: str, at_most: int | None = None) -> list[str]:
    """Head the list, number its findings, and say each in its direction and in full."""
    findings = statements.findings
    if not findings:
        return [f"Nothing was found to matter for {name_text(target)}."]
    lines = [f"What matters for {name_text(target)}, most first:"]
    for number, one in enumerate(findings[:at_most], 1):
        direction = direction_of(one, target, statements.domain)
        lines.append(f"{number}. {f'{direction}. ' if direction else ''}{one.sentence}.")
    if at_most is not None and len(findings) > at_most:
        lines.append(f"... and {len(findings) - at_most:,} more.")
    return lines
