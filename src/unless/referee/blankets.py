"""The neighbours of every column: grown by score tests, shrunk by likelihood ratios."""

from collections.abc import Collection

from unless.independence.statistics import NOTHING, Statistic
from unless.referee.regressions import Table, Term, chances_with_trends

# Larger blankets cost more than they tell.
MOST_NEIGHBOURS = 24
# Of more columns, only those that go together most with the target by themselves are looked at again.
MOST_NEAR = 150


def find_blanket(table: Table, target: int, allowed: Collection[int], alpha: float) -> tuple[int, ...]:
    """Return the columns that a target depends on given all others of them.

    A column enters where p < alpha given those that are in, the strongest first; then the weakest leave
    while p >= alpha. The blanket is there to shut other columns out, so that alpha is not corrected: one
    column too many costs a few degrees of freedom, one too few makes false links.
    """
    inside: list[int] = []
    near = list(allowed)
    while len(inside) < MOST_NEIGHBOURS:
        fitted = table.fit(target, [(c,) for c in inside])
        rest = [c for c in near if c not in inside]
        tests = table.scores_and_trends(target, fitted, rest)
        ranked = sorted(zip(chances_with_trends(tests), [-one.value for one, _ in tests], rest, strict=True))
        if not ranked or ranked[0][0] >= alpha:
            break
        if len(near) > MOST_NEAR:
            near = [c for _, _, c in ranked[:MOST_NEAR]]
        inside.append(ranked[0][2])
    while inside:
        terms: set[Term] = {(c,) for c in inside}
        tests = [
            (table.likelihood_ratio(target, terms - {(c,)}, [(c,)]), _trend(table, target, terms, c))
            for c in inside
        ]
        worst, leaving = max(zip(chances_with_trends(tests), inside, strict=True))
        if worst < alpha:
            break
        inside.remove(leaving)
    return tuple(sorted(inside))


def _trend(table: Table, target: int, terms: set[Term], column: int) -> Statistic:
    if not table.has_trend(target, column):
        return NOTHING
    return table.scores_and_trends(target, table.fit(target, terms - {(column,)}), [column])[0][1]
