"""Chow-Liu equals the best of all trees."""

import numpy as np
import pytest

import unless
from twins.naive_chow_liu import log_likelihood, naive_tree
from unless.errors import SettingError


def random_table(seed, n_rows=400):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    codes = rng.integers(0, 3, size=(n_rows, n))
    for column in range(1, n):
        parent = int(rng.integers(0, column))
        copied = rng.random(n_rows) < rng.uniform(0.3, 0.9)
        codes[copied, column] = codes[copied, parent]
    order = rng.permutation(n)
    return unless.read({f"c{column}": codes[:, column].astype(str) for column in order})


def plain(data):
    rows = [dict(zip(data.names, row, strict=True)) for row in data.rows.tolist()]
    return sorted(data.names), rows, data.counts.tolist()


@pytest.mark.parametrize("seed", range(12))
def test_no_tree_makes_the_rows_more_likely(seed):
    data = random_table(seed)
    # Nearly 1, so that every edge is confirmed.
    edges = set(unless.ChowLiu(alpha=0.999).fit(data).structure_)
    best, likelihood = naive_tree(*plain(data))
    if len(edges) == data.n_variables - 1:
        assert log_likelihood(sorted(edges), *plain(data)) == pytest.approx(likelihood, abs=1e-8)
        assert edges == best


@pytest.mark.parametrize("seed", range(12))
def test_what_is_left_is_part_of_the_best_tree(seed):
    data = random_table(seed)
    best, _ = naive_tree(*plain(data))
    assert set(unless.ChowLiu().fit(data).structure_) <= best


def test_independent_columns_stay_apart():
    rng = np.random.default_rng(5)
    data = unless.read({f"c{i}": rng.integers(0, 2, 2000).astype(str) for i in range(10)})
    assert not list(unless.ChowLiu().fit(data).structure_)


def test_its_cost_is_one_test_a_pair():
    est = unless.ChowLiu().fit(unless.datasets.load_titanic())
    assert est.n_tests_ == est.n_distinct_tests_ == 6


def test_the_order_of_columns_changes_nothing():
    data = random_table(3)
    mirrored = data.select(data.names[::-1])
    assert set(unless.ChowLiu().fit(data).structure_) == set(unless.ChowLiu().fit(mirrored).structure_)


def test_required_edges_that_close_a_cycle_are_refused():
    ring = [("Age", "Class"), ("Class", "Sex"), ("Age", "Sex")]
    with pytest.raises(SettingError, match="close a cycle"):
        unless.ChowLiu(required_edges=ring).fit(unless.datasets.load_titanic())
