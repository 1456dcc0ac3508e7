import numpy as np
import pytest

import brute_force
from inference.models import domain_of, grid_model, model_of, random_evidence, random_model
from unless.errors import ImpossibleEvidence, SettingError
from unless.inference.gibbs import gibbs_marginals, gibbs_query, gibbs_sample

INF = float("inf")


def coverage(model, answers):
    """Tell, for each probability of each marginal, whether its nominal 95 % interval holds the truth."""
    held = []
    for variable, answer in enumerate(answers):
        truth = brute_force.joint(model, [variable])
        inside = np.abs(answer.probabilities - truth) <= 1.96 * answer.error + 1e-12
        # The two probabilities of a binary variable are one fact.
        held += inside[: 1 if len(inside) == 2 else None].tolist()
    return held


def test_nominal_95_percent_intervals_cover_in_92_to_98_percent_of_200_models():
    every, one_each = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n_variables = int(rng.integers(4, 13))
        model = random_model(rng, n_variables, max_levels=4 if n_variables < 9 else 3)
        held = coverage(model, gibbs_marginals(model, {}, random_state=seed, n_draws=2_000))
        every += held
        one_each.append(held[int(rng.integers(len(held)))])
    assert 0.92 <= np.mean(one_each) <= 0.98
    assert 0.93 <= np.mean(every) <= 0.97


@pytest.mark.parametrize("seed", range(10))
def test_joint_tables_given_evidence_are_within_their_errors(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, 6, max_levels=3)
    evidence = random_evidence(rng, model.domain, 0.2)
    variables = rng.choice(6, 3, replace=False).tolist()
    answer = gibbs_query(model, variables, evidence, random_state=seed)
    truth = brute_force.joint(model, variables, evidence)
    assert answer.probabilities.shape == truth.shape
    assert answer.probabilities.sum() == pytest.approx(1)
    assert (np.abs(answer.probabilities - truth) <= 4.5 * answer.error + 1e-9).all()
    assert answer.method == "gibbs"
    assert answer.names == tuple(f"A{variable}" for variable in variables)
    assert answer.evidence == model.domain.decode(evidence)


def test_the_random_state_alone_decides_and_the_global_generator_is_left_alone():
    model = random_model(np.random.default_rng(3), 8)
    state = np.random.get_state()[1].copy()
    runs = [gibbs_query(model, [1, 4], {0: 1}, random_state=seed).probabilities for seed in (5, 5, 6)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    generator = np.random.default_rng(5)
    assert np.array_equal(gibbs_query(model, [1, 4], {0: 1}, random_state=generator).probabilities, runs[0])
    assert np.array_equal(np.random.get_state()[1], state)


def test_evidence_is_clamped_and_known_variables_are_certain():
    model = random_model(np.random.default_rng(4), 7)
    rows = gibbs_sample(model, 500, {2: 1, 5: 0}, random_state=0)
    assert (rows[:, [2, 5]] == [1, 0]).all()
    assert (rows < model.domain.n_levels).all()
    answer = gibbs_query(model, [5, 2], {2: 1, 5: 0}, random_state=0)
    assert answer.probabilities[0, 1] == 1
    assert answer.error.max() == 0
    marginals = gibbs_marginals(model, {2: 1}, random_state=0)
    assert marginals[2].probabilities[1] == 1
    half_known = gibbs_query(model, [2, 3], {2: 1}, random_state=0)
    assert half_known.probabilities[1].sum() == pytest.approx(1)


def test_rows_follow_the_model():
    rng = np.random.default_rng(8)
    model = random_model(rng, 5, max_levels=3)
    rows = gibbs_sample(model, 20_000, {}, random_state=1)
    truth = brute_force.joint(model, range(5))
    counts = np.zeros_like(truth)
    np.add.at(counts, tuple(rows.T.astype(int)), 1)
    assert np.abs(counts / len(rows) - truth).max() < 0.012
    # The order of the rows tells nothing: halves look alike.
    halves = [np.bincount(part[:, 0], minlength=2) / len(part) for part in np.array_split(rows, 2)]
    assert np.abs(halves[0] - halves[1]).max() < 0.03


def test_impossible_states_are_never_drawn():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model = random_model(rng, 8, max_levels=3, zeros=0.2)
        rows = gibbs_sample(model, 200, {}, random_state=seed)
        assert np.isfinite(brute_force.log_potentials(model)[tuple(rows.T.astype(int))]).all()


def test_a_start_is_found_where_nearly_all_states_are_impossible():
    # A0 = A1 = ... = A11 by pairs, and A0 = b: one state in 4,096.
    pairs = [([(v, 0, True), (v + 1, 1, True)], -INF) for v in range(11)]
    pairs += [([(v, 1, True), (v + 1, 0, True)], -INF) for v in range(11)]
    model = model_of(domain_of([2] * 12), [*pairs, ([(0, 1, True)], INF)])
    assert gibbs_sample(model, 5, {}, random_state=0).all()


def test_a_feature_of_infinite_weight_must_hold():
    weighted = [([(0, 1, False), (1, 0, True)], INF), ([(0, 0, True)], 0.7), ([(2, 1, True)], -0.3)]
    model = model_of(domain_of([3, 2, 2]), weighted)
    answer = gibbs_query(model, [0, 1], {}, random_state=0)
    assert np.abs(answer.probabilities - brute_force.joint(model, [0, 1])).max() < 0.02
    assert answer.probabilities[:, 1].max() == answer.probabilities[1].max() == 0


def test_evidence_of_probability_zero_is_said():
    model = model_of(domain_of([2, 2]), [([(0, 1, True), (1, 1, True)], -INF)])
    with pytest.raises(ImpossibleEvidence, match="No state of positive probability"):
        gibbs_query(model, [0], {0: 1, 1: 1}, random_state=0)
    with pytest.raises(ImpossibleEvidence, match="No state of positive probability"):
        gibbs_sample(model, 1, {0: 1, 1: 1}, random_state=0)


@pytest.mark.parametrize("setting", [{"n_chains": 0}, {"n_draws": 10}, {"burn_in": -1}])
def test_settings_out_of_range_are_refused(setting):
    model = random_model(np.random.default_rng(0), 3)
    with pytest.raises(SettingError, match=next(iter(setting))):
        gibbs_query(model, [0], {}, **setting)


def test_chains_that_never_meet_are_said_to_disagree():
    # Two islands that no single change connects.
    model = model_of(domain_of([2, 2]), [([(0, i, True), (1, 1 - i, True)], -INF) for i in range(2)])
    answer = gibbs_query(model, [0], {}, random_state=1)
    assert answer.details["r_hat"] > 1.5
    assert "disagree" in answer.details["report"]


def test_a_wide_model_is_sampled_at_the_cost_of_its_features():
    model = grid_model(np.random.default_rng(0), 20, 20)
    answers = gibbs_marginals(model, {}, random_state=0, n_draws=500, burn_in=100)
    assert len(answers) == 400
    assert all(answer.error.max() < 0.05 for answer in answers)
