import copy
import pickle
import subprocess
import sys
from itertools import combinations

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structures.models import canonical_models, contexts, edges_of, is_separated, loose_models, steady
from unless.data.domain import Domain, Variable
from unless.errors import SettingError, TooLarge, UnknownContext, UnknownLevel, UnknownName
from unless.structures import canonical
from unless.structures.canonical import CanonicalModel
from unless.structures.graph import CanonicalGraph, Feature, Graph
from unless.structures.structure import pack

# Three variables; x - y are linked unless gate = on, and z hangs on nothing.
GATED = Domain(
    (
        Variable("x", ("0", "1")),
        Variable("gate", ("off", "on")),
        Variable("y", ("0", "1")),
        Variable("z", ("only",)),
    )
)


def gated_model():
    rows = np.array([[0, 0, 0, 0], [0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 0]], dtype=np.uint16)
    counts = np.array([30, 20, 40, 10])
    linked = np.zeros((4, 6), dtype=bool)
    linked[[0, 2], 1] = True
    return CanonicalModel.from_edges(GATED, rows, counts, np.packbits(linked, axis=1, bitorder="little"))


def agreeing(parts, context):
    domain, rows, counts, edges = parts
    for row, count, packed in zip(rows, counts, edges, strict=True):
        labels = domain.decode(row.tolist())
        if all(labels[name] == label for name, label in context.items()):
            yield labels, int(count), edges_of(domain, packed)


@steady
@given(loose_models())
def test_every_context_keeps_its_graph_and_count(parts):
    model = CanonicalModel.from_edges(*parts)
    expected = {labels: (count, edges) for labels, count, edges in agreeing(parts, {})}
    assert {context: (graph.n_rows, graph.edges) for context, graph in model} == expected
    assert len(model) == len(expected)
    assert model.n_rows == sum(count for count, _ in expected.values())
    assert model.n_graphs == len({frozenset(edges) for _, edges in expected.values()})
    for context, (count, edges) in expected.items():
        graph = model.graph(context)
        assert (graph.context, graph.n_rows, graph.edges) == (context, count, edges)
        assert isinstance(graph, CanonicalGraph)
        assert graph == Graph(model.domain, edges)


@steady
@given(loose_models(), st.randoms(use_true_random=False))
def test_the_order_of_rows_is_forgotten(parts, random):
    domain, rows, counts, edges = parts
    order = random.sample(range(len(rows)), len(rows))
    model = CanonicalModel.from_edges(*parts)
    shuffled = CanonicalModel.from_edges(domain, rows[order], counts[order], edges[order])
    assert model == shuffled
    for name in ("rows", "counts", "packed", "graph_index"):
        assert getattr(model, name).tobytes() == getattr(shuffled, name).tobytes()


@steady
@given(st.data())
def test_given_unites_the_agreeing_contexts_and_shares_their_counts(data):
    parts = data.draw(loose_models())
    model = CanonicalModel.from_edges(*parts)
    context = data.draw(contexts(model.domain))
    at_least = data.draw(st.sampled_from((0.0, 0.25, 0.5, 1.0)))
    found = list(agreeing(parts, context))
    if not found:
        with pytest.raises(UnknownContext, match="never showed this context"):
            model.given(context)
        return
    n_rows = sum(count for _, count, _ in found)
    union = set().union(*(edges for _, _, edges in found))
    shares = {edge: sum(count for _, count, edges in found if edge in edges) / n_rows for edge in union}
    graph = model.given(context, at_least=at_least)
    assert graph.shares == {edge: share for edge, share in shares.items() if share >= at_least}
    assert graph.edges == set(graph.shares)
    assert (graph.n_rows, graph.context) == (n_rows, context)
    links = model.link_shares(context)
    assert {edge: share for edge, share in links.items() if share} == shares
    assert len(links) == len(model.domain) * (len(model.domain) - 1) // 2


@steady
@given(st.data())
def test_clique_features_are_the_values_of_maximal_cliques_in_their_contexts(data):
    model = data.draw(canonical_models())
    expected = {
        Feature.of({name: context[name] for name in clique})
        for context, graph in model
        for clique in networkx.find_cliques(graph.to_networkx())
    }
    features = model.features()
    assert set(features) == expected
    assert len(features) == len(expected)


@steady
@given(st.data())
def test_pair_features_are_the_values_of_links_and_of_isolated_variables(data):
    model = data.draw(canonical_models())
    expected = set()
    for context, graph in model:
        expected |= {Feature.of({a: context[a], b: context[b]}) for a, b in graph.edges}
        expected |= {Feature.of({name: context[name]}) for name in graph.nodes if not graph.blanket(name)}
    features = model.features(kind="pairs")
    assert set(features) == expected
    assert len(features) == len(expected)


@steady
@given(st.data())
def test_subclique_features_are_the_values_of_all_sets_of_linked_variables(data):
    model = data.draw(canonical_models())
    expected = {
        Feature.of({name: context[name] for name in names})
        for context, graph in model
        for size in range(1, len(graph.nodes) + 1)
        for names in combinations(graph.nodes, size)
        if all(graph.has_edge(*pair) for pair in combinations(names, 2))
    }
    features = model.features(kind="subcliques")
    assert set(features) == expected
    assert len(features) == len(expected)


def test_too_many_subcliques_are_refused_before_they_are_listed():
    domain = Domain(tuple(Variable(f"v{place}", ("no", "yes")) for place in range(200)))
    rows = np.zeros((1, 200), dtype=np.uint16)
    complete = pack(np.ones((1, 200 * 199 // 2), dtype=np.bool_))
    model = CanonicalModel.from_edges(domain, rows, np.ones(1, dtype=np.int64), complete)
    with pytest.raises(
        TooLarge, match=r"up to more than 10\^15 sub-cliques, more than 1,000,000; use features of cliques"
    ):
        model.features(kind="subcliques")


@steady
@given(st.data())
def test_independence_is_separation_in_the_graph_given_the_context(data):
    model = data.draw(canonical_models(min_variables=2))
    context = dict(data.draw(st.sampled_from(list(model.contexts()))))
    roles = {name: data.draw(st.sampled_from("abgw ")) for name in model.domain.names}
    a, b, between, fixed = ([name for name in roles if roles[name] == role] for role in "abgw")
    context = {name: context[name] for name in fixed}
    if a and b:
        edges = model.given(context).edges
        expected = is_separated(edges, model.domain.names, a, b, between + fixed)
        assert model.is_independent(a, b, given=between, context=context) == expected


def test_what_the_context_fixes_cannot_be_asked_about():
    with pytest.raises(SettingError, match="'gate' is asked about but fixed by the context"):
        gated_model().is_independent("x", "gate", context={"gate": "on"})


def test_a_gate_is_seen_by_the_contexts_it_switches():
    model = gated_model()
    assert model.is_independent("x", "y", context={"gate": "on"})
    assert not model.is_independent("x", "y", context={"gate": "off"})
    assert not model.is_independent("x", "y")
    assert model.link_shares()["x", "y"] == 0.7
    assert model.given({"gate": "off"}).shares == {("x", "y"): 1.0}
    assert model.given(at_least=0.71).edges == set()
    assert model.to_networkx().edges["x", "y"]["share"] == 0.7
    assert list(model.to_networkx({"gate": "on"}).edges) == []


def test_contexts_may_be_given_by_the_scalars_they_came_from():
    model = gated_model()
    scalars = {"x": 1, "y": np.int64(1), "gate": "off", "z": "only"}
    assert model.graph(scalars).edges == {("x", "y")}
    assert model.given({"x": 1.0}).n_rows == 50


def test_an_unobserved_context_names_the_nearest():
    model = gated_model()
    with pytest.raises(UnknownContext, match=r"nearest it showed has y = 1 instead of 0\.$"):
        model.graph({"x": "1", "gate": "off", "y": "0", "z": "only"})
    with pytest.raises(UnknownContext, match=r"nearest it showed has gate = off instead of on\.$"):
        model.given({"x": "1", "gate": "on", "y": "1"})


@pytest.mark.parametrize(("counts", "nearest"), [([1, 5, 5], "1"), ([1, 5, 6], "2"), ([5, 5, 5], "0")])
def test_of_equally_near_contexts_the_most_frequent_and_then_the_first_is_named(counts, nearest):
    domain = Domain((Variable("a", ("0", "1", "2", "3")), Variable("b", ("0", "1"))))
    rows = np.array([[0, 0], [1, 0], [2, 0]], dtype=np.uint16)
    model = CanonicalModel.from_edges(domain, rows, np.array(counts), np.zeros((3, 1), np.uint8))
    with pytest.raises(UnknownContext, match=rf"has a = {nearest} instead of 3\.$"):
        model.graph({"a": "3", "b": "0"})


def test_a_far_context_does_not_flood_the_message():
    domain = Domain(tuple(Variable(f"v{i}", ("0", "1")) for i in range(30)))
    model = CanonicalModel.from_edges(
        domain, np.zeros((1, 30), np.uint16), np.array([1]), np.zeros((1, 55), np.uint8)
    )
    with pytest.raises(UnknownContext, match=r"v7 = 0 instead of 1 and 22 more changes\.$"):
        model.graph(dict.fromkeys(domain.names, "1"))


def test_an_incomplete_context_is_sent_to_given():
    with pytest.raises(SettingError, match=r"no value to 'gate', 'z'; use given\(\)"):
        gated_model().graph({"x": "0", "y": "0"})


def test_unknown_names_levels_shares_and_kinds_are_refused():
    model = gated_model()
    with pytest.raises(UnknownName):
        model.given({"w": "1"})
    with pytest.raises(UnknownLevel):
        model.given({"gate": "ajar"})
    for share in (-0.1, 1.1, float("nan")):
        with pytest.raises(SettingError, match="not a share"):
            model.given(at_least=share)
    with pytest.raises(SettingError, match="kind='triples' is not known"):
        model.features(kind="triples")


def test_arrays_that_do_not_fit_together_are_refused():
    rows = np.array([[0, 0, 0, 0], [0, 1, 1, 0]], dtype=np.uint16)
    edges = np.zeros((2, 1), np.uint8)
    for bad in (
        (rows[:, :3], np.ones(2, np.int64), edges),
        (rows, np.ones(3, np.int64), edges),
        (rows, np.ones(2, np.int64), np.zeros((2, 2), np.uint8)),
        (rows, np.ones(2, np.int64), edges + 64),
        (rows[[0, 0]], np.ones(2, np.int64), edges),
    ):
        with pytest.raises(SettingError):
            CanonicalModel.from_edges(GATED, *bad)


def test_the_model_is_a_value_that_leaves_its_sources_alone():
    rows = np.array([[0, 0, 0, 0]], dtype=np.uint16)
    model = CanonicalModel.from_edges(GATED, rows, np.array([3]), np.zeros((1, 1), np.uint8))
    rows[0, 0] = 1
    assert rows.flags.writeable
    assert not model.rows.flags.writeable
    assert model != gated_model()
    assert gated_model() == pickle.loads(pickle.dumps(gated_model())) == copy.deepcopy(gated_model())
    assert repr(gated_model()) == "<CanonicalModel: 4 contexts of 4 variables, 2 different graphs>"


def test_graphs_in_context_say_so():
    model = gated_model()
    assert repr(model.given({"gate": "on"})) == "<ObservedGraph: 4 variables, 0 edges, given gate = on>"
    graph = model.graph({"x": 0, "gate": "off", "y": 0, "z": "only"})
    assert repr(graph) == "<CanonicalGraph: 4 variables, 1 edges>"
    assert graph.is_independent("x", "z")


def test_few_named_graphs_are_kept_and_the_rest_named_again(monkeypatch):
    expected = [graph.edges for _, graph in gated_model()]
    monkeypatch.setattr(canonical, "GRAPHS_KEPT", 1)
    model = gated_model()
    assert [graph.edges for _, graph in model] == expected
    assert len(model._graphs) == 1


def test_wide_cliques_have_features_too():
    # 50 variables of 4 levels: a joint assignment does not fit into one integer.
    domain = Domain(tuple(Variable(f"v{i}", ("0", "1", "2", "3")) for i in range(50)))
    rows = np.unique(np.random.default_rng(0).integers(0, 4, (20, 50)).astype(np.uint16), axis=0)
    edges = np.packbits(np.ones((len(rows), 1225), bool), axis=1, bitorder="little")
    model = CanonicalModel.from_edges(domain, rows, np.ones(len(rows), np.int64), edges)
    assert {frozenset(feature) for feature in model.features()} == {
        frozenset(Feature.of(context)) for context in model.contexts()
    }


def test_asking_a_model_loads_neither_the_compiler_nor_networkx():
    program = "import sys, unless.structures.graph, unless.structures.canonical; print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"numba", "networkx", "scipy"} & set(answer.stdout.split())
