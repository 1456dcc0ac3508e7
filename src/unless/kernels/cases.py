"""Features over the cases of every variable: the layout that passes over the pseudo-likelihood read.

A case of a variable is what its blanket (the variables it shares features with) says, and holds the rows
that say so. A feature enters the conditional of a variable in a case where all its conditions on other
variables hold: this pair of variable and feature is a slot. The cases a slot holds in are listed where
they are few, and found anew from bitmaps in every pass where they are many. Cases are taken in blocks, so
that the scores of a block stay in the cache.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.compiling import borrowed, compiled, inlined, popcount, trailing_zeros

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class Conditions(NamedTuple):
    """Features: feature k holds the conditions from start[k] to start[k + 1], sorted by variable."""

    start: Any  # int64 (features + 1,)
    variable: Any  # int32 (conditions,)
    level: Any  # uint16 (conditions,)
    equal: Any  # bool (conditions,)


class Cases(NamedTuple):
    """The cases of every variable, one variable after another."""

    n_levels: Any  # int64 (variables,)
    block: Any  # int64 (variables,): cases taken at once, a multiple of 64
    start: Any  # int64 (variables + 1,): first case of each variable
    observed: Any  # int64 (cases + 1,): first observation of each case
    level: Any  # uint16 (observations,): a level the variable has in the case
    counts: Any  # float64 (observations,): and in how many rows
    words: Any  # uint64: bitmaps over cases
    bitmap: Any  # int64 (variables, variables): where, among a variable's, those of another one begin


class Slots(NamedTuple):
    """The features of every variable, one variable after another, and the cases they hold in."""

    start: Any  # int64 (variables + 1,): first slot of each variable
    feature: Any  # int32 (slots,)
    low: Any  # int64 (slots,): first condition on the variable itself
    high: Any  # int64 (slots,): first condition behind those
    listed: Any  # bool (slots,)
    lists: Any  # int64 (variables + 1,): first list of each variable; a list for each block and slot
    bounds: Any  # int64 (lists + 1,)
    entries: Any  # uint16: cases, counted from the beginning of their block


@inlined
def meet(variable, slot, first_word, n_words, n_cases, conditions, cases, slots, met):
    """Mark the cases of a block in which all conditions on other variables hold."""
    start, other, level, equal = conditions.start, conditions.variable, conditions.level, conditions.equal
    words = cases.words
    for word in range(n_words):
        met[word] = ~_ZERO
    if (first_word + n_words) << 6 > n_cases:
        met[n_words - 1] = (_ONE << np.uint64(n_cases & 63)) - _ONE
    feature = slots.feature[slot]
    low, high = slots.low[slot], slots.high[slot]
    width = (n_cases + 63) >> 6
    for i in range(start[feature], start[feature + 1]):
        if low <= i < high:
            continue
        base = cases.bitmap[variable, other[i]] + np.int64(level[i]) * width + first_word
        if equal[i]:
            for word in range(n_words):
                met[word] &= words[base + word]
        else:
            for word in range(n_words):
                met[word] &= ~words[base + word]


@inlined
def borrowed_layout(conditions, cases, slots):
    """Return the layout without the owners of its arrays."""
    return (
        Conditions(
            borrowed(conditions.start),
            borrowed(conditions.variable),
            borrowed(conditions.level),
            borrowed(conditions.equal),
        ),
        Cases(
            borrowed(cases.n_levels),
            borrowed(cases.block),
            borrowed(cases.start),
            borrowed(cases.observed),
            borrowed(cases.level),
            borrowed(cases.counts),
            borrowed(cases.words),
            borrowed(cases.bitmap),
        ),
        Slots(
            borrowed(slots.start),
            borrowed(slots.feature),
            borrowed(slots.low),
            borrowed(slots.high),
            borrowed(slots.listed),
            borrowed(slots.lists),
            borrowed(slots.bounds),
            borrowed(slots.entries),
        ),
    )


@compiled
def list_cases(variables, begin, end, conditions, cases, slots, fill):
    """Find the cases each slot holds in: how many (into `bounds[list + 1]`), or which (into `entries`).

    Of each of some variables, the blocks from `begin` to `end` are looked at.
    """
    conditions, cases, slots = borrowed_layout(conditions, cases, slots)
    bounds, entries, listed = slots.bounds, slots.entries, slots.listed
    for v in variables:
        block = cases.block[v]
        n_cases = cases.start[v + 1] - cases.start[v]
        met = np.empty(block >> 6, dtype=np.uint64)
        place = slots.lists[v] + begin * (slots.start[v + 1] - slots.start[v])
        for first in range(begin * block, min(end * block, n_cases), block):
            n_words = (min(block, n_cases - first) + 63) >> 6
            for slot in range(slots.start[v], slots.start[v + 1]):
                if fill and not listed[slot]:
                    place += 1
                    continue
                meet(v, slot, first >> 6, n_words, n_cases, conditions, cases, slots, met)
                if fill:
                    at = bounds[place]
                    for word in range(n_words):
                        rest = met[word]
                        while rest != _ZERO:
                            entries[at] = (word << 6) + np.int64(trailing_zeros(rest))
                            rest &= rest - _ONE
                            at += 1
                else:
                    size = _ZERO
                    for word in range(n_words):
                        size += popcount(met[word])
                    bounds[place + 1] = np.int64(size)
                place += 1


@inlined
def placed(conditions, i, binary):
    """Return the column of scores that a condition on the variable itself moves, and in which direction.

    A level that is excluded loses what all others would gain: the probabilities are the same. Of two
    levels only the second has scores, and they are differences.
    """
    sign = 1.0 if conditions.equal[i] else -1.0
    if binary:
        return np.int64(0), sign if conditions.level[i] == 1 else -sign
    return np.int64(conditions.level[i]), sign
