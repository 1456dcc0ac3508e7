"""Distinct values of some variables in some rows, and what is counted with each of them."""

import numpy as np

from unless.kernels.compiling import borrowed, compiled, helper, inlined

# Values are renumbered when there could be more than so many of them for each row.
_PLACES = 4


@compiled
def find_patterns(codes, rows, weights, blanket, sizes, references, target):
    """Give numbers to the values of a blanket: return which, begins, active, counts, owners and levels.

    `codes` is variable x row. `which` says for each row which pattern it has. Each level that a variable of
    the blanket shows, but one, has a column; `owners` and `levels` say whose. Those that are on in a pattern
    are `active[begins[pattern]:begins[pattern + 1]]`, the first of them 0, which is on in all. `counts` is
    pattern x level of the target.
    """
    codes, rows, weights, blanket = borrowed(codes), borrowed(rows), borrowed(weights), borrowed(blanket)
    sizes, references = borrowed(sizes), borrowed(references)
    n_rows, most, n_columns = len(rows), 1, 1
    for place in range(len(blanket)):
        most = max(most, sizes[blanket[place]])
        n_columns += sizes[blanket[place]] - 1
    which = np.empty(n_rows, dtype=np.int64)
    room = np.empty(max(_PLACES, most) * n_rows + most, dtype=np.int64)
    n_patterns = _number(codes, rows, blanket, sizes, which, room)
    owners, levels = np.empty(n_columns, dtype=np.int64), np.empty(n_columns, dtype=np.int64)
    begins, active = np.empty(n_patterns + 1, np.int64), np.empty(n_patterns * (len(blanket) + 1), np.int64)
    counts, told = np.zeros((n_patterns, sizes[target])), borrowed(codes[target])
    example = np.empty(n_patterns, dtype=np.int64)
    for i in range(n_rows):
        counts[which[i], told[rows[i]]] += weights[rows[i]]
        example[which[i]] = rows[i]
    column_of = np.empty((len(blanket), most), dtype=np.int64)
    n_columns = _lay_out(codes, example, blanket, references, column_of, owners, levels, begins, active)
    return which, begins, active, counts, owners[:n_columns].copy(), levels[:n_columns].copy()


@helper
def _number(codes, rows, blanket, sizes, which, table):
    """Give the distinct values of a blanket in some rows numbers, in their order; return how many.

    `table` has room for a place for each row and level of the largest variable.
    """
    which, table = borrowed(which), borrowed(table)
    n_rows, n_patterns = len(rows), 1
    for i in range(n_rows):
        which[i] = 0
    for place in range(len(blanket)):
        size, column = sizes[blanket[place]], borrowed(codes[blanket[place]])
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

    `example` is a row of each pattern; `column_of` (place x level) is filled, with -1 where there is none.
    """
    example, column_of = borrowed(example), borrowed(column_of)
    owners, levels, begins, active = borrowed(owners), borrowed(levels), borrowed(begins), borrowed(active)
    n_patterns, n_levels, n_columns = len(example), column_of.shape[1], 1
    owners[0] = levels[0] = -1
    for place in range(len(blanket)):
        variable = blanket[place]
        column = borrowed(codes[variable])
        for level in range(n_levels):
            column_of[place, level] = -1
        for pattern in range(n_patterns):
            column_of[place, column[example[pattern]]] = 0
        reference = references[variable]
        if column_of[place, reference] < 0:
            reference = 0
            while column_of[place, reference] < 0:
                reference += 1
        column_of[place, reference] = -1
        for level in range(n_levels):
            if column_of[place, level] == 0:
                column_of[place, level] = n_columns
                owners[n_columns], levels[n_columns] = variable, level
                n_columns += 1
    n_active = 0
    for pattern in range(n_patterns):
        begins[pattern] = n_active
        active[n_active] = 0
        n_active += 1
        for place in range(len(blanket)):
            column_on = column_of[place, codes[blanket[place], example[pattern]]]
            if column_on >= 0:
                active[n_active] = column_on
                n_active += 1
    begins[n_patterns] = n_active
    return n_columns


@compiled
def count_levels(by_row, rows, weights, which, variables, begins, counts):
    """Count the levels of variables, each from where it begins, by what kind of row they are in (`which`)."""
    by_row, rows, weights = borrowed(by_row), borrowed(rows), borrowed(weights)
    which, variables = borrowed(which), borrowed(variables)
    begins, counts = borrowed(begins), borrowed(counts)
    for i in range(len(rows)):
        row, kind = rows[i], which[i]
        for place in range(len(variables)):
            counts[kind, begins[place] + by_row[row, variables[place]]] += weights[row]


@compiled
def join(which, told, rows, level_of, n_levels, joined):
    """Give numbers to patterns and levels of a target together, levels without a place last."""
    which, told, rows = borrowed(which), borrowed(told), borrowed(rows)
    level_of, joined = borrowed(level_of), borrowed(joined)
    for i in range(len(rows)):
        level = level_of[told[rows[i]]]
        joined[i] = which[i] * n_levels + (level if level >= 0 else n_levels - 1)


@compiled
def narrow(column, rows, wanted, kept):
    """Keep the rows in which a variable has a wanted level; return how many."""
    column, rows, wanted, kept = borrowed(column), borrowed(rows), borrowed(wanted), borrowed(kept)
    n_kept = 0
    for i in range(len(rows)):
        kept[n_kept] = rows[i]
        n_kept += wanted[column[rows[i]]]
    return n_kept


@compiled
def find_levels(column, rows, seen):
    """Mark the levels that a variable shows in some rows."""
    column, rows, seen = borrowed(column), borrowed(rows), borrowed(seen)
    for i in range(len(rows)):
        seen[column[rows[i]]] = True
