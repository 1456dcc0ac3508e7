"""The conditional of every variable given the others: value, gradient and curvature over all cases.

A case of a variable is what its blanket (the variables it shares features with) says, and holds the rows
that say so. A feature enters the conditional of a variable in a case where all its conditions on other
variables hold: this pair of variable and feature is a slot. The cases a slot holds in are listed where
they are few, and found anew from bitmaps in every pass where they are many. Cases are taken in blocks, so
that the scores of a block stay in the cache.

Variables do not touch each other's results, so that threads may share them out in any way without changing
a bit. The Hessian is a dense matrix, for feature sets of moderate size.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.compiling import compiled, exp, inlined, log, popcount, trailing_zeros, without_refcount

_ZERO, _ONE = np.uint64(0), np.uint64(1)
# What a pass computes: the negative log-likelihood and its gradient, a product of its Hessian with a
# vector, or a bound on the diagonal of its Hessian.
VALUE, PRODUCT, DIAGONAL = 0, 1, 2


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
def and_conditions(variable, slot, first_word, n_words, n_cases, conditions, cases, slots, met):
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


@compiled
def list_cases(variables, begin, end, conditions, cases, slots, fill):
    """Find the cases each slot holds in: how many (into `bounds[list + 1]`), or which (into `entries`).

    Of each of some variables, the blocks from `begin` to `end` are looked at.
    """
    conditions, cases, slots = without_refcount((conditions, cases, slots))
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
                and_conditions(v, slot, first >> 6, n_words, n_cases, conditions, cases, slots, met)
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


@inlined
def _scatter(v, first_list, first, n_words, n_cases, weights, conditions, cases, slots, scores, met):
    """Add up the weights of the features that enter the cases of a block."""
    bounds, entries, feature = slots.bounds, slots.entries, slots.feature
    binary = cases.n_levels[v] == 2
    block = cases.block[v]
    for i in range(scores.shape[0]):
        scores[i] = 0.0
    for slot in range(slots.start[v], slots.start[v + 1]):
        weight = weights[feature[slot]]
        here = first_list + slot - slots.start[v]
        if weight == 0.0 or (slots.listed[slot] and bounds[here] == bounds[here + 1]):
            continue
        if not slots.listed[slot]:
            and_conditions(v, slot, first >> 6, n_words, n_cases, conditions, cases, slots, met)
        for i in range(slots.low[slot], slots.high[slot]):
            column, sign = placed(conditions, i, binary)
            base = column * block
            step = sign * weight
            if slots.listed[slot]:
                for entry in range(bounds[here], bounds[here + 1]):
                    scores[base + entries[entry]] += step
            else:
                for word in range(n_words):
                    rest = met[word]
                    while rest != _ZERO:
                        scores[base + (word << 6) + np.int64(trailing_zeros(rest))] += step
                        rest &= rest - _ONE


@inlined
def _gather(v, first_list, first, n_words, n_cases, mode, conditions, cases, slots, residuals, met, sums):
    """Add up, for every slot, what remains in the cases of a block it enters."""
    bounds, entries = slots.bounds, slots.entries
    binary = cases.n_levels[v] == 2
    block = cases.block[v]
    for slot in range(slots.start[v], slots.start[v + 1]):
        here = first_list + slot - slots.start[v]
        if slots.listed[slot] and bounds[here] == bounds[here + 1]:
            continue
        if not slots.listed[slot]:
            and_conditions(v, slot, first >> 6, n_words, n_cases, conditions, cases, slots, met)
        for i in range(slots.low[slot], slots.high[slot]):
            column, sign = placed(conditions, i, binary)
            base = column * block
            total = 0.0
            if slots.listed[slot]:
                for entry in range(bounds[here], bounds[here + 1]):
                    total += residuals[base + entries[entry]]
            else:
                for word in range(n_words):
                    rest = met[word]
                    while rest != _ZERO:
                        total += residuals[base + (word << 6) + np.int64(trailing_zeros(rest))]
                        rest &= rest - _ONE
            sums[slot] += total if mode == DIAGONAL else sign * total


@inlined
def _two_levels(mode, first, size, case, first_kept, probabilities, cases, scores):
    """Turn differences of scores into residuals; returns the negative log-likelihood."""
    observed, level, count = cases.observed, cases.level, cases.counts
    loss = 0.0
    for i in range(size):
        zeros, ones = 0.0, 0.0
        for k in range(observed[case + i], observed[case + i + 1]):
            if level[k] == 1:
                ones += count[k]
            else:
                zeros += count[k]
        if mode == VALUE:
            score = scores[i]
            small = exp(-abs(score))
            rest = np.log1p(small)
            loss += ones * (rest - min(score, 0.0)) + zeros * (rest + max(score, 0.0))
            probability = (1.0 if score > 0 else small) / (1.0 + small)
            if probabilities.shape[0] > 0:
                probabilities[first_kept + first + i] = probability
            scores[i] = (zeros + ones) * probability - ones
        else:
            probability = probabilities[first_kept + first + i]
            spread = (zeros + ones) * probability * (1.0 - probability)
            scores[i] = spread if mode == DIAGONAL else spread * scores[i]
    return loss


@inlined
def _many_levels(mode, first, size, case, first_kept, probabilities, cases, scores, n_levels, block, n_cases):
    """Turn scores into residuals; returns the negative log-likelihood."""
    observed, level, count = cases.observed, cases.level, cases.counts
    loss = 0.0
    powers = np.empty(n_levels)
    for i in range(size):
        rows = 0.0
        for k in range(observed[case + i], observed[case + i + 1]):
            rows += count[k]
        if mode == VALUE:
            top = scores[i]
            for column in range(1, n_levels):
                top = max(top, scores[column * block + i])
            total = 0.0
            for column in range(n_levels):
                powers[column] = exp(scores[column * block + i] - top)
                total += powers[column]
            log_total = log(total)
            for k in range(observed[case + i], observed[case + i + 1]):
                loss += count[k] * (log_total + top - scores[np.int64(level[k]) * block + i])
            for column in range(n_levels):
                at = column * block + i
                probability = powers[column] / total
                if probabilities.shape[0] > 0:
                    probabilities[first_kept + column * n_cases + first + i] = probability
                scores[at] = rows * probability
            for k in range(observed[case + i], observed[case + i + 1]):
                scores[np.int64(level[k]) * block + i] -= count[k]
        else:
            mean = 0.0
            for column in range(n_levels):
                mean += probabilities[first_kept + column * n_cases + first + i] * scores[column * block + i]
            for column in range(n_levels):
                probability = probabilities[first_kept + column * n_cases + first + i]
                at = column * block + i
                moved = 1.0 - probability if mode == DIAGONAL else scores[at] - mean
                scores[at] = rows * probability * moved
    return loss


@compiled
def sweep(
    mode, variables, begin, end, weights, first_kept, probabilities, conditions, cases, slots, values, sums
):
    """Pass over the blocks of cases from `begin` to `end` of some variables.

    VALUE adds the negative log-likelihood of each variable to `values`, writes `probabilities` (from
    `first_kept[variable]` on; unless it is empty) and adds each slot's share of the gradient to `sums`
    (unless it is empty). PRODUCT and DIAGONAL read `probabilities` and add shares to `sums`.
    """
    weights, probabilities, sums = without_refcount((weights, probabilities, sums))
    conditions, cases, slots = without_refcount((conditions, cases, slots))
    for v in variables:
        n_levels, block = cases.n_levels[v], cases.block[v]
        n_cases = cases.start[v + 1] - cases.start[v]
        scores = np.empty(block if n_levels == 2 else block * n_levels)
        met = np.empty(block >> 6, dtype=np.uint64)
        n_slots = slots.start[v + 1] - slots.start[v]
        first_list = slots.lists[v] + begin * n_slots
        value = values[v]
        for first in range(begin * block, min(end * block, n_cases), block):
            size = min(block, n_cases - first)
            n_words = (size + 63) >> 6
            case = cases.start[v] + first
            _scatter(v, first_list, first, n_words, n_cases, weights, conditions, cases, slots, scores, met)
            if n_levels == 2:
                value += _two_levels(mode, first, size, case, first_kept[v], probabilities, cases, scores)
            else:
                value += _many_levels(
                    mode,
                    first,
                    size,
                    case,
                    first_kept[v],
                    probabilities,
                    cases,
                    scores,
                    n_levels,
                    block,
                    n_cases,
                )
            if sums.shape[0] > 0:
                _gather(
                    v, first_list, first, n_words, n_cases, mode, conditions, cases, slots, scores, met, sums
                )
            first_list += n_slots
        values[v] = value


@inlined
def _enter(v, first, n_words, n_cases, first_list, fill, conditions, cases, slots, met, begins, entering):
    """Count (shifted by two), or list, the slots that enter each case of a block."""
    bounds, entries = slots.bounds, slots.entries
    for slot in range(slots.start[v], slots.start[v + 1]):
        if slots.listed[slot]:
            here = first_list + slot - slots.start[v]
            for entry in range(bounds[here], bounds[here + 1]):
                case = np.int64(entries[entry])
                if fill:
                    entering[begins[case + 1]] = slot
                begins[case + (1 if fill else 2)] += 1
            continue
        and_conditions(v, slot, first >> 6, n_words, n_cases, conditions, cases, slots, met)
        for word in range(n_words):
            rest = met[word]
            while rest != _ZERO:
                case = (word << 6) + np.int64(trailing_zeros(rest))
                if fill:
                    entering[begins[case + 1]] = slot
                begins[case + (1 if fill else 2)] += 1
                rest &= rest - _ONE


@inlined
def _mean(slot, first_kept, n_cases, case, binary, conditions, slots, probabilities):
    """Return the expectation of a slot's feature in a case, up to a constant."""
    total = 0.0
    for i in range(slots.low[slot], slots.high[slot]):
        column, sign = placed(conditions, i, binary)
        total += sign * probabilities[first_kept + column * n_cases + case]
    return total


@inlined
def _both(left, right, first_kept, n_cases, case, binary, conditions, slots, probabilities):
    """Return the expectation of the product of two slots' features in a case, up to the same constants."""
    total = 0.0
    for i in range(slots.low[left], slots.high[left]):
        column, sign = placed(conditions, i, binary)
        for j in range(slots.low[right], slots.high[right]):
            other, turn = placed(conditions, j, binary)
            if column == other:
                total += sign * turn * probabilities[first_kept + column * n_cases + case]
    return total


@compiled
def add_hessian(v, begin, end, first_kept, probabilities, conditions, cases, slots, matrix):
    """Add what some blocks of a variable's cases say to the Hessian, into the lower triangle.

    It is the Hessian at the weights whose probabilities are given.
    """
    matrix, probabilities = without_refcount((matrix, probabilities))
    conditions, cases, slots = without_refcount((conditions, cases, slots))
    binary, block = cases.n_levels[v] == 2, cases.block[v]
    n_cases = cases.start[v + 1] - cases.start[v]
    n_slots = slots.start[v + 1] - slots.start[v]
    met = np.empty(block >> 6, dtype=np.uint64)
    begins = np.empty(block + 2, dtype=np.int64)
    means = np.empty(n_slots)
    nothing = np.empty(0, dtype=np.int64)
    first_list = slots.lists[v] + begin * n_slots
    for first in range(begin * block, min(n_cases, end * block), block):
        size = min(block, n_cases - first)
        n_words = (size + 63) >> 6
        for i in range(size + 2):
            begins[i] = 0
        _enter(v, first, n_words, n_cases, first_list, False, conditions, cases, slots, met, begins, nothing)
        for i in range(2, size + 2):
            begins[i] += begins[i - 1]
        entering = np.empty(begins[size + 1], dtype=np.int64)
        # Each case's begin moves on as it is filled, and so ends where the next one's was.
        _enter(v, first, n_words, n_cases, first_list, True, conditions, cases, slots, met, begins, entering)
        for i in range(size):
            case = first + i
            rows = 0.0
            for k in range(cases.observed[cases.start[v] + case], cases.observed[cases.start[v] + case + 1]):
                rows += cases.counts[k]
            for a in range(begins[i], begins[i + 1]):
                means[a - begins[i]] = _mean(
                    entering[a], first_kept[v], n_cases, case, binary, conditions, slots, probabilities
                )
            for a in range(begins[i], begins[i + 1]):
                left = entering[a]
                for b in range(begins[i], a + 1):
                    right = entering[b]
                    both = _both(
                        left, right, first_kept[v], n_cases, case, binary, conditions, slots, probabilities
                    )
                    moved = both - means[a - begins[i]] * means[b - begins[i]]
                    matrix[slots.feature[left], slots.feature[right]] += rows * moved
        first_list += n_slots
