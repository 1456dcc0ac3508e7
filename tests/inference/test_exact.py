"""Exact answers equal those of enumeration, with and without conditioning on gates."""

import math

import numpy as np
import pytest

from inference.models import (
    complete_model,
    csi_model,
    domain_of,
    grid_model,
    model_of,
    random_evidence,
    random_model,
    trees_by_context,
)
from twins import brute_force
from unless.errors import ImpossibleEvidence, SettingError, TooLarge
from unless.inference import exact
from unless.inference.exact import ExactSolver

CLOSE = {"rtol": 0, "atol": 1e-9}


def engine_of(model, **settings):
    return ExactSolver(*model.plain, model.domain.n_levels, **settings)


def drawn(seed):
    """Draw a model and possible evidence; every third has impossible states, every fifth huge weights."""
    rng = np.random.default_rng(seed)
    n_variables = int(rng.integers(1, 13))
    model = random_model(
        rng,
        n_variables,
        # Few enough states to enumerate them all.
        max_levels=4 if n_variables < 8 else 3,
        # Few features leave room for gates: where every link has many, no level cuts one.
        n_features=n_variables + 2 if seed % 2 else 4 * n_variables,
        max_length=6,
        zeros=0.1 if seed % 3 == 0 else 0.0,
        scale=300.0 if seed % 5 == 0 else 1.0,
    )
    evidence = random_evidence(rng, model.domain)
    while brute_force.log_partition(model, evidence) == -np.inf:
        evidence.popitem()
    return rng, model, evidence


def split_often(monkeypatch):
    """Fix gates even where that costs more than it saves."""
    monkeypatch.setattr(exact, "CHEAP", 64.0)
    monkeypatch.setattr(exact, "MOST", 3.0)


@pytest.mark.parametrize("seed", range(200))
def test_answers_equal_enumeration(seed, monkeypatch):
    if seed % 2:
        split_often(monkeypatch)
    rng, model, evidence = drawn(seed)
    given = model.domain.decode(evidence)
    expected = brute_force.log_partition(model, evidence)
    assert model.log_partition(given) == pytest.approx(expected, abs=1e-9, rel=1e-13)
    marginals = model.marginals(given)
    for position, name in enumerate(model.domain.names):
        np.testing.assert_allclose(
            marginals[name].probabilities, brute_force.joint(model, [position], evidence), **CLOSE
        )
    size = int(rng.integers(1, min(4, len(model.domain) + 1)))
    asked = rng.choice(len(model.domain), size, replace=False).tolist()
    answer = model.query([model.domain.names[v] for v in asked], given)
    np.testing.assert_allclose(answer.probabilities, brute_force.joint(model, asked, evidence), **CLOSE)
    best = model.map_query(evidence=given)
    state = np.zeros((1, len(model.domain)), dtype=np.uint16)
    for position, code in (model.domain.encode(best) | evidence).items():
        state[0, position] = code
    top = brute_force.map_value(model, evidence)
    assert model.log_potentials(state)[0] == pytest.approx(top, abs=1e-9, rel=1e-13)
    assert best.log_probability == pytest.approx(min(0.0, top - expected), abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_conditioning_changes_no_answer(seed, monkeypatch):
    split_often(monkeypatch)
    rng = np.random.default_rng(seed)
    model = random_model(rng, 13, max_levels=2, n_features=25, max_length=5)
    split, flat = engine_of(model), engine_of(model, conditioning=False)
    rows = np.stack([split.codes(random_evidence(rng, model.domain)) for _ in range(5)])
    assert split.cost.n_gates > 0
    assert flat.cost.n_gates == 0
    for mine, other in zip(split.posteriors(rows), flat.posteriors(rows), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("scale", [1.0, 400.0])
def test_logs_take_over_where_numbers_would_vanish(scale):
    rng = np.random.default_rng(5)
    model = random_model(rng, 10, max_levels=2, scale=scale)
    engine = engine_of(model)
    sums, answers = engine.posteriors(engine.codes({}))
    assert sums[0] == pytest.approx(brute_force.log_partition(model), abs=1e-9, rel=1e-13)
    for v in range(10):
        np.testing.assert_allclose(
            answers[0, engine.slots[v] : engine.slots[v + 1]], brute_force.joint(model, [v]), **CLOSE
        )


def test_a_long_chain_of_large_weights_neither_vanishes_nor_overflows():
    weights = np.random.default_rng(0).normal(0, 60, (200, 2, 2))
    chain = [
        ([(v, x, True), (v + 1, y, True)], weights[v, x, y]) for v in range(200) for x, y in np.ndindex(2, 2)
    ]
    message = np.zeros(2)
    for step in weights:
        message = np.logaddexp.reduce(message[:, None] + step, axis=0)
    model = model_of(domain_of([2] * 201), chain)
    assert model.log_partition() == pytest.approx(np.logaddexp.reduce(message), rel=1e-13)
    last = np.exp(message - np.logaddexp.reduce(message))
    np.testing.assert_allclose(model.query("A200").probabilities, last, **CLOSE)


def test_variables_of_one_level_are_no_trouble():
    weighted = [
        ([(0, 1, True), (1, 0, True), (2, 1, True)], 1.5),
        ([(1, 0, True)], 2.0),
        ([(1, 0, True), (3, 2, False)], -0.5),
        ([(3, 1, True), (4, 0, True), (0, 0, True)], 0.7),
    ]
    model = model_of(domain_of([2, 1, 2, 3, 1]), weighted)
    assert model.log_partition() == pytest.approx(brute_force.log_partition(model), abs=1e-12)
    everything = list(range(5))
    np.testing.assert_allclose(
        model.query(model.domain.names).probabilities, brute_force.joint(model, everything), **CLOSE
    )
    assert model.map_query().log_probability == pytest.approx(
        brute_force.map_value(model) - brute_force.log_partition(model)
    )


def test_the_paper_domain_at_20_variables():
    model = csi_model(20)
    assert model.exact.cost.cells < 2**19 + 100
    table = np.zeros((2,) * 20)
    for literals, weight in zip(model.features.arrays.literals(), model.weights, strict=True):
        where = [slice(None)] * 20
        for variable, level, _ in literals:
            where[variable] = level
        table[tuple(where)] += weight
    top = table.max()
    assert model.log_partition() == pytest.approx(top + math.log(np.exp(table - top).sum()), abs=1e-9)
    assert model.query("W")["1"] == pytest.approx(0.5)


def test_forty_variables_with_a_tree_in_each_of_eight_contexts():
    model = trees_by_context(np.random.default_rng(0))
    assert engine_of(model, conditioning=False).cost.cells >= 2**25
    assert model.exact.cost.cells < 2**11
    assert model.exact.cost.n_trees == 8
    # Each context is a tree, and its sum follows from that of the trees alone.
    logs = [
        model.log_partition({f"A{gate}": "ab"[context >> gate & 1] for gate in range(3)})
        for context in range(8)
    ]
    assert model.log_partition() == pytest.approx(np.logaddexp.reduce(logs), abs=1e-9)


def test_what_is_truly_too_wide_is_refused_with_an_estimate_and_a_way_out():
    model = grid_model(np.random.default_rng(0), 40, 40)
    with pytest.raises(TooLarge, match=r"e\+\d+ cells, about .* TiB.* allowed; raise max_memory="):
        model.log_partition()
    with pytest.raises(TooLarge, match=r"e\+\d+ cells, about .* TiB.*method='gibbs'.*max_memory="):
        model.query("A0", method="exact")


def test_max_memory_is_obeyed():
    model = complete_model(np.random.default_rng(0), 22)
    assert model.exact.cost.n_bytes == 24 * 2**22
    with pytest.raises(TooLarge, match=r"64\.0 MiB allowed"):
        model.log_partition(max_memory="64 MB")


def test_impossible_evidence_is_named():
    model = model_of(domain_of([2, 2]), [([(0, 0, True), (1, 1, True)], -np.inf)])
    evidence = {"A0": "a", "A1": "b"}
    assert model.log_partition(evidence) == -np.inf
    for ask in (
        lambda: model.query("A0", evidence),
        lambda: model.marginals(evidence),
        lambda: model.map_query(evidence=evidence),
        lambda: model.map_query(["A0"], evidence),
        lambda: model.probability({"A0": "a"}, evidence),
        lambda: model.sample(3, 0, evidence=evidence),
    ):
        with pytest.raises(ImpossibleEvidence, match="A0 = a, A1 = b probability zero"):
            ask()


def test_a_model_without_possible_states_says_so():
    model = model_of(domain_of([2]), [([(0, 0, True)], -np.inf), ([(0, 1, True)], -np.inf)])
    with pytest.raises(ImpossibleEvidence, match="no state possible"):
        model.query("A0")


def test_a_weight_of_infinity_is_a_demand():
    weighted = [([(0, 1, True), (1, 2, False)], np.inf), ([(1, 0, True)], 1.0), ([(0, 0, True)], 5.0)]
    model = model_of(domain_of([2, 3]), weighted)
    np.testing.assert_allclose(
        model.query(["A0", "A1"]).probabilities, brute_force.joint(model, [0, 1]), **CLOSE
    )
    assert model.query("A0")["a"] == 0.0
    assert model.log_potentials(np.array([[0, 0], [1, 0], [1, 2]], dtype=np.uint16)).tolist() == [
        -np.inf,
        1.0,
        -np.inf,
    ]


def test_demands_that_contradict_each_other_leave_nothing():
    model = model_of(domain_of([2]), [([(0, 0, True)], np.inf), ([(0, 1, True)], np.inf)])
    with pytest.raises(ImpossibleEvidence):
        model.query("A0")


def test_queries_need_distinct_known_variables_and_a_known_method():
    model = random_model(np.random.default_rng(0), 3)
    with pytest.raises(SettingError, match="twice"):
        model.query(["A0", "A0"])
    with pytest.raises(SettingError, match="name one or more"):
        model.query([])
    with pytest.raises(SettingError, match="no method 'magic'"):
        model.query("A0", method="magic")


def test_a_joint_table_too_long_to_enumerate_is_refused():
    model = model_of(domain_of([2] * 30), [([(0, 0, True)], 1.0)])
    with pytest.raises(TooLarge, match="fewer variables"):
        model.query(model.domain.names)


def test_auto_falls_to_gibbs_where_exact_does_not_fit():
    pytest.importorskip("unless.inference.gibbs")
    model = complete_model(np.random.default_rng(0), 22)
    assert model.query("A0", {"A1": "a"}, max_memory="64 MB", random_state=0).method == "gibbs"
