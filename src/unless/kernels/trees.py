"""Messages in clique trees under gates: from evidence to the partition function and all marginals.

A table of a clique is laid out as rows (states of the separator towards its parent) of inner cells (states of
the variables that are summed out here). A message upwards is then a row sum, and after it the table holds
P(inner | separator), from which messages downwards and samples follow without division. Where a cell of the
parent meets a row of the child is `places[high] + places[low]`: two short tables instead of one long one.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from unless.kernels.compiling import borrowed, compiled, helper, inlined

# Products of two numbers at or above these cannot underflow; what is smaller is left to logs.
_LEAST_MESSAGE, _LEAST_CELL = 1e-100, 1e-200
# An index that cannot be negative need not be counted from the end: loops then take many cells at once.
_at = np.uint64


class Forest(NamedTuple):
    """A plan, flattened: cliques, children before parents, and the nodes (trees or gates) above them."""

    cell_start: Any  # (cliques + 1,)
    row_start: Any  # (cliques + 1,): the separators' states, one after another
    n_low: Any  # (cliques,): how many cells share a high place
    parent: Any  # (cliques,): -1 at the root of a tree
    high_start: Any  # (cliques,): where the parent's cells meet the rows
    low_start: Any  # (cliques,)
    places: Any
    inner_start: Any  # (cliques + 1,)
    inner_variable: Any
    inner_levels: Any
    outer_start: Any  # (cliques + 1,)
    outer_variable: Any
    outer_stride: Any
    node_start: Any  # (nodes + 1,): the cliques of a tree; none for a gate
    gate: Any  # (nodes,): the variable, -1 for none
    branch_start: Any  # (nodes + 1,)
    branch_level: Any
    branch_constant: Any
    child_start: Any  # (branches + 1,)
    child: Any
    slot_start: Any  # (variables + 1,): where the levels of a variable are among all marginals


@inlined
def _total(numbers, begin, n):
    """Add up n numbers in eight sums side by side, which the processor takes at once."""
    a = b = c = d = e = f = g = h = 0.0
    for eight in range(n // 8):
        i = begin + 8 * eight
        a += numbers[_at(i)]
        b += numbers[_at(i + 1)]
        c += numbers[_at(i + 2)]
        d += numbers[_at(i + 3)]
        e += numbers[_at(i + 4)]
        f += numbers[_at(i + 5)]
        g += numbers[_at(i + 6)]
        h += numbers[_at(i + 7)]
    total = ((a + e) + (c + g)) + ((b + f) + (d + h))
    for i in range(begin + n - n % 8, begin + n):
        total += numbers[_at(i)]
    return total


@helper
def find_active(evidence, forest, active):
    """Mark the nodes that some branch the evidence allows leads to; the last node is the top."""
    n_nodes = forest.gate.shape[0]
    for node in range(n_nodes):
        active[node] = node == n_nodes - 1
    for i in range(n_nodes):
        node = n_nodes - 1 - i
        if not active[node]:
            continue
        gate = forest.gate[node]
        for branch in range(forest.branch_start[node], forest.branch_start[node + 1]):
            if gate < 0 or evidence[gate] < 0 or evidence[gate] == forest.branch_level[branch]:
                for c in range(forest.child_start[branch], forest.child_start[branch + 1]):
                    active[forest.child[c]] = True


@helper
def _exclude_others(work, begin, end, inner, levels, seen, nothing):
    """Put `nothing` into the cells of all levels but one; those of a level follow one another."""
    block = levels * inner
    for run in range((end - begin) // block):
        first = begin + run * block
        for k in range(seen * inner):
            work[first + k] = nothing
        for k in range((seen + 1) * inner, block):
            work[first + k] = nothing


@helper
def load(node, evidence, forest, base, work, nothing):
    """Copy the tables of a tree and put `nothing` where they contradict the evidence."""
    first, last = forest.node_start[node], forest.node_start[node + 1]
    for cell in range(forest.cell_start[first], forest.cell_start[last]):
        work[_at(cell)] = base[_at(cell)]
    for c in range(first, last):
        begin, end = forest.cell_start[c], forest.cell_start[c + 1]
        inner = (end - begin) // (forest.row_start[c + 1] - forest.row_start[c])
        for k in range(forest.inner_start[c], forest.inner_start[c + 1]):
            levels = forest.inner_levels[k]
            inner //= levels
            seen = evidence[forest.inner_variable[k]]
            if seen >= 0:
                _exclude_others(work, begin, end, inner, levels, seen, nothing)


@helper
def _collect_linear(node, evidence, forest, base, work, message):
    """Return (log of the sum of a tree, whether every number was large enough to be trusted)."""
    load(node, evidence, forest, base, work, 0.0)
    log_sum = 0.0
    for c in range(forest.node_start[node], forest.node_start[node + 1]):
        begin = forest.cell_start[c]
        row0, row1 = forest.row_start[c], forest.row_start[c + 1]
        inner = (forest.cell_start[c + 1] - begin) // (row1 - row0)
        top = 0.0
        for row in range(row0, row1):
            total = _total(work, begin, inner)
            if total > 0.0:
                scale = 1.0 / total
                for cell in range(begin, begin + inner):
                    work[_at(cell)] *= scale
            message[row] = total
            top = max(top, total)
            begin += inner
        if top == 0.0:
            return -np.inf, True
        log_sum += math.log(top)
        parent = forest.parent[c]
        if parent < 0:
            continue
        for row in range(row0, row1):
            message[row] /= top
            if 0.0 < message[row] < _LEAST_MESSAGE:
                return 0.0, False
        n_low, cell = forest.n_low[parent], forest.cell_start[parent]
        high, low = forest.high_start[c], forest.low_start[c]
        least = 1.0
        for h in range((forest.cell_start[parent + 1] - cell) // n_low):
            place = row0 + forest.places[high + h]
            for i in range(n_low):
                value = work[_at(cell + i)] * message[_at(place + forest.places[_at(low + i)])]
                work[_at(cell + i)] = value
                least = min(least, value if value > 0.0 else 1.0)
            cell += n_low
        if least < _LEAST_CELL:
            return 0.0, False
    return log_sum, True


@helper
def add_message(c, forest, work, message):
    """Add the message of a clique, in logs, to the table of its parent."""
    parent, row0 = forest.parent[c], forest.row_start[c]
    n_low, cell = forest.n_low[parent], forest.cell_start[parent]
    high, low = forest.high_start[c], forest.low_start[c]
    for h in range((forest.cell_start[parent + 1] - cell) // n_low):
        place = row0 + forest.places[high + h]
        for i in range(n_low):
            work[_at(cell + i)] += message[_at(place + forest.places[_at(low + i)])]
        cell += n_low


@helper
def _collect_log(node, evidence, forest, base, work, message):
    """Return the log of the sum of a tree; tables come as logs and are left as P(inner | separator)."""
    load(node, evidence, forest, base, work, -np.inf)
    log_sum = 0.0
    for c in range(forest.node_start[node], forest.node_start[node + 1]):
        begin = forest.cell_start[c]
        row0, row1 = forest.row_start[c], forest.row_start[c + 1]
        inner = (forest.cell_start[c + 1] - begin) // (row1 - row0)
        for row in range(row0, row1):
            top = -np.inf
            for cell in range(begin, begin + inner):
                top = max(top, work[cell])
            total = 0.0
            for cell in range(begin, begin + inner):
                work[cell] = math.exp(work[cell] - top) if top > -np.inf else 0.0
                total += work[cell]
            if total > 0.0:
                for cell in range(begin, begin + inner):
                    work[cell] /= total
            message[row] = top + math.log(total) if total > 0.0 else -np.inf
            begin += inner
        if forest.parent[c] < 0:
            log_sum = message[row0]
        else:
            add_message(c, forest, work, message)
    return log_sum


@helper
def _weigh(node, evidence, forest, log_sums, log_branch):
    """Add up the branches of a gate that the evidence allows."""
    gate = forest.gate[node]
    top = -np.inf
    for branch in range(forest.branch_start[node], forest.branch_start[node + 1]):
        value = forest.branch_constant[branch]
        if gate >= 0 and evidence[gate] >= 0 and evidence[gate] != forest.branch_level[branch]:
            value = -np.inf
        else:
            for c in range(forest.child_start[branch], forest.child_start[branch + 1]):
                value += log_sums[forest.child[c]]
        log_branch[branch] = value
        top = max(top, value)
    total = 0.0
    for branch in range(forest.branch_start[node], forest.branch_start[node + 1]):
        total += math.exp(log_branch[branch] - top) if top > -np.inf else 0.0
    return top + math.log(total) if total > 0.0 else -np.inf


@compiled
def collect(evidence, forest, base, scales, in_logs, work, message, log_sums, log_branch, active):
    """Pass all messages upwards; return whether the numbers can be trusted.

    Afterwards `log_sums` holds the log of the sum of each node, the last being the log partition function.
    """
    find_active(evidence, forest, active)
    for node in range(forest.gate.shape[0]):
        if not active[node]:
            continue
        if forest.node_start[node] == forest.node_start[node + 1]:
            log_sums[node] = _weigh(node, evidence, forest, log_sums, log_branch)
        elif in_logs:
            log_sums[node] = _collect_log(node, evidence, forest, base, work, message)
        else:
            log_sum, trusted = _collect_linear(node, evidence, forest, base, work, message)
            if not trusted:
                return False
            log_sums[node] = log_sum + scales[node]
    return True


@helper
def _spread(node, share, forest, work, message, inner_sums, marginals):
    """Pass messages downwards in a tree that holds a share of the probability."""
    first, last = forest.node_start[node], forest.node_start[node + 1]
    for i in range(last - first):
        c = last - 1 - i
        begin, end = forest.cell_start[c], forest.cell_start[c + 1]
        row0, row1 = forest.row_start[c], forest.row_start[c + 1]
        inner = (end - begin) // (row1 - row0)
        parent = forest.parent[c]
        if parent < 0:
            message[row0] = share
        else:
            for row in range(row0, row1):
                message[row] = 0.0
            n_low, cell = forest.n_low[parent], forest.cell_start[parent]
            high, low = forest.high_start[c], forest.low_start[c]
            for h in range((forest.cell_start[parent + 1] - cell) // n_low):
                place = row0 + forest.places[high + h]
                for k in range(n_low):
                    message[_at(place + forest.places[_at(low + k)])] += work[_at(cell + k)]
                cell += n_low
        for k in range(inner):
            inner_sums[k] = 0.0
        cell = begin
        for row in range(row0, row1):
            above = message[row]
            for k in range(inner):
                value = work[_at(cell + k)] * above
                work[_at(cell + k)] = value
                inner_sums[k] += value
            cell += inner
        # The first variable's marginal is in runs of the rest; then those runs are folded onto one another.
        size = inner
        for k in range(forest.inner_start[c], forest.inner_start[c + 1]):
            levels = forest.inner_levels[k]
            slot = forest.slot_start[forest.inner_variable[k]]
            size //= levels
            for level in range(levels):
                marginals[slot + level] += _total(inner_sums, level * size, size)
                if level > 0:
                    for rest in range(size):
                        inner_sums[rest] += inner_sums[_at(level * size + rest)]


@compiled
def spread(forest, work, message, log_sums, log_branch, active, share, inner_sums, marginals):
    """Pass all messages downwards and write the marginals of all variables."""
    n_nodes = forest.gate.shape[0]
    for slot in range(marginals.shape[0]):
        marginals[slot] = 0.0
    for node in range(n_nodes):
        share[node] = 1.0 if node == n_nodes - 1 else 0.0
    for i in range(n_nodes):
        node = n_nodes - 1 - i
        if not active[node] or share[node] == 0.0:
            continue
        if forest.node_start[node] < forest.node_start[node + 1]:
            _spread(node, share[node], forest, work, message, inner_sums, marginals)
            continue
        gate = forest.gate[node]
        for branch in range(forest.branch_start[node], forest.branch_start[node + 1]):
            value = share[node] * math.exp(log_branch[branch] - log_sums[node])
            if gate >= 0:
                marginals[forest.slot_start[gate] + forest.branch_level[branch]] += value
            for c in range(forest.child_start[branch], forest.child_start[branch + 1]):
                share[forest.child[c]] += value


@compiled
def posteriors(evidence, plan, base, scales, in_logs, n_inner, room, log_partitions, marginals):
    """Answer each row of evidence (codes, -1 where unknown); return where the numbers can be trusted.

    Without columns in `marginals` only the log partition functions are computed. `room` is as large as the
    tables: to be given new memory takes longer than an answer.
    """
    forest = borrowed(plan)
    n_nodes = forest.gate.shape[0]
    work = borrowed(room)
    message = np.empty(forest.row_start[-1])
    log_sums, share = np.empty(n_nodes), np.empty(n_nodes)
    log_branch = np.empty(forest.branch_level.shape[0])
    active = np.empty(n_nodes, np.bool_)
    inner_sums = np.empty(n_inner)
    trusted = np.ones(evidence.shape[0], np.bool_)
    for row in range(evidence.shape[0]):
        seen = evidence[row]
        if not collect(seen, forest, base, scales, in_logs, work, message, log_sums, log_branch, active):
            trusted[row] = False
            continue
        log_partitions[row] = log_sums[n_nodes - 1]
        if marginals.shape[1] > 0 and log_partitions[row] > -np.inf:
            spread(forest, work, message, log_sums, log_branch, active, share, inner_sums, marginals[row])
    return trusted
