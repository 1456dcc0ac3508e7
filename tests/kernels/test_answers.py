"""The compiled decision equals the p-value of the well-known implementation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from strategies import contingency_tables
from twins.naive import naive_answer, without_empty
from unless.independence.power import critical_values, minimum_rows
from unless.kernels.answers import (
    BAYESIAN,
    DEPENDENT,
    INDEPENDENT,
    LIKELIHOOD_RATIO,
    PEARSON,
    UNDECIDED,
    Rules,
    decide,
)
from unless.kernels.compiling import compiled
from unless.kernels.cube import CubeWorkspace

NUMBERS = {"independent": INDEPENDENT, "dependent": DEPENDENT, "undecided": UNDECIDED}
TESTS = {"pearson": PEARSON, "likelihood_ratio": LIKELIHOOD_RATIO, "bayesian": BAYESIAN}


@compiled
def decide_from_python(desk, n_a, n_b, total, rules, flipped):
    return decide(desk, n_a, n_b, total, rules, flipped)


def compiled_answer(table, test, alpha, effect=None, flipped=False, critical=None):
    """Ask the kernel; without an effect, no test lacks power."""
    n_a, n_b = table.shape
    max_df = max((n_a - 1) * (n_b - 1), 1)
    limits = np.array(critical_values(alpha, max_df)) if critical is None else np.full(max_df + 1, critical)
    enough = (
        np.zeros(max_df + 1, np.int64) if effect is None else np.array(minimum_rows(alpha, effect, max_df))
    )
    nothing = np.zeros((1, 1), dtype=np.uint64)
    rules = Rules(limits, enough, TESTS[test], False, 9, nothing, nothing)
    desk = CubeWorkspace(
        nothing, table.ravel(), table.sum(axis=1), np.zeros(n_b, dtype=np.int64), np.zeros(n_b)
    )
    return decide_from_python(desk, n_a, n_b, int(table.sum()), rules, flipped)


@pytest.mark.parametrize(
    ("test", "lambda_"), [("pearson", "pearson"), ("likelihood_ratio", "log-likelihood")]
)
@settings(max_examples=200, deadline=None)
@given(table=contingency_tables(), alpha=st.sampled_from([0.05, 0.001, 0.3]))
def test_answers_are_those_of_chi2_contingency_without_empty_rows_and_columns(test, lambda_, table, alpha):
    dense = without_empty(table)
    if min(dense.shape, default=0) < 2:
        assert compiled_answer(table, test, alpha) == UNDECIDED
        return
    p = chi2_contingency(dense, correction=False, lambda_=lambda_).pvalue
    assert compiled_answer(table, test, alpha) == (INDEPENDENT if p >= alpha else DEPENDENT)


@pytest.mark.parametrize("test", TESTS)
@settings(max_examples=100, deadline=None)
@given(table=contingency_tables(), effect=st.sampled_from([0.1, 0.3, 0.8]))
def test_three_answers_are_those_of_the_slow_twin(test, table, effect):
    assert (
        compiled_answer(table, test, 0.05, effect) == NUMBERS[naive_answer(table, test=test, effect=effect)]
    )


@pytest.mark.parametrize("test", TESTS)
@settings(max_examples=100, deadline=None)
@given(table=contingency_tables())
def test_a_question_asked_from_the_other_side_has_the_same_answer(test, table):
    mirrored = np.ascontiguousarray(table.T)
    assert compiled_answer(mirrored, test, 0.05, 0.3, flipped=True) == compiled_answer(table, test, 0.05, 0.3)


@settings(max_examples=100, deadline=None)
@given(table=contingency_tables(), scale=st.sampled_from([1, 1000, 10**9]))
def test_a_statistic_at_its_critical_value_is_told_from_the_next_number(table, scale):
    table = table * scale
    dense = without_empty(table)
    if min(dense.shape, default=0) < 2:
        return
    rows, columns, total = dense.sum(axis=1), dense.sum(axis=0), int(dense.sum())
    statistic = 0.0
    for (i, j), observed in np.ndenumerate(dense):
        expected = float(rows[i]) * float(columns[j]) / total
        statistic += (float(observed) - expected) * (float(observed) - expected) / expected
    assert compiled_answer(table, "pearson", None, critical=statistic) == INDEPENDENT
    assert compiled_answer(table, "pearson", None, critical=np.nextafter(statistic, -1)) == DEPENDENT
