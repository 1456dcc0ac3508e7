"""A memo of answered questions: open addressing on 126-bit keys, the answer in the low bits.

A question is ({a, b}, x_U). Its key is the exclusive or of random words, one for each condition of x_U
and one for each of a and b, so that it is updated by a single operation when a condition comes or goes
and does not depend on their order. Two of ten million questions share a key with probability below 1e-22.

Threads may share a memo: a gap is claimed by the first word of a key, and an answer is there once the second
word is written. Nothing is ever moved, so that of several threads with the same answer one keeps it.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.compiling import compare_and_swap, compiled, inlined, prefetch, without_refcount

_ZERO, _ANSWER = np.uint64(0), np.uint64(3)
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
def prefetch_slot(memo, first):
    """Fetch the slot where a key will be looked for."""
    prefetch(memo, np.int64(first >> _SHIFT) & (memo.shape[0] - 1))


@inlined
def known_answer(memo, first, second):
    """Return the answer to a question, 0 if it is not known."""
    mask = memo.shape[0] - 1
    slot = np.int64(first >> _SHIFT) & mask
    while True:
        # Read once: another thread may fill a gap at any time, with the answer to another question.
        stored = memo[slot, 1]
        if stored & _ANSWER == _ZERO:
            return np.int64(0)
        if memo[slot, 0] == first and (stored ^ second) & ~_ANSWER == _ZERO:
            return np.int64(stored & _ANSWER)
        slot = (slot + 1) & mask


@inlined
def keep(memo, first, second, answer):
    """Write an answer and return its slot, or -1 where another thread has been quicker."""
    mask = memo.shape[0] - 1
    # From the beginning: what was a gap may be taken, and only the claim itself can tell.
    slot = np.int64(first >> _SHIFT) & mask
    while True:
        present = memo[slot, 0]
        if present == _ZERO:
            present = compare_and_swap(memo, slot, first)
            if present == _ZERO:
                memo[slot, 1] = (second & ~_ANSWER) | np.uint64(answer)
                return slot
        stored = memo[slot, 1]
        # A claimed slot without an answer: half a key is enough to tell what is being written there.
        if present == first and (stored == _ZERO or (stored ^ second) & ~_ANSWER == _ZERO):
            return -1
        slot = (slot + 1) & mask


@inlined
def keep_and_log(memo, first, second, answer, log, at, other):
    """Write an answer into memo and log; returns 0 if another thread has done so meanwhile, else 1."""
    slot = keep(memo, first, second, answer)
    if slot < 0:
        return 0
    log.answers[at, 0] = memo[slot, 0]
    log.answers[at, 1] = memo[slot, 1]
    log.others[at] = other
    return 1


@compiled
def count_log(log, node, begins):
    """Find where the answers about each variable after a node begin in a log that is sorted by them."""
    for i in range(begins.shape[0]):
        begins[i] = 0
    for i in range(log.others.shape[0]):
        if log.others[i] > node:
            begins[log.others[i] + 1] += 1
    for v in range(begins.shape[0] - 1):
        begins[v + 1] += begins[v]


@compiled
def sort_log(log, node, starts, answers):
    """Sort the answers about variables after a node by these; `starts` says where those about each begin."""
    log, answers = without_refcount((log, answers))
    for i in range(log.others.shape[0]):
        other = log.others[i]
        if other > node:
            answers[starts[other], 0] = log.answers[i, 0]
            answers[starts[other], 1] = log.answers[i, 1]
            starts[other] += 1


@compiled
def merge(memo, other):
    """Add the answers of another memo, for which there must be room; returns how many were new.

    Threads may add others at the same time.
    """
    memo, other = without_refcount((memo, other))
    n_new, n_other = 0, other.shape[0]
    for i in range(n_other):
        if i + _AHEAD < n_other:
            prefetch_slot(memo, other[i + _AHEAD, 0])
        second = other[i, 1]
        if second & _ANSWER != _ZERO:
            n_new += keep(memo, other[i, 0], second, second & _ANSWER) >= 0
    return n_new
