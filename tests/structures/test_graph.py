import copy
import pickle
from itertools import permutations

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structures.models import assignments, domains, graphs, is_separated, steady
from unless.data.domain import Domain, Variable
from unless.errors import SettingError, TooLarge, UnknownName
from unless.structures.graph import Feature, Graph

DOMAIN = Domain(tuple(Variable(name, ("no", "yes")) for name in ("c", "a", "d", "b")))
CHAIN = Graph(DOMAIN, [("c", "a"), ("d", "a"), ("b", "d")])


def test_edges_are_pairs_of_sorted_names_and_nodes_keep_the_column_order():
    assert CHAIN.nodes == ("c", "a", "d", "b")
    assert CHAIN.edges == {("a", "c"), ("a", "d"), ("b", "d")}
    assert list(CHAIN) == [("a", "c"), ("a", "d"), ("b", "d")]
    assert CHAIN.n_edges == 3
    assert repr(CHAIN) == "<Graph: 4 variables, 3 edges>"


def test_edges_are_found_in_either_order_and_blankets_are_neighbours():
    assert CHAIN.has_edge("a", "c")
    assert CHAIN.has_edge("c", "a")
    assert not CHAIN.has_edge("c", "b")
    assert CHAIN.neighbours("a") == ("c", "d") == CHAIN.blanket("a")


def test_the_order_of_columns_and_of_edges_does_not_matter_to_equality():
    for names in permutations(DOMAIN.names):
        graph = Graph(DOMAIN.select(names), sorted(CHAIN.edges, reverse=True))
        assert graph == CHAIN
        assert hash(graph) == hash(CHAIN)
    assert Graph(DOMAIN) != CHAIN
    assert Graph(DOMAIN.select("acd"), [("a", "c")]) != Graph(DOMAIN, [("a", "c")])
    assert CHAIN != "a chain"


def test_a_graph_does_not_change_but_can_be_copied():
    with pytest.raises(AttributeError, match="does not change"):
        CHAIN.packed = None
    with pytest.raises(ValueError, match="read-only"):
        CHAIN.packed[0] = 1
    assert pickle.loads(pickle.dumps(CHAIN)) == copy.deepcopy(CHAIN) == CHAIN


@pytest.mark.parametrize("edge", ["ab", ("a",), ("a", "a"), ("a", "b", "c")])
def test_what_is_not_an_edge_is_refused(edge):
    with pytest.raises(SettingError, match="not an edge"):
        Graph(DOMAIN, [edge])


def test_unknown_names_are_refused():
    for ask in (
        lambda: Graph(DOMAIN, [("a", "x")]),
        lambda: CHAIN.has_edge("a", "x"),
        lambda: CHAIN.neighbours("x"),
        lambda: CHAIN.is_independent("a", "x"),
        lambda: CHAIN.is_independent("a", "b", given="x"),
    ):
        with pytest.raises(UnknownName, match="no variable 'x'"):
            ask()


@steady
@given(st.data())
def test_networkx_sees_the_same_nodes_and_edges(data):
    graph = data.draw(graphs(data.draw(domains())))
    exported = graph.to_networkx()
    assert tuple(exported.nodes) == graph.nodes
    assert {tuple(sorted(edge)) for edge in exported.edges} == graph.edges


@steady
@given(st.data())
def test_independence_is_separation_as_networkx_finds_it(data):
    graph = data.draw(graphs(data.draw(domains(min_variables=2))))
    roles = {name: data.draw(st.sampled_from("abg ")) for name in graph.nodes}
    a, b, between = ([name for name in graph.nodes if roles[name] == role] for role in "abg")
    if a and b:
        expected = is_separated(graph.edges, graph.nodes, a, b, between)
        assert graph.is_independent(a, b, given=between) == expected
        assert graph.is_independent(b, a, given=between) == expected


@pytest.mark.parametrize(
    ("a", "b", "between", "trouble"),
    [
        ("a", "a", (), "'a' is on both sides"),
        (["a", "c"], ["d", "c"], (), "'c' is on both sides"),
        ("a", "b", "b", "'b' is both asked about and given"),
        ("a", [], (), "name at least one"),
    ],
)
def test_sides_that_overlap_are_refused(a, b, between, trouble):
    with pytest.raises(SettingError, match=trouble):
        CHAIN.is_independent(a, b, given=between)


@steady
@given(st.data())
def test_features_are_all_assignments_of_the_maximal_cliques(data):
    graph = data.draw(graphs(data.draw(domains(max_variables=5))))
    expected = {
        Feature.of({name: x[name] for name in clique})
        for clique in networkx.find_cliques(graph.to_networkx())
        for x in assignments(graph.domain)
    }
    features = graph.features()
    assert set(features) == expected
    assert len(features) == len(expected)
    assert features.graph() == graph


def test_too_many_features_are_refused_before_they_are_made():
    domain = Domain(tuple(Variable(f"v{i}", ("no", "yes")) for i in range(90)))
    complete = Graph(domain, [(f"v{i}", f"v{j}") for i in range(90) for j in range(i)])
    with pytest.raises(TooLarge, match=f"{2**90:,} features"):
        complete.features()
    with pytest.raises(TooLarge, match="12 features, more than at_most=11"):
        CHAIN.features(at_most=11)
    assert len(CHAIN.features(at_most=12)) == 12
