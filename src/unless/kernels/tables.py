"""The tables of clique trees: where cells of a clique meet rows of the next, and what features put there."""

import numpy as np

from unless.kernels.compiling import compiled


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


@compiled
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


@compiled
def write_weights(start, level, equal, stride, levels, weights, home, cell_start, n_low, table):
    """Add the weight of each feature to the cells of its clique where its conditions hold.

    Each condition comes with the stride and the number of levels of its variable in that clique.
    """
    for feature in range(weights.shape[0]):
        clique = home[feature]
        begin, low = cell_start[clique], n_low[clique]
        n_high = (cell_start[clique + 1] - begin) // low
        lows = np.empty(low, np.int64)
        n_lows = 0
        for cell in range(low):
            holds = True
            for i in range(start[feature], start[feature + 1]):
                if stride[i] < low and ((cell // stride[i]) % levels[i] == level[i]) != equal[i]:
                    holds = False
                    break
            if holds:
                lows[n_lows] = cell
                n_lows += 1
        for high in range(n_high):
            holds = True
            for i in range(start[feature], start[feature + 1]):
                if stride[i] >= low and ((high // (stride[i] // low)) % levels[i] == level[i]) != equal[i]:
                    holds = False
                    break
            if holds:
                for k in range(n_lows):
                    table[begin + high * low + lows[k]] += weights[feature]


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
