"""Distinct values of some variables in some rows, and what is counted with each of them."""

from unless.kernels.compiling import borrowed, compiled, inlined


@compiled
def number(codes, rows, blanket, sizes, which, table):
    """Give the distinct values of a blanket in some rows numbers, in their order; return how many.

    `codes` is variable x row. `table` has room for a place for each row and level of the largest variable.
    """
    codes, rows, blanket, sizes = borrowed(codes), borrowed(rows), borrowed(blanket), borrowed(sizes)
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


@compiled
def lay_out(codes, rows, blanket, references, which, values, column_of, owners, levels, begins, active):
    """Give a column to each level that a variable of the blanket shows but one; return how many there are.

    `values` (pattern x place) and `column_of` (place x level) are filled, the latter with -1 where there is
    none; the columns that are on in a pattern are `active[begins[pattern]:begins[pattern + 1]]`, the first of
    them 0, which is on in all.
    """
    codes, rows, blanket, references = (
        borrowed(codes),
        borrowed(rows),
        borrowed(blanket),
        borrowed(references),
    )
    which, values, column_of = borrowed(which), borrowed(values), borrowed(column_of)
    owners, levels, begins, active = borrowed(owners), borrowed(levels), borrowed(begins), borrowed(active)
    n_patterns, n_levels, n_columns = values.shape[0], column_of.shape[1], 1
    owners[0] = levels[0] = -1
    for place in range(len(blanket)):
        variable = blanket[place]
        column = borrowed(codes[variable])
        for i in range(len(rows)):
            values[which[i], place] = column[rows[i]]
        for level in range(n_levels):
            column_of[place, level] = -1
        for pattern in range(n_patterns):
            column_of[place, values[pattern, place]] = 0
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
            column_on = column_of[place, values[pattern, place]]
            if column_on >= 0:
                active[n_active] = column_on
                n_active += 1
    begins[n_patterns] = n_active
    return n_columns


@compiled
def count_levels(codes, rows, target, weights, which, counts):
    """Count the levels of a target by pattern."""
    column, rows, weights = borrowed(codes[target]), borrowed(rows), borrowed(weights)
    which, counts = borrowed(which), borrowed(counts)
    for i in range(len(rows)):
        counts[which[i], column[rows[i]]] += weights[rows[i]]


@compiled
def count_indicators(codes, rows, target, weights, which, variables, ends, free_of, level_of, seen, shown):
    """Count indicators by pattern, and by level of the target but the reference.

    Those of a variable end where the next begin (`ends`, from 0); `free_of` (variable x level) says which of
    them a level has, and `level_of` where to count a level of the target; -1 is nowhere.
    """
    codes, rows, weights, which = borrowed(codes), borrowed(rows), borrowed(weights), borrowed(which)
    variables, ends, free_of, level_of = (
        borrowed(variables),
        borrowed(ends),
        borrowed(free_of),
        borrowed(level_of),
    )
    seen, shown, told = borrowed(seen), borrowed(shown), borrowed(codes[target])
    for one in range(len(variables)):
        column, place_of = borrowed(codes[variables[one]]), borrowed(free_of[variables[one]])
        for i in range(len(rows)):
            row = rows[i]
            place = place_of[column[row]]
            if place >= 0:
                seen[which[i], ends[one] + place] += weights[row]
                level = level_of[told[row]]
                if level >= 0:
                    shown[ends[one] + place, level] += weights[row]


@compiled
def count_gate(codes, rows, target, weights, which, gate, place_of, level_of, seen, shown):
    """Count the levels of a gate but one by pattern, and with them those of the target but the reference."""
    column, told = borrowed(codes[gate]), borrowed(codes[target])
    rows, weights, which = borrowed(rows), borrowed(weights), borrowed(which)
    place_of, level_of, seen, shown = borrowed(place_of), borrowed(level_of), borrowed(seen), borrowed(shown)
    for i in range(len(rows)):
        row = rows[i]
        place = place_of[column[row]]
        if place >= 0:
            seen[which[i], place] += weights[row]
            level = level_of[told[row]]
            if level >= 0:
                shown[which[i], place, level] += weights[row]
