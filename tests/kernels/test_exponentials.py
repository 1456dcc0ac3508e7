"""Exponentials and logarithms of many numbers at once: as near as those of one, and the same everywhere."""

import numpy as np
import pytest

from unless.kernels import algebra, compiling
from unless.kernels.compiling import compiled

UNIT = 2.0**-52


@compiled
def both(powers, numbers):
    algebra.exp_all(powers)
    algebra.log_all(numbers)


def exp_all(numbers):
    found = np.array(numbers, dtype=np.float64)
    algebra.exp_all(found)
    return found


def log_all(numbers):
    found = np.array(numbers, dtype=np.float64)
    algebra.log_all(found)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_they_are_within_two_units_of_the_last_place(seed):
    rng = np.random.default_rng(seed)
    powers = -np.concatenate(
        [rng.exponential(1, 500), rng.uniform(0, 690, 500), 10.0 ** -rng.uniform(0, 12, 50)]
    )
    assert np.all(np.abs(exp_all(powers) - np.exp(powers)) <= 2 * UNIT * np.exp(powers))
    numbers = 1 + np.concatenate(
        [rng.uniform(0, 5, 500), rng.exponential(1e6, 100), 10.0 ** -rng.uniform(0, 12, 50)]
    )
    assert np.all(np.abs(log_all(numbers) - np.log(numbers)) <= 2 * UNIT * np.log(numbers))


def test_bounds_are_exact():
    assert exp_all([0.0, -0.0]).tolist() == [1.0, 1.0]
    assert log_all([1.0]).tolist() == [0.0]
    assert 0 < exp_all([-1e300])[0] < 1e-300
    assert exp_all([]).tolist() == log_all([]).tolist() == []


@pytest.mark.skipif(
    compiling.FORCED == "plain" or not compiling.has_numba(), reason="nothing compiles kernels"
)
def test_machine_code_takes_the_same_steps():
    rng = np.random.default_rng(9)
    powers, numbers = -rng.exponential(30, 1003), 1 + rng.exponential(3, 1003)
    plain = exp_all(powers), log_all(numbers)
    both.machine_code(powers, numbers)
    assert (powers.tobytes(), numbers.tobytes()) == tuple(one.tobytes() for one in plain)
