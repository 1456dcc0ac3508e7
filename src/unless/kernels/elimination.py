"""Orders in which to sum variables out, and what a clique tree costs with and without a gate fixed.

Features are conjunctions laid out as in `FeatureArrays`; variables are numbered within the part of the model
that is looked at.
"""

import math

import numpy as np

from unless.kernels.compiling import compiled, helper

# What a clique costs beside its cells: visiting it at all. Keeps small trees whole.
_VISIT = 32.0
# Of the type of all other numbers here: a plain -1 would have functions compiled once more.
_NONE = np.int64(-1)


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
            cells += np.rint(math.exp(min(log_cells, 700.0)))
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
