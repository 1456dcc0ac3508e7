import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from structures.models import steady
from unless.data import dataset
from unless.data.dataset import (
    come_in_order,
    distinct_bytes,
    distinct_rows,
    row_order,
    row_set,
    rows_increase,
)

matrices = hnp.arrays(
    np.uint32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=st.integers(0, 3)
)
tall_values = hnp.arrays(
    np.uint32,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.sampled_from((0, 1, 2**32 - 1)),
)


@steady
@given(matrices | tall_values)
def test_distinct_rows_are_those_numpy_finds(matrix):
    rows, index = distinct_rows(matrix)
    np.testing.assert_array_equal(rows, np.unique(matrix, axis=0))
    np.testing.assert_array_equal(rows[index], matrix)


@steady
@given(matrices | tall_values)
def test_a_row_set_is_what_numpy_finds_whether_or_not_rows_fit_into_an_integer(matrix):
    np.testing.assert_array_equal(row_set(matrix), np.unique(matrix, axis=0))


@steady
@given(matrices)
def test_colliding_hashes_do_not_merge_rows(matrix):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset, "_hashes", lambda rows: np.zeros(len(rows), np.uint64))
        rows, index = distinct_rows(matrix)
    np.testing.assert_array_equal(rows, np.unique(matrix, axis=0))
    np.testing.assert_array_equal(rows[index], matrix)


@steady
@given(matrices)
def test_rows_increase_when_they_are_sorted_and_distinct(matrix):
    assert rows_increase(matrix) == np.array_equal(matrix, np.unique(matrix, axis=0))


def test_matrices_without_rows_or_columns_are_understood():
    assert distinct_rows(np.zeros((0, 3), np.uint32))[0].shape == (0, 3)
    assert distinct_rows(np.zeros((4, 0), np.uint32))[0].shape == (1, 0)
    assert row_set(np.zeros((0, 3), np.uint32)).shape == (0, 3)
    assert row_order(np.zeros((2, 0), np.uint32)).tolist() == [0, 1]
    assert rows_increase(np.zeros((1, 0), np.uint32))
    assert not rows_increase(np.zeros((2, 0), np.uint32))


@pytest.mark.parametrize("width", [0, 1, 8, 9, 17])
def test_distinct_rows_of_bytes_are_numbered_as_they_come(width):
    matrix = np.random.default_rng(0).integers(0, 2, (30, width)).astype(np.uint8) * 200
    rows, index = distinct_bytes(matrix)
    assert [row.tobytes() for row in rows] == list(dict.fromkeys(row.tobytes() for row in matrix))
    np.testing.assert_array_equal(rows[index], matrix)
    assert come_in_order(index)


@pytest.mark.parametrize(
    ("numbers", "are"),
    [([], True), ([0, 0, 1, 0, 2], True), ([1, 0], False), ([0, 2, 1], False), ([1], False)],
)
def test_numbers_that_come_in_order(numbers, are):
    assert come_in_order(np.array(numbers, dtype=np.int32)) == are
