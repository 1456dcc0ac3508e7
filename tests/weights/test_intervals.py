import numpy as np
import pandas as pd
import pytest

import unless
from twins.naive_objective import random_case
from unless.errors import DataError, SettingError, TooLarge
from unless.inference import pseudo_likelihood
from unless.inference.pseudo_likelihood import Conditionals
from unless.kernels.features import row_gradients
from unless.weights import intervals, optimise
from unless.weights.intervals import weight_intervals


def test_gradients_of_rows_add_up_to_the_gradient():
    features, data, rng = random_case(61, [2, 3, 4, 2], 50, 25)
    weights = rng.normal(size=len(features))
    gradients = np.empty((data.n_distinct, len(features)))
    offsets = np.concatenate([[0], np.cumsum(data.domain.n_levels)])
    row_gradients(np.array(data.rows), offsets, *map(np.array, features.arrays), weights, gradients)
    _, gradient = Conditionals.of(features.arrays, data).value_and_gradient(weights)
    assert data.counts @ gradients == pytest.approx(gradient, abs=1e-9)


def test_the_error_of_a_log_odds_is_the_textbook_one():
    domain = unless.Domain((unless.Variable("A", ("no", "yes")),))
    data = unless.Dataset.from_codes(domain, [[0], [1]], [70, 30])
    features = unless.FeatureSet(domain, [unless.Feature.of({"A": "yes"})])
    net = unless.fit_weights(features, data, prior=None)
    found = weight_intervals(net, data, level=0.9)
    assert found.standard_errors == pytest.approx([np.sqrt(1 / (100 * 0.3 * 0.7))], rel=1e-6)
    assert (found.high - found.low) / 2 == pytest.approx(1.6448536 * found.standard_errors, rel=1e-6)


def test_errors_are_those_of_the_sandwich():
    features, data, _ = random_case(63, [2, 3, 4, 2, 3], 80, 70)
    net = unless.fit_weights(features, data)
    gradients = np.empty((data.n_distinct, len(features)))
    offsets = np.concatenate([[0], np.cumsum(data.domain.n_levels)])
    row_gradients(np.array(data.rows), offsets, *map(np.array, (*features.arrays, net.weights)), gradients)
    mean = data.counts @ gradients
    scatter = gradients.T @ (data.counts[:, None] * gradients) - np.outer(mean, mean) / data.n_rows
    laid_out = Conditionals.of(features.arrays, data)
    laid_out.value_and_gradient(np.array(net.weights), keep=True)
    inverse = np.linalg.inv(laid_out.hessian() + np.eye(len(features)))
    expected = np.sqrt(np.diagonal(inverse @ scatter @ inverse))
    assert weight_intervals(net, data).standard_errors == pytest.approx(expected, rel=1e-8)


def test_short_calls_change_no_bit_and_show_how_far_they_are(monkeypatch, capsys):
    features, data, _ = random_case(63, [2, 3, 4, 2, 3], 80, 70)
    net = unless.fit_weights(features, data)
    whole = weight_intervals(net, data)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(intervals, "_AT_ONCE", 3 * len(features) ** 2)
    monkeypatch.setattr(pseudo_likelihood, "_ROWS_AT_ONCE", 3)
    monkeypatch.setattr(optimise, "_AT_ONCE", 1)
    parts = weight_intervals(net, data, show_progress=True)
    assert parts.standard_errors.tobytes() == whole.standard_errors.tobytes()
    said = capsys.readouterr().err
    for stage in ("curvature", "factor", "inverse", "rows"):
        assert f"weight_intervals, {stage}: " in said


def test_intervals_cover_as_often_as_they_say():
    truth = unless.datasets.make_csi(3, random_state=3)
    pair = [{"X1": 1}, {"X2": 1}, {"W": 1}, {"X1": 1, "W": 1}, {"X2": 1, "W": 1}, {"X1": 1, "X2": 1, "W": 0}]
    features = unless.FeatureSet(truth.domain, [unless.Feature.of(one) for one in pair])
    endless = np.round(truth.probabilities * 10**9).astype(np.int64)
    law = unless.Dataset.from_codes(truth.domain, np.argwhere(endless > 0), endless[endless > 0])
    wanted = unless.fit_weights(features, law, prior=None, tolerance=1e-2).weights
    covered = []
    for seed in range(150):
        data = truth.sample(3_000, random_state=seed)
        net = unless.fit_weights(features, data, prior=None)
        found = weight_intervals(net, data)
        covered.append((found.low < wanted) & (wanted < found.high))
    assert 0.93 < np.mean(covered) < 0.97


def test_what_has_no_intervals_is_refused(monkeypatch):
    features, data, _ = random_case(62, [2, 3], 30, 6)
    with pytest.raises(SettingError, match="Laplace"):
        weight_intervals(unless.fit_weights(features, data, unless.Laplace(1)), data)
    with pytest.raises(SettingError, match="level="):
        weight_intervals(unless.fit_weights(features, data), data, level=95)
    with pytest.raises(SettingError, match="infinite"):
        weight_intervals(unless.LogLinearModel(features, np.full(len(features), np.inf)), data)
    both = unless.FeatureSet(data.domain, [unless.Feature.of({"X0": "l0"}), unless.Feature.of({"X0": "l1"})])
    with pytest.raises(SettingError, match="not determined"):
        weight_intervals(unless.LogLinearModel(both, [0.0, 0.0]), data)
    monkeypatch.setattr(intervals, "MAX_FEATURES", 2)
    with pytest.raises(TooLarge, match="at most 2 x 2"):
        weight_intervals(unless.fit_weights(features, data), data)


def test_an_empty_table_has_no_intervals():
    features, data, _ = random_case(5, [2, 3], 20, 4)
    empty = unless.Dataset.from_codes(data.domain, np.empty((0, 2)))
    with pytest.raises(DataError, match="no rows"):
        weight_intervals(unless.fit_weights(features, data), empty)


def test_features_that_say_the_same_are_refused_whatever_rounding_says():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 3, 400)
        y = np.where(rng.random(400) < 0.6, x, rng.integers(0, 3, 400))
        data = unless.read(pd.DataFrame({"x": x.astype(str), "y": y.astype(str)}))
        told = [{"x": "0"}, {"x": "1"}, {"x": "2"}, {"x": "0", "y": "0"}, {"y": "1"}]
        features = unless.FeatureSet(data.domain, [unless.Feature.of(one) for one in told])
        net = unless.fit_weights(features, data, prior=None)
        with pytest.raises(SettingError, match="say the same"):
            weight_intervals(net, data)
