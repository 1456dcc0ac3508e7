"""What the weights of regressions are worth: their sizes, and what they differ by between strata."""

import numpy as np

from unless.kernels.algebra import factorise, substitute
from unless.kernels.compiling import borrowed, compiled, helper


@compiled
def size_variables(weights, covariance, owners, found):
    """Divide the weights (column x level) of each variable by their covariance; return how many there are.

    Of each, `found` is filled with the variable, the statistic, or -1 where the covariance is too singular,
    and the df. Owners of columns are in ascending order, with that of column 0 first, which is nobody.
    """
    weights, covariance, owners, found = (
        borrowed(weights),
        borrowed(covariance),
        borrowed(owners),
        borrowed(found),
    )
    n_found, begin = 0, 1
    while begin < len(owners):
        width = 1
        while begin + width < len(owners) and owners[begin + width] == owners[begin]:
            width += 1
        told, factor = _block(weights, covariance, begin, width)
        solved = np.empty(len(told))
        found[n_found, 0], found[n_found, 1], found[n_found, 2] = owners[begin], -1.0, len(told)
        if factorise(factor):
            _substitute_into(factor, told, solved)
            value = 0.0
            for i in range(len(told)):
                value += told[i] * solved[i]
            found[n_found, 1] = value
        n_found += 1
        begin += width
    return n_found


@compiled
def part_variables(weights, covariances, shapes, owners, levels, targets, variables, n_levels, found):
    """Test, for each variable, that its weights are the same in all strata; fill `found` (statistic, df).

    Strata follow each other in flat arrays: weights (column x level of the target), covariances, owners and
    levels of the columns, levels of the target but the reference; `shapes` are their numbers of columns and
    of such levels. `n_levels` is more than any level of a variable or the target. A statistic of -1 says that
    some covariance is too singular.
    """
    weights, covariances, shapes = borrowed(weights), borrowed(covariances), borrowed(shapes)
    owners, levels, targets = borrowed(owners), borrowed(levels), borrowed(targets)
    variables, found = borrowed(variables), borrowed(found)
    place_of = np.empty((n_levels, n_levels), dtype=np.int64)
    for one in range(len(variables)):
        n_cells, n_weights = _place(shapes, owners, levels, targets, variables[one], place_of)
        precision, pull = np.zeros((n_cells, n_cells)), np.zeros(n_cells)
        alone, known = 0.0, True
        at, at_covariance, at_target = 0, 0, 0
        at_weight = 0
        for stratum in range(len(shapes)):
            n_columns, n_free = shapes[stratum]
            size = n_columns * n_free
            begin, width = _columns_of(owners[at : at + n_columns], variables[one])
            if width * n_free > 0 and known:
                told, factor = _block(
                    weights[at_weight : at_weight + size].reshape((n_columns, n_free)),
                    covariances[at_covariance : at_covariance + size * size].reshape((size, size)),
                    begin,
                    width,
                )
                places = np.empty(len(told), dtype=np.int64)
                for k in range(n_free):
                    for c in range(width):
                        places[k * width + c] = place_of[levels[at + begin + c], targets[at_target + k]]
                known = factorise(factor)
                if known:
                    alone += _add(factor, told, places, precision, pull)
            at += n_columns
            at_weight += size
            at_covariance += size * size
            at_target += n_free
        found[one, 0], found[one, 1] = -1.0, n_weights - n_cells
        if known and factorise(precision):
            solved = np.empty(n_cells)
            _substitute_into(precision, pull, solved)
            for i in range(n_cells):
                alone -= pull[i] * solved[i]
            found[one, 0] = max(0.0, alone)


@helper
def _place(shapes, owners, levels, targets, variable, place_of):
    """Give a place to each pair of levels with a weight in some stratum; return how many, and of weights."""
    for level in range(len(place_of)):
        for other in range(len(place_of)):
            place_of[level, other] = -1
    n_cells, n_weights, at, at_target = 0, 0, 0, 0
    for stratum in range(len(shapes)):
        n_columns, n_free = shapes[stratum]
        for c in range(at, at + n_columns):
            if owners[c] == variable:
                n_weights += n_free
                for k in range(at_target, at_target + n_free):
                    if place_of[levels[c], targets[k]] < 0:
                        place_of[levels[c], targets[k]] = n_cells
                        n_cells += 1
        at += n_columns
        at_target += n_free
    return n_cells, n_weights


@helper
def _columns_of(owners, variable):
    """Return where the columns of a variable begin, and how many there are."""
    begin, width = 0, 0
    for c in range(len(owners)):
        if owners[c] == variable:
            begin, width = c - width, width + 1
    return begin, width


@helper
def _add(factor, told, places, precision, pull):
    """Add what a stratum knows, given the factor of its covariance; return the size of its weights."""
    alone, solved = 0.0, np.empty(len(told))
    for j in range(len(told)):
        for i in range(len(told)):
            solved[i] = 1.0 if i == j else 0.0
        substitute(factor, solved)
        for i in range(len(told)):
            precision[places[i], places[j]] += solved[i]
    _substitute_into(factor, told, solved)
    for i in range(len(told)):
        pull[places[i]] += solved[i]
        alone += told[i] * solved[i]
    return alone


@helper
def _substitute_into(factor, told, solved):
    """Solve for a right side that is kept."""
    for i in range(len(told)):
        solved[i] = told[i]
    substitute(factor, solved)


@helper
def _block(weights, covariance, begin, width):
    n_columns, n_free = weights.shape
    size = n_free * width
    told, block = np.empty(size), np.empty((size, size))
    for k in range(n_free):
        for c in range(width):
            told[k * width + c] = weights[begin + c, k]
            for other in range(n_free):
                for d in range(width):
                    block[k * width + c, other * width + d] = covariance[
                        k * n_columns + begin + c, other * n_columns + begin + d
                    ]
    return told, block
