"""Rows of a matrix numbered as they come, equal ones with the same number."""

import numpy as np

from unless.kernels.compiling import compiled, inlined, trailing_zeros

_ODD, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)


@inlined
def _are_equal(words, row, other):
    word = 0
    while word < words.shape[1] and words[row, word] == words[other, word]:
        word += 1
    return word == words.shape[1]


@compiled
def number_rows(words, places, first, numbers):
    """Write the number of each row, and the first row of each number; returns how many there are.

    `places` has two for every row, a power of two, all -1.
    """
    n_known, mask = 0, np.uint64(places.shape[0] - 1)
    shift = np.uint64(64) - np.uint64(trailing_zeros(np.uint64(places.shape[0])))
    for row in range(words.shape[0]):
        mixed = np.uint64(0)
        for word in range(words.shape[1]):
            mixed = (mixed ^ words[row, word]) * _ODD
            mixed ^= mixed >> _SHIFT
        # The upper bits, which follow from all bits of the last word; the lower ones do not.
        place = mixed >> shift
        while places[place] >= 0 and not _are_equal(words, row, first[places[place]]):
            place = (place + np.uint64(1)) & mask
        if places[place] < 0:
            places[place] = n_known
            first[n_known] = row
            n_known += 1
        numbers[row] = places[place]
    return n_known
