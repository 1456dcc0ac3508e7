"""Newton's method for a logistic regression on counted patterns."""

import numpy as np

from unless.kernels.cholesky import factorise, substitute
from unless.kernels.compiling import borrowed, compiled

_MAX_ROUNDS = 50
_LEAST_STEP = 1e-4


@compiled
def newton(begins, active, counts, ridge, enough, plain, weights, chances, matrix):
    """Improve weights (level x column) in place; fill chances and the information; return log-likelihood.

    Weights that start worse than `plain` ones, which are those of column 0 alone, start from these.

    The columns that are on in a pattern are `active[begins[pattern]:begins[pattern + 1]]`. The first level of
    `counts` (pattern x level) is the reference. The information is over the levels and in each of them the
    columns, with `ridge` (one for each column) on its diagonal.
    """
    begins, active, counts, ridge = borrowed(begins), borrowed(active), borrowed(counts), borrowed(ridge)
    weights, chances, matrix, plain = borrowed(weights), borrowed(chances), borrowed(matrix), borrowed(plain)
    n_free, n_columns = weights.shape
    size = n_free * n_columns
    slope = np.empty(size)
    step = np.empty(size)
    before = np.empty((n_free, n_columns))
    factor = np.empty((size, size))
    likelihood = _expect(begins, active, counts, weights, chances)
    value = likelihood - _penalty(ridge, weights)
    if value < plain[n_free]:
        for k in range(n_free):
            for c in range(n_columns):
                weights[k, c] = 0.0
            weights[k, 0] = plain[k]
        likelihood = _expect(begins, active, counts, weights, chances)
        value = likelihood - _penalty(ridge, weights)
    for _ in range(_MAX_ROUNDS):
        _slopes(begins, active, counts, ridge, weights, chances, slope)
        _curve(begins, active, counts, ridge, chances, matrix)
        for i in range(size):
            step[i] = slope[i]
            for j in range(size):
                factor[i, j] = matrix[i, j]
        if not factorise(factor):
            break
        substitute(factor, step)
        gain = 0.0
        for i in range(size):
            gain += step[i] * slope[i]
        for k in range(n_free):
            for c in range(n_columns):
                before[k, c] = weights[k, c]
        share = 1.0
        while True:
            for k in range(n_free):
                for c in range(n_columns):
                    weights[k, c] = before[k, c] + share * step[k * n_columns + c]
            likelihood = _expect(begins, active, counts, weights, chances)
            reached = likelihood - _penalty(ridge, weights)
            if reached >= value - 1e-12 * abs(value) or share < _LEAST_STEP:
                break
            share /= 2
        value = reached
        if gain < enough:
            break
    _curve(begins, active, counts, ridge, chances, matrix)
    return likelihood


@compiled
def without(begins, active, place_of, fewer_begins, fewer_active):
    """Leave out columns that have no place, and call the others by theirs; return how many are on."""
    begins, active, place_of = borrowed(begins), borrowed(active), borrowed(place_of)
    fewer_begins, fewer_active = borrowed(fewer_begins), borrowed(fewer_active)
    n_active = 0
    for pattern in range(len(begins) - 1):
        fewer_begins[pattern] = n_active
        for place in range(begins[pattern], begins[pattern + 1]):
            column = place_of[active[place]]
            if column >= 0:
                fewer_active[n_active] = column
                n_active += 1
    fewer_begins[len(begins) - 1] = n_active
    return n_active


@compiled
def size_variables(weights, covariance, ends, values):
    """Divide the weights (column x level) of each variable by their covariance; -1 where it is too singular.

    The columns of a variable end where those of the next begin (`ends`).
    """
    weights, covariance, ends, values = (
        borrowed(weights),
        borrowed(covariance),
        borrowed(ends),
        borrowed(values),
    )
    for variable in range(len(values)):
        begin, width = ends[variable], ends[variable + 1] - ends[variable]
        told, factor = _block(weights, covariance, begin, width)
        solved = np.empty(len(told))
        values[variable] = -1.0
        if factorise(factor):
            _substitute_into(factor, told, solved)
            values[variable] = 0.0
            for i in range(len(told)):
                values[variable] += told[i] * solved[i]


@compiled
def part_variables(weights, covariances, ends, values):
    """Divide, as above, what weights differ by between strata (stratum x column x level)."""
    weights, covariances, ends, values = (
        borrowed(weights),
        borrowed(covariances),
        borrowed(ends),
        borrowed(values),
    )
    n_strata, _, n_free = weights.shape
    for variable in range(len(values)):
        begin, width = ends[variable], ends[variable + 1] - ends[variable]
        size = n_free * width
        precision, pull, alone = np.zeros((size, size)), np.zeros(size), 0.0
        right = np.empty(size)
        values[variable] = -1.0
        known = True
        for stratum in range(n_strata):
            told, factor = _block(weights[stratum], covariances[stratum], begin, width)
            known = known and factorise(factor)
            if not known:
                break
            for j in range(size):
                for i in range(size):
                    right[i] = 1.0 if i == j else 0.0
                substitute(factor, right)
                for i in range(size):
                    precision[i, j] += right[i]
            _substitute_into(factor, told, right)
            for i in range(size):
                pull[i] += right[i]
                alone += told[i] * right[i]
        if known and factorise(precision):
            _substitute_into(precision, pull, right)
            for i in range(size):
                alone -= pull[i] * right[i]
            values[variable] = max(0.0, alone)


@compiled
def _substitute_into(factor, told, solved):
    """Solve for a right side that is kept."""
    for i in range(len(told)):
        solved[i] = told[i]
    substitute(factor, solved)


@compiled
def _block(weights, covariance, begin, width):
    n_columns, n_free = weights.shape
    size = n_free * width
    told, block = np.empty(size), np.empty((size, size))
    for k in range(n_free):
        for c in range(width):
            told[k * width + c] = weights[begin + c, k]
            for other in range(n_free):
                for d in range(width):
                    block[k * width + c, other * width + d] = covariance[
                        k * n_columns + begin + c, other * n_columns + begin + d
                    ]
    return told, block


@compiled
def _penalty(ridge, weights):
    ridge, weights = borrowed(ridge), borrowed(weights)
    total = 0.0
    for k in range(weights.shape[0]):
        for c in range(weights.shape[1]):
            total += ridge[c] * weights[k, c] * weights[k, c]
    return total / 2


@compiled
def _expect(begins, active, counts, weights, chances):
    """Fill the chances of each pattern's levels but the reference; return the log-likelihood."""
    begins, active, counts = borrowed(begins), borrowed(active), borrowed(counts)
    weights, chances = borrowed(weights), borrowed(chances)
    n_free = weights.shape[0]
    total = 0.0
    for pattern in range(chances.shape[0]):
        top = 0.0
        n_rows = counts[pattern, 0]
        for k in range(n_free):
            energy = 0.0
            for place in range(begins[pattern], begins[pattern + 1]):
                energy += weights[k, active[place]]
            chances[pattern, k] = energy
            top = max(top, energy)
            total += counts[pattern, k + 1] * energy
            n_rows += counts[pattern, k + 1]
        norm = np.exp(-top)
        for k in range(n_free):
            chances[pattern, k] = np.exp(chances[pattern, k] - top)
            norm += chances[pattern, k]
        for k in range(n_free):
            chances[pattern, k] /= norm
        total -= n_rows * (top + np.log(norm))
    return total


@compiled
def _slopes(begins, active, counts, ridge, weights, chances, slope):
    begins, active, counts, ridge = borrowed(begins), borrowed(active), borrowed(counts), borrowed(ridge)
    weights, chances, slope = borrowed(weights), borrowed(chances), borrowed(slope)
    n_free, n_columns = weights.shape
    for k in range(n_free):
        for c in range(n_columns):
            slope[k * n_columns + c] = -ridge[c] * weights[k, c]
    for pattern in range(chances.shape[0]):
        n_rows = 0.0
        for k in range(n_free + 1):
            n_rows += counts[pattern, k]
        for k in range(n_free):
            left = counts[pattern, k + 1] - n_rows * chances[pattern, k]
            for place in range(begins[pattern], begins[pattern + 1]):
                slope[k * n_columns + active[place]] += left


@compiled
def _curve(begins, active, counts, ridge, chances, matrix):
    """Fill the information, both triangles of it."""
    begins, active, counts, ridge = borrowed(begins), borrowed(active), borrowed(counts), borrowed(ridge)
    chances, matrix = borrowed(chances), borrowed(matrix)
    n_free, n_columns = chances.shape[1], len(ridge)
    for i in range(n_free * n_columns):
        for j in range(n_free * n_columns):
            matrix[i, j] = 0.0
    for pattern in range(chances.shape[0]):
        n_rows = 0.0
        for k in range(n_free + 1):
            n_rows += counts[pattern, k]
        for k in range(n_free):
            for other in range(k + 1):
                spread = -n_rows * chances[pattern, k] * chances[pattern, other]
                if other == k:
                    spread += n_rows * chances[pattern, k]
                for place in range(begins[pattern], begins[pattern + 1]):
                    row = k * n_columns + active[place]
                    for under in range(begins[pattern], place + 1):
                        matrix[row, other * n_columns + active[under]] += spread
    for k in range(n_free):
        for other in range(k + 1):
            for c in range(n_columns):
                for d in range(c):
                    # Each block is symmetric, and so is the whole.
                    shared = matrix[k * n_columns + c, other * n_columns + d]
                    matrix[k * n_columns + d, other * n_columns + c] = shared
            for c in range(n_columns):
                for d in range(n_columns):
                    matrix[other * n_columns + d, k * n_columns + c] = matrix[
                        k * n_columns + c, other * n_columns + d
                    ]
    for k in range(n_free):
        for c in range(n_columns):
            matrix[k * n_columns + c, k * n_columns + c] += ridge[c]
