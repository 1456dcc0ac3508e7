"""A memo of answered questions: open addressing on 128-bit keys, the answer in the two low bits.

A question is ({a, b}, x_U). Its key is the exclusive or of random words, one for each condition of x_U
and one for each of a and b, so that it is updated by a single operation when a condition comes or goes
and does not depend on their order. Two of ten million questions share a key with probability below 1e-23.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.compiling import borrowed, compiled, inlined, prefetch

_ZERO, _TWO, _ANSWER = np.uint64(0), np.uint64(2), np.uint64(3)
_SHIFT = np.uint64(20)
# How many answers ahead a memo that is merged into is fetched from memory.
_AHEAD = 8


class Keys(NamedTuple):
    """The random words questions are named by."""

    conditions: Any  # uint64 (levels of all variables, 2)
    asked: Any  # uint64 (variables, 2)


class Log(NamedTuple):
    """Answers in the order they came, each as the memo keeps it, and the variable asked about."""

    answers: Any  # uint64 (room, 2)
    others: Any  # int32 (room,)


@inlined
def expect(memo, first):
    """Fetch the place where a key will be looked for."""
    prefetch(memo, np.int64(first >> _SHIFT) & (memo.shape[0] - 1))


@inlined
def find(memo, first, second):
    """Return the place of a key, or the gap where it belongs."""
    mask = memo.shape[0] - 1
    place = np.int64(first >> _SHIFT) & mask
    while True:
        stored = memo[place, 1]
        if stored & _ANSWER == _ZERO:
            return place
        if memo[place, 0] == first and (stored >> _TWO) == (second >> _TWO):
            return place
        place = (place + 1) & mask


@inlined
def answer_at(memo, place):
    """Return the answer kept at a place, 0 for a gap."""
    return np.int64(memo[place, 1] & _ANSWER)


@inlined
def keep(memo, place, first, second, answer):
    """Write an answer into the gap found for its key."""
    memo[place, 0] = first
    memo[place, 1] = (second & ~_ANSWER) | np.uint64(answer)


@inlined
def note(log, at, memo, place, other):
    """Write the answer at a place of the memo into the log too."""
    log.answers[at, 0] = memo[place, 0]
    log.answers[at, 1] = memo[place, 1]
    log.others[at] = other


@compiled
def sort_log(log, n_answers, begins, answers):
    """Sort the answers of a log by the variable asked about; those about `v` begin at `begins[v]`."""
    for i in range(begins.shape[0]):
        begins[i] = 0
    for i in range(n_answers):
        begins[log.others[i] + 1] += 1
    for v in range(begins.shape[0] - 1):
        begins[v + 1] += begins[v]
    for i in range(n_answers):
        place = begins[log.others[i]]
        answers[place, 0] = log.answers[i, 0]
        answers[place, 1] = log.answers[i, 1]
        begins[log.others[i]] += 1
    # Each beginning has moved to the next one.
    for v in range(begins.shape[0] - 1, 0, -1):
        begins[v] = begins[v - 1]
    begins[0] = 0


@compiled
def merge(memo, other):
    """Add the answers of another memo, for which there must be room; returns how many were new."""
    memo, other = borrowed(memo), borrowed(other)
    n_new, n_other = 0, other.shape[0]
    for i in range(n_other):
        if i + _AHEAD < n_other:
            expect(memo, other[i + _AHEAD, 0])
        if other[i, 1] & _ANSWER != _ZERO:
            place = find(memo, other[i, 0], other[i, 1])
            if memo[place, 1] & _ANSWER == _ZERO:
                memo[place, 0] = other[i, 0]
                memo[place, 1] = other[i, 1]
                n_new += 1
    return n_new
