"""What is done with missing values when nobody said: rows left out where they are needed, or a level."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# Rows with a missing value are left out if they are fewer than this share.
FEW_ROWS = 0.05
# Missing values are a level of their own in a column that lacks more than this share.
MANY_HOLES = 0.20
# At least this share of the rows is kept where rows are left out.
LEAST_KEPT = 0.5
# Two columns are missing together if more than this share of the rows that lack the one with fewer holes
# lack the other, too: leaving these rows out serves both.
TOGETHER = 0.5
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


def decide_holes(names: Iterable[str], holes: Holes, forced: Iterable[str] = ()) -> Policy:
    """Decide what is done with the missing values of some columns; those `forced` have a level anyway.

    1. Few rows lack anything: they are left out.
    2. A column that lacks much gets a level, unless it is missing together with another such column.
    3. Rows that lack any of the others are left out, as long as half of the rows remain; until then the
       column with the most holes gets a level.

    A level keeps rows for learners and models. Tests take the rows that have a value, whatever is decided.
    """
    levels = list(forced)
    open_ = [name for name in names if name not in levels and holes.lacking(name)]
    if holes.dropped(open_) >= FEW_ROWS * holes.n_rows:
        many = [name for name in open_ if holes.lacking(name) > MANY_HOLES * holes.n_rows]
        alone = [name for name in many if not any(_together(name, other, holes) for other in many)]
        levels += [name for name in alone if not any(_together(name, other, holes) for other in levels)]
    while True:
        rest = [name for name in open_ if name not in levels]
        if holes.dropped(rest) <= (1 - LEAST_KEPT) * holes.n_rows:
            break
        levels.append(max(rest, key=lambda name: (holes.lacking(name), name)))
    told = tuple((name, holes.lacking(name)) for name in rest)
    made = tuple(name for name in names if name in levels)
    return Policy(made, holes.dropped(rest), told)


def _together(one: str, other: str, holes: Holes) -> bool:
    least = min(holes.lacking(one), holes.lacking(other))
    return one != other and least > 0 and holes.lacking(one, other) > TOGETHER * least


def told(policy: Policy, holes: Holes, forced: Iterable[str] = ()) -> str:
    """Say in one sentence what is done with missing values; nothing where there are none.

    Those `forced` have a level that is a value like any other.
    """
    parts = []
    if policy.n_dropped:
        listed = _listed([(name, n) for name, n in policy.dropped_for])
        subject, use = ("rows lacks", "it is") if policy.n_dropped == 1 else ("rows lack", "they are")
        parts.append(
            f"{policy.n_dropped:,} of {holes.n_rows:,} {subject} {listed}: {use} used only by tests "
            "that do not need what is missing"
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
