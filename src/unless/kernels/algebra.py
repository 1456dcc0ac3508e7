"""Linear algebra by one thread: sums of products, systems of equations, eigenvalues, coordinate descent.

BLAS shares long sums out among its threads: their last digits then depend on how many there are, and on
shared cores a fit took fifteen times as long. LAPACK's factorisation would wake all threads of the linear
algebra library for every small system, which on shared cores took ten times as long; these give the same bits
whatever their number.
"""

import math

import numpy as np

from unless.kernels.compiling import compiled, compiled_as, helper, inlined, upward, without_refcount

# Columns taken together: as long as that many of all rows of a matrix of thousands are in the second cache.
_TILE = 64
# Columns taken together: as long as a row's sums with all of them are in the first cache.
PANEL = 64
# Mostly two or three are enough for each eigenvalue.
_MAX_ROUNDS = 60
# An element beside the diagonal that is so much smaller than its neighbours there is zero but for rounding.
_ROUNDING = 2.0**-52


@inlined
def sum_of_products(matrix, row, vector):
    """Return the product of a row of a matrix with a vector.

    By eight sums in a fixed order, which the processor adds at once: in one sum each addition would wait for
    the one before.
    """
    # Unsigned: numba checks signed indices for counting from the end.
    n, one = np.uint64(vector.shape[0]), np.uint64(1)
    eight = np.uint64(8)
    a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    i = np.uint64(0)
    while i + eight <= n:
        a += matrix[row, i] * vector[i]
        b += matrix[row, i + one] * vector[i + one]
        c += matrix[row, i + np.uint64(2)] * vector[i + np.uint64(2)]
        d += matrix[row, i + np.uint64(3)] * vector[i + np.uint64(3)]
        e += matrix[row, i + np.uint64(4)] * vector[i + np.uint64(4)]
        f += matrix[row, i + np.uint64(5)] * vector[i + np.uint64(5)]
        g += matrix[row, i + np.uint64(6)] * vector[i + np.uint64(6)]
        h += matrix[row, i + np.uint64(7)] * vector[i + np.uint64(7)]
        i += eight
    while i < n:
        a += matrix[row, i] * vector[i]
        i += one
    return ((a + e) + (c + g)) + ((b + f) + (d + h))


@compiled
def dot(left, right):
    """Return the sum of the products of two vectors."""
    left, right = without_refcount((left, right))
    return sum_of_products(left.reshape((1, left.shape[0])), 0, right)


@compiled
def add_product(matrix, vector, total):
    """Add the product of a matrix with a vector to a total."""
    matrix, vector, total = without_refcount((matrix, vector, total))
    for row in range(matrix.shape[0]):
        total[row] += sum_of_products(matrix, row, vector)


@compiled
def add_spread(gradients, counts, inverse, spread):
    """Add, for each column of the inverse, the squares of its products with the gradients of counted rows."""
    gradients, counts, inverse, spread = without_refcount((gradients, counts, inverse, spread))
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
                one = without_refcount(inverse[places[place]])
                two = without_refcount(inverse[places[place + 1]])
                three = without_refcount(inverse[places[place + 2]])
                four = without_refcount(inverse[places[place + 3]])
                for k in range(width):
                    moved[k] += (a * one[first + k] + b * two[first + k]) + (
                        c * three[first + k] + d * four[first + k]
                    )
            for k in range(width):
                spread[first + k] += counts[row] * moved[k] * moved[k]


@compiled
def factorise(matrix):
    """Replace the lower triangle by its factor; returns False where the matrix is not positive definite."""
    matrix = without_refcount(matrix)
    n = matrix.shape[0]
    if n <= PANEL:
        return _factorise_panel(matrix, np.empty((n, n)), 0, n)
    return factorise_some(matrix, np.zeros((PANEL, n)), 0, n)


@compiled
def factorise_some(matrix, panel, begin, end):
    """Go on from one column to another, both multiples of the panel or the end; the panel is scratch."""
    matrix, panel = without_refcount((matrix, panel))
    n = matrix.shape[0]
    for first in range(begin, end, PANEL):
        last = min(first + PANEL, n)
        if not _factorise_panel(matrix, panel, first, last):
            return False
        for k in range(last - first, PANEL):
            for i in range(n):
                panel[k, i] = 0.0
        for i in range(last, n):
            for k in range(0, PANEL, 4):
                a, b, c, d = panel[k, i], panel[k + 1, i], panel[k + 2, i], panel[k + 3, i]
                for j in upward(last, i + 1):
                    matrix[i, j] -= (a * panel[k, j] + b * panel[k + 1, j]) + (
                        c * panel[k + 2, j] + d * panel[k + 3, j]
                    )
    return True


@helper
def _factorise_panel(matrix, panel, begin, end):
    """Factorise some columns, and turn each into a row of the panel; False where one cannot be.

    By fours, which are taken off the columns after them at once, one product after the other.
    """
    matrix, panel = without_refcount((matrix, panel))
    n = matrix.shape[0]
    for first in range(begin, end, 4):
        last = min(first + 4, end)
        for k in range(first, last):
            pivot = matrix[k, k]
            if not pivot > 0.0:
                return False
            root = np.sqrt(pivot)
            matrix[k, k] = root
            for i in upward(k + 1, n):
                matrix[i, k] /= root
                panel[k - begin, i] = matrix[i, k]
            for j in range(k + 1, last):
                share = matrix[j, k]
                for i in upward(j, n):
                    matrix[i, j] -= matrix[i, k] * share
        if last == end:
            # What comes after the panel is the caller's.
            break
        four = without_refcount(panel[first - begin : last - begin])
        for i in range(last, n):
            a, b, c, d = four[0, i], four[1, i], four[2, i], four[3, i]
            for j in upward(last, max(last, min(i + 1, end))):
                left = matrix[i, j] - a * four[0, j]
                left -= b * four[1, j]
                left -= c * four[2, j]
                matrix[i, j] = left - d * four[3, j]
    return True


@compiled
def substitute(factor, right):
    """Solve for a right side, in place, given the factor in the lower triangle."""
    factor, right = without_refcount((factor, right))
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
    factor, rights = without_refcount((factor, rights))
    n = factor.shape[0]
    for i in range(n):
        _take_off(factor, rights, i, 0, i)
    for k in range(n):
        i = n - 1 - k
        _take_off(factor, rights, i, i + 1, n)


@inlined
def _take_off(factor, rights, i, begin, end):
    """Take known rows of the right sides off another, by fours, and divide what is left."""
    row, width = without_refcount(rights[i]), rights.shape[1]
    fours = begin + (end - begin) // 4 * 4
    for j in range(begin, fours, 4):
        a, b, c, d = factor[i, j], factor[i, j + 1], factor[i, j + 2], factor[i, j + 3]
        one = without_refcount(rights[j])
        two = without_refcount(rights[j + 1])
        three = without_refcount(rights[j + 2])
        four = without_refcount(rights[j + 3])
        for k in range(width):
            row[k] -= (a * one[k] + b * two[k]) + (c * three[k] + d * four[k])
    for j in range(fours, end):
        share, one = factor[i, j], without_refcount(rights[j])
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
    matrix, slope, point = without_refcount((matrix, slope, point))
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


@compiled
def solve(matrix, rights):
    """Solve for right sides, columns, in place, by elimination, which destroys the matrix; False if singular.

    The largest element left in a column eliminates the others.
    """
    matrix, rights = without_refcount((matrix, rights))
    n, width = rights.shape
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[best, k]):
                best = i
        if matrix[best, k] == 0.0:
            return False
        if best != k:
            for j in range(n):
                matrix[k, j], matrix[best, j] = matrix[best, j], matrix[k, j]
            for j in range(width):
                rights[k, j], rights[best, j] = rights[best, j], rights[k, j]
        # Loops over parts of rows, from 0, become vector instructions.
        row = without_refcount(matrix[k, k + 1 :])
        right = without_refcount(rights[k])
        for i in range(k + 1, n):
            share, other, other_right = (
                matrix[i, k] / matrix[k, k],
                without_refcount(matrix[i, k + 1 :]),
                without_refcount(rights[i]),
            )
            for j in range(len(row)):
                other[j] -= share * row[j]
            for j in range(width):
                other_right[j] -= share * right[j]
    for back in range(n):
        i = n - 1 - back
        right = without_refcount(rights[i])
        for k in range(i + 1, n):
            share, other_right = matrix[i, k], without_refcount(rights[k])
            for j in range(width):
                right[j] -= share * other_right[j]
        for j in range(width):
            right[j] /= matrix[i, i]
    return True


@compiled
def spectrum(matrix, vector, sizes):
    """Fill in the eigenvalues of a symmetric matrix, and turn a vector to lie along its eigenvectors.

    Only the lower triangle is read, and destroyed. Eigenvectors are not needed: what would turn them turns
    the vector. The eigenvalues are in no order.
    """
    matrix, vector, sizes = without_refcount((matrix, vector, sizes))
    n = len(vector)
    beside = np.zeros(n)
    _tridiagonalise(matrix, vector, beside)
    for i in range(n):
        sizes[i] = matrix[i, i]
    for low in range(n):
        for _ in range(_MAX_ROUNDS):
            high = low
            while high < n - 1 and abs(beside[high]) > _ROUNDING * (abs(sizes[high]) + abs(sizes[high + 1])):
                high += 1
            if high == low:
                break
            _rotate(low, high, sizes, beside, vector)


@helper
def _tridiagonalise(matrix, vector, beside):
    """Mirror (Householder) until only the diagonal and what is beside it are left; mirror the vector too."""
    matrix, vector, beside = without_refcount((matrix, vector, beside))
    n = matrix.shape[0]
    normal, bent = np.empty(n), np.empty(n)
    for k in range(n - 1):
        size = n - k - 1
        below, squares = matrix[k + 1, k], 0.0
        for i in range(size):
            normal[i], bent[i] = matrix[k + 1 + i, k], 0.0
            if i > 0:
                squares += normal[i] * normal[i]
        beside[k] = below
        if squares == 0.0:
            continue
        beside[k] = -np.copysign(np.sqrt(below * below + squares), below)
        normal[0] -= beside[k]
        # Half the square of the normal of the mirror.
        half = -beside[k] * normal[0]
        for i in range(size):
            row, share, total = without_refcount(matrix[k + 1 + i, k + 1 : k + 1 + i]), normal[i], 0.0
            for j in range(i):
                bent[j] += share * row[j]
            for j in range(i):
                total += row[j] * normal[j]
            bent[i] += total + matrix[k + 1 + i, k + 1 + i] * share
        along, along_vector = 0.0, 0.0
        for i in range(size):
            bent[i] /= half
            along += bent[i] * normal[i]
            along_vector += vector[k + 1 + i] * normal[i]
        for i in range(size):
            bent[i] -= along / (2.0 * half) * normal[i]
            vector[k + 1 + i] -= along_vector / half * normal[i]
        for i in range(size):
            row, a, b = without_refcount(matrix[k + 1 + i, k + 1 : k + 2 + i]), normal[i], bent[i]
            for j in range(i + 1):
                row[j] -= a * bent[j] + b * normal[j]


@helper
def _rotate(low, high, sizes, beside, vector):
    """Make the first element beside the diagonal of a block much smaller (QL with an implicit shift)."""
    sizes, beside, vector = without_refcount((sizes, beside, vector))
    slant = (sizes[low + 1] - sizes[low]) / (2.0 * beside[low])
    shift = sizes[low] - beside[low] / (slant + np.copysign(np.hypot(slant, 1.0), slant))
    bulge, sine, cosine, taken = sizes[high] - shift, 1.0, 1.0, 0.0
    for back in range(high - low):
        i = high - 1 - back
        over, kept = sine * beside[i], cosine * beside[i]
        length = np.hypot(over, bulge)
        beside[i + 1] = length
        if length == 0.0:
            # The block falls in two here.
            sizes[i + 1] -= taken
            beside[high] = 0.0
            return
        sine, cosine = over / length, bulge / length
        bulge = sizes[i + 1] - taken
        mixed = (sizes[i] - bulge) * sine + 2.0 * cosine * kept
        taken = sine * mixed
        sizes[i + 1] = bulge + taken
        bulge = cosine * mixed - kept
        one, other = vector[i], vector[i + 1]
        vector[i], vector[i + 1] = cosine * one - sine * other, sine * one + cosine * other
    sizes[low] -= taken
    beside[low] = bulge
    beside[high] = 0.0


# ---------------------------------------------------------------------- exponentials and logarithms
# Of many numbers at once, the same bits on every machine: as loops that become vector instructions, or as
# arrays of numpy. Machine code takes a third of the time of the C library, which takes one number at a time.

# The logarithm of 2 in two parts, and its inverse. What is added to this number is rounded to a whole one,
# which the lowest bits of the sum then hold.
_LOG_2, _REST_OF_LOG_2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_PER_LOG_2, _TO_WHOLE = 1.4426950408889634, 6755399441055744.0
# Factors of the powers 13 to 2 of a number in the series of e to it, and of those of a ratio in that of the
# logarithm, from the highest.
_EXP = tuple(1 / math.factorial(power) for power in range(13, 1, -1))
_LOG = tuple(1 / power for power in range(21, 1, -2))
# Less than this makes no difference to a sum that has 1 in it.
_LEAST_POWER = -700.0
# Bits of 1 less those of the root of 1/2, those of that root, and those of 2^52, to which a whole number is
# added; those of a fraction, and how many they are; what is added to exponents.
_ABOVE_ROOT, _HALF_ROOT = np.uint64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD), np.uint64(0x3FE6A09E667F3BCD)
_LARGE, _FRACTION, _N_FRACTION = np.uint64(0x4330000000000000), np.uint64(0xFFFFFFFFFFFFF), np.uint64(52)
_BIAS, _LARGE_AND_BIAS = np.uint64(1023), 2.0**52 + 1023


def _exp_in_loops(numbers):
    scales = np.empty(len(numbers))
    bits = scales.view(np.uint64)
    for i in upward(0, len(numbers)):
        power = numbers[i] if numbers[i] > _LEAST_POWER else _LEAST_POWER
        shifted = power * _PER_LOG_2 + _TO_WHOLE
        whole = shifted - _TO_WHOLE
        rest = (power - whole * _LOG_2) - whole * _REST_OF_LOG_2
        total = _EXP[0] * rest + _EXP[1]
        total = ((total * rest + _EXP[2]) * rest + _EXP[3]) * rest + _EXP[4]
        total = ((total * rest + _EXP[5]) * rest + _EXP[6]) * rest + _EXP[7]
        total = ((total * rest + _EXP[8]) * rest + _EXP[9]) * rest + _EXP[10]
        total = total * rest + _EXP[11]
        numbers[i] = 1.0 + (rest + (rest * rest) * total)
        scales[i] = shifted
    for i in upward(0, len(numbers)):
        bits[i] = (bits[i] + _BIAS) << _N_FRACTION
    for i in upward(0, len(numbers)):
        numbers[i] *= scales[i]


@compiled_as(_exp_in_loops)
def exp_all(numbers):
    """Replace numbers, none of them above 0, by e to their power."""
    powers = np.maximum(numbers, _LEAST_POWER)
    shifted = powers * _PER_LOG_2 + _TO_WHOLE
    whole = shifted - _TO_WHOLE
    rest = (powers - whole * _LOG_2) - whole * _REST_OF_LOG_2
    total = np.full(len(numbers), _EXP[0])
    for factor in _EXP[1:]:
        total = total * rest + factor
    scales = (shifted.view(np.uint64) + _BIAS) << _N_FRACTION
    numbers[:] = (1.0 + (rest + (rest * rest) * total)) * scales.view(np.float64)


def _log_in_loops(numbers):
    wholes = np.empty(len(numbers))
    bits, exponents = numbers.view(np.uint64), wholes.view(np.uint64)
    for i in upward(0, len(numbers)):
        moved = bits[i] + _ABOVE_ROOT
        exponents[i] = (moved >> _N_FRACTION) | _LARGE
        bits[i] = (moved & _FRACTION) + _HALF_ROOT
    for i in upward(0, len(numbers)):
        whole = wholes[i] - _LARGE_AND_BIAS
        ratio = (numbers[i] - 1.0) / (numbers[i] + 1.0)
        square = ratio * ratio
        total = _LOG[0] * square + _LOG[1]
        total = ((total * square + _LOG[2]) * square + _LOG[3]) * square + _LOG[4]
        total = ((total * square + _LOG[5]) * square + _LOG[6]) * square + _LOG[7]
        total = (total * square + _LOG[8]) * square + _LOG[9]
        twice = 2.0 * ratio
        total = twice * (square * total) + whole * _REST_OF_LOG_2
        numbers[i] = whole * _LOG_2 + (twice + total)


@compiled_as(_log_in_loops)
def log_all(numbers):
    """Replace numbers, none of them below 1, by their logarithms."""
    bits = numbers.view(np.uint64) + _ABOVE_ROOT
    wholes = ((bits >> _N_FRACTION) | _LARGE).view(np.float64) - _LARGE_AND_BIAS
    fraction = ((bits & _FRACTION) + _HALF_ROOT).view(np.float64)
    ratio = (fraction - 1.0) / (fraction + 1.0)
    square = ratio * ratio
    total = np.full(len(numbers), _LOG[0])
    for factor in _LOG[1:]:
        total = total * square + factor
    twice = 2.0 * ratio
    numbers[:] = wholes * _LOG_2 + (twice + (twice * (square * total) + wholes * _REST_OF_LOG_2))
