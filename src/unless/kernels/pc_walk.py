"""Walk the sets W of PC for all contexts at once.

For a pair (a, b) the sets W of one size are walked as a tree: a variable and a level at each depth,
variables in their order. At each node of the tree stand the contexts that are linked to the variables on
the path and show its levels; a leaf is one question. Each context so meets its own sets W in lexicographic
order, whatever the others do.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.bitsets import has_bit
from unless.kernels.compiling import borrowed, inlined, popcount, trailing_zeros

_ZERO, _ONE = np.uint64(0), np.uint64(1)
# Columns of `Walk.place`: the pair, the depth of the tree (-1 between two pairs), and the depth down to
# which the slices of the table are those of the path.
NODE, OTHER, DEPTH, SOUND = 0, 1, 2, 3


class Crowd(NamedTuple):
    """The contexts of a shard and the links they still have."""

    codes: Any  # uint16 (variables, contexts)
    offsets: Any  # int64 (variables + 1,): first bitmap of each variable
    bitmaps: Any  # uint64 (levels of all variables, words): the contexts that show a level
    links: Any  # uint64 (pairs, words): the contexts that link a pair
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
    place: Any  # int64 (4,)


@inlined
def borrowed_crowd(crowd):
    """Return the contexts without the owners of their arrays."""
    return Crowd(
        borrowed(crowd.codes),
        borrowed(crowd.offsets),
        borrowed(crowd.bitmaps),
        borrowed(crowd.links),
        borrowed(crowd.near),
        borrowed(crowd.able),
    )


@inlined
def borrowed_walk(walk):
    """Return the walk without the owners of its arrays."""
    return Walk(
        borrowed(walk.wide),
        borrowed(walk.listed),
        borrowed(walk.bounds),
        borrowed(walk.buckets),
        borrowed(walk.todo),
        borrowed(walk.level),
        borrowed(walk.path),
        borrowed(walk.names),
        borrowed(walk.place),
    )


@inlined
def links_of(a, b, crowd):
    """Return the contexts that link a pair."""
    low, high = min(a, b), max(a, b)
    return crowd.links[low * (2 * crowd.codes.shape[0] - low - 1) // 2 + high - low - 1]


@inlined
def gather_neighbours(node, k, crowd):
    """Write down what each context links to a node, and which contexts link more than k variables."""
    n_variables, n_contexts = crowd.codes.shape
    near, able = crowd.near, crowd.able
    for context in range(n_contexts):
        for word in range(near.shape[1]):
            near[context, word] = _ZERO
    for other in range(n_variables):
        if other != node:
            links = links_of(node, other, crowd)
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
def gather_contexts(node, other, crowd, walk):
    """Put the contexts that link a pair, and enough besides, at the root; returns their number."""
    links, root = links_of(node, other, crowd), walk.wide[0]
    size = _ZERO
    for word in range(links.shape[0]):
        both = links[word] & crowd.able[word]
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
def _linked_variables(depth, node, first, word, crowd, walk):
    """Return, as one word of a set, the variables that some context at a depth links to the node."""
    begin, end = walk.bounds[depth, 0], walk.bounds[depth, 1]
    union = _ZERO
    if begin >= 0:
        for i in range(begin, end):
            union |= crowd.near[walk.listed[depth, i], word]
        return union
    for variable in range(max(first, word << 6), min(crowd.codes.shape[0], (word + 1) << 6)):
        if variable != node:
            links = links_of(node, variable, crowd)
            for i in range(links.shape[0]):
                if walk.wide[depth, i] & links[i] != _ZERO:
                    union |= _ONE << np.uint64(variable & 63)
                    break
    return union


@inlined
def enter(depth, node, other, crowd, walk):
    """Find the variables that may come next: linked in some context, and behind the last one."""
    if walk.bounds[depth, 0] < 0 and walk.bounds[depth, 1] < walk.listed.shape[1]:
        _list_contexts(depth, walk)
    first = walk.path[depth, 0] + 1 if depth > 0 else 0
    for word in range(walk.todo.shape[1]):
        variables = _ZERO
        if word >= first >> 6:
            variables = _linked_variables(depth, node, first, word, crowd, walk)
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
def _sort(depth, variable, other, crowd, walk):
    """Sort the listed contexts that link a variable, and still the pair, by their level of it."""
    source, target, buckets = walk.listed[depth], walk.listed[depth + 1], walk.buckets[depth + 1]
    codes, near = crowd.codes[variable], crowd.near
    begin, end = walk.bounds[depth, 0], walk.bounds[depth, 1]
    n_levels = crowd.offsets[variable + 1] - crowd.offsets[variable]
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
def _narrow_contexts(depth, node, other, variable, level, crowd, walk):
    """Lead the contexts that show a level of a variable one depth down; returns their number."""
    if walk.bounds[depth, 0] >= 0:
        begin = walk.buckets[depth + 1, level - 1] if level > 0 else np.int64(0)
        end = walk.buckets[depth + 1, level]
        walk.bounds[depth + 1, 0] = begin
        walk.bounds[depth + 1, 1] = end
        return end - begin
    source, target = walk.wide[depth], walk.wide[depth + 1]
    bitmap = crowd.bitmaps[crowd.offsets[variable] + level]
    links, pair = links_of(node, variable, crowd), links_of(node, other, crowd)
    size = _ZERO
    for word in range(target.shape[0]):
        both = source[word] & bitmap[word] & links[word] & pair[word]
        target[word] = both
        size += popcount(both)
    walk.bounds[depth + 1, 0] = -1
    walk.bounds[depth + 1, 1] = np.int64(size)
    return np.int64(size)


@inlined
def move(depth, k, node, other, crowd, keys, walk):
    """Go one depth down to the next condition that some context meets, or up if there is none left."""
    level = walk.level[depth]
    if level < 0:
        variable = _next_variable(depth, k - depth, walk)
        if variable < 0:
            return depth - 1
        walk.path[depth + 1, 0] = variable
        if walk.bounds[depth, 0] >= 0:
            _sort(depth, variable, other, crowd, walk)
        level = np.int64(0)
    variable = walk.path[depth + 1, 0]
    n_levels = crowd.offsets[variable + 1] - crowd.offsets[variable]
    size = np.int64(0)
    while level < n_levels and size == 0:
        size = _narrow_contexts(depth, node, other, variable, level, crowd, walk)
        level += 1
    walk.level[depth] = level if level < n_levels else -1
    if size == 0:
        return depth
    walk.path[depth + 1, 1] = level - 1
    condition = crowd.offsets[variable] + level - 1
    for half in range(2):
        walk.names[depth + 1, half] = walk.names[depth, half] ^ keys.conditions[condition, half]
    walk.place[SOUND] = min(walk.place[SOUND], depth)
    if depth + 1 < k:
        enter(depth + 1, node, other, crowd, walk)
    return depth + 1
