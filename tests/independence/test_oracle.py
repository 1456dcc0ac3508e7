"""Pooled questions as a learner asks them: by dense tables or listed strata, by critical values or p."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import datasets
from unless.counting.strata import StrataTable
from unless.independence import oracle
from unless.independence.oracle import PooledOracle
from unless.independence.power import critical_values
from unless.independence.statistics import tail


@settings(max_examples=80, deadline=None)
@given(datasets(), st.data(), st.sampled_from(["pearson", "likelihood_ratio"]), st.booleans())
def test_dense_tables_and_listed_strata_answer_alike(data, draw, test, weighs_power):
    quick = PooledOracle.of(data, test, 0.05, 0.3, weighs_power=weighs_power)
    slow = PooledOracle(StrataTable.of(data), test, 0.05, 0.3, weighs_power)
    a, b, *rest = draw.draw(st.permutations(range(data.n_variables)))
    for size in range(len(rest) + 1):
        by = frozenset(rest[:size])
        assert quick.fresh().ask(a, b, by) == quick.ask(a, b, by) == slow.ask(a, b, by)
    found, expected = quick.associations(), slow.associations()
    assert np.array_equal(found.is_dependent, expected.is_dependent)
    # G sums logarithms of nearly one, each as exact as the counts are large.
    slack = 1e-9 + 1e-14 * data.n_rows
    assert found.strength == pytest.approx(expected.strength, rel=1e-9, abs=slack)
    assert found.log_p == pytest.approx(expected.log_p, rel=1e-7, abs=1e-7 + slack)


@pytest.mark.parametrize("df", [1, 2, 7, 1024, 1025, 5000])
def test_a_critical_value_decides_unless_it_is_close(df, monkeypatch):
    oracle_of_table = PooledOracle(None, alpha=0.01)
    critical = float(critical_values(0.01, 5000)[df])
    near = [np.nextafter(critical, side) for side in (0.0, np.inf)]
    far = [0.0, critical / 2, critical * 0.999, critical * 1.001, 3 * critical]
    for statistic in [*near, critical, *far]:
        assert oracle_of_table._is_beyond(statistic, df) == (tail(df, statistic) < 0.01)
    asked = []
    monkeypatch.setattr(oracle, "tail", lambda *question: asked.append(question) or 1.0)
    for statistic in far:
        oracle_of_table._is_beyond(statistic, df)
    assert bool(asked) == (df > oracle._MOST_CRITICAL)
