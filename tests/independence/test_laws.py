"""Tails and quantiles against scipy's, and against arithmetic with sixty digits."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import special

from unless.independence import statistics
from unless.independence.statistics import (
    Statistic,
    chi_square_critical,
    chi_square_tail,
    chi_square_tails,
    critical_value,
    gamma_below,
    gamma_tail,
    noncentral_tail,
    noncentrality_of,
    p_values_of,
)

rng = np.random.default_rng(5)


def exact_tail(df, value):
    """Sum the tail of an even df with sixty digits."""
    with localcontext() as context:
        context.prec = 60
        half, term, total = Decimal(value) / 2, Decimal(1), Decimal(1)
        for k in range(1, df // 2):
            term *= half / k
            total += term
        return total * (-half).exp()


def values_around(df, low, high):
    """Return values of chi-square between two numbers of standard deviations, by Wilson and Hilferty."""
    spread = 2 / (9 * df)
    return np.maximum(df * (1 - spread + rng.uniform(low, high, len(df)) * np.sqrt(spread)) ** 3, 1e-3)


@pytest.mark.parametrize(
    ("low", "high", "off"), [(2, 200, 5e-15), (202, 1_000, 3e-13), (1_002, 6_000, 6e-13)]
)
def test_tails_have_the_digits_of_longer_arithmetic(low, high, off):
    df = 2 * rng.integers(low // 2, high // 2, 60)
    for one, value in zip(df.tolist(), values_around(df, -5, 36).tolist(), strict=True):
        exact = exact_tail(one, value)
        if exact > Decimal("1e-300"):
            assert abs(float(Decimal(chi_square_tail(one, value)) / exact - 1)) < off


@pytest.mark.parametrize(
    ("low", "high", "off"), [(1, 60, 3e-13), (61, 5_000, 1e-11), (5_000, 200_000, 3e-11)]
)
def test_tails_equal_scipys_and_one_value_is_as_many(low, high, off):
    df = rng.integers(low, high + 1, 500)
    values = values_around(df, -6, 36)
    tails, wanted = chi_square_tails(df, values), special.chdtrc(df, values)
    known = wanted > 1e-290
    # scipy's are off by this much in the far tail, those of the test above by far less.
    np.testing.assert_allclose(tails[known], wanted[known], rtol=off)
    near = wanted > 1e-20
    np.testing.assert_allclose(tails[near], wanted[near], rtol=1e-12)
    assert tails[:50].tolist() == [chi_square_tail(*one) for one in zip(df[:50], values[:50], strict=True)]


def test_tails_at_the_edges():
    for df in (1, 2, 3, 60, 199, 201, 5_000, 2.5, 70.5):
        assert (chi_square_tail(df, 0.0), chi_square_tail(df, math.inf)) == (1.0, 0.0)
        assert chi_square_tail(df, -1.0) == 1.0
        assert math.isnan(chi_square_tail(df, math.nan))
        assert chi_square_tail(df, 5e-324) == pytest.approx(1.0)
        assert 0 <= chi_square_tail(df, 1e7) < 1e-300
    assert chi_square_tails([], []).tolist() == []
    assert math.isnan(gamma_tail(-1.0, 1.0))
    np.testing.assert_allclose(
        chi_square_tails([[1, 2], [3, 300]], 7.0), special.chdtrc([[1, 2], [3, 300]], 7.0)
    )


def test_nothing_is_shown_where_nothing_is_free():
    # The larger of two fits may have fewer weights: levels that are not shown have none.
    assert [Statistic(70.0, df).p for df in (0, -1, -2, -3, -300)] == [1.0] * 5
    assert p_values_of([Statistic(70.0, df) for df in (0, -1, -2, -3, -300)]) == [1.0] * 5


def test_gamma_laws_of_any_shape():
    shapes = np.concatenate([rng.uniform(0.01, 30, 150), np.exp(rng.uniform(3.4, 11, 150))])
    x = shapes * np.exp(rng.normal(0, 1, 300) * np.where(shapes < 30, 1.0, 3 / np.sqrt(shapes)))
    for ours, theirs in ((gamma_below, special.gammainc), (gamma_tail, special.gammaincc)):
        found = np.array([ours(*one) for one in zip(shapes.tolist(), x.tolist(), strict=True)])
        np.testing.assert_allclose(found, theirs(shapes, x), rtol=2e-12, atol=1e-250)


def test_critical_values_are_where_tails_are_as_asked():
    df = np.concatenate([np.arange(1, 120), rng.integers(120, 200_000, 80)])
    tails = np.concatenate([np.exp(-rng.uniform(0, 660, 150)), rng.uniform(0.001, 0.999, 49)])
    found = chi_square_critical(df, tails)
    np.testing.assert_allclose(found, special.chdtri(df, tails), rtol=1e-12)
    assert chi_square_critical([1, 5], [0.0, 1.0]).tolist() == [math.inf, 0.0]
    assert critical_value(1, 0.05) == pytest.approx(3.841458820694124, rel=1e-15)


@pytest.mark.parametrize(("df", "below"), [(1, 0.05), (9, 0.025), (200, 0.5), (300, 0.95)])
def test_a_huge_statistic_is_taken_as_normal(df, below, monkeypatch):
    by_normal = noncentrality_of(df, 1.01e9, below)
    monkeypatch.setattr(statistics, "_HUGE", 2e9)
    noncentrality_of.cache_clear()
    assert by_normal == pytest.approx(noncentrality_of(df, 1.01e9, below), rel=1e-10)
    noncentrality_of.cache_clear()


def test_noncentral_laws():
    df = rng.integers(1, 300, 100).astype(float)
    shifts = np.exp(rng.uniform(-3, 8, 100))
    values = (df + shifts) * np.exp(rng.normal(0, 0.4, 100))
    found = [noncentral_tail(*one) for one in zip(df, values, shifts, strict=True)]
    np.testing.assert_allclose(found, 1 - special.chndtr(values, df, shifts), atol=1e-12)
    assert noncentral_tail(3, 5.0, 0.0) == chi_square_tail(3, 5.0)
    chances = rng.uniform(0.01, 0.9, 100) * special.chdtr(df, values)
    shown = [noncentrality_of(*one) for one in zip(df, values, chances, strict=True)]
    np.testing.assert_allclose(shown, special.chndtrinc(values, df, chances), rtol=1e-10)
    assert noncentrality_of(3, 5.0, 0.99) == noncentrality_of(3, 0.0, 0.05) == 0.0


def test_a_far_law_needs_no_sum(monkeypatch):
    df, shifts = rng.integers(1, 300, 200), np.exp(rng.uniform(3, 9, 200))
    values = (df + shifts) * rng.uniform(0.0, 1.2, 200)
    asked = list(zip(df.tolist(), values.tolist(), shifts.tolist(), strict=True))
    summed = [noncentral_tail(*one) for one in asked]
    monkeypatch.setattr(statistics, "_MANY_TERMS", 0.0)
    found = [noncentral_tail(*one) for one in asked]
    np.testing.assert_allclose(found, summed, rtol=1e-12)
    assert 20 < sum(one == 1.0 for one in found) < 150
    monkeypatch.undo()
    # Its sum would have 24 times the root of 5e14 terms.
    assert noncentral_tail(1, 3.84, 1e15) == 1.0
