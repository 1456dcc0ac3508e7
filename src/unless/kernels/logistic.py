"""Logistic regressions on counted patterns: what they start from, and what comes of them."""

import numpy as np

from unless.kernels.algebra import factorise
from unless.kernels.compiling import borrowed, compiled, helper
from unless.kernels.newton import energies, information, newton, normalise


@compiled
def regress(begins, active, counts, owners, levels, reference, before, ridges, enough):
    """Fit the target of some patterns; return (its levels, weights, log-likelihood, matrix, is_covariance).

    Levels are those that are counted, the reference first if it is among them; weights are column x level.
    The columns that are on in a pattern are `active[begins[pattern]:begins[pattern + 1]]`, 0 in all; `owners`
    and `levels` name them. `before` is what an earlier regression returned or began with: weights, owners,
    levels, levels of the target; it is where this one starts if the target's levels are the same. `ridges`
    are that of column 0 and that of the others. The matrix is the covariance, or the information where
    rounding kept it from being inverted, over the levels of the target and in each of them the columns.
    """
    begins, active, counts = borrowed(begins), borrowed(active), borrowed(counts)
    owners, levels, before = borrowed(owners), borrowed(levels), borrowed(before)
    shown = _levels_shown(counts, reference)
    n_free, n_columns = len(shown) - 1, len(owners)
    size = n_free * n_columns
    told, matrix = np.empty((n_columns, n_free)), np.empty((size, size))
    if n_free == 0:
        return shown, told, 0.0, matrix, True
    taken = _taken(counts, shown)
    plain, weights = _plain(taken), np.zeros((n_free, n_columns))
    if not _carry_over(before, owners, levels, shown, weights):
        for k in range(n_free):
            weights[k, 0] = plain[k]
    likelihood = newton(begins, active, taken, _ridge(ridges, n_columns), enough, plain, weights, matrix)
    for k in range(n_free):
        for c in range(n_columns):
            told[c, k] = weights[k, c]
    inverse = np.empty((size, size))
    if _invert(matrix, inverse):
        return shown, told, likelihood, inverse, True
    for i in range(size):
        for j in range(i):
            matrix[j, i] = matrix[i, j]
    return shown, told, likelihood, matrix, False


@compiled
def fit_only(begins, active, counts, owners, levels, reference, before, ridges, enough):
    """Do as `regress`, without the matrix: return (levels of the target, weights, log-likelihood)."""
    begins, active, counts = borrowed(begins), borrowed(active), borrowed(counts)
    owners, levels, before = borrowed(owners), borrowed(levels), borrowed(before)
    shown = _levels_shown(counts, reference)
    n_free, n_columns = len(shown) - 1, len(owners)
    told = np.empty((n_columns, n_free))
    if n_free == 0:
        return shown, told, 0.0
    taken = _taken(counts, shown)
    plain, weights = _plain(taken), np.zeros((n_free, n_columns))
    if not _carry_over(before, owners, levels, shown, weights):
        for k in range(n_free):
            weights[k, 0] = plain[k]
    matrix = np.empty((n_free * n_columns, n_free * n_columns))
    ridge = _ridge(ridges, n_columns)
    likelihood = newton(begins, active, taken, ridge, enough, plain, weights, matrix, False)
    for k in range(n_free):
        for c in range(n_columns):
            told[c, k] = weights[k, c]
    return shown, told, likelihood


@compiled
def covariance_of(begins, active, counts, shown, told, ridges):
    """Return the inverse of the information of a fitted regression, or the information, and which it is."""
    begins, active, counts, shown = borrowed(begins), borrowed(active), borrowed(counts), borrowed(shown)
    told = borrowed(told)
    n_columns, n_free = told.shape
    size = n_free * n_columns
    weights = np.empty((n_free, n_columns))
    for c in range(n_columns):
        for k in range(n_free):
            weights[k, c] = told[c, k]
    matrix, inverse = np.empty((size, size)), np.empty((size, size))
    information(begins, active, _taken(counts, shown), _ridge(ridges, n_columns), weights, matrix)
    if _invert(matrix, inverse):
        return inverse, True
    for i in range(size):
        for j in range(i):
            matrix[j, i] = matrix[i, j]
    return matrix, False


@compiled
def without(begins, active, counts, shown, owners, variable, told, ridges, enough):
    """Fit again without the columns of a variable, from the other weights; return the log-likelihood."""
    begins, active, counts, shown = borrowed(begins), borrowed(active), borrowed(counts), borrowed(shown)
    owners, told = borrowed(owners), borrowed(told)
    n_free, n_patterns = len(shown) - 1, counts.shape[0]
    place_of, n_columns = np.empty(len(owners), dtype=np.int64), 0
    weights = np.empty((n_free, len(owners)))
    for c in range(len(owners)):
        place_of[c] = -1
        if owners[c] != variable:
            for k in range(n_free):
                weights[k, n_columns] = told[c, k]
            place_of[c] = n_columns
            n_columns += 1
    weights = weights[:, :n_columns].copy()
    fewer_begins, fewer_active = np.empty(n_patterns + 1, np.int64), np.empty(len(active), np.int64)
    n_active = 0
    for pattern in range(n_patterns):
        fewer_begins[pattern] = n_active
        for place in range(begins[pattern], begins[pattern + 1]):
            column = place_of[active[place]]
            if column >= 0:
                fewer_active[n_active] = column
                n_active += 1
    fewer_begins[n_patterns] = n_active
    taken, matrix = _taken(counts, shown), np.empty((n_free * n_columns, n_free * n_columns))
    ridge = _ridge(ridges, n_columns)
    return newton(fewer_begins, fewer_active, taken, ridge, enough, _plain(taken), weights, matrix)


@compiled
def expect(begins, active, told, chances):
    """Fill the chances of each pattern's levels but the reference, from weights (column x level)."""
    begins, active, told, chances = borrowed(begins), borrowed(active), borrowed(told), borrowed(chances)
    n_columns, n_free = told.shape
    weights = np.empty((n_free, n_columns))
    for c in range(n_columns):
        for k in range(n_free):
            weights[k, c] = told[c, k]
    for pattern in range(chances.shape[0]):
        normalise(chances, pattern, energies(begins, active, weights, chances, pattern))


@helper
def _levels_shown(counts, reference):
    counts = borrowed(counts)
    n_patterns, n_levels = counts.shape
    is_shown, n_shown = np.zeros(n_levels, dtype=np.bool_), 0
    for pattern in range(n_patterns):
        for level in range(n_levels):
            if counts[pattern, level] != 0.0:
                is_shown[level] = True
    shown = np.empty(n_levels, dtype=np.int64)
    if is_shown[reference]:
        shown[0], n_shown = reference, 1
    for level in range(n_levels):
        if is_shown[level] and not (n_shown > 0 and level == reference):
            shown[n_shown] = level
            n_shown += 1
    return shown[:n_shown].copy()


@helper
def _taken(counts, shown):
    """Keep the levels that are shown, in their order."""
    counts, shown = borrowed(counts), borrowed(shown)
    taken = np.empty((counts.shape[0], len(shown)))
    for pattern in range(counts.shape[0]):
        for k in range(len(shown)):
            taken[pattern, k] = counts[pattern, shown[k]]
    return taken


@helper
def _plain(counts):
    """Return the weights of column 0 alone, and last how good they are."""
    counts = borrowed(counts)
    n_levels = counts.shape[1]
    totals, every = np.zeros(n_levels), 0.0
    for pattern in range(counts.shape[0]):
        for k in range(n_levels):
            totals[k] += counts[pattern, k]
    for k in range(n_levels):
        every += totals[k]
    plain = np.zeros(n_levels)
    for k in range(n_levels):
        if k > 0:
            plain[k - 1] = np.log(totals[k] / totals[0])
        plain[n_levels - 1] += totals[k] * np.log(totals[k] / every)
    return plain


@helper
def _ridge(ridges, n_columns):
    ridge = np.empty(n_columns)
    for c in range(n_columns):
        ridge[c] = ridges[1]
    ridge[0] = ridges[0]
    return ridge


@helper
def _carry_over(before, owners, levels, shown, weights):
    """Fill weights, as far as they are known from before; both name their columns in the same order."""
    told, known_owners, known_levels, known_shown = before
    if len(known_shown) != len(shown):
        return False
    for k in range(len(shown)):
        if known_shown[k] != shown[k]:
            return False
    at = 0
    for c in range(len(owners)):
        while at < len(known_owners) and (
            known_owners[at] < owners[c] or (known_owners[at] == owners[c] and known_levels[at] < levels[c])
        ):
            at += 1
        if at < len(known_owners) and known_owners[at] == owners[c] and known_levels[at] == levels[c]:
            for k in range(weights.shape[0]):
                weights[k, c] = told[at, k]
    return True


@helper
def _invert(matrix, inverse):
    """Fill the inverse; False where the matrix is not positive definite."""
    matrix, inverse = borrowed(matrix), borrowed(inverse)
    size = matrix.shape[0]
    factor = matrix.copy()
    if not factorise(factor):
        return False
    root = np.zeros((size, size))
    for i in range(size):
        for j in range(i):
            share = factor[i, j]
            for k in range(j + 1):
                root[i, k] -= share * root[j, k]
        for k in range(i):
            root[i, k] /= factor[i, i]
        root[i, i] = 1.0 / factor[i, i]
    for i in range(size):
        for j in range(size):
            inverse[i, j] = 0.0
    for i in range(size):
        for j in range(i + 1):
            share = root[i, j]
            for k in range(j + 1):
                inverse[j, k] += share * root[i, k]
    for i in range(size):
        for j in range(i):
            inverse[j, i] = inverse[i, j]
    return True
