"""Sums of the weights of the features that hold in rows."""

import numpy as np

from unless.kernels.compiling import compiled


@compiled
def log_potentials(codes, start, variable, level, equal, weights):
    """Sum, for each row of codes (rows, variables), the weights of the features that hold in it."""
    sums = np.zeros(codes.shape[0])
    for row in range(codes.shape[0]):
        total = 0.0
        for feature in range(weights.shape[0]):
            holds = True
            for i in range(start[feature], start[feature + 1]):
                if (codes[row, variable[i]] == level[i]) != equal[i]:
                    holds = False
                    break
            if holds:
                total += weights[feature]
        sums[row] = total
    return sums
