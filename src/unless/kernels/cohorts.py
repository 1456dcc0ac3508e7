"""Grow and shrink the blankets of one variable for whole cohorts of contexts at once.

A cohort is a set of contexts that hold the same blanket with the same values: they ask the same question
of the same rows. A cohort splits only when a variable enters the blanket and its contexts differ in it,
so that every distinct question is counted once. Variables are numbered in the order the learner visits
them.

The search is a depth-first walk with its stack in arrays of the caller's, so that a call may stop between
two cohorts (to let the caller widen the memo, show progress or be interrupted) and be taken up again.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.answers import DEPENDENT, INDEPENDENT, UNDECIDED, borrowed_rules, decide
from unless.kernels.bitsets import flip_bit, has_bit
from unless.kernels.compiling import borrowed, compiled, inlined, trailing_zeros
from unless.kernels.memo import Keys, Log, answer_at, expect, find, keep, note
from unless.kernels.slices import (
    borrowed_crossing,
    borrowed_slices,
    borrowed_table,
    count,
    cross,
    narrow,
    take_all,
)

# Columns of the stack, and what a frame does next: open the blanket its contexts hold already, or grow it.
_LOW, _HIGH, _NEXT, _DEPTH, _VARIABLE, _LEVEL, _PHASE = 0, 1, 2, 3, 4, 5, 6
_OPEN, _GROW = 0, 1

_ZERO, _ONE = np.uint64(0), np.uint64(1)
# How many questions ahead the memo is fetched from memory.
_AHEAD = 4
# What a new answer costs at most, in contexts sorted or known answers looked up.
_EFFORT = 200


class Search(NamedTuple):
    """The state of a search."""

    stack: Any  # int64 (frames, 7)
    contexts: Any  # int32 (contexts,): the row each context is
    members: Any  # int32 (contexts,): numbers of contexts; each frame owns a range
    spare: Any  # int32 (contexts,)
    groups: Any  # int32 (contexts,): what a split sorts each context by
    buckets: Any  # int64 (most levels + 2,)
    path: Any  # int64 (variables + 1, 2): the condition that led to each depth
    names: Any  # uint64 (variables + 1, 2): the key of the conditions so far
    held: Any  # uint64 (variables + 1, words): the blanket so far
    kept: Any  # int64 (variables + 1, 2): the path of the shrink phase
    slots: Any  # int64 (variables + 1,): where the shrink phase finds its slices
    blanket: Any  # uint64 (1, words): what the shrink phase leaves


@inlined
def _borrowed_search(search):
    return Search(
        borrowed(search.stack),
        borrowed(search.contexts),
        borrowed(search.members),
        borrowed(search.spare),
        borrowed(search.groups),
        borrowed(search.buckets),
        borrowed(search.path),
        borrowed(search.names),
        borrowed(search.held),
        borrowed(search.kept),
        borrowed(search.slots),
        borrowed(search.blanket),
    )


@inlined
def _answer(slot, node, other, total, table, slices, crossing, rules):
    n_a = table.offsets[node + 1] - table.offsets[node]
    n_b = table.offsets[other + 1] - table.offsets[other]
    count(slot, other, n_a, n_b, table, slices, crossing)
    flipped = node > other
    return decide(crossing.cells, n_a, n_b, crossing.totals, crossing.columns, total, rules, flipped)


@inlined
def _split(top, low, high, depth, variable, phase, initial, table, search):
    """Sort a frame's contexts by their level of a variable and push a frame for each level they show.

    While a blanket is opened, contexts that do not hold the variable form a group of their own, 0.
    """
    growing = phase == _GROW
    buckets, members, spare, groups = search.buckets, search.members, search.spare, search.groups
    codes, contexts = table.codes[variable], search.contexts
    n_groups = table.offsets[variable + 1] - table.offsets[variable] + 1
    for group in range(n_groups + 1):
        buckets[group] = 0
    for i in range(low, high):
        member = members[i]
        held = growing or has_bit(initial, member, variable)
        group = np.int64(codes[contexts[member]]) + 1 if held else np.int64(0)
        spare[i] = member
        groups[i] = group
        buckets[group + 1] += 1
    for group in range(n_groups):
        buckets[group + 1] += buckets[group]
    for i in range(low, high):
        group = groups[i]
        members[low + buckets[group]] = spare[i]
        buckets[group] += 1
    stack = search.stack
    begin = 0
    for group in range(n_groups):
        end = buckets[group]
        if end > begin:
            stack[top, _LOW] = low + begin
            stack[top, _HIGH] = low + end
            stack[top, _NEXT] = variable + 1
            stack[top, _DEPTH] = depth + (group > 0)
            stack[top, _VARIABLE] = variable if group > 0 else -1
            stack[top, _LEVEL] = group - 1
            stack[top, _PHASE] = phase
            top += 1
            begin = end
    return top


@inlined
def _next_held(members, low, high, first, initial):
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
def _descend(depth, variable, level, table, keys, slices, search):
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


@inlined
def _grow(node, depth, first_other, table, rules, keys, memo, log, n_logged, slices, crossing, search):
    """Ask about one candidate after the other until one is dependent.

    Returns that one (or -1), the number of questions asked and of answers new to the memo.
    """
    n_variables = table.codes.shape[0]
    n_a = table.offsets[node + 1] - table.offsets[node]
    n_asked, n_new, total = 0, 0, np.int64(-1)
    ahead = min(first_other + _AHEAD, n_variables)
    for other in range(first_other, ahead):
        expect(memo, search.names[depth, 0] ^ keys.asked[node, 0] ^ keys.asked[other, 0])
    for other in range(first_other, n_variables):
        if ahead < n_variables:
            expect(memo, search.names[depth, 0] ^ keys.asked[node, 0] ^ keys.asked[ahead, 0])
            ahead += 1
        if other == node or has_bit(search.held, depth, other) or has_bit(rules.forbidden, node, other):
            continue
        if depth >= rules.max_blanket:
            break
        n_asked += 1
        first = search.names[depth, 0] ^ keys.asked[node, 0] ^ keys.asked[other, 0]
        second = search.names[depth, 1] ^ keys.asked[node, 1] ^ keys.asked[other, 1]
        place = find(memo, first, second)
        answer = answer_at(memo, place)
        if answer == 0:
            if total < 0:
                total = cross(depth, node, n_a, table, slices, crossing)
            answer = _answer(depth, node, other, total, table, slices, crossing, rules)
            keep(memo, place, first, second, answer)
            note(log, n_logged + n_new, memo, place, other)
            n_new += 1
        if answer == DEPENDENT:
            return other, n_asked, n_new
    return -1, n_asked, n_new


@inlined
def _shrink(node, depth, table, rules, keys, memo, log, n_logged, slices, crossing, search):
    """Ask again about every variable of a grown blanket and leave what remains in `search.blanket`.

    Works on a path of its own: frames still on the stack need the search's slices as they are.
    Returns the number of questions asked and of answers new to the memo.
    """
    n_variables = table.codes.shape[0]
    n_a = table.offsets[node + 1] - table.offsets[node]
    kept, slots, blanket = search.kept, search.slots, search.blanket
    scratch = slices.sizes.shape[0] - 1
    size = depth
    sound = depth
    n_asked, n_new = 0, 0
    for d in range(depth + 1):
        kept[d, 0] = search.path[d, 0]
        kept[d, 1] = search.path[d, 1]
        slots[d] = d
    for word in range(blanket.shape[1]):
        blanket[0, word] = search.held[depth, word]
    name_first, name_second = search.names[depth, 0], search.names[depth, 1]
    for other in range(n_variables):
        if not has_bit(search.held, depth, other) or has_bit(rules.required, node, other):
            continue
        at = 1
        while kept[at, 0] != other:
            at += 1
        condition = table.offsets[other] + kept[at, 1]
        # The blanket is asked without the variable itself, else it would explain itself away.
        rest_first = name_first ^ keys.conditions[condition, 0]
        rest_second = name_second ^ keys.conditions[condition, 1]
        first = rest_first ^ keys.asked[node, 0] ^ keys.asked[other, 0]
        second = rest_second ^ keys.asked[node, 1] ^ keys.asked[other, 1]
        n_asked += 1
        place = find(memo, first, second)
        answer = answer_at(memo, place)
        if answer == 0:
            # Slices behind a removed variable are derived again only when a question needs them.
            while sound < at - 1:
                sound += 1
                slots[sound] = n_variables + 1 + sound
                narrow(slots[sound - 1], slots[sound], kept[sound, 0], kept[sound, 1], table, slices)
            slot = slots[at - 1]
            for d in range(at + 1, size + 1):
                narrow(slot, scratch, kept[d, 0], kept[d, 1], table, slices)
                slot = scratch
            total = cross(slot, node, n_a, table, slices, crossing)
            answer = _answer(slot, node, other, total, table, slices, crossing, rules)
            keep(memo, place, first, second, answer)
            note(log, n_logged + n_new, memo, place, other)
            n_new += 1
        if answer == INDEPENDENT or (answer == UNDECIDED and not rules.keep_undecided):
            name_first, name_second = rest_first, rest_second
            flip_bit(blanket, 0, other)
            for d in range(at, size):
                kept[d, 0] = kept[d + 1, 0]
                kept[d, 1] = kept[d + 1, 1]
            size -= 1
            sound = min(sound, at - 1)
    return n_asked, n_new


@compiled
def begin(n_rows, slices, search):
    """Put all contexts into one cohort that has asked nothing yet; returns the height of the stack."""
    take_all(0, n_rows, slices)
    frame = search.stack[0]
    frame[_LOW], frame[_HIGH], frame[_NEXT], frame[_DEPTH] = 0, search.members.shape[0], 0, 0
    frame[_VARIABLE], frame[_LEVEL], frame[_PHASE] = -1, -1, _OPEN
    for i in range(search.members.shape[0]):
        search.members[i] = i
    search.names[0, :] = _ZERO
    search.held[0, :] = _ZERO
    return 1


@compiled
def grow_shrink(node, initial, final, table, rules, keys, memo, log, slices, crossing, search, top, patience):
    """Learn the blanket of `node` in every context, starting from its initial blanket.

    Writes one packed blanket per context into `final`. Stops after `patience` new answers or as much work of
    other kinds; returns the height of the stack (0 when done), the number of questions asked and that of
    answers new to the memo. These are in the log too, from its beginning; both must have room for `patience`
    and twice the number of variables.
    """
    initial, final, memo = borrowed(initial), borrowed(final), borrowed(memo)
    table, slices, crossing = borrowed_table(table), borrowed_slices(slices), borrowed_crossing(crossing)
    rules = borrowed_rules(rules)
    keys = Keys(borrowed(keys.conditions), borrowed(keys.asked))
    log = Log(borrowed(log.answers), borrowed(log.others))
    search = _borrowed_search(search)
    members = search.members
    n_asked, n_new, spent = 0, 0, 0
    while top > 0 and n_new < patience and spent < _EFFORT * patience:
        top -= 1
        frame = search.stack[top]
        low, high, depth, first_other = frame[_LOW], frame[_HIGH], frame[_DEPTH], frame[_NEXT]
        spent += high - low + table.codes.shape[0]
        if frame[_VARIABLE] >= 0:
            _descend(depth, frame[_VARIABLE], frame[_LEVEL], table, keys, slices, search)
        if frame[_PHASE] == _OPEN:
            variable = _next_held(members, low, high, first_other, initial)
            if variable >= 0:
                top = _split(top, low, high, depth, variable, _OPEN, initial, table, search)
                continue
            first_other = 0
        other, asked, new = _grow(
            node, depth, first_other, table, rules, keys, memo, log, n_new, slices, crossing, search
        )
        n_asked += asked * (high - low)
        n_new += new
        if other >= 0:
            top = _split(top, low, high, depth, other, _GROW, initial, table, search)
            continue
        asked, new = _shrink(node, depth, table, rules, keys, memo, log, n_new, slices, crossing, search)
        n_asked += asked * (high - low)
        n_new += new
        for i in range(low, high):
            for word in range(final.shape[1]):
                final[members[i], word] = search.blanket[0, word]
    return top, n_asked, n_new
