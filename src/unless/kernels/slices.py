"""Slices of a table, derived from one another, and the tables counted on them.

A slice (the rows that agree with some conditions) is a packed bitmap while it is wide and a list of row
numbers once it is narrow. Rows are distinct and sorted by falling count, so that bit k of the counts is a
bitmap ("plane") over a prefix of the rows, and a weighted count is a few popcounts whatever the counts
are.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.compiling import borrowed, compiled, inlined, popcount, trailing_zeros

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class Table(NamedTuple):
    """Distinct rows in every form a kernel reads."""

    codes: Any  # uint16 (variables, rows)
    counts: Any  # int64 (rows,), falling
    offsets: Any  # int64 (variables + 1,): first bitmap of each variable
    bitmaps: Any  # uint64 (levels of all variables, words)
    planes: Any  # uint64 (bits of the largest count, words)
    plane_words: Any  # int64 (bits of the largest count,): words up to the last that is not zero


class Slices(NamedTuple):
    """Slots for slices."""

    wide: Any  # uint64 (slots, words)
    listed: Any  # int32 (slots, longest list + 1)
    sizes: Any  # int64 (slots,): length of the list, or -1 while the slice is a bitmap


class Crossing(NamedTuple):
    """A slice crossed with the levels of one variable, and room for a table."""

    bits: Any  # uint64 (most levels, words of all planes)
    levels: Any  # uint16 (longest list + 1,)
    weights: Any  # int64 (longest list + 1,)
    totals: Any  # int64 (most levels,)
    cells: Any  # int64 (largest table,)
    columns: Any  # int64 (most levels,)


@inlined
def popcount_and(left, right, n_words):
    """Count the ones that two bitmaps share."""
    ones = _ZERO
    for word in range(n_words):
        ones += popcount(left[word] & right[word])
    return np.int64(ones)


@inlined
def _list_rows(slot, slices):
    size = 0
    for word in range(slices.wide.shape[1]):
        rest = slices.wide[slot, word]
        while rest != _ZERO:
            slices.listed[slot, size] = (word << 6) + np.int64(trailing_zeros(rest))
            rest &= rest - _ONE
            size += 1
    slices.sizes[slot] = size


@compiled
def take_all(slot, n_rows, slices):
    """Make a slot hold every row."""
    slices.wide[slot, :] = ~_ZERO
    if n_rows & 63:
        slices.wide[slot, n_rows >> 6] = (_ONE << np.uint64(n_rows & 63)) - _ONE
    slices.sizes[slot] = -1
    if n_rows < slices.listed.shape[1]:
        _list_rows(slot, slices)


@inlined
def narrow(source, target, variable, level, table, slices):
    """Derive slice `target` from slice `source` by one more condition."""
    if slices.sizes[source] >= 0:
        size = 0
        for i in range(slices.sizes[source]):
            row = slices.listed[source, i]
            # Written always and kept only if it agrees: no branch to mispredict.
            slices.listed[target, size] = row
            size += table.codes[variable, row] == level
        slices.sizes[target] = size
        return
    bitmap = table.offsets[variable] + level
    size = _ZERO
    for word in range(table.bitmaps.shape[1]):
        both = slices.wide[source, word] & table.bitmaps[bitmap, word]
        slices.wide[target, word] = both
        size += popcount(both)
    slices.sizes[target] = -1
    if np.int64(size) < slices.listed.shape[1]:
        _list_rows(target, slices)


@inlined
def lies_within(slot, slices, outside):
    """Tell whether a slice has none of the rows of a bitmap; a bitmap without words has no rows."""
    if outside.shape[0] == 0:
        return True
    if slices.sizes[slot] >= 0:
        for i in range(slices.sizes[slot]):
            row = slices.listed[slot, i]
            if outside[row >> 6] >> np.uint64(row & 63) & _ONE != _ZERO:
                return False
        return True
    common = _ZERO
    for word in range(outside.shape[0]):
        common |= slices.wide[slot, word] & outside[word]
        if common != _ZERO:
            break
    return common == _ZERO


@inlined
def _cross_words(wide, bitmap, plane, bits, n_words):
    # Rows of matrices, taken before the loop: only so is it compiled into vector instructions.
    ones = _ZERO
    for word in range(n_words):
        both = wide[word] & bitmap[word] & plane[word]
        bits[word] = both
        ones += popcount(both)
    return np.int64(ones)


@inlined
def cross(slot, node, n_a, table, slices, crossing):
    """Cross a slice with the levels of a variable, for all its tables there; returns the rows used."""
    total = 0
    for i in range(n_a):
        crossing.totals[i] = 0
    if slices.sizes[slot] >= 0:
        for i in range(slices.sizes[slot]):
            row = slices.listed[slot, i]
            level = table.codes[node, row]
            weight = table.counts[row]
            crossing.levels[i] = level
            crossing.weights[i] = weight
            crossing.totals[level] += weight
            total += weight
        return total
    for i in range(n_a):
        bitmap = table.bitmaps[table.offsets[node] + i]
        first = 0
        for plane in range(table.plane_words.shape[0]):
            n_words = table.plane_words[plane]
            bits = crossing.bits[i, first:]
            ones = _cross_words(slices.wide[slot], bitmap, table.planes[plane], bits, n_words)
            crossing.totals[i] += ones << plane
            first += n_words
        total += crossing.totals[i]
    return total


@inlined
def count(slot, other, n_a, n_b, table, slices, crossing):
    """Count the table of the crossed variable against another one."""
    cells = crossing.cells
    for i in range(n_a * n_b):
        cells[i] = 0
    if slices.sizes[slot] >= 0:
        for i in range(slices.sizes[slot]):
            row = slices.listed[slot, i]
            cells[np.int64(crossing.levels[i]) * n_b + table.codes[other, row]] += crossing.weights[i]
        return
    for i in range(n_a):
        if crossing.totals[i] > 0:
            rest = crossing.totals[i]
            for j in range(n_b - 1):
                first = 0
                joint = 0
                for plane in range(table.plane_words.shape[0]):
                    n_words = table.plane_words[plane]
                    bitmap = table.bitmaps[table.offsets[other] + j]
                    joint += popcount_and(crossing.bits[i, first:], bitmap, n_words) << plane
                    first += n_words
                cells[i * n_b + j] = joint
                rest -= joint
            cells[i * n_b + n_b - 1] = rest


@inlined
def borrowed_table(table):
    """Return the table without the owners of its arrays."""
    return Table(
        borrowed(table.codes),
        borrowed(table.counts),
        borrowed(table.offsets),
        borrowed(table.bitmaps),
        borrowed(table.planes),
        borrowed(table.plane_words),
    )


@inlined
def borrowed_slices(slices):
    """Return the slices without the owners of their arrays."""
    return Slices(borrowed(slices.wide), borrowed(slices.listed), borrowed(slices.sizes))


@inlined
def borrowed_crossing(crossing):
    """Return the crossing without the owners of its arrays."""
    return Crossing(
        borrowed(crossing.bits),
        borrowed(crossing.levels),
        borrowed(crossing.weights),
        borrowed(crossing.totals),
        borrowed(crossing.cells),
        borrowed(crossing.columns),
    )


@compiled
def count_slice(a, b, conditions, table, slices, crossing):
    """Count a against b on the rows that meet all conditions (variable, level); returns the cells."""
    take_all(0, table.codes.shape[1], slices)
    slot = 0
    for i in range(conditions.shape[0]):
        narrow(slot, 1, conditions[i, 0], conditions[i, 1], table, slices)
        slot = 1
    n_a = table.offsets[a + 1] - table.offsets[a]
    n_b = table.offsets[b + 1] - table.offsets[b]
    cross(slot, a, n_a, table, slices, crossing)
    count(slot, b, n_a, n_b, table, slices, crossing)
    return crossing.cells[: n_a * n_b]
