"""Reading keeps what tests need beyond levels: finer groups of cut numbers, and rows with missing values."""

import numpy as np
import pytest

import unless
from unless.data.dataset import unknown_levels


def table(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n_rows)
    x, y = (0.8 * z + 0.6 * rng.normal(size=n_rows) for _ in range(2))
    return {"x": x.round(4), "y": y.round(4), "z": z.round(4), "sex": rng.choice(["f", "m"], n_rows)}


def test_each_finer_group_lies_inside_one_level_and_all_rows_are_there():
    data = unless.read(table(2_000))
    assert set(data.detail.finer) == {"x", "y", "z"}
    assert data.detail.counts.sum() == data.n_rows == 2_000
    for name, groups in data.detail.finer.items():
        codes = data.detail.rows[:, data.domain.index(name)]
        pairs = set(zip(groups.tolist(), codes.tolist(), strict=True))
        assert len(pairs) == len(set(groups.tolist())) > len(set(codes.tolist()))
    again = unless.Dataset.from_codes(data.domain, data.detail.rows, data.detail.counts)
    assert again == data


def test_few_rows_and_plain_categories_have_no_detail():
    assert unless.read(table(80)).detail is None
    assert unless.read({"a": ["x", "y"] * 900, "b": ["u", "v", "w"] * 600}).detail is None
    assert unless.read(table(2_000), strict=True, bins=dict.fromkeys("xyz", 4)).detail is None


def test_the_order_of_rows_does_not_matter():
    columns = table(1_500)
    turned = {name: values[::-1] for name, values in columns.items()}
    one, other = unless.read(columns).detail, unless.read(turned).detail
    assert np.array_equal(one.rows, other.rows)
    assert np.array_equal(one.counts, other.counts)
    assert all(np.array_equal(one.finer[name], other.finer[name]) for name in one.finer)


@pytest.mark.parametrize("suffix", ["csv", "frame"])
def test_rows_with_missing_values_serve_the_tests_that_can_use_them(tmp_path, suffix):
    import pandas

    rng = np.random.default_rng(1)
    frame = pandas.DataFrame({name: rng.choice(["a", "b", "c"], 600) for name in "pqr"})
    frame.loc[rng.random(600) < 0.08, "p"] = None
    frame.loc[rng.random(600) < 0.04, "q"] = None
    if suffix == "csv":
        frame.to_csv(tmp_path / "t.csv", index=False)
    data = unless.read(tmp_path / "t.csv" if suffix == "csv" else frame)
    assert data.n_rows == frame.dropna().shape[0]
    assert data.detail.counts.sum() == 600
    lacking = {name: int(data.detail.counts[holes].sum()) for name, holes in data.detail.missing.items()}
    assert lacking == {name: int(frame[name].isna().sum()) for name in "pq"}
    assert "learners leave them out, tests and networks use what they have" in data.plan.missing
    # Who asks for it gets the rows dropped.
    assert unless.read(frame, missing="drop").detail is None
    statements = unless.learn(data).statements_
    used = {one.pair: one.evidence[0].n_rows for one in statements}
    assert used["q", "r"] >= int(frame[["q", "r"]].notna().all(axis=1).sum()) - int(frame["p"].isna().sum())
    assert max(used.values()) <= 600


def test_what_follows_a_number_is_not_linked_by_its_cut():
    falsely = 0
    for seed in range(6):
        found = {one.pair for one in unless.learn(table(4_000, seed)).statements_.findings}
        assert {("x", "z"), ("y", "z")} <= found
        falsely += ("x", "y") in found
    assert falsely == 0


def test_a_level_of_missing_values_that_nobody_asked_for_is_no_value_to_tests():
    """Which rows lack an answer depends on the region; the answer does not."""
    import pandas

    rng = np.random.default_rng(5)
    region = rng.integers(0, 3, 900)
    frame = pandas.DataFrame({"region": np.array(list("nsw"))[region]})
    for name in ("job", "mood"):
        frame[name] = np.array(list("abc"))[rng.integers(0, 3, 900)]
        frame.loc[rng.random(900) < np.array([0.15, 0.4, 0.65])[region], name] = None
    data = unless.read(frame)
    assert "job" in unknown_levels(data)
    assert "which tests do not take for a value" in data.plan.missing
    assert not unless.learn(frame).statements_.findings
    # Who asks for a level gets one, and the truth about it.
    asked = unless.learn(frame, missing="level").statements_.findings
    assert {one.pair for one in asked} == {("job", "region"), ("mood", "region")}
    assert not unknown_levels(unless.read(frame, missing="level"))
