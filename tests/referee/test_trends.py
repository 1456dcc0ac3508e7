"""Ordered columns are also tested for a trend, by one degree of freedom."""

import numpy as np
import pytest

from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.referee.regressions import RegressionTable
from unless.referee.verdicts import Referee


def table_of(codes, n_levels, ordered=True):
    domain = Domain(
        tuple(
            Variable(f"v{place}", tuple(map(str, range(n))), ordered=ordered)
            for place, n in enumerate(n_levels)
        )
    )
    return Dataset.from_codes(domain, np.asarray(codes))


def rising(n_rows, strength, seed, n_levels=5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n_rows)
    y = strength * x + rng.normal(size=n_rows)
    edges = np.arange(1, n_levels) / n_levels
    return np.column_stack([np.searchsorted(np.quantile(v, edges), v, side="right") for v in (x, y)])


def test_without_other_columns_a_trend_is_the_squared_correlation():
    codes = rising(800, 0.2, 0, 4)
    table = RegressionTable(table_of(codes, (4, 4)))
    ((_, trend),) = table.scores_and_trends(0, table.fit(0, []), [1])
    assert trend.df == 1
    assert trend.value == pytest.approx(800 * np.corrcoef(codes.T)[0, 1] ** 2, rel=1e-3)
    ((_, back),) = table.scores_and_trends(1, table.fit(1, []), [0])
    assert back.value == pytest.approx(trend.value, rel=1e-3)


def test_given_a_binary_column_a_trend_is_a_partial_one():
    rng = np.random.default_rng(1)
    group = rng.integers(0, 2, 3_000)
    x, y = (np.clip(rng.binomial(3, 0.3 + 0.3 * group), 0, 3) for _ in range(2))
    table = RegressionTable(table_of(np.column_stack([x, y, group]), (4, 4, 2)))
    ((_, alone),) = table.scores_and_trends(0, table.fit(0, []), [1])
    ((_, given),) = table.scores_and_trends(0, table.fit(0, [(2,)]), [1])
    assert alone.p < 1e-10
    assert given.p > 0.01


def test_columns_without_order_have_no_trend():
    codes = rising(500, 0.3, 2)
    table = RegressionTable(table_of(codes, (5, 5), ordered=False))
    assert not table.has_trend(0, 1)
    ((_, trend),) = table.scores_and_trends(0, table.fit(0, []), [1])
    assert trend.df == 0
    two = np.minimum(codes, 1)
    assert not RegressionTable(table_of(two, (2, 2))).has_trend(0, 1)


def test_a_trend_finds_what_all_levels_together_hide_and_keeps_its_level():
    found = {True: 0, False: 0}
    falsely = 0
    for seed in range(60):
        for ordered in found:
            (verdict,) = Referee(table_of(rising(400, 0.16, seed), (5, 5), ordered)).judge()
            found[ordered] += verdict.p < 0.01
        (verdict,) = Referee(table_of(rising(400, 0.0, 1_000 + seed), (5, 5))).judge()
        falsely += verdict.p < 0.05
    assert found[True] >= found[False] + 12
    assert falsely <= 8


def test_a_level_of_missing_values_has_no_place_in_an_order():
    from unless.data.domain import Variable
    from unless.referee.regressions import _level_scores

    variable = Variable("x", ("low", "mid", "high", "missing"), ordered=True)
    assert _level_scores(variable, np.array([10.0, 10.0, 10.0, 5.0])).tolist() == [0, 1, 2, 1]
