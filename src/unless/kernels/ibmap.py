"""Climb to the graphs of contexts by the IB-score, with assertions tested on rows that agree with a context.

The score of a graph in a context is the sum of those of its variables. The score of a variable depends on the
levels that its blanket has in the context: contexts that agree there share it. Tables are shared with the
scores of other blankets and of other variables. One memo has both, so that each is computed once.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from unless.kernels.answers import log_bayes_factor
from unless.kernels.bits import flip_bit, has_bit
from unless.kernels.compiling import compiled, exp, inlined, popcount, without_refcount
from unless.kernels.slices import condition_on, count, split_by_level, take_all

_ZERO, _SHIFT, _TAG = np.uint64(0), np.uint64(20), np.uint64(3)
# What a value of the memo is, in the low bits of its key; gaps have zero there.
QUESTION, SCORE = np.uint64(1), np.uint64(2)
# Entries of `Ascent.state`: the number of the context, whether its climb has begun, its restarts, the
# conditions on the path; questions asked; values in the memo, and how many of them are questions.
CONTEXT, BEGUN, RESTART, DEPTH, N_ASKED, N_VALUES, N_QUESTIONS, STATE_SIZE = 0, 1, 2, 3, 4, 5, 6, 7
# What a new question costs, in scores that are looked up.
_EFFORT = 16


class ValueMemo(NamedTuple):
    """Numbers by key: open addressing, as in `kernels/memo.py`."""

    keys: Any  # uint64 (slots, 2)
    values: Any  # float64 (slots,)


class FlipRules(NamedTuple):
    """Where climbs begin, which edges may be flipped, and how many a variable may have."""

    required: Any  # uint64 (variables, words)
    flippable: Any  # uint64 (variables, words)
    max_blanket: int
    shuffled: Any  # int64 (restarts, pairs, 2): edges to flip for each restart, as many as variables


class Ascent(NamedTuple):
    """The climb in one context, and room to work in."""

    state: Any  # int64 (STATE_SIZE,)
    levels: Any  # int64 (variables,): the context
    links: Any  # uint64 (variables, words)
    names: Any  # uint64 (variables, 2): the key of the levels of each blanket
    scores: Any  # float64 (variables,): nan where not known
    flipped: Any  # float64 (variables, variables): the score of each after each flip of its blanket, or nan
    best: Any  # uint64 (variables, words): the best graph of the climbs that ended, and its score
    best_score: Any  # float64 (1,)
    path: Any  # int64 (variables + 1, 2): the condition that led to each slice
    log_odds: Any  # float64 (variables,): those against each assertion


@inlined
def _slot_of(keys, first, second):
    """Return where a key is, or the gap where it would be."""
    mask = keys.shape[0] - 1
    slot = np.int64(first >> _SHIFT) & mask
    while keys[slot, 1] != _ZERO and (keys[slot, 0] != first or keys[slot, 1] != second):
        slot = (slot + 1) & mask
    return slot


@inlined
def _keep(memo, slot, first, second, value):
    memo.keys[slot, 0] = first
    memo.keys[slot, 1] = second
    memo.values[slot] = value


@compiled
def move_values(memo, wider):
    """Copy all values to an empty memo."""
    for i in range(memo.keys.shape[0]):
        first, second = memo.keys[i, 0], memo.keys[i, 1]
        if second != _ZERO:
            _keep(wider, _slot_of(wider.keys, first, second), first, second, memo.values[i])


@inlined
def _slice_given(a, c, left_out, table, slices, ascent):
    """Return the slot of the rows that agree with the context on a's blanket, c flipped in it, without one.

    What c adds comes last: slices are kept from path to path as long as these begin alike.
    """
    state, path, n = ascent.state, ascent.path, table.codes.shape[0]
    depth = 0
    for i in range(n + 1):
        variable = i if i < n else c
        is_wanted = variable >= 0 and has_bit(ascent.links, a, variable) == (i < n)
        if not is_wanted or variable == left_out or (i < n and variable == c):
            continue
        level = ascent.levels[variable]
        depth += 1
        if depth > state[DEPTH] or path[depth, 0] != variable or path[depth, 1] != level:
            condition_on(depth - 1, depth, variable, level, table, slices)
            path[depth, 0], path[depth, 1] = variable, level
            state[DEPTH] = depth
    return depth


@inlined
def _ask(a, c, is_inside, first, second, table, keys, memo, slices, crosstab, ascent):
    """Write the log odds against what the blanket of a, c flipped in it, asserts of those inside, or outside.

    Those outside are asked about on one slice; each member on a slice of its own.
    """
    slot, total = -1, np.int64(0)
    n_a = table.offsets[a + 1] - table.offsets[a]
    for b in range(table.codes.shape[0]):
        if b == a or (has_bit(ascent.links, a, b) != (b == c)) != is_inside:
            continue
        asked_first = first ^ keys.asked[a, 0] ^ keys.asked[b, 0]
        asked_second = second ^ keys.asked[a, 1] ^ keys.asked[b, 1]
        if is_inside:
            condition = table.offsets[b] + ascent.levels[b]
            asked_first ^= keys.conditions[condition, 0]
            asked_second ^= keys.conditions[condition, 1]
            slot = -1
        asked_second = (asked_second & ~_TAG) | QUESTION
        known = _slot_of(memo.keys, asked_first, asked_second)
        if memo.keys[known, 1] == _ZERO:
            if slot < 0:
                slot = _slice_given(a, c, b if is_inside else -1, table, slices, ascent)
                total = split_by_level(slot, a, n_a, table, slices, crosstab)
            n_b = table.offsets[b + 1] - table.offsets[b]
            count(slot, b, n_a, n_b, table, slices, crosstab)
            _keep(memo, known, asked_first, asked_second, log_bayes_factor(crosstab, n_a, n_b, total, a > b))
            ascent.state[N_VALUES] += 1
            ascent.state[N_QUESTIONS] += 1
        ascent.log_odds[b] = -memo.values[known] if is_inside else memo.values[known]


@inlined
def _score_variable(a, c, table, keys, memo, slices, crosstab, ascent):
    """Return the score of a with c, if it is not -1, flipped in its blanket."""
    first, second = ascent.names[a, 0], ascent.names[a, 1]
    if c >= 0:
        first ^= keys.conditions[table.offsets[c] + ascent.levels[c], 0]
        second ^= keys.conditions[table.offsets[c] + ascent.levels[c], 1]
    key_first, key_second = first ^ keys.asked[a, 0], ((second ^ keys.asked[a, 1]) & ~_TAG) | SCORE
    known = _slot_of(memo.keys, key_first, key_second)
    if memo.keys[known, 1] != _ZERO:
        return memo.values[known]
    _ask(a, c, False, first, second, table, keys, memo, slices, crosstab, ascent)
    _ask(a, c, True, first, second, table, keys, memo, slices, crosstab, ascent)
    score = 0.0
    for b in range(table.codes.shape[0]):
        if b != a:
            odds = ascent.log_odds[b]
            score -= max(odds, 0.0) + math.log1p(exp(-abs(odds)))
    _keep(memo, _slot_of(memo.keys, key_first, key_second), key_first, key_second, score)
    ascent.state[N_VALUES] += 1
    return score


@inlined
def _size(links, a):
    size = 0
    for word in range(links.shape[1]):
        size += np.int64(popcount(links[a, word]))
    return size


@inlined
def _may_flip(a, b, rules, links):
    """Tell whether an edge may be flipped; one that is not there needs room at both ends."""
    if not has_bit(rules.flippable, a, b):
        return False
    return has_bit(links, a, b) or max(_size(links, a), _size(links, b)) < rules.max_blanket


@inlined
def _flip(a, b, table, keys, ascent):
    """Flip an edge in the graph, and its ends in the keys of their blankets."""
    flip_bit(ascent.links, a, b)
    flip_bit(ascent.links, b, a)
    for half in range(2):
        ascent.names[a, half] ^= keys.conditions[table.offsets[b] + ascent.levels[b], half]
        ascent.names[b, half] ^= keys.conditions[table.offsets[a] + ascent.levels[a], half]


@inlined
def _begin(graph, table, keys, ascent):
    """Begin a climb at a graph; its score is asked for."""
    n = table.codes.shape[0]
    for a in range(n):
        for word in range(graph.shape[1]):
            ascent.links[a, word] = graph[a, word]
        for half in range(2):
            ascent.names[a, half] = _ZERO
            for b in range(n):
                if has_bit(graph, a, b):
                    condition = table.offsets[b] + ascent.levels[b]
                    ascent.names[a, half] ^= keys.conditions[condition, half]
        _forget(a, ascent)
    ascent.state[N_ASKED] += n * (n - 1)


@inlined
def _forget(a, ascent):
    ascent.scores[a] = np.nan
    for c in range(ascent.scores.shape[0]):
        ascent.flipped[a, c] = np.nan


@inlined
def _begin_context(row, graph, table, keys, ascent):
    for variable in range(table.codes.shape[0]):
        ascent.levels[variable] = table.codes[variable, row]
    ascent.state[BEGUN], ascent.state[RESTART] = 1, 0
    ascent.best_score[0] = -np.inf
    _begin(graph, table, keys, ascent)


@inlined
def _restart(table, keys, rules, ascent):
    """Begin again at the best graph with some of its edges flipped."""
    n, state = table.codes.shape[0], ascent.state
    _begin(ascent.best, table, keys, ascent)
    shuffled, n_left = rules.shuffled[state[RESTART]], n
    for i in range(shuffled.shape[0]):
        if n_left > 0 and _may_flip(shuffled[i, 0], shuffled[i, 1], rules, ascent.links):
            _flip(shuffled[i, 0], shuffled[i, 1], table, keys, ascent)
            n_left -= 1
    state[RESTART] += 1


@inlined
def _look(spent, max_spent, table, keys, rules, memo, slices, crosstab, ascent):
    """Compute the scores of the graph and of all a flip leads to; return the work done, -1 if unfinished."""
    n, state = table.codes.shape[0], ascent.state
    for a in range(n):
        for c in range(-1, n):
            known = ascent.scores[a] if c < 0 else ascent.flipped[a, c]
            if not np.isnan(known) or (c >= 0 and not _may_flip(a, c, rules, ascent.links)):
                continue
            # A score asks for one table of each other variable at most.
            if spent >= max_spent or 2 * (state[N_VALUES] + n) > memo.keys.shape[0]:
                return -1
            before = state[N_QUESTIONS]
            score = _score_variable(a, c, table, keys, memo, slices, crosstab, ascent)
            spent += 1 + _EFFORT * (state[N_QUESTIONS] - before)
            if c < 0:
                ascent.scores[a] = score
            else:
                ascent.flipped[a, c] = score
    return spent


@inlined
def _sum_scores(ascent):
    total = 0.0
    for a in range(ascent.scores.shape[0]):
        total += ascent.scores[a]
    return total


@inlined
def _margin(score):
    """Return by how much scores must differ to count as different, as `tolerance` in `learners/ibmap.py`."""
    return 1e-9 + 1e-12 * abs(score)


@inlined
def _gain(a, b, ascent):
    return (ascent.flipped[a, b] - ascent.scores[a]) + (ascent.flipped[b, a] - ascent.scores[b])


@inlined
def _step(table, keys, rules, ascent):
    """Flip the edge that gains most, the first of those that gain as much; return whether there is one."""
    n, links = table.codes.shape[0], ascent.links
    best, margin, n_flips = -np.inf, _margin(_sum_scores(ascent)), 0
    for a in range(n):
        for b in range(a + 1, n):
            if _may_flip(a, b, rules, links):
                n_flips += 1
                best = max(best, _gain(a, b, ascent))
    ascent.state[N_ASKED] += 2 * (n - 1) * n_flips
    if best <= margin:
        return False
    for a in range(n):
        for b in range(a + 1, n):
            if _may_flip(a, b, rules, links) and _gain(a, b, ascent) >= best - margin:
                score_a, score_b = ascent.flipped[a, b], ascent.flipped[b, a]
                _flip(a, b, table, keys, ascent)
                _forget(a, ascent)
                _forget(b, ascent)
                ascent.scores[a], ascent.scores[b] = score_a, score_b
                return True
    return False


@compiled
def ascend_contexts(contexts, graphs, totals, table, keys, rules, memo, slices, crosstab, ascent, max_spent):
    """Climb in one context after the other, from where `ascent` stands; returns how many are finished.

    Writes their graphs (variables, contexts, words) and their scores. Stops after `max_spent` scores looked
    up, or as much work of other kinds, and when the memo is half full.
    """
    graphs, table, keys = without_refcount((graphs, table, keys))
    rules, memo, ascent = without_refcount((rules, memo, ascent))
    slices, crosstab = without_refcount((slices, crosstab))
    state, spent = ascent.state, 0
    take_all(0, table, slices)
    state[DEPTH] = 0
    while state[CONTEXT] < contexts.shape[0]:
        if state[BEGUN] == 0:
            _begin_context(contexts[state[CONTEXT]], rules.required, table, keys, ascent)
        spent = _look(spent, max_spent, table, keys, rules, memo, slices, crosstab, ascent)
        if spent < 0:
            break
        if _step(table, keys, rules, ascent):
            continue
        total = _sum_scores(ascent)
        if state[RESTART] == 0 or total > ascent.best_score[0] + _margin(ascent.best_score[0]):
            ascent.best_score[0] = total
            ascent.best[:] = ascent.links
        if state[RESTART] < rules.shuffled.shape[0]:
            _restart(table, keys, rules, ascent)
            continue
        context = state[CONTEXT]
        graphs[:, context] = ascent.best
        totals[context] = ascent.best_score[0]
        state[CONTEXT], state[BEGUN] = context + 1, 0
    return state[CONTEXT]
