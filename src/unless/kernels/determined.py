"""How many rows break the best function of one column for another, for all pairs of columns."""

import numpy as np

from unless.kernels.compiling import compiled, inlined, without_refcount


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
