"""Slopes of very many features over the rows of a table, without laying the features out.

A feature enters the conditional of a variable in the rows that meet all its conditions but perhaps the one
on that variable. So only rows that miss at most one condition count, and those are found for all variables
of a feature at once, from bitmaps.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.compiling import borrowed, compiled, inlined, trailing_zeros

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class Sheet(NamedTuple):
    """Features as rows and the variables they keep, and the rows with each level as bitmaps."""

    codes: Any  # uint16 (rows, variables)
    first: Any  # int64 (variables,): the place of each variable's first level
    words: Any  # uint64 (places, words): the rows that have a level
    row: Any  # int32 (features,)
    kept: Any  # uint64 (features, words of variables)


class Desk(NamedTuple):
    """Scratch for one feature at a time."""

    places: Any  # int64 (variables,): the levels it asks for
    missed: Any  # uint64 (words,): rows that miss a condition
    again: Any  # uint64 (words,): rows that miss two
    alive: Any  # int64 (words,): words with rows that miss at most one


@inlined
def _borrowed(sheet, desk):
    return (
        Sheet(
            borrowed(sheet.codes),
            borrowed(sheet.first),
            borrowed(sheet.words),
            borrowed(sheet.row),
            borrowed(sheet.kept),
        ),
        Desk(borrowed(desk.places), borrowed(desk.missed), borrowed(desk.again), borrowed(desk.alive)),
    )


@inlined
def _meet(feature, sheet, desk):
    """Find the rows that miss at most one condition; returns the numbers of conditions and of live words."""
    places, missed, again, alive, words = desk.places, desk.missed, desk.again, desk.alive, sheet.words
    n_words = words.shape[1]
    row = np.int64(sheet.row[feature])
    size = 0
    for word in range(n_words):
        missed[word] = _ZERO
        again[word] = _ZERO
    for part in range(sheet.kept.shape[1]):
        rest = sheet.kept[feature, part]
        while rest != _ZERO:
            variable = (part << 6) + np.int64(trailing_zeros(rest))
            rest &= rest - _ONE
            place = sheet.first[variable] + np.int64(sheet.codes[row, variable])
            places[size] = place
            size += 1
            for word in range(n_words):
                absent = ~words[place, word]
                again[word] |= missed[word] & absent
                missed[word] |= absent
    tail = sheet.codes.shape[0] & 63
    if tail != 0:
        again[n_words - 1] |= ~((_ONE << np.uint64(tail)) - _ONE)
    n_alive = 0
    for word in range(n_words):
        if again[word] != ~_ZERO:
            alive[n_alive] = word
            n_alive += 1
    return size, n_alive


@inlined
def _entered(place, word, sheet, desk):
    """Return the rows of a word that meet all conditions but perhaps the one at a place."""
    return ~desk.again[word] & ~(desk.missed[word] & sheet.words[place, word])


@compiled
def add_scores(features, weights, sheet, desk, scores):
    """Add the weights of features to the scores of the levels, row by row, whose conditionals they enter."""
    sheet, desk = _borrowed(sheet, desk)
    scores = borrowed(scores)
    for k in range(features.shape[0]):
        size, n_alive = _meet(features[k], sheet, desk)
        for i in range(size):
            place = desk.places[i]
            for j in range(n_alive):
                word = desk.alive[j]
                rest = _entered(place, word, sheet, desk)
                while rest != _ZERO:
                    scores[place, (word << 6) + np.int64(trailing_zeros(rest))] += weights[k]
                    rest &= rest - _ONE


@compiled
def find_slopes(features, sheet, desk, excess, spread, slopes, bends):
    """Sum, for each feature, what the probabilities exceed the rows by where it enters, and their spread."""
    sheet, desk = _borrowed(sheet, desk)
    excess, spread = borrowed(excess), borrowed(spread)
    for k in range(features.shape[0]):
        size, n_alive = _meet(features[k], sheet, desk)
        slope, bend = 0.0, 0.0
        for i in range(size):
            place = desk.places[i]
            for j in range(n_alive):
                word = desk.alive[j]
                rest = _entered(place, word, sheet, desk)
                while rest != _ZERO:
                    row = (word << 6) + np.int64(trailing_zeros(rest))
                    slope += excess[place, row]
                    bend += spread[place, row]
                    rest &= rest - _ONE
        slopes[k] = slope
        bends[k] = bend
