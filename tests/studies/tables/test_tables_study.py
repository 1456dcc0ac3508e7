"""The study of tables as people have them draws what it says, resumes, and leaves other pages alone."""

import json

import numpy as np
import pytest

from studies.tables import __main__ as program
from studies.tables import asking, confounders, holes, numbers, run, samples, writing
from studies.tables.cases import Case
from studies.truth.writing import TABLES_BEGIN, TABLES_END, marked_section

RNG = np.random.default_rng


def test_every_share_of_the_plan_has_two_hundred_cases():
    cells = run.plan()
    by_part = {name: [cell.case for cell in cells if cell.case.part == name] for name in run.PARTS}
    assert all(by_part.values())
    for n in numbers.SIZES:
        for shape in numbers.SHAPES:
            cases = {one for one in by_part["numbers"] if one.n == n and one.name.startswith(shape)}
            assert sum(one.tables for one in cases) >= 200
    for n in confounders.SIZES:
        for kind in (*(f"apart, {one}" for one in confounders.STRENGTHS), "linked"):
            cases = {one for one in by_part["confounders"] if one.n == n and one.name.startswith(kind)}
            assert sum(one.tables for one in cases) >= 200
    assert min(one.tables for one in by_part["missing"] + by_part["samples"]) >= 200
    # Each table once.
    places = [(cell.case, index) for cell in cells for index in range(cell.begin, cell.end)]
    assert len(places) == len(set(places)) == sum(one.tables for one in {cell.case for cell in cells})


@pytest.mark.parametrize("x_kind", numbers.XS)
@pytest.mark.parametrize("y_kind", numbers.YS)
def test_y_follows_x_as_strongly_as_said(x_kind, y_kind):
    n, rng = 40_000, RNG(1)
    for shape in ("monotone", "U"):
        columns = numbers.make(shape, x_kind, y_kind, n, rng)
        follows = numbers.effect(columns["x"], shape)
        assert follows.mean() == pytest.approx(0, abs=1e-9)
        assert follows.var() == pytest.approx(1)
        told = numbers.indicators(columns["y"])
        best = max(abs(np.corrcoef(follows, told[:, k])[0, 1]) for k in range(told.shape[1]))
        # Three levels share the effect between them.
        assert best * np.sqrt(n) < 2 * np.sqrt(numbers.STRENGTH[shape]) + 3
    nothing = numbers.make("none", x_kind, y_kind, n, rng)
    assert abs(np.corrcoef(nothing["x"], numbers.indicators(nothing["y"])[:, 0])[0, 1]) < 0.02


def test_a_tree_cuts_where_y_changes():
    rng = RNG(2)
    x = rng.uniform(0, 1, 3_000)
    y = np.where((x > 0.25) & (x < 0.75), "in", "out")
    cuts = numbers.tree_cuts(x, numbers.indicators(y))
    assert cuts == pytest.approx([0.25, 0.75], abs=0.03)
    columns = {"x": x, "y": y}
    kept, settings = numbers.honest(columns, rng)
    assert len(kept["x"]) == len(kept["y"]) == 1_500
    assert settings == {"ordered": {"x": [0, 1, 2]}}
    crossed, _ = numbers.crosswise(columns, rng)
    # Groups are in the order of y, whichever half was asked.
    assert set(np.unique(crossed["x"])) <= {0, 1, 2}
    assert np.corrcoef(crossed["x"], y == "out")[0, 1] > 0.8


def test_nothing_joins_the_two_but_the_confounder():
    n = 60_000
    for shape in confounders.SHAPES:
        for link in (0.0, confounders.LINKED):
            columns = confounders.make(shape, "strong", "numbers", n, RNG(3), link)
            common = confounders.follows((columns["z"] - 40) / 12, shape)
            left = [columns[name] - np.polyval(np.polyfit(common, columns[name], 1), common) for name in "xy"]
            assert np.corrcoef(*left)[0, 1] == pytest.approx(link, abs=0.015)


@pytest.mark.parametrize("mechanism", holes.MECHANISMS)
def test_holes_are_as_many_as_said(mechanism):
    columns = holes.make(20_000, RNG(4))
    holed = holes.with_holes(columns, mechanism, 0.4, RNG(5))
    frame = asking.frame_of(holed)
    lacking = {name: float(frame[name].isna().mean()) for name in frame}
    names = holes.SKIPPED if mechanism == "skipped together" else holes.HOLED
    assert {name for name, rate in lacking.items() if rate} == set(names)
    assert all(lacking[name] == pytest.approx(0.4, abs=0.02) for name in names)
    by_region = frame["job"].isna().groupby(frame["region"]).mean()
    assert (by_region.max() - by_region.min() > 0.2) == (mechanism != "at random")
    together = frame["job"].isna() == frame["hours"].isna()
    assert together.all() == (mechanism == "skipped together")


@pytest.mark.parametrize("effect", samples.EFFECTS)
def test_samples_have_the_design_effect(effect):
    rng = RNG(6)
    for design in ("selected by x and y", "noise weights"):
        columns = samples.make(design, effect, 60_000, rng)
        weights = columns["weight"]
        assert (weights**2).mean() / weights.mean() ** 2 == pytest.approx(effect, rel=0.1)
        x, y = columns["x"], (columns["y"] == "c").astype(float)
        left = [one - np.average(one, weights=weights) for one in (x, y)]
        # Weighted there is nothing between the two.
        assert abs(np.average(left[0] * left[1], weights=weights)) < 0.1
        assert (abs(np.corrcoef(x, y)[0, 1]) > 0.1) == (design != "noise weights")
    columns = samples.make("clusters", effect, 40_000, rng)
    frame = asking.frame_of(columns)
    assert (frame.groupby("school")["x"].nunique() == 1).all()
    assert (frame.groupby("school").size() == samples.CLUSTER[effect]).all()


def test_a_run_goes_on_where_it_was_and_writes_its_own_section(tmp_path, monkeypatch):
    case = Case("samples", "apart, noise weights, 1.5", 200, 3, block=2)
    monkeypatch.setattr(samples, "cases", lambda _: [case])
    monkeypatch.setattr(run, "PARTS", {"samples": samples})
    (tmp_path / "accuracy.md").write_text("# Written by another study\n")
    words = ["--seed", "7", "--cells", str(tmp_path / "cells"), "--out", str(tmp_path)]
    assert program.main(["--budget", "0", *words]) == 1
    assert program.main(words) == 0
    cells = sorted((tmp_path / "cells").glob("*.json"))
    assert [len(json.loads(one.read_text())["records"]) for one in cells] == [2, 1]
    before = [one.stat().st_mtime_ns for one in cells]
    assert program.main(words) == 0
    assert [one.stat().st_mtime_ns for one in cells] == before
    text = (tmp_path / "accuracy.md").read_text()
    assert text.startswith("# Written by another study\n")
    assert text.count(TABLES_BEGIN) == text.count(TABLES_END) == 1
    assert "## Tables as people have them" in marked_section(text)
    assert "design seed" in (tmp_path / "accuracy" / "tables.md").read_text()
    assert program.main(["--only", "weather", *words]) == 2


def test_what_must_be_shown_is_judged():
    found = {"default": True, "honest": False, "crosswise": False, **{str(k): k > 2 for k in numbers.GROUPS}}
    record = {
        "part": "numbers",
        "name": "U, normal, number",
        "n": 200,
        "found": found,
        "false": dict.fromkeys(found, 0),
    }
    assert numbers.best_groups([record]) == (3, 1)
    (line,) = numbers.lines([record])
    assert line[3] is True
    false = {"part": "confounders", "name": "apart, strong, bent, numbers", "n": 500, "kinds": ["linked"]}
    judged = {line[0]: line[3] for line in confounders.lines([false])}
    assert judged["a confounder that is cut, strong: false links"] is False
    assert judged["a confounder that is cut, moderate: false links"] is None
    assert "1 of 1" in writing._summary(confounders.lines([false]))
