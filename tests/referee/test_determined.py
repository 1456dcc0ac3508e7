"""Copies and functions are found, by the readable form's own rule; what chance could make is not said."""

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import datasets
from studies.truth import laws
from twins.naive_determined import naive_determined, naive_may_break
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.referee.counted import Determined, determined_pairs, find_determined, most_broken


def dataset(columns, counts=None, n_levels=None):
    """Make a table of columns of codes, named a, b, c, ..."""
    sizes = n_levels or [max(column, default=0) + 1 for column in columns]
    domain = Domain(
        tuple(Variable(chr(97 + k), tuple(map(str, range(size)))) for k, size in enumerate(sizes))
    )
    return Dataset.from_codes(domain, np.array(columns).T.reshape(-1, len(columns)), counts)


def found_in(data):
    return {astuple(one) for one in find_determined(data)}


def pairs_of(data):
    return {(data.names[one.source], data.names[one.column]) for one in find_determined(data)}


@st.composite
def tables(draw):
    """Draw a table in which columns are functions of others, broken in few rows or none."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([0, 1, 30, 150, 600, 3_000]))
    columns = []
    for _ in range(draw(st.integers(1, 5))):
        size = draw(st.sampled_from([1, 2, 3, 7, 40, 300]))
        if columns and draw(st.integers(0, 3)):
            column = rng.integers(0, size, 300)[columns[rng.integers(len(columns))]]
        else:
            # A heavy tail of levels that are seen once, or all alike.
            shares = rng.dirichlet(np.full(size, draw(st.sampled_from([0.05, 1.0, 20.0]))))
            column = rng.choice(size, size=n, p=shares)
        broken = rng.random(n) < draw(st.sampled_from([0, 0, 0.002, 0.01, 0.03]))
        columns.append(np.where(broken, rng.integers(0, size, n), column))
    counts = rng.integers(0, draw(st.sampled_from([2, 4, 10**9])), n)
    return dataset(columns, counts, n_levels=[300] * len(columns))


@settings(max_examples=150)
@given(tables())
def test_it_equals_the_readable_form(data):
    assert found_in(data) == naive_determined(data)


@settings(max_examples=50)
@given(datasets(max_levels=4))
def test_it_equals_the_readable_form_on_nasty_tables(data):
    assert found_in(data) == naive_determined(data)


@settings(max_examples=30)
@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_columns_and_levels_changes_nothing(data, random):
    names = random.sample(data.names, len(data.names))
    moved = data.select(names)
    told = [
        [(one.names[d.source], one.names[d.column], d.n_broken, d.is_copy) for d in find_determined(one)]
        for one in (data, moved)
    ]
    assert told[0] == told[1] == sorted(told[0])
    turned = Dataset.from_codes(data.domain, 299 - data.rows.astype(np.int64), data.counts)
    assert find_determined(turned) == find_determined(data)


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_the_limit_is_the_largest_number_that_may_break(n_rows, share):
    n_wrong = int(n_rows * share)
    allowed = [broken for broken in range(102) if naive_may_break(broken, n_rows, n_wrong)]
    assert most_broken(n_rows, n_wrong) == max(allowed, default=-1)


def test_a_function_tells_one_way_and_a_copy_both():
    state = np.arange(600) % 6
    data = dataset([state, state // 2, 5 - state])
    assert find_determined(data) == (
        Determined(0, 1, 0, is_copy=False),
        Determined(0, 2, 0, is_copy=True),
        Determined(2, 0, 0, is_copy=True),
        Determined(2, 1, 0, is_copy=False),
    )
    assert determined_pairs(find_determined(data), 4).astype(int).tolist() == [
        [0, 1, 1, 0],
        [1, 0, 1, 0],
        [1, 1, 0, 0],
        [0, 0, 0, 0],
    ]


def test_entries_are_sorted_by_name_wherever_the_columns_stand():
    state = np.arange(600) % 6
    data = dataset([state, state // 2, 5 - state]).select(["c", "b", "a"])
    assert [(one.source, one.column) for one in find_determined(data)] == [(2, 1), (2, 0), (0, 2), (0, 1)]


def test_rows_that_break_it_are_counted_up_to_one_in_a_hundred():
    source = np.arange(5_000) % 5
    for n_broken, said in ((30, True), (51, False)):
        column = source % 2
        column[:n_broken] = 1 - column[:n_broken]
        assert (
            Determined(0, 1, n_broken, is_copy=False) in find_determined(dataset([source, column]))
        ) is said


def test_what_many_rows_break_among_the_rare_ones_is_no_function():
    # Of 10,000 rows 60 break it, but they are half of all that a constant would get wrong.
    source = np.repeat([0, 1], [9_880, 120])
    column = np.where(np.arange(10_000) < 9_940, 0, 1)
    assert find_determined(dataset([source, column])) == ()


def test_constant_columns_neither_tell_nor_are_told():
    assert find_determined(dataset([np.zeros(500, int), np.zeros(500, int), np.arange(500) % 2])) == ()


def test_a_source_needs_five_rows_a_level_and_levels_seen_more_than_once():
    for n, said in ((500, True), (495, False)):
        many = np.arange(n) % 100
        assert (("a", "b") in pairs_of(dataset([many, many % 2]))) is said
    # One level has most rows; all others are seen once, and say nothing about rows like them.
    once = np.maximum(np.arange(1_000) - 800, 0)
    assert find_determined(dataset([once, (once > 0) * (1 + once % 2)])) == ()


def test_levels_that_do_not_occur_and_counts_are_no_matter():
    data = dataset([[299, 7], [0, 1]], counts=[400, 300], n_levels=[300, 256])
    assert pairs_of(data) == {("a", "b"), ("b", "a")}


def test_a_column_of_two_others_is_not_looked_for():
    a, b = np.arange(4_000) % 2, np.arange(4_000) // 2 % 2
    assert find_determined(dataset([a, b, a ^ b])) == ()


@pytest.mark.parametrize("n", [500, 2_000])
def test_functions_of_a_law_are_found_and_no_others(n):
    for seed in range(10):
        rng = np.random.default_rng([seed, n])
        law = laws.with_determined(rng)
        assert pairs_of(law.sample(n, rng)) == law.notes["functions"]


@pytest.mark.parametrize("levels", [range(2, 5), range(20, 51)], ids=["few", "many"])
@pytest.mark.parametrize("n", [200, 1_000, 5_000])
def test_nothing_is_said_of_independent_columns(levels, n):
    for seed in range(10):
        rng = np.random.default_rng([seed, n])
        assert find_determined(laws.independent(6, levels, rng).sample(n, rng)) == ()


def test_nothing_is_said_of_plain_links():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        assert find_determined(laws.pairwise(rng).sample(2_000, rng)) == ()
