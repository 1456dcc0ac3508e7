import numpy as np
import pytest

from inference.models import domain_of, grid_model, model_of, random_evidence, random_model
from twins import brute_force
from unless.errors import ImpossibleEvidence, NotConverged, SettingError, TooLarge
from unless.inference.gibbs import GibbsEngine

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
        held = coverage(
            model, list(GibbsEngine(model, random_state=seed, n_draws=2_000).marginals({}).values())
        )
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
    answer = GibbsEngine(model, random_state=seed).query(variables, evidence)
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
    runs = [GibbsEngine(model, random_state=seed).query([1, 4], {0: 1}).probabilities for seed in (5, 5, 6)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    generator = np.random.default_rng(5)
    assert np.array_equal(
        GibbsEngine(model, random_state=generator).query([1, 4], {0: 1}).probabilities, runs[0]
    )
    assert np.array_equal(np.random.get_state()[1], state)


def test_evidence_is_clamped_and_known_variables_are_certain():
    model = random_model(np.random.default_rng(4), 7)
    rows = GibbsEngine(model, random_state=0).sample(500, {2: 1, 5: 0})
    assert (rows[:, [2, 5]] == [1, 0]).all()
    assert (rows < model.domain.n_levels).all()
    answer = GibbsEngine(model, random_state=0).query([5, 2], {2: 1, 5: 0})
    assert answer.probabilities[0, 1] == 1
    assert answer.error.max() == 0
    marginals = list(GibbsEngine(model, random_state=0).marginals({2: 1}).values())
    assert marginals[2].probabilities[1] == 1
    half_known = GibbsEngine(model, random_state=0).query([2, 3], {2: 1})
    assert half_known.probabilities[1].sum() == pytest.approx(1)


def test_rows_follow_the_model():
    rng = np.random.default_rng(8)
    model = random_model(rng, 5, max_levels=3)
    rows = GibbsEngine(model, random_state=1).sample(20_000, {})
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
        rows = GibbsEngine(model, random_state=seed).sample(200, {})
        assert np.isfinite(brute_force.log_potentials(model)[tuple(rows.T.astype(int))]).all()


def test_a_start_is_found_where_nearly_all_states_are_impossible():
    # A0 = A1 = ... = A11 by pairs, and A0 = b: one state in 4,096.
    pairs = [([(v, 0, True), (v + 1, 1, True)], -INF) for v in range(11)]
    pairs += [([(v, 1, True), (v + 1, 0, True)], -INF) for v in range(11)]
    model = model_of(domain_of([2] * 12), [*pairs, ([(0, 1, True)], INF)])
    assert GibbsEngine(model, random_state=0).sample(5, {}).all()


def test_a_feature_of_infinite_weight_must_hold():
    weighted = [([(0, 1, False), (1, 0, True)], INF), ([(0, 0, True)], 0.7), ([(2, 1, True)], -0.3)]
    model = model_of(domain_of([3, 2, 2]), weighted)
    answer = GibbsEngine(model, random_state=0).query([0, 1], {})
    assert np.abs(answer.probabilities - brute_force.joint(model, [0, 1])).max() < 0.02
    assert answer.probabilities[:, 1].max() == answer.probabilities[1].max() == 0


def test_evidence_of_probability_zero_is_said():
    model = model_of(domain_of([2, 2]), [([(0, 1, True), (1, 1, True)], -INF)])
    with pytest.raises(ImpossibleEvidence, match="No state of positive probability"):
        GibbsEngine(model, random_state=0).query([0], {0: 1, 1: 1})
    with pytest.raises(ImpossibleEvidence, match="No state of positive probability"):
        GibbsEngine(model, random_state=0).sample(1, {0: 1, 1: 1})


@pytest.mark.parametrize("setting", [{"n_chains": 0}, {"n_draws": 10}, {"burn_in": -1}])
def test_settings_out_of_range_are_refused(setting):
    model = random_model(np.random.default_rng(0), 3)
    with pytest.raises(SettingError, match=next(iter(setting))):
        GibbsEngine(model, **setting).query([0], {})


def equal(a, b, n_levels, weight):
    return [([(a, level, True), (b, level, True)], weight) for level in range(n_levels)]


def is_within_its_errors(answer, truth):
    return (np.abs(answer.probabilities - truth) <= 5 * answer.error + 1e-6).all()


@pytest.mark.parametrize("weight", [20.0, 50.0, INF])
@pytest.mark.parametrize("seed", range(5))
def test_modes_that_no_single_change_connects_are_joined(weight, seed):
    # Equal by two heavy features, or because all else is forbidden.
    forbidden = [([(0, i, True), (1, 1 - i, True)], -INF) for i in range(2)]
    model = model_of(domain_of([2, 2]), forbidden if weight == INF else equal(0, 1, 2, weight))
    answer = GibbsEngine(model, random_state=seed).query([0], {})
    assert is_within_its_errors(answer, [0.5, 0.5])
    assert 0 < answer.error.max() < 0.03
    assert answer.details["n_levels"] > 1
    assert answer.details["n_arrivals"] >= 1_000
    assert "tempered" in answer.details["report"]
    rows = GibbsEngine(model, random_state=seed).sample(200, {})
    assert 60 < rows[:, 0].sum() < 140
    assert (rows[:, 0] == rows[:, 1]).all()


@pytest.mark.parametrize("seed", range(3))
def test_modes_of_unequal_shares_are_within_their_errors(seed):
    shares = np.array([0.9, 0.09, 0.01])
    weighted = [one for v in range(3) for one in equal(v, v + 1, 3, 30.0)]
    weighted += [([(0, level, True)], float(np.log(share))) for level, share in enumerate(shares)]
    weighted += equal(3, 4, 2, 0.5)
    model = model_of(domain_of([3, 3, 3, 3, 2]), weighted)
    evidence = {4: 1}
    joint = GibbsEngine(model, random_state=seed).query([1, 3], evidence)
    assert is_within_its_errors(joint, brute_force.joint(model, [1, 3], evidence))
    for variable, answer in enumerate(
        list(GibbsEngine(model, random_state=seed).marginals(evidence).values())
    ):
        assert is_within_its_errors(answer, brute_force.joint(model, [variable], evidence))


def test_potentials_too_large_for_numbers_are_tempered_all_the_same():
    # Both modes have log potentials above 1,000.
    weighted = [one for a in range(8) for b in range(a) for one in equal(a, b, 2, 39.0)]
    model = model_of(domain_of([2] * 8), [*weighted, ([(0, 1, True)], -1.0)])
    answer = GibbsEngine(model, random_state=0).query([3], {})
    assert is_within_its_errors(answer, brute_force.joint(model, [3]))


@pytest.mark.parametrize("seed", range(4))
def test_a_small_mode_that_chains_leave_but_seldom_enter_is_seen(seed):
    # Chains leave it after some hundred sweeps, and would find it once in some ten thousand.
    weighted = [one for v in range(3) for one in equal(v, v + 1, 2, 7.0)]
    weighted += [([(v, 1, True)], float(np.log(0.006) / 4)) for v in range(4)]
    model = model_of(domain_of([2] * 4), weighted)
    answer = GibbsEngine(model, random_state=seed).query([0, 3], {})
    assert is_within_its_errors(answer, brute_force.joint(model, [0, 3]))


@pytest.mark.parametrize("seed", range(3))
def test_what_moves_slowly_elsewhere_is_looked_at_too(seed):
    # A ring that cannot please all its links: its broken link wanders, and one variable alone looks settled.
    ring = [([(v, x, True), ((v + 1) % 5, 1 - x, True)], 4.0) for v in range(5) for x in range(2)]
    model = model_of(domain_of([2] * 7), ring + equal(5, 6, 2, 12.0) + equal(0, 5, 2, 3.0))
    for variable in (1, 2):
        answer = GibbsEngine(model, random_state=seed).query([variable], {})
        assert is_within_its_errors(answer, brute_force.joint(model, [variable]))


def test_a_variable_apart_from_the_modes_needs_no_tempering():
    model = model_of(domain_of([2, 2, 3, 2]), [*equal(0, 1, 2, 30.0), ([(2, 0, True), (3, 1, True)], 0.8)])
    answers = list(GibbsEngine(model, random_state=0).marginals({}).values())
    assert [answer.details["n_levels"] > 1 for answer in answers] == [True, True, False, False]
    assert GibbsEngine(model, random_state=0).query([2, 3], {}).details["n_levels"] == 1
    assert GibbsEngine(model, random_state=0).query([0], {1: 0}).probabilities[0] > 0.999


def test_a_mode_that_tempering_cannot_find_again_is_an_error():
    # One state of 2^26 has most of the mass: the feature leads there, and chance never does.
    deep = [([(v, 1, True) for v in range(26)], 26 * float(np.log(2)) + 1)]
    model = model_of(domain_of([2] * 26), deep)
    for seed in range(2):
        with pytest.raises(NotConverged, match=r"did not converge: .* ask with method='exact'"):
            GibbsEngine(model, random_state=seed, n_draws=300, burn_in=100).query([0], {})
    with pytest.raises(NotConverged, match="did not converge"):
        GibbsEngine(model, random_state=0).sample(10, {})


def test_what_is_constant_is_answered():
    fixed = [([(0, 1, True)], 60.0), ([(1, 2, True)], INF), ([(2, 0, True), (3, 1, True)], 1.0)]
    model = model_of(domain_of([2, 3, 2, 2]), fixed)
    answers = list(GibbsEngine(model, random_state=0).marginals({}).values())
    assert [answer.probabilities.max() for answer in answers[:2]] == [pytest.approx(1), pytest.approx(1)]
    assert all(answer.error.max() < 0.01 for answer in answers)
    assert all(answer.details["n_levels"] == 1 for answer in answers)


def test_tempered_answers_follow_from_the_random_state_alone(monkeypatch):
    model = model_of(domain_of([3, 3, 2]), [*equal(0, 1, 3, 15.0), ([(2, 0, True), (1, 1, True)], 0.5)])
    whole = GibbsEngine(model, random_state=5).query([0, 2], {})
    rows = GibbsEngine(model, random_state=5).sample(50, {})
    assert whole.details["n_levels"] > 1
    monkeypatch.setattr("unless.inference.chains._AT_ONCE", 3_000)
    again = GibbsEngine(model, random_state=5).query([0, 2], {})
    assert again.probabilities.tobytes() == whole.probabilities.tobytes()
    assert again.error.tobytes() == whole.error.tobytes()
    assert GibbsEngine(model, random_state=5).sample(50, {}).tobytes() == rows.tobytes()


def test_tempering_that_does_not_fit_into_memory_is_refused(monkeypatch):
    monkeypatch.setattr("unless.inference.tempering.parse_memory", lambda _: 20_000)
    model = model_of(domain_of([2] * 40), [one for v in range(39) for one in equal(v, v + 1, 2, 20.0)])
    with pytest.raises(TooLarge, match="tempering them needs about"):
        GibbsEngine(model, random_state=0).sample(5, {})


def test_a_wide_model_is_sampled_at_the_cost_of_its_features():
    model = grid_model(np.random.default_rng(0), 20, 20)
    answers = list(GibbsEngine(model, random_state=0, n_draws=500, burn_in=100).marginals({}).values())
    assert len(answers) == 400
    assert all(answer.error.max() < 0.05 for answer in answers)
