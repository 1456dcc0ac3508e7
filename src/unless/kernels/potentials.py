"""Sums of the weights of the features that hold in rows."""

import numpy as np

from unless.kernels.compiling import compiled, inlined


@inlined
def _holds(codes, row, first, last, variable, level, equal):
    for i in range(first, last):  # noqa: SIM110 (numba would build a generator)
        if (codes[row, variable[i]] == level[i]) != equal[i]:
            return False
    return True


@compiled
def log_potentials(codes, start, variable, level, equal, weights):
    """Sum, for each row of codes (rows, variables), the weights of the features that hold in it."""
    sums = np.zeros(codes.shape[0])
    for row in range(codes.shape[0]):
        total = 0.0
        for feature in range(weights.shape[0]):
            if _holds(codes, row, start[feature], start[feature + 1], variable, level, equal):
                total += weights[feature]
        sums[row] = total
    return sums


@compiled
def count_holding(codes, counts, start, variable, level, equal, sums):
    """Add, for each feature, the counts of the rows in which it holds."""
    for row in range(codes.shape[0]):
        for feature in range(sums.shape[0]):
            if _holds(codes, row, start[feature], start[feature + 1], variable, level, equal):
                sums[feature] += counts[row]
