"""Kernels of the search for features: probability trees (DTSL), and conjunctions of levels (GSSL).

A probability tree predicts the levels of a variable from the other variables, split by split. Gains are whole
numbers, n log m in units of a power of two: sums are then exact in any order, so that splits which gain the
same are seen to.

A conjunction is a row and the set of variables it keeps of that row, its scope. Conjunctions are generated
from rows by dropping variables at random, and screened by their slopes. Two are one when they have the same
scope and their rows agree there, which is compared and not trusted to a hash.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.compiling import compiled, inlined, log, trailing_zeros, without_refcount

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
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
    return np.int64(np.rint(n * log(np.float64(n + more)) * unit))


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
    table = without_refcount(tables[top])
    begin = nodes.begin[node] + state[_COUNTED]
    end = min(nodes.end[node], begin + _BLOCK)
    _count(table, target, codes, counts, cells, order, begin, end)
    state[_COUNTED] += end - begin
    if end == nodes.end[node]:
        state[_COUNTING] = 0
        if top > 0 and nodes.depth[stack[top - 1]] == nodes.depth[node]:
            sibling = without_refcount(tables[top - 1])
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
    table = without_refcount(tables[top])
    for t in range(table.shape[0]):
        for cell in range(table.shape[1]):
            table[t, cell] = 0


@compiled
def plant(nodes, workspace):
    """Begin a tree: all rows are at its root, and none is counted."""
    nodes = without_refcount(nodes)
    order, state = without_refcount((workspace.order, workspace.state))
    for row in range(order.shape[0]):
        order[row] = row
    state[N_NODES] = 0
    root = _add_node(nodes, state, 0, 0, order.shape[0])
    _push(0, root, without_refcount(workspace.stack), without_refcount(workspace.tables), state)


@compiled
def grow(target, rows, rules, nodes, workspace, budget):
    """Split nodes until about `budget` cells were counted; returns whether the tree is complete.

    The table of a node is where the node is in the stack. Of two children the one of fewer rows is counted
    and split first; what it leaves of their parent's table is the other's. So at most log2(rows) + 2 nodes
    are ever on the stack.
    """
    codes, counts, cells = without_refcount((rows.codes, rows.counts, rows.cells))
    order, spare, stack = without_refcount((workspace.order, workspace.spare, workspace.stack))
    tables, state, nodes = without_refcount((workspace.tables, workspace.state, nodes))
    rules = SplitRules(
        without_refcount(rules.logs), without_refcount(rules.sums), rules.unit, rules.threshold, rules.noise,
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
        node, table = np.int64(stack[top]), without_refcount(tables[top])
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


class Pool(NamedTuple):
    """All features so far, in the order in which they came: first the rows themselves."""

    codes: Any  # uint16 (rows, variables): the table
    first: Any  # int64 (variables,): where the keys of a variable begin
    keys: Any  # uint64 (levels of all variables,): random words that features are hashed by
    row: Any  # int32 (capacity,): the row a feature was made from
    scopes: Any  # uint64 (capacity, words): the variables it keeps
    count: Any  # int32 (capacity,): how often it was generated
    hashes: Any  # uint64 (capacity,)
    slots: Any  # int32 (a power of two): open addressing, one more than the feature, 0 for a gap


@inlined
def _random(state):
    """Return the next 64 random bits: xoshiro256++ (Blackman and Vigna)."""
    a, b, c, d = state[0], state[1], state[2], state[3]
    total = a + d
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + a
    moved = b << np.uint64(17)
    c ^= a
    d ^= b
    state[1] = b ^ c
    state[0] = a ^ d
    state[2] = c ^ moved
    state[3] = (d << np.uint64(45)) | (d >> np.uint64(19))
    return result


@inlined
def _below(state, bound):
    """Return a whole number below a bound of at most 32 bits, each with exactly the same chance (Lemire)."""
    limit = np.uint64(bound)
    product = (_random(state) >> _HALF) * limit
    if product & _LOW < limit:
        least = ((_LOW - limit) + _ONE) % limit
        while product & _LOW < least:
            product = (_random(state) >> _HALF) * limit
    return np.int64(product >> _HALF)


@compiled
def propose(state, n_features, scopes, members, drawn):
    """Pick one of the first features and drop some of its variables at random.

    The pick is uniform; the number dropped is uniform on 1 .. size - 1, and which ones is uniform. Returns
    the feature picked and how many variables are left, which are marked in `drawn` and listed in `members`;
    0 where a feature of one variable was picked, which has nothing to drop.
    """
    picked = _below(state, n_features)
    n_words = scopes.shape[1]
    size = 0
    for word in range(n_words):
        rest = scopes[picked, word]
        drawn[word] = _ZERO
        while rest != _ZERO:
            members[size] = (word << 6) + np.int64(trailing_zeros(rest))
            rest &= rest - _ONE
            size += 1
    if size < 2:
        return picked, 0
    n_kept = size - 1 - _below(state, size - 1)
    # The smaller part is drawn: those kept, or those dropped.
    n_drawn = min(n_kept, size - n_kept)
    for i in range(n_drawn):
        other = i + _below(state, size - i)
        members[i], members[other] = members[other], members[i]
    first, last = (0, n_kept) if n_drawn == n_kept else (n_drawn, size)
    for i in range(first, last):
        drawn[members[i] >> 6] |= _ONE << np.uint64(members[i] & 63)
    for i in range(first, last):
        members[i - first] = members[i]
    return picked, n_kept


@inlined
def _same(pool, feature, row, n_kept, members, drawn):
    for word in range(drawn.shape[0]):
        if pool.scopes[feature, word] != drawn[word]:
            return False
    other = np.int64(pool.row[feature])
    for i in range(n_kept):  # noqa: SIM110 (numba compiles no generators)
        if pool.codes[other, members[i]] != pool.codes[row, members[i]]:
            return False
    return True


@compiled
def generate(state, n_draws, n_features, pool, members, drawn):
    """Draw until the number of draws is done or the pool is full; returns the draws done and the features."""
    state, members, drawn = without_refcount((state, members, drawn))
    pool = without_refcount(pool)
    mask = pool.slots.shape[0] - 1
    capacity = pool.row.shape[0]
    done = 0
    while done < n_draws and n_features < capacity:
        done += 1
        picked, n_kept = propose(state, n_features, pool.scopes, members, drawn)
        if n_kept == 0:
            continue
        row = np.int64(pool.row[picked])
        name = _ZERO
        for i in range(n_kept):
            name ^= pool.keys[pool.first[members[i]] + np.int64(pool.codes[row, members[i]])]
        slot = np.int64(name >> _ONE) & mask
        while True:
            feature = np.int64(pool.slots[slot]) - 1
            if feature < 0:
                pool.slots[slot] = n_features + 1
                pool.row[n_features] = row
                pool.hashes[n_features] = name
                pool.count[n_features] = 1
                for word in range(drawn.shape[0]):
                    pool.scopes[n_features, word] = drawn[word]
                n_features += 1
                break
            if pool.hashes[feature] == name and _same(pool, feature, row, n_kept, members, drawn):
                pool.count[feature] += 1
                break
            slot = (slot + 1) & mask
    return done, n_features


@compiled
def enter(first, last, hashes, slots):
    """Give features their slots in a larger hash table."""
    mask = slots.shape[0] - 1
    for feature in range(first, last):
        slot = np.int64(hashes[feature] >> _ONE) & mask
        while slots[slot] != 0:
            slot = (slot + 1) & mask
        slots[slot] = feature + 1


@compiled
def spell_out(features, row, scopes, codes, variable, level):
    """Write the conditions of some features one after another, each sorted by variable."""
    at = 0
    for k in range(features.shape[0]):
        feature = features[k]
        for word in range(scopes.shape[1]):
            rest = scopes[feature, word]
            while rest != _ZERO:
                column = (word << 6) + np.int64(trailing_zeros(rest))
                variable[at] = column
                level[at] = codes[row[feature], column]
                at += 1
                rest &= rest - _ONE


class Screen(NamedTuple):
    """Features as rows and the variables they keep, and the rows with each level as bitmaps."""

    codes: Any  # uint16 (rows, variables)
    first: Any  # int64 (variables,): the number of each variable's first level among all
    words: Any  # uint64 (levels, words): the rows that have a level
    row: Any  # int32 (features,)
    scopes: Any  # uint64 (features, words of variables)


class ScreenBuffers(NamedTuple):
    """Scratch for one feature at a time.

    A feature enters the conditional of a variable in the rows that meet all its conditions but perhaps the
    one on that variable. So only rows that miss at most one condition count, and those are found for all
    variables of a feature at once, from bitmaps.
    """

    levels: Any  # int64 (variables,): the levels it has
    missed: Any  # uint64 (words,): rows that miss a condition
    again: Any  # uint64 (words,): rows that miss two
    alive: Any  # int64 (words,): words with rows that miss at most one


@inlined
def _find_near_rows(feature, screen, buffers):
    """Find the rows that miss at most one condition; returns the numbers of conditions and of live words."""
    missed, again, alive, words = buffers.missed, buffers.again, buffers.alive, screen.words
    n_words = words.shape[1]
    row = np.int64(screen.row[feature])
    size = 0
    for word in range(n_words):
        missed[word] = _ZERO
        again[word] = _ZERO
    for part in range(screen.scopes.shape[1]):
        rest = screen.scopes[feature, part]
        while rest != _ZERO:
            variable = (part << 6) + np.int64(trailing_zeros(rest))
            rest &= rest - _ONE
            level = screen.first[variable] + np.int64(screen.codes[row, variable])
            buffers.levels[size] = level
            size += 1
            for word in range(n_words):
                absent = ~words[level, word]
                again[word] |= missed[word] & absent
                missed[word] |= absent
    tail = screen.codes.shape[0] & 63
    if tail != 0:
        again[n_words - 1] |= ~((_ONE << np.uint64(tail)) - _ONE)
    n_alive = 0
    for word in range(n_words):
        if again[word] != ~_ZERO:
            alive[n_alive] = word
            n_alive += 1
    return size, n_alive


@inlined
def _entered(level, word, screen, buffers):
    """Return the rows of a word that meet all conditions but perhaps the one on a level."""
    return ~buffers.again[word] & ~(buffers.missed[word] & screen.words[level, word])


@compiled
def add_scores(features, weights, screen, buffers, scores):
    """Add the weights of features to the scores of the levels, row by row, whose conditionals they enter."""
    screen, buffers = without_refcount((screen, buffers))
    scores = without_refcount(scores)
    for k in range(features.shape[0]):
        size, n_alive = _find_near_rows(features[k], screen, buffers)
        for i in range(size):
            level = buffers.levels[i]
            for j in range(n_alive):
                word = buffers.alive[j]
                rest = _entered(level, word, screen, buffers)
                while rest != _ZERO:
                    scores[level, (word << 6) + np.int64(trailing_zeros(rest))] += weights[k]
                    rest &= rest - _ONE


@compiled
def find_slopes(features, screen, buffers, excess, spread, slopes, bends):
    """Sum, for each feature, what the probabilities exceed the rows by where it enters, and their spread."""
    screen, buffers = without_refcount((screen, buffers))
    excess, spread = without_refcount((excess, spread))
    for k in range(features.shape[0]):
        size, n_alive = _find_near_rows(features[k], screen, buffers)
        slope, bend = 0.0, 0.0
        for i in range(size):
            level = buffers.levels[i]
            for j in range(n_alive):
                word = buffers.alive[j]
                rest = _entered(level, word, screen, buffers)
                while rest != _ZERO:
                    row = (word << 6) + np.int64(trailing_zeros(rest))
                    slope += excess[level, row]
                    bend += spread[level, row]
                    rest &= rest - _ONE
        slopes[k] = slope
        bends[k] = bend
