"""Newton's method for a logistic regression on counted patterns."""

import numpy as np

from unless.kernels.algebra import factorise, substitute
from unless.kernels.compiling import borrowed, helper, inlined

_MAX_ROUNDS = 50
_LEAST_STEP = 1e-4


@helper
def newton(begins, active, counts, ridge, enough, plain, weights, matrix, is_matrix_wanted=True):
    """Improve weights (level x column) in place; return the log-likelihood.

    Weights that start worse than `plain` ones, which are those of column 0 alone, start from these.

    The columns that are on in a pattern are `active[begins[pattern]:begins[pattern + 1]]`. The first level of
    `counts` (pattern x level) is the reference. The information is over the levels and in each of them the
    columns, with `ridge` (one for each column) on its diagonal; of it the lower triangle is filled, at the
    last weights if it is wanted.
    """
    begins, active, counts, ridge = borrowed(begins), borrowed(active), borrowed(counts), borrowed(ridge)
    weights, matrix, plain = borrowed(weights), borrowed(matrix), borrowed(plain)
    n_free, n_columns = weights.shape
    chances = np.empty((counts.shape[0], n_free))
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
            for j in range(i + 1):
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
    if is_matrix_wanted:
        _curve(begins, active, counts, ridge, chances, matrix)
    return likelihood


@helper
def information(begins, active, counts, ridge, weights, matrix):
    """Fill the lower triangle of the information at some weights (level x column)."""
    chances = np.empty((counts.shape[0], weights.shape[0]))
    _expect(begins, active, counts, weights, chances)
    _curve(begins, active, counts, ridge, chances, matrix)


@helper
def _penalty(ridge, weights):
    ridge, weights = borrowed(ridge), borrowed(weights)
    total = 0.0
    for k in range(weights.shape[0]):
        for c in range(weights.shape[1]):
            total += ridge[c] * weights[k, c] * weights[k, c]
    return total / 2


@helper
def _expect(begins, active, counts, weights, chances):
    """Fill the chances of each pattern's levels but the reference; return the log-likelihood."""
    begins, active, counts = borrowed(begins), borrowed(active), borrowed(counts)
    weights, chances = borrowed(weights), borrowed(chances)
    total = 0.0
    for pattern in range(chances.shape[0]):
        top = energies(begins, active, weights, chances, pattern)
        n_rows = counts[pattern, 0]
        for k in range(weights.shape[0]):
            total += counts[pattern, k + 1] * chances[pattern, k]
            n_rows += counts[pattern, k + 1]
        total -= n_rows * (top + np.log(normalise(chances, pattern, top)))
    return total


@inlined
def energies(begins, active, weights, chances, pattern):
    """Fill in the sum of weights of each level of a pattern but the reference; return the largest, or 0."""
    top = 0.0
    for k in range(weights.shape[0]):
        energy = 0.0
        for place in range(begins[pattern], begins[pattern + 1]):
            energy += weights[k, active[place]]
        chances[pattern, k] = energy
        top = max(top, energy)
    return top


@inlined
def normalise(chances, pattern, top):
    """Replace energies by chances; return what they are divided by."""
    # The exponential of nothing need not be computed.
    norm = np.exp(-top) if top > 0.0 else 1.0
    for k in range(chances.shape[1]):
        energy = chances[pattern, k]
        chances[pattern, k] = np.exp(energy - top) if energy < top else 1.0
        norm += chances[pattern, k]
    for k in range(chances.shape[1]):
        chances[pattern, k] /= norm
    return norm


@helper
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


@helper
def _curve(begins, active, counts, ridge, chances, matrix):
    """Fill the lower triangle of the information."""
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
        for other in range(k):
            for c in range(n_columns):
                for d in range(c):
                    # Blocks of two levels are symmetric.
                    shared = matrix[k * n_columns + c, other * n_columns + d]
                    matrix[k * n_columns + d, other * n_columns + c] = shared
    for k in range(n_free):
        for c in range(n_columns):
            matrix[k * n_columns + c, k * n_columns + c] += ridge[c]
