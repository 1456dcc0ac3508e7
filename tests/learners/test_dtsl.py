"""DTSL's trees against a literal greedy builder, and what is made of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unless
from strategies import datasets
from twins.naive_trees import as_tuples, naive_features, naive_tree, reordered, without_gains
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.errors import DataError, SettingError, TooLarge
from unless.learners.base import Run
from unless.learners.dtsl import DTSL
from unless.learners.feature_search import trees as growing
from unless.learners.feature_search.trees import GrowthRules, features_of_trees, grow_trees
from unless.structures.graph import Condition, Feature, FeatureSet

ONE = unless.Gaussian(1.0)


@st.composite
def runs(draw):
    """Draw a table and rules of growth for it."""
    data = draw(datasets())
    kappa = draw(st.sampled_from([1.0, 1.0, 0.5, 0.1, 1e-2, 1e-4]))
    min_rows = draw(st.sampled_from([1, 1, 2, 10, 40]))
    return data, GrowthRules(kappa, min_rows, draw(st.sampled_from([None, None, None, 0, 1, 3])))


def small(codes, counts=None, n_levels=None):
    codes = np.array(codes)
    sizes = codes.max(axis=0) + 1 if n_levels is None else n_levels
    domain = Domain(
        tuple(
            Variable(name, tuple(f"l{i}" for i in range(size)))
            for name, size in zip("abcdefgh", sizes, strict=False)
        )
    )
    return Dataset.from_codes(domain, codes, counts)


def as_feature_set(data, found):
    return FeatureSet(data.domain, (Feature(Condition(*said) for said in one) for one in found))


@settings(max_examples=150, deadline=None)
@given(runs())
def test_trees_equal_the_literal_greedy_builder(run):
    data, rules = run
    for tree in grow_trees(data, rules):
        name = data.names[tree.target]
        wanted = naive_tree(data, name, rules.kappa, rules.min_rows, rules.max_depth)
        assert without_gains(as_tuples(data, tree)) == without_gains(wanted)


@settings(max_examples=60, deadline=None)
@given(datasets(max_variables=4, max_rows=20, max_levels=3), st.sampled_from([1, 2]))
def test_tables_so_small_that_gains_are_often_equal_give_the_literal_trees(data, min_rows):
    for tree in grow_trees(data, GrowthRules(1.0, min_rows)):
        wanted = naive_tree(data, data.names[tree.target], 1.0, min_rows)
        assert without_gains(as_tuples(data, tree)) == without_gains(wanted)


@settings(max_examples=40, deadline=None)
@given(runs(), st.sampled_from(["leaves", "pruned"]))
def test_features_are_the_paths_of_the_literal_trees(run, kind):
    data, rules = run
    grown = features_of_trees(data.domain, grow_trees(data, rules), rules.kappa, kind)
    found = naive_features(data, rules.kappa, rules.min_rows, rules.max_depth, kind)
    assert grown == as_feature_set(data, found)


@settings(max_examples=40, deadline=None)
@given(datasets(), st.sampled_from([1e-1, 1e-2, 1e-4, 1e-9]))
def test_a_tree_cut_back_is_the_tree_grown_with_the_smaller_kappa(data, kappa):
    wide = grow_trees(data, GrowthRules(1.0, 1))
    narrow = grow_trees(data, GrowthRules(kappa, 1))
    for kind in ("leaves", "pruned", "nonzero"):
        cut = features_of_trees(data.domain, wide, kappa, kind)
        assert cut == features_of_trees(data.domain, narrow, kappa, kind)


@settings(max_examples=40, deadline=None)
@given(datasets(), st.integers(0, 9))
def test_column_order_threads_and_pauses_change_nothing(data, seed):
    rules = GrowthRules(1.0, 1)
    first = grow_trees(data, rules)
    moved = reordered(data, seed)
    by_name = {moved.names[tree.target]: as_tuples(moved, tree) for tree in grow_trees(moved, rules)}
    assert {data.names[tree.target]: as_tuples(data, tree) for tree in first} == by_name
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growing, "_BUDGET", 1)
        paused = grow_trees(data, rules, Run(n_jobs=2))
    assert [as_tuples(data, tree) for tree in paused] == [as_tuples(data, tree) for tree in first]


def test_gains_are_those_of_smoothed_leaves():
    data = small([[0, 0], [0, 1], [1, 0], [1, 1]], [30, 5, 4, 20])
    tree = grow_trees(data, GrowthRules(0.1, 1))[0]

    def nats(*tallies):
        return sum(n * np.log((n + 1) / (sum(tallies) + 2)) for n in tallies)

    assert tree.gain[0] == pytest.approx(nats(30, 4) + nats(5, 20) - nats(35, 24))


def test_more_rows_than_the_table_of_logs_holds_make_the_same_tree(monkeypatch):
    rng = np.random.default_rng(5)
    data = small(rng.integers(0, 3, (200, 5)), rng.integers(1, 9, 200))
    first = [as_tuples(data, tree) for tree in grow_trees(data, GrowthRules(1.0, 2))]
    monkeypatch.setattr(growing, "_MOST_LOGS", 4)
    assert [as_tuples(data, tree) for tree in grow_trees(data, GrowthRules(1.0, 2))] == first


def test_of_equal_splits_the_first_name_and_level_wins():
    # b and c are copies of a, with their levels turned round in c.
    data = small([[0, 0, 1], [1, 1, 0]], [50, 50])
    for tree, name in zip(grow_trees(data, GrowthRules(0.1)), ("b", "a", "a"), strict=True):
        assert as_tuples(data, tree)[:2] == (name, "l0")


def test_nonzero_features_speak_only_of_levels_that_are_not_the_first():
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 3, (600, 4))
    codes[:, 1] = np.where(rng.random(600) < 0.8, codes[:, 0], codes[:, 1])
    data = small(codes)
    leaves = features_of_trees(data.domain, grow_trees(data, GrowthRules(0.1)), 0.1)
    wanted = {
        Feature(kept)
        for feature in leaves
        if (kept := [said for said in feature if said.equal and said.label != "l0"])
    }
    found = features_of_trees(data.domain, grow_trees(data, GrowthRules(0.1)), 0.1, "nonzero")
    assert set(found) == wanted


def test_constant_columns_and_unused_levels_are_linked_to_nothing():
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, 2, 300), np.zeros(300, dtype=int), np.zeros(300, dtype=int)])
    est = DTSL(0.1, prior=ONE).fit(small(codes, n_levels=(4, 1, 2)))
    assert est.structure_.graph().edges == frozenset()
    assert {feature.scope for feature in est.structure_} == {("a",), ("c",)}


@pytest.mark.parametrize("n_rows", [1, 2, 5])
def test_few_rows_and_two_columns_are_learned_with_one_setting(n_rows):
    codes = ([[0, 0], [1, 1]] * n_rows)[:n_rows]
    est = DTSL(1.0, min_rows=1, prior=ONE).fit(small(codes, None, (2, 2)))
    assert len(est.structure_) >= 4
    assert est.n_tests_ == est.n_distinct_tests_ == 0


def test_thirty_levels_are_no_obstacle():
    codes = np.arange(3000) % 30
    data = small(np.column_stack([codes, (codes * 7 + 1) % 30, np.arange(3000) // 30 % 30]))
    est = DTSL(0.01, prior=unless.Gaussian(1.0)).fit(data)
    assert est.structure_.graph().edges == {("a", "b")}


def test_one_row_cannot_be_split_into_rows_to_learn_from_and_to_judge_by():
    with pytest.raises(DataError, match="rows"):
        DTSL().fit(small([[0, 1]], None, (2, 2)))


def test_kappa_and_prior_are_chosen_by_rows_that_were_not_learned_from():
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 2, (2000, 5))
    codes[:, 1] = np.where(rng.random(2000) < 0.9, codes[:, 0], codes[:, 1])
    data = small(codes)
    est = DTSL((1.0, 1e-3), prior=[unless.Gaussian(0.3), ONE]).fit(data)
    assert [(tried["kappa"], tried["prior"]) for tried in est.tried_] == [
        (1.0, "Gaussian(0.3)"), (1.0, "Gaussian(1)"), (1e-3, "Gaussian(0.3)"), (1e-3, "Gaussian(1)"),
    ]  # fmt: skip
    best = max(est.tried_, key=lambda tried: tried["pseudo_log_likelihood"])
    assert best["kappa"] == 1e-3
    assert est.structure_.graph().edges == {("a", "b")}
    assert est.network_.features == est.structure_


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"kappa": 0}, "kappa=0 "),
        ({"kappa": 1.5}, "kappa=1.5"),
        ({"kappa": float("nan")}, "kappa=nan"),
        ({"kappa": "small"}, "kappa='small'"),
        ({"kappa": [0.1, True]}, "kappa=True"),
        ({"kappa": []}, "empty"),
        ({"prior": []}, "prior"),
        ({"features": "roots"}, "features='roots'"),
        ({"min_rows": 0}, "min_rows=0"),
        ({"min_rows": None}, "min_rows=None"),
        ({"max_depth": -1}, "max_depth=-1"),
        ({"validation": 0.0}, "validation"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_settings_get_one_sentence(chosen, words):
    with pytest.raises(SettingError, match=words) as caught:
        DTSL(**chosen).fit(small([[0, 1], [1, 0]], [50, 50]))
    assert "\n" not in str(caught.value)


def test_trees_too_large_for_memory_are_refused_before_they_grow():
    codes = np.column_stack([np.arange(5000), np.arange(5000)])
    with pytest.raises(TooLarge, match="5,000 levels"):
        DTSL(0.1, prior=ONE, max_memory="64 MB").fit(small(codes))
