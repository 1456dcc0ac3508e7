"""Regressions of a column on others: logistic ones on counted patterns, and functions of one column.

A pattern is a set of rows alike in the variables of a regression. The columns of the design that are on in it
are `active[begins[pattern]:begins[pattern + 1]]`; column 0 is on in all. `counts` is pattern x level of the
target. Fits are by Newton's method, and tested by likelihood ratio; what a fit does not have is tested by
score.
"""

import numpy as np

from unless.kernels.algebra import exp_all, factorise, log_all, substitute, sum_of_products
from unless.kernels.compiling import compiled, helper, inlined, log, upward, without_refcount
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
    # Numbers of combinations and one more: 0 has no column.
    combination = np.empty((n_terms, n_patterns), dtype=np.int64)
    column_of = np.zeros((n_terms, most + 1), dtype=np.int64)
    n_columns = 1
    for term in range(n_terms):
        numbers, own = without_refcount(combination[term]), without_refcount(column_of[term])
        for pattern in upward(0, n_patterns):
            numbers[pattern] = 1
        for part in range(terms.shape[1]):
            variable = terms[term, part]
            if variable >= 0:
                column, size = without_refcount(codes[variable]), sizes[variable]
                reference = references[variable]
                for pattern in upward(0, n_patterns):
                    code, number = column[np.uint64(example[pattern])], numbers[pattern]
                    is_off = code == reference or number == 0
                    numbers[pattern] = 0 if is_off else (number - 1) * size + code + 1
        for pattern in upward(0, n_patterns):
            own[np.uint64(numbers[pattern])] = 1
        own[0] = 0
        for number in range(1, most + 1):
            if own[number]:
                own[number] = n_columns
                n_columns += 1
    owners, levels = np.empty(n_columns, dtype=np.int64), np.empty(n_columns, dtype=np.int64)
    owners[0] = levels[0] = -1
    for term in range(n_terms):
        for number in range(1, most + 1):
            if column_of[term, number]:
                owners[column_of[term, number]] = term
                levels[column_of[term, number]] = number - 1
    begins = np.empty(n_patterns + 1, dtype=np.int64)
    # Every column is written where the next one belongs, and counted if it is one: to ask would take longer.
    active = np.empty(n_patterns * (n_terms + 1) + 1, dtype=np.int64)
    n_active = np.uint64(0)
    for pattern in upward(0, n_patterns):
        begins[pattern] = n_active
        active[n_active] = 0
        n_active += np.uint64(1)
        for term in range(n_terms):
            column = column_of[term, np.uint64(combination[term, pattern])]
            active[n_active] = column
            n_active += np.uint64(column > 0)
    begins[n_patterns] = n_active
    return begins, active[:n_active].copy(), owners, levels


@compiled
def count_indicators(codes, weights, target, terms, sizes, offsets, numbers, ends, counts):
    """Add up the weights of rows by indicator (see `score_terms`) and by level of the target."""
    codes, weights, terms, sizes = without_refcount((codes, weights, terms, sizes))
    offsets, numbers, ends, counts = without_refcount((offsets, numbers, ends, counts))
    n_rows, n_levels, shown = codes.shape[1], np.uint64(counts.shape[1]), without_refcount(codes[target])
    rows, combined = np.arange(n_rows), np.empty(n_rows, dtype=np.int64)
    last_copy = np.uint64(_COPIES - 1)
    for term in range(terms.shape[0]):
        width = ends[term + 1] - ends[term]
        # What has no indicator is counted in a last one. Rows that follow each other are mostly alike: in one
        # sum each addition would wait for the one before.
        size = np.uint64(width + 1) * n_levels
        sums, number_of = np.zeros(_COPIES * size), without_refcount(numbers[offsets[term] :])
        _combine_codes(codes, rows, terms[term], sizes, combined)
        for row in upward(0, n_rows):
            number = np.uint64(number_of[np.uint64(combined[row])])
            sums[(row & last_copy) * size + number * n_levels + np.uint64(shown[row])] += weights[row]
        for copy in range(_COPIES):
            for number in range(width):
                for level in range(counts.shape[1]):
                    place = (copy * (width + 1) + number) * counts.shape[1] + level
                    counts[ends[term] + number, level] += sums[place]


@helper
def _combine_codes(codes, rows, term, sizes, combined):
    """Give the combination of levels that each of some rows has of a term a number."""
    codes, rows, term, combined = without_refcount((codes, rows, term, combined))
    place = 1
    for part in range(len(term) - 1, -1, -1):
        if term[part] < 0:
            continue
        column = without_refcount(codes[term[part]])
        if place == 1:
            for i in upward(0, len(rows)):
                combined[i] = column[np.uint64(rows[i])]
        else:
            for i in upward(0, len(rows)):
                combined[i] += place * column[np.uint64(rows[i])]
        place *= sizes[term[part]]


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

    The first level of `counts` (level x pattern) is the reference. The information is over the levels and in
    each of them the columns, with `ridge` (one for each column) on its diagonal; of it the lower triangle is
    filled, at the last weights if it is wanted.
    """
    begins, active, counts, ridge, weights = without_refcount((begins, active, counts, ridge, weights))
    matrix, plain = without_refcount((matrix, plain))
    n_free, n_columns = weights.shape
    tree, n_rows = _tree(begins, active), _rows_of_patterns(counts)
    probabilities, room = np.empty((n_free, counts.shape[1])), _room(tree)
    size = n_free * n_columns
    slope = np.empty(size)
    step = np.empty(size)
    before = np.empty((n_free, n_columns))
    factor = np.empty((size, size))
    likelihood = _predict(tree, counts, n_rows, weights, probabilities, room)
    value = likelihood - _penalty(ridge, weights)
    if value < plain[n_free]:
        for k in range(n_free):
            for c in range(n_columns):
                weights[k, c] = 0.0
            weights[k, 0] = plain[k]
        likelihood = _predict(tree, counts, n_rows, weights, probabilities, room)
        value = likelihood - _penalty(ridge, weights)
    gain, gain_before, is_factorised = 0.0, 0.0, False
    for _ in range(_MAX_ROUNDS):
        _slopes(tree, counts, n_rows, ridge, weights, probabilities, room, slope)
        is_fresh = not is_factorised
        if is_factorised:
            gain = _solve(factor, slope, step)
            is_fresh = gain > _STALE * gain_before
        if is_fresh:
            _curve(begins, active, tree, n_rows, ridge, probabilities, matrix)
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
            likelihood = _predict(tree, counts, n_rows, weights, probabilities, room)
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
        _curve(begins, active, tree, n_rows, ridge, probabilities, matrix)
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
    tree, n_rows = _tree(begins, active), _rows_of_patterns(counts)
    probabilities = np.empty((weights.shape[0], counts.shape[1]))
    _fill_probabilities(tree, weights, probabilities, _room(tree))
    _curve(begins, active, tree, n_rows, ridge, probabilities, matrix)


@helper
def _tree(begins, active):
    """Make patterns the paths of a tree: those that begin alike share the nodes of what is alike.

    Patterns are in order, so that most begin as the one before. What all patterns below a node share is added
    up once. Returns how many nodes each pattern shares with the one before, the parent and the column of each
    node, and the last node of each pattern. A parent comes before its children; node 0, which is on in all,
    is its own.
    """
    begins, active = without_refcount((begins, active))
    n_patterns = len(begins) - 1
    shared, leaves = np.zeros(n_patterns, dtype=np.int64), np.empty(n_patterns, dtype=np.int64)
    parents, columns = np.empty(len(active), dtype=np.int64), np.empty(len(active), dtype=np.int64)
    path, n_nodes, width = np.zeros(_most_active(begins) + 1, dtype=np.int64), 0, 0
    for pattern in range(n_patterns):
        begin, before, n = begins[pattern], begins[pattern] - width, 0
        most = min(width, begins[pattern + 1] - begin)
        while n < most and active[before + n] == active[begin + n]:
            n += 1
        shared[pattern], width = n, begins[pattern + 1] - begin
        for depth in range(n, width):
            parents[n_nodes], columns[n_nodes] = path[depth], active[begin + depth]
            path[depth + 1] = n_nodes
            n_nodes += 1
        leaves[pattern] = path[width]
    return shared, parents[:n_nodes], columns[:n_nodes], leaves


@helper
def _room(tree):
    """Make room for a number at each node, and for two at each pattern."""
    return np.empty(len(tree[1])), np.empty((2, len(tree[0])))


@helper
def _rows_of_patterns(counts):
    counts = without_refcount(counts)
    n_rows = np.zeros(counts.shape[1])
    for k in range(counts.shape[0]):
        for pattern in range(counts.shape[1]):
            n_rows[pattern] += counts[k, pattern]
    return n_rows


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
def _predict(tree, counts, n_rows, weights, probabilities, room):
    """Fill the probabilities of levels but the reference (level x pattern); return the log-likelihood."""
    counts, n_rows, probabilities = without_refcount((counts, n_rows, probabilities))
    total, norms = 0.0, without_refcount(room[1][0])
    _add_weights(tree, weights, probabilities, room)
    for k in range(weights.shape[0]):
        total += sum_of_products(counts, k + 1, without_refcount(probabilities[k]))
    _normalise(probabilities, room)
    tops, logs = without_refcount(room[1][1]), room[1]
    log_all(norms)
    for pattern in upward(0, len(n_rows)):
        norms[pattern] += tops[pattern]
    return total - sum_of_products(logs, 0, n_rows)


@helper
def _fill_probabilities(tree, weights, probabilities, room):
    """Fill the probabilities of levels but the reference (level x pattern)."""
    _add_weights(tree, weights, probabilities, room)
    _normalise(probabilities, room)


@helper
def _add_weights(tree, weights, sums, room):
    """Fill the sum of the weights of each level of each pattern."""
    parents, columns, leaves = without_refcount(tree[1]), without_refcount(tree[2]), without_refcount(tree[3])
    weights, sums, at_nodes = without_refcount(weights), without_refcount(sums), without_refcount(room[0])
    for k in range(weights.shape[0]):
        own, of_level = without_refcount(weights[k]), without_refcount(sums[k])
        at_nodes[0] = own[0]
        for node in upward(1, len(parents)):
            at_nodes[node] = at_nodes[np.uint64(parents[node])] + own[np.uint64(columns[node])]
        for pattern in upward(0, len(leaves)):
            of_level[pattern] = at_nodes[np.uint64(leaves[pattern])]


@helper
def _normalise(sums, room):
    """Replace the sums of weights by probabilities; fill what they are divided by, and the largest sums."""
    sums, norms, tops = without_refcount(sums), without_refcount(room[1][0]), without_refcount(room[1][1])
    n_patterns = len(norms)
    for pattern in upward(0, n_patterns):
        tops[pattern] = 0.0
    for k in range(sums.shape[0]):
        of_level = without_refcount(sums[k])
        for pattern in upward(0, n_patterns):
            tops[pattern] = max(tops[pattern], of_level[pattern])
    for pattern in upward(0, n_patterns):
        norms[pattern] = -tops[pattern]
    exp_all(norms)
    for k in range(sums.shape[0]):
        of_level = without_refcount(sums[k])
        for pattern in upward(0, n_patterns):
            of_level[pattern] -= tops[pattern]
    exp_all(sums.reshape(sums.size))
    for k in range(sums.shape[0]):
        of_level = without_refcount(sums[k])
        for pattern in upward(0, n_patterns):
            norms[pattern] += of_level[pattern]
    for k in range(sums.shape[0]):
        of_level = without_refcount(sums[k])
        for pattern in upward(0, n_patterns):
            of_level[pattern] /= norms[pattern]


@helper
def _slopes(tree, counts, n_rows, ridge, weights, probabilities, room, slope):
    parents, columns, leaves = without_refcount(tree[1]), without_refcount(tree[2]), without_refcount(tree[3])
    counts, n_rows, ridge = without_refcount((counts, n_rows, ridge))
    weights, probabilities, slope = without_refcount((weights, probabilities, slope))
    at_nodes, n_nodes, n_columns = without_refcount(room[0]), len(parents), weights.shape[1]
    for k in range(weights.shape[0]):
        own = without_refcount(slope[k * n_columns : (k + 1) * n_columns])
        counted, expected = without_refcount(counts[k + 1]), without_refcount(probabilities[k])
        for c in range(n_columns):
            own[c] = -ridge[c] * weights[k, c]
        for node in upward(0, n_nodes):
            at_nodes[node] = 0.0
        for pattern in upward(0, len(leaves)):
            left = counted[pattern] - n_rows[pattern] * expected[pattern]
            at_nodes[np.uint64(leaves[pattern])] += left
        # From the last to the first: what is below a node is added up before it.
        for place in upward(1, n_nodes):
            node = np.uint64(n_nodes) - place
            left = at_nodes[node]
            at_nodes[np.uint64(parents[node])] += left
            own[np.uint64(columns[node])] += left
        own[0] += at_nodes[0]


@helper
def _curve(begins, active, tree, n_rows, ridge, probabilities, matrix):
    """Fill the lower triangle of the information."""
    ridge, probabilities, matrix = without_refcount((ridge, probabilities, matrix))
    n_free, n_columns = probabilities.shape[0], len(ridge)
    sums = _no_sums(n_free, n_columns)
    _add_information(begins, active, tree[0], n_rows, probabilities, sums)
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
    n_free, n_pairs = probabilities.shape[0], sums.shape[1]
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
            if n_pairs == 1:
                one = run[0]
                for under in upward(begin, begin + depth):
                    sums[np.uint64(line + active[under]), 0] += one
            elif n_pairs == 3:
                one, two, three = run[0], run[1], run[2]
                for under in upward(begin, begin + depth):
                    place_of = np.uint64(line + active[under])
                    sums[place_of, 0] += one
                    sums[place_of, 1] += two
                    sums[place_of, 2] += three
            else:
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
            share = n_rows[pattern] * probabilities[k, pattern]
            for other in range(k):
                runs[n_open, pair + other] -= share * probabilities[other, pattern]
            runs[n_open, pair + k] += share - share * probabilities[k, pattern]
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
    by_level, tree = np.empty((by_column.shape[1], len(begins) - 1)), _tree(begins, active)
    _fill_probabilities(tree, by_column.T.copy(), by_level, _room(tree))
    for pattern in range(by_level.shape[1]):
        for k in range(by_level.shape[0]):
            probabilities[pattern, k] = by_level[k, pattern]


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
    """Return the counts of the levels that are shown, in their order: level x pattern."""
    counts, shown = without_refcount((counts, shown))
    taken = np.empty((len(shown), counts.shape[0]))
    for pattern in range(counts.shape[0]):
        for k in range(len(shown)):
            taken[k, pattern] = counts[pattern, shown[k]]
    return taken


@helper
def _plain(counts):
    """Return the weights of column 0 alone, and last how good they are."""
    counts = without_refcount(counts)
    n_levels = counts.shape[0]
    totals, every = np.zeros(n_levels), 0.0
    for k in range(n_levels):
        for pattern in range(counts.shape[1]):
            totals[k] += counts[k, pattern]
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
    """Fill the inverse; False where the matrix is not positive definite."""
    matrix, inverse = without_refcount((matrix, inverse))
    size = matrix.shape[0]
    factor = matrix.copy()
    if not factorise(factor):
        return False
    root = _inverse_of_factor(factor)
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


@helper
def _inverse_of_factor(factor):
    """Return the inverse of a factor, and three rows of zeros below it.

    Its rows are taken by fours, one product after the other. Beyond its diagonal it is zero, so that all four
    have the same length.
    """
    factor = without_refcount(factor)
    size = factor.shape[0]
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
    return root


# ---------------------------------------------------------------------- score tests


@compiled
def score_terms(
    begins, active, probabilities, covariance, codes, rows, weights, which, terms, sizes, offsets, numbers,
    ends, counts, levels, explained, slopes, variances, results,
):  # fmt: skip
    """Test terms by their indicators, of which a row has at most one; fill `results` (statistic, df).

    `which` is the pattern of each of some rows of `codes` (variable x row). A term is a row of `terms`: up to
    three variables, -1 where there are fewer. `numbers`, from the offset of a term, has for each combination
    of its levels the number of its indicator, counted from 0 for each term, or how many there are where it
    has none. The indicators of a term end where the next begin (`ends`, from 0). `counts` are by indicator
    and level of the target; `levels` are those that the regression has, the reference first.

    A df of -1 says that the variance, left in `variances` one term after another, is too nearly singular to
    say how much of it is known; the slopes, in `slopes` in the same order, are then for the caller, and in
    place of the statistic stands the least variance that counts. Of variances the lower triangle is filled.
    """
    begins, active, probabilities = without_refcount((begins, active, probabilities))
    codes, rows, weights, which, terms = without_refcount((codes, rows, weights, which, terms))
    covariance, ends, counts, results = without_refcount((covariance, ends, counts, results))
    slopes, variances, numbers = without_refcount((slopes, variances, numbers))
    n_free, n_indicators, n_rows = probabilities.shape[1], ends[-1], len(rows)
    n_columns = covariance.shape[0] // max(1, n_free)
    own = np.zeros((n_free, n_free, n_indicators))
    slope = np.zeros((n_free, n_indicators))
    crossed = np.zeros((n_free * n_indicators, n_free * n_columns))
    width = 0
    for term in range(len(results)):
        width = max(width, ends[term + 1] - ends[term])
    order = _by_pattern(which, len(probabilities) if _is_wide(n_rows, len(probabilities), width) else 0)
    spreads, combined = _spreads(probabilities), np.empty(n_rows, dtype=np.int64)
    # The lists of a term have room for one more than they hold.
    room = max(n_rows, width) + 1
    listed, amounts = np.empty(room, dtype=np.int64), np.empty(room)
    starts = np.empty(width + 2, dtype=np.int64)
    for term in range(len(results)):
        first, width = ends[term], ends[term + 1] - ends[term]
        if len(probabilities) == 1:
            # All rows are of one pattern, and counted already.
            for c in range(width):
                starts[c], listed[c], amounts[c] = c, 0, 0.0
                for level in range(counts.shape[1]):
                    amounts[c] += counts[first + c, level]
            starts[width] = width
        else:
            _combine_codes(codes, rows, terms[term], sizes, combined)
            number_of = without_refcount(numbers[offsets[term] :])
            for i in upward(0, n_rows):
                combined[i] = number_of[np.uint64(combined[i])]
            _list_patterns(
                combined, rows, weights, which, order, len(probabilities), width, starts, listed, amounts
            )
        for c in range(width):
            for i in range(n_free):
                slope[i, first + c] = counts[first + c, levels[i + 1]]
            _gather(
                begins, active, probabilities, spreads, without_refcount(listed[starts[c] : starts[c + 1]]),
                without_refcount(amounts[starts[c] : starts[c + 1]]), first + c, own, slope, crossed,
            )  # fmt: skip
    half = _times(crossed, covariance)
    at, at_slope = 0, 0
    for term in range(len(results)):
        begin, width = ends[term], ends[term + 1] - ends[term]
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
        _settle(variance.reshape((size, size)), own_slopes, explained * max(1.0, largest), results[term])


@helper
def _spreads(probabilities):
    """Return what a row of each pattern tells of each pair of levels: pattern x pair, and zeros."""
    probabilities = without_refcount(probabilities)
    n_patterns, n_free = probabilities.shape
    n_pairs = n_free * (n_free + 1) // 2
    # One number, or fours of them, which are added at once.
    spreads = np.zeros((n_patterns, 1 if n_pairs == 1 else (n_pairs + 3) // 4 * 4))
    for pattern in range(n_patterns):
        pair = 0
        for i in range(n_free):
            for j in range(i):
                spreads[pattern, pair + j] = -probabilities[pattern, i] * probabilities[pattern, j]
            share = probabilities[pattern, i]
            spreads[pattern, pair + i] = share - share * share
            pair += i + 1
    return spreads


@helper
def _by_pattern(which, n_patterns):
    """Return the order of rows by their pattern, in no order if there are none."""
    which = without_refcount(which)
    if n_patterns == 0:
        return which
    starts, order = np.zeros(n_patterns + 1, dtype=np.int64), np.empty(len(which), dtype=np.int64)
    for i in range(len(which)):
        starts[which[i] + 1] += 1
    for pattern in range(n_patterns):
        starts[pattern + 1] += starts[pattern]
    for i in range(len(which)):
        order[starts[which[i]]] = i
        starts[which[i]] += 1
    return order


@inlined
def _is_wide(n_rows, n_patterns, width):
    """Tell whether it is more to do to add up rows of a pattern than to take each by itself."""
    return n_patterns * (width + 1) > n_rows


@helper
def _list_patterns(indicators, rows, weights, which, order, n_patterns, width, starts, listed, amounts):
    """List the patterns of the rows that have each of some indicators, and what these rows weigh.

    What belongs to one indicator ends where the next starts. Rows of a pattern are added up where that is
    less to do.
    """
    indicators, rows, weights, which = without_refcount((indicators, rows, weights, which))
    order, starts, listed, amounts = without_refcount((order, starts, listed, amounts))
    n_rows = len(rows)
    if not _is_wide(n_rows, n_patterns, width):
        # Rows that follow each other are mostly alike: in one sum each addition would wait for the last.
        size, last_copy = np.uint64((width + 1) * n_patterns), np.uint64(_COPIES - 1)
        sums, n = np.zeros(_COPIES * size), np.uint64(0)
        for i in upward(0, n_rows):
            place = (i & last_copy) * size + np.uint64(indicators[i] * n_patterns + which[i])
            sums[place] += weights[np.uint64(rows[i])]
        for c in range(width):
            starts[c] = n
            for pattern in upward(0, n_patterns):
                place = np.uint64(c * n_patterns) + pattern
                amount = (sums[place] + sums[place + size]) + (
                    sums[place + 2 * size] + sums[place + 3 * size]
                )
                listed[n], amounts[n] = pattern, amount
                n += np.uint64(amount != 0.0)
        starts[width] = n
        return
    for c in range(width + 2):
        starts[c] = 0
    for i in upward(0, n_rows):
        starts[np.uint64(indicators[i] + 1)] += 1
    for c in range(width):
        starts[c + 1] += starts[c]
    # While they are filled in, each starts where it has got to: at last where the next one starts.
    for place in upward(0, n_rows):
        i = np.uint64(order[place])
        c = np.uint64(indicators[i])
        listed[np.uint64(starts[c])], amounts[np.uint64(starts[c])] = which[i], weights[np.uint64(rows[i])]
        starts[c] += 1
    for c in range(width, 0, -1):
        starts[c] = starts[c - 1]
    starts[0] = 0


@helper
def _gather(begins, active, probabilities, spreads, listed, amounts, indicator, own, slope, crossed):
    """Add up the slopes of an indicator, their variances, and what they share with the regression's columns.

    What two levels of the target share is the same from either: it is added up once.
    """
    begins, active, probabilities, spreads = without_refcount((begins, active, probabilities, spreads))
    listed, amounts = without_refcount((listed, amounts))
    own, slope, crossed = without_refcount((own, slope, crossed))
    n_free, n_numbers = probabilities.shape[1], spreads.shape[1]
    n_indicators, n_columns = slope.shape[1], crossed.shape[1] // n_free
    sums, spread = np.zeros(n_columns * n_numbers), np.empty(n_numbers)
    for place in range(len(listed)):
        pattern, amount = listed[place], amounts[place]
        for i in range(n_free):
            slope[i, indicator] -= amount * probabilities[pattern, i]
        for pair in range(n_numbers):
            spread[pair] = amount * spreads[pattern, pair]
        _add_to_lines(sums, active, begins[pattern], begins[pattern + 1], spread)
    pair = 0
    for i in range(n_free):
        for j in range(i + 1):
            # Column 0 is on in every pattern.
            own[i, j, indicator] = own[j, i, indicator] = sums[pair]
            for column in range(n_columns):
                share = sums[column * n_numbers + pair]
                crossed[i * n_indicators + indicator, j * n_columns + column] = share
                crossed[j * n_indicators + indicator, i * n_columns + column] = share
            pair += 1


@inlined
def _add_to_lines(sums, lines, begin, end, numbers):
    """Add numbers to some lines of sums: one number, or fours of them, which are added at once."""
    size, one, two, three = np.uint64(len(numbers)), np.uint64(1), np.uint64(2), np.uint64(3)
    if len(numbers) == 1:
        a = numbers[0]
        for at in upward(begin, end):
            sums[np.uint64(lines[at])] += a
        return
    for first in range(0, len(numbers), 4):
        a, b, c, d = numbers[first], numbers[first + 1], numbers[first + 2], numbers[first + 3]
        for at in upward(begin, end):
            place = np.uint64(lines[at]) * size + np.uint64(first)
            sums[place] += a
            sums[place + one] += b
            sums[place + two] += c
            sums[place + three] += d


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
    n_rows, shared, by_level = np.empty(n_patterns), _tree(begins, active)[0], probabilities.T.copy()
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
        _add_information(begins, active, shared, n_rows, by_level, sums)
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
    result[0], result[1] = least, -1.0
    factor = _chosen_part(variance, chosen, n_chosen)
    if not (factorise(factor) and _is_known(factor, least)):
        factor = _chosen_part(variance, chosen, n_chosen)
        n_known = _factorise_known(factor, chosen[:n_chosen], least)
        if n_known < 0:
            return
        kept, n_chosen = np.empty(n_known, dtype=np.int64), 0
        for i in range(factor.shape[0]):
            if chosen[i] >= 0:
                kept[n_chosen], chosen[n_chosen] = i, chosen[i]
                n_chosen += 1
        factor = _chosen_part(factor, kept, n_known)
    root = _inverse_of_factor(factor)
    total, squares = 0.0, 0.0
    for i in range(n_chosen):
        value = 0.0
        for k in range(i + 1):
            squares += root[i, k] * root[i, k]
            value += root[i, k] * slope[chosen[k]]
        total += value * value
    if squares * least <= 0.5:
        result[0], result[1] = total, n_chosen


@helper
def _chosen_part(matrix, chosen, n_chosen):
    """Return the lower triangle of some rows and columns."""
    matrix, chosen = without_refcount((matrix, chosen))
    part = np.empty((n_chosen, n_chosen))
    for i in range(n_chosen):
        for j in range(i + 1):
            part[i, j] = matrix[chosen[i], chosen[j]]
    return part


@inlined
def _is_known(factor, least):
    """Tell whether all pivots were surely larger than the least."""
    smallest = np.inf
    for i in range(factor.shape[0]):
        smallest = min(smallest, factor[i, i] * factor[i, i])
    return smallest > least


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
