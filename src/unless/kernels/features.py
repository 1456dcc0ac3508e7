"""Features in rows: sums of the weights of those that hold, and what each row adds to a gradient.

The gradient is that of the negative pseudo-log-likelihood.
"""

import numpy as np

from unless.kernels.compiling import compiled, exp, inlined, without_refcount

# No condition is violated, or conditions on several variables are.
_NONE, _SEVERAL = -1, -2


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


@inlined
def _violated(row, feature, codes, start, variable, level, equal):
    """Return the one variable whose conditions a row violates, `_NONE` or `_SEVERAL`."""
    found = _NONE
    for i in range(start[feature], start[feature + 1]):
        if (codes[row, variable[i]] == level[i]) != equal[i]:
            if found >= 0 and found != variable[i]:
                return _SEVERAL
            found = np.int64(variable[i])
    return found


@compiled
def row_gradients(codes, offsets, start, variable, level, equal, weights, gradients):
    """Write the gradient of each row of codes (rows, variables) into `gradients` (rows, features).

    `offsets` says where the levels of each variable begin when all are put in one line.
    """
    codes, gradients = without_refcount((codes, gradients))
    scores = np.empty(offsets[-1])
    for row in range(codes.shape[0]):
        for i in range(offsets[-1]):
            scores[i] = 0.0
        for feature in range(weights.shape[0]):
            wrong = _violated(row, feature, codes, start, variable, level, equal)
            if wrong == _SEVERAL:
                continue
            for i in range(start[feature], start[feature + 1]):
                if wrong == _NONE or wrong == variable[i]:
                    scores[offsets[variable[i]] + level[i]] += (
                        weights[feature] if equal[i] else -weights[feature]
                    )
        for v in range(codes.shape[1]):
            top, total = -np.inf, 0.0
            for i in range(offsets[v], offsets[v + 1]):
                top = max(top, scores[i])
            for i in range(offsets[v], offsets[v + 1]):
                scores[i] = exp(scores[i] - top)
                total += scores[i]
            for i in range(offsets[v], offsets[v + 1]):
                scores[i] /= total
            scores[offsets[v] + codes[row, v]] -= 1.0
        for feature in range(weights.shape[0]):
            gradients[row, feature] = 0.0
            wrong = _violated(row, feature, codes, start, variable, level, equal)
            if wrong == _SEVERAL:
                continue
            for i in range(start[feature], start[feature + 1]):
                if wrong == _NONE or wrong == variable[i]:
                    rest = scores[offsets[variable[i]] + level[i]]
                    gradients[row, feature] += rest if equal[i] else -rest
