"""The referee on tables whose law is known: gates found exactly, none invented, nothing from nothing."""

from itertools import combinations

import numpy as np
import pytest

import unless
from studies.truth import laws
from unless.referee.verdicts import gate_confidence, link_confidences, listed


def said_of(data, **wanted):
    return unless.explain(unless.Graph(data.domain, list(combinations(data.names, 2))), data, **wanted)


def gates_of(said):
    """Return the gates that are said: pair and levels."""
    return {(one.pair, tuple(one.gate.linked[0].conditions)) for one in said.of_kind("gated")}


def true_gates(law):
    return {(gate.pair, tuple(gate.where)) for gate in law.gates}


def findings(said):
    return {one.pair for one in said.findings}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_one_variable_gates_are_found_exactly(seed):
    rng = np.random.default_rng([seed, 100])
    law = laws.gated(rng)
    said = said_of(law.sample(10_000, rng))
    assert gates_of(said) == true_gates(law)


@pytest.mark.parametrize("n", [500, 5_000])
def test_plain_links_have_no_gate_and_few_are_false(n):
    true = []
    for seed in range(1, 13):
        rng = np.random.default_rng([seed, 200])
        law = laws.pairwise(rng)
        said = said_of(law.sample(n, rng))
        assert not said.of_kind("gated")
        true += [law.linked_rows(*one.pair, law.fresh_rows(200)).any() for one in said.findings]
    assert len(true) > 60
    assert np.mean(true) >= 0.95


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("n", [200, 2_000])
def test_independent_columns_say_nothing(seed, n):
    rng = np.random.default_rng([seed, 300])
    assert said_of(laws.independent(6, range(2, 5), rng).sample(n, rng)).findings == ()


def test_a_gate_of_two_variables_is_found_exactly():
    rng = np.random.default_rng(400)
    n = 10_000
    g, h, u = rng.integers(0, 3, n), rng.integers(0, 2, n), rng.integers(0, 2, n)
    a = rng.integers(0, 2, n)
    is_open = np.isin(g, (0, 2)) & (h == 1)
    b = np.where(is_open & (rng.random(n) < 0.6), a, rng.integers(0, 2, n))
    said = said_of(unless.read({"a": a, "b": b, "g": g, "h": h, "u": u}))
    assert gates_of(said) == {(("a", "b"), (("g", ("0", "2")), ("h", ("1",))))}
    assert said[0].sentence.startswith("a and b are linked only when g in {0, 2} and h = 1 (")


def test_gates_of_two_variables_of_a_drawn_law():
    rng = np.random.default_rng([2, 500])
    law = laws.gated_by_two(rng)
    said = said_of(law.sample(10_000, rng))
    assert gates_of(said) == true_gates(law)


def test_a_chain_links_neighbours_only():
    rng = np.random.default_rng(600)
    law = laws.chain(rng, n_columns=8)
    said = said_of(law.sample(3_000, rng))
    for one in said.findings:
        assert law.linked_rows(*one.pair, law.fresh_rows(200)).any()
    assert len(said.findings) >= 5


def test_confidences_follow_p_and_stay_below_one():
    p = [1e-80, 1e-12, 1e-6, 1e-3, 0.01, 0.04, *np.linspace(0.05, 1, 60)]
    found = link_confidences(p)
    assert (np.diff(found) <= 1e-12).all()
    assert found[0] > 0.999
    assert found[2] > 0.95
    assert found[6] < 0.2
    assert link_confidences([]).tolist() == []
    # The same p is surer among links than among pairs without any.
    assert link_confidences([1e-3, *[1e-9] * 9])[0] > link_confidences([1e-3, *[0.5] * 9])[0]


def test_gates_are_surer_by_their_margin():
    values = [gate_confidence(margin) for margin in (-1e9, -10, 0, 2, 10, 1e9)]
    assert values == sorted(values)
    assert values[2] == pytest.approx(0.985 / 2)
    assert 0 <= values[0] < 0.01
    assert values[-1] == pytest.approx(0.985)


def test_a_list_holds_as_many_as_the_rate_allows():
    confidences = [0.5, 0.99, 0.9, 0.999, 0.7]
    assert listed(confidences, 1) == [True] * 5
    assert listed(confidences, 0.05) == [False, True, True, True, False]
    assert listed(confidences, 0.005) == [False, False, False, True, False]
    # However sure the others are, none that is likely false is listed.
    assert listed([*[1.0] * 99, 0.5], 0.05) == [True] * 99 + [False]
    assert listed([], 0.05) == []
