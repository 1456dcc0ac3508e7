"""Dense tables, counted by bits and by rows, against counting row by row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import KINDS, datasets
from twins.naive import naive_df, naive_likelihood_ratio, naive_pearson, naive_pooled, without_empty
from twins.naive_graphs import naive_strata
from unless.counting import strata as module
from unless.counting.strata import JointCounter, JointTable, bytes_to_join, used_codes
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable

# Cells have 32 bits.
MODERATE = tuple(kind for kind in KINDS if kind != "huge counts")
WAYS = ("bits", "rows")


def make_counter(data, way=None):
    codes, n_used = used_codes(data, range(data.n_variables))
    counter = JointCounter(JointTable.of(codes, data.counts, n_used))
    if way is not None:
        counter._most_bits = module.MOST_BITS + 1 if way == "bits" else -1
    return counter


def make_data(codes, counts=None, n_levels=None):
    sizes = codes.max(axis=0) + 1 if n_levels is None else n_levels
    domain = Domain(tuple(Variable(f"v{k}", tuple(map(str, range(size)))) for k, size in enumerate(sizes)))
    return Dataset.from_codes(domain, codes, counts)


def naive_answer(data, a, b, by, is_ratio):
    tables = naive_strata(data.rows, data.counts, data.domain.n_levels, a, b, by)
    statistic, _, _ = naive_pooled(naive_likelihood_ratio if is_ratio else naive_pearson, tables)
    used = sum(table.sum() for table in tables if min(without_empty(table).shape) > 1)
    return statistic, sum(naive_df(table) for table in tables), used


def assert_right(answer, expected, n_rows):
    # G sums logarithms of nearly one, each as exact as the counts are large.
    assert answer[0] == pytest.approx(expected[0], rel=1e-9, abs=1e-9 + 1e-14 * n_rows)
    assert tuple(answer[1:]) == expected[1:]


@settings(max_examples=150, deadline=None)
@given(datasets(kinds=MODERATE), st.data(), st.booleans())
def test_pooled_statistics_equal_those_counted_row_by_row(data, draw, is_ratio):
    a, *rest = draw.draw(st.permutations(range(data.n_variables)))
    n_given = draw.draw(st.integers(0, min(3, len(rest) - 1)))
    by, others = sorted(rest[:n_given]), rest[n_given:]
    for way in WAYS:
        counter = make_counter(data, way)
        answers, left_out = counter.ask_many(a, others, by, is_ratio)
        assert not left_out
        for b, answer in zip(others, answers.tolist(), strict=True):
            assert_right(answer, naive_answer(data, a, b, by, is_ratio), data.n_rows)
            # Alone, in company, from the other side and in the other way: the same to the last bit.
            assert tuple(answer) == counter.ask_one(a, b, by, is_ratio)
            for other_way in WAYS:
                assert tuple(answer) == make_counter(data, other_way).ask_one(b, a, by, is_ratio)


@pytest.mark.parametrize("way", WAYS)
def test_many_rows_of_many_weights(way):
    rng = np.random.default_rng(4)
    sizes = np.array([2, 3, 4, 2, 5, 2, 1, 2])
    codes = rng.integers(0, sizes, (70_000, len(sizes)))
    codes[:, 5] = (codes[:, 0] + (rng.random(70_000) < 0.2)) % 2
    data = make_data(codes[codes[:, 4] != 2], n_levels=sizes)
    for counts in (data.counts, rng.integers(1, 1000, data.n_distinct)):
        weighted = make_data(data.rows, counts, n_levels=sizes)
        counter = make_counter(weighted, way)
        for by in ([], [3], [3, 7], [2, 3, 6]):
            others = [b for b in range(1, len(sizes)) if b not in by]
            answers, _ = counter.ask_many(0, others, by, False)
            for b, answer in zip(others, answers.tolist(), strict=True):
                assert_right(answer, naive_answer(weighted, 0, b, by, False), 1)


def test_more_rows_than_one_part_of_a_bitmap_holds():
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 2, (40_000, 24))
    data = make_data(codes)
    assert data.n_distinct > 64 * module.WORDS
    by_bits, by_rows = (make_counter(data, way).ask_many(0, range(1, 20), [21, 23], False)[0] for way in WAYS)
    assert np.array_equal(by_bits, by_rows)
    assert_right(by_bits[0].tolist(), naive_answer(data, 0, 1, [21, 23], False), 1)


def test_many_levels_constant_columns_and_unused_levels():
    rng = np.random.default_rng(6)
    codes = np.stack([rng.integers(0, 30, 3000), rng.integers(2, 30, 3000), np.zeros(3000, np.int64)], axis=1)
    codes = np.column_stack([codes, rng.integers(0, 250, 3000)])
    data = make_data(codes, n_levels=[30, 40, 1, 256])
    counter = make_counter(data)
    for a, b, by in [(0, 1, []), (0, 1, [2]), (3, 1, []), (0, 2, [1]), (2, 0, [])]:
        assert_right(counter.ask_one(a, b, by, False), naive_answer(data, a, b, by, False), 1)


def test_the_largest_tables_fit_their_room():
    rng = np.random.default_rng(9)
    codes = np.column_stack([rng.integers(0, 256, (20_000, 2)), np.zeros((20_000, 2), np.int64)])
    codes = np.column_stack([codes, rng.integers(0, 2, (20_000, 2))])
    data = make_data(codes)
    counter = make_counter(data)
    # Two constants in 65,536 strata, and the most cells in one stratum.
    assert counter.ask_one(2, 3, [0, 1], False) == (0.0, 0, 0)
    assert_right(counter.ask_one(0, 1, [2], True), naive_answer(data, 0, 1, [2], True), data.n_rows)
    answers, left_out = counter.ask_many(4, [5, 0, 2], [1], False)
    assert left_out == [1]
    assert_right(answers[0].tolist(), naive_answer(data, 4, 5, [1], False), 1)


def test_what_would_be_large_and_sparse_is_left_to_others():
    rng = np.random.default_rng(7)
    codes = np.column_stack([rng.integers(0, 2, (500, 3)), np.arange(500) % 300, rng.integers(0, 200, 500)])
    counter = make_counter(make_data(codes))
    # More levels than a byte holds, and more cells than are worth their room.
    assert counter.ask_one(0, 3, [], False) is None
    assert counter.ask_one(0, 1, [3], False) is None
    assert counter.ask_one(0, 1, [2, 4], False) is not None
    assert counter.ask_one(4, 1, [0, 2], False) is not None
    answers, left_out = counter.ask_many(4, [0, 3, 1], [2], False)
    assert left_out == [1]
    assert answers[2].tolist() == list(counter.ask_one(4, 1, [2], False))
    huge = make_data(codes[:, :3], np.full(500, 2**40))
    assert make_counter(huge).ask_one(0, 1, [], False) is None


def test_a_table_without_rows_tests_nothing():
    empty = Dataset.from_codes(
        Domain((Variable("a", ("x", "y")), Variable("b", ("x", "y")))), np.empty((0, 2))
    )
    counter = make_counter(empty)
    assert counter.ask_one(0, 1, [], False) == (0.0, 0, 0)
    assert counter.ask_many(0, [1], [], True)[0].tolist() == [[0.0, 0.0, 0.0]]


def test_others_in_several_calls_of_the_kernels(monkeypatch):
    rng = np.random.default_rng(8)
    data = make_data(rng.integers(0, 3, (300, 9)))
    once = [make_counter(data, way).ask_many(8, range(7), [7], False)[0] for way in WAYS]
    monkeypatch.setattr(module, "_ROWS_A_JOINT_CALL", 600)
    again = [make_counter(data, way).ask_many(8, range(7), [7], False)[0] for way in WAYS]
    assert np.array_equal(once, again)


def test_memory_grows_with_rows_columns_and_workers():
    rng = np.random.default_rng(0)
    small, tall, wide = (make_data(rng.integers(0, 3, shape)) for shape in [(500, 8), (900, 8), (500, 16)])
    assert bytes_to_join(small, 1) < bytes_to_join(small, 2)
    assert bytes_to_join(small, 1) < bytes_to_join(tall, 1) < bytes_to_join(wide, 9)
