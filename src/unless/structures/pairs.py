"""Sets of pairs as packed bits: pair (a, b) in the order of itertools.combinations, lowest bit first."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from unless.data.domain import Domain
from unless.structures.distinct import Positions

Edge = tuple[str, str]
Packed = npt.NDArray[np.uint8]
Links = npt.NDArray[np.bool_]


def n_pairs(n_nodes: int) -> int:
    """Return the number of pairs of nodes."""
    return n_nodes * (n_nodes - 1) // 2


def packed_width(n_nodes: int) -> int:
    """Return the number of bytes that hold one bit per pair."""
    return (n_pairs(n_nodes) + 7) // 8


def pair_nodes(pairs: Positions, n_nodes: int) -> tuple[Positions, Positions]:
    """Return the first and the second node of each of these pairs."""
    begins = _first_pairs(n_nodes)
    # The last node begins no pair, so its (empty) run must not be found.
    first = np.searchsorted(begins[:-1], pairs, side="right") - 1
    return first, pairs - begins[first] + first + 1


def pair_names(domain: Domain, pairs: Positions) -> list[Edge]:
    """Name these pairs, names sorted, so that an edge looks the same under any column order."""
    names = domain.names
    first, second = pair_nodes(pairs, len(names))
    named = ((names[a], names[b]) for a, b in zip(first.tolist(), second.tolist(), strict=True))
    return [(a, b) if a < b else (b, a) for a, b in named]


def pack_edges(domain: Domain, edges: Iterable[Edge]) -> Packed:
    """Pack the edges of one graph."""
    begins = _first_pairs(len(domain))
    links = np.zeros(n_pairs(len(domain)), dtype=np.bool_)
    for edge in edges:
        a, b = sorted(map(domain.index, edge))
        links[begins[a] + b - a - 1] = True
    return pack(links)


def pack(links: Links) -> Packed:
    """Pack one graph a row."""
    return np.packbits(links, axis=-1, bitorder="little")


def unpack(packed: Packed, n_nodes: int) -> Links:
    """Return one graph a row, one boolean a pair."""
    if not packed.shape[-1]:
        return np.zeros((*packed.shape[:-1], n_pairs(n_nodes)), dtype=np.bool_)
    bits = np.unpackbits(packed, axis=-1, count=n_pairs(n_nodes), bitorder="little")
    return bits.view(np.bool_)


def is_padded_with_zeros(packed: Packed, n_nodes: int) -> bool:
    """Tell whether the bits beyond the last pair are zero, as equality by bytes needs."""
    used = n_pairs(n_nodes) % 8
    return not used or not len(packed) or not (packed[:, -1] >> used).any()


def _first_pairs(n_nodes: int) -> Positions:
    # Where the pairs of each node with later ones begin.
    nodes = np.arange(n_nodes)
    return nodes * (2 * n_nodes - nodes - 1) // 2
