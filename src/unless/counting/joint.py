"""Many questions about one table: chi-square statistics given some variables, from dense tables.

A question is counted in one of two ways, whichever is faster: by the bits of the codes while they are few
(every set of bits is popcounted), or by numbering the rows. Both give the same answers to the last bit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct

import numpy as np
import numpy.typing as npt

from unless.counting.packed import pack_bits, whole_words
from unless.data.dataset import Dataset
from unless.kernels.bitsets import packed_words
from unless.kernels.joint import BLOCK, WORDS, ask_by_bits, ask_by_rows

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
# Statistic, degrees of freedom, rows used.
Answer = tuple[float, int, int]
Columns = npt.NDArray[np.uint16]
# Up to so many bits in all, counting bits is faster than numbering rows; one less where several others share.
MOST_BITS = 7
# Rows are numbered with 16 bits; beyond this, tables are sparse and strata are better listed.
MOST_CELLS = 2**16
# Of small tables too, those with many more cells than rows.
_FEW_CELLS, _CELLS_A_ROW = 2**12, 4
# Several others are counted at once as long as their joint table stays in the fast cache and below this share
# of the rows: it has to be summed up for each of them.
_MOST_JOINT, _ROWS_A_CELL = 2**14, 2
_MOST_LEVELS, _TOO_MANY = 2**8, 2**40
# Others in one call of a kernel, and rows read in it: a tenth of a second, so that Ctrl-C is heard.
_MOST_OTHERS, _PATIENCE = 2**8, 100_000_000
# Cells are counted with 32 bits.
_MOST_ROWS = int(np.iinfo(np.int32).max)


@dataclass(frozen=True)
class JointTable:
    """Distinct rows by falling count: columns of codes, and their bits as bitmaps."""

    codes: npt.NDArray[np.uint8]
    # Of the rows worth more than one, which come first.
    counts: npt.NDArray[np.int32]
    # By variable: levels, first bit plane, bits; by plane of the counts: words. These planes are the last.
    layout: Integers
    planes: Words
    # All rows, repeated ones included.
    total: int

    @classmethod
    def of(cls, codes: Columns, counts: Integers, n_used: Integers) -> "JointTable":
        """Pack columns of codes without gaps; what shows more than 256 levels cannot be asked about."""
        n, n_rows = codes.shape
        # Rows come sorted, and neighbours that are counted in the same cell would wait for each other.
        mixed = np.random.default_rng(0).permutation(n_rows)
        order = mixed[np.argsort(-counts[mixed], kind="stable")]
        falling = counts[order]
        is_narrow = n_used <= _MOST_LEVELS
        n_bits = [max(int(size) - 1, 0).bit_length() if size <= _MOST_LEVELS else 0 for size in n_used]
        first = np.concatenate([[0], np.cumsum(n_bits)])
        n_words, n_planes = whole_words(packed_words(n_rows)), int(falling[0]).bit_length() if n_rows else 0
        narrow = np.zeros(codes.shape, dtype=np.uint8)
        planes = np.zeros((first[-1] + n_planes, n_words), dtype=np.uint64)
        for variable in np.flatnonzero(is_narrow):
            narrow[variable] = codes[variable][order]
            for bit in range(n_bits[variable]):
                planes[first[variable] + bit] = pack_bits((narrow[variable] >> bit) & 1 != 0, n_words)
        layout = np.zeros((4, max(n, n_planes) + 1), dtype=np.int64)
        layout[0, :n], layout[1, :n], layout[1, n:], layout[2, :n] = n_used, first[:n], first[n], n_bits
        for bit in range(n_planes):
            is_set = (falling >> bit) & 1 != 0
            planes[first[-1] + bit] = pack_bits(is_set, n_words)
            # Counts fall along the rows, so high planes end early.
            layout[3, bit] = whole_words(
                packed_words(int(np.flatnonzero(is_set)[-1]) + 1 if is_set.any() else 0)
            )
        return cls(narrow, falling[falling > 1].astype(np.int32), layout, planes, int(falling.sum()))


class JointCounter:
    """Answers questions about a table by position; each thread needs its own."""

    def __init__(self, table: JointTable) -> None:
        self.table = table
        n_rows = table.codes.shape[1]
        n_used: list[int] = table.layout[0, : len(table.codes)].tolist()
        # What has too many levels, or rows, fits neither way.
        most = _MOST_LEVELS if table.total <= _MOST_ROWS else 0
        self._sizes = [size if size <= most else _TOO_MANY for size in n_used]
        self._bits = [(size - 1).bit_length() if size else 0 for size in self._sizes]
        # Repeated rows have planes of counts; each costs as much as all bits do.
        words = int(table.layout[3].sum()) / max(table.planes.shape[1], 1)
        self._most_bits = MOST_BITS - int(words - 0.5).bit_length()
        self._limit = min(MOST_CELLS, max(_FEW_CELLS, _CELLS_A_ROW * n_rows))
        # Margins, their inverses and eight numbers a stratum: at most twelve times the cells.
        work, answers = np.empty(12 * MOST_CELLS), np.empty((_MOST_OTHERS, 3))
        cells = np.empty(MOST_CELLS, dtype=np.int32)
        room = np.empty((2 * (MOST_BITS + 1), WORDS), dtype=np.uint64)
        bases = np.empty(n_rows + BLOCK, dtype=np.uint16)
        joint = min(_MOST_JOINT, n_rows // _ROWS_A_CELL)
        self._slip = np.zeros(len(self._sizes) + _MOST_OTHERS + 64, dtype=np.int64)
        self._bits_desk = table.layout, table.planes, room, cells, work, answers
        self._rows_desk = joint, table.layout, table.codes, table.counts, bases, cells, work, answers
        # The quickest ways into an array and out of it.
        self._note, self._answers = self._slip.data, answers
        self._answer = answers[0].data
        self._forms = [Struct(f"{5 + n_given}q") for n_given in range(len(self._sizes))]

    def ask_one(self, a: int, b: int, given: Sequence[int], is_ratio: bool) -> Answer | None:
        """Return statistic, df and rows used; None where the table would be large and sparse."""
        bits, n_given = self._bits, len(given)
        n_bits = bits[a] + bits[b]
        for variable in given:
            n_bits += bits[variable]
        if n_bits <= self._most_bits:
            self._forms[n_given].pack_into(self._note, 0, is_ratio, n_given, 1, a, *given, b)
            ask_by_bits(self._slip, *self._bits_desk)
        else:
            if math.prod([self._sizes[variable] for variable in (a, b, *given)]) > self._limit:
                return None
            self._forms[n_given].pack_into(self._note, 0, is_ratio, n_given, 1, a, *given, b)
            ask_by_rows(self._slip, *self._rows_desk)
        statistic, df, rows_used = self._answer
        return statistic, int(df), int(rows_used)

    def ask_many(
        self, a: int, others: Sequence[int], given: Sequence[int], is_ratio: bool
    ) -> tuple[Floats, list[int]]:
        """Return statistic, df and rows used of each other (others x 3), and which are left unanswered."""
        n_bits = self._bits[a] + sum(self._bits[variable] for variable in given)
        n_cells = math.prod(self._sizes[variable] for variable in (a, *given))
        ways: tuple[list[int], list[int], list[int]] = [], [], []
        for position, b in enumerate(others):
            by_bits = n_bits + self._bits[b] < self._most_bits
            ways[0 if by_bits else 1 if n_cells * self._sizes[b] <= self._limit else 2].append(position)
        answers = np.empty((len(others), 3), dtype=np.float64)
        size = max(1, min(_MOST_OTHERS, _PATIENCE // max(self.table.codes.shape[1], 1)))
        for way, positions in enumerate(ways[:2]):
            for begin in range(0, len(positions), size):
                part = positions[begin : begin + size]
                asked = [is_ratio, len(given), len(part), a, *given, *(others[i] for i in part)]
                self._slip[: len(asked)] = asked
                if way == 0:
                    ask_by_bits(self._slip, *self._bits_desk)
                else:
                    ask_by_rows(self._slip, *self._rows_desk)
                answers[part] = self._answers[: len(part)]
        return answers, ways[2]


def bytes_to_join(data: Dataset, n_workers: int) -> int:
    """Estimate the memory of a joint table and of as many counters as there are workers."""
    n, m = data.n_variables, data.n_distinct
    n_bits = sum(int(size - 1).bit_length() for size in np.minimum(data.domain.n_levels, _MOST_LEVELS))
    counter = 2 * m + 100 * MOST_CELLS
    return n * m + (n_bits + 64) * m // 8 + 40 * m + n_workers * counter
