"""Groupings and pooled statistics against counting row by row."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import KINDS, datasets
from twins.naive import naive_df, naive_likelihood_ratio, naive_pearson, naive_pooled, without_empty
from twins.naive_graphs import naive_log_probabilities, naive_strata
from unless.counting import strata as module
from unless.counting.strata import StrataTable, bytes_to_count
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable

# Rounding of log-gamma of counts in the thousand millions outweighs everything else.
MODERATE = tuple(kind for kind in KINDS if kind != "huge counts")


@st.composite
def questions(draw, kinds=KINDS):
    """Draw a table, one of its variables and some variables that are given."""
    data = draw(datasets(kinds=kinds))
    a, *others = draw(st.permutations(range(data.n_variables)))
    return data, a, others[: draw(st.integers(0, len(others) - 1))]


def as_groups(data, strata):
    """Return the groups of two or more rows, and the counts of the others."""
    ends = strata.starts.tolist()
    groups = {frozenset(strata.rows[i:j].tolist()) for i, j in pairwise(ends)}
    single = {group for group in groups if len(group) == 1}
    lone = [int(data.counts[row]) for group in single for row in group]
    return groups - single, sorted([*lone, *strata.lone.tolist(), *[1] * strata.n_ones])


def naive_groups(data, given):
    groups = {}
    for place, row in enumerate(data.rows):
        groups.setdefault(tuple(row[given].tolist()), set()).add(place)
    lone = [int(data.counts[row]) for group in groups.values() if len(group) == 1 for row in group]
    return {frozenset(group) for group in groups.values() if len(group) > 1}, sorted(lone)


@settings(max_examples=150, deadline=None)
@given(questions())
def test_rows_are_grouped_by_what_they_share(question):
    data, _, given = question
    table = StrataTable.of(data)
    work = table.workspace()
    assert as_groups(data, table.given(given, work)) == naive_groups(data, given)
    if given:
        left_out = dict(table.leaving_out(given, work))
        assert list(left_out) == given
        for variable, strata in left_out.items():
            rest = [other for other in given if other != variable]
            assert as_groups(data, strata) == naive_groups(data, rest)


@settings(max_examples=150, deadline=None)
@given(questions(), st.booleans())
def test_pooled_chi_square_equals_the_sum_over_strata(question, likelihood_ratio):
    data, a, given = question
    table = StrataTable.of(data)
    work = table.workspace()
    others = [b for b in range(data.n_variables) if b != a and b not in given]
    pairs = [(a, b) for b in others] + [(b, a) for b in others]
    answers = table.chi_square(table.given(given, work), pairs, work, likelihood_ratio=likelihood_ratio)
    test = naive_likelihood_ratio if likelihood_ratio else naive_pearson
    for (_, b), statistic, df, used in zip(pairs, *answers, strict=False):
        if b == a:
            break
        tables = naive_strata(data.rows, data.counts, data.domain.n_levels, a, b, given)
        expected, expected_df, _ = naive_pooled(test, tables)
        # G sums logarithms of nearly one, each as exact as the counts are large.
        slack = 1e-14 * data.n_rows if likelihood_ratio else 1e-9
        assert statistic == pytest.approx(expected, rel=1e-9, abs=1e-9 + slack)
        assert df == expected_df == sum(naive_df(stratum) for stratum in tables)
        assert used == sum(stratum.sum() for stratum in tables if min(without_empty(stratum).shape) > 1)
    for values in answers:
        assert np.array_equal(values[: len(others)], values[len(others) :])


@settings(max_examples=200, deadline=None)
@given(questions(kinds=MODERATE))
def test_pooled_probabilities_equal_the_formula(question):
    data, a, given = question
    table = StrataTable.of(data)
    work = table.workspace()
    others = [b for b in range(data.n_variables) if b != a and b not in given]
    strata = table.given(given, work)
    answers = table.bayesian(strata, a, others, work)
    for b, independent, dependent in zip(others, *answers, strict=True):
        tables = naive_strata(data.rows, data.counts, data.domain.n_levels, a, b, given)
        expected = naive_log_probabilities(tables)
        assert (independent, dependent) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        mirrored = table.bayesian(strata, b, [a], work)
        assert (mirrored[0][0], mirrored[1][0]) == pytest.approx((independent, dependent), rel=1e-12)
    for more in others:
        rest = [b for b in others if b != more]
        direct = table.bayesian(table.refined(strata, more, work), a, rest, work)
        assert np.array_equal(table.bayesian(strata, a, rest, work, given=more), direct)


def test_certain_independence_keeps_the_digits_of_dependence():
    codes = np.stack(np.meshgrid(np.arange(30), np.arange(30)), axis=-1).reshape(-1, 2)
    domain = Domain(tuple(Variable(name, tuple(map(str, range(30)))) for name in "ab"))
    table = StrataTable.of(Dataset.from_codes(domain, codes, np.full(900, 10**4)))
    independent, dependent = table.bayesian(table.everything(), 0, [1], table.workspace())
    assert independent[0] == 0.0
    assert dependent[0] == pytest.approx(naive_log_probabilities([np.full((30, 30), 10**4)])[1], rel=1e-9)
    assert dependent[0] < -3000


def test_short_calls_and_short_factorials_change_nothing(monkeypatch):
    rng = np.random.default_rng(3)
    domain = Domain(tuple(Variable(name, ("x", "y", "z")) for name in "abcde"))
    data = Dataset.from_codes(domain, rng.integers(0, 3, (400, 5)), rng.integers(1, 50, 400))
    table = StrataTable.of(data)
    work = table.workspace()
    strata = table.given([4], work)
    before = table.bayesian(strata, 0, [1, 2, 3], work)
    monkeypatch.setattr(module, "_ROWS_A_CALL", 1)
    monkeypatch.setattr(module, "_MOST_FACTORIALS", 10)
    short = StrataTable.of(data)
    assert len(short.columns.log_factorials) < len(table.columns.log_factorials)
    assert np.allclose(short.bayesian(strata, 0, [1, 2, 3], work), before, rtol=1e-11, atol=1e-11)


def test_memory_grows_with_rows_columns_levels_and_workers():
    def need(n_variables, n_levels, n_rows, n_workers):
        domain = Domain(
            tuple(Variable(f"v{k}", tuple(map(str, range(n_levels)))) for k in range(n_variables))
        )
        rng = np.random.default_rng(0)
        codes = rng.integers(0, n_levels, (n_rows, n_variables))
        return bytes_to_count(Dataset.from_codes(domain, codes), n_workers)

    assert need(8, 3, 500, 1) < need(8, 3, 500, 2) < need(8, 3, 900, 2) < need(16, 3, 900, 2)
    assert need(4, 3, 500, 1) < need(4, 300, 500, 1)


def test_cutting_beside_the_main_thread_changes_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    domain = Domain(tuple(Variable(name, ("0", "1", "2")) for name in "abcd"))
    table = StrataTable.of(Dataset.from_codes(domain, rng.integers(0, 3, (60, 4))))
    here = table.given([0, 2], table.workspace())
    monkeypatch.setattr("unless.runtime.interrupts._LONG", 0.0)
    aside = table.given([0, 2], table.workspace())
    assert [np.array(one).tobytes() for one in aside] == [np.array(one).tobytes() for one in here]
