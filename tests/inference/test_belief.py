import numpy as np
import pytest

from inference.models import domain_of, grid_model, model_of, random_evidence, random_model
from twins import brute_force
from unless.errors import ImpossibleEvidence, NotConverged, SettingError, TooLarge
from unless.inference import belief
from unless.inference.belief import BeliefEngine

INF = float("inf")


def random_tree(rng, n_variables, zeros=0.0):
    """Draw a model whose scopes form a tree: pairs and triples that share one variable with the rest.

    Within a scope, features of all its parts, negative conditions among them.
    """
    n_levels = rng.integers(2, 4, n_variables)
    weighted, placed = [([(0, 0, True)], float(rng.standard_normal()))], 1
    while placed < n_variables:
        fresh = min(int(rng.integers(1, 3)), n_variables - placed)
        scope = [int(rng.integers(placed)), *range(placed, placed + fresh)]
        placed += fresh
        # The first feature is of the whole scope: without it, the pairs of a triple would be a loop.
        for size in (len(scope), *rng.integers(1, len(scope) + 1, size=6)):
            inside = rng.choice(scope, int(size), replace=False)
            literals = [(int(v), int(rng.integers(n_levels[v])), bool(rng.random() < 0.6)) for v in inside]
            impossible = rng.random() < zeros and any((level == 0) != equal for _, level, equal in literals)
            weighted.append((literals, -INF if impossible else float(2 * rng.standard_normal())))
    return model_of(domain_of(n_levels), weighted)


@pytest.mark.parametrize("seed", range(60))
def test_exact_on_trees(seed):
    rng = np.random.default_rng(seed)
    model = random_tree(rng, int(rng.integers(2, 11)), zeros=0.0 if seed % 2 else 0.15)
    evidence = dict.fromkeys(random_evidence(rng, model.domain, 0.2), 0)
    answers = list(BeliefEngine(model).marginals(evidence).values())
    for variable, answer in enumerate(answers):
        truth = brute_force.joint(model, [variable], evidence)
        assert answer.probabilities == pytest.approx(truth, abs=1e-9)
        assert answer.details["is_tree"]
        assert answer.details["is_converged"]
        assert answer.method == "belief"
        assert answer.error is None


@pytest.mark.parametrize("seed", range(10))
def test_joint_tables_are_exact_on_trees(seed):
    rng = np.random.default_rng(100 + seed)
    model = random_tree(rng, 7, zeros=0.1)
    variables = rng.choice(7, 3, replace=False).tolist()
    evidence = {int(rng.integers(7)): 0}
    answer = BeliefEngine(model).query(variables, evidence)
    assert answer.probabilities == pytest.approx(brute_force.joint(model, variables, evidence), abs=1e-9)
    assert answer.details["is_tree"]
    assert answer.names == tuple(f"A{variable}" for variable in variables)


def test_many_features_of_one_scope_are_one_factor():
    # One by one, these four features would be four factors and three loops.
    weighted = [([(0, i, True), (1, j, True)], float(3 * i - 2 * j)) for i, j in np.ndindex(2, 2)]
    model = model_of(domain_of([2, 2]), weighted)
    answer = BeliefEngine(model).query([0], {})
    assert answer.details["is_tree"]
    assert answer.probabilities == pytest.approx(brute_force.joint(model, [0]), abs=1e-12)


def test_loops_are_said_and_weak_ones_nearly_right():
    model = grid_model(np.random.default_rng(0), 3, 4, scale=0.3)
    for variable, answer in enumerate(list(BeliefEngine(model).marginals({}).values())):
        assert not answer.details["is_tree"]
        assert answer.details["is_converged"]
        assert "approximate" in answer.details["report"]
        assert np.abs(answer.probabilities - brute_force.joint(model, [variable])).max() < 0.01


def test_a_run_that_does_not_converge_is_an_error_and_no_answer():
    model = grid_model(np.random.default_rng(1), 4, 4, scale=3)
    with pytest.raises(
        NotConverged, match=r"after 2 iterations a message still changes by .* method='gibbs'"
    ):
        BeliefEngine(model, max_iterations=2).query([0], {})
    with pytest.raises(NotConverged, match="did not converge"):
        BeliefEngine(model, max_iterations=2).marginals({})


def test_evidence_cuts_loops():
    weighted = [
        ([(a, i, True), (b, j, True)], float(i + 2 * j - a))
        for a, b in [(0, 1), (1, 2), (0, 2)]
        for i, j in np.ndindex(2, 2)
    ]
    model = model_of(domain_of([2, 2, 2]), weighted)
    assert not BeliefEngine(model).query([1], {}).details["is_tree"]
    given = BeliefEngine(model).query([1], {0: 1})
    assert given.details["is_tree"]
    assert given.probabilities == pytest.approx(brute_force.joint(model, [1], {0: 1}), abs=1e-12)
    assert BeliefEngine(model).query([0], {0: 1}).probabilities.tolist() == [0, 1]


def test_features_that_must_hold_hold():
    model = model_of(domain_of([3, 2]), [([(0, 1, False), (1, 0, True)], INF), ([(0, 0, True)], 0.7)])
    assert BeliefEngine(model).query([0], {}).probabilities == pytest.approx(
        brute_force.joint(model, [0]), abs=1e-12
    )


def test_impossible_evidence_is_said():
    model = model_of(domain_of([2, 2, 2]), [([(0, 1, True), (1, 1, True)], -INF)])
    with pytest.raises(ImpossibleEvidence, match="probability zero"):
        BeliefEngine(model).query([2], {0: 1, 1: 1})
    hidden = model_of(
        domain_of([2, 2, 2]),
        [([(0, 1, True), (1, i, True), (2, j, True)], -INF) for i, j in np.ndindex(2, 2)],
    )
    with pytest.raises(ImpossibleEvidence, match="A0 = b"):
        BeliefEngine(hidden).query([1], {0: 1})


def test_tables_too_wide_are_refused_with_the_estimate(monkeypatch):
    model = model_of(domain_of([2] * 30), [([(v, 0, True) for v in range(30)], 1.0)])
    with pytest.raises(TooLarge, match="1,073,741,824 cells"):
        BeliefEngine(model).query([0], {})
    assert BeliefEngine(model).query([0], {1: 1}).probabilities == pytest.approx([0.5, 0.5])
    monkeypatch.setattr(belief, "MAX_RUNS", 3)
    with pytest.raises(TooLarge, match="4 runs"):
        BeliefEngine(model).query([0, 1, 2], {3: 1})


@pytest.mark.parametrize("setting", [{"damping": 1.0}, {"damping": -0.1}, {"max_iterations": 0}])
def test_settings_out_of_range_are_refused(setting):
    model = random_model(np.random.default_rng(0), 3)
    with pytest.raises(SettingError, match=next(iter(setting))):
        BeliefEngine(model, **setting).query([0], {})
