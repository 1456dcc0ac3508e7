"""What is done with missing values when nobody said: rows left out where they are needed, or a level."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# Learners have at least this share of the rows, complete ones; until then missing values become levels.
LEAST_KEPT = 0.5
# A column is not asked of a level of another column if so many rows or more have this level, and at least
# this share of them lack the column.
LEAST_SKIPPED, SKIPPED_SHARE = 10, 0.95
# Columns that lack no more than this share of their values are not looked at for that.
FEW_HOLES = 0.20
# Columns named in a sentence, at most.
MOST_NAMED = 100


@dataclass(frozen=True)
class Policy:
    """The columns whose missing values are a level, and the rows left out."""

    levels: tuple[str, ...] = ()
    n_dropped: int = 0
    dropped_for: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Holes:
    """How many rows lack each set of columns; the empty set is of complete rows."""

    patterns: Mapping[frozenset[str], int]

    @property
    def n_rows(self) -> int:
        """All rows."""
        return sum(self.patterns.values())

    def lacking(self, *names: str) -> int:
        """Return how many rows lack all of these columns."""
        return sum(n for lacks, n in self.patterns.items() if lacks.issuperset(names))

    def dropped(self, names: Iterable[str]) -> int:
        """Return how many rows lack any of these columns."""
        wanted = set(names)
        return sum(n for lacks, n in self.patterns.items() if lacks & wanted)


def may_be_skipped(names: Iterable[str], holes: Holes) -> list[str]:
    """Return the columns that lack so much that they may not have been asked of everyone."""
    return [name for name in names if holes.lacking(name) > FEW_HOLES * holes.n_rows]


def is_skipped(n_rows: int, n_known: int) -> bool:
    """Tell whether a column is not asked of a level: of its rows, so many have a value of the column."""
    return n_rows >= LEAST_SKIPPED and n_known <= (1 - SKIPPED_SHARE) * n_rows


def decide_holes(names: Iterable[str], holes: Holes, forced: Iterable[str] = ()) -> Policy:
    """Decide what is done with the missing values of some columns; those `forced` have a level anyway.

    No level is made while at least half of the rows are complete; until then the column with the most
    missing values gets one. Learners leave the other rows out; tests and networks use what these rows have.
    To tests a level made here is no value.
    """
    levels = list(forced)
    rest = [name for name in names if name not in levels and holes.lacking(name)]
    while holes.dropped(rest) > (1 - LEAST_KEPT) * holes.n_rows:
        most = max(rest, key=lambda name: (holes.lacking(name), name))
        levels.append(most)
        rest.remove(most)
    told = tuple((name, holes.lacking(name)) for name in rest)
    made = tuple(name for name in names if name in levels)
    return Policy(made, holes.dropped(rest), told)


def told(policy: Policy, holes: Holes, forced: Iterable[str] = ()) -> str:
    """Say in one sentence what is done with missing values; nothing where there are none.

    Those `forced` have a level that is a value like any other.
    """
    parts = []
    if policy.n_dropped:
        listed = _listed([(name, n) for name, n in policy.dropped_for])
        one = policy.n_dropped == 1
        lack, them, have = ("lacks", "it", "it has") if one else ("lack", "them", "they have")
        parts.append(
            f"{policy.n_dropped:,} of {holes.n_rows:,} rows {lack} {listed}: learners leave {them} out, "
            f"tests and networks use what {have}"
        )
    ticked = set(forced)
    for names, more in (
        ([name for name in policy.levels if name not in ticked], ", which tests do not take for a value"),
        ([name for name in policy.levels if name in ticked], ""),
    ):
        if names:
            listed = _listed([(name, holes.lacking(name)) for name in names])
            parts.append(f"missing values of {listed} are a level{more}")
    sentence = "; ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}." if parts else ""


def _listed(lacking: list[tuple[str, int]]) -> str:
    shown = ", ".join(f"{name!r} ({n:,})" for name, n in lacking[:MOST_NAMED])
    return shown + (f" and {len(lacking) - MOST_NAMED:,} more columns" if len(lacking) > MOST_NAMED else "")
