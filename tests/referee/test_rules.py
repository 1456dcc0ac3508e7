"""Gates of columns that follow a rule, of three columns together, and of columns of many levels."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

import unless
from unless.data.dataset import Dataset
from unless.referee.counted import find_rule
from unless.referee.regressions import RegressionTable


def said_of(columns, **settings):
    data = columns if isinstance(columns, Dataset) else unless.read(columns, **settings)
    every = unless.Graph(data.domain, list(combinations(data.names, 2)))
    return unless.explain(every, data)


def designed(noise=0.0, seed=0):
    """Draw every combination of six columns; y is 1 where a = 2 and b = 2 and c = 0, or a < 2 and b < 3."""
    cells = np.array(list(product(range(3), range(4), range(3), range(2), range(3), range(2))))
    a, b, c, d, e, f = cells.T
    y = ((a == 2) & (b == 2) & (c == 0)) | ((a < 2) & (b < 3))
    flipped = np.random.default_rng(seed).random(len(y)) < noise
    return {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f, "y": (y ^ flipped).astype(int)}


def test_a_rule_is_read_off_a_designed_table():
    one = said_of(designed()).about("c", "y")
    assert (one.kind, one.is_finding) == ("gated", True)
    assert [region.to_dict() for region in one.gate.linked] == [{"a": ["2"], "b": ["2"]}]
    assert "only when a = 2 and b = 2" in one.sentence


def test_the_box_of_a_rule_is_that_of_every_stratum():
    data = unless.read(designed())
    table = RegressionTable(data.select(sorted(data.names)))
    names = sorted(data.names)
    first, column = names.index("c"), names.index("y")
    held = [k for k in range(7) if k not in (first, column)]
    rule = find_rule(table, first, column, held, held)
    rows = {}
    for row in data.select(names).rows.tolist():
        rows.setdefault(tuple(row[k] for k in held), set()).add(row[column])
    varying = [stratum for stratum, seen in rows.items() if len(seen) > 1]
    for gate, levels in rule.clauses:
        assert {stratum[held.index(gate)] for stratum in varying} == set(levels)


def test_a_rule_that_rows_break_is_none():
    data = unless.read(designed(noise=0.2))
    repeated = {name: np.repeat(column, 3) for name, column in designed(noise=0.2).items()}
    rng = np.random.default_rng(1)
    repeated["y"] = repeated["y"] ^ (rng.random(len(repeated["y"])) < 0.2)
    assert data.n_rows * 3 == len(repeated["y"])
    table = RegressionTable(unless.read(repeated).select(sorted(repeated)))
    assert find_rule(table, 2, 6, [0, 1, 3, 4, 5], [0, 1, 3, 4, 5]) is None


def test_random_columns_follow_no_rule():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        table = RegressionTable(unless.read({name: rng.integers(0, 3, 300) for name in "abcdy"}))
        for first, column in combinations(range(5), 2):
            held = [k for k in range(5) if k not in (first, column)]
            assert find_rule(table, first, column, held, held) is None


def test_three_columns_of_which_no_two_go_together_are_found():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, (2, 2000))
    said = said_of({"x": x, "y": y, "z": (x ^ y) ^ (rng.random(2000) < 0.1), "w": rng.integers(0, 3, 2000)})
    assert {one.pair for one in said.findings} == {("x", "y"), ("x", "z"), ("y", "z")}


def test_columns_of_many_levels_are_linked_or_not():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 40, 4000)
    b = (a // 2 + rng.integers(0, 15, 4000)) % 20
    said = said_of({"a": a, "b": b, "c": rng.integers(0, 30, 4000)}, strict=True)
    assert [one.pair for one in said.findings] == [("a", "b")]
    (evidence,) = said.about("a", "b").evidence
    assert evidence.method in {"permutations", "chi-square"}


@pytest.mark.parametrize("n_rows", [200, 1000])
def test_independent_columns_of_many_levels_make_no_finding(n_rows):
    n_false = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sizes = {"a": 20, "b": 30, "c": 50, "d": 25}
        columns = {name: rng.integers(0, size, n_rows) for name, size in sizes.items()}
        n_false += len(said_of(columns, strict=True).findings) > 0
    assert n_false <= 2


def test_what_is_missing_together_is_said_as_that():
    import pandas as pd

    rng = np.random.default_rng(1)
    skipped = rng.random(2000) < 0.1
    columns = {
        name: pd.Series(rng.integers(0, 3, 2000).astype(str)).mask(skipped) for name in ("first", "second")
    }
    one = said_of(pd.DataFrame(columns), missing="level").about("first", "second")
    n_both = int(skipped.sum())
    assert one.is_finding
    assert one.sentence.startswith(
        f"first and second are missing together: both missing in {n_both:,} of 2,000 rows; where both are"
    )


def test_a_finding_that_rests_on_a_cut_column_says_so():
    rng = np.random.default_rng(1)
    z = rng.normal(size=3000)
    x, y = ((z + rng.normal(size=3000) > 0).astype(int) for _ in range(2))
    one = said_of({"x": x, "y": y, "z": z}, bins={"z": 2}).about("x", "y")
    assert one.is_finding
    assert one.sentence.endswith("; rests on z cut in 2")
    # The columns of the pair may be cut: a link of their groups is one of the numbers.
    assert "rests on" not in said_of({"x": x, "y": y, "z": z}, bins={"z": 2}).about("x", "z").sentence


def test_what_was_cut_is_told_by_the_variables_and_not_by_notes():
    """Numbers that reading cut by itself are named, too, where no finer groups are held fixed."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=900)
    x, y = ((3 * z + rng.normal(size=900) > 0).astype(int) for _ in range(2))
    notes = ("Cut 'x' at quantiles into 7 groups: ...",)
    data = replace(unless.read({"x": x, "y": y, "z": z}), notes=notes, detail=None)
    n_groups = len(data.domain["z"].cuts) + 1
    one = unless.CSGS().fit(data).statements_.about("x", "y")
    assert one.is_finding
    assert one.sentence.endswith(f"; rests on z cut in {n_groups}")


def test_a_cut_column_that_is_held_fixed_by_finer_groups_is_not_named():
    rng = np.random.default_rng(4)
    z, x = rng.normal(size=2000), rng.integers(0, 2, 2000)
    y = (z + x + rng.normal(size=2000) > 0).astype(int)
    data = unless.read({"x": x, "y": y, "z": z})
    one = unless.CSGS().fit(data).statements_.about("x", "y")
    assert "z" in data.detail.finer
    assert one.is_finding
    assert one.given == ("z",)
    assert "rests on" not in one.sentence


def test_a_link_is_named_by_the_coarser_column_that_carries_it():
    rng = np.random.default_rng(2)
    state = rng.integers(0, 6, 4000)
    land = state // 2
    vote = np.where(rng.random(4000) < 0.5, land % 2, rng.integers(0, 2, 4000))
    said = said_of({"state": state, "land": land, "vote": vote})
    assert [one.pair for one in said.findings if one.kind != "determined"] == [("land", "vote")]
    assert said.about("state", "vote").kind == "associated"
    fine = np.where(rng.random(4000) < 0.5, state % 2, rng.integers(0, 2, 4000))
    said = said_of({"state": state, "land": land, "vote": fine})
    assert [one.pair for one in said.findings if one.kind != "determined"] == [("state", "vote")]


def test_effects_that_cancel_outside_are_no_empty_far_side():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        a, g, h = rng.integers(0, 2, (3, 6000))
        lean = np.where(g == 1, 0.3, np.where(h == 1, 0.12, -0.12))
        b = rng.random(6000) < 0.5 + lean * (2 * a - 1)
        assert said_of({"a": a, "b": b, "g": g, "h": h}).about("a", "b").kind != "gated"


def test_links_of_a_column_with_a_copy_are_said_once_whatever_the_learner():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 3000)
    b = np.where(rng.random(3000) < 0.8, a // 2, rng.integers(0, 2, 3000))
    for other in (a, a // 2):
        for learner in ("GGS", "CSGS", "GSMN"):
            found = unless.learn({"a": a, "other": other, "b": b}, learner=learner).statements_.findings
            assert len([one for one in found if one.kind != "determined"]) == 1


def test_of_one_product_of_three_columns_one_difference_is_said():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, (2, 2000))
    said = said_of({"x": x, "y": y, "z": (x ^ y) ^ (rng.random(2000) < 0.1)})
    assert sorted(one.kind for one in said.findings) == ["differs", "linked", "linked"]


def test_tables_of_many_levels_are_learned_by_default():
    rng = np.random.default_rng(0)
    sizes = {"a": 20, "b": 30, "c": 50, "d": 20, "e": 30}
    found = unless.learn({name: rng.integers(0, size, 300) for name, size in sizes.items()})
    assert not found.statements_.findings
