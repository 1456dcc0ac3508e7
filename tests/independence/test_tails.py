import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive_graphs import naive_log_tail
from unless.independence.tails import log_tail


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
