"""Clique trees under gates: their tables, messages in them, and walks down to states.

A table of a clique is laid out as rows (states of the separator towards its parent) of inner cells (states of
the variables that are summed out here). A message upwards is then a row sum, and after it the table holds
P(inner | separator), from which messages downwards and samples follow without division. Where a cell of the
parent meets a row of the child is `meeting[high] + meeting[low]`: two short tables instead of one long one.

Messages lead from evidence to the partition function and all marginals; walks down a forest lead to its most
probable state, or to random ones.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.compiling import compiled, exp, helper, inlined, log, without_refcount

# Products of two numbers at or above these cannot underflow; what is smaller is left to logs.
_LEAST_MESSAGE, _LEAST_CELL = 1e-100, 1e-200
# An index that cannot be negative need not be counted from the end: loops then take many cells at once.
_at = np.uint64


class Wiring(NamedTuple):
    """The conditions of features and the cliques they go to."""

    start: Any  # (features + 1,)
    level: Any
    equal: Any
    axis: Any  # of each condition: the axis of its variable in the clique of its feature
    home: Any  # (features,): the clique
    clique_start: Any  # (cliques + 1,)
    clique_levels: Any


@compiled
def write_meeting_cells(
    parent, clique_start, clique_variable, clique_levels, n_low, n_outer, starts, meeting_cells
):
    """Write, for each clique, where its parent's high and low cells meet its rows (the outer variables)."""
    for c in range(parent.shape[0]):
        up = parent[c]
        if up < 0:
            continue
        # strides of the rows of c, by position in the parent
        first, last = clique_start[up], clique_start[up + 1]
        strides = np.zeros(last - first, np.int64)
        stride = 1
        for i in range(n_outer[c]):
            k = clique_start[c] + n_outer[c] - 1 - i
            for p in range(first, last):
                if clique_variable[p] == clique_variable[k]:
                    strides[p - first] = stride
            stride *= clique_levels[k]
        split = last
        size = 1
        while size < n_low[up]:
            split -= 1
            size *= clique_levels[split]
        _write_digits(clique_levels, strides, first, first, split, starts[c, 0], meeting_cells)
        _write_digits(clique_levels, strides, first, split, last, starts[c, 1], meeting_cells)


@helper
def _write_digits(levels, strides, offset, first, last, begin, meeting_cells):
    """Write the sum of digit times stride for each state of the variables from first to last."""
    meeting_cells[begin] = 0
    size = 1
    for i in range(last - first):
        k = last - 1 - i
        for digit in range(1, levels[k]):
            for cell in range(size):
                meeting_cells[begin + digit * size + cell] = (
                    meeting_cells[begin + cell] + digit * strides[k - offset]
                )
        size *= levels[k]


@helper
def _list_cells(first, last, level, equal, axis, origin, low, high, sizes, strides, cells):
    """List the cells of the axes from low to high in which the conditions from first to last hold."""
    cells[0] = 0
    n_cells = 1
    for i in range(high - low):
        k = high - 1 - i
        kept = 0
        shift = 0
        for digit in range(sizes[k]):
            holds = True
            for c in range(first, last):
                if origin + axis[c] == k and (digit == level[c]) != equal[c]:
                    holds = False
                    break
            if not holds:
                continue
            # The first digit moves the cells there are, each further one adds a moved copy of them.
            move = digit * strides[k] - shift
            for cell in range(n_cells):
                cells[kept * n_cells + cell] = cells[cell] + move
            shift = digit * strides[k] if kept == 0 else shift
            kept += 1
        n_cells *= kept
    return n_cells


@helper
def _longest(cell_start, n_low):
    """Return the length of the longest list of low or high places of a clique."""
    longest = 1
    for clique in range(n_low.shape[0]):
        cells = cell_start[clique + 1] - cell_start[clique]
        longest = max(longest, n_low[clique], cells // n_low[clique])
    return longest


@helper
def _list_holding(feature, wiring, n_low, strides, lows, highs):
    """List the low and the high places of the cells in which a feature holds; return how many of each."""
    clique = wiring.home[feature]
    first, last = wiring.clique_start[clique], wiring.clique_start[clique + 1]
    sizes = wiring.clique_levels
    size = 1
    split = last
    for i in range(last - first):
        k = last - 1 - i
        strides[k] = size
        size *= sizes[k]
        if size <= n_low[clique]:
            split = k
    a, b = wiring.start[feature], wiring.start[feature + 1]
    level, equal, axis = wiring.level, wiring.equal, wiring.axis
    n_lows = _list_cells(a, b, level, equal, axis, first, split, last, sizes, strides, lows)
    n_highs = _list_cells(a, b, level, equal, axis, first, first, split, sizes, strides, highs)
    return n_lows, n_highs


@compiled
def write_weights(wiring, weights, cell_start, n_low, table):
    """Add the weight of each feature to the cells of its clique where its conditions hold."""
    longest = _longest(cell_start, n_low)
    lows, highs = np.empty(longest, np.int64), np.empty(longest, np.int64)
    strides = np.empty(wiring.clique_levels.shape[0], np.int64)
    for feature in range(weights.shape[0]):
        n_lows, n_highs = _list_holding(feature, wiring, n_low, strides, lows, highs)
        weight = weights[feature]
        for i in range(n_highs):
            begin = cell_start[wiring.home[feature]] + highs[i]
            for k in range(n_lows):
                table[begin + lows[k]] += weight


@compiled
def sum_holding(wiring, cell_start, n_low, table, sums):
    """Add up, for each feature, the cells of its clique where its conditions hold."""
    longest = _longest(cell_start, n_low)
    lows, highs = np.empty(longest, np.int64), np.empty(longest, np.int64)
    strides = np.empty(wiring.clique_levels.shape[0], np.int64)
    for feature in range(sums.shape[0]):
        n_lows, n_highs = _list_holding(feature, wiring, n_low, strides, lows, highs)
        total = 0.0
        for i in range(n_highs):
            begin = cell_start[wiring.home[feature]] + highs[i]
            for k in range(n_lows):
                total += table[begin + lows[k]]
        sums[feature] = total


@compiled
def rescale(cell_start, table, scaled, tops):
    """Write exp(log - largest log) of each clique; return the smallest of those that are not zero."""
    least = 1.0
    for clique in range(tops.shape[0]):
        top = -np.inf
        for cell in range(cell_start[clique], cell_start[clique + 1]):
            top = max(top, table[cell])
        tops[clique] = top
        for cell in range(cell_start[clique], cell_start[clique + 1]):
            value = exp(table[cell] - top) if top > -np.inf else 0.0
            scaled[cell] = value
            if table[cell] > -np.inf:
                least = min(least, value)
    return least


class Forest(NamedTuple):
    """A plan, flattened: cliques, children before parents, and the nodes (trees or gates) above them."""

    cell_start: Any  # (cliques + 1,)
    row_start: Any  # (cliques + 1,): the separators' states, one after another
    n_low: Any  # (cliques,): how many cells share a high place
    parent: Any  # (cliques,): -1 at the root of a tree
    high_start: Any  # (cliques,): where the parent's cells meet the rows
    low_start: Any  # (cliques,)
    meeting: Any
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
        log_sum += log(top)
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
            place = row0 + forest.meeting[high + h]
            for i in range(n_low):
                value = work[_at(cell + i)] * message[_at(place + forest.meeting[_at(low + i)])]
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
        place = row0 + forest.meeting[high + h]
        for i in range(n_low):
            work[_at(cell + i)] += message[_at(place + forest.meeting[_at(low + i)])]
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
                work[cell] = exp(work[cell] - top) if top > -np.inf else 0.0
                total += work[cell]
            if total > 0.0:
                for cell in range(begin, begin + inner):
                    work[cell] /= total
            message[row] = top + log(total) if total > 0.0 else -np.inf
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
        total += exp(log_branch[branch] - top) if top > -np.inf else 0.0
    return top + log(total) if total > 0.0 else -np.inf


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
                place = row0 + forest.meeting[high + h]
                for k in range(n_low):
                    message[_at(place + forest.meeting[_at(low + k)])] += work[_at(cell + k)]
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
            value = share[node] * exp(log_branch[branch] - log_sums[node])
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
    forest = without_refcount(plan)
    n_nodes = forest.gate.shape[0]
    work = without_refcount(room)
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


@helper
def _maximise(node, evidence, forest, logs, work, message, best):
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
            values[node] = _maximise(node, evidence, forest, logs, work, message, best)
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
                        share = exp(log_branch[b] - log_sums[node])
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
