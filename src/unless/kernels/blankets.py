"""Blankets of all contexts, written into graphs and out as one bit a pair."""

import numpy as np

from unless.kernels.bitsets import has_bit
from unless.kernels.compiling import compiled, inlined, trailing_zeros

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@inlined
def share_blankets(node, final, graphs, first, last):
    """Write a node's blankets into the graphs of some contexts, both ends of every edge that changed."""
    for context in range(first, last):
        for word in range(final.shape[1]):
            changed = graphs[node, context, word] ^ final[context, word]
            graphs[node, context, word] = final[context, word]
            while changed != _ZERO:
                other = (word << 6) + np.int64(trailing_zeros(changed))
                graphs[other, context, node >> 6] ^= _ONE << np.uint64(node & 63)
                changed &= changed - _ONE


@inlined
def _from_bit(bit):
    """Return a word with all bits from one on, which may lie before or behind it."""
    if bit >= 64:
        return _ZERO
    return ~_ZERO << np.uint64(max(bit, 0))


@compiled
def pack_pairs(graphs, columns, mirrored, both, packed, first, last):
    """Write the graphs of some contexts as one bit a pair, as itertools.combinations orders the columns.

    `columns` gives each visited variable's column. With `both`, an edge needs the blankets of both its ends;
    where they are `mirrored` it is in both or in neither.
    """
    n = graphs.shape[0]
    pairs = np.empty(n, dtype=np.int64)
    for node in range(n):
        for other in range(n):
            low, high = min(columns[node], columns[other]), max(columns[node], columns[other])
            pairs[other] = low * (2 * n - low - 1) // 2 + high - low - 1
        for word in range(graphs.shape[2]):
            wanted = ~_ZERO
            if mirrored or both:
                # What one end tells of the pair is enough.
                wanted = _from_bit(node + 1 - (word << 6))
            for context in range(first, last):
                rest = graphs[node, context, word] & wanted
                while rest != _ZERO:
                    other = (word << 6) + np.int64(trailing_zeros(rest))
                    rest &= rest - _ONE
                    if both and not has_bit(graphs[other], context, node):
                        continue
                    packed[context, pairs[other] >> 3] |= np.uint8(1 << (pairs[other] & 7))
