"""Regressions in strata: distinct values of a blanket, what is counted with each, and tests of weights."""

import numpy as np

from unless.kernels.algebra import factorise, substitute
from unless.kernels.compiling import compiled, helper, inlined, upward, without_refcount

# Values are renumbered when there could be more than so many of them for each row.
_SLOTS = 4


@compiled
def find_patterns(codes, rows, weights, blanket, sizes, references, target):
    """Give numbers to the values of a blanket: return which, begins, active, counts, owners and levels.

    `codes` is variable x row. `which` says for each row which pattern it has. Each level that a variable of
    the blanket shows, but one, has a column; `owners` and `levels` say whose. Those that are on in a pattern
    are `active[begins[pattern]:begins[pattern + 1]]`, the first of them 0, which is on in all. `counts` is
    pattern x level of the target.
    """
    codes, rows, weights, blanket = without_refcount((codes, rows, weights, blanket))
    sizes, references = without_refcount((sizes, references))
    n_rows, most, n_columns = len(rows), 1, 1
    for place in range(len(blanket)):
        most = max(most, sizes[blanket[place]])
        n_columns += sizes[blanket[place]] - 1
    which = np.empty(n_rows, dtype=np.int64)
    room = np.empty(max(_SLOTS, most) * n_rows + most, dtype=np.int64)
    n_patterns = _number(codes, rows, blanket, sizes, which, room)
    owners, levels = np.empty(n_columns, dtype=np.int64), np.empty(n_columns, dtype=np.int64)
    begins = np.empty(n_patterns + 1, np.int64)
    active = np.empty(n_patterns * (len(blanket) + 1) + 1, np.int64)
    counts, shown = np.zeros((n_patterns, sizes[target])), without_refcount(codes[target])
    example = np.empty(n_patterns, dtype=np.int64)
    for i in range(n_rows):
        counts[which[i], shown[rows[i]]] += weights[rows[i]]
        example[which[i]] = rows[i]
    column_of = np.empty((len(blanket), most), dtype=np.int64)
    n_columns = _lay_out(codes, example, blanket, references, column_of, owners, levels, begins, active)
    return which, begins, active, counts, owners[:n_columns].copy(), levels[:n_columns].copy()


@helper
def _number(codes, rows, blanket, sizes, which, table):
    """Give the distinct values of a blanket in some rows numbers, in their order; return how many.

    `table` has room for a place for each row and level of the largest variable.
    """
    which, table = without_refcount((which, table))
    n_rows, n_patterns = len(rows), 1
    for i in range(n_rows):
        which[i] = 0
    for place in range(len(blanket)):
        size, column = sizes[blanket[place]], without_refcount(codes[blanket[place]])
        if n_patterns * size > len(table):
            n_patterns = _renumber(which, table, n_patterns)
        for i in range(n_rows):
            which[i] = which[i] * size + column[rows[i]]
        n_patterns *= size
    return _renumber(which, table, n_patterns)


@inlined
def _renumber(which, table, n_places):
    """Leave out the places that no row has."""
    for place in range(n_places):
        table[place] = 0
    for i in range(len(which)):
        table[which[i]] = 1
    n_patterns = 0
    for place in range(n_places):
        if table[place]:
            table[place] = n_patterns
            n_patterns += 1
    for i in range(len(which)):
        which[i] = table[which[i]]
    return n_patterns


@helper
def _lay_out(codes, example, blanket, references, column_of, owners, levels, begins, active):
    """Give a column to each level that a variable of the blanket shows but one; return how many there are.

    `example` is a row of each pattern; `column_of` (place x level) is filled, with 0 where there is none.
    """
    example, column_of = without_refcount((example, column_of))
    owners, levels, begins, active = without_refcount((owners, levels, begins, active))
    n_patterns, n_levels, n_columns = len(example), column_of.shape[1], 1
    owners[0] = levels[0] = -1
    for place in range(len(blanket)):
        variable = blanket[place]
        column = without_refcount(codes[variable])
        for level in range(n_levels):
            column_of[place, level] = 0
        for pattern in range(n_patterns):
            column_of[place, column[example[pattern]]] = 1
        reference = references[variable]
        if column_of[place, reference] == 0:
            reference = 0
            while column_of[place, reference] == 0:
                reference += 1
        column_of[place, reference] = 0
        for level in range(n_levels):
            if column_of[place, level] == 1:
                column_of[place, level] = n_columns
                owners[n_columns], levels[n_columns] = variable, level
                n_columns += 1
    # Every column is written where the next one belongs, and counted if it is one: to ask would take longer.
    n_active = np.uint64(0)
    for pattern in upward(0, n_patterns):
        begins[pattern] = n_active
        active[n_active] = 0
        n_active += np.uint64(1)
        row = np.uint64(example[pattern])
        for place in range(len(blanket)):
            column_on = column_of[place, np.uint64(codes[blanket[place], row])]
            active[n_active] = column_on
            n_active += np.uint64(column_on > 0)
    begins[n_patterns] = n_active
    return n_columns


@compiled
def count_levels(by_row, rows, weights, which, variables, begins, counts):
    """Count the levels of variables, each from where it begins, by what kind of row they are in (`which`)."""
    by_row, rows, weights = without_refcount((by_row, rows, weights))
    which, variables = without_refcount((which, variables))
    begins, counts = without_refcount((begins, counts))
    for i in range(len(rows)):
        row, kind = rows[i], which[i]
        for place in range(len(variables)):
            counts[kind, begins[place] + by_row[row, variables[place]]] += weights[row]


@compiled
def size_variables(weights, covariance, owners, tests):
    """Divide the weights (column x level) of each variable by their covariance; return how many there are.

    Of each, `tests` is filled with the variable, the statistic, or -1 where the covariance is too singular,
    and the df. Owners of columns are in ascending order, with that of column 0 first, which is nobody.
    """
    weights, covariance = without_refcount((weights, covariance))
    owners, tests = without_refcount((owners, tests))
    n_tests, begin = 0, 1
    while begin < len(owners):
        width = 1
        while begin + width < len(owners) and owners[begin + width] == owners[begin]:
            width += 1
        effect, factor = _block(weights, covariance, begin, width)
        solved = np.empty(len(effect))
        tests[n_tests, 0], tests[n_tests, 1], tests[n_tests, 2] = owners[begin], -1.0, len(effect)
        if factorise(factor):
            _substitute_into(factor, effect, solved)
            value = 0.0
            for i in range(len(effect)):
                value += effect[i] * solved[i]
            tests[n_tests, 1] = value
        n_tests += 1
        begin += width
    return n_tests


@compiled
def compare_variables(weights, covariances, shapes, owners, levels, targets, variables, n_levels, tests):
    """Test, for each variable, that its weights are the same in all strata; fill `tests` (statistic, df).

    Strata follow each other in flat arrays: weights (column x level of the target), covariances, owners and
    levels of the columns, levels of the target but the reference; `shapes` are their numbers of columns and
    of such levels. `n_levels` is more than any level of a variable or the target. A statistic of -1 says that
    some covariance is too singular.
    """
    weights, covariances, shapes = without_refcount((weights, covariances, shapes))
    owners, levels, targets = without_refcount((owners, levels, targets))
    variables, tests = without_refcount((variables, tests))
    number_of = np.empty((n_levels, n_levels), dtype=np.int64)
    for one in range(len(variables)):
        n_cells, n_weights = _number_cells(shapes, owners, levels, targets, variables[one], number_of)
        precision, pull = np.zeros((n_cells, n_cells)), np.zeros(n_cells)
        alone, known = 0.0, True
        at, at_weight, at_covariance, at_target = 0, 0, 0, 0
        for stratum in range(len(shapes)):
            n_columns, n_free = shapes[stratum]
            size = n_columns * n_free
            begin, width = _columns_of(owners[at : at + n_columns], variables[one])
            if width * n_free > 0 and known:
                effect, factor = _block(
                    weights[at_weight : at_weight + size].reshape((n_columns, n_free)),
                    covariances[at_covariance : at_covariance + size * size].reshape((size, size)),
                    begin,
                    width,
                )
                numbers = np.empty(len(effect), dtype=np.int64)
                for k in range(n_free):
                    for c in range(width):
                        numbers[k * width + c] = number_of[levels[at + begin + c], targets[at_target + k]]
                known = factorise(factor)
                if known:
                    alone += _add(factor, effect, numbers, precision, pull)
            at += n_columns
            at_weight += size
            at_covariance += size * size
            at_target += n_free
        tests[one, 0], tests[one, 1] = -1.0, n_weights - n_cells
        if known and factorise(precision):
            solved = np.empty(n_cells)
            _substitute_into(precision, pull, solved)
            for i in range(n_cells):
                alone -= pull[i] * solved[i]
            tests[one, 0] = max(0.0, alone)


@helper
def _number_cells(shapes, owners, levels, targets, variable, number_of):
    """Give a number to each pair of levels with a weight in some stratum; return how many, and of weights."""
    for level in range(len(number_of)):
        for other in range(len(number_of)):
            number_of[level, other] = -1
    n_cells, n_weights, at, at_target = 0, 0, 0, 0
    for stratum in range(len(shapes)):
        n_columns, n_free = shapes[stratum]
        for c in range(at, at + n_columns):
            if owners[c] == variable:
                n_weights += n_free
                for k in range(at_target, at_target + n_free):
                    if number_of[levels[c], targets[k]] < 0:
                        number_of[levels[c], targets[k]] = n_cells
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
def _add(factor, effect, numbers, precision, pull):
    """Add the weights of a stratum, given the factor of its covariance; return their size."""
    alone, solved = 0.0, np.empty(len(effect))
    for j in range(len(effect)):
        for i in range(len(effect)):
            solved[i] = 1.0 if i == j else 0.0
        substitute(factor, solved)
        for i in range(len(effect)):
            precision[numbers[i], numbers[j]] += solved[i]
    _substitute_into(factor, effect, solved)
    for i in range(len(effect)):
        pull[numbers[i]] += solved[i]
        alone += effect[i] * solved[i]
    return alone


@helper
def _substitute_into(factor, effect, solved):
    """Solve for a right side that is kept."""
    for i in range(len(effect)):
        solved[i] = effect[i]
    substitute(factor, solved)


@helper
def _block(weights, covariance, begin, width):
    n_columns, n_free = weights.shape
    size = n_free * width
    effect, block = np.empty(size), np.empty((size, size))
    for k in range(n_free):
        for c in range(width):
            effect[k * width + c] = weights[begin + c, k]
            for other in range(n_free):
                for d in range(width):
                    block[k * width + c, other * width + d] = covariance[
                        k * n_columns + begin + c, other * n_columns + begin + d
                    ]
    return effect, block
