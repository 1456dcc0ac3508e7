"""Score tests of a logistic regression on counted patterns."""

import numpy as np

from unless.kernels.compiling import borrowed, compiled, helper

# A variance of so much less than what counts as known is one that rounding left.
_ROUNDING = 1e-6


@compiled
def score_variables(
    begins, active, chances, covariance, seen, shown, ends, explained, slopes, variances, found
):
    """Test variables by their indicators, of which a row has at most one; fill `found` (statistic, df).

    `seen` is indicator x pattern, `shown` indicator x level of the target but the reference. The indicators
    of a variable end where the next begin (`ends`, from 0). A df of -1 says that the variance, left in
    `variances` one variable after another, is too nearly singular to say how much of it is known; the
    slopes, in `slopes` in the same order, are then for the caller, and in place of the statistic stands the
    least variance that counts.
    """
    begins, active, chances, covariance = (
        borrowed(begins),
        borrowed(active),
        borrowed(chances),
        borrowed(covariance),
    )
    seen, shown, ends, found = borrowed(seen), borrowed(shown), borrowed(ends), borrowed(found)
    slopes, variances = borrowed(slopes), borrowed(variances)
    n_free, n_indicators = chances.shape[1], seen.shape[0]
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
        _settle(variance.reshape((size, size)), told, explained * max(1.0, largest), found[variable])


@helper
def _gather(begins, active, chances, seen, shown, own, slope, crossed):
    """Add up slopes, their variances, and what they share with the columns of the regression."""
    begins, active, chances = borrowed(begins), borrowed(active), borrowed(chances)
    seen, shown = borrowed(seen), borrowed(shown)
    own, slope, crossed = borrowed(own), borrowed(slope), borrowed(crossed)
    n_patterns, n_free = chances.shape
    n_indicators, n_columns = seen.shape[0], crossed.shape[1] // n_free
    for c in range(n_indicators):
        for i in range(n_free):
            slope[i, c] = shown[c, i]
        for p in range(n_patterns):
            n_rows = seen[c, p]
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
def score_gate(begins, active, owners, chances, covariance, counts, places, gate, explained):
    """Test that all columns but the gate's have the same weights at all its levels: (statistic, df, rest).

    `counts` are by pattern, level of the target (the reference last) and place, of which some (`places`) are
    those of the levels of the gate but one. As for variables, a df of -1 leaves it to others: the rest is
    then the lower triangle of the variance, and beside it a column of slopes.
    """
    begins, active, chances, covariance = (
        borrowed(begins),
        borrowed(active),
        borrowed(chances),
        borrowed(covariance),
    )
    owners, counts, places = borrowed(owners), borrowed(counts), borrowed(places)
    n_free = chances.shape[1]
    n_levels, n_columns, width = len(places), len(owners), 0
    kept = np.empty(n_columns, dtype=np.int64)
    for c in range(n_columns):
        kept[c] = -1
        if owners[c] != gate:
            kept[c] = width
            width += 1
    size = n_free * n_levels * width
    slope, variance, crossed = np.zeros(size), np.zeros((size, size)), np.zeros((size, n_free * n_columns))
    _gather_gate(begins, active, chances, counts, places, kept, slope, variance, crossed)
    largest = 0.0
    for i in range(size):
        largest = max(largest, variance[i, i])
    _take_off(variance, crossed, covariance)
    found = np.empty(2)
    _settle(variance, slope, explained * max(1.0, largest), found)
    return found[0], found[1], _rest(variance, slope) if found[1] < 0 else np.empty((0, 1))


@helper
def _gather_gate(begins, active, chances, counts, places, kept, slope, variance, crossed):
    """Do as for variables, for the columns at each level of a gate; of the variance the lower triangle."""
    kept, slope, variance, crossed = borrowed(kept), borrowed(slope), borrowed(variance), borrowed(crossed)
    n_patterns, n_free = chances.shape
    n_levels, n_columns, size = len(places), len(kept), len(slope)
    width = size // max(1, n_free * n_levels)
    for p in range(n_patterns):
        for level in range(n_levels):
            n_rows = 0.0
            for i in range(n_free + 1):
                n_rows += counts[p, i, places[level]]
            if n_rows == 0.0:
                continue
            for i in range(n_free):
                left = counts[p, i, places[level]] - n_rows * chances[p, i]
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
                            if d >= 0 and (j < i or (j == i and d <= c)):
                                variance[here, (j * n_levels + level) * width + d] += spread


@helper
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


@helper
def _take_off(variance, crossed, covariance):
    """Take off what the columns of the regression explain, from the lower triangle."""
    variance, crossed = borrowed(variance), borrowed(crossed)
    size, n_columns = crossed.shape
    half, total = _times(crossed, covariance), np.empty(size)
    turned = np.empty((n_columns, size))
    for i in range(size):
        for k in range(n_columns):
            turned[k, i] = crossed[i, k]
    for i in range(size):
        for j in range(i + 1):
            total[j] = 0.0
        for k in range(n_columns):
            share = half[i, k]
            for j in range(i + 1):
                total[j] += share * turned[k, j]
        for j in range(i + 1):
            variance[i, j] -= total[j]


@helper
def _rest(variance, slope):
    """Put slopes beside the lower triangle of their variance, without those that no row has a part in."""
    n_kept, kept = 0, np.empty(len(slope), dtype=np.int64)
    for i in range(len(slope)):
        if variance[i, i] != 0.0:
            kept[n_kept] = i
            n_kept += 1
    rest = np.zeros((n_kept, n_kept + 1))
    for i in range(n_kept):
        for j in range(i + 1):
            rest[i, j] = variance[kept[i], kept[j]]
        rest[i, n_kept] = slope[kept[i]]
    return rest


@helper
def _settle(variance, slope, least, found):
    """Divide slopes by their variance where all of it is surely larger than the least.

    Slopes that no row has a part in, and those that repeat others but for rounding, are left out. The
    smallest eigenvalue of the others is at least one over the sum of squares of the factor's inverse. Only
    the lower triangle of the variance is read.
    """
    variance, slope, found = borrowed(variance), borrowed(slope), borrowed(found)
    size, n_kept = len(slope), 0
    kept = np.empty(size, dtype=np.int64)
    for i in range(size):
        if variance[i, i] != 0.0:
            kept[n_kept] = i
            n_kept += 1
    factor = np.empty((n_kept, n_kept))
    for i in range(n_kept):
        for j in range(i + 1):
            factor[i, j] = variance[kept[i], kept[j]]
    found[0], found[1] = least, -1.0
    n_known = _factorise_known(factor, kept, least)
    if n_known < 0:
        return
    inverse = np.zeros((n_kept, n_kept))
    total, squares = 0.0, 0.0
    for i in range(n_kept):
        if kept[i] < 0:
            continue
        for j in range(i):
            if kept[j] >= 0:
                share = factor[i, j]
                for k in range(j + 1):
                    inverse[i, k] -= share * inverse[j, k]
        inverse[i, i] = 1.0
        value = 0.0
        for k in range(i + 1):
            inverse[i, k] /= factor[i, i]
            squares += inverse[i, k] * inverse[i, k]
            if kept[k] >= 0:
                value += inverse[i, k] * slope[kept[k]]
        total += value * value
    if squares * least <= 0.5:
        found[0], found[1] = total, n_known


@helper
def _factorise_known(factor, kept, least):
    """Factorise without what repeats others but for rounding, which is no longer kept (-1).

    Returns how many are left, or -1 where something is neither that nor surely more than the least.
    """
    factor, kept = borrowed(factor), borrowed(kept)
    size, n_known = factor.shape[0], 0
    column = np.empty(size)
    for k in range(size):
        pivot = factor[k, k]
        if abs(pivot) <= _ROUNDING * least:
            kept[k] = -1
            continue
        if not pivot > least:
            return -1
        root = np.sqrt(pivot)
        factor[k, k] = root
        n_known += 1
        for i in range(k + 1, size):
            factor[i, k] /= root
            column[i] = factor[i, k]
        for i in range(k + 1, size):
            share = column[i]
            for j in range(k + 1, i + 1):
                factor[i, j] -= share * column[j]
    return n_known
