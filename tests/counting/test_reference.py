import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import datasets
from twins.naive import naive_table
from unless.counting.reference import PlainCounts, stratified_tables
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.errors import TooLarge


@st.composite
def questions(draw):
    """Draw a dataset, two variables, given variables and a context, perhaps one nobody has seen."""
    dataset = draw(datasets())
    a, b, *rest = draw(st.permutations(range(dataset.n_variables)))
    held = rest[: draw(st.integers(0, len(rest)))]
    context = {
        position: draw(st.integers(0, int(dataset.domain.n_levels[position]) - 1)) for position in held
    }
    return dataset, a, b, rest[len(held) :], context


@given(questions())
def test_slice_is_counted_as_the_plain_loop_counts_it(question):
    dataset, a, b, _, context = question
    expected = naive_table(dataset.rows, dataset.counts, dataset.domain.n_levels, a, b, context)
    table = PlainCounts(dataset).count(a, b, context)
    assert table.dtype == np.int64
    assert np.array_equal(table, expected)


@given(questions())
def test_strata_are_the_slices_of_the_observed_values(question):
    dataset, a, b, given_variables, context = question
    tables, strata = stratified_tables(dataset, a, b, given_variables, context)
    agrees = [all(row[position] == code for position, code in context.items()) for row in dataset.rows]
    seen = {tuple(codes) for codes in dataset.rows[agrees][:, given_variables].tolist()}
    assert [tuple(codes) for codes in strata.tolist()] == sorted(seen)
    for table, codes in zip(tables, strata.tolist(), strict=True):
        stratum = context | dict(zip(given_variables, codes, strict=True))
        assert np.array_equal(table, PlainCounts(dataset).count(a, b, stratum))
    assert np.array_equal(tables.sum(axis=0), PlainCounts(dataset).count(a, b, context))


def test_counts_up_to_the_limit_stay_exact():
    pair = Domain((Variable("a", ("0", "1")), Variable("b", ("0", "1")), Variable("c", ("0", "1"))))
    dataset = Dataset.from_codes(pair, [[0, 0, 0], [0, 0, 1], [1, 1, 0]], [2**53 - 9, 2, 3])
    assert PlainCounts(dataset).count(0, 1, {}).tolist() == [[2**53 - 7, 0], [0, 3]]
    assert stratified_tables(dataset, 0, 1, [], {})[0].tolist() == [[[2**53 - 7, 0], [0, 3]]]


def test_tables_beyond_the_memory_allowed_are_refused_with_the_estimate():
    dataset = Dataset.from_codes(
        Domain(tuple(Variable(name, tuple(map(str, range(100)))) for name in "abc")),
        [[code, code, code] for code in range(100)],
    )
    with pytest.raises(TooLarge, match=r"8 MB: 100 strata of 100 x 100 levels"):
        stratified_tables(dataset, 0, 1, [2], {}, max_bytes=10**6)
    with pytest.raises(TooLarge):
        PlainCounts(dataset, max_bytes=100).count(0, 1, {})
