import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unless.data.dataset import Dataset, code_order
from unless.data.domain import Domain, Variable
from unless.errors import DataError, UnknownName

DOMAIN = Domain((Variable("a", ("x", "y")), Variable("b", ("1", "2", "3"))))


def test_rows_are_collapsed_sorted_and_counted():
    data = Dataset.from_codes(DOMAIN, [[1, 0], [0, 2], [1, 0]], [1, 2, 3])
    assert data.rows.tolist() == [[0, 2], [1, 0]]
    assert data.counts.tolist() == [2, 4]
    assert (data.n_rows, data.n_distinct, data.n_variables, len(data)) == (6, 2, 2, 6)


@given(st.permutations([(0, 0), (0, 1), (1, 2), (0, 1), (1, 1)]))
def test_the_order_of_rows_is_forgotten(rows):
    assert Dataset.from_codes(DOMAIN, rows) == Dataset.from_codes(DOMAIN, sorted(rows))


@given(st.lists(st.sampled_from([1, 2, 3, 30, 256, 2**16]), min_size=1, max_size=8), st.integers(0, 99))
def test_rows_are_sorted_by_the_first_column_first(n_levels, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, n_levels, (40, len(n_levels))).astype(np.uint16)
    rows = rows[rng.integers(0, 40, 60)]
    assert code_order(rows).tolist() == np.lexsort(rows.T[::-1]).tolist()


def test_rows_counted_zero_times_are_left_out():
    assert Dataset.from_codes(DOMAIN, [[0, 0], [1, 1]], [0, 2]).rows.tolist() == [[1, 1]]


def test_selecting_columns_collapses_again():
    data = Dataset.from_codes(DOMAIN, [[0, 0], [0, 1], [1, 1]])
    assert data.select(["b"]).counts.tolist() == [1, 2]
    assert data.select(["b", "a"]).names == ("b", "a")
    with pytest.raises(UnknownName):
        data.select(["c"])


@pytest.mark.parametrize(("rows", "counts"), [([[2, 0]], None), ([[0, 0]], [-1])])
def test_impossible_codes_and_counts_are_refused(rows, counts):
    with pytest.raises(DataError):
        Dataset.from_codes(DOMAIN, rows, counts)


def test_constant_columns_are_known():
    assert Dataset.from_codes(DOMAIN, [[0, 0], [0, 1]]).constant_names == ("a",)
    assert Dataset.from_codes(DOMAIN, np.empty((0, 2))).constant_names == ("a", "b")


def test_the_page_of_a_dataset_escapes_what_the_table_says():
    domain = Domain((Variable("<b>", ("<i>", "&")), Variable("c", tuple(map(str, range(9))))))
    page = Dataset.from_codes(domain, [[0, 0]], notes=["1 < 2"])._repr_html_()
    assert "<b>" not in page
    assert "&lt;i&gt;" in page
    assert "1 &lt; 2" in page
