"""Probability trees: a variable's levels told from the other variables, split by split.

Gains are whole numbers, n log m in units of a power of two: sums are then exact in any order, so that splits
which gain the same are seen to.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.compiling import borrowed, compiled, inlined

# Rows counted before the kernel checks its budget.
_BLOCK = 4096
# Places in the state: whether the topmost node is being counted, how many of its rows were, how many nodes
# are on the stack, and how many there are.
_COUNTING, _COUNTED, _N_STACKED, N_NODES = 0, 1, 2, 3
STATE_SIZE = 4


class Rows(NamedTuple):
    """Distinct rows, their counts, and where the cells of each variable begin among all (variable, level)."""

    codes: Any  # uint16 (rows, variables)
    counts: Any  # int64 (rows,)
    cells: Any  # int64 (variables + 1,)


class SplitRules(NamedTuple):
    """When a node is split."""

    logs: Any  # int64: n log(n + 1) in units, for small n
    sums: Any  # int64: n log(n + levels of the target) in units, for small n
    unit: float  # units of one nat
    threshold: int  # units that a split must gain more than
    noise: int  # units that rounding may make of nothing
    min_rows: int
    max_depth: int


class Nodes(NamedTuple):
    """The nodes of a tree, each after its parent; a leaf has no children and tests no variable: -1."""

    variable: Any  # int32 (nodes,)
    level: Any  # int32 (nodes,)
    gain: Any  # int64 (nodes,): in units
    where_true: Any  # int32 (nodes,): the child where variable = level
    where_false: Any  # int32 (nodes,)
    depth: Any  # int32 (nodes,)
    begin: Any  # int64 (nodes,): its rows, as places in the order
    end: Any  # int64 (nodes,)


class TreeWorkspace(NamedTuple):
    """Buffers that a tree needs while it grows."""

    order: Any  # int32 (rows,): rows, those of a node side by side
    spare: Any  # int32 (rows,)
    stack: Any  # int32 (stack,): nodes to be split
    tables: Any  # int64 (stack, levels of the target, cells): their counts
    state: Any  # int64 (STATE_SIZE,)


@inlined
def _in_units(n, more, unit):
    return np.int64(np.rint(n * np.log(np.float64(n + more)) * unit))


@compiled
def fill_logs(logs, more, unit):
    """Write n log(n + more) in units for n = 0, 1, 2, ..."""
    for n in range(logs.shape[0]):
        logs[n] = _in_units(n, more, unit)


@inlined
def _log_of(n, more, logs, unit):
    return logs[n] if n < logs.shape[0] else _in_units(n, more, unit)


@inlined
def _is_settled(table, column, negated, own, rules, n_levels):
    """Tell whether a node, or one side of its split at a column, is too small or too pure for any split."""
    total, known = np.int64(0), np.int64(0)
    for t in range(n_levels):
        count = table[t, own + t]
        if column >= 0:
            count = count - table[t, column] if negated else table[t, column]
        total += count
        known += _log_of(count, 1, rules.logs, rules.unit)
    # A split cannot gain more than there is to know.
    unknown = _log_of(total, n_levels, rules.sums, rules.unit) - known
    return total < 2 * rules.min_rows or unknown + rules.noise <= rules.threshold


@inlined
def _best_split(table, target, cells, rules, n_levels):
    """Return variable, level and gain of the best split, the first of equals; the variable -1 where none is.

    The log-likelihood of a node of M rows, c_t of them at level t of r, is sum c_t log((c_t + 1) / (M + r)).
    """
    logs, sums, unit = rules.logs, rules.sums, rules.unit
    own = cells[target]
    total, known = np.int64(0), np.int64(0)
    for t in range(n_levels):
        total += table[t, own + t]
        known += _log_of(table[t, own + t], 1, logs, unit)
    now = known - _log_of(total, n_levels, sums, unit)
    best_variable, best_level, best = np.int64(-1), np.int64(-1), now + rules.threshold
    for v in range(cells.shape[0] - 1):
        n_cells = cells[v + 1] - cells[v]
        # Of two levels, both make the same split.
        for level in range(0 if v == target else 1 if n_cells == 2 else n_cells):
            cell = cells[v] + level
            inside, parts = np.int64(0), np.int64(0)
            for t in range(n_levels):
                count = table[t, cell]
                inside += count
                parts += _log_of(count, 1, logs, unit) + _log_of(table[t, own + t] - count, 1, logs, unit)
            outside = total - inside
            if inside < rules.min_rows or outside < rules.min_rows:
                continue
            score = parts - _log_of(inside, n_levels, sums, unit) - _log_of(outside, n_levels, sums, unit)
            if score > best + rules.noise:
                best_variable, best_level, best = np.int64(v), np.int64(level), score
    return best_variable, best_level, best - now


@inlined
def _count(table, target, codes, counts, cells, order, begin, end):
    n_variables = cells.shape[0] - 1
    for i in range(begin, end):
        row = order[i]
        count = counts[row]
        t = np.int64(codes[row, target])
        for v in range(n_variables):
            table[t, cells[v] + np.int64(codes[row, v])] += count


@inlined
def _count_on(top, target, codes, counts, cells, order, stack, tables, nodes, state):
    """Count some rows of the topmost node; once all are, take them from its sibling's. Returns the cells."""
    node = np.int64(stack[top])
    table = borrowed(tables[top])
    begin = nodes.begin[node] + state[_COUNTED]
    end = min(nodes.end[node], begin + _BLOCK)
    _count(table, target, codes, counts, cells, order, begin, end)
    state[_COUNTED] += end - begin
    if end == nodes.end[node]:
        state[_COUNTING] = 0
        if top > 0 and nodes.depth[stack[top - 1]] == nodes.depth[node]:
            sibling = borrowed(tables[top - 1])
            for t in range(table.shape[0]):
                for cell in range(table.shape[1]):
                    sibling[t, cell] -= table[t, cell]
    return (end - begin) * (cells.shape[0] - 1)


@inlined
def _divide(order, spare, codes, variable, level, begin, end):
    """Put the rows where variable = level first; returns where the others begin."""
    middle, n_spare = begin, 0
    for i in range(begin, end):
        row = order[i]
        if codes[row, variable] == level:
            order[middle] = row
            middle += 1
        else:
            spare[n_spare] = row
            n_spare += 1
    for i in range(n_spare):
        order[middle + i] = spare[i]
    return middle


@inlined
def _add_node(nodes, state, depth, begin, end):
    node = state[N_NODES]
    state[N_NODES] = node + 1
    nodes.variable[node] = -1
    nodes.level[node] = -1
    nodes.gain[node] = 0
    nodes.where_true[node] = -1
    nodes.where_false[node] = -1
    nodes.depth[node] = depth
    nodes.begin[node] = begin
    nodes.end[node] = end
    return node


@inlined
def _push(top, node, stack, tables, state):
    """Put a node on the stack, to be counted."""
    stack[top] = node
    state[_N_STACKED] = top + 1
    state[_COUNTING] = 1
    state[_COUNTED] = 0
    table = borrowed(tables[top])
    for t in range(table.shape[0]):
        for cell in range(table.shape[1]):
            table[t, cell] = 0


@compiled
def plant(nodes, workspace):
    """Begin a tree: all rows are at its root, and none is counted."""
    nodes = borrowed(nodes)
    order, state = borrowed(workspace.order), borrowed(workspace.state)
    for row in range(order.shape[0]):
        order[row] = row
    state[N_NODES] = 0
    root = _add_node(nodes, state, 0, 0, order.shape[0])
    _push(0, root, borrowed(workspace.stack), borrowed(workspace.tables), state)


@compiled
def grow(target, rows, rules, nodes, workspace, budget):
    """Split nodes until about `budget` cells were counted; returns whether the tree is complete.

    The table of a node is where the node is in the stack. Of two children the one of fewer rows is counted
    and split first; what it leaves of their parent's table is the other's. So at most log2(rows) + 2 nodes
    are ever on the stack.
    """
    codes, counts, cells = borrowed(rows.codes), borrowed(rows.counts), borrowed(rows.cells)
    order, spare, stack = borrowed(workspace.order), borrowed(workspace.spare), borrowed(workspace.stack)
    tables, state, nodes = borrowed(workspace.tables), borrowed(workspace.state), borrowed(nodes)
    rules = SplitRules(
        borrowed(rules.logs), borrowed(rules.sums), rules.unit, rules.threshold, rules.noise,
        rules.min_rows, rules.max_depth,
    )  # fmt: skip
    n_levels, n_cells, own = tables.shape[1], tables.shape[2], cells[target]
    while state[_N_STACKED] > 0:
        if budget < 0:
            return False
        top = state[_N_STACKED] - 1
        if state[_COUNTING]:
            budget -= _count_on(top, target, codes, counts, cells, order, stack, tables, nodes, state)
            continue
        state[_N_STACKED] = top
        node, table = np.int64(stack[top]), borrowed(tables[top])
        depth = nodes.depth[node] + 1
        if depth > rules.max_depth or _is_settled(table, -1, False, own, rules, n_levels):
            continue
        variable, level, gain = _best_split(table, target, cells, rules, n_levels)
        budget -= n_levels * n_cells
        if variable < 0:
            continue
        begin, end = nodes.begin[node], nodes.end[node]
        middle = _divide(order, spare, codes, variable, level, begin, end)
        here = _add_node(nodes, state, depth, begin, middle)
        there = _add_node(nodes, state, depth, middle, end)
        nodes.variable[node], nodes.level[node], nodes.gain[node] = variable, level, gain
        nodes.where_true[node], nodes.where_false[node] = here, there
        cell = cells[variable] + level
        if _is_settled(table, cell, False, own, rules, n_levels) and _is_settled(
            table, cell, True, own, rules, n_levels
        ):
            continue
        here_is_small = middle - begin <= end - middle
        stack[top] = there if here_is_small else here
        _push(top + 1, here if here_is_small else there, stack, tables, state)
    return True
