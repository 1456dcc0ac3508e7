"""Fitted weights against optima that other packages find."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

import unless
from twins.naive_objective import (
    naive_objective,
    random_case,
    random_features,
    stacked_design,
    stacked_tensor,
)
from unless.data.dataset import Dataset
from unless.errors import DataError, SettingError, UnknownLevel, UnknownName
from unless.structures.graph import FeatureSet
from unless.structures.structure import FeatureArrays
from unless.weights import optimise

# To the optimum whatever the size; without a tolerance large feature sets stop where little is left to gain.
exact = partial(unless.fit_weights, tolerance=1e-6)


def logistic(features, data, **settings):
    design, target, counts = stacked_design(features, data)
    model = LogisticRegression(
        solver="liblinear", fit_intercept=False, tol=1e-12, max_iter=100_000, random_state=0, **settings
    )
    return model.fit(design, target, sample_weight=counts).coef_[0]


@pytest.fixture(params=["dense", "dense once", "conjugate gradients"])
def way(request, monkeypatch):
    """Run a test with the dense Hessian and with what is used where that is too large."""
    if request.param != "dense":
        monkeypatch.setattr(optimise, "_MOST_DENSE", 0)
    if request.param == "conjugate gradients":
        monkeypatch.setattr(optimise, "_MOST_DENSE_ONCE", 0)


@pytest.mark.parametrize("sd", [0.3, 1.0, 5.0])
def test_gaussian_weights_of_binary_variables_equal_liblinears(way, sd):
    features, data, _ = random_case(11, [2] * 6, 150, 30)
    net = exact(features, data, unless.Gaussian(sd))
    assert net.fit_report.converged
    assert net.weights == pytest.approx(logistic(features, data, C=sd**2), abs=1e-5)


def test_gaussian_weights_of_mixed_variables_equal_an_optimum_of_scipys(way):
    features, data, _ = random_case(12, [2, 3, 4, 2, 3], 80, 30)
    tensor, target, counts = stacked_tensor(features, data)

    def naive(weights):
        scores = np.where(np.isnan(tensor[:, :, 0]), -np.inf, np.nan_to_num(tensor) @ weights)
        logs = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
        chances = np.exp(logs)
        chances[np.arange(len(target)), target] -= 1
        loss = -(counts * logs[np.arange(len(target)), target]).sum()
        gradient = np.einsum("rl,rlk->k", counts[:, None] * chances, np.nan_to_num(tensor))
        return loss + weights @ weights / 2, gradient + weights

    best = minimize(naive, np.zeros(len(features)), jac=True, method="BFGS", options={"gtol": 1e-8})
    net = exact(features, data, unless.Gaussian(1.0))
    assert net.weights == pytest.approx(best.x, abs=1e-5)
    assert net.fit_report.objective == pytest.approx(
        naive_objective(features, data, net.weights, 1.0), rel=1e-10
    )


@pytest.mark.filterwarnings("ignore:.penalty. was deprecated:FutureWarning")
def test_laplace_reaches_liblinears_objective_and_predictions(way):
    features, data, _ = random_case(13, [2] * 6, 150, 30)
    theirs = logistic(features, data, C=1 / 2.0, penalty="l1", l1_ratio=1)
    net = exact(features, data, unless.Laplace(2.0), tolerance=1e-8)
    value = naive_objective(features, data, theirs, l1=2.0)
    assert net.fit_report.converged
    assert net.fit_report.objective == pytest.approx(value, rel=1e-8)
    design, _, _ = stacked_design(features, data)
    ours, wanted = (1 / (1 + np.exp(-design @ weights)) for weights in (net.weights, theirs))
    assert ours == pytest.approx(wanted, abs=1e-5)
    assert 0 < (net.weights == 0).sum() < len(features)


def test_gaussian_and_laplace_together_leave_no_better_weights_nearby(way):
    features, data, rng = random_case(14, [2, 3, 2, 3], 60, 20)
    net = exact(features, data, unless.Gaussian(1) + unless.Laplace(5))
    best = net.fit_report.objective
    assert net.fit_report.converged
    assert best == pytest.approx(naive_objective(features, data, net.weights, 1.0, 5.0), rel=1e-12)
    for size in (1e-1, 1e-3):
        for _ in range(10):
            moved = net.weights + rng.normal(0, size, len(features)) * (rng.random(len(features)) < 0.5)
            assert naive_objective(features, data, moved, 1.0, 5.0) > best


def test_the_same_optimum_from_any_start(way):
    features, data, rng = random_case(15, [2, 3, 2], 50, 15)
    cold = exact(features, data)
    warm = exact(features, data, start=rng.normal(0, 3, len(features)))
    again = exact(features, data, start=cold)
    assert warm.weights == pytest.approx(cold.weights, abs=1e-6)
    assert again.fit_report.n_iterations == 0


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    monkeypatch.setattr("unless.inference.pseudo_likelihood._WORTH_SHARING", 0)
    features, data, _ = random_case(16, [2, 3, 2, 4], 200, 40)
    one, two = (unless.fit_weights(features, data, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.weights.tobytes() == two.weights.tobytes()


def test_the_order_of_rows_and_columns_and_levels_does_not_matter():
    features, data, rng = random_case(17, [2, 3, 4], 60, 20)
    frame = {
        name: [data.domain[name].levels[c] for c in data.rows[:, i]] for i, name in enumerate(data.names)
    }
    order = rng.permutation(data.n_distinct)
    turned = {name: [frame[name][i] for i in order] for name in reversed(data.names)}
    once = Dataset.from_codes(data.domain, data.rows)
    wanted = unless.fit_weights(features, once).weights.tobytes()
    assert unless.fit_weights(features, turned).weights.tobytes() == wanted
    assert unless.fit_weights(features, unless.read(turned)).weights.tobytes() == wanted


def test_repeated_features_cannot_weaken_the_prior():
    features, data, _ = random_case(18, [2, 3, 2], 40, 10)
    twice = FeatureSet.from_arrays(features.domain, FeatureArrays.joined([features.arrays, features.arrays]))
    assert (
        unless.fit_weights(twice, data).weights.tobytes()
        == unless.fit_weights(features, data).weights.tobytes()
    )


def test_more_rows_bring_the_law_that_made_them_nearer():
    truth = unless.datasets.make_csi(5, random_state=1)
    features = random_features(truth.domain, 400, np.random.default_rng(0), max_size=5)
    divergences = []
    for n_rows in (200, 2_000, 200_000):
        net = unless.fit_weights(features, truth.sample(n_rows, random_state=2))
        cells = np.argwhere(truth.probabilities >= 0)
        logs = net.log_likelihood_codes(cells)
        p = truth.probabilities.ravel()
        divergences.append(float((p * (np.log(p) - logs)).sum()))
    assert divergences[0] > divergences[1] > divergences[2]
    assert 0 <= divergences[2] < 1e-3


def test_few_iterations_are_reported_as_not_converged():
    features, data, _ = random_case(19, [2, 3, 2], 40, 10)
    report = unless.fit_weights(features, data, max_iterations=1).fit_report
    assert not report.converged
    assert report.n_iterations == 1
    assert "max_iterations" in str(report)


def test_no_features_and_features_without_rows_to_tell_them_apart():
    _, data, _ = random_case(20, [2, 2], 10, 0)
    assert unless.fit_weights(FeatureSet(data.domain), data).weights.shape == (0,)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"tolerance": 0}, "tolerance=0"),
        ({"max_iterations": -1}, "max_iterations=-1"),
        ({"start": [1.0]}, "start="),
        ({"prior": "strong"}, "prior='strong'"),
        ({"prior": 1.0}, "prior=1.0"),
        ({"prior": []}, "prior="),
    ],
)
def test_settings_out_of_range_are_refused_in_a_sentence(settings, told):
    features, data, _ = random_case(21, [2, 3], 20, 5)
    with pytest.raises(SettingError, match=told):
        unless.fit_weights(features, data, **settings)


def test_a_structure_is_not_mistaken_for_its_features():
    _, data, _ = random_case(21, [2, 3], 20, 5)
    with pytest.raises(SettingError, match="FeatureSet"):
        unless.fit_weights(data, data)


def test_tables_of_another_domain_are_refused_by_name():
    features, data, _ = random_case(22, [2, 3], 20, 5)
    with pytest.raises(UnknownName, match="X1"):
        unless.fit_weights(features, data.select(["X0"]))
    with pytest.raises(UnknownLevel, match="new"):
        unless.fit_weights(features, {"X0": ["l0", "new"], "X1": ["l0", "l1"]})
    with pytest.raises(UnknownLevel, match="new"):
        unless.fit_weights(features, unless.read({"X0": ["l0", "new"], "X1": ["l0", "l1"]}))
    with pytest.raises(DataError, match="no rows"):
        unless.fit_weights(features, Dataset.from_codes(data.domain, np.empty((0, 2))))


@pytest.mark.parametrize("objective", ["pseudo", "likelihood"])
def test_a_relative_tolerance_stops_where_five_iterations_gain_little(objective):
    features, data, _ = random_case(24, [2, 3, 2, 3], 300, 30)
    best = unless.fit_weights(features, data, objective=objective).fit_report
    reports = [
        unless.fit_weights(features, data, objective=objective, relative_tolerance=share).fit_report
        for share in (1e-2, 1e-3, 1e-6)
    ]
    assert {report.stopped_by for report in reports} == {"relative_tolerance"}
    assert not any(report.converged for report in reports)
    assert "relative_tolerance" in reports[0].message
    values = [report.objective for report in reports]
    assert values[0] > values[1] > values[2] > best.objective
    n_iterations = reports[1].n_iterations
    path = [
        unless.fit_weights(
            features, data, objective=objective, relative_tolerance=1e-15, max_iterations=most
        ).fit_report.objective
        for most in range(n_iterations + 1)
    ]
    slow = [before - after <= 1e-3 * after for before, after in zip(path, path[5:], strict=False)]
    assert slow == [False] * (n_iterations - 5) + [True]


def test_a_relative_tolerance_is_no_reason_to_refuse_what_converges():
    features, data, _ = random_case(25, [2, 3], 40, 4)
    report = unless.fit_weights(features, data, relative_tolerance=1e-15, tolerance=1e-3).fit_report
    assert report.stopped_by == "tolerance"
    for odd in (0, -1.0, True, "1e-3", float("inf")):
        with pytest.raises(SettingError, match="relative_tolerance="):
            unless.fit_weights(features, data, relative_tolerance=odd)


@pytest.mark.parametrize("prior", [unless.Gaussian(1.0), unless.Gaussian(1.0) + unless.Laplace(2.0)])
@pytest.mark.parametrize("objective", ["pseudo", "likelihood"])
def test_many_features_stop_by_default_where_little_is_left_to_gain(objective, prior, monkeypatch):
    monkeypatch.setattr(optimise, "_MOST_DENSE", 0)
    features, data, _ = random_case(26, [2, 3, 2, 3, 2], 400, 80)
    best = exact(features, data, prior, objective=objective).fit_report
    net = unless.fit_weights(features, data, prior, objective=objective)
    report = net.fit_report
    assert (best.stopped_by, report.stopped_by) == ("tolerance", "gain")
    assert report.converged
    assert report.gradient_norm > report.tolerance
    assert report.n_evaluations < best.n_evaluations
    assert 0 < report.objective - best.objective < 0.002 * data.n_rows
    assert "0.002 nats a row" in str(report)
    turned = Dataset.from_codes(data.domain, data.rows[::-1], data.counts[::-1])
    again = unless.fit_weights(features, turned, prior, objective=objective, n_jobs=2)
    assert again.weights.tobytes() == net.weights.tobytes()


def test_what_is_left_is_judged_by_the_last_fifth_of_the_iterations(monkeypatch):
    monkeypatch.setattr(optimise, "_SHORTEST", 1)
    features, data, _ = random_case(27, [2, 3, 2, 3], 300, 40)
    loss = optimise.make_loss(features, data)

    def run(**limits):
        objective = optimise.Objective(loss, unless.Gaussian(1.0), lambda: None)
        limits = optimise.StopRules(**{"tolerance": 1e-12, "max_iterations": 100, **limits})
        return optimise.minimise(objective, np.zeros(len(features)), limits), objective

    found, objective = run(gain=0.5)
    n_iterations = found.n_iterations
    assert found.stopped_by == "gain"
    path = [
        objective.value(run(gain=1e-9, max_iterations=most)[0].weights) for most in range(n_iterations + 1)
    ]
    left = [path[n - max(1, n // 5)] - path[n] for n in range(1, n_iterations + 1)]
    assert [gained <= 0.5 for gained in left] == [False] * (n_iterations - 1) + [True]


def test_the_gain_is_no_rule_for_small_sets_free_weights_and_given_tolerances(monkeypatch):
    features, data, _ = random_case(28, [2, 2, 2], 300, 6)
    assert unless.fit_weights(features, data).fit_report.stopped_by == "tolerance"
    monkeypatch.setattr(optimise, "_MOST_DENSE", 0)
    for settings in ({"prior": None}, {"tolerance": 1e-6}):
        assert unless.fit_weights(features, data, **settings).fit_report.stopped_by == "tolerance"


def test_quasi_newton_alone_comes_close():
    features, data, _ = random_case(23, [2, 3, 2, 2], 100, 25)
    from unless.inference.pseudo_likelihood import Conditionals

    conditionals = Conditionals.of(features.arrays, data)
    for prior in (unless.Gaussian(1), unless.Gaussian(1) + unless.Laplace(1)):
        objective = optimise.Objective(conditionals, prior, lambda: None)
        found = optimise.owlqn(objective, np.zeros(len(features)), 1e-4, 500)
        assert found.norm <= 1e-4
        assert found.weights == pytest.approx(unless.fit_weights(features, data, prior).weights, abs=1e-3)


@pytest.mark.parametrize("settings", [{"start": ["a"] * 25}, {"start": [[1.0], [1.0, 2.0]]}, {"n_jobs": 0}])
def test_odd_starts_and_jobs_get_a_sentence(settings):
    features, data, _ = random_case(5, [2, 3], 20, 4)
    with pytest.raises(SettingError, match=next(iter(settings))):
        unless.fit_weights(features, data, **settings)
