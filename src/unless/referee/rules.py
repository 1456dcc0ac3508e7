"""Gates of columns that follow a rule: where one column never varies with another, all others held fixed.

Regressions read such columns badly, because their weights have no end. Here rows are counted: a stratum is a
set of rows alike in all other columns, and it is informative where the first column has two levels in it or
more. If the second column varies with the first only in strata inside a box, and many strata outside show
that it does not, the box is a gate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, lgamma

import numpy as np

from unless.referee.regressions import Bools, Codes, Ints, Table

Clause = tuple[int, tuple[int, ...]]
# Fewer informative strata, or fewer in which the second column varies, tell nothing.
LEAST_STRATA, LEAST_VARYING = 20, 5
# Rows in informative strata, as a share of all: where most strata show one level, the rest are no fair
# sample.
LEAST_INFORMATIVE = 0.5
# A clause earns its place where chance alone would leave its far side without a varying stratum less often.
LEAST_CHANCE = 1e-4
# A rule is broken where rows alike in the first column and all others differ in the second, and no row may
# break it. Where less than the first share of rows have a like, strata must show the second share of all
# levels of the first column, as a designed table does: else they vary by how many rows they have.
LEAST_REPEATED, LEAST_FILLED = 0.2, 0.75
# Columns with more levels are no gates.
MOST_LEVELS = 8


@dataclass(frozen=True)
class Rule:
    """Where `column` varies with the other end of a pair, everything else held fixed, and by what chance."""

    clauses: tuple[Clause, ...]
    chance: float
    n_strata: int
    n_varying: int
    n_outside: int


def find_rule(
    table: Table, first: int, column: int, held: Sequence[int], gates: Sequence[int]
) -> Rule | None:
    """Find the smallest box of levels of gates outside of which a column never varies with a first one.

    `held` are the columns that make the strata; `gates`, some of them, may be in a clause.
    """
    which, example = table.numbered(tuple(sorted(held)))
    n_strata = len(example)
    several = _shows_several(which, table.codes[first], table.n_levels[first], n_strata)
    varying = several & _shows_several(which, table.codes[column], table.n_levels[column], n_strata)
    n_several, n_varying = int(several.sum()), int(varying.sum())
    if n_several < LEAST_STRATA or n_varying < LEAST_VARYING or n_varying == n_several:
        return None
    if float(table.counts[several[which]].sum()) < LEAST_INFORMATIVE * table.n_rows:
        return None
    if not _is_rule(table, first, column, held, which, several):
        return None
    found: list[tuple[float, Clause]] = []
    inside = several.copy()
    left = [gate for gate in gates if 2 <= len(table.used_levels(gate)) <= MOST_LEVELS]
    while left:
        # The next clause is judged among the strata that the others leave.
        chances = [(_clause(table, gate, example, inside, varying), gate) for gate in left]
        (chance, levels), gate = min(chances, key=lambda one: (one[0][0], one[1]))
        if chance >= LEAST_CHANCE / len(left):
            break
        found.append((chance, (gate, levels)))
        inside &= np.isin(table.codes[gate][example], levels)
        left.remove(gate)
    if not found:
        return None
    together = float(np.prod([chance for chance, _ in found]))
    clauses = tuple(sorted(clause for _, clause in found))
    return Rule(clauses, together, n_several, n_varying, n_several - int(inside.sum()))


def _is_rule(
    table: Table, first: int, column: int, held: Sequence[int], strata: Ints, several: Bools
) -> bool:
    """Tell whether the other columns tell the second, as far as rows that are alike in them can show."""
    which, example = table.numbered(tuple(sorted((*held, first))))
    counts = table.counted(which, column, len(example))
    totals, largest = counts.sum(axis=1), counts.max(axis=1)
    repeated = totals > 1
    n_repeated = float(totals[repeated].sum())
    if n_repeated >= LEAST_REPEATED * table.n_rows:
        return bool((totals == largest)[repeated].all())
    n_levels = np.bincount(strata[example], minlength=len(several))[several]
    return float(n_levels.mean()) >= LEAST_FILLED * len(table.used_levels(first))


def _shows_several(which: Ints, codes: Codes, n_levels: int, n_strata: int) -> Bools:
    """Tell which strata show two levels of a column or more."""
    seen = np.zeros(n_strata * n_levels, dtype=np.bool_)
    seen[which * n_levels + codes] = True
    return np.asarray(seen.reshape(n_strata, n_levels).sum(axis=1) > 1)


def _clause(
    table: Table, gate: int, example: Ints, inside: Bools, varying: Bools
) -> tuple[float, tuple[int, ...]]:
    """Return the levels of a gate at which some stratum varies, and the chance that no other does.

    The chance is hypergeometric, times the number of sets of as many levels.
    """
    levels = table.codes[gate][example]
    open_levels = tuple(np.unique(levels[varying & inside]).tolist())
    n_used = len(table.used_levels(gate))
    if len(open_levels) == n_used:
        return 1.0, open_levels
    n, k = int(inside.sum()), int((varying & inside).sum())
    m = int((inside & np.isin(levels, open_levels)).sum())
    chance = exp(_log_choose(m, k) - _log_choose(n, k) + _log_choose(n_used, len(open_levels)))
    return min(1.0, chance), open_levels


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
