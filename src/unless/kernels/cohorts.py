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

import numpy as np

from unless.kernels.answers import DEPENDENT, INDEPENDENT, UNDECIDED, borrowed_rules, decide
from unless.kernels.bitsets import flip_bit, has_bit
from unless.kernels.cohort_walk import (
    DEPTH,
    GROW,
    HIGH,
    LEVEL,
    LOW,
    NEXT,
    OPEN,
    PHASE,
    VARIABLE,
    borrowed_search,
    descend,
    end_of_alike,
    finish_chunk,
    next_held,
    push,
    split,
    take_chunk,
    write_blanket,
)
from unless.kernels.compiling import borrowed, compiled, inlined
from unless.kernels.memo import Keys, Log, expect, keep_and_log, known_answer
from unless.kernels.slices import (
    borrowed_crossing,
    borrowed_slices,
    borrowed_table,
    count,
    cross,
    narrow,
)

# How many questions ahead the memo is fetched from memory.
_AHEAD = 4
# What a new answer costs at most, in contexts sorted or known answers looked up; more, if its table has more
# cells than these.
_EFFORT, _FEW_CELLS = 200, 2**8


@inlined
def _answer(slot, node, other, total, table, slices, crossing, rules):
    n_a = table.offsets[node + 1] - table.offsets[node]
    n_b = table.offsets[other + 1] - table.offsets[other]
    count(slot, other, n_a, n_b, table, slices, crossing)
    return decide(crossing, n_a, n_b, total, rules, node > other)


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
        answer = known_answer(memo, first, second)
        if answer == 0:
            if total < 0:
                total = cross(depth, node, n_a, table, slices, crossing)
            answer = _answer(depth, node, other, total, table, slices, crossing, rules)
            n_new += keep_and_log(memo, first, second, answer, log, n_logged + n_new, other)
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
    scratch = slices.sizes.shape[0] - 2
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
        answer = known_answer(memo, first, second)
        if answer == 0:
            # Slices behind a removed variable are derived again only when a question needs them.
            while sound < at - 1:
                sound += 1
                slots[sound] = n_variables + 1 + sound
                narrow(slots[sound - 1], slots[sound], kept[sound, 0], kept[sound, 1], table, slices)
            slot = slots[at - 1]
            for d in range(at + 1, size + 1):
                target = scratch if slot != scratch else scratch + 1
                narrow(slot, target, kept[d, 0], kept[d, 1], table, slices)
                slot = target
            total = cross(slot, node, n_a, table, slices, crossing)
            answer = _answer(slot, node, other, total, table, slices, crossing, rules)
            n_new += keep_and_log(memo, first, second, answer, log, n_logged + n_new, other)
        if answer == INDEPENDENT or (answer == UNDECIDED and not rules.keep_undecided):
            name_first, name_second = rest_first, rest_second
            flip_bit(blanket, 0, other)
            for d in range(at, size):
                kept[d, 0] = kept[d + 1, 0]
                kept[d, 1] = kept[d + 1, 1]
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
    nodes, last, shared, graphs, table, rules, keys, memo, log, slices, crossing, search, top, patience
):
    """Learn the blankets of nodes, up to the `last`th, in the chunks it takes, from those in `graphs` on.

    Blankets are written into `graphs`; if they are `shared`, at both ends of an edge. Stops after `patience`
    new answers or as much work of other kinds, or while others must finish; returns the height of the stack
    (-1 when no visit is left), the number of questions asked and that of answers new to the memo. These are
    in the log too, from its beginning; both must have room for `patience` and twice the number of variables.
    A search begins with `top` 0.
    """
    graphs, memo = borrowed(graphs), borrowed(memo)
    table, slices, crossing = borrowed_table(table), borrowed_slices(slices), borrowed_crossing(crossing)
    rules = borrowed_rules(rules)
    keys = Keys(borrowed(keys.conditions), borrowed(keys.asked))
    log = Log(borrowed(log.answers), borrowed(log.others))
    search = borrowed_search(search)
    n_asked, n_new, spent = 0, 0, 0
    while n_new < patience and spent < _EFFORT * patience:
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
            end = end_of_alike(search.members, low, high, initial)
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
            node, depth, first_other, table, rules, keys, memo, log, n_new, slices, crossing, search
        )
        n_asked += asked * (high - low)
        n_new += new
        spent += new * _more_effort(node, table, search)
        if other >= 0:
            top = split(top, low, high, depth, other, GROW, table, search)
            continue
        asked, new = _shrink(node, depth, table, rules, keys, memo, log, n_new, slices, crossing, search)
        n_asked += asked * (high - low)
        n_new += new
        spent += new * _more_effort(node, table, search)
        write_blanket(low, high, search)
        if top == 0:
            finish_chunk(node, shared, graphs, search)
    return top, n_asked, n_new
