"""Maximal cliques of many small graphs: Bron and Kerbosch's search with pivoting, on bitsets."""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.bits import flip_bit
from unless.kernels.compiling import compiled, inlined, popcount, trailing_zeros, without_refcount

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class _Workspace(NamedTuple):
    """One row per depth of the search: who may join, who may but was tried, who is left to branch on."""

    adjacency: Any
    candidates: Any
    excluded: Any
    branches: Any
    clique: Any  # the nodes chosen so far, in its only row
    chosen: Any  # the node chosen at each depth


@inlined
def _open_graph(packed, graph, work):
    """Unpack one graph and make every node a candidate."""
    adjacency, candidates, excluded = work.adjacency, work.candidates, work.excluded
    n_nodes = adjacency.shape[0]
    for word in range(adjacency.shape[1]):
        candidates[0, word] = _ZERO
        excluded[0, word] = _ZERO
        for node in range(n_nodes):
            adjacency[node, word] = _ZERO
    pair = 0
    for a in range(n_nodes):
        flip_bit(candidates, 0, a)
        for b in range(a + 1, n_nodes):
            if (packed[graph, pair >> 3] >> (pair & 7)) & 1:
                flip_bit(adjacency, a, b)
                flip_bit(adjacency, b, a)
            pair += 1


@inlined
def _branch(depth, work):
    """Keep the candidates that are no neighbours of the pivot.

    A maximal clique without the pivot holds a non-neighbour of it: the others need no branch of their own.
    """
    adjacency, candidates, excluded, branches = work.adjacency, work.candidates, work.excluded, work.branches
    n_words = adjacency.shape[1]
    pivot, most = 0, -1
    for word in range(n_words):
        open_nodes = candidates[depth, word] | excluded[depth, word]
        while open_nodes != _ZERO:
            node = word * 64 + np.int64(trailing_zeros(open_nodes))
            open_nodes &= open_nodes - _ONE
            shared = 0
            for other in range(n_words):
                shared += np.int64(popcount(candidates[depth, other] & adjacency[node, other]))
            if shared > most:
                most, pivot = shared, node
    for word in range(n_words):
        branches[depth, word] = candidates[depth, word] & ~adjacency[pivot, word]


@inlined
def _first_branch(depth, work):
    """Return the first node left to branch on, or -1."""
    branches = work.branches
    for word in range(branches.shape[1]):
        if branches[depth, word] != _ZERO:
            return word * 64 + np.int64(trailing_zeros(branches[depth, word]))
    return -1


@inlined
def _choose(depth, node, work):
    """Choose a node; returns whether others may join it, and whether one that was tried could."""
    adjacency, candidates, excluded = work.adjacency, work.candidates, work.excluded
    joining, tried = _ZERO, _ZERO
    for word in range(adjacency.shape[1]):
        candidates[depth + 1, word] = candidates[depth, word] & adjacency[node, word]
        excluded[depth + 1, word] = excluded[depth, word] & adjacency[node, word]
        joining |= candidates[depth + 1, word]
        tried |= excluded[depth + 1, word]
    flip_bit(work.branches, depth, node)
    flip_bit(candidates, depth, node)
    flip_bit(excluded, depth, node)
    return joining != _ZERO, tried != _ZERO


@inlined
def _append(cliques, found, clique, node):
    """Add the chosen nodes and one more; returns the list, longer if it was full."""
    if found == cliques.shape[0]:
        longer = np.empty((2 * found, cliques.shape[1]), np.uint64)
        for row in range(found):
            for word in range(cliques.shape[1]):
                longer[row, word] = cliques[row, word]
        cliques = longer
    for word in range(cliques.shape[1]):
        cliques[found, word] = clique[0, word]
    flip_bit(cliques, found, node)
    return cliques


def maximal_cliques(packed: Any, n_nodes: int, at_most: int) -> Any:
    """List the maximal cliques of every graph, each as a bitset over the nodes.

    `packed` holds one graph a row: the bits of its pairs in the order of itertools.combinations, lowest bit
    first. Returns `start` (graphs + 1) and `cliques` (cliques, words of 64 nodes): graph g owns the cliques
    from start[g] to start[g + 1]. Were there more than `at_most`, start[-1] is -1 and the rest is
    meaningless.
    """
    n_words = (n_nodes + 63) // 64
    work = _Workspace(
        adjacency=np.zeros((n_nodes, n_words), np.uint64),
        candidates=np.zeros((n_nodes + 1, n_words), np.uint64),
        excluded=np.zeros((n_nodes + 1, n_words), np.uint64),
        branches=np.zeros((n_nodes + 1, n_words), np.uint64),
        clique=np.zeros((1, n_words), np.uint64),
        chosen=np.zeros(n_nodes + 1, np.int64),
    )
    return _search(packed, work, at_most)


@compiled
def _search(packed, work, at_most):
    work = without_refcount(work)
    chosen = work.chosen
    n_graphs, n_nodes, n_words = packed.shape[0], work.adjacency.shape[0], work.adjacency.shape[1]
    start = np.zeros(n_graphs + 1, np.int64)
    cliques = np.empty((max(16, 4 * n_graphs), n_words), np.uint64)
    found = 0
    for graph in range(n_graphs):
        _open_graph(packed, graph, work)
        depth = 0 if n_nodes else -1
        entering = True
        while depth >= 0:
            if entering:
                _branch(depth, work)
            entering = False
            node = _first_branch(depth, work)
            if node < 0:
                depth -= 1
                if depth >= 0:
                    flip_bit(work.clique, 0, chosen[depth])
                continue
            may_grow, was_seen = _choose(depth, node, work)
            if may_grow:
                flip_bit(work.clique, 0, node)
                chosen[depth] = node
                depth += 1
                entering = True
            elif not was_seen:
                if found == at_most:
                    start[n_graphs] = -1
                    return start, cliques[:0]
                cliques = _append(cliques, found, work.clique, node)
                found += 1
        start[graph + 1] = found
    return start, cliques[:found]
