"""What is said of ordered columns: which way a link goes, and ranges for gates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

import unless
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Region, Variable
from unless.knowledge.evidence import Trend, pooled_tau
from unless.knowledge.sentences import regions_text

AGE = Variable("age", ("under 30", "30 to 44", "45 to 59", "60 or more"), "category", cuts=(30.0, 45.0, 60.0))
WITH_HOLES = Variable("age", (*AGE.levels, "missing"), "category", cuts=AGE.cuts)
SCHOOL = Variable("school", ("none", "some", "much"), ordered=True)


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=2, max_size=4))
def test_tau_is_that_of_kendall(cells):
    table = np.array(cells)
    rows = np.repeat(np.argwhere(table >= 0), table.ravel(), axis=0)
    found = pooled_tau(table[None])
    if found is None:
        assert any(len(set(column)) < 2 for column in rows.T) or not len(rows)
    else:
        assert found == pytest.approx(kendalltau(*rows.T).statistic, abs=1e-9)


def test_pairs_of_rows_of_other_strata_do_not_count():
    up, down = np.array([[20, 5], [5, 20]]), np.array([[5, 20], [20, 5]])
    assert pooled_tau(np.array([up, up])) == pytest.approx(pooled_tau(up[None]))
    assert pooled_tau(np.array([up, down])) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("variable", "labels", "said"),
    [
        (AGE, ("45 to 59", "60 or more"), "age is 45 or more"),
        (AGE, ("under 30", "30 to 44"), "age is under 45"),
        (AGE, ("30 to 44", "45 to 59"), "age is 30 to under 60"),
        (AGE, ("60 or more",), "age is 60 or more"),
        (AGE, ("under 30", "60 or more"), "age in {under 30, '60 or more'}"),
        (WITH_HOLES, ("60 or more", "missing"), "age in {'60 or more', missing}"),
        (SCHOOL, ("some", "much"), "school is some or more"),
        (SCHOOL, ("none", "some"), "school is some or less"),
    ],
)
def test_gates_on_ordered_columns_are_ranges(variable, labels, said):
    region = Region(((variable.name, labels),))
    assert regions_text([region], Domain((variable,))) == said


@pytest.mark.parametrize(("sign", "way"), [(1, "higher"), (-1, "lower")])
def test_the_direction_of_a_trend_is_said(tmp_path, sign, way):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, 800)
    y = np.clip(np.round(1 + sign * (x - 1) * 0.8 + rng.normal(size=800) * 0.8), 0, 2).astype(int)
    other = Variable("income", ("low", "middle", "high"), ordered=True)
    data = Dataset.from_codes(Domain((SCHOOL, other)), np.column_stack([x, y]))
    est = unless.learn(data)
    (finding,) = est.statements_.findings
    tau = finding.evidence[0].trend.tau
    assert np.sign(tau) == sign
    assert f"higher income goes with {way} school, tau = " in finding.sentence
    unless.save(est, tmp_path / "m.unless")
    (kept,) = unless.load(tmp_path / "m.unless").statements_.findings
    assert kept == finding
    assert kept.evidence[0].trend.tau == tau


def test_no_direction_is_said_of_what_goes_up_and_down():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, 900)
    y = (rng.random(900) < np.array([0.8, 0.2, 0.8])[x]).astype(int)
    other = Variable("income", ("low", "high"), ordered=True)
    data = Dataset.from_codes(Domain((SCHOOL, other)), np.column_stack([x, y]))
    (finding,) = unless.learn(data).statements_.findings
    assert "tau" not in finding.sentence


def test_a_number_and_two_levels_go_one_way_where_no_shares_are_told():
    """Strata are so many that shares cannot be told; which way the link goes can be."""
    domain = Domain((AGE, Variable("sex", ("female", "male"))))
    tables = np.zeros((3, 4, 2), dtype=np.int64)
    tables[:] = [[9, 1], [6, 4], [4, 6], [1, 9]]
    up, down = (Trend.of(domain, (0, 1), one) for one in (tables, tables[:, :, ::-1]))
    assert (up.first, up.second, up.level, down.level) == ("age", "sex", "male", "female")
    assert up.tau == down.tau > 0.5
    turned = Domain((domain.variables[1], domain.variables[0]))
    assert Trend.of(turned, (0, 1), tables.transpose(0, 2, 1)) == up
    assert Trend.of(Domain((AGE, Variable("kind", ("a", "b", "c")))), (0, 1), np.ones((1, 4, 3))) is None
    assert up.to_dict()["level"] == "male"


def test_the_direction_of_a_number_and_two_levels_is_said_and_kept(tmp_path):
    rng = np.random.default_rng(7)
    kind, sex = rng.integers(0, 3, 400), rng.integers(0, 2, 400)
    sizes = [rng.normal(size=400) + 4 * kind + 2 * sex for _ in range(3)]
    table = {"kind": np.array([*"abc"])[kind], "sex": np.array(["f", "m"])[sex]}
    est = unless.learn({**table, **{f"size{place}": size for place, size in enumerate(sizes)}})
    told = [one for one in est.statements_.findings if "goes with sex = m, tau = ." in one.sentence]
    assert told
    assert {one.evidence[0].contrast for one in told} == {None}
    unless.save(est, tmp_path / "m.unless")
    assert unless.load(tmp_path / "m.unless").statements_ == est.statements_


def test_ranks_are_named_by_their_ends():
    rng = np.random.default_rng(2)
    age = rng.integers(20, 80, 900)
    rank = np.clip(np.round(3 - (age - 20) / 30 + rng.normal(0, 0.5, 900)), 1, 3).astype(int)
    table = {"age": age.tolist(), "class": [("1st", "2nd", "3rd")[one - 1] for one in rank]}
    (finding,) = unless.learn(table | {"other": rng.integers(0, 2, 900).tolist()}).statements_.findings
    assert "higher age goes with class nearer 1st, tau = -" in finding.sentence


def test_two_columns_are_not_said_to_wait_for_others():
    table = {"a": ["x"] * 400 + ["y"] * 400, "b": (["p"] * 180 + ["q"] * 220) + (["p"] * 225 + ["q"] * 175)}
    (one,) = unless.learn(table).statements_
    assert (one.kind, "other columns" in one.sentence) == ("associated", False)


def test_questions_that_were_not_asked_determine_nothing():
    rng = np.random.default_rng(1)
    job = rng.random(800) < 0.5
    table = {
        "job": np.where(job, "yes", "no").tolist(),
        "sat": [rng.choice(["good", "bad"]) if one else None for one in job],
        "sex": rng.choice(["f", "m"], 800).tolist(),
    }
    assert unless.learn(table).statements_.findings == ()
