"""Score tests of a logistic regression on counted patterns."""

import numpy as np

from unless.kernels.compiling import borrowed, compiled


@compiled
def score_variables(
    begins, active, chances, covariance, seen, shown, ends, explained, slopes, variances, found
):
    """Test variables by their indicators, of which a row has at most one; fill `found` (statistic, df).

    Those of a variable end where the next begin (`ends`, from 0). A df of -1 says that the variance, left in
    `variances` one variable after another, is too nearly singular to say how much of it is known; then the
    slopes, in `slopes` in the same order, are for the caller.
    """
    begins, active, chances, covariance = (
        borrowed(begins),
        borrowed(active),
        borrowed(chances),
        borrowed(covariance),
    )
    seen, shown, ends, found = borrowed(seen), borrowed(shown), borrowed(ends), borrowed(found)
    slopes, variances = borrowed(slopes), borrowed(variances)
    n_free, n_indicators = chances.shape[1], seen.shape[1]
    n_columns = covariance.shape[0] // max(1, n_free)
    own = np.zeros((n_free, n_free, n_indicators))
    slope = np.zeros((n_free, n_indicators))
    crossed = np.zeros((n_free * n_indicators, n_free * n_columns))
    _gather(begins, active, chances, seen, shown, own, slope, crossed)
    half = _times(crossed, covariance)
    at, at_slope = 0, 0
    for variable in range(len(found)):
        begin, width = ends[variable], ends[variable + 1] - ends[variable]
        size = n_free * width
        variance = borrowed(variances[at : at + size * size])
        told = borrowed(slopes[at_slope : at_slope + size])
        at += size * size
        at_slope += size
        for i in range(n_free):
            for c in range(width):
                told[i * width + c] = slope[i, begin + c]
                for j in range(n_free):
                    for d in range(width):
                        total = own[i, j, begin + c] if c == d else 0.0
                        left, right = i * n_indicators + begin + c, j * n_indicators + begin + d
                        for k in range(half.shape[1]):
                            total -= half[left, k] * crossed[right, k]
                        variance[(i * width + c) * size + j * width + d] = total
        largest = 0.0
        for i in range(n_free):
            for c in range(width):
                largest = max(largest, own[i, i, begin + c])
        _settle(variance, told, explained * max(1.0, largest), found[variable])


@compiled
def _gather(begins, active, chances, seen, shown, own, slope, crossed):
    """Add up slopes, their variances, and what they share with the columns of the regression."""
    begins, active, chances = borrowed(begins), borrowed(active), borrowed(chances)
    seen, shown = borrowed(seen), borrowed(shown)
    own, slope, crossed = borrowed(own), borrowed(slope), borrowed(crossed)
    n_patterns, n_free = chances.shape
    n_indicators, n_columns = seen.shape[1], crossed.shape[1] // n_free
    for c in range(n_indicators):
        for i in range(n_free):
            slope[i, c] = shown[c, i]
    for p in range(n_patterns):
        for c in range(n_indicators):
            n_rows = seen[p, c]
            if n_rows == 0.0:
                continue
            for i in range(n_free):
                slope[i, c] -= n_rows * chances[p, i]
                for j in range(n_free):
                    spread = -chances[p, i] * chances[p, j]
                    if i == j:
                        spread += chances[p, i]
                    spread *= n_rows
                    own[i, j, c] += spread
                    for place in range(begins[p], begins[p + 1]):
                        crossed[i * n_indicators + c, j * n_columns + active[place]] += spread


@compiled
def score_gate(begins, active, chances, covariance, seen, shown, kept, explained, slope, variance, found):
    """Test that the kept columns have the same weights at all levels of a gate; fill `found` (statistic, df).

    `kept` gives a column its place among those kept, or -1. As for variables, a df of -1 leaves it to others.
    """
    begins, active, chances, covariance = (
        borrowed(begins),
        borrowed(active),
        borrowed(chances),
        borrowed(covariance),
    )
    seen, shown, kept, found = borrowed(seen), borrowed(shown), borrowed(kept), borrowed(found)
    slope, variance = borrowed(slope), borrowed(variance)
    size = len(slope)
    crossed = np.zeros((size, chances.shape[1] * len(kept)))
    for i in range(size):
        slope[i] = 0.0
    for i in range(size * size):
        variance[i] = 0.0
    _gather_gate(begins, active, chances, seen, shown, kept, slope, variance, crossed)
    largest = 0.0
    for i in range(size):
        largest = max(largest, variance[i * size + i])
    half = _times(crossed, covariance)
    for i in range(size):
        for j in range(size):
            total = 0.0
            for k in range(half.shape[1]):
                total += half[i, k] * crossed[j, k]
            variance[i * size + j] -= total
    _settle(variance, slope, explained * max(1.0, largest), found)


@compiled
def _gather_gate(begins, active, chances, seen, shown, kept, slope, variance, crossed):
    """Do the same for columns at each level of a gate."""
    begins, active, chances = borrowed(begins), borrowed(active), borrowed(chances)
    seen, shown, kept = borrowed(seen), borrowed(shown), borrowed(kept)
    slope, variance, crossed = borrowed(slope), borrowed(variance), borrowed(crossed)
    n_patterns, n_free = chances.shape
    n_levels, n_columns, size = seen.shape[1], len(kept), len(slope)
    width = size // (n_free * n_levels)
    for p in range(n_patterns):
        for level in range(n_levels):
            n_rows = seen[p, level]
            if n_rows == 0.0:
                continue
            for i in range(n_free):
                left = shown[p, level, i] - n_rows * chances[p, i]
                for j in range(n_free):
                    spread = -chances[p, i] * chances[p, j]
                    if i == j:
                        spread += chances[p, i]
                    spread *= n_rows
                    for a in range(begins[p], begins[p + 1]):
                        c = kept[active[a]]
                        if c < 0:
                            continue
                        here = (i * n_levels + level) * width + c
                        if j == 0:
                            slope[here] += left
                        for b in range(begins[p], begins[p + 1]):
                            crossed[here, j * n_columns + active[b]] += spread
                            d = kept[active[b]]
                            if d >= 0:
                                variance[here * size + (j * n_levels + level) * width + d] += spread


@compiled
def _times(left, right):
    left, right = borrowed(left), borrowed(right)
    product = np.zeros((left.shape[0], right.shape[1]))
    for i in range(left.shape[0]):
        for k in range(left.shape[1]):
            share = left[i, k]
            if share != 0.0:
                for j in range(right.shape[1]):
                    product[i, j] += share * right[k, j]
    return product


@compiled
def _settle(variance, slope, least, found):
    """Divide slopes by their variance (size x size, flat) where all of it is surely larger than the least.

    Slopes that no row has a part in are left out. The smallest eigenvalue is at least one over the sum of
    squares of the factor's inverse.
    """
    variance, slope, found = borrowed(variance), borrowed(slope), borrowed(found)
    size, n_kept = len(slope), 0
    kept = np.empty(size, dtype=np.int64)
    for i in range(size):
        if variance[i * size + i] != 0.0:
            kept[n_kept] = i
            n_kept += 1
    found[0], found[1] = 0.0, 0.0
    factor = np.empty((n_kept, n_kept))
    inverse = np.zeros((n_kept, n_kept))
    total, squares = 0.0, 0.0
    for i in range(n_kept):
        for j in range(i + 1):
            rest = variance[kept[i] * size + kept[j]]
            for k in range(j):
                rest -= factor[i, k] * factor[j, k]
            if j < i:
                factor[i, j] = rest / factor[j, j]
            elif rest > least:
                factor[i, i] = np.sqrt(rest)
            else:
                found[1] = -1.0
                return
        value = 0.0
        for j in range(i):
            for k in range(j + 1):
                inverse[i, k] -= factor[i, j] * inverse[j, k]
        inverse[i, i] = 1.0
        for k in range(i + 1):
            inverse[i, k] /= factor[i, i]
            squares += inverse[i, k] * inverse[i, k]
            value += inverse[i, k] * slope[kept[k]]
        total += value * value
    if squares * least > 0.5:
        found[1] = -1.0
        return
    found[0], found[1] = total, n_kept
