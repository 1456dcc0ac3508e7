"""Sets as 64-bit words: small numbers as bits of a row, rows of a table as bits of a bitmap."""

import numpy as np
import numpy.typing as npt

from unless.kernels.compiling import compiled, inlined, popcount, trailing_zeros

Words = npt.NDArray[np.uint64]
_ZERO, _ONE = np.uint64(0), np.uint64(1)
# Bitmaps come in whole strides of the vector loops: what is over would be counted slowly.
STRIDE = 16
# Fibonacci hashing: the golden ratio of 2^64, odd.
GOLDEN, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)


@inlined
def has_bit(bits, row, position):
    """Tell whether the set in a row holds a number."""
    return (bits[row, position >> 6] >> np.uint64(position & 63)) & _ONE != _ZERO


@inlined
def flip_bit(bits, row, position):
    """Put a number into the set in a row, or take it out."""
    bits[row, position >> 6] ^= _ONE << np.uint64(position & 63)


def packed_words(n_variables: int) -> int:
    """Return the number of words that hold one bit per variable."""
    return (n_variables + 63) // 64


def pack_sets(members: npt.NDArray[np.bool_]) -> Words:
    """Pack a boolean matrix, one set a row, into words."""
    n = members.shape[1]
    padded = np.zeros((len(members), packed_words(n) * 64), dtype=np.bool_)
    padded[:, :n] = members
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def unpack_sets(packed: Words, n: int) -> npt.NDArray[np.bool_]:
    """Undo `pack_sets`."""
    return np.unpackbits(packed.view(np.uint8), axis=1, count=n, bitorder="little").view(np.bool_)


@inlined
def popcount_and(left, right, n_words):
    """Count the ones that two bitmaps share."""
    ones = _ZERO
    for word in range(n_words):
        ones += popcount(left[word] & right[word])
    return np.int64(ones)


@inlined
def and_count(left, right, both, n_words):
    """Write the ones that two bitmaps share, and return their number.

    All start at their first word, and the output is an array of its own: otherwise the loop is not compiled
    into vector instructions.
    """
    ones = _ZERO
    for word in range(n_words):
        shared = left[word] & right[word]
        both[word] = shared
        ones += popcount(shared)
    return np.int64(ones)


@inlined
def _are_equal(words, row, other):
    word = 0
    while word < words.shape[1] and words[row, word] == words[other, word]:
        word += 1
    return word == words.shape[1]


@compiled
def number_rows(words, slots, first, numbers):
    """Write the number of each row, and the first row of each number; returns how many there are.

    `slots` is a hash table with two entries for every row, a power of two, all -1.
    """
    n_known, mask = 0, np.uint64(slots.shape[0] - 1)
    shift = np.uint64(64) - np.uint64(trailing_zeros(np.uint64(slots.shape[0])))
    for row in range(words.shape[0]):
        mixed = np.uint64(0)
        for word in range(words.shape[1]):
            mixed = (mixed ^ words[row, word]) * GOLDEN
            mixed ^= mixed >> _SHIFT
        # The upper bits, which follow from all bits of the last word; the lower ones do not.
        slot = mixed >> shift
        while slots[slot] >= 0 and not _are_equal(words, row, first[slots[slot]]):
            slot = (slot + np.uint64(1)) & mask
        if slots[slot] < 0:
            slots[slot] = n_known
            first[n_known] = row
            n_known += 1
        numbers[row] = slots[slot]
    return n_known
