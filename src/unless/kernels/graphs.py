"""Graphs of variables: their maximal cliques, and orders in which to sum variables out.

Maximal cliques of many small graphs: Bron and Kerbosch's search with pivoting, on bitsets.

Orders of elimination, and what a clique tree costs with and without a gate fixed. Features are conjunctions
laid out as in `FeatureArrays`; variables are numbered within the part of the model that is looked at.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.bits import flip_bit
from unless.kernels.compiling import (
    compiled,
    exp,
    helper,
    inlined,
    popcount,
    trailing_zeros,
    without_refcount,
)

_ZERO, _ONE = np.uint64(0), np.uint64(1)
# What a clique costs beside its cells: visiting it at all. Keeps small trees whole.
_VISIT = 32.0
# Of the type of all other numbers here: a plain -1 would have functions compiled once more.
_NONE = np.int64(-1)


class _CliqueSearch(NamedTuple):
    """One row per depth of the search: who may join, who may but was tried, who is left to branch on."""

    adjacency: Any
    candidates: Any
    excluded: Any
    branches: Any
    clique: Any  # the nodes chosen so far, in its only row
    chosen: Any  # the node chosen at each depth


@inlined
def _open_graph(packed, graph, search):
    """Unpack one graph and make every node a candidate."""
    adjacency, candidates, excluded = search.adjacency, search.candidates, search.excluded
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
def _branch(depth, search):
    """Keep the candidates that are no neighbours of the pivot.

    A maximal clique without the pivot holds a non-neighbour of it: the others need no branch of their own.
    """
    adjacency, candidates, excluded, branches = (
        search.adjacency,
        search.candidates,
        search.excluded,
        search.branches,
    )
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
def _first_branch(depth, search):
    """Return the first node left to branch on, or -1."""
    branches = search.branches
    for word in range(branches.shape[1]):
        if branches[depth, word] != _ZERO:
            return word * 64 + np.int64(trailing_zeros(branches[depth, word]))
    return -1


@inlined
def _choose(depth, node, search):
    """Choose a node; returns whether others may join it, and whether one that was tried could."""
    adjacency, candidates, excluded = search.adjacency, search.candidates, search.excluded
    joining, tried = _ZERO, _ZERO
    for word in range(adjacency.shape[1]):
        candidates[depth + 1, word] = candidates[depth, word] & adjacency[node, word]
        excluded[depth + 1, word] = excluded[depth, word] & adjacency[node, word]
        joining |= candidates[depth + 1, word]
        tried |= excluded[depth + 1, word]
    flip_bit(search.branches, depth, node)
    flip_bit(candidates, depth, node)
    flip_bit(excluded, depth, node)
    return joining != _ZERO, tried != _ZERO


@inlined
def _append(cliques, n_found, clique, node):
    """Add the chosen nodes and one more; returns the list, longer if it was full."""
    if n_found == cliques.shape[0]:
        longer = np.empty((2 * n_found, cliques.shape[1]), np.uint64)
        for row in range(n_found):
            for word in range(cliques.shape[1]):
                longer[row, word] = cliques[row, word]
        cliques = longer
    for word in range(cliques.shape[1]):
        cliques[n_found, word] = clique[0, word]
    flip_bit(cliques, n_found, node)
    return cliques


def maximal_cliques(packed: Any, n_nodes: int, at_most: int) -> Any:
    """List the maximal cliques of every graph, each as a bitset over the nodes.

    `packed` holds one graph a row: the bits of its pairs in the order of itertools.combinations, lowest bit
    first. Returns `start` (graphs + 1) and `cliques` (cliques, words of 64 nodes): graph g owns the cliques
    from start[g] to start[g + 1]. Were there more than `at_most`, start[-1] is -1 and the rest is
    meaningless.
    """
    n_words = (n_nodes + 63) // 64
    search = _CliqueSearch(
        adjacency=np.zeros((n_nodes, n_words), np.uint64),
        candidates=np.zeros((n_nodes + 1, n_words), np.uint64),
        excluded=np.zeros((n_nodes + 1, n_words), np.uint64),
        branches=np.zeros((n_nodes + 1, n_words), np.uint64),
        clique=np.zeros((1, n_words), np.uint64),
        chosen=np.zeros(n_nodes + 1, np.int64),
    )
    return _search(packed, search, at_most)


@compiled
def _search(packed, search, at_most):
    search = without_refcount(search)
    chosen = search.chosen
    n_graphs, n_nodes, n_words = packed.shape[0], search.adjacency.shape[0], search.adjacency.shape[1]
    start = np.zeros(n_graphs + 1, np.int64)
    cliques = np.empty((max(16, 4 * n_graphs), n_words), np.uint64)
    n_found = 0
    for graph in range(n_graphs):
        _open_graph(packed, graph, search)
        depth = 0 if n_nodes else -1
        entering = True
        while depth >= 0:
            if entering:
                _branch(depth, search)
            entering = False
            node = _first_branch(depth, search)
            if node < 0:
                depth -= 1
                if depth >= 0:
                    flip_bit(search.clique, 0, chosen[depth])
                continue
            may_grow, was_seen = _choose(depth, node, search)
            if may_grow:
                flip_bit(search.clique, 0, node)
                chosen[depth] = node
                depth += 1
                entering = True
            elif not was_seen:
                if n_found == at_most:
                    start[n_graphs] = -1
                    return start, cliques[:0]
                cliques = _append(cliques, n_found, search.clique, node)
                n_found += 1
        start[graph + 1] = n_found
    return start, cliques[:n_found]


@compiled
def component_labels(start, variable, n_variables):
    """Label each variable with the smallest variable it is joined with."""
    label = np.arange(n_variables)
    for feature in range(start.shape[0] - 1):
        a = variable[start[feature]]
        while label[a] != a:
            a = label[a]
        for i in range(start[feature] + 1, start[feature + 1]):
            b = variable[i]
            while label[b] != b:
                label[b] = label[label[b]]
                b = label[b]
            if b < a:
                a, b = b, a
            label[b] = a
    for v in range(n_variables):
        a = v
        while label[a] != a:
            a = label[a]
        label[v] = a
    return label


@helper
def _link(start, variable, level, equal, gate, at, linked):
    """Link variables that share a feature once the gate is at its level; return the number of links."""
    n = linked.shape[0]
    for a in range(n):
        for b in range(n):
            linked[a, b] = False
    n_links = 0
    for feature in range(start.shape[0] - 1):
        first, last = start[feature], start[feature + 1]
        holds = True
        for i in range(first, last):
            if variable[i] == gate and at >= 0 and (level[i] == at) != equal[i]:
                holds = False
                break
        if not holds:
            continue
        for i in range(first, last):
            a = variable[i]
            if a == gate:
                continue
            for j in range(i + 1, last):
                b = variable[j]
                if b not in (gate, a) and not linked[a, b]:
                    linked[a, b] = True
                    linked[b, a] = True
                    n_links += 1
    return n_links


@helper
def _count_fill(v, linked, gone, near):
    """Count the links that summing v out would add, and those it looked at."""
    n = linked.shape[0]
    degree = 0
    for b in range(n):
        if linked[v, b] and not gone[b]:
            near[degree] = b
            degree += 1
    missing = 0
    for i in range(degree):
        row = linked[near[i]]
        for j in range(i + 1, degree):
            if not row[near[j]]:
                missing += 1
    return missing, n + degree * (degree - 1) // 2


@helper
def _order(linked, log_sizes, skipped, by_fill, order, member):
    """Sum variables out greedily; member[i] is the clique of step i. Destroys `linked`.

    Returns the number of steps and of the links looked at.
    """
    n = linked.shape[0]
    gone = np.zeros(n, np.bool_)
    stale = np.ones(n, np.bool_)
    fill = np.zeros(n, np.int64)
    weight = np.zeros(n)
    near = np.empty(n, np.int64)
    effort = 0
    if skipped >= 0:
        gone[skipped] = True
    n_steps = n - (1 if skipped >= 0 else 0)
    for step in range(n_steps):
        chosen = -1
        for v in range(n):
            if gone[v]:
                continue
            if stale[v]:
                fill[v], looked = _count_fill(v, linked, gone, near)
                effort += looked
                weight[v] = log_sizes[v]
                for b in range(n):
                    if linked[v, b] and not gone[b]:
                        weight[v] += log_sizes[b]
                stale[v] = False
            if chosen < 0:
                chosen = v
            elif by_fill:
                if fill[v] < fill[chosen] or (fill[v] == fill[chosen] and weight[v] < weight[chosen] - 1e-12):
                    chosen = v
            elif weight[v] < weight[chosen] - 1e-12:
                chosen = v
        order[step] = chosen
        gone[chosen] = True
        degree = 0
        for b in range(n):
            inside = linked[chosen, b] and not gone[b]
            member[step, b] = inside or b == chosen
            if inside:
                near[degree] = b
                degree += 1
        added = fill[chosen] > 0
        for i in range(degree):
            stale[near[i]] = True
            for j in range(i + 1, degree):
                linked[near[i], near[j]] = True
                linked[near[j], near[i]] = True
            if added:
                for b in range(n):
                    if linked[near[i], b]:
                        stale[b] = True
    return n_steps, effort


@helper
def _hosts(order, member, n_steps, host, above):
    """Find the steps whose cliques lie inside earlier ones (their host), and the step above each."""
    n = member.shape[1]
    at = np.full(n, n_steps)
    size = np.zeros(n_steps, np.int64)
    for step in range(n_steps):
        at[order[step]] = step
        host[step] = step
        for b in range(n):
            size[step] += member[step, b]
    for step in range(n_steps):
        above[step] = n_steps
        for b in range(n):
            if member[step, b] and b != order[step] and at[b] < above[step]:
                above[step] = at[b]
        up = above[step]
        if up < n_steps and host[up] == up and size[up] == size[step] - 1:
            host[up] = host[step]


@helper
def _cost(member, host, n_steps, log_sizes):
    cells, total = 0.0, 0.0
    for step in range(n_steps):
        if host[step] == step:
            log_cells = 0.0
            for b in range(member.shape[1]):
                if member[step, b]:
                    log_cells += log_sizes[b]
            cells += np.rint(exp(min(log_cells, 700.0)))
            total += _VISIT
    return cells, cells + total


@compiled
def eliminate(start, variable, level, equal, log_sizes):
    """Return the better of two greedy orders: (order, cliques, hosts, steps above, cells, cost)."""
    n = log_sizes.shape[0]
    linked = np.empty((n, n), np.bool_)
    orders = np.empty((2, n), np.int64)
    members = np.empty((2, n, n), np.bool_)
    hosts = np.empty((2, n), np.int64)
    aboves = np.empty((2, n), np.int64)
    all_cells, costs = np.zeros(2), np.zeros(2)
    for rule in range(2):
        _link(start, variable, level, equal, _NONE, _NONE, linked)
        _order(linked, log_sizes, _NONE, rule == 0, orders[rule], members[rule])
        _hosts(orders[rule], members[rule], n, hosts[rule], aboves[rule])
        all_cells[rule], costs[rule] = _cost(members[rule], hosts[rule], n, log_sizes)
    best = 1 if costs[1] < costs[0] else 0
    return orders[best], members[best], hosts[best], aboves[best], all_cells[best], costs[best]


@compiled
def gate_costs(start, variable, level, equal, sizes, log_sizes, candidates):
    """Return, for each candidate, the cost of the clique trees of all its levels; infinite if it is no gate.

    A gate is a variable some level of which cuts links between others. The effort it took comes with them.
    """
    n = log_sizes.shape[0]
    linked = np.empty((n, n), np.bool_)
    order = np.empty(n, np.int64)
    member = np.empty((n, n), np.bool_)
    host = np.empty(n, np.int64)
    above = np.empty(n, np.int64)
    costs = np.full(candidates.shape[0], np.inf)
    effort = 0
    for i in range(candidates.shape[0]):
        gate = candidates[i]
        n_links = _link(start, variable, level, equal, gate, _NONE, linked)
        cuts = False
        for at in range(sizes[gate]):
            if _link(start, variable, level, equal, gate, at, linked) < n_links:
                cuts = True
                break
        if not cuts:
            continue
        costs[i] = 0.0
        for at in range(sizes[gate]):
            best = np.inf
            for rule in range(2):
                _link(start, variable, level, equal, gate, at, linked)
                n_steps, looked = _order(linked, log_sizes, gate, rule == 0, order, member)
                effort += looked + variable.shape[0]
                _hosts(order, member, n_steps, host, above)
                best = min(best, _cost(member, host, n_steps, log_sizes)[1])
            costs[i] += best
    return costs, effort
