"""Rows as bits of 64-bit words: how many two sets of them share."""

import numpy as np

from unless.kernels.compiling import inlined, popcount

_ZERO = np.uint64(0)
# Words come in whole strides of the vector loops: what is over would be counted slowly.
STRIDE = 16


@inlined
def popcount_and(left, right, n_words):
    """Count the ones that two bitmaps share."""
    ones = _ZERO
    for word in range(n_words):
        ones += popcount(left[word] & right[word])
    return np.int64(ones)


@inlined
def meet(left, right, both, n_words):
    """Write the ones that two bitmaps share, and return their number.

    All from their first word on, and what is written apart from what is read: only so is it compiled into
    vector instructions.
    """
    ones = _ZERO
    for word in range(n_words):
        shared = left[word] & right[word]
        both[word] = shared
        ones += popcount(shared)
    return np.int64(ones)
