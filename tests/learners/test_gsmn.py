"""GSMN against its literal twin, and learned from known distributions instead of data."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unless
from strategies import KINDS, datasets
from twins.naive_graphs import naive_gsmn
from unless.errors import DataError, SettingError, TooLarge, UnknownName
from unless.independence.oracle import Associations
from unless.learners.gsmn import GSMN, GsmnRules, learn_graph, visiting_order

MODERATE = tuple(kind for kind in KINDS if kind != "huge counts")


@st.composite
def runs(draw):
    """Draw a table and settings of GSMN for it."""
    test = draw(st.sampled_from(["pearson", "pearson", "likelihood_ratio", "bayesian"]))
    # Only Pearson's statistic keeps its digits when thousands of millions of rows agree almost exactly.
    data = draw(datasets(kinds=KINDS if test == "pearson" else MODERATE))
    pairs = st.tuples(st.sampled_from(data.names), st.sampled_from(data.names)).filter(
        lambda pair: pair[0] < pair[1]
    )
    required = draw(st.lists(pairs, max_size=2, unique=True))
    return data, {
        "alpha": draw(st.sampled_from([0.05, 0.3, 0.01])),
        "test": test,
        "variant": draw(st.sampled_from(["gsmn", "gsmn*"])),
        "rule": draw(st.sampled_from(["or", "and"])),
        "order": draw(
            st.one_of(st.sampled_from(["association"] * 3 + ["columns"]), st.permutations(data.names))
        ),
        "max_blanket": draw(st.sampled_from([None, None, None, 0, 1, 2])),
        "undecided": draw(st.sampled_from(["independent", "independent", "keep"])),
        "required_edges": required or None,
        "forbidden_edges": [pair for pair in draw(st.lists(pairs, max_size=2)) if pair not in required]
        or None,
    }


def assert_equals_its_twin(data, chosen):
    positions = {name: column for column, name in enumerate(data.names)}
    order = {"association": None, "columns": list(range(data.n_variables))}.get(
        chosen["order"] if isinstance(chosen["order"], str) else "", "a list"
    )
    if order == "a list":
        order = [positions[name] for name in chosen["order"]]
    edges = {
        kind: [(positions[a], positions[b]) for a, b in chosen[f"{kind}_edges"] or ()]
        for kind in ("required", "forbidden")
    }
    same = {name: chosen[name] for name in ("alpha", "test", "variant", "rule", "max_blanket", "undecided")}
    twin, n_tests, n_distinct = naive_gsmn(
        data.rows, data.counts, data.domain.n_levels, data.names, order=order, **edges, **same
    )
    est = GSMN(**chosen).fit(data)
    assert est.structure_.edges == {tuple(sorted(data.names[a] for a in edge)) for edge in twin}
    assert (est.n_tests_, est.n_distinct_tests_) == (n_tests, n_distinct)


@settings(max_examples=300, deadline=None)
@given(runs())
def test_graph_and_counts_are_those_of_the_literal_algorithm(run):
    assert_equals_its_twin(*run)


class KnownDistribution:
    """Answers from a table of joint probabilities: dependent where some log odds ratio is not zero."""

    def __init__(self, joint):
        self.joint = joint
        self.n_variables = joint.ndim

    def fresh(self):
        return self

    def ask(self, a, b, given):
        kept = [a, b, *sorted(given)]
        rest = tuple(axis for axis in range(self.n_variables) if axis not in kept)
        marginal = self.joint.sum(axis=rest, keepdims=True)
        logs = np.log(np.moveaxis(marginal, (a, b), (0, 1)))
        ratios = logs[1:, 1:] + logs[:1, :1] - logs[1:, :1] - logs[:1, 1:]
        return "dependent" if np.abs(ratios).max() > 1e-8 else "independent"

    def associations(self):
        n = self.n_variables
        information = np.zeros((n, n))
        dependent = np.zeros((n, n), dtype=bool)
        for a, b in combinations(range(n), 2):
            rest = tuple(axis for axis in range(n) if axis not in (a, b))
            pair = self.joint.sum(axis=rest)
            expected = pair.sum(axis=1, keepdims=True) * pair.sum(axis=0, keepdims=True)
            information[a, b] = information[b, a] = (pair * np.log(pair / expected)).sum()
            dependent[a, b] = dependent[b, a] = self.ask(a, b, frozenset()) == "dependent"
        return Associations(-1000 * information, information, dependent)


def add_potential(logs, scope, values):
    shape = [logs.shape[axis] if axis in scope else 1 for axis in range(logs.ndim)]
    return logs + values.reshape(shape)


def random_joint(seed, gated):
    """Make the joint of a random graph, each pair of it linked always or only for one level of a gate."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 7))
    levels = rng.integers(2, 4, n)
    logs = np.zeros(levels)
    gate = int(rng.integers(n))
    for a, b in combinations(range(n), 2):
        if rng.random() > 0.4:
            continue
        if not gated or gate in (a, b):
            logs = add_potential(logs, (a, b), rng.normal(size=(levels[a], levels[b])))
            continue
        scope = sorted((a, b, gate))
        values = rng.normal(size=[levels[axis] for axis in scope])
        off = [slice(None)] * 3
        off[scope.index(gate)] = int(rng.integers(levels[gate]))
        values[tuple(off)] = 0.0
        logs = add_potential(logs, tuple(scope), values)
    for a in range(n):
        logs = add_potential(logs, (a,), rng.normal(size=levels[a]))
    joint = np.exp(logs - logs.max())
    return joint / joint.sum()


@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
@pytest.mark.parametrize("seed", range(50))
def test_the_true_graph_is_learned_from_a_known_distribution(seed, gated):
    oracle = KnownDistribution(random_joint(seed, gated))
    everyone = frozenset(range(oracle.n_variables))
    truth = [
        pair
        for pair in combinations(range(oracle.n_variables), 2)
        if oracle.ask(*pair, everyone - set(pair)) == "dependent"
    ]
    none = np.zeros((oracle.n_variables,) * 2, dtype=bool)
    for collaborates in (False, True):
        for join_both in (False, True):
            strategy = GsmnRules(none, none, collaborates=collaborates, join_both=join_both)
            assert learn_graph(oracle, strategy).edges == truth


def chain(n_variables=9, n_rows=1500, n_levels=3, seed=0):
    """Make a frame in which each column mostly repeats the one before it."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, n_levels, n_rows)]
    for _ in range(n_variables - 1):
        columns.append(np.where(rng.random(n_rows) < 0.7, columns[-1], rng.integers(0, n_levels, n_rows)))
    return pd.DataFrame({f"v{place}": column for place, column in enumerate(columns)}).astype(str)


@pytest.mark.parametrize("variant", ["gsmn", "gsmn*"])
@pytest.mark.parametrize("test", ["pearson", "likelihood_ratio", "bayesian"])
def test_a_chain_is_found(variant, test):
    est = GSMN(0.001, variant=variant, test=test).fit(chain())
    assert est.structure_.edges == {(f"v{place}", f"v{place + 1}") for place in range(8)}


@pytest.mark.parametrize("variant", ["gsmn", "gsmn*"])
def test_neither_columns_nor_rows_nor_workers_matter(variant):
    frame = chain()
    first = GSMN(variant=variant).fit(frame)
    for other, n_jobs in ((frame[frame.columns[::-1]], 1), (frame.sample(frac=1, random_state=1), 3)):
        est = GSMN(variant=variant, n_jobs=n_jobs).fit(other)
        assert est.structure_ == first.structure_
        assert (est.n_tests_, est.n_distinct_tests_) == (first.n_tests_, first.n_distinct_tests_)


def test_an_association_too_strong_for_doubles_still_has_a_rank():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 200_000)
    frame = pd.DataFrame(
        {"x": a, "close": a ^ (rng.random(200_000) < 0.01), "far": a ^ (rng.random(200_000) < 0.1)}
    )
    est = GSMN(variant="gsmn*").fit(frame.astype(str))
    assert est.structure_.edges == {("close", "x"), ("far", "x")}


def test_rounding_breaks_no_tie():
    class Tied(KnownDistribution):
        asked = ()

        def ask(self, a, b, given):
            self.asked = (*self.asked, (a, b))
            return "independent"

        def associations(self):
            log_p = np.array([[0, -0.3, -0.1 - 0.2], [-0.3, 0, -1e-12], [-0.1 - 0.2, -1e-12, 0]])
            return Associations(log_p, np.zeros((3, 3)), np.ones((3, 3), dtype=bool))

    tied, none = Tied(np.ones((2, 2, 2)) / 8), np.zeros((3, 3), dtype=bool)
    learn_graph(tied, GsmnRules(none, none))
    assert tied.asked == ((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1))
    assert visiting_order(tied.associations()) == [0, 1, 2]


def test_collaboration_asks_less_and_makes_blankets_agree():
    data = unless.read(chain(12, 600))
    alone, together = GSMN(0.2).fit(data), GSMN(0.2, variant="gsmn*").fit(data)
    assert together.n_tests_ < alone.n_tests_
    assert GSMN(0.2, variant="gsmn*", rule="and").fit(data).structure_ == together.structure_


def test_required_and_forbidden_edges_are_obeyed():
    for variant in ("gsmn", "gsmn*"):
        est = GSMN(
            variant=variant, rule="and", required_edges=[("v8", "v0")], forbidden_edges=[("v1", "v2")]
        ).fit(chain())
        assert est.structure_.has_edge("v0", "v8")
        assert not est.structure_.has_edge("v1", "v2")


def test_constant_columns_and_single_rows_are_linked_to_nothing():
    frame = chain(4).assign(still="always")
    assert all("still" not in edge for edge in GSMN(test="bayesian").fit(frame).structure_.edges)
    one_row = pd.DataFrame({"a": ["x"], "b": ["y"]})
    for table in (one_row, pd.concat([one_row] * 5)):
        for test in ("pearson", "bayesian"):
            assert GSMN(test=test, undecided="keep").fit(table).structure_.edges == frozenset()


def test_thirty_levels_are_no_obstacle():
    codes = np.arange(3000) % 30
    frame = pd.DataFrame({"a": codes, "b": (codes * 7 + 1) % 30, "c": np.arange(3000) // 30 % 30})
    assert GSMN().fit(frame).structure_.edges == {("a", "b")}


@pytest.mark.parametrize(
    ("chosen", "error", "words"),
    [
        ({"alpha": 1.0}, SettingError, "alpha"),
        ({"test": "t-test"}, SettingError, "'t-test'"),
        ({"variant": "gsimn"}, SettingError, "'gsimn'"),
        ({"rule": "xor"}, SettingError, "rule"),
        ({"order": "random"}, SettingError, "order"),
        ({"order": ["v0"]}, SettingError, "leaves out 'v1'"),
        ({"max_blanket": -1}, SettingError, "max_blanket"),
        ({"undecided": "guess"}, SettingError, "undecided"),
        ({"effect": 0}, SettingError, "effect"),
        ({"required_edges": [("v0", "nobody")]}, UnknownName, "nobody"),
        ({"required_edges": [("v0", "v1")], "forbidden_edges": [("v1", "v0")]}, SettingError, "both"),
        ({"n_jobs": 0}, SettingError, "n_jobs"),
        ({"max_memory": "lots"}, SettingError, "lots"),
    ],
)
def test_bad_settings_get_one_sentence(chosen, error, words):
    with pytest.raises(error, match=words) as caught:
        GSMN(**chosen).fit(chain(4, 50))
    assert str(caught.value).count("\n") == 0


def test_no_rows_and_too_little_memory_are_refused():
    domain = unless.Domain((unless.Variable("a", ("x", "y")), unless.Variable("b", ("x", "y"))))
    with pytest.raises(DataError, match="no rows"):
        GSMN().fit(unless.Dataset.from_codes(domain, np.zeros((0, 2))))
    rng = np.random.default_rng(0)
    domain = unless.Domain(tuple(unless.Variable(str(column), ("0", "1")) for column in range(400)))
    wide = unless.Dataset.from_codes(domain, rng.integers(0, 2, (4000, 400)))
    with pytest.raises(TooLarge, match="MiB"):
        GSMN(max_memory="64 MB").fit(wide)
