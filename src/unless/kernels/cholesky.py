"""Cholesky's factorisation by one thread.

LAPACK's would wake all threads of the linear algebra library for every small system, which on shared cores
took ten times as long; and this one gives the same bits whatever their number.
"""

import numpy as np

from unless.kernels.compiling import borrowed, compiled, helper, inlined

# Columns taken together: as long as a row's sums with all of them are in the first cache.
PANEL = 64


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
