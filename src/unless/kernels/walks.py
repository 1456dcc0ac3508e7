"""Walks down a forest of clique trees: to its most probable state, or to random ones."""

import math

import numpy as np

from unless.kernels.compiling import compiled, helper
from unless.kernels.trees import add_message, find_active, load


@helper
def _climb(node, evidence, forest, logs, work, message, best):
    """Pass maxima upwards in a tree; `best` keeps the inner cell each came from."""
    load(node, evidence, forest, logs, work, -np.inf)
    value = 0.0
    for c in range(forest.node_start[node], forest.node_start[node + 1]):
        begin = forest.cell_start[c]
        row0, row1 = forest.row_start[c], forest.row_start[c + 1]
        inner = (forest.cell_start[c + 1] - begin) // (row1 - row0)
        for row in range(row0, row1):
            at = 0
            for k in range(1, inner):
                if work[begin + k] > work[begin + at]:
                    at = k
            best[row] = at
            message[row] = work[begin + at]
            begin += inner
        if forest.parent[c] < 0:
            value = message[row0]
        else:
            add_message(c, forest, work, message)
    return value


@helper
def _row_of(c, forest, state):
    row = 0
    for k in range(forest.outer_start[c], forest.outer_start[c + 1]):
        row += forest.outer_stride[k] * state[forest.outer_variable[k]]
    return row


@helper
def _set_inner(c, at, inner, forest, state):
    for k in range(forest.inner_start[c], forest.inner_start[c + 1]):
        inner //= forest.inner_levels[k]
        state[forest.inner_variable[k]] = (at // inner) % forest.inner_levels[k]


@compiled
def most_probable(evidence, forest, logs, state):
    """Write a most probable state and return its log potential; -inf if no state is possible."""
    n_nodes = forest.gate.shape[0]
    active = np.empty(n_nodes, np.bool_)
    work = np.empty(forest.cell_start[-1])
    message = np.empty(forest.row_start[-1])
    best = np.empty(forest.row_start[-1], np.int64)
    values = np.empty(n_nodes)
    taken = np.empty(n_nodes, np.int64)
    find_active(evidence, forest, active)
    for node in range(n_nodes):
        if not active[node]:
            continue
        if forest.node_start[node] < forest.node_start[node + 1]:
            values[node] = _climb(node, evidence, forest, logs, work, message, best)
            continue
        gate = forest.gate[node]
        values[node] = -np.inf
        taken[node] = forest.branch_start[node]
        for branch in range(forest.branch_start[node], forest.branch_start[node + 1]):
            if gate >= 0 and evidence[gate] >= 0 and evidence[gate] != forest.branch_level[branch]:
                continue
            value = forest.branch_constant[branch]
            for c in range(forest.child_start[branch], forest.child_start[branch + 1]):
                value += values[forest.child[c]]
            if value > values[node]:
                values[node] = value
                taken[node] = branch
    if values[n_nodes - 1] == -np.inf:
        return -np.inf
    for node in range(n_nodes):
        active[node] = node == n_nodes - 1
    for i in range(n_nodes):
        node = n_nodes - 1 - i
        if not active[node]:
            continue
        first, last = forest.node_start[node], forest.node_start[node + 1]
        if first == last:
            branch = taken[node]
            if forest.gate[node] >= 0:
                state[forest.gate[node]] = forest.branch_level[branch]
            for c in range(forest.child_start[branch], forest.child_start[branch + 1]):
                active[forest.child[c]] = True
        for k in range(last - first):
            c = last - 1 - k
            inner = (forest.cell_start[c + 1] - forest.cell_start[c]) // (
                forest.row_start[c + 1] - forest.row_start[c]
            )
            _set_inner(c, best[forest.row_start[c] + _row_of(c, forest, state)], inner, forest, state)
    return values[n_nodes - 1]


@compiled
def cumulate(forest, active, work):
    """Turn P(inner | separator) of the active trees into running sums."""
    for node in range(forest.gate.shape[0]):
        if not active[node]:
            continue
        for c in range(forest.node_start[node], forest.node_start[node + 1]):
            begin = forest.cell_start[c]
            n_rows = forest.row_start[c + 1] - forest.row_start[c]
            inner = (forest.cell_start[c + 1] - begin) // n_rows
            for _ in range(n_rows):
                for cell in range(begin + 1, begin + inner):
                    work[cell] += work[cell - 1]
                begin += inner


@helper
def _pick(work, begin, inner, uniform):
    """Return the first cell of a row whose running sum exceeds a share of the row's total."""
    aim = uniform * work[begin + inner - 1]
    low, high = 0, inner - 1
    while low < high:
        middle = (low + high) // 2
        if work[begin + middle] > aim:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def draw(uniforms, forest, work, log_sums, log_branch, states):
    """Draw a state for each row of uniform numbers, one for each variable, from running sums."""
    n_nodes = forest.gate.shape[0]
    stack = np.empty(n_nodes, np.int64)
    for row in range(uniforms.shape[0]):
        state = states[row]
        stack[0] = n_nodes - 1
        height = 1
        while height > 0:
            height -= 1
            node = stack[height]
            first, last = forest.node_start[node], forest.node_start[node + 1]
            if first == last:
                gate = forest.gate[node]
                branch = forest.branch_start[node]
                if gate >= 0:
                    aim = uniforms[row, gate]
                    running = 0.0
                    for b in range(branch, forest.branch_start[node + 1]):
                        share = math.exp(log_branch[b] - log_sums[node])
                        if share > 0.0:
                            branch = b
                            running += share
                            if running > aim:
                                break
                    state[gate] = forest.branch_level[branch]
                for c in range(forest.child_start[branch], forest.child_start[branch + 1]):
                    stack[height] = forest.child[c]
                    height += 1
            for k in range(last - first):
                c = last - 1 - k
                inner = (forest.cell_start[c + 1] - forest.cell_start[c]) // (
                    forest.row_start[c + 1] - forest.row_start[c]
                )
                begin = forest.cell_start[c] + _row_of(c, forest, state) * inner
                uniform = uniforms[row, forest.inner_variable[forest.inner_start[c]]]
                _set_inner(c, _pick(work, begin, inner, uniform), inner, forest, state)
