"""The conditional of every variable given the others: value, gradient and curvature over all cases.

Variables do not touch each other's results, so that threads may share them out in any way without changing
a bit. The layout is that of `unless.kernels.cases`.
"""

import numpy as np

from unless.kernels.cases import borrowed_layout, meet, placed
from unless.kernels.compiling import borrowed, compiled, inlined, trailing_zeros

# What a pass computes: the negative log-likelihood and its gradient, a product of its Hessian with a
# vector, or a bound on the diagonal of its Hessian.
VALUE, PRODUCT, DIAGONAL = 0, 1, 2

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@inlined
def _scatter(v, place, first, n_words, n_cases, weights, conditions, cases, slots, scores, met):
    """Add up the weights of the features that enter the cases of a block."""
    bounds, entries, feature = slots.bounds, slots.entries, slots.feature
    binary = cases.n_levels[v] == 2
    block = cases.block[v]
    for i in range(scores.shape[0]):
        scores[i] = 0.0
    for slot in range(slots.start[v], slots.start[v + 1]):
        weight = weights[feature[slot]]
        here = place + slot - slots.start[v]
        if weight == 0.0 or (slots.listed[slot] and bounds[here] == bounds[here + 1]):
            continue
        if not slots.listed[slot]:
            meet(v, slot, first >> 6, n_words, n_cases, conditions, cases, slots, met)
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
def _gather(v, place, first, n_words, n_cases, mode, conditions, cases, slots, residuals, met, sums):
    """Add up, for every slot, what remains in the cases of a block it enters."""
    bounds, entries = slots.bounds, slots.entries
    binary = cases.n_levels[v] == 2
    block = cases.block[v]
    for slot in range(slots.start[v], slots.start[v + 1]):
        here = place + slot - slots.start[v]
        if slots.listed[slot] and bounds[here] == bounds[here + 1]:
            continue
        if not slots.listed[slot]:
            meet(v, slot, first >> 6, n_words, n_cases, conditions, cases, slots, met)
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
def _two_levels(mode, first, size, case, kept, chances, cases, scores):
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
            small = np.exp(-abs(score))
            rest = np.log1p(small)
            loss += ones * (rest - min(score, 0.0)) + zeros * (rest + max(score, 0.0))
            chance = (1.0 if score > 0 else small) / (1.0 + small)
            if chances.shape[0] > 0:
                chances[kept + first + i] = chance
            scores[i] = (zeros + ones) * chance - ones
        else:
            chance = chances[kept + first + i]
            spread = (zeros + ones) * chance * (1.0 - chance)
            scores[i] = spread if mode == DIAGONAL else spread * scores[i]
    return loss


@inlined
def _many_levels(mode, first, size, case, kept, chances, cases, scores, n_levels, block, n_cases):
    """Turn scores into residuals; returns the negative log-likelihood."""
    observed, level, count = cases.observed, cases.level, cases.counts
    loss = 0.0
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
                total += np.exp(scores[column * block + i] - top)
            for k in range(observed[case + i], observed[case + i + 1]):
                loss += count[k] * (np.log(total) + top - scores[np.int64(level[k]) * block + i])
            for column in range(n_levels):
                at = column * block + i
                chance = np.exp(scores[at] - top) / total
                if chances.shape[0] > 0:
                    chances[kept + column * n_cases + first + i] = chance
                scores[at] = rows * chance
            for k in range(observed[case + i], observed[case + i + 1]):
                scores[np.int64(level[k]) * block + i] -= count[k]
        else:
            mean = 0.0
            for column in range(n_levels):
                mean += chances[kept + column * n_cases + first + i] * scores[column * block + i]
            for column in range(n_levels):
                chance = chances[kept + column * n_cases + first + i]
                at = column * block + i
                moved = 1.0 - chance if mode == DIAGONAL else scores[at] - mean
                scores[at] = rows * chance * moved
    return loss


@compiled
def sweep(mode, variables, begin, end, weights, kept, chances, conditions, cases, slots, values, sums):
    """Pass over the blocks of cases from `begin` to `end` of some variables.

    VALUE adds the negative log-likelihood of each variable to `values`, writes the probabilities into
    `chances` (from `kept[variable]` on; unless it is empty) and adds each slot's share of the gradient to
    `sums` (unless it is empty). PRODUCT and DIAGONAL read `chances` and add shares to `sums`.
    """
    weights, chances, sums = borrowed(weights), borrowed(chances), borrowed(sums)
    conditions, cases, slots = borrowed_layout(conditions, cases, slots)
    for v in variables:
        n_levels, block = cases.n_levels[v], cases.block[v]
        n_cases = cases.start[v + 1] - cases.start[v]
        scores = np.empty(block if n_levels == 2 else block * n_levels)
        met = np.empty(block >> 6, dtype=np.uint64)
        n_slots = slots.start[v + 1] - slots.start[v]
        place = slots.lists[v] + begin * n_slots
        value = values[v]
        for first in range(begin * block, min(end * block, n_cases), block):
            size = min(block, n_cases - first)
            n_words = (size + 63) >> 6
            case = cases.start[v] + first
            _scatter(v, place, first, n_words, n_cases, weights, conditions, cases, slots, scores, met)
            if n_levels == 2:
                value += _two_levels(mode, first, size, case, kept[v], chances, cases, scores)
            else:
                value += _many_levels(
                    mode, first, size, case, kept[v], chances, cases, scores, n_levels, block, n_cases
                )
            if sums.shape[0] > 0:
                _gather(v, place, first, n_words, n_cases, mode, conditions, cases, slots, scores, met, sums)
            place += n_slots
        values[v] = value
