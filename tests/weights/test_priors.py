import math

import pytest

import unless
from unless.errors import SettingError
from unless.weights.priors import NO_PRIOR, Prior


def test_priors_add_up():
    assert unless.Gaussian(1) + unless.Laplace(5) == Prior(sd=1, l1=5)
    assert unless.Laplace(1) + unless.Laplace(2) == Prior(l1=3)
    both = unless.Gaussian(1) + unless.Gaussian(1)
    assert both.precision == pytest.approx(2)


def test_priors_are_shown_as_they_are_written():
    assert repr(unless.Gaussian(1.0) + unless.Laplace(5)) == "Gaussian(1) + Laplace(5)"
    assert repr(NO_PRIOR) == "None"


@pytest.mark.parametrize("sd", [0, -1, math.nan, math.inf, "1", None, True])
def test_a_deviation_out_of_range_is_refused(sd):
    with pytest.raises(SettingError, match="prior"):
        unless.Gaussian(sd)


@pytest.mark.parametrize("l1", [-1, math.nan, math.inf, "1", None, True])
def test_a_cost_out_of_range_is_refused(l1):
    with pytest.raises(SettingError, match="l1="):
        unless.Laplace(l1)
