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

_ZERO = np.uint64(0)
# Blankets are told apart by some bits of their product with an odd number; a cache holds as many piles.
_ODD, _MOST_BITS = np.uint64(0x9E3779B97F4A7C15), 15
MOST_PILES = 1 << _MOST_BITS
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
    levels: Any  # int32 (contexts,): what each context is sorted by
    piles: Any  # int32 (2 ** most bits + 1,): where contexts with alike blankets begin
    final: Any  # uint64 (contexts, words): the blankets that are found
    buckets: Any  # int64 (most levels + 1,)
    path: Any  # int64 (variables + 1, 2): the condition that led to each depth
    names: Any  # uint64 (variables + 1, 2): the key of the conditions so far
    held: Any  # uint64 (variables + 1, words): the blanket so far
    kept: Any  # int64 (variables + 1, 2): the path of the shrink phase
    slots: Any  # int64 (variables + 1,): where the shrink phase finds its slices
    blanket: Any  # uint64 (1, words): what the shrink phase leaves


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
        borrowed(search.levels),
        borrowed(search.piles),
        borrowed(search.final),
        borrowed(search.buckets),
        borrowed(search.path),
        borrowed(search.names),
        borrowed(search.held),
        borrowed(search.kept),
        borrowed(search.slots),
        borrowed(search.blanket),
    )


@inlined
def split(top, low, high, depth, variable, phase, table, search):
    """Sort a frame's contexts by their level of a variable and push a frame for each level they show."""
    buckets, members, spare, levels = search.buckets, search.members, search.spare, search.levels
    codes, contexts = table.codes[variable], search.contexts
    n_levels = table.offsets[variable + 1] - table.offsets[variable]
    for level in range(n_levels + 1):
        buckets[level] = 0
    # As unsigned numbers: of others it would be asked whether they count from the end.
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
def gather_alike(low, high, initial, search):
    """Bring contexts together that hold the same blanket; a few are kept apart by others in their pile.

    With as many blankets as piles it is more than a few, but then hardly two contexts are alike. A cohort
    holds one blanket, so that it need not be looked for variable after variable who holds what.
    """
    members, piles = search.members, search.piles
    n_bits = 1
    while n_bits < _MOST_BITS and (1 << n_bits) < 2 * (high - low):
        n_bits += 1
    shift = np.uint64(64 - n_bits)
    for pile in range((1 << n_bits) + 1):
        piles[pile] = 0
    for i in range(low, high):
        search.levels[i] = _pile_of(initial, i, shift)
        piles[np.uint32(search.levels[i] + 1)] += 1
    for pile in range(1 << n_bits):
        piles[pile + 1] += piles[pile]
    for i in range(low, high):
        pile = np.uint32(search.levels[i])
        members[np.uint64(low + piles[pile])] = i
        piles[pile] += 1


@inlined
def _pile_of(initial, context, shift):
    mixed = _ZERO
    for word in range(initial.shape[1]):
        mixed = (mixed ^ initial[context, word]) * _ODD
    return np.int32(mixed >> shift)


@inlined
def end_of_alike(members, low, high, initial):
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
def take_chunk(last, shared, graphs, search):
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
    push(0, low, high, 0, 0, -1, -1, OPEN, search)
    if shared:
        gather_alike(low, high, graphs[visit[0]], search)
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
    raised(search.done, visit[1], 1)
    visit[0] = -1
