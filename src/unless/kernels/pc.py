"""Run PC in all contexts at once, round by round: contexts that ask the same question ask it together.

Round k takes the pairs (a, b) one after the other. For each pair the sets W of k neighbours of a are walked
as a tree: a variable and a level at each depth, variables in their order. At each node of the tree stand the
contexts that are linked to the variables on the path and show its levels; a leaf is one question, asked once
for all contexts there. If the answer is "independent", they lose the link. Each context so meets its own sets
W in lexicographic order, whatever the others do. Variables are numbered in the order the learner visits them.

The two ends of a pair have one row of links where adjacency is shared: what one end removes, the other sees.
Where it is independent they have a row each, so that no variable sees the removals of another.

The walk keeps its state in arrays of the caller's, so that a call may stop between two questions (to let
the caller widen the memo, show progress or be interrupted) and be taken up again.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.answers import INDEPENDENT, UNDECIDED, decide
from unless.kernels.bits import has_bit
from unless.kernels.compiling import compiled, inlined, popcount, trailing_zeros, without_refcount
from unless.kernels.memo import keep, known_answer
from unless.kernels.slices import condition_on, count, split_by_level, take_all

_ZERO, _ONE = np.uint64(0), np.uint64(1)
# What a step costs besides the words and rows it reads, in units of about a nanosecond.
_STEP_COST = 30
# Columns of `Walk.position`: the pair, the depth of the tree (-1 between two pairs), and the depth down to
# which the slices of the table are those of the path.
NODE, OTHER, DEPTH, SOUND = 0, 1, 2, 3


class ContextSet(NamedTuple):
    """The contexts of a shard and the links they still have."""

    codes: Any  # uint16 (variables, contexts)
    offsets: Any  # int64 (variables + 1,): first bitmap of each variable
    bitmaps: Any  # uint64 (levels of all variables, words): the contexts that show a level
    links: Any  # uint64 (rows of links, words): the contexts that link a pair
    link_row: Any  # int64 (variables, variables): the row of links of a pair as its first variable has it
    near: Any  # uint64 (contexts, words of variables): what each context links to the node at hand
    able: Any  # uint64 (words,): the contexts that link enough of them for a set W


class Walk(NamedTuple):
    """Where the walk stands: at each depth the contexts there, and what is still to be tried."""

    wide: Any  # uint64 (depths, words): the contexts as a bitmap
    listed: Any  # int32 (depths, longest list + 1): or as a list, sorted by the level that led to them
    bounds: Any  # int64 (depths, 2): their range in the list, or -1 and their number
    buckets: Any  # int64 (depths, most levels + 1): where the contexts of each level end
    todo: Any  # uint64 (depths, words of variables): variables still to come
    level: Any  # int64 (depths,): the next level of the variable at hand, or -1 for the next variable
    path: Any  # int64 (depths, 2): the condition that led to each depth
    names: Any  # uint64 (depths, 2): the key of the conditions so far
    position: Any  # int64 (4,)


@inlined
def links_of(a, b, context_set):
    """Return the contexts in which b is a neighbour of a."""
    return context_set.links[context_set.link_row[a, b]]


@inlined
def gather_neighbours(node, k, context_set):
    """Write down what each context links to a node, and which contexts link more than k variables."""
    n_variables, n_contexts = context_set.codes.shape
    near, able = context_set.near, context_set.able
    for context in range(n_contexts):
        for word in range(near.shape[1]):
            near[context, word] = _ZERO
    for other in range(n_variables):
        if other != node:
            links = links_of(node, other, context_set)
            for word in range(links.shape[0]):
                rest = links[word]
                while rest != _ZERO:
                    context = (word << 6) + np.int64(trailing_zeros(rest))
                    rest &= rest - _ONE
                    near[context, other >> 6] |= _ONE << np.uint64(other & 63)
    for word in range(able.shape[0]):
        able[word] = _ZERO
    for context in range(n_contexts):
        degree = _ZERO
        for word in range(near.shape[1]):
            degree += popcount(near[context, word])
        if np.int64(degree) > k:
            able[context >> 6] |= _ONE << np.uint64(context & 63)


@inlined
def gather_contexts(node, other, context_set, walk):
    """Put the contexts that link a pair, and enough besides, at the root; returns their number."""
    links, root = links_of(node, other, context_set), walk.wide[0]
    size = _ZERO
    for word in range(links.shape[0]):
        both = links[word] & context_set.able[word]
        root[word] = both
        size += popcount(both)
    walk.bounds[0, 0] = -1
    walk.bounds[0, 1] = np.int64(size)
    return np.int64(size)


@inlined
def _list_contexts(depth, walk):
    size = 0
    for word in range(walk.wide.shape[1]):
        rest = walk.wide[depth, word]
        while rest != _ZERO:
            walk.listed[depth, size] = (word << 6) + np.int64(trailing_zeros(rest))
            rest &= rest - _ONE
            size += 1
    walk.bounds[depth, 0] = 0


@inlined
def _linked_variables(depth, node, first, word, context_set, walk):
    """Return, as one word of a set, the variables that some context at a depth links to the node."""
    begin, end = walk.bounds[depth, 0], walk.bounds[depth, 1]
    union = _ZERO
    if begin >= 0:
        for i in range(begin, end):
            union |= context_set.near[walk.listed[depth, i], word]
        return union
    for variable in range(max(first, word << 6), min(context_set.codes.shape[0], (word + 1) << 6)):
        if variable != node:
            links = links_of(node, variable, context_set)
            for i in range(links.shape[0]):
                if walk.wide[depth, i] & links[i] != _ZERO:
                    union |= _ONE << np.uint64(variable & 63)
                    break
    return union


@inlined
def enter(depth, node, other, context_set, walk):
    """Find the variables that may come next: linked in some context, and behind the last one."""
    if walk.bounds[depth, 0] < 0 and walk.bounds[depth, 1] < walk.listed.shape[1]:
        _list_contexts(depth, walk)
    first = walk.path[depth, 0] + 1 if depth > 0 else 0
    for word in range(walk.todo.shape[1]):
        variables = _ZERO
        if word >= first >> 6:
            variables = _linked_variables(depth, node, first, word, context_set, walk)
        if word == first >> 6:
            variables &= ~_ZERO << np.uint64(first & 63)
        if word == other >> 6:
            variables &= ~(_ONE << np.uint64(other & 63))
        walk.todo[depth, word] = variables
    walk.level[depth] = -1


@inlined
def _next_variable(depth, n_needed, walk):
    """Take the next variable, if there are enough of them for a whole set W; -1 if not."""
    n_left, first = _ZERO, -1
    for word in range(walk.todo.shape[1]):
        rest = walk.todo[depth, word]
        n_left += popcount(rest)
        if first < 0 and rest != _ZERO:
            first = (word << 6) + np.int64(trailing_zeros(rest))
    if np.int64(n_left) < n_needed:
        return -1
    walk.todo[depth, first >> 6] ^= _ONE << np.uint64(first & 63)
    return first


@inlined
def _sort(depth, variable, other, context_set, walk):
    """Sort the listed contexts that link a variable, and still the pair, by their level of it."""
    source, target, buckets = walk.listed[depth], walk.listed[depth + 1], walk.buckets[depth + 1]
    codes, near = context_set.codes[variable], context_set.near
    begin, end = walk.bounds[depth, 0], walk.bounds[depth, 1]
    n_levels = context_set.offsets[variable + 1] - context_set.offsets[variable]
    for level in range(n_levels + 1):
        buckets[level] = 0
    for i in range(begin, end):
        context = source[i]
        if has_bit(near, context, variable) and has_bit(near, context, other):
            buckets[np.int64(codes[context]) + 1] += 1
    for level in range(n_levels):
        buckets[level + 1] += buckets[level]
    for i in range(begin, end):
        context = source[i]
        if has_bit(near, context, variable) and has_bit(near, context, other):
            level = np.int64(codes[context])
            target[buckets[level]] = context
            buckets[level] += 1


@inlined
def _contexts_at_level(depth, node, other, variable, level, context_set, walk):
    """Lead the contexts that show a level of a variable one depth down; returns their number."""
    if walk.bounds[depth, 0] >= 0:
        begin = walk.buckets[depth + 1, level - 1] if level > 0 else np.int64(0)
        end = walk.buckets[depth + 1, level]
        walk.bounds[depth + 1, 0] = begin
        walk.bounds[depth + 1, 1] = end
        return end - begin
    source, target = walk.wide[depth], walk.wide[depth + 1]
    bitmap = context_set.bitmaps[context_set.offsets[variable] + level]
    links, pair = links_of(node, variable, context_set), links_of(node, other, context_set)
    size = _ZERO
    for word in range(target.shape[0]):
        both = source[word] & bitmap[word] & links[word] & pair[word]
        target[word] = both
        size += popcount(both)
    walk.bounds[depth + 1, 0] = -1
    walk.bounds[depth + 1, 1] = np.int64(size)
    return np.int64(size)


@inlined
def move(depth, k, node, other, context_set, keys, walk):
    """Go one depth down to the next condition that some context meets, or up if there is none left."""
    level = walk.level[depth]
    if level < 0:
        variable = _next_variable(depth, k - depth, walk)
        if variable < 0:
            return depth - 1
        walk.path[depth + 1, 0] = variable
        if walk.bounds[depth, 0] >= 0:
            _sort(depth, variable, other, context_set, walk)
        level = np.int64(0)
    variable = walk.path[depth + 1, 0]
    n_levels = context_set.offsets[variable + 1] - context_set.offsets[variable]
    size = np.int64(0)
    while level < n_levels and size == 0:
        size = _contexts_at_level(depth, node, other, variable, level, context_set, walk)
        level += 1
    walk.level[depth] = level if level < n_levels else -1
    if size == 0:
        return depth
    walk.path[depth + 1, 1] = level - 1
    condition = context_set.offsets[variable] + level - 1
    for half in range(2):
        walk.names[depth + 1, half] = walk.names[depth, half] ^ keys.conditions[condition, half]
    walk.position[SOUND] = min(walk.position[SOUND], depth)
    if depth + 1 < k:
        enter(depth + 1, node, other, context_set, walk)
    return depth + 1


@inlined
def _ask(k, node, other, table, rules, keys, memo, slices, crosstab, walk):
    """Answer the question of a leaf and tell whether it is new."""
    first = walk.names[k, 0] ^ keys.asked[node, 0] ^ keys.asked[other, 0]
    second = walk.names[k, 1] ^ keys.asked[node, 1] ^ keys.asked[other, 1]
    answer = known_answer(memo, first, second)
    if answer != 0:
        return answer, 0
    for depth in range(walk.position[SOUND], k):
        condition_on(depth, depth + 1, walk.path[depth + 1, 0], walk.path[depth + 1, 1], table, slices)
    walk.position[SOUND] = k
    n_a = table.offsets[node + 1] - table.offsets[node]
    n_b = table.offsets[other + 1] - table.offsets[other]
    total = split_by_level(k, node, n_a, table, slices, crosstab)
    count(k, other, n_a, n_b, table, slices, crosstab)
    answer = decide(crosstab, n_a, n_b, total, rules, node > other)
    # Another thread may have been quicker.
    return answer, 1 if keep(memo, first, second, answer) >= 0 else 0


@inlined
def _remove(k, node, other, context_set, walk):
    """Take the link of a pair from the contexts of a leaf."""
    links, near = links_of(node, other, context_set), context_set.near
    begin, end = walk.bounds[k, 0], walk.bounds[k, 1]
    gone = ~(_ONE << np.uint64(other & 63))
    if begin >= 0:
        for i in range(begin, end):
            context = walk.listed[k, i]
            near[context, other >> 6] &= gone
            links[context >> 6] &= ~(_ONE << np.uint64(context & 63))
        return
    for word in range(links.shape[0]):
        rest = walk.wide[k, word]
        links[word] &= ~rest
        while rest != _ZERO:
            context = (word << 6) + np.int64(trailing_zeros(rest))
            rest &= rest - _ONE
            near[context, other >> 6] &= gone


@inlined
def _effort(depth, slices, walk):
    """Estimate what a step at a depth costs: the contexts there, and the slice behind a question."""
    n_contexts = walk.bounds[depth, 1] - walk.bounds[depth, 0]
    if walk.bounds[depth, 0] < 0:
        n_contexts = walk.wide.shape[1]
    n_rows = slices.sizes[walk.position[SOUND]]
    return _STEP_COST + 2 * n_contexts + (2 * n_rows if n_rows >= 0 else 4 * slices.wide.shape[1])


@compiled
def begin_round(table, slices, walk):
    """Put the walk before the first pair."""
    take_all(0, table, slices)
    walk.names[0, :] = _ZERO
    walk.position[NODE], walk.position[OTHER], walk.position[DEPTH], walk.position[SOUND] = -1, -1, -1, 0


@compiled
def run_round(k, context_set, table, rules, keys, memo, slices, crosstab, walk, max_new, effort):
    """Ask about every linked pair given k neighbours, in every context, and remove what is independent.

    Stops after `max_new` new answers or so much `effort`; returns the node it stopped at (the number of
    variables when done), the number of questions asked and of answers new to the memo, which must have
    room for `max_new` of them.
    """
    context_set, walk = without_refcount((context_set, walk))
    memo, keys = without_refcount((memo, keys))
    table, slices, crosstab = without_refcount((table, slices, crosstab))
    rules = without_refcount(rules)
    n_variables, n_contexts = context_set.codes.shape
    node, other, depth = walk.position[NODE], walk.position[OTHER], walk.position[DEPTH]
    n_asked, n_new, spent = 0, 0, 0
    while node < n_variables and n_new < max_new and spent < effort:
        if depth < 0:
            other += 1
            if node < 0 or other == n_variables:
                node, other = node + 1, -1
                if node < n_variables:
                    gather_neighbours(node, k, context_set)
                    spent += n_contexts * (n_variables + 1)
                continue
            spent += context_set.able.shape[0]
            if other == node or has_bit(rules.required, node, other):
                continue
            if gather_contexts(node, other, context_set, walk) == 0:
                continue
            depth = 0
            walk.position[SOUND] = 0
            if k > 0:
                enter(0, node, other, context_set, walk)
        if depth < k:
            depth = move(depth, k, node, other, context_set, keys, walk)
            spent += _effort(max(depth, 0), slices, walk)
            continue
        answer, new = _ask(k, node, other, table, rules, keys, memo, slices, crosstab, walk)
        n_asked += walk.bounds[k, 1] - max(walk.bounds[k, 0], 0)
        n_new += new
        if answer == INDEPENDENT or (answer == UNDECIDED and not rules.keep_undecided):
            _remove(k, node, other, context_set, walk)
        spent += _effort(k, slices, walk)
        depth -= 1
    walk.position[NODE], walk.position[OTHER], walk.position[DEPTH] = node, other, depth
    return node, n_asked, n_new


@compiled
def pack_links(context_set, columns, join_both, rows, packed):
    """Write links as one bit a pair, in the order of itertools.combinations over the columns.

    A link needs one of its ends, or both. `columns` gives each visited variable's column, `rows` the row of
    `packed` of each context.
    """
    n_variables = columns.shape[0]
    for first in range(n_variables):
        for second in range(first + 1, n_variables):
            low, high = min(columns[first], columns[second]), max(columns[first], columns[second])
            target = low * (2 * n_variables - low - 1) // 2 + high - low - 1
            bit = np.uint8(1 << (target & 7))
            forth, back = links_of(first, second, context_set), links_of(second, first, context_set)
            for word in range(forth.shape[0]):
                rest = forth[word] & back[word] if join_both else forth[word] | back[word]
                while rest != _ZERO:
                    context = (word << 6) + np.int64(trailing_zeros(rest))
                    rest &= rest - _ONE
                    packed[rows[context], target >> 3] |= bit
