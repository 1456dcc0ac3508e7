import math

import numpy as np
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


def test_numbers_of_numpy_are_numbers():
    assert unless.Gaussian(np.int64(1)) == unless.Gaussian(1.0)
    assert repr(unless.Gaussian(np.float32(0.5)) + unless.Laplace(np.int8(2))) == "Gaussian(0.5) + Laplace(2)"
    with pytest.raises(SettingError, match="not a number"):
        unless.Gaussian(np.bool_(True))


@pytest.mark.parametrize(
    "prior", [lambda: unless.Gaussian(1e-200), lambda: unless.Gaussian(1e200), lambda: unless.Laplace(1e300)]
)
def test_priors_beyond_all_numbers_are_refused(prior):
    with pytest.raises(SettingError, match=r"beyond what can be computed|below 1e100"):
        prior()
