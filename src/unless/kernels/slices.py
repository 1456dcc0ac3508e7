"""Slices of a table, derived from one another, and the tables counted on them.

A slice (the rows that agree with some conditions) is a packed bitmap while it is wide and a list of row
numbers once it is narrow. Rows are distinct and sorted by falling count, so that those with bit k in what
their count is above one are among the first. A bitmap has one bit for every row, then one bit for each of
these first rows, bit k after bit k: a weighted count is one popcount along all of it, with words for bit k
worth 2 ** k.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.bits import STRIDE, and_count, popcount_and
from unless.kernels.compiling import compiled, inlined, log, popcount, trailing_zeros, without_refcount

_ZERO, _ONE = np.uint64(0), np.uint64(1)
# Fixed point: sums of integers do not depend on their order, so neither does the ranking.
FIXED_POINT = float(2**40)


class Table(NamedTuple):
    """Distinct rows in every form a kernel reads."""

    codes: Any  # uint16 (variables, rows)
    counts: Any  # int64 (rows,), falling
    offsets: Any  # int64 (variables + 1,): first bitmap of each variable
    bitmaps: Any  # uint64 (levels of all variables, words): the rows, then copies of the first ones
    root: Any  # uint64 (words,): all rows, then those that have bit k in what their count is above one
    shifts: Any  # uint64 (last words,): the k of words that are worth more than one


class Slices(NamedTuple):
    """Slots for slices."""

    wide: Any  # uint64 (slots, words)
    listed: Any  # int32 (slots, longest list + 1)
    sizes: Any  # int64 (slots,): length of the list, or -1 while the slice is a bitmap


class CrosstabBuffers(NamedTuple):
    """A slice crossed with the levels of one variable, and room for a table."""

    bits: Any  # uint64 (most levels, words)
    levels: Any  # uint16 (longest list + 1,)
    weights: Any  # int64 (longest list + 1,)
    totals: Any  # int64 (most levels,)
    cells: Any  # int64 (largest table,)
    columns: Any  # int64 (most levels,)
    inverses: Any  # float64 (most levels,)


@inlined
def _weighed_and(left, right, first, shifts):
    """Count the ones that two bitmaps share from a word on, each word worth more by its shift."""
    ones = _ZERO
    for word in range(shifts.shape[0]):
        # Unsigned: a signed index is checked for counting from the end, which prevents vector instructions.
        at = np.uint64(first + word)
        ones += popcount(left[at] & right[at]) << shifts[word]
    return np.int64(ones)


@inlined
def _row_words(table):
    """Return how many words have a bit for every row, in whole strides."""
    return ((table.codes.shape[1] + 64 * STRIDE - 1) // (64 * STRIDE)) * STRIDE


@inlined
def _list_rows(slot, slices, n_words):
    size = 0
    for word in range(n_words):
        rest = slices.wide[slot, word]
        while rest != _ZERO:
            slices.listed[slot, size] = (word << 6) + np.int64(trailing_zeros(rest))
            rest &= rest - _ONE
            size += 1
    slices.sizes[slot] = size


@inlined
def take_all(slot, table, slices):
    """Make a slot hold every row."""
    for word in range(table.root.shape[0]):
        slices.wide[slot, word] = table.root[word]
    slices.sizes[slot] = -1
    if table.codes.shape[1] < slices.listed.shape[1]:
        _list_rows(slot, slices, _row_words(table))


@inlined
def _and_words(left, right, both, first):
    for word in range(both.shape[0] - first):
        at = np.uint64(first + word)
        both[at] = left[at] & right[at]


@inlined
def condition_on(source, target, variable, level, table, slices):
    """Derive slice `target` from another, `source`, by one more condition."""
    if slices.sizes[source] >= 0:
        size = 0
        for i in range(slices.sizes[source]):
            row = slices.listed[source, i]
            # Always written, and kept only if it agrees: no branch to mispredict.
            slices.listed[target, size] = row
            size += table.codes[variable, row] == level
        slices.sizes[target] = size
        return
    bitmap, n_words = table.bitmaps[table.offsets[variable] + level], _row_words(table)
    wide, both = slices.wide[source], slices.wide[target]
    size = and_count(wide, bitmap, both, n_words)
    _and_words(wide, bitmap, both, n_words)
    slices.sizes[target] = -1
    if size < slices.listed.shape[1]:
        _list_rows(target, slices, n_words)


@inlined
def split_by_level(slot, node, n_a, table, slices, crosstab):
    """Cross a slice with the levels of a variable, for all its tables there; returns the rows used."""
    total = 0
    for i in range(n_a):
        crosstab.totals[i] = 0
    if slices.sizes[slot] >= 0:
        for i in range(slices.sizes[slot]):
            row = slices.listed[slot, i]
            level = table.codes[node, row]
            weight = table.counts[row]
            crosstab.levels[i] = level
            crosstab.weights[i] = weight
            crosstab.totals[level] += weight
            total += weight
        return total
    wide, n_plain = slices.wide[slot], table.root.shape[0] - table.shifts.shape[0]
    for i in range(n_a):
        bitmap, bits = table.bitmaps[table.offsets[node] + i], crosstab.bits[i]
        ones = and_count(wide, bitmap, bits, n_plain)
        _and_words(wide, bitmap, bits, n_plain)
        crosstab.totals[i] = ones + _weighed_and(wide, bitmap, n_plain, table.shifts)
        total += crosstab.totals[i]
    return total


@inlined
def count(slot, other, n_a, n_b, table, slices, crosstab):
    """Count the table of the crossed variable against another one."""
    cells = crosstab.cells
    for i in range(n_a * n_b):
        cells[i] = 0
    if slices.sizes[slot] >= 0:
        for i in range(slices.sizes[slot]):
            row = slices.listed[slot, i]
            cells[np.int64(crosstab.levels[i]) * n_b + table.codes[other, row]] += crosstab.weights[i]
        return
    n_plain = table.root.shape[0] - table.shifts.shape[0]
    for i in range(n_a):
        if crosstab.totals[i] > 0:
            rest, bits = crosstab.totals[i], crosstab.bits[i]
            for j in range(n_b - 1):
                bitmap = table.bitmaps[table.offsets[other] + j]
                joint = popcount_and(bits, bitmap, n_plain)
                joint += _weighed_and(bits, bitmap, n_plain, table.shifts)
                cells[i * n_b + j] = joint
                rest -= joint
            cells[i * n_b + n_b - 1] = rest


@compiled
def count_slice(a, b, conditions, table, slices, crosstab):
    """Count a against b on the rows that meet all conditions (variable, level); returns the cells."""
    counted = crosstab.cells
    table, slices, crosstab = without_refcount((table, slices, crosstab))
    take_all(0, table, slices)
    for i in range(conditions.shape[0]):
        condition_on(i, i + 1, conditions[i, 0], conditions[i, 1], table, slices)
    slot = conditions.shape[0]
    n_a = table.offsets[a + 1] - table.offsets[a]
    n_b = table.offsets[b + 1] - table.offsets[b]
    split_by_level(slot, a, n_a, table, slices, crosstab)
    count(slot, b, n_a, n_b, table, slices, crosstab)
    return counted[: n_a * n_b]


@compiled
def association_sums(table, slices, crosstab):
    """Return for each variable the sum of its mutual informations with all others, in nats as fixed point."""
    table, slices, crosstab = without_refcount((table, slices, crosstab))
    n = table.codes.shape[0]
    sums = np.zeros(n, dtype=np.int64)
    take_all(0, table, slices)
    for a in range(n):
        n_a = table.offsets[a + 1] - table.offsets[a]
        total = split_by_level(0, a, n_a, table, slices, crosstab)
        for b in range(a):
            n_b = table.offsets[b + 1] - table.offsets[b]
            count(0, b, n_a, n_b, table, slices, crosstab)
            information = 0.0
            for j in range(n_b):
                column = 0
                for i in range(n_a):
                    column += crosstab.cells[i * n_b + j]
                for i in range(n_a):
                    cell = crosstab.cells[i * n_b + j]
                    if cell > 0:
                        expected = float(crosstab.totals[i]) * float(column) / total
                        information += cell * log(cell / expected)
            rounded = np.int64(round(information / total * FIXED_POINT))
            sums[a] += rounded
            sums[b] += rounded
    return sums
