"""Two sets of statements side by side: what is gained, what is lost, what is said differently."""

from dataclasses import dataclass
from typing import Any

from unless.knowledge.statements import Statement, Statements


@dataclass(frozen=True)
class Change:
    """What two sets of statements say of one pair; None where one of them does not speak of it."""

    pair: tuple[str, str]
    first: Statement | None
    second: Statement | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "pair": list(self.pair),
            "first": self.first and self.first.to_dict(tables=False),
            "second": self.second and self.second.to_dict(tables=False),
        }


@dataclass(frozen=True)
class Changes:
    """Pairs whose dependence is found only in the second, only in the first, or in both but elsewhere."""

    gained: tuple[Change, ...]
    lost: tuple[Change, ...]
    changed: tuple[Change, ...]
    # Of the pairs that both speak of.
    n_same: int
    # Why one of them says nothing, or what it leaves out.
    notes: tuple[str, str] = ("", "")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "gained": [one.to_dict() for one in self.gained],
            "lost": [one.to_dict() for one in self.lost],
            "changed": [one.to_dict() for one in self.changed],
            "n_same": self.n_same,
            "notes": list(self.notes),
        }

    def lines(self) -> list[str]:
        """Return what is gained, lost and changed, line by line, both sides of each."""
        lines = []
        titles = ("Only in the second", "Only in the first", "In other contexts")
        for title, changes in zip(titles, (self.gained, self.lost, self.changed), strict=True):
            lines += [f"{title}:"] if changes else []
            for one in changes:
                was, now = (side.sentence if side else "nothing is said" for side in (one.first, one.second))
                lines += [f"  {' - '.join(one.pair)}", f"    first:  {was}.", f"    second: {now}."]
        sides = zip(("first", "second"), self.notes, strict=True)
        lines += [f"Of the {side}: {note}" for side, note in sides if note]
        return [*lines, f"The same is said of {self.n_same:,} pair{'' if self.n_same == 1 else 's'}."]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def compare_statements(first: Statements, second: Statements) -> Changes:
    """Compare what was found: dependences are gained, lost, or changed in where they hold.

    >>> import unless
    >>> data = unless.datasets.load_ucb_admissions()
    >>> statements = unless.CSGS().fit(data).statements_
    >>> compare_statements(statements, statements).n_same
    3
    """
    sides = [{one.pair: one for one in statements} for statements in (first, second)]
    # In the order of the second, where what matters now comes first; then what it no longer speaks of.
    pairs = dict.fromkeys([*(one.pair for one in second), *(one.pair for one in first)])
    gained, lost, changed, n_same = [], [], [], 0
    for pair in pairs:
        change = Change(pair, sides[0].get(pair), sides[1].get(pair))
        was, now = (side is not None and side.is_dependent for side in (change.first, change.second))
        if now and not was:
            gained.append(change)
        elif was and not now:
            lost.append(change)
        elif was and now and _where(change.first) != _where(change.second):
            changed.append(change)
        else:
            n_same += change.first is not None and change.second is not None
    return Changes(tuple(gained), tuple(lost), tuple(changed), n_same, (first.note, second.note))


def _where(one: Statement | None) -> Any:
    """Say where a dependence was found: None for everywhere."""
    if one is None or one.gate is None or all(side.answer == "dependent" for side in one.evidence):
        return None
    # The evidence decides: the same gate may turn out to be the wrong way round.
    sides = zip(one.evidence, (one.gate.linked, one.gate.unlinked), strict=True)
    return [regions for evidence, regions in sides if evidence.answer == "dependent"]
