"""A second look at pairs beside numbers: what two columns share once numbers are fixed inside groups, too.

Regressions hold groups of a number fixed. What follows the number closely still varies with it inside a
group, and so do two columns that both follow it: they look linked. Here the residuals of both ends are taken,
freed of what follows each number inside its groups (a line and a bend), and multiplied. Without a link the
mean product is 0 (the generalised covariance measure; Shah and Peters 2020), unless the errors of both
regressions agree.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from unless.independence.statistics import Statistic, p_values_of
from unless.referee.regressions import Bools, Floats, Ints, Table, Term, known_part

# Numbers are corrected one after the other, so many times.
SWEEPS = 3
# Groups of a number, and the rows of each, inside which a line and a bend are taken off.
MOST_GROUPS, ROWS_A_GROUP = 48, 60
# Of a number with so many places, rows in the outermost are left out.
LEAST_PLACES = 40
# Rows whose products are held at a time.
ROWS = 500
# A variance that is less than this share of the largest is what rounding left.
LEAST_SIZE = 1e-7
# A group with fewer different places has no bend, with fewer than two no line.
LEAST_BENT = 4


def look_again(
    table: Table, pair: tuple[int, int], bases: Mapping[int, Iterable[Term]], parts: Sequence[Bools | None]
) -> float | None:
    """Return the p of a link in the strongest of some parts of the rows (None: all), times their number.

    `bases` are the terms that are held fixed at each end. None where no number is held.
    """
    from unless.kernels.logistic import expect

    held = {end: {c for term in terms for c in term} for end, terms in bases.items()}
    numbers = sorted(table.finest.keys() & table.columns_of(set().union(*held.values())))
    if not numbers:
        return None
    needed = table.incomplete([*pair, *set().union(*held.values())])
    weights = table.weights(needed)
    residuals = []
    for end in pair:
        fitted = table.fit(end, bases[end], needed=needed)
        if not fitted.n_free:
            return None
        which, begins, active, *_ = table.design(fitted.terms)
        chances = np.empty((len(begins) - 1, fitted.n_free))
        expect(begins, active, fitted.weights, chances)
        seen = table.codes[end][:, None] == fitted.shown[None, 1:]
        residuals.append((fitted.shown, _freed(table, seen - chances[which], numbers, weights)))
    # Outermost places have no end: a number may vary by as much there as in all others.
    inner = np.logical_and.reduce([_is_inner(table.finest[column], weights) for column in numbers])
    p_values = []
    for part in parts:
        counts = np.where(inner if part is None else inner & part, weights, 0.0)
        p_values.append(_p_of(table, pair, residuals, counts))
    return min(1.0, min(p_values) * len(p_values))


def _is_inner(finest: Ints, weights: Floats) -> Bools:
    """Tell which rows are in neither the first nor the last place of a number, where there are many."""
    places = np.unique(finest[weights > 0])
    inner: Bools = np.ones(len(finest), dtype=np.bool_)
    if len(places) >= LEAST_PLACES:
        inner = (finest > places[0]) & (finest < places[-1])
    return inner


def _freed(table: Table, residuals: Floats, numbers: Sequence[int], weights: Floats) -> Floats:
    """Take from residuals what follows each number inside its groups."""
    designs = [_within(table, column, weights) for column in numbers]
    for _ in range(SWEEPS if len(designs) > 1 else 1):
        for group, basis in designs:
            for k in range(residuals.shape[1]):
                for one in basis:
                    residuals[:, k] = _without(residuals[:, k], one, group, weights)
    return residuals


def _within(table: Table, column: int, weights: Floats) -> tuple[Ints, list[Floats]]:
    """Return the group of each row, and a constant, a line and a bend that are orthogonal in each group."""
    finest = table.finest[column]
    totals = np.bincount(finest, weights=weights)
    n_groups = int(min(MOST_GROUPS, max(1, totals.sum() // ROWS_A_GROUP)))
    # A place belongs to the group in which the middle of its rows lies.
    middle = (np.cumsum(totals) - totals / 2) / max(float(totals.sum()), 1.0)
    group: Ints = np.minimum((middle * n_groups).astype(np.int64), n_groups - 1)[finest]
    first, last = np.full(n_groups, np.iinfo(np.int64).max), np.zeros(n_groups, dtype=np.int64)
    np.minimum.at(first, group, finest)
    np.maximum.at(last, group, finest)
    place = 2 * (finest - first[group]) / np.maximum(last - first, 1)[group] - 1
    n_places = (last - first + 1)[group]
    constant = np.ones(len(group))
    line = _without(np.where(n_places > 1, place, 0.0), constant, group, weights)
    bend = np.where(n_places >= LEAST_BENT, place**2, 0.0)
    for one in (constant, line):
        bend = _without(bend, one, group, weights)
    return group, [constant, line, bend]


def _without(values: Floats, other: Floats, group: Ints, weights: Floats) -> Floats:
    """Take from values, in each group, what is a multiple of others."""
    along = np.bincount(group, weights=weights * other * values)
    size = np.bincount(group, weights=weights * other**2)
    known = size > LEAST_SIZE * np.bincount(group, weights=weights)
    freed: Floats = values - np.where(known, along / np.where(known, size, 1.0), 0.0)[group] * other
    return freed


def _p_of(table: Table, pair: tuple[int, int], residuals: list[tuple[Ints, Floats]], counts: Floats) -> float:
    """Test that products of residuals have mean 0: by all levels and, where there is an order, by trend."""
    (shown, first), (other_shown, second) = residuals
    size = first.shape[1] * second.shape[1]
    total, spread = np.zeros(size), np.zeros((size, size))
    lower = np.tril_indices(size)
    rows = np.flatnonzero(counts)
    for begin in range(0, len(rows), ROWS):
        some = rows[begin : begin + ROWS]
        products = (first[some][:, :, None] * second[some][:, None, :]).reshape(len(some), size)
        weighted = products * counts[some][:, None]
        total += weighted.sum(axis=0)
        spread[lower] += (weighted[:, lower[0]] * products[:, lower[1]]).sum(axis=0)
    largest = float(np.diag(spread).max())
    tests = [known_part(total, spread, LEAST_SIZE * max(largest, 1e-12))]
    scores, other_scores = (table.level_scores[end] for end in pair)
    if table.has_trend(*pair) and scores is not None and other_scores is not None:
        rises = scores[shown[1:]] - scores[shown[0]]
        other_rises = other_scores[other_shown[1:]] - other_scores[other_shown[0]]
        slope = np.outer(rises, other_rises).ravel()
        whole = spread + np.tril(spread, -1).T
        variance = float((np.outer(slope, slope) * whole).sum())
        if variance > 0:
            tests.append(Statistic(float((slope * total).sum()) ** 2 / variance, 1))
    tests = [table.corrected(one, *pair) for one in tests]
    return min(1.0, len(tests) * min(p_values_of(tests)))
