"""A Dataset packed for the kernels: bitmaps per level, bit planes of the counts, columns of codes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Counts, Dataset, Rows
from unless.kernels.slices import Crossing, Slices, Table, count_slice

Words = npt.NDArray[np.uint64]
# The time of one popcounted word in units of one listed row: flat around its optimum.
_WORD_COST = 0.05
# Rows times levels.
_COMPARED_AT_ONCE = 2**16


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
        table = pack(
            data.rows[row_order][:, columns], data.counts[row_order], data.domain.n_levels[list(columns)]
        )
        return cls(table, columns, row_order)

    @property
    def n_levels(self) -> npt.NDArray[np.int64]:
        """The number of levels of each variable."""
        return np.asarray(np.diff(self.table.offsets), dtype=np.int64)

    def slices(self, n_slots: int, list_limit: int) -> Slices:
        """Make room for slices; those of up to `list_limit` rows are kept as lists."""
        return Slices(
            np.empty((n_slots, self.table.bitmaps.shape[1]), dtype=np.uint64),
            np.empty((n_slots, list_limit + 1), dtype=np.int32),
            np.full(n_slots, -1, dtype=np.int64),
        )

    def crossing(self, list_limit: int) -> Crossing:
        """Make room for a slice crossed with any variable."""
        most = int(self.n_levels.max())
        return Crossing(
            np.empty((most, int(self.table.plane_words.sum())), dtype=np.uint64),
            np.empty(list_limit + 1, dtype=np.uint16),
            np.empty(list_limit + 1, dtype=np.int64),
            np.empty(most, dtype=np.int64),
            np.empty(most * most, dtype=np.int64),
            np.empty(most, dtype=np.int64),
        )

    def list_limit(self) -> int:
        """Return the length up to which reading a list of rows is faster than counting bits."""
        words = int(self.table.plane_words.sum())
        passes = float(self.n_levels.mean() * (self.n_levels.mean() - 1))
        return min(int(_WORD_COST * words * passes) + 8, int(self.table.codes.shape[1]))

    def count(self, a: int, b: int, context: Mapping[int, int], list_limit: int | None = None) -> Counts:
        """Count variable `a` against `b` on the rows that agree with a context (variable -> code)."""
        limit = self.list_limit() if list_limit is None else list_limit
        conditions = np.array(sorted(context.items()), dtype=np.int64).reshape(-1, 2)
        cells = count_slice(a, b, conditions, self.table, self.slices(2, limit), self.crossing(limit))
        return np.array(cells, dtype=np.int64).reshape(self.n_levels[a], self.n_levels[b])


def pack(rows: Rows, counts: Counts, n_levels: npt.NDArray[np.int64]) -> Table:
    """Pack distinct rows that are sorted by falling count."""
    codes = np.ascontiguousarray(rows.T)
    offsets = _offsets(n_levels)
    n_words = (len(rows) + 63) // 64
    bitmaps = np.zeros((offsets[-1], n_words), dtype=np.uint64)
    at_once = max(1, _COMPARED_AT_ONCE // max(1, len(rows)))
    for variable, column in enumerate(codes):
        bitmaps_of = bitmaps[offsets[variable] : offsets[variable + 1]]
        for first in range(0, len(bitmaps_of), at_once):
            levels = np.arange(first, min(first + at_once, len(bitmaps_of)), dtype=column.dtype)
            bitmaps_of[first : first + at_once] = pack_bits(column == levels[:, None], n_words)
    n_planes = int(counts[0]).bit_length() if len(counts) else 0
    planes = np.zeros((n_planes, n_words), dtype=np.uint64)
    for plane in range(n_planes):
        planes[plane] = pack_bits((counts >> plane) & 1 != 0, n_words)
    # Counts fall along the rows, so high planes end early.
    ends = [int(np.flatnonzero(plane)[-1]) + 1 if plane.any() else 0 for plane in planes]
    return Table(
        codes, np.ascontiguousarray(counts), offsets, bitmaps, planes, np.array(ends, dtype=np.int64)
    )


def _offsets(n_levels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(n_levels)]).astype(np.int64)


def pack_bits(bits: npt.NDArray[np.bool_], n_words: int) -> Words:
    """Pack booleans along the last axis, the first one the lowest bit of the first word."""
    packed = np.zeros((*bits.shape[:-1], n_words * 8), dtype=np.uint8)
    packed[..., : (bits.shape[-1] + 7) // 8] = np.packbits(bits, axis=-1, bitorder="little")
    return packed.view(np.uint64)
