from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import unless
from inference.models import domain_of, model_of, random_model
from twins import brute_force
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.errors import DataError, MissingValues, SettingError, TooLarge, UnknownLevel, UnknownName
from unless.inference.frames import to_frame
from unless.inference.model import LogLinearModel
from unless.inference.scores import conditional_marginal_log_likelihood, log_likelihoods, score
from unless.structures.graph import Feature, FeatureSet

INF = float("inf")


def model_and_rows(seed, n_rows=60):
    rng = np.random.default_rng(seed)
    model = random_model(rng, 5, max_levels=3)
    rows = np.column_stack([rng.integers(0, size, n_rows) for size in model.domain.n_levels])
    return model, rows.astype(np.uint16)


def logs_of(model):
    return brute_force.log_potentials(model) - brute_force.log_partition(model)


@pytest.mark.parametrize("seed", range(5))
def test_the_score_is_the_mean_log_probability(seed):
    model, rows = model_and_rows(seed)
    expected = logs_of(model)[tuple(rows.T)]
    frame = to_frame(model.domain, rows, "pandas")
    assert score(model, frame) == pytest.approx(expected.mean(), abs=1e-9)
    assert score(model, Dataset.from_codes(model.domain, rows)) == pytest.approx(expected.mean(), abs=1e-9)
    # Columns in another order, a column the model does not know.
    turned = frame[frame.columns[::-1]].assign(other=1.5)
    assert log_likelihoods(model, turned) == pytest.approx(expected, abs=1e-9)


def test_what_a_row_hides_is_summed_over():
    model, rows = model_and_rows(7, n_rows=10)
    frame = to_frame(model.domain, rows, "pandas").astype(object)
    frame.loc[3, ["A0", "A2"]] = None
    found = log_likelihoods(model, frame)
    given = {v: int(rows[3, v]) for v in (1, 3, 4)}
    expected = brute_force.log_partition(model, given) - brute_force.log_partition(model)
    assert found[3] == pytest.approx(expected, abs=1e-9)
    assert found[4] == pytest.approx(logs_of(model)[tuple(rows[4])], abs=1e-9)
    assert score(model, frame) == pytest.approx(found.mean(), abs=1e-9)


def naive_cmll(model, rows, query, evidence):
    sums = {}
    for q in query:
        logs = []
        for row in rows:
            chances = brute_force.joint(model, [q], {v: int(row[v]) for v in evidence})
            logs.append(np.log(chances[row[q]]))
        sums[f"A{q}"] = float(np.mean(logs))
    return sums


@pytest.mark.parametrize(("query", "evidence"), [([0], [1, 2, 3, 4]), ([1, 3], [0, 2, 4]), ([0, 4], [2])])
def test_conditional_marginals_equal_brute_force(query, evidence):
    model, rows = model_and_rows(11, n_rows=30)
    frame = to_frame(model.domain, rows, "pandas")
    names = [[f"A{v}" for v in group] for group in (query, evidence)]
    found = conditional_marginal_log_likelihood(model, frame, *names)
    expected = naive_cmll(model, rows, query, evidence)
    assert found.by_variable == pytest.approx(expected, abs=1e-9)
    assert float(found) == pytest.approx(sum(expected.values()), abs=1e-9)
    assert found.n_rows == 30
    if len(evidence) + len(query) == 5:
        by_default = conditional_marginal_log_likelihood(model, frame, names[0])
        assert by_default.by_variable == pytest.approx(expected, abs=1e-9)


def test_without_a_query_every_quarter_is_asked_about_in_turn():
    model, rows = model_and_rows(12, n_rows=20)
    frame = to_frame(model.domain, rows, "pandas")
    found = conditional_marginal_log_likelihood(model, frame)
    parts = [
        conditional_marginal_log_likelihood(model, frame, names) for names in (["A0", "A1"], "A2", "A3", "A4")
    ]
    assert float(found) == pytest.approx(sum(map(float, parts)))
    assert list(found.by_variable) == ["A0", "A1", "A2", "A3", "A4"]
    with pytest.raises(SettingError, match="query="):
        conditional_marginal_log_likelihood(model, frame, evidence=["A0"])


def test_impossible_rows_score_minus_infinity():
    model = model_of(domain_of([2, 2]), [([(0, 1, True), (1, 1, True)], -INF)])
    frame = pd.DataFrame({"A0": ["a", "b"], "A1": ["b", "b"]})
    assert score(model, frame) == -INF
    assert log_likelihoods(model, frame) == pytest.approx([-np.log(3), -INF])


def test_what_the_model_does_not_know_is_named():
    model, rows = model_and_rows(0)
    frame = to_frame(model.domain, rows, "pandas")
    strange = frame.assign(A1=["zebra", *frame["A1"][1:]])
    for ask in (score, log_likelihoods, conditional_marginal_log_likelihood):
        with pytest.raises(UnknownLevel, match="zebra"):
            ask(model, strange)
    with pytest.raises(UnknownName, match="A1"):
        score(model, frame.drop(columns="A1"))


def test_a_model_too_wide_says_how_else_to_score():
    pairs = combinations(range(40), 2)
    wide = model_of(domain_of([2] * 40), [([(a, 0, True), (b, 0, True)], 0.1) for a, b in pairs])
    row = pd.DataFrame({f"A{v}": ["a", "b"] for v in range(40)})
    for ask in (score, log_likelihoods):
        with pytest.raises(TooLarge, match="pseudo_log_likelihood"):
            ask(wide, row)
    found = conditional_marginal_log_likelihood(wide, row, ["A3"])
    assert float(found) == pytest.approx((3.9 - np.log1p(np.exp(3.9)) + np.log(0.5)) / 2)


def test_a_model_offers_them_as_methods():
    model, rows = model_and_rows(1)
    frame = to_frame(model.domain, rows, "pandas")
    assert model.score(frame) == score(model, frame)
    assert model.log_likelihood(frame) == pytest.approx(model.log_likelihood_codes(rows), abs=1e-12)
    assert model.log_likelihood_codes(rows).mean() == pytest.approx(model.score(frame))
    found = model.conditional_marginal_log_likelihood(frame, ["A1"])
    assert found == conditional_marginal_log_likelihood(model, frame, ["A1"])


def test_a_model_of_one_variable_is_compared_with_a_column():
    domain = Domain((Variable("v", ("a", "b")),))
    model = LogLinearModel(FeatureSet(domain, [Feature.of({"v": "a"})]), [1.0])
    column = {"v": ["a", "b", "a"]}
    expected = (2 - 3 * np.log(np.exp(1) + 1)) / 3
    assert model.score(column) == pytest.approx(expected)
    assert float(model.pseudo_log_likelihood(column)) == pytest.approx(expected)
    assert len(unless.fit_weights(model.features, column).weights) == 1
    with pytest.raises(MissingValues, match=r"'v' \(1\), and the model has no level for them"):
        model.score({"v": ["a", None]})
    with pytest.raises(UnknownLevel, match="'c'"):
        model.score({"v": ["a", "c"]})


def test_missing_values_are_the_level_the_model_has_for_them():
    table = {"v": ["a", None, "b", "a"], "w": ["x", "y", "y", "x"]}
    data = unless.read(table, missing="level")
    model = LogLinearModel(FeatureSet(data.domain, [Feature.of({"v": "missing", "w": "y"})]), [1.0])
    assert model.score(table) == model.score(data)
    assert model.pseudo_log_likelihood(table) == model.pseudo_log_likelihood(data)
    holes = {"v": ["a", "b"], "w": ["x", None]}
    with pytest.raises(MissingValues, match=r"missing values in 'w', and the model has no level for them"):
        model.pseudo_log_likelihood(holes)
    assert model.score(holes) == pytest.approx(model.log_likelihood(holes).mean())
    alone = unless.read({"v": table["v"], "w": table["w"]}, missing="level").select(["v"])
    one = LogLinearModel(FeatureSet(alone.domain), [])
    assert one.score({"v": ["a", None]}) == pytest.approx(-np.log(3))


def test_the_way_out_is_one_that_scores_have():
    domain = Domain((Variable("v", ("a", "b")), Variable("w", ("x", "y"))))
    model = LogLinearModel(FeatureSet(domain), [])
    with pytest.raises(MissingValues, match=r"unless\.read\(table, missing='drop'\)"):
        model.pseudo_log_likelihood({"v": ["a", None], "w": ["x", "x"]})
    with pytest.raises(UnknownLevel, match=r"the levels the model knows, 'a', 'b'; correct the table\.$"):
        model.score({"v": ["a", "c"], "w": ["x", "x"]})
    with pytest.raises(UnknownName, match="The model speaks of 'w'"):
        model.score({"v": ["a", "b"], "z": ["x", "x"]})


def test_an_empty_table_cannot_be_scored():
    domain = Domain((Variable("v", ("a", "b")), Variable("w", ("x", "y"))))
    model = LogLinearModel(FeatureSet(domain), [])
    empty = unless.Dataset.from_codes(domain, np.empty((0, 2), dtype=np.uint16))
    for ask in (model.score, model.pseudo_log_likelihood, model.conditional_marginal_log_likelihood):
        with pytest.raises(DataError, match="no rows"):
            ask(empty)
