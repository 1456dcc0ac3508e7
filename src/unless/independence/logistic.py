"""Logistic regression of one variable on others, from counted patterns, and what its weights are worth."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.independence.statistics import NOTHING, Statistic
from unless.typing import Floats, Integers

# Weights stay finite where levels are separated, and columns that repeat others stay solvable.
RIDGE = 1e-2
# The penalty on the intercept is nearly zero.
RIDGE_OF_INTERCEPT = 1e-6
# Newton's method ends where a round promises no more than this.
_ENOUGH = 1e-6
_RULES = (RIDGE_OF_INTERCEPT, RIDGE), _ENOUGH
# A score whose variance is no more than this share of its own is explained by the regression already.
EXPLAINED = 1e-7


class Columns(NamedTuple):
    """Counted patterns: counts (pattern x level of the target), and which columns are on in each.

    Those of a pattern are `active[begins[pattern]:begins[pattern + 1]]`; column 0 always is on. `owners` and
    `levels` name the variable and the level of each column, in ascending order.
    """

    begins: Integers
    active: Integers
    counts: Floats
    owners: Integers
    levels: Integers


class Fit(NamedTuple):
    """Weights (column x level) with the columns and the levels of the target they are for, reference first.

    `covariance` is the inverse of the information, ridge included, over the levels of the target but the
    reference and in each of them the columns.
    """

    weights: Floats
    owners: Integers
    levels: Integers
    shown: Integers
    log_likelihood: float
    covariance: Floats

    @property
    def n_weights(self) -> int:
        """The number of weights."""
        return self.weights.size


class Effect(NamedTuple):
    """The estimate of one pair by a regression: a weight for each pair of levels but the references."""

    cells: tuple[tuple[int, int], ...]
    weights: Floats
    covariance: Floats


NO_EFFECT = Effect((), np.zeros(0), np.zeros((0, 0)))


_NONE: Integers = np.zeros(0, dtype=np.int64)
_NO_FIT = Fit(np.zeros((0, 0)), _NONE, _NONE, _NONE, 0.0, np.zeros((0, 0)))


def fit(columns: Columns, reference: int, start: Fit | None = None) -> Fit:
    """Fit by Newton's method, with a reference level if it is shown; a start that is near saves rounds."""
    from unless.kernels.regression import regress

    before = (_NO_FIT if start is None else start)[:4]
    shown, weights, log_likelihood, matrix, is_covariance = regress(*columns, reference, before, *_RULES)
    covariance = matrix if is_covariance else inverse(matrix)
    return Fit(weights, columns.owners, columns.levels, shown, log_likelihood, covariance)


def likelihood_without(columns: Columns, full: Fit, variable: int) -> float:
    """Fit again without the columns of a variable; return the log-likelihood."""
    from unless.kernels.regression import without

    begins, active, counts, owners, _ = columns
    return float(without(begins, active, counts, full.shown, owners, variable, full.weights, *_RULES))


def probabilities_of(columns: Columns, fitted: Fit) -> Floats:
    """Return what a regression expects: pattern x level of the target but the reference."""
    from unless.kernels.regression import expected_probabilities

    probabilities = np.empty((len(columns.counts), len(fitted.shown) - 1))
    expected_probabilities(columns.begins, columns.active, fitted.weights, probabilities)
    return probabilities


class Terms(NamedTuple):
    """Terms that a regression may need, by indicators of which a row has at most one of a term.

    A row of `parts` has the variables of a term, up to three, -1 where there are fewer. `numbers`, from the
    place of a term in `places`, has the number of its indicator for each combination of its levels; where
    there is none, how many the term has. They end where those of the next term begin (`ends`, from 0).
    """

    parts: Integers
    sizes: Integers
    places: Integers
    numbers: Integers
    ends: Integers

    @classmethod
    def of(
        cls, terms: Sequence[tuple[int, ...]], sizes: Integers, shown: Sequence[Sequence[int] | Integers]
    ) -> "Terms":
        """List terms of variables of these sizes, with the combinations of levels that have an indicator."""
        parts = listed(terms)
        n_combinations = np.where(parts < 0, 1, sizes[parts]).prod(axis=1)
        widths = np.array([len(one) for one in shown], dtype=np.int64)
        places, ends = begins_of(n_combinations), begins_of(widths)
        numbers = np.repeat(widths, n_combinations)
        for place, one in zip(places.tolist(), shown, strict=False):
            numbers[np.add(one, place, dtype=np.int64)] = np.arange(len(one))
        return cls(parts, sizes, places, numbers, ends)

    def counts_in(self, codes: npt.NDArray[np.int32], weights: Floats, target: int) -> Floats:
        """Add up the weights of rows by indicator and level of a target."""
        from unless.kernels.regression import count_indicators

        counts = np.zeros((int(self.ends[-1]), int(self.sizes[target])))
        count_indicators(codes, weights, target, *self, counts)
        return counts


def listed(terms: Sequence[tuple[int, ...]]) -> Integers:
    """Return terms as kernels read them: a row each, -1 where there are fewer than three variables."""
    rows = [(*term, -1, -1)[:3] for term in terms]
    return np.array(rows, dtype=np.int64).reshape(len(rows), 3)


def begins_of(sizes: Integers) -> Integers:
    """Return where each of some begins if they follow each other, and where the last ends."""
    return np.append(0, np.cumsum(sizes))


class Expected(NamedTuple):
    """What a regression expects of each pattern, and which pattern each row has.

    `begins` and `active` are those of `Columns`; `probabilities` are those of the levels of the target but
    the reference, by pattern.
    """

    which: Integers
    begins: Integers
    active: Integers
    probabilities: Floats


class ScoreTest(NamedTuple):
    """A score test of one term, with the slopes of its indicators and their variance (lower triangle)."""

    statistic: Statistic
    slope: Floats
    variance: Floats


def score_tests(
    codes: npt.NDArray[np.int32],
    rows: Integers,
    weights: Floats,
    expected: Expected,
    covariance: Floats,
    terms: Terms,
    counts: Floats,
    levels: Integers,
) -> list[ScoreTest]:
    """Test, for each of some terms, that a regression in some rows of a table does not need it.

    `counts` are by indicator and level of the target, `levels` those that are shown, the reference first.
    """
    from unless.kernels.regression import score_terms

    which, begins, active, probabilities = expected
    sizes = (len(levels) - 1) * np.diff(terms.ends)
    # Nothing is written above the diagonals.
    slopes, variances = np.empty(int(sizes.sum())), np.zeros(int((sizes**2).sum()))
    results = np.empty((len(sizes), 2))
    score_terms(
        begins, active, probabilities, np.ascontiguousarray(covariance), codes, rows, weights, which, *terms,
        counts, levels, EXPLAINED, slopes, variances, results,
    )  # fmt: skip
    tests, at, begin = [], 0, 0
    for (value, df), size in zip(results.tolist(), sizes.tolist(), strict=True):
        slope = slopes[begin : begin + size]
        variance = variances[at : at + size**2].reshape(size, size)
        statistic = Statistic(value, int(df)) if df >= 0 else known_part(slope, variance, value)
        tests.append(ScoreTest(statistic, slope, variance))
        at, begin = at + size**2, begin + size
    return tests


def known_part(slope: Floats, variance: Floats, least: float) -> Statistic:
    """Divide slopes by their variance (its lower triangle) as far as it is more than the least."""
    from unless.kernels.algebra import spectrum

    turned, sizes = np.array(slope), np.empty(len(slope))
    spectrum(np.array(variance), turned, sizes)
    kept = sizes > least
    return Statistic(float((turned[kept] ** 2 / sizes[kept]).sum()), int(kept.sum()))


def average(one: Effect, other: Effect) -> Effect:
    """Average the estimates of a pair from its two ends.

    Both are estimates of the same weights from the same rows, and nearly the same: the covariance of their
    mean is taken as the mean of theirs, which it never exceeds.
    """
    shared = [cell for cell in one.cells if cell in other.cells]
    if not shared:
        return NO_EFFECT
    here = [one.cells.index(cell) for cell in shared]
    there = [other.cells.index(cell) for cell in shared]
    covariance = (one.covariance[np.ix_(here, here)] + other.covariance[np.ix_(there, there)]) / 2
    return Effect(tuple(shared), (one.weights[here] + other.weights[there]) / 2, covariance)


def turned(effect: Effect) -> Effect:
    """Say the same of a pair from its other end."""
    return effect._replace(cells=tuple((a, b) for b, a in effect.cells))


def size_of(effect: Effect) -> Statistic:
    """Test that all weights of an effect are zero."""
    if not effect.cells:
        return NOTHING
    return _squared(effect.weights, effect.covariance)


def common(effects: Sequence[Effect]) -> Statistic:
    """Test that weights shared by several strata are zero."""
    effects = [effect for effect in effects if effect.cells]
    if not effects:
        return NOTHING
    if len(effects) == 1:
        return size_of(effects[0])
    if all(effect.cells == effects[0].cells for effect in effects):
        precisions = [inverse(effect.covariance) for effect in effects]
        pulls = [_pull(known, effect) for known, effect in zip(precisions, effects, strict=True)]
        return _squared(np.sum(pulls, axis=0), np.sum(precisions, axis=0))
    cells = sorted({cell for effect in effects for cell in effect.cells})
    position_of = {cell: position for position, cell in enumerate(cells)}
    precision, pull = np.zeros((len(cells), len(cells))), np.zeros(len(cells))
    for effect in effects:
        where = [position_of[cell] for cell in effect.cells]
        known = inverse(effect.covariance)
        precision[np.ix_(where, where)] += known
        pull[where] += _pull(known, effect)
    return _squared(pull, precision)


def difference(effects: Sequence[Effect]) -> Statistic:
    """Test that several strata share their weights."""
    alone, together = total(map(size_of, effects)), common(effects)
    return Statistic(max(0.0, alone.value - together.value), alone.df - together.df)


def total(statistics: Iterable[Statistic]) -> Statistic:
    """Add up statistics of strata, and their degrees of freedom."""
    listed = list(statistics)
    return Statistic(sum(one.value for one in listed), sum(one.df for one in listed))


def _squared(estimate: Floats, covariance: Floats) -> Statistic:
    """Square an estimate, in units of its covariance."""
    value = (estimate * _solution(covariance, estimate[:, None])[:, 0]).sum()
    return Statistic(float(value), len(estimate))


def _pull(precision: Floats, effect: Effect) -> Floats:
    return np.asarray((precision * effect.weights).sum(axis=1))


def inverse(matrix: Floats) -> Floats:
    """Invert a symmetric matrix."""
    return _solution(matrix, np.eye(len(matrix)))


def _solution(matrix: Floats, rights: Floats) -> Floats:
    from unless.kernels.algebra import solve

    solution = np.array(rights, order="C")
    if not solve(np.array(matrix, order="C"), solution):
        raise np.linalg.LinAlgError("Singular matrix")
    return solution
