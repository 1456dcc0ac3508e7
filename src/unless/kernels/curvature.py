"""The Hessian of the negative pseudo-log-likelihood as a dense matrix, for feature sets of moderate size."""

import numpy as np

from unless.kernels.cases import borrowed_layout, meet, placed
from unless.kernels.compiling import borrowed, compiled, inlined, trailing_zeros

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@inlined
def _enter(v, first, n_words, n_cases, place, fill, conditions, cases, slots, met, begins, entering):
    """Count (shifted by two), or list, the slots that enter each case of a block."""
    bounds, entries = slots.bounds, slots.entries
    for slot in range(slots.start[v], slots.start[v + 1]):
        if slots.listed[slot]:
            here = place + slot - slots.start[v]
            for entry in range(bounds[here], bounds[here + 1]):
                case = np.int64(entries[entry])
                if fill:
                    entering[begins[case + 1]] = slot
                begins[case + (1 if fill else 2)] += 1
            continue
        meet(v, slot, first >> 6, n_words, n_cases, conditions, cases, slots, met)
        for word in range(n_words):
            rest = met[word]
            while rest != _ZERO:
                case = (word << 6) + np.int64(trailing_zeros(rest))
                if fill:
                    entering[begins[case + 1]] = slot
                begins[case + (1 if fill else 2)] += 1
                rest &= rest - _ONE


@inlined
def _mean(slot, kept, n_cases, case, binary, conditions, slots, chances):
    """Return the expectation of a slot's feature in a case, up to a constant."""
    total = 0.0
    for i in range(slots.low[slot], slots.high[slot]):
        column, sign = placed(conditions, i, binary)
        total += sign * chances[kept + column * n_cases + case]
    return total


@inlined
def _both(left, right, kept, n_cases, case, binary, conditions, slots, chances):
    """Return the expectation of the product of two slots' features in a case, up to the same constants."""
    total = 0.0
    for i in range(slots.low[left], slots.high[left]):
        column, sign = placed(conditions, i, binary)
        for j in range(slots.low[right], slots.high[right]):
            other, turn = placed(conditions, j, binary)
            if column == other:
                total += sign * turn * chances[kept + column * n_cases + case]
    return total


@compiled
def add_hessian(v, begin, end, kept, chances, conditions, cases, slots, matrix):
    """Add what some blocks of a variable's cases say to the Hessian, into the lower triangle.

    It is the Hessian at the weights whose probabilities are given.
    """
    matrix, chances = borrowed(matrix), borrowed(chances)
    conditions, cases, slots = borrowed_layout(conditions, cases, slots)
    binary, block = cases.n_levels[v] == 2, cases.block[v]
    n_cases = cases.start[v + 1] - cases.start[v]
    n_slots = slots.start[v + 1] - slots.start[v]
    met = np.empty(block >> 6, dtype=np.uint64)
    begins = np.empty(block + 2, dtype=np.int64)
    means = np.empty(n_slots)
    nothing = np.empty(0, dtype=np.int64)
    place = slots.lists[v] + begin * n_slots
    for first in range(begin * block, min(n_cases, end * block), block):
        size = min(block, n_cases - first)
        n_words = (size + 63) >> 6
        for i in range(size + 2):
            begins[i] = 0
        _enter(v, first, n_words, n_cases, place, False, conditions, cases, slots, met, begins, nothing)
        for i in range(2, size + 2):
            begins[i] += begins[i - 1]
        entering = np.empty(begins[size + 1], dtype=np.int64)
        # Each case's begin moves on as it is filled, and so ends where the next one's was.
        _enter(v, first, n_words, n_cases, place, True, conditions, cases, slots, met, begins, entering)
        for i in range(size):
            case = first + i
            rows = 0.0
            for k in range(cases.observed[cases.start[v] + case], cases.observed[cases.start[v] + case + 1]):
                rows += cases.counts[k]
            for a in range(begins[i], begins[i + 1]):
                means[a - begins[i]] = _mean(
                    entering[a], kept[v], n_cases, case, binary, conditions, slots, chances
                )
            for a in range(begins[i], begins[i + 1]):
                left = entering[a]
                for b in range(begins[i], a + 1):
                    right = entering[b]
                    both = _both(left, right, kept[v], n_cases, case, binary, conditions, slots, chances)
                    moved = both - means[a - begins[i]] * means[b - begins[i]]
                    matrix[slots.feature[left], slots.feature[right]] += rows * moved
        place += n_slots
