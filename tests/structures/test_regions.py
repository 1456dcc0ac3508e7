"""Regions: conjunctions of sets of levels."""

import numpy as np
import pytest

from unless.data.domain import Domain, Region, Variable
from unless.errors import SettingError, UnknownLevel

DOMAIN = Domain(
    (Variable("Dept", ("A", "B", "C")), Variable("Class", ("1st", "2nd")), Variable("Sex", ("m", "f")))
)


def test_equal_regions_are_equal_however_they_are_said():
    one = Region.of(DOMAIN, {"Sex": ["f"], "Dept": ["C", "B"], "Class": ["2nd", "1st"]})
    assert one == Region.of(DOMAIN, {"Dept": ("B", "C", "B"), "Sex": "f"})
    assert str(one) == "Dept in {B, C} and Sex = f"
    assert one.to_dict() == {"Dept": ["B", "C"], "Sex": ["f"]}
    assert one.names == ("Dept", "Sex")


def test_a_region_holds_where_every_condition_does():
    rows = np.array([[d, c, s] for d in range(3) for c in range(2) for s in range(2)], dtype=np.uint16)
    region = Region.of(DOMAIN, {"Dept": ["A", "C"], "Sex": ["m"]})
    assert region.holds(DOMAIN, rows).tolist() == [d != 1 and s == 0 for d, _, s in rows.tolist()]
    assert Region().holds(DOMAIN, rows).all()
    assert str(Region()) == ""


def test_levels_that_are_unknown_or_none_are_refused():
    with pytest.raises(UnknownLevel, match="'D' is not a level of 'Dept'"):
        Region.of(DOMAIN, {"Dept": ["D"]})
    with pytest.raises(SettingError, match="'Dept' is left no level"):
        Region.of(DOMAIN, {"Dept": []})
