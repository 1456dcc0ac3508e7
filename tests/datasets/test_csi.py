from itertools import combinations

import numpy as np
import pytest

from twins import brute_force
from unless import CSGS, Graph, compare_structures
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


# --- more levels, several gates, other shapes ---------------------------------------------------------------

SETTINGS = [
    {"n_variables": 5, "n_levels": 3},
    {"n_variables": 4, "n_levels": [2, 4, 3]},
    {"n_variables": 6, "n_gates": 2},
    {"n_variables": 7, "n_gates": 3, "shape": "chain"},
    {"n_variables": 7, "shape": "chain", "n_levels": [2, 3, 2, 2, 3, 2]},
    {"n_variables": 7, "shape": "grid", "n_gates": 2},
    {"n_variables": 6, "w": "first"},
    {"n_variables": 6, "w": "first", "n_gates": 2, "shape": "grid", "n_levels": 3},
    {"n_variables": 2, "shape": "chain"},
    {"n_variables": 2, "n_levels": 5, "w": "first"},
]
ALL = pytest.mark.parametrize("settings", SETTINGS, ids=str)


@ALL
@LAWS
def test_any_domain_is_the_law_its_features_say_and_its_gates_are_even(settings, law):
    made = make_csi(**settings, law=law, random_state=1)
    n_variables = settings["n_variables"]
    assert made.probabilities == pytest.approx(brute_force.joint(made, range(n_variables)), rel=1e-9)
    assert len(made.gates) == settings.get("n_gates", 1)
    for name in made.gates:
        axis = made.domain.index(name)
        share = made.probabilities.take(1, axis=axis).sum()
        assert share == pytest.approx(0.5, abs=1e-9)


@ALL
def test_edges_are_the_dependences_of_the_joint_in_each_context(settings):
    made = make_csi(**settings, random_state=2)
    domain, table = made.domain, made.probabilities
    names = domain.names
    for a, b in combinations(range(len(domain)), 2):
        pair = tuple(sorted((names[a], names[b])))
        rest = [v for v in range(len(domain)) if v not in (a, b)]
        slices = np.moveaxis(table, (a, b), (-2, -1))
        for codes in np.ndindex(*(domain.n_levels[v] for v in rest)):
            joint = slices[codes] / slices[codes].sum()
            product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
            dependent = bool(np.abs(joint - product).max() > 1e-9)
            assert dependent == (pair in made.edges(domain.decode(dict(zip(rest, codes, strict=True)))))


@ALL
def test_the_generating_features_interact_where_the_edges_are(settings):
    made = make_csi(**settings, random_state=3)
    data = made.sample(300, random_state=3)
    model = made.truth(data)
    assert np.array_equal(model.rows, data.rows)
    for context, graph in model:
        assert graph.edges == made.edges(context)
    compared = compare_structures(made, model)
    assert compared.n_contexts == data.n_distinct
    # Two variables depend on each other although no feature speaks of both while the gate is 0.
    without_feature = 0 if made.owner else int((data.rows[:, made.domain.index("W")] == 0).sum())
    assert (compared.fp, compared.fn) == (without_feature, 0)


@ALL
def test_balancing_any_domain_leaves_what_gates_decide_as_it_was(settings):
    raw, even = (make_csi(**settings, balance=balance, random_state=5) for balance in (False, True))
    gates = tuple(raw.domain.index(name) for name in raw.gates)
    others = tuple(v for v in range(len(raw.domain)) if v not in gates)
    sides = [made.probabilities / made.probabilities.sum(axis=others, keepdims=True) for made in (raw, even)]
    assert sides[0] == pytest.approx(sides[1], rel=1e-9)


def test_the_place_of_the_gate_changes_nothing_else():
    last, first = (make_csi(6, w=place, random_state=4) for place in ("last", "first"))
    assert first.domain.names == ("W", "X1", "X2", "X3", "X4", "X5")
    assert first.gate == "W"
    assert np.moveaxis(first.probabilities, 0, -1) == pytest.approx(last.probabilities, rel=1e-9)


def test_each_gate_switches_its_own_run_of_links():
    made = make_csi(9, n_gates=2, shape="chain", random_state=0)
    assert made.domain.names[-2:] == made.gates == ("W1", "W2")
    chain = [(f"X{i}", f"X{i + 1}") for i in range(1, 7)]
    assert [pair for pair in chain if pair not in made.edges({"W1": 1})] == chain[:3]
    assert [pair for pair in chain if pair not in made.edges({"W2": 1})] == chain[3:]
    # X4 is an end of links of both.
    assert {("W1", "X4"), ("W2", "X4")} < made.edges({"W1": 1, "W2": 1})
    assert ("W1", "X5") not in made.edges()
    assert ("W1", "W2") not in made.edges()
    with pytest.raises(SettingError, match="2 gates"):
        _ = made.gate


def test_a_grid_is_as_square_as_it_can_be():
    made = make_csi(9, shape="grid", random_state=0)
    between = {pair for pair in made.edges() if "W" not in pair}
    right = {("X1", "X2"), ("X2", "X3"), ("X4", "X5"), ("X5", "X6"), ("X7", "X8")}
    below = {("X1", "X4"), ("X2", "X5"), ("X3", "X6"), ("X4", "X7"), ("X5", "X8")}
    assert between == right | below


@pytest.mark.parametrize("n_variables", [15, 20, 30])
@pytest.mark.parametrize("shape", ["chain", "grid"])
@pytest.mark.parametrize(("n_gates", "n_levels"), [(1, 2), (3, 3)])
def test_large_domains_are_sampled_without_a_table(n_variables, shape, n_gates, n_levels):
    made = make_csi(n_variables, shape=shape, n_gates=n_gates, n_levels=n_levels, random_state=0)
    assert made.exact.cost.cells < 20_000
    sample = made.sample(20_000, random_state=1)
    assert sample.n_rows == 20_000
    assert sample == made.sample(20_000, random_state=1)
    marginals = made.marginals()
    for position, name in enumerate(made.domain.names):
        shares = np.bincount(sample.rows[:, position], sample.counts, made.domain.n_levels[position]) / 20_000
        assert shares == pytest.approx(marginals[name].probabilities, abs=0.02)
    for name in made.gates:
        assert marginals[name]["1"] == pytest.approx(0.5, abs=1e-9)
    truth = made.truth(sample)
    assert truth.n_graphs == 2**n_gates
    assert compare_structures(made, truth, contexts=sample).distance == 0
    if n_variables == 30:
        with pytest.raises(TooLarge, match="states"):
            _ = made.probabilities


def test_the_truth_is_asked_of_its_own_tables():
    with pytest.raises(SettingError, match="sampled from it"):
        make_csi(5, random_state=0).truth(make_csi(6, random_state=0).sample(10, random_state=0))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n_levels": 1}, SettingError, "n_levels"),
        ({"n_levels": [2, 3]}, SettingError, "each of the 5"),
        ({"n_gates": 0}, SettingError, "n_gates"),
        ({"n_gates": 6}, SettingError, "n_gates"),
        ({"n_variables": 30, "n_gates": 11, "shape": "chain"}, SettingError, "from 1 to 10"),
        ({"n_gates": 4, "shape": "chain"}, SettingError, "more than the 1 links"),
        ({"w": "middle"}, SettingError, "'middle'"),
        ({"shape": "star"}, SettingError, "'star'"),
        ({"n_levels": 1000}, TooLarge, "features"),
        ({"n_variables": 26, "n_levels": 3}, TooLarge, "cells"),
    ],
)
def test_other_settings_out_of_range_are_refused_in_one_sentence(settings, error, message):
    with pytest.raises(error, match=message):
        make_csi(**settings)
