import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import contingency_tables, strata
from twins.naive import naive_answer, naive_bayesian_pooled, naive_df
from unless.errors import SettingError
from unless.independence.statistics import log1mexp, log_bayes_factors, log_probabilities
from unless.independence.tests import BayesianTest


def exact_evidence(counts):
    """Return Y of counts as a fraction: (r - 1)! prod c_i! / (r - 1 + sum c_i)!"""
    counts = [int(count) for count in np.ravel(counts)]
    product = math.prod(math.factorial(count) for count in counts) * math.factorial(len(counts) - 1)
    return Fraction(product, math.factorial(len(counts) - 1 + sum(counts)))


def exact_odds(table):
    """Return h / g of one table as a fraction."""
    return exact_evidence(table) / (exact_evidence(table.sum(axis=1)) * exact_evidence(table.sum(axis=0)))


def small_tables():
    return contingency_tables(max_side=3).filter(lambda table: table.sum() <= 60)


@given(small_tables())
def test_slice_agrees_with_exact_fractions(table):
    odds = exact_odds(table)
    verdict = BayesianTest().on(table)
    if table.sum() == 0:
        assert verdict.probability == pytest.approx(0.5)
    else:
        assert verdict.probability == pytest.approx(float(1 / (1 + odds)), rel=1e-10)
        assert float(log_bayes_factors(table)) == pytest.approx(math.log(odds), abs=1e-10)
    if naive_df(table):
        assert verdict.is_independent == (odds <= 1)
    else:
        assert verdict.is_undecided


@given(strata(max_strata=4, max_side=3).filter(lambda tables: tables.sum() <= 200))
def test_strata_agree_with_the_published_formula(tables):
    prior = 0.5 ** (1 / len(tables))
    probability = math.prod(prior / (prior + (1 - prior) * float(exact_odds(table))) for table in tables)
    log_independent, log_dependent = log_probabilities(tables)
    assert math.exp(log_independent) == pytest.approx(probability, rel=1e-9)
    assert math.exp(log_dependent) == pytest.approx(1 - probability, rel=1e-6, abs=1e-15)


@given(strata())
def test_agrees_with_the_naive_twin(tables):
    log_independent, _, df = naive_bayesian_pooled(list(tables))
    verdict = BayesianTest().on(tables)
    assert verdict.df == df
    assert verdict.log_probability == pytest.approx(log_independent, rel=1e-6, abs=1e-6)
    assert BayesianTest().on(tables[0]).answer == naive_answer(tables[0], test="bayesian")


def test_neither_side_is_lost_when_the_other_is_certain():
    copy, nothing = np.array([[[10**6, 0], [0, 10**6]]]), np.full((1, 30, 30), 10**6)
    assert log_probabilities(copy)[0] < -(10**6)
    assert log_probabilities(copy)[1] == 0.0
    assert -math.inf < log_probabilities(nothing)[1] < -5000
    assert log_probabilities(nothing)[0] == 0.0


def test_an_absent_level_counts_as_one_the_prior_knows():
    table = np.array([[5, 2], [1, 6]])
    padded = np.pad(table, ((0, 1), (0, 0)))
    assert BayesianTest().on(table).probability != pytest.approx(BayesianTest().on(padded).probability)
    assert BayesianTest().on(table).df == BayesianTest().on(padded).df == 1


def test_a_stricter_threshold_asks_for_more_certainty():
    table = [[12, 9], [9, 12]]
    probability = BayesianTest().on(table).probability
    assert 0.5 < probability < 0.9
    assert BayesianTest().on(table).is_independent
    assert BayesianTest(threshold=0.9).on(table).is_dependent
    with pytest.raises(SettingError):
        BayesianTest(threshold=1.0)


@given(st.floats(-700, -1e-300))
def test_log1mexp_keeps_its_digits(x):
    assert log1mexp(x) <= 0
    if x > -1e-10:
        assert log1mexp(x) == pytest.approx(math.log(-x), rel=1e-9)
    elif x < -30:
        assert log1mexp(x) == pytest.approx(-math.exp(x), rel=1e-9)
    else:
        assert log1mexp(x) == pytest.approx(math.log(1 - math.exp(x)), rel=1e-5, abs=1e-12)


def test_no_strata_leave_the_prior():
    assert log_probabilities(np.zeros((0, 2, 2))) == pytest.approx((math.log(0.5), math.log(0.5)))
