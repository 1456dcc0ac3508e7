"""Every compiled statistic equals its reference in independence/statistics.py."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import datasets
from unless.counting.reference import stratified_tables
from unless.counting.strata import JointCounter, JointTable, StrataTable
from unless.independence.sparse import independence_within_strata
from unless.independence.statistics import (
    degrees_of_freedom,
    likelihood_ratio_statistic,
    log_probabilities,
    pearson_statistic,
)

REFERENCES = {"pearson": pearson_statistic, "likelihood_ratio": likelihood_ratio_statistic}


@st.composite
def questions(draw):
    """Draw a table, two of its variables and some others that are given."""
    data = draw(datasets())
    a, b, *others = draw(st.permutations(range(data.n_variables)))
    return data, a, b, sorted(others[: draw(st.integers(0, len(others)))])


def listed(data, a, b, by, is_ratio):
    table = StrataTable.of(data)
    work = table.workspace()
    answers = table.chi_square(table.given(by, work), [(a, b)], work, likelihood_ratio=is_ratio)
    return [float(one[0]) for one in answers]


def dense(data, a, b, by, is_ratio):
    columns = StrataTable.of(data).columns
    counter = JointCounter(JointTable.of(columns.codes, columns.counts, columns.n_used))
    return counter.ask_one(a, b, by, is_ratio) or listed(data, a, b, by, is_ratio)


@pytest.mark.parametrize("test", REFERENCES)
@pytest.mark.parametrize("source", [listed, dense])
@settings(max_examples=60, deadline=None)
@given(question=questions())
def test_pooled_statistics_equal_the_reference(test, source, question):
    data, a, b, by = question
    tables, _ = stratified_tables(data, a, b, by, {})
    varying = tables[degrees_of_freedom(tables) > 0]
    statistics, df = REFERENCES[test](varying)
    expected = [statistics.sum(), df.sum(), varying.sum()]
    found = source(data, a, b, by, test == "likelihood_ratio")
    assert list(found) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(question=questions())
def test_the_statistic_of_permutations_is_pearsons(question):
    data, a, b, by = question
    tables, _ = stratified_tables(data, a, b, by, {})
    strata, x, y = np.nonzero(tables)
    found = independence_within_strata(x, y, strata, tables[strata, x, y], *tables.shape[1:])
    assert found.df == degrees_of_freedom(tables).sum()
    assert found.statistic == pytest.approx(pearson_statistic(tables)[0].sum(), rel=1e-9, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(question=questions())
def test_the_bayesian_test_equals_the_reference(question):
    data, a, b, by = question
    tables, _ = stratified_tables(data, a, b, by, {})
    table = StrataTable.of(data)
    work = table.workspace()
    found = [float(one[0]) for one in table.bayesian(table.given(by, work), a, [b], work)]
    assert found == pytest.approx(log_probabilities(tables), rel=1e-7, abs=1e-9)
