"""Linear algebra by one thread: sums of products, Cholesky's factor, coordinate descent.

BLAS shares long sums out among its threads: their last digits then depend on how many there are, and on
shared cores a fit took fifteen times as long. LAPACK's factorisation would wake all threads of the linear
algebra library for every small system, which on shared cores took ten times as long; these give the same bits
whatever their number.
"""

import numpy as np

from unless.kernels.compiling import borrowed, compiled, helper, inlined, reordered

# Columns taken together: as long as that many of all rows of a matrix of thousands are in the second cache.
_TILE = 64
# Columns taken together: as long as a row's sums with all of them are in the first cache.
PANEL = 64


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


@compiled
def factorise(matrix):
    """Replace the lower triangle by its factor; returns False where the matrix is not positive definite."""
    matrix = borrowed(matrix)
    n = matrix.shape[0]
    if n <= PANEL:
        return _factorise_one_panel(matrix)
    return factorise_some(matrix, np.zeros((PANEL, n)), 0, n)


@compiled
def factorise_some(matrix, panel, begin, end):
    """Go on from one column to another, both multiples of the panel or the end; the panel is scratch."""
    matrix, panel = borrowed(matrix), borrowed(panel)
    n = matrix.shape[0]
    for first in range(begin, end, PANEL):
        last = min(first + PANEL, n)
        for k in range(first, last):
            pivot = matrix[k, k]
            if not pivot > 0.0:
                return False
            root = np.sqrt(pivot)
            matrix[k, k] = root
            row = panel[k - first]
            for i in range(k + 1, n):
                matrix[i, k] /= root
                row[i] = matrix[i, k]
            for i in range(k + 1, n):
                share = row[i]
                for j in range(k + 1, min(i + 1, last)):
                    matrix[i, j] -= share * row[j]
        for k in range(last - first, PANEL):
            for i in range(n):
                panel[k, i] = 0.0
        for i in range(last, n):
            for k in range(0, PANEL, 4):
                a, b, c, d = panel[k, i], panel[k + 1, i], panel[k + 2, i], panel[k + 3, i]
                for j in range(last, i + 1):
                    matrix[i, j] -= (a * panel[k, j] + b * panel[k + 1, j]) + (
                        c * panel[k + 2, j] + d * panel[k + 3, j]
                    )
    return True


@helper
def _factorise_one_panel(matrix):
    """Do the same where there is nothing beyond the first panel, which then need not be kept."""
    matrix = borrowed(matrix)
    n = matrix.shape[0]
    row = np.empty(n)
    for k in range(n):
        pivot = matrix[k, k]
        if not pivot > 0.0:
            return False
        root = np.sqrt(pivot)
        matrix[k, k] = root
        for i in range(k + 1, n):
            matrix[i, k] /= root
            row[i] = matrix[i, k]
        for i in range(k + 1, n):
            share = row[i]
            for j in range(k + 1, i + 1):
                matrix[i, j] -= share * row[j]
    return True


@compiled
def substitute(factor, right):
    """Solve for a right side, in place, given the factor in the lower triangle."""
    factor, right = borrowed(factor), borrowed(right)
    n = factor.shape[0]
    for i in range(n):
        total = right[i]
        for j in range(i):
            total -= factor[i, j] * right[j]
        right[i] = total / factor[i, i]
    for k in range(n):
        i = n - 1 - k
        right[i] /= factor[i, i]
        share = right[i]
        for j in range(i):
            right[j] -= factor[i, j] * share


@compiled
def substitute_all(factor, rights):
    """Solve for many right sides (columns), in place, given the factor below the diagonal, turned above."""
    factor, rights = borrowed(factor), borrowed(rights)
    n = factor.shape[0]
    for i in range(n):
        _take_off(factor, rights, i, 0, i)
    for k in range(n):
        i = n - 1 - k
        _take_off(factor, rights, i, i + 1, n)


@inlined
def _take_off(factor, rights, i, begin, end):
    """Take known rows of the right sides off another, by fours, and divide what is left."""
    row, width = borrowed(rights[i]), rights.shape[1]
    fours = begin + (end - begin) // 4 * 4
    for j in range(begin, fours, 4):
        a, b, c, d = factor[i, j], factor[i, j + 1], factor[i, j + 2], factor[i, j + 3]
        one, two = borrowed(rights[j]), borrowed(rights[j + 1])
        three, four = borrowed(rights[j + 2]), borrowed(rights[j + 3])
        for k in range(width):
            row[k] -= (a * one[k] + b * two[k]) + (c * three[k] + d * four[k])
    for j in range(fours, end):
        share, one = factor[i, j], borrowed(rights[j])
        for k in range(width):
            row[k] -= share * one[k]
    for k in range(width):
        row[k] /= factor[i, i]


@compiled
def descend(matrix, slope, point, l1, max_sweeps, goal):
    """Minimise slope (z - point) + (z - point) matrix (z - point) / 2 + l1 |z| over z, in place.

    `point` becomes z and `slope` the slope there. Sweeps over what is not zero until no coordinate's slope
    moves by more than `goal`, then over everything; returns whether that moved none either.
    """
    matrix, slope, point = borrowed(matrix), borrowed(slope), borrowed(point)
    everything = True
    for _ in range(max_sweeps):
        most = 0.0
        for k in range(point.shape[0]):
            curvature = matrix[k, k]
            if curvature <= 0.0 or not (everything or point[k] != 0.0):
                continue
            wanted = point[k] * curvature - slope[k]
            if wanted > l1:
                new = (wanted - l1) / curvature
            elif wanted < -l1:
                new = (wanted + l1) / curvature
            else:
                new = 0.0
            step = new - point[k]
            if step != 0.0:
                point[k] = new
                most = max(most, abs(step) * curvature)
                for i in range(point.shape[0]):
                    slope[i] += step * matrix[k, i]
        if most <= goal:
            if everything:
                return True
            everything = True
        else:
            everything = False
    return False
