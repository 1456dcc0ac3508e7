"""GSSL: the law of generation, its literal twin, working sets against plain fits, halving, settings."""

import re
from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import unless
from strategies import datasets
from twins.naive_gssl import naive_gssl
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.errors import DataError, SettingError, TooLarge
from unless.inference.pseudo_likelihood import Conditionals
from unless.kernels.feature_search import propose
from unless.learners.base import Run
from unless.learners.feature_search import conjunctions
from unless.learners.feature_search.conjunctions import (
    NOTHING,
    Generated,
    Weighed,
    WorkingSets,
    generate_features,
    successive_halving,
)
from unless.learners.gssl import GSSL, default_draws
from unless.structures.graph import FeatureSet

PLENTY = Run(max_memory=2**30)
L1 = unless.Laplace(2)


def literals(generated: Generated, features):
    arrays = generated.spelled(np.asarray(features, dtype=np.int64))
    return [frozenset((v, level) for v, level, _ in literal) for literal in arrays.literals()]


def words_of(seed):
    return np.random.default_rng(seed).integers(0, 2**64, size=4, dtype=np.uint64)


def copies(n_variables=6, n_rows=400, n_levels=2, seed=0, noise=0.25):
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, n_levels, n_rows)]
    while len(columns) < n_variables:
        columns.append(np.where(rng.random(n_rows) < noise, rng.integers(0, n_levels, n_rows), columns[-1]))
    levels = tuple(f"l{code}" for code in range(n_levels))
    domain = Domain(tuple(Variable(f"v{place:02}", levels) for place in range(n_variables)))
    return Dataset.from_codes(domain, np.column_stack(columns))


def test_from_a_frozen_set_picks_sizes_and_variables_follow_the_law():
    # Three variables: two rows, a pair and a unit.
    kept = np.array([[0b111], [0b111], [0b101], [0b010]], dtype=np.uint64)
    state, members, drawn = words_of(5), np.empty(3, np.int64), np.empty(1, np.uint64)
    seen = Counter()
    for _ in range(100_000):
        picked, n_kept = propose(state, 4, kept, members, drawn)
        assert n_kept == int(drawn[0]).bit_count()
        assert sorted(members[:n_kept]) == [v for v in range(3) if int(drawn[0]) >> v & 1]
        seen[picked, int(drawn[0])] += 1
    chances = {(2, 0b001): 1 / 8, (2, 0b100): 1 / 8, (3, 0): 1 / 4}
    for row in (0, 1):
        # One or two are dropped, each with chance a half; whichever, with chance a third.
        chances |= {(row, mask): 1 / 4 / 2 / 3 for mask in (0b001, 0b010, 0b100, 0b011, 0b101, 0b110)}
    assert set(seen) == set(chances)
    assert (
        chisquare([seen[one] for one in chances], [100_000 * chances[one] for one in chances]).pvalue > 1e-3
    )
    picks = Counter(picked for picked, _ in seen.elements())
    assert chisquare([picks[one] for one in range(4)]).pvalue > 1e-3


@pytest.mark.parametrize("n_variables", [3, 7, 70])
def test_the_number_dropped_is_uniform_and_so_are_the_variables(n_variables):
    kept = np.packbits(np.arange(128) < n_variables, bitorder="little").view(np.uint64)[None]
    state, members, drawn = words_of(1), np.empty(n_variables, np.int64), np.empty(2, np.uint64)
    sizes, held = np.zeros(n_variables, int), np.zeros(n_variables, int)
    for _ in range(20_000):
        _, n_kept = propose(state, 1, kept, members, drawn)
        sizes[n_kept] += 1
        held[members[:n_kept]] += 1
    assert chisquare(sizes[1:]).pvalue > 1e-3
    # Each variable is kept as often as any other: half of the time.
    assert np.abs(held / 20_000 - 0.5).max() < 0.02


@settings(max_examples=150, deadline=None)
@given(datasets(), st.integers(0, 2**32), st.sampled_from([1, 7, 300, 3000]))
def test_generated_features_and_their_counts_are_those_of_the_literal_twin(data, seed, n_draws):
    with pytest.MonkeyPatch.context() as patch:
        # Small steps, so that the table grows and kernels are called again.
        patch.setattr(conjunctions, "_LEAST_CAPACITY", 4)
        patch.setattr(conjunctions, "_DRAWS_AT_ONCE", 100)
        found = generate_features(data, [n_draws], seed, PLENTY)
    twins, counts = naive_gssl(found.data.rows, words_of(seed), n_draws)
    first = data.n_distinct
    assert literals(found, range(first, first + len(twins))) == twins
    assert found.counts[n_draws][first:].tolist() == [counts[twin] for twin in twins]
    rows = literals(found, range(first))
    said = [
        min(int(count), 2**31 - 1) if row else 0 for row, count in zip(rows, found.data.counts, strict=True)
    ]
    assert found.counts[n_draws][:first].tolist() == said
    units = {(v, int(level)) for v, column in enumerate(found.data.rows.T) for level in column}
    assert {literal for one in literals(found, found.units) for literal in one} == units
    assert len(found.units) == len(units)
    for prune in (1, 2, 5):
        wanted = {twin for twin in twins if counts[twin] >= prune} | {frozenset([unit]) for unit in units}
        wanted |= {row for row, count in zip(rows, said, strict=True) if count >= prune}
        assert sorted(map(sorted, literals(found, found.chosen(n_draws, prune)))) == sorted(
            map(sorted, wanted)
        )


def test_more_than_64_variables_equal_the_literal_twin():
    data = copies(131, 40, 3)
    found = generate_features(data, [4000], 3, PLENTY)
    twins, counts = naive_gssl(found.data.rows, words_of(3), 4000)
    assert literals(found, range(data.n_distinct, data.n_distinct + len(twins))) == twins
    assert found.counts[4000][data.n_distinct :].tolist() == [counts[twin] for twin in twins]


def test_fewer_draws_are_the_beginning_of_more():
    data = copies()
    both = generate_features(data, [5000, 200], 0, PLENTY)
    few = generate_features(data, [200], 0, PLENTY)
    assert np.array_equal(both.counts[200], few.counts[200])
    assert literals(both, both.chosen(200, 2)) == literals(few, few.chosen(200, 2))


def test_sets_are_nested_in_draws_and_in_pruning():
    found = generate_features(copies(), [300, 3000], 0, PLENTY)
    sets = [set(found.chosen(*one).tolist()) for one in ((300, 9), (300, 2), (3000, 2), (3000, 1))]
    assert all(small <= large for small, large in pairwise(sets))


def test_twenty_draws_for_each_conjunction_meet_them_all():
    rows = np.array([[a, b, c] for a in range(2) for b in range(2) for c in range(2)])
    domain = Domain(tuple(Variable(name, ("0", "1")) for name in "abc"))
    data = Dataset.from_codes(domain, rows)
    assert default_draws(data) == 20 * 26
    found = generate_features(data, [520], 0, PLENTY)
    wanted = sum(2**size * len(list(combinations("abc", size))) for size in (1, 2, 3))
    assert len(found.chosen(520, 1)) == wanted


@settings(max_examples=60, deadline=None)
@given(datasets(), st.integers(0, 2**32))
def test_slopes_and_curvatures_are_those_of_the_laid_out_features(data, seed):
    found = generate_features(data, [400], seed, PLENTY)
    everything = found.chosen(400, 1)
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=len(everything)) * (rng.random(len(everything)) < 0.4)
    laid_out = Conditionals.of(found.spelled(everything), found.data)
    _, gradient = laid_out.value_and_gradient(weights, keep=True)
    moving = weights != 0
    here = Weighed(everything[moving], weights[moving])
    working = WorkingSets(found)
    slopes, bends = working.slopes(everything, *working.residuals(here))
    scale = 1e-9 * data.n_rows
    assert slopes == pytest.approx(gradient, abs=scale)
    assert bends == pytest.approx(laid_out.diagonal(), abs=scale)


@settings(max_examples=25, deadline=None)
@given(datasets(), st.integers(1, 9))
def test_residuals_of_a_few_rows_at_a_time_are_the_same_to_the_last_bit(data, at_once):
    found = generate_features(data, [200], 0, PLENTY)
    everything = found.chosen(200, 1)
    here = Weighed(everything, np.random.default_rng(0).normal(size=len(everything)))
    whole = WorkingSets(found).residuals(here)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conjunctions, "_NUMBERS_AT_ONCE", at_once)
        patch.setattr(conjunctions, "_WORK_AT_ONCE", 1)
        parts = WorkingSets(found).residuals(here)
    assert [one.tobytes() for one in parts] == [one.tobytes() for one in whole]


@settings(max_examples=25, deadline=None)
@given(datasets(max_rows=80, kinds=("independent", "copies", "gated", "sparse")), st.sampled_from([1.0, 4.0]))
def test_working_sets_reach_the_optimum_of_all_features(data, l1):
    prior = unless.Gaussian(1.0) + unless.Laplace(l1)
    found = generate_features(data, [300], 0, PLENTY)
    members = found.chosen(300, 1)
    features = FeatureSet.from_arrays(found.data.domain, found.spelled(members))
    plain = unless.fit_weights(features, found.data, prior)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unless.learners.feature_search.conjunctions._LEAST_GROWTH", 5)
        working = WorkingSets(found)
        here, _ = working.converge(members, prior, working.start(prior), 1e-6, 5000)
    loss = -working.log_likelihood(here, found.data)
    value = loss + l1 * np.abs(here.weights).sum() + 0.5 * (here.weights**2).sum()
    assert value == pytest.approx(plain.fit_report.objective, abs=1e-4, rel=1e-9)


def test_nothing_to_start_from_is_as_good_a_start():
    data, prior = copies(), unless.Gaussian(1.0) + L1
    found = generate_features(data, [1000], 0, PLENTY)
    working, members = WorkingSets(found), found.chosen(1000, 2)
    from_units, _ = working.converge(members, prior, working.start(prior), 1e-6, 5000)
    from_nothing, _ = working.converge(members, prior, NOTHING, 1e-6, 5000)
    assert np.array_equal(from_units.features, from_nothing.features)
    assert from_units.weights == pytest.approx(from_nothing.weights, abs=1e-5)


def test_halving_spends_more_on_the_better_and_returns_the_best():
    spent = Counter()

    def advance(setting, rung):
        spent[setting] += 1
        return -abs(setting - 20) + (0.5 if setting == 20 and rung else 0)

    best, scores, rungs = successive_halving(40, advance)
    assert best == 20
    assert sorted(Counter(spent.values()).items()) == [(1, 30), (2, 7), (3, 3)]
    assert rungs[20] == 2
    assert scores[0] == -20
    assert successive_halving(5, lambda setting, rung: 0.0)[0] == 0


def fitted(data, **changes):
    chosen = {"prune": (1, 3), "prior": (unless.Laplace(8), L1), "n_draws": (300, 2000), **changes}
    return GSSL(**chosen).fit(data)


def told(est):
    weights = est.network_.weights.tolist()
    return {feature.conditions: weight for feature, weight in zip(est.structure_, weights, strict=True)}


def test_what_predicts_unseen_rows_best_is_kept_and_all_is_told():
    est = fitted(copies())
    assert len(est.tried_) == 8
    assert {(one["n_draws"], one["prune"]) for one in est.tried_} == {
        (300, 1),
        (300, 3),
        (2000, 1),
        (2000, 3),
    }
    assert max(one["rung"] for one in est.tried_) == 1
    assert est.structure_ == est.network_.features
    assert est.network_.fit_report.converged
    assert (est.network_.weights != 0).all()
    assert est.structure_.graph().has_edge("v00", "v01")
    assert all(one["pseudo_log_likelihood"] < 0 for one in est.tried_)


def test_a_single_setting_learns_from_all_rows_and_is_not_judged():
    data = copies()
    est = GSSL(500, prune=2, prior=L1).fit(data)
    assert est.tried_ == []
    found = generate_features(data, [500], 0, PLENTY)
    features = FeatureSet.from_arrays(data.domain, found.spelled(found.chosen(500, 2)))
    plain = unless.fit_weights(features, data, L1)
    report = est.network_.fit_report
    assert report.objective == pytest.approx(plain.fit_report.objective, rel=1e-5)


def test_a_table_to_judge_by_is_never_learned_from():
    data, other = copies(seed=1), copies(seed=2)
    est = GSSL(500, prune=(1, 4), prior=L1).fit(data, validation=other)
    best = max(est.tried_, key=lambda one: one["pseudo_log_likelihood"])
    alone = GSSL(500, prune=best["prune"], prior=L1).fit(data)
    wanted = alone.network_.pseudo_log_likelihood(data).value
    assert est.network_.pseudo_log_likelihood(data).value == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("n_levels", [2, 4])
def test_the_order_of_rows_and_columns_and_threads_have_no_say(n_levels):
    data = copies(7, 300, n_levels)
    est = fitted(data)
    names = list(data.names)
    np.random.default_rng(0).shuffle(names)
    moved = fitted(data.select(names))
    assert told(moved) == told(est)
    assert moved.tried_ == est.tried_
    rows = np.repeat(data.rows, data.counts, axis=0)
    shuffled = Dataset.from_codes(data.domain, np.random.default_rng(1).permutation(rows))
    for other in (fitted(shuffled), fitted(data, n_jobs=2)):
        assert told(other) == told(est)
        assert other.structure_ == est.structure_


def test_another_seed_draws_other_features():
    data = copies(10)
    assert told(GSSL(300, prune=1, prior=L1).fit(data)) != told(
        GSSL(300, prune=1, prior=L1, random_state=1).fit(data)
    )


def test_constant_columns_and_single_rows_are_linked_to_nothing():
    data = copies(4)
    still = Domain((*data.domain.variables, Variable("one", ("always",)), Variable("two", ("x", "y"))))
    rows = np.column_stack([data.rows, np.zeros((data.n_distinct, 2))])
    est = fitted(Dataset.from_codes(still, rows, data.counts))
    assert not any({"one", "two"} & set(edge) for edge in est.structure_.graph().edges)
    one = Dataset.from_codes(data.domain, data.rows[:1])
    for table in (one, Dataset.from_codes(data.domain, data.rows[:1], [50])):
        assert not GSSL(prune=2, prior=L1).fit(table).structure_.graph().edges
    nothing = Dataset.from_codes(Domain((Variable("one", ("always",)), Variable("two", ("x",)))), [[0, 0]])
    assert len(GSSL(prune=2, prior=L1).fit(nothing).structure_) == 0


def test_two_columns_are_enough():
    est = GSSL(200, prune=2, prior=L1).fit(copies(2))
    assert est.structure_.graph().edges == {("v00", "v01")}


def test_draws_that_do_not_fit_are_left_out_where_others_do():
    data = copies(20)
    est = GSSL((300, 3_000_000), prune=2, prior=L1, max_memory="64 MB").fit(data)
    left_out = [one for one in est.tried_ if one["pseudo_log_likelihood"] is None]
    assert [one["n_draws"] for one in left_out] == [3_000_000]
    with pytest.raises(TooLarge, match=r"3,000,000 draws .* MiB"):
        GSSL(3_000_000, prune=2, prior=L1, max_memory="64 MB").fit(data)


def test_draws_that_leave_no_room_for_weights_are_refused_with_all_that_they_need():
    with pytest.raises(TooLarge) as caught:
        GSSL(500_000, prune=2, prior=L1, max_memory="64 MB").fit(copies(20))
    (need,) = re.findall(r"would need about (.*) MiB, weights included", str(caught.value))
    assert 64 < float(need) < 128


@pytest.mark.parametrize(
    ("chosen", "error", "words"),
    [
        ({"n_draws": 0}, SettingError, "n_draws=0"),
        ({"n_draws": "many"}, SettingError, "'many' must be 'auto'"),
        ({"n_draws": ()}, SettingError, "empty"),
        ({"n_draws": (100, 2.5)}, SettingError, "n_draws"),
        ({"prune": 0}, SettingError, "prune=0"),
        ({"prune": []}, SettingError, "empty"),
        ({"prune": True}, SettingError, "prune"),
        ({"prior": []}, SettingError, "prior"),
        ({"prior": unless.Gaussian(1.0)}, SettingError, "L1"),
        ({"prior": None}, SettingError, "L1"),
        ({"validation": 0}, SettingError, "validation"),
        ({"validation": 0.001}, DataError, "leaves none"),
        ({"refit": 1}, SettingError, "refit"),
        ({"n_jobs": 0}, SettingError, "n_jobs"),
        ({"max_memory": "lots"}, SettingError, "lots"),
    ],
)
def test_bad_settings_get_one_sentence(chosen, error, words):
    with pytest.raises(error, match=words) as caught:
        GSSL(**chosen).fit(copies(4, 40))
    assert "\n" not in str(caught.value)
