"""Tables of two variables in one context: from packed bitmaps, or from the dense cube of a small domain.

A slice is the set of rows that agree with a context. `PackedTable` finds it by bitmaps, one for each level;
the cube has the count of every partial assignment, where these are few. They stand in the place of the ADTree
of the paper's implementation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Counts, Dataset, Rows
from unless.kernels.bits import STRIDE, packed_words
from unless.kernels.cube import Cube, fill
from unless.kernels.slices import CrosstabBuffers, Slices, Table, association_sums, count_slice
from unless.typing import Bools, Integers

Words = npt.NDArray[np.uint64]
# The time of one popcounted word in units of one listed row: flat around its optimum.
_WORD_COST = 0.05
# Rows times levels.
_COMPARED_AT_ONCE = 2**16
# Beyond this the cube leaves the cache and cohorts are faster.
MAX_CELLS = 2**20
MAX_QUESTIONS = 2**26


@dataclass(frozen=True)
class PackedTable:
    """Distinct rows by falling count, variables in an order of the caller's choice.

    `order` gives the column of each variable, `row_order` the dataset's row of each row.
    """

    table: Table
    order: tuple[int, ...]
    row_order: npt.NDArray[np.intp]

    @classmethod
    def of(cls, data: Dataset, order: Sequence[int] | None = None) -> "PackedTable":
        """Pack a dataset, its variables in the given order of columns."""
        columns = tuple(range(data.n_variables) if order is None else order)
        row_order = np.argsort(-data.counts, kind="stable")
        codes = np.ascontiguousarray(data.rows[row_order].T)[list(columns)]
        table = pack(codes, data.counts[row_order], data.domain.n_levels[list(columns)])
        return cls(table, columns, row_order)

    @property
    def n_levels(self) -> Integers:
        """The number of levels of each variable."""
        return np.asarray(np.diff(self.table.offsets), dtype=np.int64)

    def slices(self, n_slots: int, list_limit: int) -> Slices:
        """Make buffers for slices; those of up to `list_limit` rows are kept as lists."""
        return Slices(
            np.empty((n_slots, self.table.bitmaps.shape[1]), dtype=np.uint64),
            np.empty((n_slots, list_limit + 1), dtype=np.int32),
            np.full(n_slots, -1, dtype=np.int64),
        )

    def crosstab_buffers(self, list_limit: int) -> CrosstabBuffers:
        """Make buffers for a slice split by the levels of any variable."""
        most = int(self.n_levels.max())
        return CrosstabBuffers(
            np.empty((most, self.table.bitmaps.shape[1]), dtype=np.uint64),
            np.empty(list_limit + 1, dtype=np.uint16),
            np.empty(list_limit + 1, dtype=np.int64),
            np.empty(most, dtype=np.int64),
            np.empty(most * most, dtype=np.int64),
            np.empty(most, dtype=np.int64),
            np.empty(most),
        )

    def list_limit(self) -> int:
        """Return the length up to which reading a list of rows is faster than counting bits."""
        return longest_list(self.n_levels, self.table.bitmaps.shape[1], self.table.codes.shape[1])

    def count(self, a: int, b: int, context: Mapping[int, int], list_limit: int | None = None) -> Counts:
        """Count variable `a` against `b` on the rows that agree with a context (variable -> code)."""
        limit = self.list_limit() if list_limit is None else list_limit
        conditions = np.array(sorted(context.items()), dtype=np.int64).reshape(-1, 2)
        slices = self.slices(len(conditions) + 1, limit)
        cells = count_slice(a, b, conditions, self.table, slices, self.crosstab_buffers(limit))
        return np.array(cells, dtype=np.int64).reshape(self.n_levels[a], self.n_levels[b])


def longest_list(n_levels: Integers, n_words: int, n_rows: int) -> int:
    """Return how long lists of rows get beside bitmaps of so many words."""
    passes = float(n_levels.mean() * (n_levels.mean() - 1))
    return min(int(_WORD_COST * n_words * passes) + 8, n_rows)


def pack(codes: Rows, counts: Counts, n_levels: Integers) -> Table:
    """Pack distinct rows (variable x row) that are sorted by falling count."""
    n_rows, offsets, layout = len(counts), np.append(0, np.cumsum(n_levels)), _Layout.of(counts)
    bitmaps = np.zeros((offsets[-1], layout.n_words), dtype=np.uint64)
    at_once = max(1, _COMPARED_AT_ONCE // max(1, n_rows))
    for variable, column in enumerate(codes):
        bitmaps_of = bitmaps[offsets[variable] : offsets[variable + 1], : packed_words(n_rows)]
        for first in range(0, len(bitmaps_of), at_once):
            levels = np.arange(first, min(first + at_once, len(bitmaps_of)), dtype=column.dtype)
            bitmaps_of[first : first + at_once] = pack_bits(column == levels[:, None], bitmaps_of.shape[1])
    root = pack_bits(np.ones(n_rows, dtype=np.bool_), layout.n_words)
    for bit, (begin, size) in enumerate(zip(layout.begins, layout.sizes, strict=True)):
        bitmaps[:, begin : begin + size] = bitmaps[:, :size]
        root[begin : begin + size] = pack_bits((counts[: 64 * size] - 1) >> bit & 1 != 0, size)
    return Table(codes, np.ascontiguousarray(counts), offsets, bitmaps, root, layout.shifts)


def bitmap_words(counts: Counts) -> int:
    """Return how many words a packed bitmap has for rows with these counts."""
    return _Layout.of(counts).n_words


@dataclass(frozen=True)
class _Layout:
    """Where a bitmap has its copies of the first rows, one for each bit of what counts are above one.

    A copy ends with the last row that has the bit, and is empty where no row does. The rows, the copy for
    bit 0, and the others, which are worth more, are three parts in whole strides.
    """

    begins: list[int]
    sizes: list[int]
    n_words: int
    shifts: Words

    @classmethod
    def of(cls, counts: Counts) -> "_Layout":
        """Lay out rows with these counts, which will fall."""
        n_bits = (int(counts.max(initial=1)) - 1).bit_length()
        # Mostly far fewer than there are rows.
        different, n_rows = np.unique(counts, return_counts=True)
        sizes = [packed_words(_rows_up_to(different, n_rows, bit)) for bit in range(n_bits)]
        n_plain = whole_words(packed_words(len(counts))) + whole_words(sum(sizes[:1]))
        begins = [whole_words(packed_words(len(counts))), *(n_plain + np.cumsum([0, *sizes[1:-1]])).tolist()]
        shifts = np.zeros(whole_words(sum(sizes[1:])), dtype=np.uint64)
        shifts[: sum(sizes[1:])] = np.repeat(np.arange(1, max(n_bits, 1), dtype=np.uint64), sizes[1:])
        return cls(begins[:n_bits], sizes, n_plain + len(shifts), shifts)


def _rows_up_to(counts: Counts, n_rows: Counts, bit: int) -> int:
    """Return how many rows there are, by falling count, up to the last that has this bit.

    `counts` are in order, and so many rows have each.
    """
    having = np.flatnonzero((counts - 1) >> bit & 1)
    return int(n_rows[having[0] :].sum()) if len(having) else 0


def whole_words(n_words: int) -> int:
    """Return as many words in whole strides of the vector loops."""
    return -(-n_words // STRIDE) * STRIDE


def pack_bits(bits: Bools, n_words: int) -> Words:
    """Pack booleans along the last axis, the first one the lowest bit of the first word."""
    packed = np.zeros((*bits.shape[:-1], n_words * 8), dtype=np.uint8)
    packed[..., : (bits.shape[-1] + 7) // 8] = np.packbits(bits, axis=-1, bitorder="little")
    return packed.view(np.uint64)


def association_order(data: Dataset) -> list[int]:
    """Return the columns by the sum of their mutual informations with all others, ties by name."""
    # By name first: the order of the columns must not decide anything, not even the rounding.
    by_name = sorted(range(data.n_variables), key=lambda column: data.names[column])
    packed = PackedTable.of(data, by_name)
    sums = association_sums(packed.table, packed.slices(1, 0), packed.crosstab_buffers(0))
    ranked = np.argsort(-sums, kind="stable")
    return [by_name[position] for position in ranked]


def fits_cube(n_levels: Integers) -> bool:
    """Tell whether the cube, and an answer for every pair in each of its cells, stay small."""
    cells = 1
    for size in n_levels.tolist():
        cells *= size + 1
        if cells > MAX_CELLS:
            return False
    return cells * len(n_levels) * (len(n_levels) - 1) // 2 <= MAX_QUESTIONS


def build_cube(data: Dataset, order: Sequence[int]) -> Cube:
    """Count every partial assignment, the variables in the given order of columns."""
    columns = list(order)
    n_levels = data.domain.n_levels[columns]
    # The last variable is the fastest digit.
    spans = np.concatenate([np.cumprod((n_levels + 1)[::-1])[::-1], [1]])
    cube = Cube(np.zeros(spans[0], dtype=np.int64), spans[1:].copy(), n_levels)
    fill(np.ascontiguousarray(data.rows[:, columns]), np.array(data.counts), cube)
    return cube
