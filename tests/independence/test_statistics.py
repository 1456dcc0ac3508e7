import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from twins.naive_graphs import naive_log_tail
from unless.independence.statistics import log_tail, tail, tails


@given(st.integers(0, 60), st.floats(0, 1e6))
def test_log_p_equals_the_finite_sum_near_and_far(df, statistic):
    assert float(log_tail(df, statistic)) == pytest.approx(
        naive_log_tail(df, statistic), rel=1e-10, abs=1e-10
    )


@pytest.mark.parametrize("df", [1, 2, 3, 40, 841, 5001])
def test_the_two_ways_meet_where_doubles_end(df):
    # Where p is about 1e-280 one way takes over from the other.
    for extra in range(1000, 1800, 50):
        statistic = df + extra + 30 * math.sqrt(df)
        assert float(log_tail(df, statistic)) == pytest.approx(naive_log_tail(df, statistic), rel=1e-9)


def test_arrays_are_answered_entry_by_entry():
    assert log_tail([[0, 1], [1, 2]], [[5.0, 0.0], [1e5, 2.0]]).tolist() == [
        [0.0, 0.0],
        [pytest.approx(naive_log_tail(1, 1e5)), pytest.approx(-1.0)],
    ]


def test_tails_of_many_tests_are_those_of_scipy():
    df = np.array([0, 1, 1, 1, 2, 6, 40, 1000, 1])
    statistic = np.array([0.0, 0.0, 1.5, 900.0, 3.0, 20.0, 41.0, 1100.0, 1e-20])
    expected = np.where(df > 0, special.chdtrc(np.maximum(df, 1), statistic), 1.0)
    assert tails(df, statistic) == pytest.approx(expected, rel=1e-12)
    one_by_one = [
        tail(freedom, value) for freedom, value in zip(df.tolist(), statistic.tolist(), strict=True)
    ]
    assert one_by_one == pytest.approx(expected, rel=1e-12)
