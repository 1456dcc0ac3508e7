"""Sets of small numbers as rows of 64-bit words, the form kernels keep blankets in."""

import numpy as np
import numpy.typing as npt

from unless.kernels.compiling import inlined

Words = npt.NDArray[np.uint64]
_ZERO, _ONE = np.uint64(0), np.uint64(1)


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
