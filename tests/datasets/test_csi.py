import numpy as np
import pytest

import brute_force
from unless import CSGS, Graph
from unless.datasets import make_csi
from unless.errors import SettingError, TooLarge, UnknownName
from unless.inference.model import LogLinearModel

LAWS = pytest.mark.parametrize("law", ["normal", "uniform"])


@pytest.mark.parametrize(("n_variables", "n_features"), [(6, 50), (7, 72), (8, 98), (9, 128)])
def test_features_are_those_of_the_published_domain(n_variables, n_features):
    made = make_csi(n_variables, random_state=1)
    assert len(made.features) == len(made.weights) == n_features
    for feature in made.features:
        gates = [condition.label for condition in feature if condition.name == "W"]
        assert gates == (["1"] if len(feature) == 2 else ["0"])
        assert len(feature) in {2, 3}


@LAWS
def test_the_table_is_the_one_its_features_say(law):
    made = make_csi(5, law=law, random_state=3)
    assert isinstance(made, LogLinearModel)
    assert made.probabilities == pytest.approx(brute_force.joint(made, range(5)), rel=1e-9)
    assert made.weights.min() == min(made.gate_weights.min(), *map(np.min, made.pair_weights.values()))


@LAWS
@pytest.mark.parametrize("n_variables", [2, 6, 9])
def test_a_balanced_gate_is_open_half_the_time(law, n_variables):
    made = make_csi(n_variables, law=law, random_state=2)
    assert made.probabilities[..., 1].sum() == pytest.approx(0.5, abs=1e-12)
    assert made.probabilities.sum() == pytest.approx(1)


def test_the_raw_law_all_but_closes_the_gate():
    shares = [
        make_csi(9, law="uniform", balance=False, random_state=seed).probabilities[..., 1].sum()
        for seed in range(9)
    ]
    assert np.median(shares) < 1e-3


def test_balancing_leaves_each_side_as_it_was():
    raw, balanced = (make_csi(6, balance=balance, random_state=5).probabilities for balance in (False, True))
    for code in (0, 1):
        side, other = raw[..., code], balanced[..., code]
        assert side / side.sum() == pytest.approx(other / other.sum(), rel=1e-9)


def test_behind_the_gate_all_others_are_exactly_independent():
    made = make_csi(6, random_state=0)
    side = made.probabilities[..., 1] / made.probabilities[..., 1].sum()
    product = np.ones_like(side)
    for axis in range(side.ndim):
        other = tuple(position for position in range(side.ndim) if position != axis)
        product = product * side.sum(axis=other, keepdims=True)
    assert side == pytest.approx(product, rel=1e-9)
    assert made.probabilities[..., 0] / 0.5 != pytest.approx(product, rel=1e-2)


def test_edges_are_complete_before_the_gate_and_a_star_behind_it():
    made = make_csi(6, random_state=0)
    assert made.domain.names == ("X1", "X2", "X3", "X4", "X5", "W")
    assert made.gate == "W"
    assert len(made.edges({"W": 0})) == len(made.edges()) == 15
    assert made.edges({"W": "1"}) == {("W", f"X{position}") for position in range(1, 6)}
    with pytest.raises(UnknownName):
        made.edges({"w": 1})


def test_the_random_state_alone_decides_and_the_global_generator_is_left_alone():
    state = np.random.get_state()[1].copy()
    first, second = (make_csi(6, random_state=7).sample(500, random_state=8) for _ in range(2))
    assert first == second
    assert first != make_csi(6, random_state=7).sample(500, random_state=9)
    assert first != make_csi(6, random_state=8).sample(500, random_state=8)
    generator = np.random.default_rng(8)
    assert make_csi(6, random_state=7).sample(500, random_state=generator) == first
    assert np.array_equal(np.random.get_state()[1], state)


def test_samples_follow_the_table():
    made = make_csi(6, random_state=4)
    sample = made.sample(200_000, random_state=4)
    shares = np.zeros_like(made.probabilities)
    shares[tuple(sample.rows.T)] = sample.counts / sample.n_rows
    assert sample.n_rows == 200_000
    assert np.abs(shares - made.probabilities).max() < 0.005


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"n_variables": 1}, SettingError),
        ({"n_variables": 40}, TooLarge),
        ({"law": "cauchy"}, SettingError),
    ],
)
def test_settings_out_of_range_are_refused(settings, error):
    with pytest.raises(error):
        make_csi(**settings)


def test_a_sample_has_no_fewer_rows_than_none():
    assert make_csi(3, random_state=0).sample(0).n_rows == 0
    with pytest.raises(SettingError):
        make_csi(3, random_state=0).sample(-1)


def test_it_is_asked_like_any_model():
    made = make_csi(6, random_state=0)
    assert made.query("W")["1"] == pytest.approx(0.5)
    assert made.log_partition() == pytest.approx(brute_force.log_partition(made))
    behind = made.query(["X1", "X2"], {"W": 1}).probabilities
    assert behind == pytest.approx(np.outer(behind.sum(axis=1), behind.sum(axis=0)))


def test_samples_as_frames_and_under_evidence_are_those_of_any_model():
    made = make_csi(6, random_state=0)
    frame = made.sample(200, random_state=1, backend="pandas")
    assert frame.shape == (200, 6)
    assert made.sample(50, random_state=1, evidence={"W": 1}).rows[:, 5].all()
    assert set(made.sample(50, random_state=1, evidence={"W": 1}, backend="pandas")["W"]) == {1}
    assert CSGS().fit(made.sample(500, random_state=1)).n_tests_ > 0
    assert CSGS().fit(made.sample(500, random_state=1, backend="polars")).n_tests_ > 0


def test_true_links_compare_with_learned_ones():
    truth = make_csi(6, random_state=0)
    for level in ("0", "1"):
        edges = truth.edges({truth.gate: level})
        assert Graph(truth.domain, edges).edges == edges


@pytest.mark.parametrize("n", ["3", 2.5, True, -1])
def test_a_number_of_rows_is_a_whole_number(n):
    with pytest.raises(SettingError, match="n must be a whole number"):
        make_csi(4, random_state=0).sample(n)
    with pytest.raises(SettingError, match="n_variables must be a whole number"):
        make_csi(n)
