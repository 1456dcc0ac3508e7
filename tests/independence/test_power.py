import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from unless.independence.power import power_of, rows_needed


@given(st.integers(1, 200), st.integers(0, 10_000), st.floats(0.01, 1.0))
def test_power_is_the_tail_of_the_noncentral_chi_square(df, n_rows, effect):
    expected = stats.ncx2.sf(stats.chi2.isf(0.05, df), df, n_rows * effect**2) if n_rows else 0.05
    assert float(power_of(df, n_rows, 0.05, effect)) == pytest.approx(expected, abs=1e-9)


def test_nothing_is_seen_without_degrees_of_freedom():
    assert float(power_of(0, 10**6, 0.05, 0.3)) == 0.0


@pytest.mark.parametrize("power", [0.5, 0.8, 0.99])
def test_rows_needed_is_the_smallest_number_that_suffices(power):
    df = np.array([1, 2, 7, 64])
    needed = rows_needed(df, 0.05, 0.1, power)
    assert (power_of(df, needed, 0.05, 0.1) >= power).all()
    assert (power_of(df, needed - 1, 0.05, 0.1) < power).all()


def test_rows_needed_of_a_tiny_effect_are_found_at_once():
    assert int(rows_needed(1, 0.05, 1e-5)) == pytest.approx(7.84886e10, rel=1e-5)


@pytest.mark.parametrize("alpha", [1e-6, 1e-20, 1e-100, 1e-300])
@pytest.mark.parametrize(("df", "n_rows"), [(1, 10), (4, 300), (60, 1_000)])
def test_a_very_small_power_keeps_its_digits(df, n_rows, alpha):
    # 1 - chndtr is 0, or noise, here.
    exact = float(stats.ncx2.sf(stats.chi2.isf(alpha, df), df, 0.01 * n_rows))
    assert float(power_of(df, n_rows, alpha, 0.1)) == pytest.approx(exact, rel=1e-9)
    assert float(power_of(df, 0, alpha, 0.1)) == pytest.approx(alpha, rel=1e-9)
