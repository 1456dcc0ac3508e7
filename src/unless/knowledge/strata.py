"""Two variables counted in the strata of others, as many of these as the rows bear."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unless.counting.reference import MAX_BYTES
from unless.data.dataset import Counts, Dataset
from unless.errors import TooLarge
from unless.knowledge.measures import information

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
# Cochran's bound, on average: so many rows for each cell of the strata.
ROWS_PER_CELL = 5
# The most cells, empty ones too, of strata that nobody asked for by name.
MOST_CELLS = 2**24
# Numbers are looked up in an array as long as this many times the rows, and found by sorting beyond it.
_DENSE = 16


@dataclass(frozen=True)
class Strata:
    """Tables of two variables (stratum x a x b), and the levels of the variables that make the strata."""

    tables: Integers
    given: tuple[int, ...]
    codes: npt.NDArray[np.uint16]
    # Variables that would have made the strata too thin.
    left_out: tuple[int, ...] = ()


class Counter:
    """Counts a table whose columns are sorted by name, so that their order decides nothing."""

    def __init__(self, data: Dataset) -> None:
        # Column by column: each is read alone, and often.
        self.columns = np.ascontiguousarray(data.rows.T)
        # Weighted counts of a survey are told as whole numbers, which add up to about the rows.
        self.counts = data.counts if data.weights is None else data.weights
        self.n_levels = [int(n) for n in data.domain.n_levels]
        self._strength: dict[tuple[int, int], float] = {}

    def count(self, a: int, b: int, given: Sequence[int], inside: Bools | None = None) -> Strata:
        """Count two variables in every observed stratum of the given ones."""
        return self._counted(_Rows.of(self, a, b, inside), given, ())

    def count_within_bounds(
        self, a: int, b: int, candidates: Sequence[Sequence[int]], inside: Bools | None = None
    ) -> Strata:
        """Count given as many candidates as the rows bear: the first group first, in it the strongest.

        A candidate is as strong as the weaker of its mutual informations with a and with b, over the whole
        table: what explains a dependence away must depend on both. Once a variable is too much, those with as
        many levels are not tried.
        """
        rows = _Rows.of(self, a, b, inside)
        cut = rows.uncut()
        given: list[int] = []
        left_out: list[int] = []
        too_many = math.inf
        for group in candidates:
            for variable in sorted(
                set(group) - {*given, *left_out}, key=lambda c: (-self._weaker(c, a, b), c)
            ):
                if self.n_levels[variable] >= too_many:
                    left_out.append(variable)
                    continue
                finer = rows.cut(cut, variable)
                if finer.n_strata == cut.n_strata:
                    # It has one level wherever the others have theirs.
                    continue
                if rows.are_enough_for(finer):
                    cut = finer
                    given.append(variable)
                else:
                    left_out.append(variable)
                    too_many = self.n_levels[variable]
        return self._counted(rows, given, left_out)

    def _counted(self, rows: "_Rows", given: Sequence[int], left_out: Sequence[int]) -> Strata:
        # Cut by columns in their order: that of strength has no meaning to a reader.
        ordered, cut = sorted(given), rows.uncut()
        for variable in ordered:
            cut = rows.cut(cut, variable)
        first = np.zeros(cut.n_strata, dtype=np.intp)
        first[cut.stratum[::-1]] = np.arange(len(cut.stratum))[::-1]
        codes = np.empty((cut.n_strata, len(ordered)), dtype=np.uint16)
        for place, variable in enumerate(ordered):
            codes[:, place] = rows.column(variable)[first]
        return Strata(rows.tables(cut), tuple(ordered), codes, tuple(sorted(left_out)))

    def _weaker(self, c: int, a: int, b: int) -> float:
        return min(self._information(c, a), self._information(c, b))

    def _information(self, one: int, other: int) -> float:
        pair = (min(one, other), max(one, other))
        if pair not in self._strength and self.n_levels[one] * self.n_levels[other] > MOST_CELLS:
            # Not to be counted: it comes after all that can be.
            self._strength[pair] = 0.0
        elif pair not in self._strength:
            rows = _Rows.of(self, *pair, None)
            self._strength[pair] = round(information(rows.tables(rows.uncut())), 12)
        return self._strength[pair]


@dataclass(frozen=True)
class _Cut:
    """The number of the stratum of each row; strata are numbered in lexicographic order."""

    stratum: Integers
    n_strata: int


@dataclass(frozen=True)
class _Rows:
    """Rows of a table that two variables are counted in."""

    counter: Counter
    a: int
    b: int
    # Which rows, all of them if None.
    chosen: npt.NDArray[np.intp] | None
    counts: Counts | npt.NDArray[np.float64]
    n_rows: int

    @classmethod
    def of(cls, counter: Counter, a: int, b: int, inside: Bools | None) -> "_Rows":
        """Take all rows, or some."""
        chosen = None if inside is None else np.flatnonzero(inside)
        counts = counter.counts if chosen is None else counter.counts[chosen]
        return cls(counter, a, b, chosen, counts, int(counts.sum()))

    def column(self, variable: int) -> npt.NDArray[np.uint16]:
        """Return the codes of a variable."""
        column: npt.NDArray[np.uint16] = self.counter.columns[variable]
        return column if self.chosen is None else column[self.chosen]

    def uncut(self) -> _Cut:
        """Take the rows as one stratum, if there are any."""
        return _Cut(np.zeros(len(self.counts), dtype=np.int64), min(1, len(self.counts)))

    def cut(self, cut: _Cut, variable: int) -> _Cut:
        """Cut each stratum by one more variable."""
        key, occurring = self._seen(cut, variable)
        if self._is_dense(cut, variable):
            place = np.empty(cut.n_strata * self.counter.n_levels[variable], dtype=np.int64)
            place[occurring] = np.arange(len(occurring))
            return _Cut(place[key], len(occurring))
        return _Cut(np.searchsorted(occurring, key), len(occurring))

    def are_enough_for(self, cut: _Cut) -> bool:
        """Tell whether the cells of the strata, but empty rows and columns, hold enough rows on average."""
        n_a, n_b = (self.counter.n_levels[end] for end in (self.a, self.b))
        if cut.n_strata * n_a * n_b > MOST_CELLS:
            return False
        seen_a, seen_b = (
            np.bincount(self._seen(cut, end)[1] // self.counter.n_levels[end], minlength=cut.n_strata)
            for end in (self.a, self.b)
        )
        return self.n_rows >= ROWS_PER_CELL * int((seen_a * seen_b).sum())

    def _seen(self, cut: _Cut, variable: int) -> tuple[Integers, Integers]:
        """Return a number for each row's stratum and level, and those that occur, sorted."""
        width = self.counter.n_levels[variable]
        key = cut.stratum * width + self.column(variable)
        if not self._is_dense(cut, variable):
            return key, np.unique(key)
        seen = np.zeros(cut.n_strata * width, dtype=np.bool_)
        seen[key] = True
        return key, np.flatnonzero(seen)

    def _is_dense(self, cut: _Cut, variable: int) -> bool:
        return cut.n_strata * self.counter.n_levels[variable] <= _DENSE * max(len(cut.stratum), 1000)

    def tables(self, cut: _Cut) -> Integers:
        """Count, exactly."""
        n_a, n_b = (self.counter.n_levels[end] for end in (self.a, self.b))
        n_cells = cut.n_strata * n_a * n_b
        if 8 * n_cells > MAX_BYTES:
            raise TooLarge(
                f"{cut.n_strata:,} strata of {n_a:,} x {n_b:,} levels do not fit into "
                f"{MAX_BYTES / 1e6:,.0f} MB; merge levels with rare= or bins=."
            )
        key = (cut.stratum * n_a + self.column(self.a)) * n_b + self.column(self.b)
        # Sums of whole numbers below 2^53, which a Dataset keeps to: exact.
        sums = np.bincount(key, weights=self.counts, minlength=n_cells)
        return np.rint(sums).astype(np.int64).reshape(cut.n_strata, n_a, n_b)
