"""The clique kernel against networkx."""

from itertools import combinations

import networkx
import numpy as np
import pytest

from unless.kernels.graphs import maximal_cliques


def pack(links):
    return np.packbits(links, axis=1, bitorder="little")


def random_links(seed, n_graphs, n_nodes, density):
    return np.random.default_rng(seed).random((n_graphs, n_nodes * (n_nodes - 1) // 2)) < density


def members(bitsets, n_nodes):
    return [tuple(v for v in range(n_nodes) if int(row[v // 64]) >> (v % 64) & 1) for row in bitsets]


def naive(links, n_nodes):
    graph = networkx.Graph()
    graph.add_nodes_from(range(n_nodes))
    graph.add_edges_from(
        pair for pair, linked in zip(combinations(range(n_nodes), 2), links, strict=True) if linked
    )
    return sorted(tuple(sorted(clique)) for clique in networkx.find_cliques(graph))


@pytest.mark.parametrize("density", [0.0, 0.1, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("n_nodes", [1, 2, 3, 7, 20])
def test_small_graphs_have_the_cliques_networkx_finds(n_nodes, density):
    links = random_links(n_nodes, 12, n_nodes, density)
    start, cliques = maximal_cliques(pack(links), n_nodes, 10**6)
    for graph, row in enumerate(links):
        found = members(cliques[start[graph] : start[graph + 1]], n_nodes)
        assert sorted(found) == naive(row, n_nodes)


@pytest.mark.parametrize(
    ("n_nodes", "density"), [(63, 0.3), (64, 0.3), (65, 0.3), (70, 0.5), (70, 1.0), (130, 0.1)]
)
def test_graphs_wider_than_a_word_have_the_cliques_networkx_finds(n_nodes, density):
    links = random_links(n_nodes, 2, n_nodes, density)
    start, cliques = maximal_cliques(pack(links), n_nodes, 10**6)
    for graph, row in enumerate(links):
        found = members(cliques[start[graph] : start[graph + 1]], n_nodes)
        assert sorted(found) == naive(row, n_nodes)


def test_a_dense_graph_without_few_of_its_edges_has_many_cliques():
    # n/3 disjoint missing triangles give 3^(n/3) maximal cliques, the most there can be.
    n_nodes = 21
    links = np.array([[a // 3 != b // 3 for a, b in combinations(range(n_nodes), 2)]])
    start, cliques = maximal_cliques(pack(links), n_nodes, 10**6)
    assert start.tolist() == [0, 3**7]
    assert len(set(members(cliques, n_nodes))) == 3**7


def test_the_search_stops_at_its_bound():
    links = np.zeros((3, 45), dtype=bool)
    assert maximal_cliques(pack(links), 10, 30)[0].tolist() == [0, 10, 20, 30]
    assert maximal_cliques(pack(links), 10, 29)[0][-1] == -1


def test_the_order_of_cliques_is_always_the_same():
    links = random_links(0, 5, 15, 0.5)
    together = maximal_cliques(pack(links), 15, 10**6)
    for graph, row in enumerate(links):
        alone = maximal_cliques(pack(row[None]), 15, 10**6)[1]
        np.testing.assert_array_equal(together[1][together[0][graph] : together[0][graph + 1]], alone)


def test_no_graph_has_no_clique_and_no_node_has_none():
    assert maximal_cliques(np.zeros((0, 1), np.uint8), 4, 10)[0].tolist() == [0]
    assert maximal_cliques(np.zeros((2, 0), np.uint8), 0, 10)[0].tolist() == [0, 0, 0]
