"""IBMAP-HC against a climb that scores every neighbour in full."""

import math
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unless
from strategies import KINDS, datasets, tables_with_limits
from twins.naive_graphs import NaiveScorer, naive_ibmap
from unless.counting.strata import StrataTable
from unless.errors import DataError, SettingError, TooLarge, UnknownName
from unless.independence.oracle import terms_at
from unless.learners.ibmap import (
    IBMAPHC,
    FlipLimits,
    PlainScorer,
    Scorer,
    SearchState,
    ascend,
    flip,
    neighbours,
    perturbed,
)

# The logarithms of factorials of thousands of millions have no digits left for a twin to agree with.
MODERATE = tuple(kind for kind in KINDS if kind != "huge counts")


def runs():
    return tables_with_limits(kinds=MODERATE, max_variables=5, max_rows=80)


def naive_answer_to(data, chosen):
    positions = {name: column for column, name in enumerate(data.names)}
    edges = {
        kind: [(positions[a], positions[b]) for a, b in chosen[f"{kind}_edges"] or ()]
        for kind in ("required", "forbidden")
    }
    return naive_ibmap(
        data.rows, data.counts, data.domain.n_levels, data.names, max_blanket=chosen["max_blanket"], **edges
    )


def full_score(table, links):
    """Return the score of a graph, every term of it counted anew."""
    work = table.workspace()
    return math.fsum(
        value for a in range(len(links)) for value in terms_at(table, a, neighbours(links, a), work).tolist()
    )


def watched_climb(climbs):
    """Make a climb that checks the incremental score against the full one after every flip."""

    def watched(scorer, state, limits, run):
        now = state.links.copy()
        done = ascend(scorer, state, limits, run)
        for (a, b), score in done.path:
            flip(now, a, b)
            assert score == pytest.approx(full_score(scorer.table, now), rel=1e-11, abs=1e-11)
        assert np.array_equal(now, done.links)
        climbs.append(done)
        return done

    return watched


@settings(max_examples=250, deadline=None)
@given(runs())
def test_graph_score_path_and_counts_are_those_of_full_scoring(run):
    data, chosen = run
    edges, score, path, n_tests, n_distinct = naive_answer_to(data, chosen)
    climbs = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unless.learners.ibmap.ascend", watched_climb(climbs))
        est = IBMAPHC(**chosen).fit(data)
    names, by_name = data.names, sorted(data.names)
    assert est.structure_.edges == {tuple(sorted(names[a] for a in edge)) for edge in edges}
    assert est.score_ == pytest.approx(score, rel=1e-9, abs=1e-9)
    assert [{by_name[a], by_name[b]} for (a, b), _ in climbs[0].path] == [
        {names[a] for a in pair} for pair, _ in path
    ]
    assert [value for _, value in climbs[0].path] == pytest.approx(
        [value for _, value in path], rel=1e-9, abs=1e-9
    )
    assert (est.n_tests_, est.n_distinct_tests_) == (n_tests, n_distinct)


@settings(max_examples=50, deadline=None)
@given(datasets(kinds=MODERATE, max_variables=5, max_rows=80), st.randoms(use_true_random=False))
def test_scores_and_gains_are_those_of_the_reference(data, random):
    twin, n = NaiveScorer(data.rows, data.counts, data.domain.n_levels), data.n_variables

    def log_probability(a, b, given, dependent):
        star = [frozenset((a, c)) for c in given | ({b} if dependent else set())]
        return twin.assertion(a, b, star)

    links = np.zeros((n, n), dtype=bool)
    for a in range(n):
        for b in range(a):
            links[a, b] = links[b, a] = random.random() < 0.4
    allowed = ~np.eye(n, dtype=bool)
    reference, fast = PlainScorer(log_probability), Scorer(StrataTable.of(data))
    assert fast.score(links) == pytest.approx(reference.score(links), rel=1e-9, abs=1e-9)
    gains = fast.gains(links, allowed)
    assert gains[allowed] == pytest.approx(reference.gains(links, allowed)[allowed], rel=1e-9, abs=1e-7)


@settings(max_examples=50, deadline=None)
@given(runs())
def test_every_assertion_is_given_by_name_with_its_probability(run):
    data, chosen = run
    est = IBMAPHC(**chosen).fit(data)
    scorer = NaiveScorer(data.rows, data.counts, data.domain.n_levels)
    edges = {frozenset(map(data.domain.index, edge)) for edge in est.structure_.edges}
    assert len(est.assertions_) == data.n_variables * (data.n_variables - 1)
    for a, b in permutations(data.names, 2):
        assertion = est.assertions_[a, b]
        assert assertion.claim == ("dependent" if est.structure_.has_edge(a, b) else "independent")
        assert set(assertion.given) == set(est.structure_.blanket(a)) - {b}
        expected = scorer.assertion(data.domain.index(a), data.domain.index(b), edges)
        assert assertion.log_probability == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert assertion.probability == math.exp(assertion.log_probability)
    assert est.score_ == pytest.approx(math.fsum(x.log_probability for x in est.assertions_.values()))


def chain(n_variables=9, n_rows=800, n_levels=3, seed=0):
    """Make a frame in which each column mostly repeats the one before it."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, n_levels, n_rows)]
    for _ in range(n_variables - 1):
        columns.append(np.where(rng.random(n_rows) < 0.7, columns[-1], rng.integers(0, n_levels, n_rows)))
    return pd.DataFrame({f"v{place}": column for place, column in enumerate(columns)}).astype(str)


def test_a_chain_is_found():
    est = IBMAPHC().fit(chain())
    assert est.structure_.edges == {(f"v{place}", f"v{place + 1}") for place in range(8)}


def test_neither_columns_nor_rows_nor_workers_change_a_bit():
    rng = np.random.default_rng(4)
    frame = chain(7, 300, 2).assign(noise=rng.integers(0, 4, 300).astype(str))
    first = IBMAPHC(n_restarts=2, random_state=7).fit(frame)
    for other, n_jobs in ((frame[frame.columns[::-1]], 1), (frame.sample(frac=1, random_state=1), 3)):
        est = IBMAPHC(n_restarts=2, random_state=7, n_jobs=n_jobs).fit(other)
        assert est.structure_ == first.structure_
        assert est.score_ == first.score_
        assert dict(est.assertions_) == dict(first.assertions_)
        assert (est.n_tests_, est.n_distinct_tests_) == (first.n_tests_, first.n_distinct_tests_)


def test_restarts_never_make_the_score_worse_and_leave_the_global_generator_alone():
    np.random.seed(1)
    before = np.random.get_state()[1].tolist()
    better = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(rng.integers(0, 2, (60, 6))).rename(columns=str)
        frame["6"] = frame["0"] ^ frame["1"]
        frame["7"] = (frame["2"] & frame["3"]) ^ (rng.random(60) < 0.1)
        once = IBMAPHC().fit(frame.astype(int))
        again = IBMAPHC(n_restarts=8, random_state=seed).fit(frame.astype(int))
        assert again.score_ >= once.score_
        assert again.n_tests_ > once.n_tests_
        better += again.score_ > once.score_ + 1e-6
    assert better > 0
    assert np.random.get_state()[1].tolist() == before


def test_of_flips_that_gain_the_same_the_first_is_taken_whatever_rounding_says():
    class Tied:
        def score(self, links):
            return float(links.any())

        def gains(self, links, allowed):
            gains = np.where(allowed & ~links.any(), 1.0, -np.inf)
            gains[1, 2] = gains[2, 1] = gains[1, 2] + 1e-13
            return gains

    done = ascend(Tied(), SearchState(np.zeros((3, 3), dtype=bool)), FlipLimits(~np.eye(3, dtype=bool), 3))
    assert done.path == (((0, 1), 1.0),)


def test_a_perturbed_start_obeys_the_limits():
    rng = np.random.default_rng(0)
    flippable = np.triu(rng.random((9, 9)) < 0.7, 1)
    limits = FlipLimits(flippable | flippable.T, 2)
    for _ in range(20):
        links = perturbed(np.zeros((9, 9), dtype=bool), limits, rng)
        assert np.array_equal(links, links.T)
        assert not (links & ~limits.flippable).any()
        assert links.sum(axis=1).max() <= 2


def test_what_is_known_is_not_counted_again(monkeypatch):
    counted = []
    real = StrataTable.bayesian

    def spy(self, strata, a, others, work, given=None):
        counted.append(len(others))
        return real(self, strata, a, others, work, given)

    monkeypatch.setattr(StrataTable, "bayesian", spy)
    named = unless.read(chain(8, 200, 2))
    scorer = Scorer(StrataTable.of(named))
    limits = FlipLimits(~np.eye(8, dtype=bool), 8)
    done = ascend(scorer, SearchState(np.zeros((8, 8), dtype=bool)), limits)
    first = sum(counted)
    # A start and then two variables a flip; never the n (n - 1) terms of each of the 28 neighbours.
    assert first < 8 * 7 * 7 * 2 + len(done.path) * 2 * 8 * 7 * 2
    assert ascend(scorer, SearchState(done.links.copy()), limits).path == ()
    assert sum(counted) == first


def test_required_and_forbidden_edges_are_obeyed():
    est = IBMAPHC(required_edges=[("v8", "v0")], forbidden_edges=[("v1", "v2")], n_restarts=1, random_state=0)
    est.fit(chain())
    assert est.structure_.has_edge("v0", "v8")
    assert not est.structure_.has_edge("v1", "v2")
    assert est.assertions_["v0", "v8"].claim == "dependent"


def test_constant_columns_and_single_rows_are_linked_to_nothing():
    frame = chain(4).assign(still="always")
    assert all("still" not in edge for edge in IBMAPHC().fit(frame).structure_.edges)
    one_row = pd.DataFrame({"a": ["x"], "b": ["y"]})
    for table in (one_row, pd.concat([one_row] * 5)):
        assert IBMAPHC().fit(table).structure_.edges == frozenset()


def test_thirty_levels_and_enormous_counts_are_no_obstacle():
    codes = np.arange(3000) % 30
    frame = pd.DataFrame({"a": codes, "b": (codes * 7 + 1) % 30, "c": np.arange(3000) // 30 % 30})
    assert IBMAPHC().fit(frame).structure_.edges == {("a", "b")}
    weights = np.full(3000, 10**9)
    assert IBMAPHC().fit(frame, sample_weight=weights).structure_.edges == {("a", "b")}


@pytest.mark.parametrize(
    ("chosen", "error", "words"),
    [
        ({"n_restarts": -1}, SettingError, "n_restarts"),
        ({"n_restarts": None}, SettingError, "n_restarts"),
        ({"random_state": "dice"}, SettingError, "random_state"),
        ({"max_blanket": 1.5}, SettingError, "max_blanket"),
        ({"required_edges": [("v0", "nobody")]}, UnknownName, "nobody"),
        ({"required_edges": [("v0", "v1")], "forbidden_edges": [("v1", "v0")]}, SettingError, "both"),
        ({"n_jobs": 0}, SettingError, "n_jobs"),
        ({"max_memory": "lots"}, SettingError, "lots"),
    ],
)
def test_bad_settings_get_one_sentence(chosen, error, words):
    with pytest.raises(error, match=words) as caught:
        IBMAPHC(**chosen).fit(chain(4, 50))
    assert str(caught.value).count("\n") == 0


def test_no_rows_and_too_little_memory_are_refused():
    domain = unless.Domain((unless.Variable("a", ("x", "y")), unless.Variable("b", ("x", "y"))))
    with pytest.raises(DataError, match="no rows"):
        IBMAPHC().fit(unless.Dataset.from_codes(domain, np.zeros((0, 2))))
    rng = np.random.default_rng(0)
    domain = unless.Domain(tuple(unless.Variable(str(column), ("0", "1")) for column in range(400)))
    wide = unless.Dataset.from_codes(domain, rng.integers(0, 2, (4000, 400)))
    with pytest.raises(TooLarge, match="MiB"):
        IBMAPHC(max_memory="64 MB").fit(wide)
