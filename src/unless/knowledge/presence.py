"""In which rows each pair is linked, for every kind of structure, in one coding."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Counts, Dataset, Rows
from unless.data.domain import Domain
from unless.errors import TooLarge, UnknownContext
from unless.inference.interactions import side_of
from unless.runtime.memory import parse_memory, show_memory
from unless.structures.canonical import CanonicalModel
from unless.structures.interactions import ByGraph, Recoding, Side, pair_numbers
from unless.structures.pairs import n_pairs

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.uint8]
# Answers held at once before they are packed, a byte each.
_ANSWERS = 2**25


@dataclass(frozen=True)
class Presence:
    """For each pair, numbered as in `unless.structures.pairs`, the rows in which a structure links it.

    A canonical model is asked about its own contexts, each with its own count: it has no answer for others.
    Any other structure is asked about the distinct rows of the table.
    """

    domain: Domain
    rows: Rows
    counts: Counts
    # Linked or not, a bit for each row; for a structure that is the same everywhere, one for all rows.
    bits: Bits
    is_constant: bool
    # The share of the rows in which each pair is linked.
    shares: Floats

    @classmethod
    def of(cls, structure: Any, data: Dataset, max_memory: int | str | None = None) -> "Presence":
        """Ask a structure about every pair and row; the coding is that of the dataset."""
        domain, rows, counts = data.domain, data.rows, data.counts
        if isinstance(structure, CanonicalModel):
            rows, counts = Recoding(structure.domain, domain).rows(structure.rows), structure.counts
        side = side_of(structure, "graphs", domain)
        if isinstance(side, ByGraph):
            edges = side.edges.astype(np.uint8)[:, None]
            return cls(domain, rows, counts, edges, True, edges[:, 0].astype(np.float64))
        _check_memory(len(domain), len(rows), max_memory)
        return cls(domain, rows, counts, *_packed(side, rows, counts, n_pairs(len(domain))))

    @cached_property
    def numbers(self) -> npt.NDArray[np.int64]:
        """The number of each pair, whichever of the two comes first."""
        return pair_numbers(len(self.domain))

    @cached_property
    def _planes(self) -> list[tuple[int, Bits]]:
        return _planes(self.counts)

    def linked(self, pair: int) -> Bools:
        """Tell, for each row, whether a pair is linked."""
        if self.is_constant:
            return np.broadcast_to(self.bits[pair].astype(np.bool_), (len(self.rows),))
        return np.unpackbits(self.bits[pair], count=len(self.rows)).view(np.bool_)

    def within(self, inside: Bools) -> "Presence":
        """Keep some of the rows."""
        rows, counts = self.rows[inside], self.counts[inside]
        if self.is_constant:
            return Presence(self.domain, rows, counts, self.bits, True, self.shares)
        bits = np.zeros((len(self.bits), (len(rows) + 7) // 8), dtype=np.uint8)
        for part in _blocks(len(bits), len(inside)):
            links = np.unpackbits(self.bits[part], axis=1, count=len(inside))
            bits[part] = np.packbits(links[:, inside], axis=1)
        return Presence(self.domain, rows, counts, bits, False, _shares(bits, counts))

    def neighbours(self, variable: int, inside: Bools | None, at_least: float) -> list[int]:
        """Return the variables linked to one in at least this share of the rows, or of some of them."""
        numbers = np.delete(self.numbers[variable], variable)
        others = np.delete(np.arange(len(self.domain)), variable)
        if inside is None or self.is_constant or not inside.any():
            shares = self.shares[numbers]
        else:
            within = np.packbits(inside)
            sums = _weighed(self.bits[numbers], [(worth, plane & within) for worth, plane in self._planes])
            shares = sums / float(self.counts[inside].sum())
        return [int(other) for other in others[(shares >= at_least) & (shares > 0)]]


def agreeing(rows: Rows, held: Mapping[int, int]) -> Bools:
    """Tell, for each row of codes, whether it has these codes at these positions."""
    agrees = np.ones(len(rows), dtype=np.bool_)
    for position, code in held.items():
        agrees &= rows[:, position] == code
    return agrees


def observed(data: Dataset, held: Mapping[int, int]) -> Bools:
    """Tell which rows of a table are in a context; refuse one that no row shows."""
    inside = agreeing(data.rows, held)
    if not inside.any():
        raise UnknownContext(f"No row has {data.domain.decode(held)}; ask about a context the data shows.")
    return inside


def _packed(side: Side, rows: Rows, counts: Counts, pairs: int) -> tuple[Bits, bool, Floats]:
    # Whole bytes in each block, so that blocks can be put side by side.
    block = max(8, _ANSWERS // max(1, pairs) // 8 * 8)
    parts = [
        np.packbits(side.links(rows[begin : begin + block]), axis=1) for begin in range(0, len(rows), block)
    ]
    bits = np.concatenate([*parts, np.zeros((pairs, 0), dtype=np.uint8)], axis=1)
    return bits, False, _shares(bits, counts)


def _shares(bits: Bits, counts: Counts) -> Floats:
    total = float(counts.sum())
    return _weighed(bits, _planes(counts)) / total if total else np.zeros(len(bits))


def _planes(counts: Counts) -> list[tuple[int, Bits]]:
    """Write counts as sums of powers of two: for each power the rows whose count has it."""
    largest = int(counts.max(initial=0))
    return [(1 << power, np.packbits((counts >> power) & 1)) for power in range(largest.bit_length())]


def _weighed(bits: Bits, planes: list[tuple[int, Bits]]) -> Floats:
    """Sum the counts of the rows of each pair, by counting bits; sums of whole numbers are exact."""
    sums = np.zeros(len(bits))
    for part in _blocks(len(bits), 8 * bits.shape[1]):
        for worth, plane in planes:
            sums[part] += worth * np.bitwise_count(bits[part] & plane).sum(axis=1, dtype=np.int64)
    return sums


def _blocks(n_pairs: int, n_rows: int) -> list[slice]:
    size = max(1, _ANSWERS // max(1, n_rows))
    return [slice(begin, begin + size) for begin in range(0, n_pairs, size)]


def _check_memory(n_variables: int, n_rows: int, max_memory: int | str | None) -> None:
    needed, allowed = n_pairs(n_variables) * (n_rows + 7) // 8, parse_memory(max_memory)
    if needed > allowed:
        raise TooLarge(
            f"Which of {n_pairs(n_variables):,} pairs is linked in which of {n_rows:,} rows needs "
            f"{show_memory(needed)}, more than the {show_memory(allowed)} allowed; learn from fewer columns "
            "or raise max_memory=."
        )
