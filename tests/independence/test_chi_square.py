"""Pearson's and the likelihood-ratio test, on slices and pooled."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from scipy import stats

from strategies import contingency_tables, strata
from twins.naive import (
    naive_answer,
    naive_df,
    naive_likelihood_ratio,
    naive_pearson,
    naive_pooled,
    without_empty,
)
from unless.errors import DataError, SettingError
from unless.independence.statistics import likelihood_ratio_statistic, pearson_statistic
from unless.independence.tests import LikelihoodRatioTest, PearsonTest

TESTS = pytest.mark.parametrize(
    ("test", "naive", "lambda_"),
    [
        (PearsonTest(), naive_pearson, "pearson"),
        (LikelihoodRatioTest(), naive_likelihood_ratio, "log-likelihood"),
    ],
    ids=["pearson", "likelihood_ratio"],
)


def close(table):
    # Sums of terms as large as the counts keep only so many digits.
    return {"rel": 1e-9, "abs": 1e-13 * max(1, int(np.sum(table)))}


@TESTS
@given(table=contingency_tables())
@example(table=np.zeros((2, 3), dtype=np.int64))
@example(table=np.array([[10**15, 0], [0, 1]]))
def test_agrees_with_scipy_on_the_table_without_empty_rows_and_columns(test, naive, lambda_, table):
    verdict = test.on(table)
    if naive_df(table) == 0:
        assert (verdict.answer, verdict.df, verdict.p, verdict.statistic) == ("undecided", 0, None, 0.0)
        return
    expected = stats.chi2_contingency(without_empty(table), correction=False, lambda_=lambda_)
    assert verdict.df == expected.dof
    assert verdict.statistic == pytest.approx(expected.statistic, **close(table))
    assert verdict.p == pytest.approx(stats.chi2.sf(verdict.statistic, verdict.df), rel=1e-12)
    assert verdict.n_rows == verdict.rows_used == table.sum()
    assert verdict.small_expectations == pytest.approx(np.mean(expected.expected_freq < 5))


@TESTS
@given(table=contingency_tables())
def test_agrees_with_the_naive_twin(test, naive, lambda_, table):
    statistic, df, _ = naive(table)
    verdict = test.on(table)
    assert verdict.df == df
    assert verdict.statistic == pytest.approx(statistic, **close(table))
    assert verdict.answer == naive_answer(table, test=test.name)


@TESTS
@given(tables=strata())
def test_pooled_over_strata_statistics_and_df_are_sums(test, naive, lambda_, tables):
    statistic, df, p = naive_pooled(naive, tables)
    verdict = test.on(tables)
    assert verdict.df == df
    if df:
        assert verdict.statistic == pytest.approx(statistic, **close(tables))
        assert verdict.p == pytest.approx(p, rel=1e-6)
        assert verdict.rows_used == sum(int(table.sum()) for table in tables if naive_df(table))
    else:
        assert verdict.is_undecided


@TESTS
@given(tables=strata())
def test_one_stratum_is_a_slice_and_empty_strata_are_none(test, naive, lambda_, tables):
    assert test.on(tables[:1]) == test.on(tables[0])
    assert test.on(np.concatenate([tables, np.zeros_like(tables)])) == test.on(tables)


@TESTS
@given(table=contingency_tables())
def test_turning_the_table_changes_nothing_but_rounding(test, naive, lambda_, table):
    verdict, turned = test.on(table), test.on(table.T)
    assert (verdict.answer, verdict.df) == (turned.answer, turned.df)
    assert verdict.statistic == pytest.approx(turned.statistic, **close(table))


@pytest.mark.parametrize("statistic", [pearson_statistic, likelihood_ratio_statistic])
@given(tables=strata())
def test_a_batch_is_its_tables_one_by_one(statistic, tables):
    values, df = statistic(np.stack([tables, tables]))
    assert values.shape == df.shape == (2, len(tables))
    for position, table in enumerate(tables):
        single, single_df = statistic(table)
        assert values[0, position] == values[1, position] == pytest.approx(float(single), **close(table))
        assert df[0, position] == single_df


def test_a_weak_test_is_undecided_and_a_strong_one_is_not():
    # Cohen's w = 0.3 needs 88 rows at one degree of freedom.
    weak, strong = np.array([[21, 22], [22, 22]]), np.array([[22, 22], [22, 22]])
    assert PearsonTest().on(weak).is_undecided
    assert PearsonTest().on(weak).power == pytest.approx(0.799, abs=0.001)
    assert PearsonTest().on(strong).is_independent
    assert PearsonTest(effect=0.2).on(strong).is_undecided


def test_a_significant_test_is_dependent_however_few_its_rows():
    assert PearsonTest().on([[8, 0], [0, 8]]).is_dependent


def test_effect_sizes_are_one_for_a_copy_and_zero_for_nothing():
    copy = PearsonTest().on(np.diag([20, 20, 20]))
    assert copy.cramers_v == pytest.approx(1)
    assert copy.effect_size == pytest.approx(math.sqrt(2))
    assert PearsonTest().on([[20, 20], [20, 20]]).effect_size == 0
    assert LikelihoodRatioTest().on(np.diag([20, 20, 20])).effect_size == copy.effect_size


@pytest.mark.parametrize("test", [PearsonTest, LikelihoodRatioTest])
@pytest.mark.parametrize(
    "settings", [{"alpha": 0}, {"alpha": 1}, {"alpha": math.nan}, {"effect": 0}, {"effect": math.inf}]
)
def test_settings_out_of_range_are_refused(test, settings):
    with pytest.raises(SettingError):
        test(**settings)


@pytest.mark.parametrize(
    "table",
    [[1, 2, 3], [[1, -1], [2, 2]], [[0.5, 1], [1, 1]], [[math.nan, 1], [1, 1]], [[math.inf, 1], [1, 1]]],
)
def test_what_is_no_table_of_counts_is_refused(table):
    with pytest.raises(DataError):
        PearsonTest().on(table)
