"""Maximal cliques of many small graphs: Bron and Kerbosch's search with pivoting, on bitsets."""

from typing import Any

import numpy as np

from unless.kernels.compiling import compiled, popcount, trailing_zeros


def _maximal_cliques(packed: Any, n_nodes: int, at_most: int) -> Any:
    """List the maximal cliques of every graph, each as a bitset over the nodes.

    `packed` holds one graph a row: the bits of its pairs in the order of itertools.combinations, lowest bit
    first.
    Returns `start` (graphs + 1) and `cliques` (cliques, words of 64 nodes): graph g owns the cliques from
    start[g] to start[g + 1]. Were there more than `at_most`, start[-1] is -1 and the rest is meaningless.
    """
    one = np.uint64(1)
    n_graphs = packed.shape[0]
    n_words = (n_nodes + 63) // 64
    adjacency = np.zeros((n_nodes, n_words), np.uint64)
    # One row per depth of the search: who may still join, who may but was tried, who is left to branch on.
    candidates = np.zeros((n_nodes + 1, n_words), np.uint64)
    excluded = np.zeros((n_nodes + 1, n_words), np.uint64)
    branches = np.zeros((n_nodes + 1, n_words), np.uint64)
    chosen = np.zeros(n_nodes + 1, np.int64)
    clique = np.zeros(n_words, np.uint64)
    start = np.zeros(n_graphs + 1, np.int64)
    cliques = np.empty((max(16, 4 * n_graphs), n_words), np.uint64)
    found = 0

    for graph in range(n_graphs):
        for node in range(n_nodes):
            for word in range(n_words):
                adjacency[node, word] = np.uint64(0)
        pair = 0
        for a in range(n_nodes):
            for b in range(a + 1, n_nodes):
                if (packed[graph, pair >> 3] >> (pair & 7)) & 1:
                    adjacency[a, b >> 6] |= one << np.uint64(b & 63)
                    adjacency[b, a >> 6] |= one << np.uint64(a & 63)
                pair += 1
        for word in range(n_words):
            candidates[0, word] = np.uint64(0)
            excluded[0, word] = np.uint64(0)
        for node in range(n_nodes):
            candidates[0, node >> 6] |= one << np.uint64(node & 63)

        depth = 0 if n_nodes > 0 else -1
        entering = True
        while depth >= 0:
            if entering:
                # A maximal clique without the pivot holds a non-neighbour of it: others need no branch.
                pivot = -1
                most = -1
                for word in range(n_words):
                    open_nodes = candidates[depth, word] | excluded[depth, word]
                    while open_nodes != np.uint64(0):
                        node = word * 64 + int(trailing_zeros(open_nodes))
                        open_nodes &= open_nodes - one
                        shared = 0
                        for other in range(n_words):
                            shared += int(popcount(candidates[depth, other] & adjacency[node, other]))
                        if shared > most:
                            most = shared
                            pivot = node
                for word in range(n_words):
                    branches[depth, word] = candidates[depth, word] & ~adjacency[pivot, word]
                entering = False
            node = -1
            for word in range(n_words):
                if branches[depth, word] != np.uint64(0):
                    node = word * 64 + int(trailing_zeros(branches[depth, word]))
                    break
            if node < 0:
                depth -= 1
                if depth >= 0:
                    clique[chosen[depth] >> 6] ^= one << np.uint64(chosen[depth] & 63)
                continue
            may_grow = False
            was_seen = False
            for word in range(n_words):
                candidates[depth + 1, word] = candidates[depth, word] & adjacency[node, word]
                excluded[depth + 1, word] = excluded[depth, word] & adjacency[node, word]
                may_grow = may_grow or candidates[depth + 1, word] != np.uint64(0)
                was_seen = was_seen or excluded[depth + 1, word] != np.uint64(0)
            bit = one << np.uint64(node & 63)
            branches[depth, node >> 6] ^= bit
            candidates[depth, node >> 6] ^= bit
            excluded[depth, node >> 6] |= bit
            if may_grow:
                clique[node >> 6] |= bit
                chosen[depth] = node
                depth += 1
                entering = True
            elif not was_seen:
                if found == at_most:
                    start[n_graphs] = -1
                    return start, cliques[:0]
                if found == cliques.shape[0]:
                    larger = np.empty((2 * found, n_words), np.uint64)
                    for row in range(found):
                        for word in range(n_words):
                            larger[row, word] = cliques[row, word]
                    cliques = larger
                for word in range(n_words):
                    cliques[found, word] = clique[word]
                cliques[found, node >> 6] |= bit
                found += 1
        start[graph + 1] = found
    return start, cliques[:found]


maximal_cliques = compiled(_maximal_cliques)
