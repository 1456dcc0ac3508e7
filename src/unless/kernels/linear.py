"""Systems of equations and eigenvalues by one thread.

LAPACK's digits depend on the number of threads from about a hundred equations on, which two variables of
eleven levels have between them.
"""

import numpy as np

from unless.kernels.compiling import borrowed, compiled, helper

# Mostly two or three are enough for each eigenvalue.
_MAX_ROUNDS = 60
# An element beside the diagonal that is so much smaller than its neighbours there is zero but for rounding.
_ROUNDING = 2.0**-52


@compiled
def solve(matrix, rights):
    """Solve for right sides, columns, in place, by elimination, which destroys the matrix; False if singular.

    The largest element left in a column eliminates the others.
    """
    matrix, rights = borrowed(matrix), borrowed(rights)
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
        row, right = borrowed(matrix[k, k + 1 :]), borrowed(rights[k])
        for i in range(k + 1, n):
            share, other, told = (
                matrix[i, k] / matrix[k, k],
                borrowed(matrix[i, k + 1 :]),
                borrowed(rights[i]),
            )
            for j in range(len(row)):
                other[j] -= share * row[j]
            for j in range(width):
                told[j] -= share * right[j]
    for back in range(n):
        i = n - 1 - back
        right = borrowed(rights[i])
        for k in range(i + 1, n):
            share, told = matrix[i, k], borrowed(rights[k])
            for j in range(width):
                right[j] -= share * told[j]
        for j in range(width):
            right[j] /= matrix[i, i]
    return True


@compiled
def spectrum(matrix, vector, sizes):
    """Fill in the eigenvalues of a symmetric matrix, and turn a vector to lie along its eigenvectors.

    Only the lower triangle is read, and destroyed. Eigenvectors are not needed: what would turn them turns
    the vector. The eigenvalues are in no order.
    """
    matrix, vector, sizes = borrowed(matrix), borrowed(vector), borrowed(sizes)
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
    matrix, vector, beside = borrowed(matrix), borrowed(vector), borrowed(beside)
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
            row, share, total = borrowed(matrix[k + 1 + i, k + 1 : k + 1 + i]), normal[i], 0.0
            for j in range(i):
                bent[j] += share * row[j]
            for j in range(i):
                total += row[j] * normal[j]
            bent[i] += total + matrix[k + 1 + i, k + 1 + i] * share
        along, told = 0.0, 0.0
        for i in range(size):
            bent[i] /= half
            along += bent[i] * normal[i]
            told += vector[k + 1 + i] * normal[i]
        for i in range(size):
            bent[i] -= along / (2.0 * half) * normal[i]
            vector[k + 1 + i] -= told / half * normal[i]
        for i in range(size):
            row, a, b = borrowed(matrix[k + 1 + i, k + 1 : k + 2 + i]), normal[i], bent[i]
            for j in range(i + 1):
                row[j] -= a * bent[j] + b * normal[j]


@helper
def _rotate(low, high, sizes, beside, vector):
    """Make the first element beside the diagonal of a block much smaller (QL with an implicit shift)."""
    sizes, beside, vector = borrowed(sizes), borrowed(beside), borrowed(vector)
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
