"""Regressions on terms: which rows are alike, and which columns of a design each of them switches on."""

import numpy as np

from unless.kernels.compiling import borrowed, compiled
from unless.kernels.patterns import _number


@compiled
def number_rows(codes, variables, sizes):
    """Give the distinct values of some variables numbers: return that of each row, and an example of each.

    `codes` is variable x row. Numbers follow the lexicographic order of the values.
    """
    codes, variables, sizes = borrowed(codes), borrowed(variables), borrowed(sizes)
    n_rows, most = codes.shape[1], 1
    for place in range(len(variables)):
        most = max(most, sizes[variables[place]])
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
    which, codes, weights, counts = borrowed(which), borrowed(codes), borrowed(weights), borrowed(counts)
    for row in range(len(which)):
        counts[which[row], codes[row]] += weights[row]


@compiled
def lay_out_terms(codes, example, terms, sizes, references):
    """Give a column to each combination of levels that a term shows: begins, active, owners, levels.

    A term is a row of `terms`: up to three variables, -1 where there are fewer. It has a column for each
    combination of levels that are no references and that some example shows. Column 0 is always on. `owners`
    are the positions of terms, `levels` the numbers of combinations, both -1 for column 0.
    """
    codes, example, terms = borrowed(codes), borrowed(example), borrowed(terms)
    sizes, references = borrowed(sizes), borrowed(references)
    n_patterns, n_terms = len(example), terms.shape[0]
    most = 1
    for term in range(n_terms):
        width = 1
        for place in range(terms.shape[1]):
            if terms[term, place] >= 0:
                width *= sizes[terms[term, place]]
        most = max(most, width)
    combination = np.full((n_terms, n_patterns), -1, dtype=np.int64)
    column_of = np.empty((n_terms, most), dtype=np.int64)
    n_columns = 1
    for term in range(n_terms):
        for width in range(most):
            column_of[term, width] = -1
        for pattern in range(n_patterns):
            number, is_on = 0, True
            for place in range(terms.shape[1]):
                variable = terms[term, place]
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
def screen_products(codes, weights, target, which, chances, shown, seconds, thirds, sizes, found):
    """Fill Pearson's statistic of each triple (target, second, third) against what a regression expects.

    `chances` is pattern x level of the target (all that are shown), `shown` their codes. The regression knows
    the seconds, so that their margins agree; those of a third are made to agree here. `found` is second x
    third.
    """
    codes, weights, which, chances = borrowed(codes), borrowed(weights), borrowed(which), borrowed(chances)
    shown, seconds, thirds = borrowed(shown), borrowed(seconds), borrowed(thirds)
    sizes, found = borrowed(sizes), borrowed(found)
    n_rows, n_shown, most = codes.shape[1], chances.shape[1], 1
    for place in range(len(thirds)):
        most = max(most, sizes[thirds[place]])
    place_of = np.full(sizes[target], -1, dtype=np.int64)
    for k in range(n_shown):
        place_of[shown[k]] = k
    for s in range(len(seconds)):
        second = seconds[s]
        n_second = sizes[second]
        excess = np.zeros((len(thirds), most, n_second, n_shown))
        expected = np.zeros((len(thirds), most, n_second, n_shown))
        for row in range(n_rows):
            level, pattern, told = codes[second, row], which[row], place_of[codes[target, row]]
            for t in range(len(thirds)):
                other = codes[thirds[t], row]
                for k in range(n_shown):
                    share = weights[row] * chances[pattern, k]
                    expected[t, other, level, k] += share
                    excess[t, other, level, k] -= share
                if told >= 0:
                    excess[t, other, level, told] += weights[row]
        for t in range(len(thirds)):
            total = 0.0
            for other in range(sizes[thirds[t]]):
                for k in range(n_shown):
                    sum_excess, sum_expected = 0.0, 0.0
                    for level in range(n_second):
                        sum_excess += excess[t, other, level, k]
                        sum_expected += expected[t, other, level, k]
                    if sum_expected <= 0.0:
                        continue
                    for level in range(n_second):
                        cell = expected[t, other, level, k]
                        if cell > 1e-9:
                            left = excess[t, other, level, k] - sum_excess * cell / sum_expected
                            total += left * left / cell
            found[s, t] = total
