"""The walk over cohorts of contexts: its state, how cohorts split, and how threads take chunks of them."""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.bitsets import flip_bit
from unless.kernels.blankets import share_blankets
from unless.kernels.compiling import borrowed, compiled, inlined, raised, trailing_zeros
from unless.kernels.slices import narrow, take_all

# Columns of the stack, and what a frame does next: open the blanket its contexts hold already, or grow it.
LOW, HIGH, NEXT, DEPTH, VARIABLE, LEVEL, PHASE = 0, 1, 2, 3, 4, 5, 6
OPEN, GROW = 0, 1

_ZERO, _ONE = np.uint64(0), np.uint64(1)
# How often a thread looks whether a chunk is free before it lets others go on: less than a millisecond.
_LOOKS = 1 << 14


class Search(NamedTuple):
    """The state of a search."""

    stack: Any  # int64 (frames, 7)
    chunks: Any  # int64 (chunks + 1,): where each chunk of contexts begins
    queue: Any  # int64 (1,): how many visits of a chunk have been taken up by all threads
    done: Any  # int64 (chunks,): how many visits of each chunk are finished
    visit: Any  # int64 (2,): the place of the node, and the chunk, that this thread visits; or -1
    contexts: Any  # int32 (contexts,): the row each context is
    members: Any  # int32 (contexts,): numbers of contexts; each frame owns a range
    spare: Any  # int32 (contexts,)
    groups: Any  # int32 (contexts,): what a split sorts each context by
    final: Any  # uint64 (contexts, words): the blankets that are found
    buckets: Any  # int64 (most levels + 2,)
    path: Any  # int64 (variables + 1, 2): the condition that led to each depth
    names: Any  # uint64 (variables + 1, 2): the key of the conditions so far
    held: Any  # uint64 (variables + 1, words): the blanket so far
    kept: Any  # int64 (variables + 1, 2): the path of the shrink phase
    slots: Any  # int64 (variables + 1,): where the shrink phase finds its slices
    blanket: Any  # uint64 (1, words): what the shrink phase leaves
    outside: Any  # uint64 (words of rows,): rows that other parts of the work have as contexts; or no words
    elsewhere: Any  # uint64 (1, words): nodes that other parts of the work visit


@inlined
def borrowed_search(search):
    """Return the state without the owners of its arrays."""
    return Search(
        borrowed(search.stack),
        borrowed(search.chunks),
        borrowed(search.queue),
        borrowed(search.done),
        borrowed(search.visit),
        borrowed(search.contexts),
        borrowed(search.members),
        borrowed(search.spare),
        borrowed(search.groups),
        borrowed(search.final),
        borrowed(search.buckets),
        borrowed(search.path),
        borrowed(search.names),
        borrowed(search.held),
        borrowed(search.kept),
        borrowed(search.slots),
        borrowed(search.blanket),
        borrowed(search.outside),
        borrowed(search.elsewhere),
    )


@inlined
def split(top, low, high, depth, variable, phase, initial, table, search):
    """Sort a frame's contexts by their level of a variable and push a frame for each level they show.

    While a blanket is opened, contexts that do not hold the variable form a group of their own, 0.
    """
    buckets, members, spare, groups = search.buckets, search.members, search.spare, search.groups
    codes, contexts = table.codes[variable], search.contexts
    n_groups = table.offsets[variable + 1] - table.offsets[variable] + 1
    for group in range(n_groups + 1):
        buckets[group] = 0
    # As unsigned numbers: of others it would be asked whether they count from the end.
    word, bit = variable >> 6, np.uint64(variable & 63)
    for i in range(low, high):
        member = np.uint32(members[i])
        group = np.uint32(codes[np.uint32(contexts[member])]) + np.uint32(1)
        if phase == OPEN:
            group *= np.uint32(initial[member, word] >> bit & _ONE)
        spare[i] = member
        groups[i] = group
        buckets[np.uint32(group + 1)] += 1
    for group in range(n_groups):
        buckets[group + 1] += buckets[group]
    for i in range(low, high):
        group = np.uint32(groups[i])
        members[np.uint64(low + buckets[group])] = spare[i]
        buckets[group] += 1
    stack = search.stack
    begin = 0
    for group in range(n_groups):
        end = buckets[group]
        if end > begin:
            stack[top, LOW] = low + begin
            stack[top, HIGH] = low + end
            stack[top, NEXT] = variable + 1
            stack[top, DEPTH] = depth + (group > 0)
            stack[top, VARIABLE] = variable if group > 0 else -1
            stack[top, LEVEL] = group - 1
            stack[top, PHASE] = phase
            top += 1
            begin = end
    return top


@inlined
def next_held(members, low, high, first, initial):
    """Return the first variable, from `first` on, that some context of a frame already holds; -1 if none."""
    for word in range(first >> 6, initial.shape[1]):
        union = _ZERO
        for i in range(low, high):
            union |= initial[members[i], word]
        if word == first >> 6:
            union &= ~_ZERO << np.uint64(first & 63)
        if union != _ZERO:
            return (word << 6) + np.int64(trailing_zeros(union))
    return -1


@inlined
def descend(depth, variable, level, table, keys, slices, search):
    """Enter a frame: derive its slice, its key and its blanket from those one depth above."""
    narrow(depth - 1, depth, variable, level, table, slices)
    search.path[depth, 0] = variable
    search.path[depth, 1] = level
    for half in range(2):
        condition = keys.conditions[table.offsets[variable] + level, half]
        search.names[depth, half] = search.names[depth - 1, half] ^ condition
    for word in range(search.held.shape[1]):
        search.held[depth, word] = search.held[depth - 1, word]
    flip_bit(search.held, depth, variable)


@compiled
def begin(table, slices, search):
    """Prepare for searches, all of which begin with every row and without conditions."""
    take_all(0, table, slices)
    search.names[0, :] = _ZERO
    search.held[0, :] = _ZERO


@inlined
def take_chunk(last, shared, search):
    """Find the next visit of a chunk that no thread has taken up, unless there is one at hand.

    Returns whether its contexts can be visited now (1), not yet (0), or no visit before `last` is left (-1).
    """
    visit, n_chunks = search.visit, search.done.shape[0]
    if visit[0] < 0:
        ticket = raised(search.queue, 0, 1)
        if ticket // n_chunks >= last:
            # For the next call.
            raised(search.queue, 0, -1)
            return -1
        visit[0], visit[1] = ticket // n_chunks, ticket % n_chunks
    looks = 0
    while shared and raised(search.done, visit[1], 0) < visit[0]:
        looks += 1
        if looks == _LOOKS:
            return 0
    low, high = search.chunks[visit[1]], search.chunks[visit[1] + 1]
    frame = search.stack[0]
    frame[LOW], frame[HIGH], frame[NEXT], frame[DEPTH] = low, high, 0, 0
    frame[VARIABLE], frame[LEVEL], frame[PHASE] = -1, -1, OPEN
    for i in range(low, high):
        search.members[i] = i
    return 1


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
    raised(search.done, visit[1], 1)
    visit[0] = -1
