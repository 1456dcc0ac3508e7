"""Grow and shrink the blankets of one variable for whole cohorts of contexts at once.

A cohort is a set of contexts that hold the same blanket with the same values: they ask the same question
of the same rows. It begins with contexts that hold the same blanket, is split by their values of it, and
splits again only when a variable enters the blanket and its contexts differ in it, so that every distinct
question is counted once. Variables are numbered in the order the learner visits them.

The search is a depth-first walk with its stack in arrays of the caller's, so that a call may stop between
two cohorts (to let the caller widen the memo, show progress or be interrupted) and be taken up again.

Threads search at the same time, each with slices and a stack of its own; they share the memo. Where blankets
are shared along the nodes, threads take chunks of the contexts: first all chunks for one node, then all for
the next, as what was found in a chunk must be there at its next node. Else they take nodes, in all contexts.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.answers import DEPENDENT, INDEPENDENT, UNDECIDED, decide
from unless.kernels.bits import GOLDEN, flip_bit, has_bit
from unless.kernels.compiling import compiled, fetch_add, inlined, trailing_zeros, without_refcount
from unless.kernels.memo import keep_and_log, known_answer, prefetch_slot
from unless.kernels.slices import condition_on, count, split_by_level, take_all

_ZERO, _ONE = np.uint64(0), np.uint64(1)
# How many questions ahead the memo is fetched from memory.
_AHEAD = 4
# What a new answer costs at most, in contexts sorted or known answers looked up; a table of more than
# `_FEW_CELLS` cells costs more.
_EFFORT, _FEW_CELLS = 200, 2**8
# Columns of the stack, and what a frame does next: open the blanket its contexts hold already, or grow it.
LOW, HIGH, NEXT, DEPTH, VARIABLE, LEVEL, PHASE = 0, 1, 2, 3, 4, 5, 6
OPEN, GROW = 0, 1
# Contexts are sorted by some bits of a hash of their blankets; so many hash buckets fit the cache.
_MOST_BITS = 15
MOST_BUCKETS = 1 << _MOST_BITS
# How often a thread looks whether a chunk is free before it lets others go on: less than a millisecond.
_LOOKS = 1 << 14


class Search(NamedTuple):
    """The state of a search."""

    stack: Any  # int64 (frames, 7)
    chunks: Any  # int64 (chunks + 1,): where each chunk of contexts begins
    queue: Any  # int64 (1,): how many visits of a chunk have been taken up by all threads
    done: Any  # int64 (chunks,): how many visits of each chunk are finished
    visit: Any  # int64 (2,): the number of the node, and the chunk, that this thread visits; or -1
    contexts: Any  # int32 (contexts,): the row each context is
    members: Any  # int32 (contexts,): numbers of contexts; each frame owns a range
    spare: Any  # int32 (contexts,)
    levels: Any  # int32 (contexts,): what each context is sorted by
    bucket_starts: Any  # int32 (2 ** most bits + 1,): where each hash bucket of contexts begins
    final: Any  # uint64 (contexts, words): the blankets that are found
    buckets: Any  # int64 (most levels + 1,)
    path: Any  # int64 (variables + 1, 2): the condition that led to each depth
    names: Any  # uint64 (variables + 1, 2): the key of the conditions so far
    grown: Any  # uint64 (variables + 1, words): the blanket so far
    shrink_path: Any  # int64 (variables + 1, 2): the path of the shrink phase
    slots: Any  # int64 (variables + 1,): where the shrink phase finds its slices
    blanket: Any  # uint64 (1, words): what the shrink phase leaves


@inlined
def split(top, low, high, depth, variable, phase, table, search):
    """Sort a frame's contexts by their level of a variable and push a frame for each level they show."""
    buckets, members, spare, levels = search.buckets, search.members, search.spare, search.levels
    codes, contexts = table.codes[variable], search.contexts
    n_levels = table.offsets[variable + 1] - table.offsets[variable]
    for level in range(n_levels + 1):
        buckets[level] = 0
    # Unsigned: numba checks signed indices for counting from the end.
    for i in range(low, high):
        member = members[i]
        level = np.uint32(codes[np.uint32(contexts[np.uint32(member)])])
        spare[i] = member
        levels[i] = level
        buckets[np.uint32(level + 1)] += 1
    for level in range(n_levels):
        buckets[level + 1] += buckets[level]
    for i in range(low, high):
        level = np.uint32(levels[i])
        members[np.uint64(low + buckets[level])] = spare[i]
        buckets[level] += 1
    begin = low
    for level in range(n_levels):
        end = low + buckets[level]
        if end > begin:
            push(top, begin, end, variable + 1, depth + 1, variable, level, phase, search)
            top += 1
            begin = end
    return top


@inlined
def push(top, low, high, first, depth, variable, level, phase, search):
    """Write a frame of the stack."""
    frame = search.stack[top]
    frame[LOW], frame[HIGH], frame[NEXT], frame[DEPTH] = low, high, first, depth
    frame[VARIABLE], frame[LEVEL], frame[PHASE] = variable, level, phase


@inlined
def group_by_blanket(low, high, initial, search):
    """Sort contexts by a hash of their blankets, so that those with the same blanket are neighbours.

    Contexts with another blanket in the same hash bucket may lie between some of them, which then become two
    cohorts. With as many blankets as buckets these are many, but then hardly two contexts are alike.
    """
    members, bucket_starts = search.members, search.bucket_starts
    n_bits = 1
    while n_bits < _MOST_BITS and (1 << n_bits) < 2 * (high - low):
        n_bits += 1
    shift = np.uint64(64 - n_bits)
    for bucket in range((1 << n_bits) + 1):
        bucket_starts[bucket] = 0
    for i in range(low, high):
        search.levels[i] = _bucket_of(initial, i, shift)
        bucket_starts[np.uint32(search.levels[i] + 1)] += 1
    for bucket in range(1 << n_bits):
        bucket_starts[bucket + 1] += bucket_starts[bucket]
    for i in range(low, high):
        bucket = np.uint32(search.levels[i])
        members[np.uint64(low + bucket_starts[bucket])] = i
        bucket_starts[bucket] += 1


@inlined
def _bucket_of(initial, context, shift):
    mixed = _ZERO
    for word in range(initial.shape[1]):
        mixed = (mixed ^ initial[context, word]) * GOLDEN
    return np.int32(mixed >> shift)


@inlined
def end_of_group(members, low, high, initial):
    """Return where the contexts that hold the same blanket as the first of them end."""
    for i in range(low + 1, high):
        for word in range(initial.shape[1]):
            if initial[members[i], word] != initial[members[low], word]:
                return i
    return high


@inlined
def next_held(member, first, initial):
    """Return the first variable, from `first` on, that a context already holds; -1 if none."""
    for word in range(first >> 6, initial.shape[1]):
        held = initial[member, word]
        if word == first >> 6:
            held &= ~_ZERO << np.uint64(first & 63)
        if held != _ZERO:
            return (word << 6) + np.int64(trailing_zeros(held))
    return -1


@inlined
def descend(depth, variable, level, table, keys, slices, search):
    """Enter a frame: derive its slice, its key and its blanket from those one depth above."""
    condition_on(depth - 1, depth, variable, level, table, slices)
    search.path[depth, 0] = variable
    search.path[depth, 1] = level
    for half in range(2):
        condition = keys.conditions[table.offsets[variable] + level, half]
        search.names[depth, half] = search.names[depth - 1, half] ^ condition
    for word in range(search.grown.shape[1]):
        search.grown[depth, word] = search.grown[depth - 1, word]
    flip_bit(search.grown, depth, variable)


@compiled
def begin(table, slices, search):
    """Prepare for searches, all of which begin with every row and without conditions."""
    take_all(0, table, slices)
    search.names[0, :] = _ZERO
    search.grown[0, :] = _ZERO


@inlined
def take_chunk(last, shared, graphs, search):
    """Find the next visit of a chunk that no thread has taken up, unless there is one at hand.

    Returns whether its contexts can be visited now (1), not yet (0), or no visit before `last` is left (-1).
    """
    visit, n_chunks = search.visit, search.done.shape[0]
    if visit[0] < 0:
        ticket = fetch_add(search.queue, 0, 1)
        if ticket // n_chunks >= last:
            # For the next call.
            fetch_add(search.queue, 0, -1)
            return -1
        visit[0], visit[1] = ticket // n_chunks, ticket % n_chunks
    looks = 0
    while shared and fetch_add(search.done, visit[1], 0) < visit[0]:
        looks += 1
        if looks == _LOOKS:
            return 0
    low, high = search.chunks[visit[1]], search.chunks[visit[1] + 1]
    push(0, low, high, 0, 0, -1, -1, OPEN, search)
    if shared:
        group_by_blanket(low, high, graphs[visit[0]], search)
    else:
        for i in range(low, high):
            search.members[i] = i
    return 1


@inlined
def write_blanket(low, high, search):
    """Write down the blanket that a cohort has found."""
    for i in range(low, high):
        for word in range(search.final.shape[1]):
            search.final[search.members[i], word] = search.blanket[0, word]


@inlined
def finish_chunk(node, shared, graphs, search):
    """Write the blankets of a chunk into its graphs, and let others visit it."""
    visit, final = search.visit, search.final
    low, high = search.chunks[visit[1]], search.chunks[visit[1] + 1]
    if shared:
        share_blankets(node, final, graphs, low, high)
    else:
        for context in range(low, high):
            for word in range(final.shape[1]):
                graphs[visit[0], context, word] = final[context, word]
    fetch_add(search.done, visit[1], 1)
    visit[0] = -1


@inlined
def share_blankets(node, final, graphs, first, last):
    """Write a node's blankets into the graphs of some contexts, both ends of every edge that changed."""
    for context in range(first, last):
        for word in range(final.shape[1]):
            changed = graphs[node, context, word] ^ final[context, word]
            graphs[node, context, word] = final[context, word]
            while changed != _ZERO:
                other = (word << 6) + np.int64(trailing_zeros(changed))
                graphs[other, context, node >> 6] ^= _ONE << np.uint64(node & 63)
                changed &= changed - _ONE


@inlined
def _from_bit(bit):
    """Return a word with all bits from one on, which may lie before or behind it."""
    if bit >= 64:
        return _ZERO
    return ~_ZERO << np.uint64(max(bit, 0))


@compiled
def pack_pairs(graphs, columns, mirrored, both, packed, first, last):
    """Write the graphs of some contexts as one bit a pair, as itertools.combinations orders the columns.

    `columns` gives each visited variable's column. With `both`, an edge needs the blankets of both its ends;
    where they are `mirrored` it is in both or in neither.
    """
    n = graphs.shape[0]
    pairs = np.empty(n, dtype=np.int64)
    for node in range(n):
        for other in range(n):
            low, high = min(columns[node], columns[other]), max(columns[node], columns[other])
            pairs[other] = low * (2 * n - low - 1) // 2 + high - low - 1
        for word in range(graphs.shape[2]):
            wanted = ~_ZERO
            if mirrored or both:
                # One end of the pair is enough.
                wanted = _from_bit(node + 1 - (word << 6))
            for context in range(first, last):
                rest = graphs[node, context, word] & wanted
                while rest != _ZERO:
                    other = (word << 6) + np.int64(trailing_zeros(rest))
                    rest &= rest - _ONE
                    if both and not has_bit(graphs[other], context, node):
                        continue
                    packed[context, pairs[other] >> 3] |= np.uint8(1 << (pairs[other] & 7))


@inlined
def _answer(slot, node, other, total, table, slices, crosstab, rules):
    n_a = table.offsets[node + 1] - table.offsets[node]
    n_b = table.offsets[other + 1] - table.offsets[other]
    count(slot, other, n_a, n_b, table, slices, crosstab)
    return decide(crosstab, n_a, n_b, total, rules, node > other)


@inlined
def _grow(node, depth, first_other, table, rules, keys, memo, log, n_logged, slices, crosstab, search):
    """Ask about one candidate after the other until one is dependent.

    Returns that one (or -1), the number of questions asked and of answers new to the memo.
    """
    n_variables = table.codes.shape[0]
    n_a = table.offsets[node + 1] - table.offsets[node]
    n_asked, n_new, total = 0, 0, np.int64(-1)
    ahead = min(first_other + _AHEAD, n_variables)
    for other in range(first_other, ahead):
        prefetch_slot(memo, search.names[depth, 0] ^ keys.asked[node, 0] ^ keys.asked[other, 0])
    for other in range(first_other, n_variables):
        if ahead < n_variables:
            prefetch_slot(memo, search.names[depth, 0] ^ keys.asked[node, 0] ^ keys.asked[ahead, 0])
            ahead += 1
        if other == node or has_bit(search.grown, depth, other) or has_bit(rules.forbidden, node, other):
            continue
        if depth >= rules.max_blanket:
            break
        n_asked += 1
        first = search.names[depth, 0] ^ keys.asked[node, 0] ^ keys.asked[other, 0]
        second = search.names[depth, 1] ^ keys.asked[node, 1] ^ keys.asked[other, 1]
        answer = known_answer(memo, first, second)
        if answer == 0:
            if total < 0:
                total = split_by_level(depth, node, n_a, table, slices, crosstab)
            answer = _answer(depth, node, other, total, table, slices, crosstab, rules)
            n_new += keep_and_log(memo, first, second, answer, log, n_logged + n_new, other)
        if answer == DEPENDENT:
            return other, n_asked, n_new
    return -1, n_asked, n_new


@inlined
def _shrink(node, depth, table, rules, keys, memo, log, n_logged, slices, crosstab, search):
    """Ask again about every variable of a grown blanket and leave what remains in `search.blanket`.

    Works on a path of its own: frames still on the stack need the search's slices as they are.
    Returns the number of questions asked and of answers new to the memo.
    """
    n_variables = table.codes.shape[0]
    n_a = table.offsets[node + 1] - table.offsets[node]
    shrink_path, slots, blanket = search.shrink_path, search.slots, search.blanket
    scratch = slices.sizes.shape[0] - 2
    size = depth
    sound = depth
    n_asked, n_new = 0, 0
    for d in range(depth + 1):
        shrink_path[d, 0] = search.path[d, 0]
        shrink_path[d, 1] = search.path[d, 1]
        slots[d] = d
    for word in range(blanket.shape[1]):
        blanket[0, word] = search.grown[depth, word]
    name_first, name_second = search.names[depth, 0], search.names[depth, 1]
    for other in range(n_variables):
        if not has_bit(search.grown, depth, other) or has_bit(rules.required, node, other):
            continue
        at = 1
        while shrink_path[at, 0] != other:
            at += 1
        condition = table.offsets[other] + shrink_path[at, 1]
        # The blanket is asked without the variable itself, else it would explain itself away.
        rest_first = name_first ^ keys.conditions[condition, 0]
        rest_second = name_second ^ keys.conditions[condition, 1]
        first = rest_first ^ keys.asked[node, 0] ^ keys.asked[other, 0]
        second = rest_second ^ keys.asked[node, 1] ^ keys.asked[other, 1]
        n_asked += 1
        answer = known_answer(memo, first, second)
        if answer == 0:
            # Slices behind a removed variable are derived again only when a question needs them.
            while sound < at - 1:
                sound += 1
                slots[sound] = n_variables + 1 + sound
                variable, level = shrink_path[sound, 0], shrink_path[sound, 1]
                condition_on(slots[sound - 1], slots[sound], variable, level, table, slices)
            slot = slots[at - 1]
            for d in range(at + 1, size + 1):
                target = scratch if slot != scratch else scratch + 1
                condition_on(slot, target, shrink_path[d, 0], shrink_path[d, 1], table, slices)
                slot = target
            total = split_by_level(slot, node, n_a, table, slices, crosstab)
            answer = _answer(slot, node, other, total, table, slices, crosstab, rules)
            n_new += keep_and_log(memo, first, second, answer, log, n_logged + n_new, other)
        if answer == INDEPENDENT or (answer == UNDECIDED and not rules.keep_undecided):
            name_first, name_second = rest_first, rest_second
            flip_bit(blanket, 0, other)
            for d in range(at, size):
                shrink_path[d, 0] = shrink_path[d + 1, 0]
                shrink_path[d, 1] = shrink_path[d + 1, 1]
            size -= 1
            sound = min(sound, at - 1)
    return n_asked, n_new


@inlined
def _more_effort(node, table, search):
    """Return what an answer about a node costs beside others if its table has as many cells as may be."""
    most_levels = search.buckets.shape[0] - 1
    return (table.offsets[node + 1] - table.offsets[node]) * most_levels // _FEW_CELLS * _EFFORT


@compiled
def grow_shrink(
    nodes, last, shared, graphs, table, rules, keys, memo, log, slices, crosstab, search, top, max_new
):
    """Learn the blankets of nodes, up to the `last`th, in the chunks it takes, from those in `graphs` on.

    Blankets are written into `graphs`; if they are `shared`, at both ends of an edge. Stops after `max_new`
    new answers or as much work of other kinds, or while others must finish; returns the height of the stack
    (-1 when no visit is left), the number of questions asked and that of answers new to the memo. These are
    in the log too, from its beginning; both must have room for `max_new` and twice the number of variables.
    A search begins with `top` 0.
    """
    graphs, memo, log = without_refcount((graphs, memo, log))
    table, slices, crosstab = without_refcount((table, slices, crosstab))
    rules, keys, search = without_refcount((rules, keys, search))
    n_asked, n_new, spent = 0, 0, 0
    while n_new < max_new and spent < _EFFORT * max_new:
        if top == 0:
            top = take_chunk(last, shared, graphs, search)
            if top <= 0:
                break
        node, initial = nodes[search.visit[0]], graphs[search.visit[0]]
        top -= 1
        frame = search.stack[top]
        low, high, depth, first_other = frame[LOW], frame[HIGH], frame[DEPTH], frame[NEXT]
        is_open = frame[PHASE] == OPEN
        if frame[VARIABLE] >= 0:
            descend(depth, frame[VARIABLE], frame[LEVEL], table, keys, slices, search)
        elif is_open:
            end = end_of_group(search.members, low, high, initial)
            if end < high:
                push(top, end, high, 0, 0, -1, -1, OPEN, search)
                top, high = top + 1, end
        spent += high - low + table.codes.shape[0]
        if is_open:
            variable = next_held(search.members[low], first_other, initial)
            if variable >= 0:
                top = split(top, low, high, depth, variable, OPEN, table, search)
                continue
            first_other = 0
        other, asked, new = _grow(
            node, depth, first_other, table, rules, keys, memo, log, n_new, slices, crosstab, search
        )
        n_asked += asked * (high - low)
        n_new += new
        spent += new * _more_effort(node, table, search)
        if other >= 0:
            top = split(top, low, high, depth, other, GROW, table, search)
            continue
        asked, new = _shrink(node, depth, table, rules, keys, memo, log, n_new, slices, crosstab, search)
        n_asked += asked * (high - low)
        n_new += new
        spent += new * _more_effort(node, table, search)
        write_blanket(low, high, search)
        if top == 0:
            finish_chunk(node, shared, graphs, search)
    return top, n_asked, n_new
