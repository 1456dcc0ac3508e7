"""Regressions of a column on others: logistic ones on counted patterns, and functions of one column.

A pattern is a set of rows alike in the variables of a regression. The columns of the design that are on in it
are `active[begins[pattern]:begins[pattern + 1]]`; column 0 is on in all. `counts` is pattern x level of the
target. Fits are by Newton's method, and tested by likelihood ratio; what a fit does not have is tested by
score.
"""

import numpy as np

from unless.kernels.algebra import factorise, substitute, sum_of_products
from unless.kernels.compiling import compiled, exp, helper, inlined, log, without_refcount
from unless.kernels.patterns import _number

_MAX_ROUNDS = 50
_LEAST_STEP = 1e-4
# The matrix of an earlier round is used again while a round promises to gain less than this share of the one
# before: such rounds cost a third.
_STALE = 0.05
# A variance of so much less than what counts as known is one that rounding left.
_ROUNDING = 1e-6
# Sums that are kept apart, so that what follows each other can be added at once.
_COPIES = 4


# ---------------------------------------------------------------------- patterns and terms


@compiled
def number_rows(codes, variables, sizes):
    """Give the distinct values of some variables numbers: return that of each row, and an example of each.

    `codes` is variable x row. Numbers follow the lexicographic order of the values.
    """
    codes, variables, sizes = without_refcount((codes, variables, sizes))
    n_rows, most = codes.shape[1], 1
    for i in range(len(variables)):
        most = max(most, sizes[variables[i]])
    rows = np.arange(n_rows)
    which = np.empty(n_rows, dtype=np.int64)
    n_patterns = _number(
        codes, rows, variables, sizes, which, np.empty(max(4, most) * n_rows + most, np.int64)
    )
    example = np.empty(n_patterns, dtype=np.int64)
    for row in range(n_rows - 1, -1, -1):
        example[which[row]] = row
    return which, example


@compiled
def count_target(which, codes, weights, counts):
    """Add up the weights of rows by pattern and level of the target."""
    which, codes, weights, counts = without_refcount((which, codes, weights, counts))
    for row in range(len(which)):
        counts[which[row], codes[row]] += weights[row]


@compiled
def lay_out_terms(codes, example, terms, sizes, references):
    """Give a column to each combination of levels that a term shows: begins, active, owners, levels.

    A term is a row of `terms`: up to three variables, -1 where there are fewer. It has a column for each
    combination of levels that are no references and that some example shows. Column 0 is always on. `owners`
    are the positions of terms, `levels` the numbers of combinations, both -1 for column 0.
    """
    codes, example, terms, sizes, references = without_refcount((codes, example, terms, sizes, references))
    n_patterns, n_terms = len(example), terms.shape[0]
    most = 1
    for term in range(n_terms):
        width = 1
        for part in range(terms.shape[1]):
            if terms[term, part] >= 0:
                width *= sizes[terms[term, part]]
        most = max(most, width)
    combination = np.full((n_terms, n_patterns), -1, dtype=np.int64)
    column_of = np.empty((n_terms, most), dtype=np.int64)
    n_columns = 1
    for term in range(n_terms):
        for width in range(most):
            column_of[term, width] = -1
        for pattern in range(n_patterns):
            number, is_on = 0, True
            for part in range(terms.shape[1]):
                variable = terms[term, part]
                if variable < 0:
                    continue
                code = codes[variable, example[pattern]]
                if code == references[variable]:
                    is_on = False
                    break
                number = number * sizes[variable] + code
            if is_on:
                combination[term, pattern] = number
                column_of[term, number] = 0
        for number in range(most):
            if column_of[term, number] == 0:
                column_of[term, number] = n_columns
                n_columns += 1
    owners, levels = np.empty(n_columns, dtype=np.int64), np.empty(n_columns, dtype=np.int64)
    owners[0] = levels[0] = -1
    for term in range(n_terms):
        for number in range(most):
            if column_of[term, number] >= 0:
                owners[column_of[term, number]] = term
                levels[column_of[term, number]] = number
    begins = np.empty(n_patterns + 1, dtype=np.int64)
    active = np.empty(n_patterns * (n_terms + 1), dtype=np.int64)
    n_active = 0
    for pattern in range(n_patterns):
        begins[pattern] = n_active
        active[n_active] = 0
        n_active += 1
        for term in range(n_terms):
            if combination[term, pattern] >= 0:
                active[n_active] = column_of[term, combination[term, pattern]]
                n_active += 1
    begins[n_patterns] = n_active
    return begins, active[:n_active].copy(), owners, levels


@compiled
def count_indicators(codes, weights, which, target, terms, sizes, begins, numbers, seen, shown):
    """Add up the weights of rows by indicator and pattern (`seen`), and by indicator and level (`shown`).

    A term is a row of `terms`: up to three variables, -1 where there are fewer. `numbers`, from where a term
    begins, has the number of the indicator of each combination of its levels; where there is none, that of
    the last rows of `seen` and `shown`, which nobody reads: to ask in each row would take longer.
    """
    codes, weights, which, terms, sizes = without_refcount((codes, weights, which, terms, sizes))
    begins, numbers, seen, shown = without_refcount((begins, numbers, seen, shown))
    levels, n_rows = without_refcount(codes[target]), codes.shape[1]
    # Unsigned and flat: numba asks of signed indices whether they count from the end.
    n_patterns, n_levels, size = np.uint64(seen.shape[1]), np.uint64(shown.shape[1]), np.uint64(shown.size)
    by_pattern, by_level = seen.reshape(seen.size), np.zeros(_COPIES * shown.size)
    combined = np.empty(n_rows, dtype=np.int64)
    for term in range(terms.shape[0]):
        for row in range(n_rows):
            combined[row] = begins[term]
        place = 1
        for part in range(terms.shape[1] - 1, -1, -1):
            variable = terms[term, part]
            if variable >= 0:
                column = without_refcount(codes[variable])
                for row in range(n_rows):
                    combined[row] += place * column[row]
                place *= sizes[variable]
        for row in range(n_rows):
            number = np.uint64(numbers[np.uint64(combined[row])])
            by_pattern[number * n_patterns + np.uint64(which[row])] += weights[row]
            start = np.uint64(row % _COPIES) * size + number * n_levels
            by_level[start + np.uint64(levels[row])] += weights[row]
    for copy in range(_COPIES):
        for number in range(shown.shape[0]):
            for level in range(shown.shape[1]):
                shown[number, level] += by_level[copy * shown.size + number * shown.shape[1] + level]


@compiled
def screen_products(
    codes, weights, target, which, probabilities, shown, seconds, thirds, is_held, sizes, is_ascending,
    statistics,
):  # fmt: skip
    """Fill Pearson's statistic of each triple (target, second, third) against what a regression expects.

    `probabilities` is pattern x level of the target (all that are shown), `shown` their codes. The regression
    knows the seconds, so that their margins agree; those of a third are made to agree here. `is_held` tells
    of each third whether it is the same in all rows of a pattern. `statistics` is second x third; of triples
    that are in ascending order alone, if so asked.
    """
    codes, weights, which, probabilities = without_refcount((codes, weights, which, probabilities))
    shown, seconds, thirds, sizes = without_refcount((shown, seconds, thirds, sizes))
    is_held, statistics = without_refcount((is_held, statistics))
    n_rows, n_shown, n_patterns, most = codes.shape[1], probabilities.shape[1], probabilities.shape[0], 1
    for t in range(len(thirds)):
        most = max(most, sizes[thirds[t]])
    most_second = 1
    for s in range(len(seconds)):
        most_second = max(most_second, sizes[seconds[s]])
    number_of = np.full(sizes[target], -1, dtype=np.int64)
    for k in range(n_shown):
        number_of[shown[k]] = k
    # Rows are added up once, whatever the second is, in cells of which all rows have the same third.
    groups, cell_of = np.empty(n_rows, np.int64), np.empty(max(n_rows, n_patterns * most), np.int64)
    example = np.empty(n_rows, dtype=np.int64)
    # Of each level of the target what is expected, then what is found beyond it, rounded up to fours.
    width = (2 * n_shown + 3) // 4 * 4
    cells, by_level = np.empty((n_rows, width)), np.empty((_COPIES, most_second, most, width))
    codes_of_seconds, codes_of_third = np.empty((len(seconds), n_rows), np.int32), np.empty(n_rows, np.int32)
    # First those thirds whose cells are the patterns, then those whose cells are rows, then all others.
    for kind in range(3):
        n_cells = -1
        for t in range(len(thirds)):
            third, n_third = without_refcount(codes[thirds[t]]), sizes[thirds[t]]
            if kind != (0 if is_held[t] else 1 if n_patterns * n_third >= n_rows else 2):
                continue
            if n_cells < 0 or kind == 2:
                for row in range(n_rows):
                    groups[row] = which[row] if kind == 0 else row
                    if kind == 2:
                        groups[row] = which[row] * n_third + third[row]
                n_cells = _fill_cells(
                    codes[target], weights, which, probabilities, number_of, groups, cell_of, example, cells
                )
                for s in range(len(seconds)):
                    _take(codes[seconds[s]], example, n_cells, codes_of_seconds[s])
            _take(third, example, n_cells, codes_of_third)
            for s in range(len(seconds)):
                if is_ascending and not seconds[s] < thirds[t]:
                    statistics[s, t] = 0.0
                    continue
                n_second = sizes[seconds[s]]
                _add_cells(cells, n_cells, codes_of_seconds[s], n_second, codes_of_third, n_third, by_level)
                statistics[s, t] = _squared_excess(by_level[0], n_shown, n_second, n_third)


@inlined
def _take(codes, example, n_cells, taken):
    """Copy the codes of the examples of cells, to be read one after the other."""
    codes, example, taken = without_refcount((codes, example, taken))
    for cell in range(n_cells):
        taken[cell] = codes[example[cell]]


@helper
def _add_cells(cells, n_cells, seconds, n_second, thirds, n_third, by_level):
    """Add up cells by two codes that they have.

    By copies in turn, which are added up at last: cells that follow each other mostly have the same codes,
    and in one sum each addition would wait for the one before.
    """
    cells, seconds, thirds, by_level = without_refcount((cells, seconds, thirds, by_level))
    width = by_level.shape[3]
    for copy in range(_COPIES):
        for level in range(n_second):
            for other in range(n_third):
                for k in range(width):
                    by_level[copy, level, other, k] = 0.0
    # Unsigned and flat: numba asks of signed indices whether they count from the end.
    n_wide, n_levels, n_most = np.uint64(width), np.uint64(by_level.shape[1]), np.uint64(by_level.shape[2])
    flat, sums = cells.reshape(cells.size), by_level.reshape(by_level.size)
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    at = np.uint64(0)
    for cell in range(n_cells):
        level = np.uint64(cell % _COPIES) * n_levels + np.uint64(seconds[cell])
        place = (level * n_most + np.uint64(thirds[cell])) * n_wide
        end = place + n_wide
        while place < end:
            a, b, c, d = flat[at], flat[at + one], flat[at + two], flat[at + three]
            sums[place] += a
            sums[place + one] += b
            sums[place + two] += c
            sums[place + three] += d
            place += four
            at += four
    for copy in range(1, _COPIES):
        for level in range(n_second):
            for other in range(n_third):
                for k in range(width):
                    by_level[0, level, other, k] += by_level[copy, level, other, k]


@helper
def _fill_cells(levels, weights, which, probabilities, number_of, groups, cell_of, example, cells):
    """Add up rows by their groups; return the number of cells, with an example of each.

    A cell has the rows that are expected at each level of the target, and then those found beyond them.
    """
    levels, weights, which, probabilities = without_refcount((levels, weights, which, probabilities))
    number_of, groups, cell_of = without_refcount((number_of, groups, cell_of))
    example, cells = without_refcount((example, cells))
    n_cells, n_shown, width = 0, probabilities.shape[1], cells.shape[1]
    for group in range(len(cell_of)):
        cell_of[group] = -1
    for row in range(len(which)):
        weight = weights[row]
        if weight == 0.0:
            continue
        cell = cell_of[groups[row]]
        if cell < 0:
            cell_of[groups[row]] = cell = n_cells
            example[cell] = row
            for k in range(width):
                cells[cell, k] = 0.0
            n_cells += 1
        # The rows of a cell first, in place of what is expected; then what the regression makes of them.
        cells[cell, 0] += weight
        number = number_of[levels[row]]
        if number >= 0:
            cells[cell, n_shown + number] += weight
    for cell in range(n_cells):
        weight, pattern = cells[cell, 0], which[example[cell]]
        for k in range(n_shown):
            cells[cell, k] = weight * probabilities[pattern, k]
            cells[cell, n_shown + k] -= cells[cell, k]
    return n_cells


@helper
def _squared_excess(by_level, n_shown, n_second, n_third):
    """Return Pearson's statistic of cells, the margins of the third made to agree."""
    by_level = without_refcount(by_level)
    total = 0.0
    for other in range(n_third):
        for k in range(n_shown):
            sum_excess, sum_expected = 0.0, 0.0
            for level in range(n_second):
                sum_expected += by_level[level, other, k]
                sum_excess += by_level[level, other, n_shown + k]
            if sum_expected <= 0.0:
                continue
            for level in range(n_second):
                cell = by_level[level, other, k]
                if cell > 1e-9:
                    left = by_level[level, other, n_shown + k] - sum_excess * cell / sum_expected
                    total += left * left / cell
    return total


# ---------------------------------------------------------------------- Newton's method


@helper
def newton(begins, active, counts, ridge, enough, plain, weights, matrix, is_matrix_wanted):
    """Improve weights (level x column) in place; return the log-likelihood.

    Weights that start worse than `plain` ones, which are those of column 0 alone, start from these. Rounds
    share a matrix as long as it serves.

    The first level of `counts` (pattern x level) is the reference. The information is over the levels and in
    each of them the columns, with `ridge` (one for each column) on its diagonal; of it the lower triangle is
    filled, at the last weights if it is wanted.
    """
    begins, active, counts, ridge, weights = without_refcount((begins, active, counts, ridge, weights))
    matrix, plain = without_refcount((matrix, plain))
    n_free, n_columns = weights.shape
    shared, probabilities = _shared(begins, active), np.empty((counts.shape[0], n_free))
    size = n_free * n_columns
    slope = np.empty(size)
    step = np.empty(size)
    before = np.empty((n_free, n_columns))
    factor = np.empty((size, size))
    likelihood = _predict(begins, active, shared, counts, weights, probabilities)
    value = likelihood - _penalty(ridge, weights)
    if value < plain[n_free]:
        for k in range(n_free):
            for c in range(n_columns):
                weights[k, c] = 0.0
            weights[k, 0] = plain[k]
        likelihood = _predict(begins, active, shared, counts, weights, probabilities)
        value = likelihood - _penalty(ridge, weights)
    gain, gain_before, is_factorised = 0.0, 0.0, False
    for _ in range(_MAX_ROUNDS):
        _slopes(begins, active, shared, counts, ridge, weights, probabilities, slope)
        is_fresh = not is_factorised
        if is_factorised:
            gain = _solve(factor, slope, step)
            is_fresh = gain > _STALE * gain_before
        if is_fresh:
            _curve(begins, active, shared, counts, ridge, probabilities, matrix)
            for i in range(size):
                for j in range(i + 1):
                    factor[i, j] = matrix[i, j]
            is_factorised = factorise(factor)
            if not is_factorised:
                break
            gain = _solve(factor, slope, step)
        for k in range(n_free):
            for c in range(n_columns):
                before[k, c] = weights[k, c]
        share = 1.0
        while True:
            for k in range(n_free):
                for c in range(n_columns):
                    weights[k, c] = before[k, c] + share * step[k * n_columns + c]
            likelihood = _predict(begins, active, shared, counts, weights, probabilities)
            reached = likelihood - _penalty(ridge, weights)
            if reached >= value - 1e-12 * abs(value) or share < _LEAST_STEP:
                break
            share /= 2
        value = reached
        # What a round leaves is about the square of what it promised, if its matrix is not an older one.
        if gain < (enough if is_fresh else enough * enough):
            break
        gain_before = gain
    if is_matrix_wanted:
        _curve(begins, active, shared, counts, ridge, probabilities, matrix)
    return likelihood


@helper
def _solve(factor, slope, step):
    """Fill the step that a factorised matrix makes of a slope; return twice what it promises to gain."""
    slope, step = without_refcount((slope, step))
    for i in range(len(slope)):
        step[i] = slope[i]
    substitute(factor, step)
    gain = 0.0
    for i in range(len(slope)):
        gain += step[i] * slope[i]
    return gain


@helper
def information(begins, active, counts, ridge, weights, matrix):
    """Fill the lower triangle of the information at some weights (level x column)."""
    shared, probabilities = _shared(begins, active), np.empty((counts.shape[0], weights.shape[0]))
    _predict(begins, active, shared, counts, weights, probabilities)
    _curve(begins, active, shared, counts, ridge, probabilities, matrix)


@helper
def _shared(begins, active):
    """Count the first columns that each pattern has in common with the one before.

    Patterns are in order, so that most have many. What all patterns of a run share is added up once.
    """
    begins, active = without_refcount((begins, active))
    n_patterns = len(begins) - 1
    shared = np.zeros(n_patterns, dtype=np.int64)
    for pattern in range(1, n_patterns):
        before, begin = begins[pattern - 1], begins[pattern]
        most = min(begin - before, begins[pattern + 1] - begin)
        n = 0
        while n < most and active[before + n] == active[begin + n]:
            n += 1
        shared[pattern] = n
    return shared


@helper
def _most_active(begins):
    begins = without_refcount(begins)
    most = 0
    for pattern in range(len(begins) - 1):
        most = max(most, begins[pattern + 1] - begins[pattern])
    return most


@helper
def _penalty(ridge, weights):
    ridge, weights = without_refcount((ridge, weights))
    total = 0.0
    for k in range(weights.shape[0]):
        for c in range(weights.shape[1]):
            total += ridge[c] * weights[k, c] * weights[k, c]
    return total / 2


@helper
def _predict(begins, active, shared, counts, weights, probabilities):
    """Fill the probabilities of each pattern's levels but the reference; return the log-likelihood."""
    begins, active, shared, counts = without_refcount((begins, active, shared, counts))
    weights, probabilities = without_refcount((weights, probabilities))
    total, sums = 0.0, np.zeros((_most_active(begins) + 1, weights.shape[0]))
    for pattern in range(probabilities.shape[0]):
        top = energies(begins, active, shared, weights, sums, probabilities, pattern)
        n_rows = counts[pattern, 0]
        for k in range(weights.shape[0]):
            total += counts[pattern, k + 1] * probabilities[pattern, k]
            n_rows += counts[pattern, k + 1]
        total -= n_rows * (top + log(normalise(probabilities, pattern, top)))
    return total


@inlined
def energies(begins, active, shared, weights, sums, probabilities, pattern):
    """Fill in the sum of weights of each level of a pattern but the reference; return the largest, or 0.

    `sums` has those of the first columns of the pattern before: none, one, two, ...
    """
    begin, end = begins[pattern], begins[pattern + 1]
    for at in range(begin + shared[pattern], end):
        for k in range(weights.shape[0]):
            sums[at - begin + 1, k] = sums[at - begin, k] + weights[k, active[at]]
    top = 0.0
    for k in range(weights.shape[0]):
        energy = sums[end - begin, k]
        probabilities[pattern, k] = energy
        top = max(top, energy)
    return top


@inlined
def normalise(probabilities, pattern, top):
    """Replace energies by probabilities; return what they are divided by."""
    # The exponential of nothing need not be computed.
    norm = exp(-top) if top > 0.0 else 1.0
    for k in range(probabilities.shape[1]):
        energy = probabilities[pattern, k]
        probabilities[pattern, k] = exp(energy - top) if energy < top else 1.0
        norm += probabilities[pattern, k]
    for k in range(probabilities.shape[1]):
        probabilities[pattern, k] /= norm
    return norm


@helper
def _slopes(begins, active, shared, counts, ridge, weights, probabilities, slope):
    begins, active, shared, counts = without_refcount((begins, active, shared, counts))
    ridge, weights, probabilities, slope = without_refcount((ridge, weights, probabilities, slope))
    n_free, n_columns = weights.shape
    for k in range(n_free):
        for c in range(n_columns):
            slope[k * n_columns + c] = -ridge[c] * weights[k, c]
    # Sums over the patterns with the same first columns: none, one, two, ...
    sums, begin, n_open = np.zeros((_most_active(begins) + 1, n_free)), 0, 0
    for pattern in range(len(shared) + 1):
        n_kept = shared[pattern] if pattern < len(shared) else 0
        for depth in range(n_open, n_kept, -1):
            column = active[begin + depth - 1]
            for k in range(n_free):
                total = sums[depth, k]
                slope[k * n_columns + column] += total
                sums[depth - 1, k] += total
                sums[depth, k] = 0.0
        if pattern == len(shared):
            break
        begin, n_rows = begins[pattern], 0.0
        n_open = begins[pattern + 1] - begin
        for k in range(n_free + 1):
            n_rows += counts[pattern, k]
        for k in range(n_free):
            sums[n_open, k] += counts[pattern, k + 1] - n_rows * probabilities[pattern, k]


@helper
def _curve(begins, active, shared, counts, ridge, probabilities, matrix):
    """Fill the lower triangle of the information."""
    counts, ridge, probabilities = without_refcount((counts, ridge, probabilities))
    matrix = without_refcount(matrix)
    n_patterns, n_free = probabilities.shape
    n_columns, n_rows = len(ridge), np.zeros(n_patterns)
    for pattern in range(n_patterns):
        for k in range(n_free + 1):
            n_rows[pattern] += counts[pattern, k]
    sums = _no_sums(n_free, n_columns)
    _add_information(begins, active, shared, n_rows, probabilities, sums)
    _spread_out(sums, n_free, n_columns, matrix)
    for k in range(n_free):
        for c in range(n_columns):
            matrix[k * n_columns + c, k * n_columns + c] += ridge[c]


@helper
def _no_sums(n_free, n_columns):
    """Return zeros: a line for each pair of columns, in it the pairs of levels."""
    return np.zeros((n_columns * (n_columns + 1) // 2, n_free * (n_free + 1) // 2))


@helper
def _add_information(begins, active, shared, n_rows, probabilities, sums):
    """Add up what the patterns, each of so many rows, tell of the weights.

    The pairs of levels of two columns lie side by side in `sums`, so that all of them are added to at once.
    """
    begins, active, shared, n_rows = without_refcount((begins, active, shared, n_rows))
    probabilities, sums = without_refcount((probabilities, sums))
    n_free, n_pairs = probabilities.shape[1], sums.shape[1]
    # Sums over the patterns with the same first columns: none, one, two, ...
    runs, begin, n_open, n_kept = np.zeros((_most_active(begins) + 1, n_pairs)), 0, 0, 0
    for pattern in range(len(shared) + 1):
        n_kept = min(n_kept, shared[pattern]) if pattern < len(shared) else 0
        if pattern < len(shared) and n_rows[pattern] == 0.0:
            continue
        for depth in range(n_open, n_kept, -1):
            # A column is below another where it comes later.
            column, run = active[begin + depth - 1], without_refcount(runs[depth])
            line = column * (column + 1) // 2
            for under in range(begin, begin + depth):
                place = without_refcount(sums[line + active[under]])
                for pair in range(n_pairs):
                    place[pair] += run[pair]
            for pair in range(n_pairs):
                runs[depth - 1, pair] += run[pair]
                run[pair] = 0.0
        if pattern == len(shared):
            break
        begin = begins[pattern]
        n_open = begins[pattern + 1] - begin
        n_kept, pair = n_open, 0
        for k in range(n_free):
            share = n_rows[pattern] * probabilities[pattern, k]
            for other in range(k):
                runs[n_open, pair + other] -= share * probabilities[pattern, other]
            runs[n_open, pair + k] += share - share * probabilities[pattern, k]
            pair += k + 1


@helper
def _spread_out(sums, n_free, n_columns, matrix):
    """Fill the lower triangle of a matrix over levels and in each of them columns."""
    sums, matrix = without_refcount((sums, matrix))
    for c in range(n_columns):
        for d in range(c + 1):
            pair, place = 0, c * (c + 1) // 2 + d
            for k in range(n_free):
                for other in range(k + 1):
                    matrix[k * n_columns + c, other * n_columns + d] = sums[place, pair]
                    if other < k:
                        # Blocks of two levels are symmetric.
                        matrix[k * n_columns + d, other * n_columns + c] = sums[place, pair]
                    pair += 1


# ---------------------------------------------------------------------- fits


@compiled
def regress(begins, active, counts, owners, levels, reference, before, ridges, enough):
    """Fit the target of some patterns; return (its levels, weights, log-likelihood, matrix, is_covariance).

    Levels are those that are counted, the reference first if it is among them; weights are column x level.
    `owners` and `levels` name the columns. `before` is what an earlier regression returned or began with:
    weights, owners, levels, levels of the target; it is where this one starts if the target's levels are the
    same. `ridges` are that of column 0 and that of the others. The matrix is the covariance, or, where
    rounding kept it from being inverted, the information, over the levels of the target and in each of them
    the columns.
    """
    shown, weights, likelihood, matrix = _fit(
        begins, active, counts, owners, levels, reference, before, ridges, enough, True
    )
    covariance, is_covariance = _inverted(matrix)
    return shown, weights, likelihood, covariance, is_covariance


@compiled
def fit_only(begins, active, counts, owners, levels, reference, before, ridges, enough):
    """Do as `regress`, without the matrix: return (levels of the target, weights, log-likelihood)."""
    shown, weights, likelihood, _ = _fit(
        begins, active, counts, owners, levels, reference, before, ridges, enough, False
    )
    return shown, weights, likelihood


@helper
def _fit(begins, active, counts, owners, levels, reference, before, ridges, enough, is_matrix_wanted):
    begins, active, counts, owners, levels = without_refcount((begins, active, counts, owners, levels))
    before = without_refcount(before)
    shown = _levels_shown(counts, reference)
    n_free, n_columns = len(shown) - 1, len(owners)
    size = max(0, n_free) * n_columns
    matrix = np.empty((size, size))
    if n_free <= 0:
        return shown, np.empty((n_columns, 0)), 0.0, matrix
    taken = _taken(counts, shown)
    plain, weights = _plain(taken), np.zeros((n_free, n_columns))
    if not _carry_over(before, owners, levels, shown, weights):
        for k in range(n_free):
            weights[k, 0] = plain[k]
    ridge = _ridge(ridges, n_columns)
    likelihood = newton(begins, active, taken, ridge, enough, plain, weights, matrix, is_matrix_wanted)
    return shown, weights.T.copy(), likelihood, matrix


@compiled
def covariance_of(begins, active, counts, shown, by_column, ridges):
    """Return the inverse of the information of a fitted regression, or the information, and which it is."""
    begins, active, counts, shown = without_refcount((begins, active, counts, shown))
    n_columns, n_free = by_column.shape
    size = n_free * n_columns
    matrix = np.empty((size, size))
    information(begins, active, _taken(counts, shown), _ridge(ridges, n_columns), by_column.T.copy(), matrix)
    return _inverted(matrix)


@helper
def _inverted(matrix):
    """Return the inverse of a matrix (its lower triangle), or all of it where rounding keeps it from that."""
    inverse = np.empty(matrix.shape)
    if _invert(matrix, inverse):
        return inverse, True
    for i in range(matrix.shape[0]):
        for j in range(i):
            matrix[j, i] = matrix[i, j]
    return matrix, False


@compiled
def without(begins, active, counts, shown, owners, variable, by_column, ridges, enough):
    """Fit again without the columns of a variable, from the other weights; return the log-likelihood."""
    begins, active, counts, shown, owners = without_refcount((begins, active, counts, shown, owners))
    by_column = without_refcount(by_column)
    n_free, n_patterns = len(shown) - 1, counts.shape[0]
    column_of, n_columns = np.empty(len(owners), dtype=np.int64), 0
    weights = np.empty((n_free, len(owners)))
    for c in range(len(owners)):
        column_of[c] = -1
        if owners[c] != variable:
            for k in range(n_free):
                weights[k, n_columns] = by_column[c, k]
            column_of[c] = n_columns
            n_columns += 1
    weights = weights[:, :n_columns].copy()
    fewer_begins, fewer_active = np.empty(n_patterns + 1, np.int64), np.empty(len(active), np.int64)
    n_active = 0
    for pattern in range(n_patterns):
        fewer_begins[pattern] = n_active
        for at in range(begins[pattern], begins[pattern + 1]):
            column = column_of[active[at]]
            if column >= 0:
                fewer_active[n_active] = column
                n_active += 1
    fewer_begins[n_patterns] = n_active
    taken, matrix = _taken(counts, shown), np.empty((n_free * n_columns, n_free * n_columns))
    ridge = _ridge(ridges, n_columns)
    return newton(fewer_begins, fewer_active, taken, ridge, enough, _plain(taken), weights, matrix, False)


@compiled
def expected_probabilities(begins, active, by_column, probabilities):
    """Fill the probabilities of each pattern's levels but the reference, from weights (column x level)."""
    begins, active, probabilities = without_refcount((begins, active, probabilities))
    weights, shared = by_column.T.copy(), _shared(begins, active)
    sums = np.zeros((_most_active(begins) + 1, weights.shape[0]))
    for pattern in range(probabilities.shape[0]):
        top = energies(begins, active, shared, weights, sums, probabilities, pattern)
        normalise(probabilities, pattern, top)


@helper
def _levels_shown(counts, reference):
    counts = without_refcount(counts)
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
    counts, shown = without_refcount((counts, shown))
    taken = np.empty((counts.shape[0], len(shown)))
    for pattern in range(counts.shape[0]):
        for k in range(len(shown)):
            taken[pattern, k] = counts[pattern, shown[k]]
    return taken


@helper
def _plain(counts):
    """Return the weights of column 0 alone, and last how good they are."""
    counts = without_refcount(counts)
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
            plain[k - 1] = log(totals[k] / totals[0])
        plain[n_levels - 1] += totals[k] * log(totals[k] / every)
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
    known_weights, known_owners, known_levels, known_shown = before
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
                weights[k, c] = known_weights[at, k]
    return True


@helper
def _invert(matrix, inverse):
    """Fill the inverse; False where the matrix is not positive definite.

    Rows of the factor's inverse are taken by fours, one product after the other. Beyond its diagonal, and
    below its last row, it is zero, so that all four have the same length.
    """
    matrix, inverse = without_refcount((matrix, inverse))
    size = matrix.shape[0]
    factor = matrix.copy()
    if not factorise(factor):
        return False
    root = np.zeros((size + 3, size))
    for i in range(size):
        for j in range(0, i // 4 * 4, 4):
            a, b, c, d = factor[i, j], factor[i, j + 1], factor[i, j + 2], factor[i, j + 3]
            for k in range(j + 4):
                left = root[i, k] - a * root[j, k]
                left -= b * root[j + 1, k]
                left -= c * root[j + 2, k]
                root[i, k] = left - d * root[j + 3, k]
        for j in range(i // 4 * 4, i):
            share = factor[i, j]
            for k in range(j + 1):
                root[i, k] -= share * root[j, k]
        for k in range(i):
            root[i, k] /= factor[i, i]
        root[i, i] = 1.0 / factor[i, i]
    for i in range(size):
        for j in range(size):
            inverse[i, j] = 0.0
    for i in range(0, size, 4):
        for j in range(min(i + 4, size)):
            a, b, c, d = root[i, j], root[i + 1, j], root[i + 2, j], root[i + 3, j]
            for k in range(j + 1):
                total = inverse[j, k] + a * root[i, k]
                total += b * root[i + 1, k]
                total += c * root[i + 2, k]
                inverse[j, k] = total + d * root[i + 3, k]
    for i in range(size):
        for j in range(i):
            inverse[j, i] = inverse[i, j]
    return True


# ---------------------------------------------------------------------- score tests


@compiled
def score_variables(
    begins, active, probabilities, covariance, seen, shown, ends, explained, slopes, variances, results
):
    """Test variables by their indicators, of which a row has at most one; fill `results` (statistic, df).

    `seen` is indicator x pattern, `shown` indicator x level of the target but the reference. The indicators
    of a variable end where the next begin (`ends`, from 0). A df of -1 says that the variance, left in
    `variances` one variable after another, is too nearly singular to say how much of it is known; the
    slopes, in `slopes` in the same order, are then for the caller, and in place of the statistic stands the
    least variance that counts. Of variances the lower triangle is filled.
    """
    begins, active, probabilities = without_refcount((begins, active, probabilities))
    covariance, seen, shown, ends, results = without_refcount((covariance, seen, shown, ends, results))
    slopes, variances = without_refcount((slopes, variances))
    n_free, n_indicators = probabilities.shape[1], seen.shape[0]
    n_columns = covariance.shape[0] // max(1, n_free)
    own = np.zeros((n_free, n_free, n_indicators))
    slope = np.zeros((n_free, n_indicators))
    crossed = np.zeros((n_free * n_indicators, n_free * n_columns))
    _gather(begins, active, probabilities, seen, shown, own, slope, crossed)
    half = _times(crossed, covariance)
    at, at_slope = 0, 0
    for variable in range(len(results)):
        begin, width = ends[variable], ends[variable + 1] - ends[variable]
        size = n_free * width
        variance = without_refcount(variances[at : at + size * size])
        own_slopes = without_refcount(slopes[at_slope : at_slope + size])
        at += size * size
        at_slope += size
        for i in range(n_free):
            for c in range(width):
                own_slopes[i * width + c] = slope[i, begin + c]
                explains = without_refcount(half[i * n_indicators + begin + c])
                for j in range(i + 1):
                    for d in range(width if j < i else c + 1):
                        total = own[i, j, begin + c] if c == d else 0.0
                        total -= sum_of_products(crossed, j * n_indicators + begin + d, explains)
                        variance[(i * width + c) * size + j * width + d] = total
        largest = 0.0
        for i in range(n_free):
            for c in range(width):
                largest = max(largest, own[i, i, begin + c])
        _settle(variance.reshape((size, size)), own_slopes, explained * max(1.0, largest), results[variable])


@helper
def _gather(begins, active, probabilities, seen, shown, own, slope, crossed):
    """Add up slopes, their variances, and what they share with the columns of the regression.

    What two levels of the target share is the same from either: it is added up once.
    """
    begins, active, probabilities, seen = without_refcount((begins, active, probabilities, seen))
    shown, own, slope, crossed = without_refcount((shown, own, slope, crossed))
    n_patterns, n_free = probabilities.shape
    n_indicators, n_columns = seen.shape[0], crossed.shape[1] // n_free
    n_pairs = n_free * (n_free + 1) // 2
    spread, sums = np.empty(n_pairs), np.empty((n_columns, n_pairs))
    for c in range(n_indicators):
        for i in range(n_free):
            slope[i, c] = shown[c, i]
        for column in range(n_columns):
            for pair in range(n_pairs):
                sums[column, pair] = 0.0
        for p in range(n_patterns):
            n_rows = seen[c, p]
            if n_rows == 0.0:
                continue
            pair = 0
            for i in range(n_free):
                slope[i, c] -= n_rows * probabilities[p, i]
                for j in range(i + 1):
                    spread[pair] = -probabilities[p, i] * probabilities[p, j]
                    if i == j:
                        spread[pair] += probabilities[p, i]
                    spread[pair] *= n_rows
                    pair += 1
            for at in range(begins[p], begins[p + 1]):
                place = without_refcount(sums[active[at]])
                for pair in range(n_pairs):
                    place[pair] += spread[pair]
        pair = 0
        for i in range(n_free):
            for j in range(i + 1):
                # Column 0 is on in every pattern.
                own[i, j, c] = own[j, i, c] = sums[0, pair]
                for column in range(n_columns):
                    crossed[i * n_indicators + c, j * n_columns + column] = sums[column, pair]
                    crossed[j * n_indicators + c, i * n_columns + column] = sums[column, pair]
                pair += 1


@compiled
def score_gate(begins, active, owners, probabilities, covariance, counts, at_levels, gate, explained):
    """Test that all columns but the gate's have the same weights at all its levels: (statistic, df, rest).

    `counts` are by pattern, level of the target (the reference last) and position, of which some
    (`at_levels`) are those of the levels of the gate but one. As for variables, a df of -1 leaves it to
    others: the rest is then the lower triangle of the variance, and beside it a column of slopes.
    """
    begins, active, probabilities = without_refcount((begins, active, probabilities))
    covariance, owners, counts, at_levels = without_refcount((covariance, owners, counts, at_levels))
    n_free = probabilities.shape[1]
    n_levels, n_columns, width = len(at_levels), len(owners), 0
    number_of = np.empty(n_columns, dtype=np.int64)
    for c in range(n_columns):
        number_of[c] = -1
        if owners[c] != gate:
            number_of[c] = width
            width += 1
    size = n_free * n_levels * width
    slope, variance, crossed = np.zeros(size), np.zeros((size, size)), np.zeros((size, n_free * n_columns))
    _gather_gate(begins, active, probabilities, counts, at_levels, number_of, slope, variance, crossed)
    largest = 0.0
    for i in range(size):
        largest = max(largest, variance[i, i])
    _take_off(variance, crossed, covariance)
    result = np.empty(2)
    _settle(variance, slope, explained * max(1.0, largest), result)
    return result[0], result[1], _rest(variance, slope) if result[1] < 0 else np.empty((0, 1))


@helper
def _gather_gate(begins, active, probabilities, counts, at_levels, number_of, slope, variance, crossed):
    """Do as for variables, for the columns at each level of a gate; of the variance the lower triangle."""
    begins, active, probabilities = without_refcount((begins, active, probabilities))
    number_of, slope, variance, crossed = without_refcount((number_of, slope, variance, crossed))
    counts, at_levels = without_refcount((counts, at_levels))
    n_patterns, n_free = probabilities.shape
    n_levels, n_columns, size = len(at_levels), len(number_of), len(slope)
    width = size // max(1, n_free * n_levels)
    n_rows, shared = np.empty(n_patterns), _shared(begins, active)
    for level in range(n_levels):
        for p in range(n_patterns):
            n_rows[p] = 0.0
            for i in range(n_free + 1):
                n_rows[p] += counts[p, i, at_levels[level]]
            if n_rows[p] == 0.0:
                continue
            for i in range(n_free):
                left = counts[p, i, at_levels[level]] - n_rows[p] * probabilities[p, i]
                for at in range(begins[p], begins[p + 1]):
                    c = number_of[active[at]]
                    if c >= 0:
                        slope[(i * n_levels + level) * width + c] += left
        sums = _no_sums(n_free, n_columns)
        _add_information(begins, active, shared, n_rows, probabilities, sums)
        for column in range(n_columns):
            for below in range(column + 1):
                line = column * (column + 1) // 2 + below
                c, d, pair = number_of[column], number_of[below], 0
                for i in range(n_free):
                    for j in range(i + 1):
                        first, second = (i * n_levels + level) * width, (j * n_levels + level) * width
                        share = sums[line, pair]
                        pair += 1
                        if c >= 0:
                            crossed[first + c, j * n_columns + below] = share
                            crossed[second + c, i * n_columns + below] = share
                        if d >= 0:
                            crossed[first + d, j * n_columns + column] = share
                            crossed[second + d, i * n_columns + column] = share
                        if c >= 0 and d >= 0:
                            variance[first + c, second + d] = share
                            if j < i:
                                variance[first + d, second + c] = share


@helper
def _times(left, right):
    """Return the product of two matrices, rows of the right one by fours."""
    left, right = without_refcount((left, right))
    n, n_columns = left.shape[1], right.shape[1]
    product = np.zeros((left.shape[0], n_columns))
    for i in range(left.shape[0]):
        row = without_refcount(product[i])
        for k in range(0, n // 4 * 4, 4):
            a, b, c, d = left[i, k], left[i, k + 1], left[i, k + 2], left[i, k + 3]
            if a == 0.0 and b == 0.0 and c == 0.0 and d == 0.0:
                continue
            for j in range(n_columns):
                total = row[j] + a * right[k, j]
                total += b * right[k + 1, j]
                total += c * right[k + 2, j]
                row[j] = total + d * right[k + 3, j]
        for k in range(n // 4 * 4, n):
            share = left[i, k]
            for j in range(n_columns):
                row[j] += share * right[k, j]
    return product


@helper
def _take_off(variance, crossed, covariance):
    """Take off what the columns of the regression explain, from the lower triangle."""
    variance, crossed = without_refcount((variance, crossed))
    # It has no other owner, and must be there until the last product.
    half = _times(crossed, covariance)
    for i in range(crossed.shape[0]):
        row = without_refcount(half[i])
        for j in range(i + 1):
            variance[i, j] -= sum_of_products(crossed, j, row)


@helper
def _rest(variance, slope):
    """Put slopes beside the lower triangle of their variance, without those that no row has a part in."""
    n_chosen, chosen = 0, np.empty(len(slope), dtype=np.int64)
    for i in range(len(slope)):
        if variance[i, i] != 0.0:
            chosen[n_chosen] = i
            n_chosen += 1
    rest = np.zeros((n_chosen, n_chosen + 1))
    for i in range(n_chosen):
        for j in range(i + 1):
            rest[i, j] = variance[chosen[i], chosen[j]]
        rest[i, n_chosen] = slope[chosen[i]]
    return rest


@helper
def _settle(variance, slope, least, result):
    """Divide slopes by their variance where all of it is surely larger than the least.

    Slopes that no row has a part in, and those that repeat others but for rounding, are left out. The
    smallest eigenvalue of the others is at least one over the sum of squares of the factor's inverse. Only
    the lower triangle of the variance is read.
    """
    variance, slope, result = without_refcount((variance, slope, result))
    size, n_chosen = len(slope), 0
    chosen = np.empty(size, dtype=np.int64)
    for i in range(size):
        if variance[i, i] != 0.0:
            chosen[n_chosen] = i
            n_chosen += 1
    factor = np.empty((n_chosen, n_chosen))
    for i in range(n_chosen):
        for j in range(i + 1):
            factor[i, j] = variance[chosen[i], chosen[j]]
    result[0], result[1] = least, -1.0
    n_known = _factorise_known(factor, chosen, least)
    if n_known < 0:
        return
    inverse = np.zeros((n_chosen, n_chosen))
    total, squares = 0.0, 0.0
    for i in range(n_chosen):
        if chosen[i] < 0:
            continue
        for j in range(i):
            if chosen[j] >= 0:
                share = factor[i, j]
                for k in range(j + 1):
                    inverse[i, k] -= share * inverse[j, k]
        inverse[i, i] = 1.0
        value = 0.0
        for k in range(i + 1):
            inverse[i, k] /= factor[i, i]
            squares += inverse[i, k] * inverse[i, k]
            if chosen[k] >= 0:
                value += inverse[i, k] * slope[chosen[k]]
        total += value * value
    if squares * least <= 0.5:
        result[0], result[1] = total, n_known


@helper
def _factorise_known(factor, chosen, least):
    """Factorise without what repeats others but for rounding, which is no longer kept (-1).

    Returns how many are left, or -1 where something is neither that nor surely more than the least.
    """
    factor, chosen = without_refcount((factor, chosen))
    size, n_known = factor.shape[0], 0
    column = np.empty(size)
    for k in range(size):
        pivot = factor[k, k]
        if abs(pivot) <= _ROUNDING * least:
            chosen[k] = -1
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


# ---------------------------------------------------------------------- functions of one column


@inlined
def _group_rows(codes, starts, order):
    """Order rows by their code: those of code k come from starts[k] up to starts[k + 1]."""
    n_codes = starts.shape[0] - 1
    for k in range(n_codes + 1):
        starts[k] = 0
    for row in range(codes.shape[0]):
        starts[codes[row]] += 1
    end = 0
    for k in range(n_codes):
        end += starts[k]
        starts[k] = end
    starts[n_codes] = end
    for row in range(codes.shape[0] - 1, -1, -1):
        starts[codes[row]] -= 1
        order[starts[codes[row]]] = row


@inlined
def _count_broken(codes, counts, starts, order, limit, seen):
    """Return the rows outside the largest count of each group, or -1 where they exceed the limit.

    `seen` is zero for every code, before and after.
    """
    broken = 0
    for k in range(starts.shape[0] - 1):
        total, most = 0, 0
        begin, at = starts[k], starts[k]
        # A further row adds its count to the total, and at most that to the largest count.
        while at < starts[k + 1] and broken + total - most <= limit:
            row = order[at]
            total += counts[row]
            seen[codes[row]] += counts[row]
            most = max(most, seen[codes[row]])
            at += 1
        for place in range(begin, at):
            seen[codes[order[place]]] = 0
        broken += total - most
        if broken > limit:
            return -1
    return broken


@compiled
def count_broken(codes, counts, n_levels, is_source, limits, broken):
    """Fill `broken` (source, column) with the rows that break the best function of the source.

    It is left as it is where they exceed the limit of the column, where that limit is negative, and where
    the source is none. Codes are (columns, rows) and each row is worth its count. Most pairs are given up
    after few rows, if these come in no order.
    """
    codes, counts, n_levels = without_refcount((codes, counts, n_levels))
    n_columns, n_rows = codes.shape
    order = np.empty(n_rows, dtype=np.int64)
    most_levels = 0
    for column in range(n_columns):
        most_levels = max(most_levels, n_levels[column])
    starts = np.empty(most_levels + 1, dtype=np.int64)
    seen = np.zeros(most_levels, dtype=np.int64)
    for source in range(n_columns):
        if not is_source[source]:
            continue
        groups = starts[: n_levels[source] + 1]
        _group_rows(codes[source], groups, order)
        for column in range(n_columns):
            if column != source and limits[column] >= 0:
                found = _count_broken(codes[column], counts, groups, order, limits[column], seen)
                if found >= 0:
                    broken[source, column] = found
