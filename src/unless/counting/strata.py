"""Two variables in every stratum of some more: counted, and their statistics summed over the strata.

`JointCounter` counts dense tables: by the bits of the codes while they are few (every set of bits is
popcounted), or by numbering the rows, whichever is faster; both give the same answers to the last bit. Where
a dense table would be large and sparse, `StrataTable` lists the rows of each stratum instead.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from struct import Struct

import numpy as np
import numpy.typing as npt

from unless.counting.slices import pack_bits, whole_words
from unless.data.dataset import Dataset
from unless.kernels.bits import packed_words
from unless.kernels.joint import BLOCK, WORDS, ask_by_bits, ask_by_rows
from unless.kernels.strata import (
    RowGroups,
    StrataColumns,
    StrataWorkspace,
    bayesian,
    bayesian_refined,
    chi_square,
    refine,
)
from unless.runtime.interrupts import interruptible_kernel
from unless.typing import Floats, Integers

# Statistic, degrees of freedom, rows used.
Counted = tuple[float, int, int]
# Logarithms of factorials beyond this are computed one by one.
_MOST_FACTORIALS = 2**20
_log_factorials: Floats = np.empty(0)
# Rows read by one call of a kernel: a few tenths of a second, so that Ctrl-C is noticed.
_ROWS_A_CALL = 25_000_000
# What cutting a stratum does with a row, which may be anywhere in memory.
_STEPS_OF_A_ROW = 50
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
# Others in one call of a kernel, and rows read in it: a tenth of a second, so that Ctrl-C is noticed.
_MOST_OTHERS, _ROWS_A_JOINT_CALL = 2**8, 100_000_000
# Cells are counted with 32 bits.
_MOST_ROWS = int(np.iinfo(np.int32).max)


def used_codes(data: Dataset, order: Iterable[int]) -> tuple[npt.NDArray[np.uint16], Integers]:
    """Return columns of codes without gaps, in the given order, and how many levels each of them shows."""
    columns = list(order)
    codes = np.empty((len(columns), data.n_distinct), dtype=np.uint16)
    n_used = np.empty(len(columns), dtype=np.int64)
    for position, column in enumerate(columns):
        is_used = np.zeros(data.domain.n_levels[column], dtype=np.bool_)
        is_used[data.rows[:, column]] = True
        n_used[position] = is_used.sum()
        codes[position] = (np.cumsum(is_used) - 1)[data.rows[:, column]]
    return codes, n_used


@dataclass(frozen=True)
class JointTable:
    """Distinct rows by falling count: columns of codes, and their bits as bitmaps."""

    codes: npt.NDArray[np.uint8]
    # Of the rows worth more than one, which come first.
    counts: npt.NDArray[np.int32]
    # By variable: levels, first bit plane, bits; by plane of the counts: words. These planes are the last.
    layout: Integers
    planes: npt.NDArray[np.uint64]
    # All rows, repeated ones included.
    total: int

    @classmethod
    def of(cls, codes: npt.NDArray[np.uint16], counts: Integers, n_used: Integers) -> "JointTable":
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
        self._request = np.zeros(len(self._sizes) + _MOST_OTHERS + 64, dtype=np.int64)
        self._bit_arrays = table.layout, table.planes, room, cells, work, answers
        self._row_arrays = joint, table.layout, table.codes, table.counts, bases, cells, work, answers
        # The quickest ways into an array and out of it.
        self._note, self._answers = self._request.data, answers
        self._answer = answers[0].data
        self._forms = [Struct(f"{5 + n_given}q") for n_given in range(len(self._sizes))]

    def ask_one(self, a: int, b: int, given: Sequence[int], is_ratio: bool) -> Counted | None:
        """Return statistic, df and rows used; None where the table would be large and sparse."""
        bits, n_given = self._bits, len(given)
        n_bits = bits[a] + bits[b]
        for variable in given:
            n_bits += bits[variable]
        if n_bits <= self._most_bits:
            self._forms[n_given].pack_into(self._note, 0, is_ratio, n_given, 1, a, *given, b)
            ask_by_bits(self._request, *self._bit_arrays)
        else:
            if math.prod([self._sizes[variable] for variable in (a, b, *given)]) > self._limit:
                return None
            self._forms[n_given].pack_into(self._note, 0, is_ratio, n_given, 1, a, *given, b)
            ask_by_rows(self._request, *self._row_arrays)
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
        size = max(1, min(_MOST_OTHERS, _ROWS_A_JOINT_CALL // max(self.table.codes.shape[1], 1)))
        for way, positions in enumerate(ways[:2]):
            for begin in range(0, len(positions), size):
                part = positions[begin : begin + size]
                asked = [is_ratio, len(given), len(part), a, *given, *(others[i] for i in part)]
                self._request[: len(asked)] = asked
                if way == 0:
                    ask_by_bits(self._request, *self._bit_arrays)
                else:
                    ask_by_rows(self._request, *self._row_arrays)
                answers[part] = self._answers[: len(part)]
        return answers, ways[2]


@dataclass(frozen=True)
class StrataTable:
    """Distinct rows as columns, ready to be grouped by some variables and counted by others.

    Sums run over rows in the order of the dataset, whatever the question: give it a dataset whose columns are
    sorted by name, and the order of a table's columns decides nothing, not even the rounding.
    """

    columns: StrataColumns

    @classmethod
    def of(cls, data: Dataset) -> "StrataTable":
        """Take the distinct rows of a dataset that has some."""
        codes, n_used = used_codes(data, range(data.n_variables))
        n_levels = np.asarray(data.domain.n_levels, dtype=np.int64)
        largest = min(data.n_rows + _largest_table(n_levels), _MOST_FACTORIALS)
        return cls(StrataColumns(codes, np.array(data.counts), n_used, n_levels, _factorials(largest)))

    @property
    def n_variables(self) -> int:
        """The number of columns."""
        return len(self.columns.codes)

    @property
    def n_distinct(self) -> int:
        """The number of distinct rows."""
        return len(self.columns.counts)

    def workspace(self) -> StrataWorkspace:
        """Make room to work in; each thread needs its own."""
        m, most = self.n_distinct, int(self.columns.n_used.max())
        cells = _largest_table(self.columns.n_used)
        return StrataWorkspace(
            rows=np.empty(m, dtype=np.uint32),
            starts=np.empty(m + 1, dtype=np.uint32),
            lone=np.empty(m, dtype=np.int64),
            buckets=np.empty(most + 1, dtype=np.int64),
            spare=np.empty(m, dtype=np.uint32),
            kept_starts=np.empty(m + 1, dtype=np.uint32),
            still=np.empty(m, dtype=np.int64),
            weights=np.empty((2, m), dtype=np.int64),
            sums=np.empty((2, m), dtype=np.int64),
            log_ratios=np.empty((2, m), dtype=np.float64),
            cells=np.zeros(cells, dtype=np.int64),
            margins=np.zeros((2, most), dtype=np.int64),
            seen=np.empty((2, most), dtype=np.int64),
        )

    def everything(self) -> RowGroups:
        """Return all rows as one stratum."""
        return RowGroups(
            np.arange(self.n_distinct, dtype=np.uint32),
            np.array([0, self.n_distinct], dtype=np.uint32),
            np.empty(0, dtype=np.int64),
            0,
        )

    def refined(self, strata: RowGroups, variable: int, work: StrataWorkspace) -> RowGroups:
        """Cut strata by one more variable."""
        n_steps = _STEPS_OF_A_ROW * len(strata.rows)
        cut = interruptible_kernel(lambda: refine(variable, self.columns, strata, work), n_steps)
        n_rows, n_strata, n_lone, n_ones = cut
        # Copies: the workspace is written to again.
        return RowGroups(
            work.rows[:n_rows].copy(),
            work.starts[: n_strata + 1].copy(),
            work.lone[:n_lone].copy(),
            n_ones,
        )

    def given(self, variables: Iterable[int], work: StrataWorkspace) -> RowGroups:
        """Group the rows by some variables."""
        strata = self.everything()
        for variable in sorted(variables):
            strata = self.refined(strata, variable, work)
        return strata

    def leaving_out(
        self, variables: Sequence[int], work: StrataWorkspace, within: RowGroups | None = None
    ) -> Iterator[tuple[int, RowGroups]]:
        """Yield each variable with the rows grouped by all the others.

        Those of one half are grouped by once for all of the other half: k log k cuts instead of k^2.
        """
        strata = self.everything() if within is None else within
        if len(variables) == 1:
            yield variables[0], strata
            return
        half = len(variables) // 2
        for left_out, others in (
            (variables[:half], variables[half:]),
            (variables[half:], variables[:half]),
        ):
            if left_out:
                cut = strata
                for variable in others:
                    cut = self.refined(cut, variable, work)
                yield from self.leaving_out(left_out, work, cut)

    def chi_square(
        self, strata: RowGroups, pairs: npt.ArrayLike, work: StrataWorkspace, *, likelihood_ratio: bool
    ) -> tuple[Floats, Integers, Integers]:
        """Return for each pair its statistic and df summed over strata, and the rows that those use."""
        asked = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        statistics = np.empty(len(asked), dtype=np.float64)
        freedoms, used = np.empty(len(asked), dtype=np.int64), np.empty(len(asked), dtype=np.int64)
        for part in _parts(len(asked), len(strata.rows)):
            chi_square(
                asked[part],
                self.columns,
                strata,
                likelihood_ratio,
                work,
                statistics[part],
                freedoms[part],
                used[part],
            )
        return statistics, freedoms, used

    def bayesian(
        self,
        strata: RowGroups,
        a: int,
        others: Sequence[int],
        work: StrataWorkspace,
        given: int | None = None,
    ) -> tuple[Floats, Floats]:
        """Return log Pr(independent) and log Pr(dependent) of a and each other one, by Margaritis's test.

        `given` cuts the strata by one more variable.
        """
        asked = np.asarray(others, dtype=np.int64)
        independent, dependent = np.empty(len(asked)), np.empty(len(asked))
        for part in _parts(len(asked), len(strata.rows)):
            answers = independent[part], dependent[part]
            if given is None:
                bayesian(a, asked[part], self.columns, strata, work, *answers)
            else:
                bayesian_refined(given, a, asked[part], self.columns, strata, work, *answers)
        return independent, dependent


def bytes_to_join(data: Dataset, n_workers: int) -> int:
    """Estimate the memory of a joint table and of as many counters as there are workers."""
    n, m = data.n_variables, data.n_distinct
    n_bits = sum(int(size - 1).bit_length() for size in np.minimum(data.domain.n_levels, _MOST_LEVELS))
    counter = 2 * m + 100 * MOST_CELLS
    return n * m + (n_bits + 64) * m // 8 + 40 * m + n_workers * counter


def bytes_to_count(data: Dataset, n_workers: int) -> int:
    """Estimate the memory of a table of strata and of as many workspaces as there are workers."""
    n, m = data.n_variables, data.n_distinct
    cells = _largest_table(np.minimum(data.domain.n_levels, m))
    # The dataset sorted by name, then as columns; while sorting, the order and a comparison besides.
    table = 10 * n * m + 32 * m + 8 * _MOST_FACTORIALS
    work = 80 * m + 8 * cells
    # A few groupings are held while another is made: one for each halving of a blanket.
    return table + n_workers * (work + (2 + n.bit_length()) * 16 * m)


def _factorials(largest: int) -> Floats:
    """Return the logarithms of the factorials of 0 to a number; they are worked out once in a process."""
    global _log_factorials
    known = _log_factorials
    if len(known) <= largest:
        more = np.array([math.lgamma(n + 1) for n in range(len(known), largest + 1)])
        _log_factorials = known = np.concatenate([known, more])
    return known[: largest + 1]


def _largest_table(n_levels: Integers) -> int:
    return int(np.prod(np.sort(n_levels)[-2:]))


def _parts(n_questions: int, n_rows: int) -> list[slice]:
    size = max(1, _ROWS_A_CALL // max(n_rows, 1))
    return [slice(begin, begin + size) for begin in range(0, n_questions, size)]
