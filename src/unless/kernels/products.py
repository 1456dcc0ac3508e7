"""Sums of products by one thread.

BLAS shares long ones out among its threads: their last digits then depend on how many there are, and on
shared cores a fit took fifteen times as long.
"""

import numpy as np

from unless.kernels.compiling import borrowed, compiled, reordered

# Columns taken together: as long as that many of all rows of a matrix of thousands are in the second cache.
_TILE = 64


@reordered
def dot(left, right):
    """Return the sum of the products of two vectors."""
    left, right = borrowed(left), borrowed(right)
    total = 0.0
    for i in range(left.shape[0]):
        total += left[i] * right[i]
    return total


@reordered
def add_product(matrix, vector, total):
    """Add the product of a matrix with a vector to a total."""
    matrix, vector, total = borrowed(matrix), borrowed(vector), borrowed(total)
    for i in range(matrix.shape[0]):
        row = 0.0
        for j in range(matrix.shape[1]):
            row += matrix[i, j] * vector[j]
        total[i] += row


@compiled
def add_spread(gradients, counts, inverse, spread):
    """Add, for each column of the inverse, the squares of its products with the gradients of counted rows."""
    gradients, counts, inverse, spread = (
        borrowed(gradients),
        borrowed(counts),
        borrowed(inverse),
        borrowed(spread),
    )
    n_rows, n_features = gradients.shape
    # Most of a row's gradient is zero. Three places more, so that all are taken by fours.
    places, shares = np.zeros(n_features + 3, dtype=np.int64), np.zeros(n_features + 3)
    moved = np.empty(_TILE)
    for first in range(0, n_features, _TILE):
        width = min(_TILE, n_features - first)
        for row in range(n_rows):
            n_places = 0
            for feature in range(n_features):
                if gradients[row, feature] != 0.0:
                    places[n_places], shares[n_places] = feature, gradients[row, feature]
                    n_places += 1
            for place in range(n_places, n_places + 3):
                places[place], shares[place] = 0, 0.0
            for k in range(width):
                moved[k] = 0.0
            for place in range(0, n_places, 4):
                a, b, c, d = shares[place], shares[place + 1], shares[place + 2], shares[place + 3]
                one, two = borrowed(inverse[places[place]]), borrowed(inverse[places[place + 1]])
                three, four = borrowed(inverse[places[place + 2]]), borrowed(inverse[places[place + 3]])
                for k in range(width):
                    moved[k] += (a * one[first + k] + b * two[first + k]) + (
                        c * three[first + k] + d * four[first + k]
                    )
            for k in range(width):
                spread[first + k] += counts[row] * moved[k] * moved[k]
