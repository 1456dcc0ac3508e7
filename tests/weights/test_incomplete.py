"""Weights from rows with missing values, against EM written out and against hostile tables."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import unless
from twins.naive_incomplete import completions, naive_em, rows_of, with_holes
from twins.naive_objective import random_case
from unless.data.dataset import Dataset
from unless.errors import DataError, SettingError, TooLarge
from unless.inference import completing
from unless.inference.completing import Completions
from unless.inference.model import LogLinearModel
from unless.inference.tables import HOLE, incomplete_rows
from unless.structures.graph import Graph
from unless.weights import fit


def table_with_holes(seed, n_levels=(2, 3, 2, 2), n_rows=60, share=0.2, n_features=12):
    """Draw features and a table in which values are missing at random; rows count once to four times."""
    features, data, rng = random_case(seed, list(n_levels), n_rows, n_features)
    return features, with_holes(data, rng.random(data.rows.shape) < share)


@pytest.mark.parametrize("seed", range(6))
def test_weights_are_those_of_em_written_out(seed):
    features, data = table_with_holes(seed, share=(0.1, 0.3, 0.5)[seed % 3])
    expected, n_rounds = naive_em(features, data, 1.0, fit.LEAST_CHANGE)
    net = unless.fit_weights(features, data)
    told = net.fit_report.completed
    assert net.weights == pytest.approx(expected, abs=1e-5)
    assert told.n_rounds == n_rounds
    assert told.change < fit.LEAST_CHANGE
    shown = [(row, count) for row, count in rows_of(data) if set(row) != {None}]
    assert told.n_complete == sum(count for row, count in shown if None not in row)
    assert told.n_incomplete == sum(count for row, count in shown if None in row)
    rows = f"{told.n_complete:,} complete rows and {told.n_incomplete:,} with missing values"
    assert str(net.fit_report).startswith(f"Fitted to {rows}, by EM in {n_rounds} round")


def test_completions_have_the_probabilities_of_the_model():
    features, data = table_with_holes(11, share=0.4)
    rng = np.random.default_rng(0)
    model = LogLinearModel(features, rng.normal(size=len(features)))
    cells, counts, _ = incomplete_rows(data)
    assert counts.sum() == data.detail.counts.sum() - data.n_rows - sum(
        count for row, count in rows_of(data) if set(row) == {None}
    )
    made = Completions(data.domain, cells)
    chances = made.probabilities(model)
    for place, row in enumerate(cells.tolist()):
        shown = [None if code == HOLE else code for code in row]
        wanted = completions(data.domain, shown, features, model.weights)
        mine = made.owner == place
        found = dict(zip(map(tuple, made.rows[mine].tolist()), chances[mine].tolist(), strict=True))
        assert found == pytest.approx(wanted)


def test_a_table_without_missing_values_is_fitted_as_before():
    features, data, _ = random_case(3, [2, 3, 2], 60, 12)
    first, second = (unless.fit_weights(features, data, incomplete=how) for how in ("em", "drop"))
    assert first.weights.tobytes() == second.weights.tobytes()
    assert first.fit_report == second.fit_report
    assert first.fit_report.completed is None


def test_rows_can_be_dropped_and_other_words_are_refused():
    features, data = table_with_holes(2)
    dropped = unless.fit_weights(features, data, incomplete="drop")
    alone = unless.fit_weights(features, replace(data, detail=None))
    assert dropped.weights.tobytes() == alone.weights.tobytes()
    assert dropped.fit_report.completed is None
    with pytest.raises(SettingError, match="incomplete='all' is not known; use 'em' or 'drop'"):
        unless.fit_weights(features, data, incomplete="all")


@pytest.mark.parametrize(
    "settings", [{"objective": "likelihood"}, {"prior": None}, {"prior": "validate", "random_state": 0}]
)
def test_other_settings_use_incomplete_rows_too(settings):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, (500, 3))
    codes[:, 1] = np.where(rng.random(500) < 0.8, codes[:, 0], codes[:, 1])
    domain = random_case(0, [2, 2, 2], 5, 3)[1].domain
    holes = np.zeros(codes.shape, dtype=bool)
    holes[:, 1] = rng.random(500) < 0.3
    data = with_holes(FromCodes(domain, codes), holes)
    features = Graph(domain, [("X0", "X1")]).features()
    net = unless.fit_weights(features, data, **settings)
    assert net.fit_report.completed.n_incomplete == holes.any(axis=1).sum()
    assert net.fit_report.converged
    # What is missing at random changes nothing of the share of agreeing rows but its error.
    agree = net.probability({"X0": "l1", "X1": "l1"}) + net.probability({"X0": "l0", "X1": "l0"})
    assert agree == pytest.approx((codes[:, 0] == codes[:, 1]).mean(), abs=0.03)


class FromCodes:
    """Rows as they are, each counted once: a table before equal rows are put together."""

    def __init__(self, domain, codes):
        self.domain, self.names = domain, domain.names
        self.rows, self.counts = codes.astype(np.uint16), np.ones(len(codes), dtype=np.int64)


def test_marginals_are_right_where_complete_rows_are_biased():
    rng = np.random.default_rng(5)
    first = rng.integers(0, 2, 20_000)
    second = np.where(rng.random(20_000) < 0.85, first, 1 - first)
    third = np.where(rng.random(20_000) < 0.85, second, 1 - second)
    codes = np.column_stack([first, second, third])
    # The second is missing mostly where the first is 1.
    holes = np.zeros(codes.shape, dtype=bool)
    holes[:, 1] = rng.random(20_000) < np.where(first == 1, 0.8, 0.1)
    domain = random_case(0, [2, 2, 2], 5, 3)[1].domain
    data = with_holes(FromCodes(domain, codes), holes)
    features = Graph(domain, [("X0", "X1"), ("X1", "X2")]).features()
    for name, column in (("X0", first), ("X1", second), ("X2", third)):
        truth = column.mean()
        by_em = unless.fit_weights(features, data).query(name)["l1"]
        by_complete = unless.fit_weights(features, data, incomplete="drop").query(name)["l1"]
        assert by_em == pytest.approx(truth, abs=0.01)
        assert abs(by_complete - truth) > 0.1


def test_rows_of_many_missing_values_are_drawn_the_same_way_each_time(monkeypatch):
    features, data = table_with_holes(7, n_rows=300, share=0.3)
    exact = unless.fit_weights(features, data)
    defaults = {**Completions.__init__.__kwdefaults__, "most_states": 1}
    monkeypatch.setattr(Completions.__init__, "__kwdefaults__", defaults)
    drawn, again = (unless.fit_weights(features, data) for _ in range(2))
    assert drawn.weights.tobytes() == again.weights.tobytes()
    told = drawn.fit_report.completed
    assert told.n_drawn == len(incomplete_rows(data).counts)
    assert told.change is None
    assert told.n_rounds == fit.DRAWN_ROUNDS
    other = unless.fit_weights(features, data, random_state=1)
    assert other.weights.tobytes() != drawn.weights.tobytes()
    for name in data.names:
        found, wanted = drawn.query(name).probabilities, exact.query(name).probabilities
        assert np.abs(found - wanted).max() < 0.03


def test_draws_have_the_law_of_the_model():
    features, data = table_with_holes(8)
    model = LogLinearModel(features, np.random.default_rng(1).normal(size=len(features)))
    cells = np.array([[HOLE, HOLE, 1, 0]])
    made = Completions(data.domain, cells, most_states=1, n_draws=20_000)
    made.draw(model)
    assert made.n_drawn == 1
    wanted = completions(data.domain, [None, None, 1, 0], features, model.weights)
    rows, counts = np.unique(made.rows, axis=0, return_counts=True)
    found = dict(zip(map(tuple, rows.tolist()), counts / 20_000, strict=True))
    assert max(abs(found.get(row, 0.0) - chance) for row, chance in wanted.items()) < 0.02


def test_memory_bounds_the_completions():
    n_states = np.array([4.0, 8.0, 512.0, 2.0**40])
    assert completing._share_out(n_states, 1_024, 10_000, 32) == (1_024.0, 32)
    limit, n_draws = completing._share_out(n_states, 1_024, 200, 32)
    assert n_states[n_states <= limit].sum() + (n_states > limit).sum() * n_draws <= 200
    assert completing._share_out(np.full(100, 1e30), 1_024, 50, 32)[1] == 1
    features, data = table_with_holes(1)
    em = fit.ExpectationMaximisation(features, data, incomplete_rows(data), {"max_memory": "64 MB"})
    em.incomplete = em.incomplete._replace(counts=np.ones(10**6, dtype=np.int64))
    with pytest.raises(TooLarge, match=r"1,000,000 different rows with missing values .* incomplete='drop'"):
        em._most_rows()


def test_rows_of_a_survey_count_by_their_weights():
    table = frame(300)
    table.loc[::6, "b"] = None
    weighed = table.assign(w=np.where(table["a"] == "p", 2.0, 1.0))
    data = unless.read(weighed, weight_column="w")
    assert data.weights is not None
    assert data.detail.missing
    features = Graph(data.domain, [("a", "b"), ("b", "c")]).features()
    # Twice the rows, with a weight of 1 on average as reading makes them.
    twice = pd.concat([table, table[table["a"] == "p"]])
    whole = unless.fit_weights(features, unless.read(twice), unless.Gaussian(1.0))
    scale = len(twice) / 300
    net = unless.fit_weights(features, data, unless.Gaussian(np.sqrt(scale)))
    assert net.weights == pytest.approx(whole.weights, abs=1e-5)
    assert net.fit_report.completed.n_incomplete == 50


# ------------------------------------------------------------------ hostile tables


def frame(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.choice(["p", "q"], n_rows)
    b = np.where(rng.random(n_rows) < 0.8, np.where(a == "p", "s", "t"), rng.choice(["s", "t"], n_rows))
    c = np.where(rng.random(n_rows) < 0.7, b, rng.choice(["s", "t"], n_rows))
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": rng.choice(["u", "v", "w"], n_rows)}).astype(object)


@pytest.fixture(scope="module")
def learned():
    return unless.GGS().fit(frame())


def fits(learned, table, n_complete, n_incomplete):
    net = learned.network(table)
    told = net.fit_report.completed
    assert (told.n_complete, told.n_incomplete) == (n_complete, n_incomplete)
    assert np.isfinite(net.weights).all()
    assert net.fit_report.converged
    return net


def test_a_frame_and_a_file_with_missing_values_are_fitted(learned, tmp_path):
    table = frame()
    table.loc[::5, "b"] = None
    table.loc[::7, "d"] = None
    n_incomplete = int(table.isna().any(axis=1).sum())
    net = fits(learned, table, 400 - n_incomplete, n_incomplete)
    table.to_csv(tmp_path / "t.csv", index=False)
    assert learned.network(tmp_path / "t.csv").weights.tobytes() == net.weights.tobytes()
    assert learned.network(unless.read(table)).weights == pytest.approx(net.weights, abs=1e-9)
    unless.save(net, tmp_path / "net.unless")
    assert unless.load(tmp_path / "net.unless").fit_report == net.fit_report


def test_a_column_missing_nearly_everywhere(learned):
    table = frame()
    table.loc[5:, "b"] = None
    fits(learned, table, 5, 395)


def test_rows_that_show_nothing_are_left_out(learned):
    table = frame()
    table.loc[10:20, :] = None
    table.loc[30, ["a", "b", "c"]] = None
    net = fits(learned, table, 388, 1)
    again = frame().drop(index=range(10, 21))
    again.loc[30, ["a", "b", "c"]] = None
    assert net.weights.tobytes() == learned.network(again).weights.tobytes()


def test_columns_missing_together(learned):
    table = frame()
    table.loc[::3, ["b", "c"]] = None
    fits(learned, table, 400 - 134, 134)


def test_one_complete_row(learned):
    table = frame()
    table.loc[1:199, "a"] = None
    table.loc[200:, "c"] = None
    fits(learned, table, 1, 399)


def test_no_complete_row(learned):
    table = frame()
    table.loc[:199, "a"] = None
    table.loc[200:, "c"] = None
    net = fits(learned, table, 0, 400)
    # What is seen together is learned all the same.
    assert net.query("b", {"a": "p"})["s"] > 0.7
    with pytest.raises(DataError, match="no rows; there is nothing to fit weights to"):
        learned.network(table, incomplete="drop")
    table.loc[:, :] = None
    with pytest.raises(unless.errors.UnlessError):
        learned.network(table)


def test_a_level_that_only_incomplete_rows_show_is_missing():
    table = frame()
    table.loc[:9, "d"] = "only here"
    table.loc[:9, "b"] = None
    data = unless.read(table)
    if "only here" in data.domain["d"].levels:
        pytest.skip("reading gives the level a place of its own")
    net = unless.GGS().fit(data).network(data)
    assert net.fit_report.completed.n_incomplete == 10


def test_counts_count_rows(learned):
    table = frame(50)
    table.loc[::4, "b"] = None
    counted = table.assign(n=3)
    data = unless.read(counted, count_column="n", levels=learned.structure_.domain, missing="level")
    thrice = pd.concat([table] * 3)
    net = learned.network(thrice)
    named = unless.inference.tables.with_holes(learned.structure_.domain, data)
    assert learned.network(named).weights == pytest.approx(net.weights, abs=1e-9)
    assert net.fit_report.completed.n_incomplete == 39


def test_a_table_of_other_levels_keeps_its_holes(learned):
    table = frame()
    table.loc[::5, "b"] = None
    # Another order of columns and levels.
    turned = unless.read(table[["d", "c", "b", "a"]], ordered={"a": ["q", "p"]})
    assert turned.domain != learned.structure_.domain
    assert learned.network(turned).weights == pytest.approx(learned.network(table).weights, abs=1e-9)


def test_scores_of_what_rows_show(learned):
    table = frame()
    net = learned.network(table)
    table.loc[::5, "b"] = None
    table.loc[::10, "d"] = None
    data = unless.read(table)
    assert data.n_rows < 400
    expected = net.log_likelihood(table).mean()
    assert net.score(table) == pytest.approx(expected)
    assert net.score(data) == pytest.approx(expected)
    complete = Dataset(data.domain, data.rows, data.counts)
    assert net.pseudo_log_likelihood(data).n_rows == data.n_rows
    assert learned.score(data) == learned.score(complete)


def test_a_query_gives_the_law_of_a_column_of_which_three_tenths_are_missing():
    rng = np.random.default_rng(5)
    rank = rng.integers(0, 3, 3_000)
    age = np.round(25 + 10 * rank + 8 * rng.normal(size=3_000))
    side = rng.choice(["l", "r"], 3_000)
    frame = pd.DataFrame({"rank": np.array(list("abc"))[rank], "age": age, "side": side})
    frame.loc[rng.random(3_000) < np.array([0.05, 0.25, 0.6])[rank], "age"] = np.nan
    assert 0.28 < frame["age"].isna().mean() < 0.32
    est = unless.learn(frame, show_progress=False)
    assert "learners leave them out, tests and networks use what they have" in est.data_.plan.missing
    variable = est.data_.domain["age"]
    groups = np.searchsorted(variable.cuts, age, side="right")
    law = np.bincount(groups, minlength=len(variable.levels)) / 3_000
    found = est.network(est.data_, show_progress=False).query("age")
    assert len(found.probabilities) == len(variable.cuts) + 1
    assert "missing" not in variable.levels
    assert np.abs(found.probabilities - law).sum() / 2 < 0.02
    # Complete rows alone are far from it: those who are older say their age less often.
    whole = groups[frame["age"].notna()]
    biased = np.bincount(whole, minlength=len(law)) / len(whole)
    assert np.abs(biased - law).sum() / 2 > 0.05
