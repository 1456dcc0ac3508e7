"""Weights by maximum likelihood against enumeration of all states."""

import numpy as np
import pytest

import unless
from twins.naive_likelihood import naive_likelihood, naive_optimum
from twins.naive_objective import random_case
from unless.data.dataset import Dataset
from unless.errors import SettingError, TooLarge
from unless.inference import exact
from unless.weights import likelihood
from unless.weights.intervals import weight_intervals
from unless.weights.likelihood import Expectations
from weights.test_separable import TABLE
from weights.test_separable import features as features_of

SHAPES = {
    "binary": ([2] * 6, 60, 25),
    "mixed": ([2, 3, 4, 2, 5], 50, 30),
    "one level": ([1, 2, 3, 2], 30, 12),
    "parts": ([2, 3] * 3, 80, 4),
    "no features": ([2, 3], 20, 0),
    "many levels": ([30, 2, 3], 60, 30),
    "one row": ([2, 3, 2], 1, 8),
    "wide": ([2] * 9 + [3], 60, 40),
}


@pytest.fixture(params=SHAPES)
def case(request):
    features, data, rng = random_case(7, *SHAPES[request.param])
    return features, data, rng.normal(0, 1.5, len(features)), rng


@pytest.fixture(params=["flat", "gates"])
def gates(request, monkeypatch):
    """Plan as usual, and with as many gates as can be."""
    if request.param == "gates":
        monkeypatch.setattr(exact, "CHEAP", 0.0)
        monkeypatch.setattr(exact, "MOST", 1e9)


def test_values_and_gradients_equal_the_naive_ones(case, gates):
    features, data, weights, _ = case
    value, gradient = Expectations(features.arrays, data).value_and_gradient(weights)
    wanted, slope = naive_likelihood(features, data, weights)
    assert value == pytest.approx(wanted, rel=1e-12)
    assert gradient == pytest.approx(slope, rel=1e-9, abs=1e-9)


def test_calls_beside_the_main_thread_and_few_rows_at_a_time_change_no_bit(case, gates, monkeypatch):
    features, data, weights, _ = case
    value, gradient = Expectations(features.arrays, data).value_and_gradient(weights)
    monkeypatch.setattr("unless.runtime.interrupts._LONG", 0.0)
    monkeypatch.setattr("unless.inference.potentials.CONDITIONS_AT_ONCE", 7)
    again = Expectations(features.arrays, data).value_and_gradient(weights)
    assert (again[0], again[1].tobytes()) == (value, gradient.tobytes())


def test_gradients_equal_finite_differences(case, gates):
    features, data, weights, rng = case
    loss = Expectations(features.arrays, data)
    _, gradient = loss.value_and_gradient(weights)
    for _ in range(5):
        direction = rng.normal(size=len(weights))
        up, down = (loss.losses(weights + step * direction).sum() for step in (1e-5, -1e-5))
        assert gradient @ direction == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-5)


def test_second_derivatives_agree_with_one_another(case):
    features, data, weights, rng = case
    loss = Expectations(features.arrays, data)
    direction = rng.normal(size=len(weights))
    up, down = (loss.value_and_gradient(weights + step * direction)[1] for step in (1e-5, -1e-5))
    loss.value_and_gradient(weights, keep=True)
    assert loss.product(direction) == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-4)
    matrix = loss.hessian()
    assert matrix @ direction == pytest.approx(loss.product(direction), rel=1e-4, abs=1e-4)
    assert np.diagonal(matrix) == pytest.approx(loss.diagonal(), rel=1e-4, abs=1e-5)


def test_huge_weights_are_answered_in_logs():
    features, data, rng = random_case(8, [2, 3, 2, 2], 40, 12)
    weights = rng.normal(0, 400, len(features))
    value, gradient = Expectations(features.arrays, data).value_and_gradient(weights)
    wanted, slope = naive_likelihood(features, data, weights)
    assert value == pytest.approx(wanted, rel=1e-10)
    assert gradient == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("sd", [0.3, 1.0, 5.0])
def test_gaussian_weights_equal_an_optimum_of_scipys(gates, sd):
    features, data, _ = random_case(12, [2, 3, 4, 2, 3], 80, 30)
    net = unless.fit_weights(features, data, unless.Gaussian(sd), objective="likelihood")
    assert net.fit_report.converged
    assert net.fit_report.measure == "log_likelihood"
    assert net.weights == pytest.approx(naive_optimum(features, data, sd), abs=1e-5)
    value, _ = naive_likelihood(features, data, net.weights, sd)
    assert net.fit_report.objective == pytest.approx(value, rel=1e-10)


def test_gaussian_and_laplace_together_leave_no_better_weights_nearby():
    features, data, rng = random_case(14, [2, 3, 2, 3], 60, 20)
    prior = unless.Gaussian(1) + unless.Laplace(5)
    net = unless.fit_weights(features, data, prior, objective="likelihood")
    best = net.fit_report.objective
    assert net.fit_report.converged
    assert 0 < (net.weights == 0).sum() < len(features)
    assert best == pytest.approx(naive_likelihood(features, data, net.weights, 1.0, 5.0)[0], rel=1e-12)
    for size in (1e-1, 1e-3):
        for _ in range(10):
            moved = net.weights + rng.normal(0, size, len(features)) * (rng.random(len(features)) < 0.5)
            assert naive_likelihood(features, data, moved, 1.0, 5.0)[0] > best


def test_laplace_alone_leaves_no_slope():
    features, data, _ = random_case(13, [2] * 5, 150, 25)
    net = unless.fit_weights(features, data, unless.Laplace(2.0), objective="likelihood")
    _, slope = naive_likelihood(features, data, net.weights)
    assert net.fit_report.converged
    at_zero = net.weights == 0
    assert (np.abs(slope[at_zero]) <= 2 + 1e-6).all()
    assert slope[~at_zero] == pytest.approx(-2 * np.sign(net.weights[~at_zero]), abs=1e-5)


def test_no_model_of_these_features_is_more_probable():
    features, data, _ = random_case(21, [2, 3, 2, 2], 200, 20)
    prior = unless.Gaussian(10)
    full = unless.fit_weights(features, data, prior, objective="likelihood")
    pseudo = unless.fit_weights(features, data, prior)
    assert full.score(data) > pseudo.score(data) - 1e-4
    assert float(pseudo.pseudo_log_likelihood(data)) > float(full.pseudo_log_likelihood(data)) - 1e-4


def test_saturated_features_reproduce_the_frequencies():
    data = unless.read({"A": [0, 0, 0, 1, 1, 1, 1], "B": [0, 1, 1, 0, 0, 0, 1]})
    whole = features_of(data, {"A": 1}, {"B": 1}, {"A": 1, "B": 1})
    net = unless.fit_weights(whole, data, prior=None, objective="likelihood")
    assert net.query(["A", "B"]).probabilities == pytest.approx(np.array([[1, 2], [3, 1]]) / 7, abs=1e-7)


def test_the_same_optimum_from_any_start():
    features, data, rng = random_case(15, [2, 3, 2], 50, 15)
    cold = unless.fit_weights(features, data, objective="likelihood")
    warm = unless.fit_weights(features, data, objective="likelihood", start=rng.normal(0, 3, len(features)))
    again = unless.fit_weights(features, data, objective="likelihood", start=cold)
    assert warm.weights == pytest.approx(cold.weights, abs=1e-6)
    assert again.fit_report.n_iterations == 0


def test_priors_are_judged_by_the_likelihood_of_unseen_rows():
    features, data, rng = random_case(41, [2, 3, 2, 2], 200, 30)
    unseen = Dataset.from_codes(data.domain, rng.integers(0, data.domain.n_levels, (50, len(data.domain))))
    priors = [unless.Gaussian(0.1), unless.Gaussian(1), unless.Laplace(1)]
    net = unless.fit_weights(features, data, priors, validation=unseen, objective="likelihood")
    for candidate in net.fit_report.candidates:
        alone = unless.fit_weights(features, data, candidate.prior, objective="likelihood")
        assert candidate.score == pytest.approx(alone.score(unseen), abs=1e-6)
    best = max(net.fit_report.candidates, key=lambda one: one.score)
    assert net.fit_report.prior == best.prior


def test_the_optimum_does_not_exist_where_a_feature_never_or_always_holds():
    data = unless.read({"A": [0, 0, 1, 0], "B": [0, 1, 0, 0]})
    with pytest.raises(SettingError, match=r"\[A = 1 & B = 1\] has no finite .* never true"):
        unless.fit_weights(
            features_of(data, {"A": 1}, {"A": 1, "B": 1}), data, prior=None, objective="likelihood"
        )
    still = unless.read({"A": [0, 0], "B": [0, 1]}, levels={"A": [0, 1], "B": [0, 1]})
    with pytest.raises(SettingError, match=r"\[A = 0\] has no finite .* always true"):
        unless.fit_weights(features_of(still, {"A": 0}, {"B": 1}), still, prior=None, objective="likelihood")


def test_a_level_that_is_alone_is_no_reason_to_refuse():
    data = unless.read({"A": [0, 0, 0], "B": [0, 1, 1]})
    net = unless.fit_weights(features_of(data, {"A": 0}, {"B": 1}), data, prior=None, objective="likelihood")
    assert net.fit_report.converged
    assert net.query("B")["1"] == pytest.approx(2 / 3, abs=1e-6)


def test_counts_on_the_boundary_together_are_refused():
    # (A = 1, C = 0) never happens, and no feature says so alone.
    data = unless.read({"A": [0, 0, 1] * 4, "C": [0, 1, 1] * 4})
    pairs = features_of(data, {"A": 1}, {"C": 1}, {"A": 1, "C": 1})
    with pytest.raises(SettingError, match="together tell a part of the data apart"):
        unless.fit_weights(pairs, data, prior=None, objective="likelihood")
    assert unless.fit_weights(pairs, data, objective="likelihood").fit_report.converged


def test_redundant_features_are_no_reason_to_refuse():
    data = unless.read(TABLE)
    both = features_of(
        data, {"A": 1}, {"A": 0}, {"B": 1, "C": 1}, {"B": 0, "C": 0}, {"B": 0, "C": 1}, {"B": 1, "C": 0}
    )
    assert unless.fit_weights(both, data, prior=None, objective="likelihood").fit_report.converged


def test_equal_weights_of_unlike_features_do_not_share_their_parts(gates):
    # At zero weights all parts look alike; a plan that joined them would be wrong everywhere else.
    truth = unless.datasets.make_csi(6, random_state=1)
    sample = truth.sample_codes(500, random_state=2)
    loss = Expectations(truth.features.arrays, sample)
    value, gradient = loss.value_and_gradient(np.array(truth.weights))
    wanted, slope = naive_likelihood(truth.features, sample, truth.weights)
    assert value == pytest.approx(wanted, rel=1e-12)
    assert gradient == pytest.approx(slope, abs=1e-8)


def test_what_is_not_cheap_is_refused_with_the_estimate(monkeypatch):
    rng = np.random.default_rng(0)
    data = unless.read({f"X{v:02}": rng.integers(0, 2, 50) for v in range(40)})
    pairs = [{f"X{a:02}": 1, f"X{b:02}": 1} for a in range(40) for b in range(a)]
    with pytest.raises(TooLarge, match=r"tables of .* cells.*objective='pseudo'"):
        unless.fit_weights(features_of(data, *pairs), data, objective="likelihood")
    monkeypatch.setattr(likelihood, "MAX_STEPS", 10.0)
    features, data, _ = random_case(15, [2, 3, 2], 50, 15)
    with pytest.raises(TooLarge, match=r"steps .*objective='pseudo'"):
        unless.fit_weights(features, data, objective="likelihood")


def test_an_estimator_passes_the_objective_on():
    data = unless.datasets.load_ucb_admissions()
    net = unless.CSGS().fit(data).network(data, objective="likelihood")
    assert net.fit_report.measure == "log_likelihood"
    assert net.fit_report.converged
    with pytest.raises(SettingError, match="objective='full' is not known"):
        unless.fit_weights(net.features, data, objective="full")
    with pytest.raises(SettingError, match="objective='pseudo'"):
        weight_intervals(net, data)
