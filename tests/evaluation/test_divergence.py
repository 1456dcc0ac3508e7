from itertools import combinations

import numpy as np
import pytest

from inference.models import domain_of, model_of, random_model, trees_by_context
from twins import brute_force
from unless.data.domain import Domain, Variable
from unless.datasets import make_csi
from unless.errors import ImpossibleEvidence, SettingError, TooLarge
from unless.evaluation import divergence
from unless.evaluation.divergence import Divergence, kl_divergence
from unless.inference.model import LogLinearModel
from unless.structures.graph import Feature, FeatureSet

INF = float("inf")


def naive_kl(truth, net):
    p, q = (brute_force.joint(model, range(len(model.domain))) for model in (truth, net))
    shown = p > 0
    with np.errstate(divide="ignore"):
        return float((p[shown] * (np.log(p[shown]) - np.log(q[shown]))).sum())


def two_models(seed, zeros=0.0):
    """Draw a truth and another model over the same domain."""
    rng = np.random.default_rng(seed)
    truth = random_model(rng, 5, max_levels=3, zeros=zeros)
    levels = truth.domain.n_levels
    weighted = [
        (
            [
                (int(v), int(rng.integers(levels[v])), bool(rng.random() < 0.7))
                for v in rng.choice(5, 2, replace=False)
            ],
            float(rng.standard_normal()),
        )
        for _ in range(12)
    ]
    return truth, model_of(truth.domain, weighted)


@pytest.mark.parametrize("method", ["states", "expectations"])
@pytest.mark.parametrize("zeros", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(10))
def test_exact_values_equal_brute_force(monkeypatch, seed, zeros, method):
    if method == "expectations":
        monkeypatch.setattr(divergence, "MAX_STATES", 0)
    truth, net = two_models(seed, zeros)
    found = kl_divergence(truth, net)
    assert found == pytest.approx(naive_kl(truth, net), abs=1e-9)
    assert found.method == method
    assert found.error == 0
    assert kl_divergence(truth, truth) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("method", ["states", "expectations", "sampling"])
def test_infinite_where_the_net_forbids_what_the_truth_allows(monkeypatch, method):
    if method != "states":
        monkeypatch.setattr(divergence, "MAX_STATES", 0)
    if method == "sampling":
        monkeypatch.setattr(divergence, "MAX_STEPS", 0)
    forbidding = model_of(domain_of([2, 3]), [([(0, 1, True), (1, 2, True)], -INF)])
    demanding = model_of(domain_of([2, 3]), [([(0, 1, False)], INF)])
    free = model_of(domain_of([2, 3]), [([(0, 0, True)], 0.3)])
    for net in (forbidding, demanding):
        found = kl_divergence(free, net, random_state=0)
        assert found == INF
        assert found.method == method
    # The truth never goes where the net forbids.
    if method != "sampling":
        assert kl_divergence(demanding, forbidding) == pytest.approx(
            naive_kl(demanding, forbidding), abs=1e-9
        )


def test_samples_are_within_their_error():
    gaps = []
    for seed in range(20):
        truth, net = two_models(100 + seed)
        found = kl_divergence(truth, net, n_samples=2_000, random_state=seed)
        assert found.method == "sampling"
        gaps.append((found - naive_kl(truth, net)) / found.error)
    assert np.abs(gaps).max() < 4
    assert 0.5 < np.std(gaps) < 1.6
    again = [kl_divergence(truth, net, n_samples=500, random_state=1) for _ in range(2)]
    assert again[0] == again[1]


def test_columns_and_levels_may_be_in_another_order_or_unknown():
    truth, net = two_models(3)
    names = truth.domain.names
    turned = Domain(tuple(Variable(name, truth.domain[name].levels[::-1]) for name in reversed(names)))
    weights = dict(zip(net.features, net.weights, strict=True))
    features = FeatureSet(turned, weights)
    other = LogLinearModel(features, [weights[feature] for feature in features])
    assert kl_divergence(truth, other) == pytest.approx(naive_kl(truth, net), abs=1e-9)
    fewer = Domain((Variable("A0", ("a",)), *truth.domain.variables[1:]))
    blind = LogLinearModel(FeatureSet(fewer), [])
    assert kl_divergence(truth, blind) == INF
    more = Domain((Variable("A0", (*truth.domain["A0"].levels, "z")), *truth.domain.variables[1:]))
    wide = LogLinearModel(FeatureSet(more, [Feature.of({"A0": "z"})]), [-INF])
    flat = LogLinearModel(FeatureSet(truth.domain), [])
    assert kl_divergence(truth, wide) == pytest.approx(kl_divergence(truth, flat), abs=1e-9)


def test_expectations_agree_where_orders_and_levels_differ(monkeypatch):
    truth, _ = two_models(4)
    more = Domain((*truth.domain.variables[1:], Variable("A0", ("z", *truth.domain["A0"].levels[::-1]))))
    label = truth.domain["A1"].levels[0]
    features = [Feature.of({"A0": "z"}), Feature.of({"A0": "a", "A1": label}), Feature.of({"A1": label})]
    found = FeatureSet(more, features)
    net = LogLinearModel(found, np.linspace(-1, 1, len(found)))
    by_states = kl_divergence(truth, net)
    monkeypatch.setattr(divergence, "MAX_STATES", 0)
    assert kl_divergence(truth, net) == pytest.approx(by_states, abs=1e-9)
    fewer = Domain((Variable("A0", ("a",)), *truth.domain.variables[1:]))
    assert kl_divergence(truth, LogLinearModel(FeatureSet(fewer), [])) == INF


def test_a_domain_of_40_variables_is_compared_exactly():
    rng = np.random.default_rng(0)
    truth = trees_by_context(rng)
    net = LogLinearModel(truth.features, truth.weights + 0.1 * rng.standard_normal(len(truth.weights)))
    exact = kl_divergence(truth, net)
    assert exact.method == "expectations"
    sampled = kl_divergence(truth, net, n_samples=20_000, random_state=0)
    assert abs(exact - sampled) < 4 * sampled.error
    assert kl_divergence(truth, truth) == pytest.approx(0, abs=1e-8)


def test_the_papers_domain_is_compared_directly():
    truth = make_csi(6, random_state=0)
    found = kl_divergence(truth, LogLinearModel(truth.features, truth.weights * 0.9))
    assert 0 < found < 1
    assert found.value == float(found)
    assert "nats, by states" in repr(found)
    assert "±" in repr(Divergence(1.0, 0.1, "sampling"))


def test_models_that_cannot_be_compared_are_refused():
    truth = model_of(domain_of([2, 2]), [])
    with pytest.raises(SettingError, match="'A2'"):
        kl_divergence(truth, model_of(domain_of([2, 2, 2]), []))
    with pytest.raises(SettingError, match="n_samples"):
        kl_divergence(truth, truth, n_samples=1)
    nothing = model_of(domain_of([2, 2]), [([(0, i, True)], -INF) for i in range(2)])
    with pytest.raises(ImpossibleEvidence):
        kl_divergence(truth, nothing)
    pairs = combinations(range(40), 2)
    wide = model_of(domain_of([2] * 40), [([(a, 0, True), (b, 0, True)], 0.1) for a, b in pairs])
    with pytest.raises(TooLarge, match=r"allowed; raise max_memory=\.$"):
        kl_divergence(wide, wide)
    narrow = model_of(domain_of([2] * 16), [([(a, 0, True) for a in range(16)], 0.1)])
    assert kl_divergence(narrow, narrow, max_memory="64 MB") == 0


@pytest.mark.parametrize("method", ["states", "expectations"])
@pytest.mark.parametrize("equal", [True, False])
def test_what_is_possible_is_not_forbidden_however_improbable(monkeypatch, method, equal):
    if method == "expectations":
        monkeypatch.setattr(divergence, "MAX_STATES", 0)
    domain = domain_of([4, 2])
    # Levels b and c together are the same as neither a nor d.
    said = [[(0, 1, True)], [(0, 2, True)]] if equal else [[(0, 0, False), (0, 3, False)]]
    truth = model_of(domain, [([(0, 1, True)], -800.0), ([(0, 2, True)], -900.0), ([(1, 0, True)], 0.3)])
    net = model_of(domain, [(literals, -INF) for literals in said])
    found = kl_divergence(truth, net)
    assert found == INF
    assert found.method == method
    assert kl_divergence(net, truth) < INF
    fewer = LogLinearModel(FeatureSet(Domain((Variable("A0", ("a", "d")), domain["A1"]))), [])
    assert kl_divergence(truth, fewer) == INF


def test_several_exclusions_of_one_variable_are_one_loop_over_its_levels():
    domain = Domain((Variable("V", tuple(map(str, range(30)))), *domain_of([2] * 21).variables))
    weighted = [([(0, level, False) for level in range(20)], 0.5), ([(0, 3, True), (1, 1, True)], 0.2)]
    truth = model_of(domain, weighted)
    assert kl_divergence(truth, model_of(domain, [])).method == "expectations"
