"""What matters for one column, in order and with its direction."""

import numpy as np
import pandas as pd
import pytest

import unless
from unless.errors import UnknownName
from unless.knowledge.statements import strength

BERKELEY = unless.datasets.load_ucb_admissions()


@pytest.fixture(scope="module")
def berkeley():
    return unless.learn(BERKELEY)


def test_findings_are_in_the_order_of_their_strength(berkeley):
    said = berkeley.statements_.about_column("Admit")
    worths = [strength(one) for one in said.findings]
    assert worths == sorted(worths, reverse=True)
    assert [one.pair for one in said.findings] == [("Admit", "Dept"), ("Admit", "Gender")]
    # All pairs together are in another order: gates first.
    assert berkeley.statements_.findings[0].pair == ("Admit", "Gender")
    assert said.target == "Admit"
    assert berkeley.statements_.target is None


def test_a_target_of_two_levels_is_told_by_the_second(berkeley):
    said = berkeley.statements_.about_column("Admit")
    assert [str(said.direction(one)) for one in said.findings] == [
        "Admit = Rejected is more common when Dept = F: 94 % against 30 % when A",
        "Where Dept = A, Admit = Rejected is more common when Gender = Male: 38 % against 18 % when Female",
    ]


def test_shares_are_those_of_the_rows():
    frame = pd.DataFrame(
        {"x": ["p"] * 300 + ["q"] * 100, "y": [*["no"] * 270, *["yes"] * 30, *["yes", "no"] * 50]}
    )
    said = unless.learn(frame, target="y").statements_
    contrast = said.direction(said.findings[0]).contrast
    assert (contrast.level, contrast.at_high, contrast.at_low) == ("yes", "q", "p")
    assert (contrast.high, contrast.low) == pytest.approx((0.5, 0.1))


def test_a_target_of_more_levels_is_told_by_the_level_furthest_apart(berkeley):
    said = berkeley.statements_.about_column("Dept")
    directions = [said.direction(one) for one in said.findings]
    assert all(one.contrast.column == "Dept" for one in directions)


def test_the_list_is_headed_and_numbered(berkeley):
    said = berkeley.statements_.about_column("Admit")
    lines = str(said).splitlines()
    assert lines[0] == "What matters for Admit, most first:"
    assert lines[1].startswith("1. Admit = Rejected is more common when Dept = F")
    assert lines[1].endswith(f"{said[0].sentence}.")
    assert lines[2].startswith("2. Where Dept = A")
    assert said.lines(1)[2] == "... and 1 more."


def test_nothing_found_is_said():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.choice(["p", "q"], (200, 3)), columns=["a", "b", "c"])
    said = unless.learn(frame, target="a").statements_
    assert said.lines()[0] == "Nothing was found to matter for a."


def test_a_column_that_tells_all_of_the_target_comes_first():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 4, 400)
    other = np.where(rng.random(400) < 0.8, code % 2, rng.integers(0, 2, 400))
    frame = pd.DataFrame({"code": code, "even": code % 2, "other": other}).astype(str)
    said = unless.learn(frame, target="even").statements_
    assert said[0].kind == "determined"
    assert said[0].source == "code"
    assert said.direction(said[0]) is None


def test_plain_values_hold_direction_and_strength_for_a_target_alone(berkeley):
    told = berkeley.statements_.about_column("Admit").to_dict()
    assert told["target"] == "Admit"
    assert told["statements"][0]["direction"].startswith("Admit = Rejected is more common")
    assert told["statements"][0]["strength"] > told["statements"][1]["strength"] > 0
    whole = berkeley.statements_.to_dict()
    assert "target" not in whole
    assert "direction" not in whole["statements"][0]


def test_without_tables_only_shares_of_the_target_are_told(berkeley, tmp_path):
    unless.save(berkeley, tmp_path / "m.unless", rows=False)
    back = unless.load(tmp_path / "m.unless")
    said = back.statements_.about_column("Admit")
    assert str(said.direction(said[0])).startswith("Admit = Admitted is more common when Dept = A: 70 %")
    dept = back.statements_.about_column("Dept")
    assert dept.direction(dept.findings[0]) is None
    with pytest.raises(UnknownName, match="Gendre"):
        back.statements_.about_column("Gendre")


def test_explain_orders_what_it_says_of_a_target():
    structure = unless.GGS().fit(BERKELEY).structure_
    said = unless.explain(structure, BERKELEY, target="Gender")
    assert said.target == "Gender"
    assert [one.pair for one in said.findings] == [("Dept", "Gender"), ("Admit", "Gender")]
