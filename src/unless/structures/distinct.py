"""Distinct rows of integer matrices, in lexicographic order or as they come."""

from math import log2
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import code_order

Matrix = npt.NDArray[Any]
Positions = npt.NDArray[np.intp]
Bytes = npt.NDArray[np.uint8]


def distinct_rows(matrix: Matrix) -> tuple[Matrix, Positions]:
    """Return the distinct rows, sorted, and for every row of the matrix its position among them."""
    first, group = _groups(matrix)
    return _in_order(matrix[first], group)


def distinct_bytes(matrix: Bytes) -> tuple[Bytes, Positions]:
    """Return the distinct rows as they come first, and for every row its position among them."""
    # Here, as kernels take their time to load, and not everyone who reads a structure needs them.
    from unless.kernels.bits import number_rows

    first, numbers = np.empty((2, len(matrix)), dtype=np.intp)
    slots = np.full(1 << (2 * len(matrix)).bit_length(), -1, dtype=np.int32)
    n_distinct = number_rows(_as_words(matrix), slots, first, numbers)
    return matrix[first[:n_distinct]], numbers


def are_distinct(matrix: Bytes) -> bool:
    """Tell whether no row is there twice."""
    return len(_groups(_as_words(matrix))[0]) == len(matrix)


def come_in_order(numbers: npt.NDArray[Any]) -> bool:
    """Tell whether whole numbers from 0 on come first in their order."""
    most = np.maximum.accumulate(numbers)
    return not len(most) or bool(most[0] == 0 and (np.diff(most) <= 1).all())


def row_set(matrix: Matrix) -> Matrix:
    """Return the distinct rows, sorted; faster than `distinct_rows` where a row fits into one integer."""
    radices = [int(top) + 1 for top in matrix.max(axis=0, initial=0)]
    if sum(map(log2, radices)) > 62:
        return distinct_rows(matrix)[0]
    keys = np.zeros(len(matrix), dtype=np.int64)
    for column, radix in zip(matrix.T, radices, strict=True):
        keys = keys * radix + column.astype(np.int64)
    keys = np.unique(keys)
    rows = np.empty((len(keys), len(radices)), dtype=matrix.dtype)
    for position, radix in reversed(list(enumerate(radices))):
        keys, rows[:, position] = np.divmod(keys, radix)
    return rows


def row_order(matrix: Matrix) -> Positions:
    """Return the positions that sort the rows lexicographically."""
    if not matrix.shape[1]:
        return np.arange(len(matrix))
    if matrix.dtype == np.uint8:
        # Rows of bytes sort as strings do, which takes one pass instead of one a column.
        return np.argsort(np.ascontiguousarray(matrix).view(f"S{matrix.shape[1]}").ravel(), kind="stable")
    if matrix.dtype == np.uint16:
        return code_order(matrix)
    return np.lexsort(matrix.T[::-1])


def rows_increase(matrix: Matrix) -> bool:
    """Tell whether every row is lexicographically larger than the one before it."""
    before, after = matrix[:-1], matrix[1:]
    differ = before != after
    if not differ.any(axis=1).all():
        return False
    where = differ.argmax(axis=1)[:, None] if matrix.shape[1] else np.zeros((0, 1), dtype=np.intp)
    return bool((np.take_along_axis(before, where, 1) < np.take_along_axis(after, where, 1)).all())


def _as_words(matrix: Bytes) -> npt.NDArray[np.uint64]:
    """Return bytes as words, eight at a time."""
    width = matrix.shape[1]
    padded = np.zeros((len(matrix), -(-width // 8) * 8), dtype=np.uint8)
    padded[:, :width] = matrix
    return padded.view(np.uint64)


def _in_order(rows: Matrix, group: Positions) -> tuple[Matrix, Positions]:
    order = row_order(rows)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rows[order], rank[group]


def _groups(matrix: Matrix) -> tuple[Positions, Positions]:
    # Sorting one hash per row is several times faster than sorting rows; the comparison makes it exact.
    hashes = _hashes(matrix)
    # Not a stable sort, which is slower: it does not matter which of equal rows is met first.
    first, group = _runs(np.argsort(hashes), hashes[:, None])
    if all(np.array_equal(column[first][group], column) for column in matrix.T):
        return first, group
    return _sorted_groups(matrix)


def _sorted_groups(matrix: Matrix) -> tuple[Positions, Positions]:
    return _runs(row_order(matrix), matrix)


def _runs(order: Positions, matrix: Matrix) -> tuple[Positions, Positions]:
    """Return the first of each run of equal rows, which an order brings together, and the run of each row."""
    ordered = matrix[order]
    starts = np.ones(len(order), dtype=np.bool_)
    starts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    group = np.empty_like(order)
    group[order] = np.cumsum(starts) - 1
    return order[starts], group


def _hashes(matrix: Matrix) -> npt.NDArray[np.uint64]:
    hashes = np.zeros(len(matrix), dtype=np.uint64)
    for column in matrix.T:
        hashes ^= column.astype(np.uint64)
        hashes *= np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    return hashes
