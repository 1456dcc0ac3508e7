"""Two variables counted in the strata of others, as many of these as the rows bear."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from unless.counting.tables import MAX_BYTES
from unless.data.dataset import Counts, Dataset
from unless.errors import TooLarge
from unless.knowledge.measures import information

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
# Cochran's bound, on average: so many rows for each cell of the strata.
ROWS_PER_CELL = 5


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
        self.data = data
        self._strength: dict[tuple[int, int], float] = {}

    def count(self, a: int, b: int, given: Sequence[int], inside: Bools | None = None) -> Strata:
        """Count two variables in every observed stratum of the given ones."""
        return _Cut.of(self.data, a, b, inside).by(*given).strata(tuple(given))

    def count_within_bounds(
        self, a: int, b: int, candidates: Sequence[Sequence[int]], inside: Bools | None = None
    ) -> Strata:
        """Count given as many candidates as the rows bear: the first group first, in it the strongest.

        A candidate is as strong as the weaker of its mutual informations with a and with b, over the whole
        table: what explains a dependence away must depend on both.
        """
        cut = _Cut.of(self.data, a, b, inside)
        given: list[int] = []
        left_out: list[int] = []
        for group in candidates:
            for variable in sorted(
                set(group) - {*given, *left_out}, key=lambda c: (-self._weaker(c, a, b), c)
            ):
                finer = cut.by(variable)
                if finer.n_strata == cut.n_strata:
                    # It has one level wherever the others have theirs.
                    continue
                if finer.is_thick():
                    cut = finer
                    given.append(variable)
                else:
                    left_out.append(variable)
        return cut.strata(tuple(given), tuple(left_out))

    def _weaker(self, c: int, a: int, b: int) -> float:
        return min(self._information(c, a), self._information(c, b))

    def _information(self, one: int, other: int) -> float:
        pair = (min(one, other), max(one, other))
        if pair not in self._strength:
            self._strength[pair] = round(information(_Cut.of(self.data, *pair, None).tables()), 12)
        return self._strength[pair]


@dataclass(frozen=True)
class _Cut:
    """Rows of a table, each with the number of its stratum."""

    data: Dataset
    a: int
    b: int
    rows: npt.NDArray[np.intp]
    stratum: Integers
    n_strata: int

    @classmethod
    def of(cls, data: Dataset, a: int, b: int, inside: Bools | None) -> "_Cut":
        """Take all rows, or some."""
        return cls.uncut(data, a, b, np.arange(data.n_distinct) if inside is None else np.flatnonzero(inside))

    @classmethod
    def uncut(cls, data: Dataset, a: int, b: int, rows: npt.NDArray[np.intp]) -> "_Cut":
        """Take rows as one stratum, if there are any."""
        return cls(data, a, b, rows, np.zeros(len(rows), dtype=np.int64), min(1, len(rows)))

    def by(self, *variables: int) -> "_Cut":
        """Cut each stratum by variables, one after the other; strata stay in lexicographic order."""
        stratum, n_strata = self.stratum, self.n_strata
        for variable in variables:
            width = int(self.data.domain.n_levels[variable])
            key = stratum * width + self.data.rows[self.rows, variable]
            seen = np.zeros(n_strata * width, dtype=np.bool_)
            seen[key] = True
            stratum, n_strata = (np.cumsum(seen) - 1)[key], int(seen.sum())
        return _Cut(self.data, self.a, self.b, self.rows, stratum, n_strata)

    @cached_property
    def counts(self) -> Counts:
        """What the rows are worth."""
        return self.data.counts[self.rows]

    def is_thick(self) -> bool:
        """Tell whether the cells of the strata, but empty rows and columns, hold enough rows on average."""
        cells = int((self._n_seen(self.a) * self._n_seen(self.b)).sum())
        return int(self.counts.sum()) >= ROWS_PER_CELL * cells

    def _n_seen(self, variable: int) -> Integers:
        """Return the number of levels that each stratum shows."""
        width = int(self.data.domain.n_levels[variable])
        key = self.stratum * width + self.data.rows[self.rows, variable]
        seen = np.zeros(self.n_strata * width, dtype=np.bool_)
        seen[key] = True
        return np.asarray(seen.reshape(self.n_strata, width).sum(axis=1))

    def tables(self) -> Integers:
        """Count, exactly."""
        n_a, n_b = (int(self.data.domain.n_levels[one]) for one in (self.a, self.b))
        n_cells = self.n_strata * n_a * n_b
        if 8 * n_cells > MAX_BYTES:
            raise TooLarge(
                f"{self.n_strata:,} strata of {n_a:,} x {n_b:,} levels do not fit into "
                f"{MAX_BYTES / 1e6:,.0f} MB; merge levels with rare= or bins=."
            )
        row = self.data.rows[self.rows]
        key = (self.stratum * n_a + row[:, self.a]) * n_b + row[:, self.b]
        # Sums of whole numbers below 2^53, which a Dataset keeps to: exact.
        sums = np.bincount(key, weights=self.counts, minlength=n_cells)
        return sums.astype(np.int64).reshape(self.n_strata, n_a, n_b)

    def strata(self, given: tuple[int, ...], left_out: tuple[int, ...] = ()) -> Strata:
        """Count, and name the strata in the order of their variables' columns."""
        ordered = tuple(sorted(given))
        # Cut again in this order: that of strength has no meaning to a reader.
        cut = _Cut.uncut(self.data, self.a, self.b, self.rows).by(*ordered)
        first = np.zeros(cut.n_strata, dtype=np.intp)
        first[cut.stratum[::-1]] = self.rows[::-1]
        codes = self.data.rows[first][:, list(ordered)]
        return Strata(cut.tables(), ordered, codes, tuple(sorted(left_out)))
