import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from unless.independence import power
from unless.independence.power import NEVER, critical_values, minimum_rows
from unless.independence.statistics import chi_square_tails, tail

ALPHAS = (0.05, 0.01, 0.001, 0.5, 0.2, 1e-6, 1e-200, 0.999)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_critical_value_is_the_last_double_that_reads_as_independent(alpha):
    critical = critical_values(alpha, 400)
    df = np.arange(1, 401)
    assert (chi_square_tails(df, critical[1:]) >= alpha).all()
    beyond = critical[1:]
    for _ in range(8):
        beyond = np.nextafter(beyond, np.inf)
        assert (chi_square_tails(df, beyond) < alpha).all()


def test_critical_values_are_the_quantiles_of_the_chi_square():
    assert critical_values(0.05, 30)[1:] == pytest.approx(stats.chi2.isf(0.05, np.arange(1, 31)), rel=1e-12)


@given(st.floats(1e-9, 0.99), st.integers(1, 60), st.floats(0, 500))
def test_comparing_with_the_critical_value_is_comparing_p_with_alpha(alpha, df, statistic):
    independent = tail(df, statistic) >= alpha
    assert (statistic <= critical_values(alpha, df)[df]) == independent


def test_no_degrees_of_freedom_never_reject_and_never_suffice():
    assert critical_values(0.05, 0).tolist() == [math.inf]
    assert minimum_rows(0.05, 0.3, 0).tolist() == [NEVER]


@pytest.mark.parametrize("alpha", [0.05, 0.001])
@pytest.mark.parametrize("effect", [0.05, 0.3, 2.0])
def test_minimum_rows_is_where_power_reaches_four_fifths(alpha, effect):
    df = np.arange(1, 101)
    rows = minimum_rows(alpha, effect, 100)[1:]
    critical = stats.chi2.isf(alpha, df)
    assert (stats.ncx2.sf(critical, df, rows * effect**2) >= 0.8).all()
    assert (stats.ncx2.sf(critical, df, (rows - 1) * effect**2) < 0.8).all()


def test_minimum_rows_of_a_medium_effect_are_those_of_cohens_tables():
    assert minimum_rows(0.05, 0.3, 4)[1:].tolist() == [88, 108, 122, 133]


def test_tables_are_made_at_once_are_kept_and_cannot_be_written_to(monkeypatch):
    """A law is asked a few dozen times for each degree of freedom, of all together where it can."""
    sizes = []

    def counted(name):
        ask = getattr(power, name)

        def asked(*arguments):
            sizes.append(max(np.size(one) for one in arguments))
            return ask(*arguments)

        return asked

    for name in ("chi_square_tails", "noncentral_tail", "noncentrality_of"):
        monkeypatch.setattr(power, name, counted(name))
    minimum_rows(0.0123, 0.31, 100)
    assert set(sizes) == {1}
    assert len(sizes) < 50 * 100
    sizes.clear()
    critical = critical_values(0.0123, 3000)
    assert set(sizes) == {3000}
    assert len(sizes) < 100
    sizes.clear()
    assert critical_values(0.0123, 3000) is critical
    assert sizes == []
    with pytest.raises(ValueError, match="read-only"):
        critical[0] = 1.0
