"""The tables of clique trees: where cells of a clique meet rows of the next, and what features put there."""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.compiling import compiled, helper


class Wiring(NamedTuple):
    """The conditions of features and the cliques they go to."""

    start: Any  # (features + 1,)
    level: Any
    equal: Any
    axis: Any  # of each condition: the axis of its variable in the clique of its feature
    home: Any  # (features,): the clique
    clique_start: Any  # (cliques + 1,)
    clique_levels: Any


@compiled
def write_places(parent, clique_start, clique_variable, clique_levels, n_low, n_outer, starts, places):
    """Write, for each clique, where its parent's high and low cells meet its rows (the outer variables)."""
    for c in range(parent.shape[0]):
        up = parent[c]
        if up < 0:
            continue
        # strides of the rows of c, by position in the parent
        first, last = clique_start[up], clique_start[up + 1]
        strides = np.zeros(last - first, np.int64)
        stride = 1
        for i in range(n_outer[c]):
            k = clique_start[c] + n_outer[c] - 1 - i
            for p in range(first, last):
                if clique_variable[p] == clique_variable[k]:
                    strides[p - first] = stride
            stride *= clique_levels[k]
        split = last
        size = 1
        while size < n_low[up]:
            split -= 1
            size *= clique_levels[split]
        _write_digits(clique_levels, strides, first, first, split, starts[c, 0], places)
        _write_digits(clique_levels, strides, first, split, last, starts[c, 1], places)


@helper
def _write_digits(levels, strides, offset, first, last, begin, places):
    """Write the sum of digit times stride for each state of the variables from first to last."""
    places[begin] = 0
    size = 1
    for i in range(last - first):
        k = last - 1 - i
        for digit in range(1, levels[k]):
            for cell in range(size):
                places[begin + digit * size + cell] = places[begin + cell] + digit * strides[k - offset]
        size *= levels[k]


@helper
def _list_cells(first, last, level, equal, axis, origin, low, high, sizes, strides, cells):
    """List the cells of the axes from low to high in which the conditions from first to last hold."""
    cells[0] = 0
    n_cells = 1
    for i in range(high - low):
        k = high - 1 - i
        kept = 0
        shift = 0
        for digit in range(sizes[k]):
            holds = True
            for c in range(first, last):
                if origin + axis[c] == k and (digit == level[c]) != equal[c]:
                    holds = False
                    break
            if not holds:
                continue
            # The first digit moves the cells there are, each further one adds a moved copy of them.
            move = digit * strides[k] - shift
            for cell in range(n_cells):
                cells[kept * n_cells + cell] = cells[cell] + move
            shift = digit * strides[k] if kept == 0 else shift
            kept += 1
        n_cells *= kept
    return n_cells


@helper
def _longest(cell_start, n_low):
    """Return the length of the longest list of low or high places of a clique."""
    longest = 1
    for clique in range(n_low.shape[0]):
        cells = cell_start[clique + 1] - cell_start[clique]
        longest = max(longest, n_low[clique], cells // n_low[clique])
    return longest


@helper
def _list_holding(feature, wiring, n_low, strides, lows, highs):
    """List the low and the high places of the cells in which a feature holds; return how many of each."""
    clique = wiring.home[feature]
    first, last = wiring.clique_start[clique], wiring.clique_start[clique + 1]
    sizes = wiring.clique_levels
    size = 1
    split = last
    for i in range(last - first):
        k = last - 1 - i
        strides[k] = size
        size *= sizes[k]
        if size <= n_low[clique]:
            split = k
    a, b = wiring.start[feature], wiring.start[feature + 1]
    level, equal, axis = wiring.level, wiring.equal, wiring.axis
    n_lows = _list_cells(a, b, level, equal, axis, first, split, last, sizes, strides, lows)
    n_highs = _list_cells(a, b, level, equal, axis, first, first, split, sizes, strides, highs)
    return n_lows, n_highs


@compiled
def write_weights(wiring, weights, cell_start, n_low, table):
    """Add the weight of each feature to the cells of its clique where its conditions hold."""
    longest = _longest(cell_start, n_low)
    lows, highs = np.empty(longest, np.int64), np.empty(longest, np.int64)
    strides = np.empty(wiring.clique_levels.shape[0], np.int64)
    for feature in range(weights.shape[0]):
        n_lows, n_highs = _list_holding(feature, wiring, n_low, strides, lows, highs)
        weight = weights[feature]
        for i in range(n_highs):
            begin = cell_start[wiring.home[feature]] + highs[i]
            for k in range(n_lows):
                table[begin + lows[k]] += weight


@compiled
def sum_holding(wiring, cell_start, n_low, table, sums):
    """Add up, for each feature, the cells of its clique where its conditions hold."""
    longest = _longest(cell_start, n_low)
    lows, highs = np.empty(longest, np.int64), np.empty(longest, np.int64)
    strides = np.empty(wiring.clique_levels.shape[0], np.int64)
    for feature in range(sums.shape[0]):
        n_lows, n_highs = _list_holding(feature, wiring, n_low, strides, lows, highs)
        total = 0.0
        for i in range(n_highs):
            begin = cell_start[wiring.home[feature]] + highs[i]
            for k in range(n_lows):
                total += table[begin + lows[k]]
        sums[feature] = total


@compiled
def rescale(cell_start, table, scaled, tops):
    """Write exp(log - largest log) of each clique; return the smallest of those that are not zero."""
    least = 1.0
    for clique in range(tops.shape[0]):
        top = -np.inf
        for cell in range(cell_start[clique], cell_start[clique + 1]):
            top = max(top, table[cell])
        tops[clique] = top
        for cell in range(cell_start[clique], cell_start[clique + 1]):
            value = np.exp(table[cell] - top) if top > -np.inf else 0.0
            scaled[cell] = value
            if table[cell] > -np.inf:
                least = min(least, value)
    return least
