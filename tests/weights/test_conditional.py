"""The conditional of one column: its optimum, its choice of pairs and priors, and rows with holes."""

import numpy as np
import pandas as pd
import pytest

import unless
from unless.errors import TooLarge
from unless.weights import conditional
from unless.weights.conditional import GRID, ConditionalDesign, ConditionalLoss, fit_conditional


def table(n_rows=600, seed=0):
    """Make a target of three levels that follows two columns, and a column that tells nothing."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.integers(0, 3, n_rows), rng.integers(0, 2, n_rows), rng.integers(0, 4, n_rows)
    energies = np.column_stack([np.zeros(n_rows), 1.5 * (a == 1) - 0.5 * b, 2.0 * (a == 2) + 1.0 * b])
    chances = np.exp(energies) / np.exp(energies).sum(axis=1, keepdims=True)
    y = (chances.cumsum(axis=1) < rng.random(n_rows)[:, None]).sum(axis=1)
    return pd.DataFrame({"a": a, "b": b, "c": c, "y": y}).astype(str)


def together(n_rows=800, seed=0):
    """Make a target that follows two columns only together: exclusive or, with noise."""
    rng = np.random.default_rng(seed)
    a, b, noise = (rng.integers(0, 2, n_rows) for _ in range(3))
    y = np.where(rng.random(n_rows) < 0.9, a ^ b, noise)
    return pd.DataFrame({"a": a, "b": b, "c": noise, "y": y}).astype(str)


def cells(model, frame):
    return np.column_stack([[model.domain[n].code(v) for v in frame[n]] for n in model.domain.names])


def test_the_optimum_is_that_of_a_penalised_multinomial_regression():
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    frame = table()
    model = fit_conditional(unless.read(frame), "y")
    assert model.tried[0].n_pairs == 0
    assert [term for term in model.terms if len(term) > 1] == []
    X = frame[["a", "b", "c"]]
    other = LogisticRegression(C=model.sd**2, tol=1e-10, max_iter=10_000)
    other.fit(encoder := OneHotEncoder().fit_transform(X), frame["y"])
    assert model.probabilities(cells(model, frame)) == pytest.approx(other.predict_proba(encoder), abs=2e-4)


def test_derivatives_are_those_of_the_loss():
    rng = np.random.default_rng(1)
    layout = ConditionalDesign(rng.integers(0, 3, (20, 2)), (3, 3), ((0,), (1,), (0, 1)))
    loss = ConditionalLoss(*layout.design, rng.integers(0, 5, (20, 3)).astype(float))
    point, move = rng.normal(size=(2, loss.n_features)) / 50
    value, gradient = loss.value_and_gradient(point, keep=True)
    step = 1e-6
    ends = [loss.value_and_gradient(point + sign * step * move) for sign in (1, -1)]
    assert value == pytest.approx(loss.losses(point)[0])
    assert (ends[0][0] - ends[1][0]) / (2 * step) == pytest.approx(gradient @ move, rel=1e-5)
    product = loss.product(move)
    assert (ends[0][1] - ends[1][1]) / (2 * step) == pytest.approx(product, rel=1e-4, abs=1e-4)
    hessian = loss.hessian()
    assert hessian @ move == pytest.approx(product)
    assert hessian.diagonal() == pytest.approx(loss.diagonal())


def test_pairs_are_used_where_they_predict_better():
    frame = together()
    model = fit_conditional(unless.read(frame), "y")
    assert [term for term in model.terms if len(term) > 1] == [(0, 1)]
    right = model.probabilities(cells(model, frame)).argmax(axis=1) == frame["y"].astype(int)
    assert right.mean() > 0.9
    assert {one.n_pairs for one in model.tried} == {0, 1}
    assert model.sd in GRID


def test_a_pair_that_is_proposed_is_tried_though_its_test_says_nothing():
    model = fit_conditional(unless.read(table()), "y", [("c", "b")])
    assert {one.n_pairs for one in model.tried} == {0, 1}


def test_the_order_of_rows_and_columns_changes_no_bit():
    frame = together()
    one = fit_conditional(unless.read(frame), "y")
    two = fit_conditional(unless.read(frame.sample(frac=1, random_state=1)[["y", "c", "a", "b"]]), "y")
    assert one.terms == two.terms
    assert all(map(np.array_equal, one.tables, two.tables))
    assert one.tried == two.tried


def test_a_hidden_column_is_averaged_over_as_often_as_its_levels_were_seen():
    frame = together()
    model = fit_conditional(unless.read(frame), "y")
    whole = cells(model, frame[:1])
    hidden = whole.copy()
    hidden[0, 0] = -1
    told = [model.probabilities(np.array([[level, *whole[0, 1:]]]))[0] for level in range(2)]
    shares = frame["a"].value_counts(normalize=True).sort_index().to_numpy()
    assert model.probabilities(hidden)[0] == pytest.approx(shares @ np.array(told))
    # With all columns hidden it is about as frequent as it is.
    base = (frame["y"] == "1").mean()
    assert model.probabilities(np.full((1, 3), -1))[0, 1] == pytest.approx(base, abs=0.05)
    assert model.probabilities(np.full((3, 3), -1)).sum(axis=1) == pytest.approx(1)


def test_a_level_without_rows_says_as_little_as_a_hidden_one():
    frame = together()
    data = unless.read(frame, levels={"a": ["0", "1", "never"]})
    model = fit_conditional(data, "y")
    hidden, never = np.array([[-1, 0, 0], [2, 0, 0]])
    assert np.array_equal(*model.probabilities(np.array([hidden, never])))


def test_one_class_is_certain():
    data = unless.read({"a": ["x", "y", "x"], "y": ["only"] * 3})
    model = fit_conditional(data, "y")
    assert model.probabilities(np.array([[0], [-1]])).tolist() == [[1.0], [1.0]]


def test_work_that_would_not_fit_is_refused_and_pairs_that_would_not_are_left_out(monkeypatch):
    data = unless.read(together())
    monkeypatch.setattr(conditional, "parse_memory", lambda amount: amount or 10**9)
    with pytest.raises(TooLarge, match="max_memory"):
        fit_conditional(data, "y", max_memory=100)
    singles = ConditionalDesign(np.zeros((8, 3), dtype=np.int64), (2, 2, 2), ((0,), (1,), (2,))).need(2)
    assert all(len(term) == 1 for term in fit_conditional(data, "y", max_memory=singles).terms)
    monkeypatch.setattr(conditional, "MOST_COMBINATIONS", 3)
    assert all(len(term) == 1 for term in fit_conditional(data, "y").terms)
