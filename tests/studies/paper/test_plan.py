"""Plans: the paper's, a quick one, and those that were narrowed."""

import pytest

from studies.paper.figures import _short
from studies.paper.plan import FULL, QUICK, SIZES, make_plan
from unless.errors import SettingError


def test_without_wishes_a_plan_is_whole():
    assert make_plan() is FULL
    assert make_plan(quick=True) is QUICK
    assert set(QUICK.runs()) <= set(FULL.runs())


def test_a_narrowed_plan_is_the_study_alone_in_its_own_order():
    plan = make_plan(sizes=[100, 20, 100], methods=["generating", "csgs"], n_variables=[7, 6])
    assert plan.large is None
    assert (plan.main.sizes, plan.main.n_variables) == ((20, 100), (6, 7))
    assert plan.main.methods == ("CSGS", "generating")
    assert plan.main.n_networks == 10
    assert make_plan(quick=True, n_networks=5).main.sizes == QUICK.main.sizes
    assert make_plan(n_networks=5).main.sizes == SIZES


@pytest.mark.parametrize(
    "wish",
    [{"sizes": [9]}, {"sizes": [100_001]}, {"n_variables": [2]}, {"n_networks": 0}, {"methods": ["PC"]}],
)
def test_wishes_out_of_range_are_refused(wish):
    with pytest.raises(SettingError):
        make_plan(**wish)


def test_sizes_are_written_short_and_whole():
    assert [_short(size) for size in (20, 1_000, 1_500, 100_000)] == ["20", "1k", "1.5k", "100k"]
