"""A second look at pairs beside numbers: what two columns share once numbers are fixed inside groups, too.

Regressions hold groups of a number fixed. What follows the number closely still varies with it inside a
group, and so do two columns that both follow it: they look linked. Here the residuals of both ends are taken,
freed of what follows each number inside its groups (a line and a bend), and multiplied. Without a link the
mean product is 0 (the generalised covariance measure; Shah and Peters 2020), unless the errors of both
regressions agree.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from unless.independence.logistic import Statistic, chances_beyond
from unless.referee.regressions import EXPLAINED, Bools, Floats, Ints, Table, Term

# Numbers are corrected one after the other, so many times.
SWEEPS = 3
# Rows whose products are held at a time.
ROWS = 20_000
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
    p_values = []
    for part in parts:
        counts = weights if part is None else np.where(part, weights, 0.0)
        p_values.append(_p_of(table, pair, residuals, counts))
    return min(1.0, min(p_values) * len(p_values))


def _freed(table: Table, residuals: Floats, numbers: Sequence[int], weights: Floats) -> Floats:
    """Take from residuals what follows each number inside its groups."""
    designs = [_within(table, column, weights) for column in numbers]
    for _ in range(SWEEPS if len(designs) > 1 else 1):
        for group, basis, inverse in designs:
            for k in range(residuals.shape[1]):
                moments = np.stack(
                    [
                        np.bincount(group, weights=weights * one * residuals[:, k], minlength=len(inverse))
                        for one in basis
                    ],
                    axis=1,
                )
                slopes = np.einsum("gij,gj->gi", inverse, moments)
                for place, one in enumerate(basis):
                    residuals[:, k] -= slopes[group, place] * one
    return residuals


def _within(table: Table, column: int, weights: Floats) -> tuple[Ints, list[Floats], Floats]:
    """Return the group of each row, 1, place and its square inside the group, and their inverse moments."""
    group, finest = table.groups_of(column), table.finest[column]
    n_groups = int(group.max()) + 1
    first = np.full(n_groups, np.iinfo(np.int64).max)
    np.minimum.at(first, group, finest)
    last = np.zeros(n_groups, dtype=np.int64)
    np.maximum.at(last, group, finest)
    width = np.maximum(last - first, 1)
    place = 2 * (finest - first[group]) / width[group] - 1
    n_places = (last - first + 1)[group]
    basis: list[Floats] = [
        np.ones(len(group)),
        np.where(n_places > 1, place, 0.0),
        np.where(n_places >= LEAST_BENT, place**2, 0.0),
    ]
    moments = np.empty((n_groups, 3, 3))
    for i in range(3):
        for j in range(3):
            moments[:, i, j] = np.bincount(group, weights=weights * basis[i] * basis[j], minlength=n_groups)
    return group, basis, np.linalg.pinv(moments, rcond=1e-6, hermitian=True).astype(np.float64)


def _p_of(table: Table, pair: tuple[int, int], residuals: list[tuple[Ints, Floats]], counts: Floats) -> float:
    """Test that products of residuals have mean 0: by all levels and, where there is an order, by trend."""
    (shown, first), (other_shown, second) = residuals
    size = first.shape[1] * second.shape[1]
    total, spread = np.zeros(size), np.zeros((size, size))
    rows = np.flatnonzero(counts)
    for begin in range(0, len(rows), ROWS):
        some = rows[begin : begin + ROWS]
        products = (first[some][:, :, None] * second[some][:, None, :]).reshape(len(some), size)
        weighted = products * counts[some][:, None]
        total += weighted.sum(axis=0)
        spread += weighted.T @ products
    sizes, turns = np.linalg.eigh(spread)
    kept = sizes > max(EXPLAINED, 1e-9) * max(float(sizes[-1]), 1e-12)
    turned = turns[:, kept].T @ total
    tests = [Statistic(float((turned**2 / sizes[kept]).sum()), int(kept.sum()))]
    scores, other_scores = (table.level_scores[end] for end in pair)
    if table.has_trend(*pair) and scores is not None and other_scores is not None:
        rises = scores[shown[1:]] - scores[shown[0]]
        other_rises = other_scores[other_shown[1:]] - other_scores[other_shown[0]]
        slope = np.outer(rises, other_rises).ravel()
        variance = float(slope @ spread @ slope)
        if variance > 0:
            tests.append(Statistic(float(slope @ total) ** 2 / variance, 1))
    tests = [table.corrected(one, *pair) for one in tests]
    return min(1.0, len(tests) * min(chances_beyond(tests)))
