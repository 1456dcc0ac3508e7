"""Pooled tables: one variable against others in every stratum of some more, counted and summed up."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from unless.data.dataset import Dataset
from unless.kernels.evidence import bayesian, bayesian_refined
from unless.kernels.strata import Columns, Desk, Strata, chi_square, refine
from unless.runtime.interrupts import interruptible_kernel

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
# Logarithms of factorials beyond this are computed one by one.
_MOST_FACTORIALS = 2**20
# Rows read between two returns to Python: a few tenths of a second, so that Ctrl-C is heard.
_PATIENCE = 25_000_000
# What cutting a stratum does with a row, which may be anywhere in memory.
_STEPS_OF_A_ROW = 50


@dataclass(frozen=True)
class StrataTable:
    """Distinct rows as columns, ready to be grouped by some variables and counted by others.

    Sums run over rows in the order of the dataset, whatever the question: give it a dataset whose columns are
    sorted by name, and the order of a table's columns decides nothing, not even the rounding.
    """

    columns: Columns

    @classmethod
    def of(cls, data: Dataset) -> "StrataTable":
        """Take the distinct rows of a dataset that has some."""
        codes, n_used = used_codes(data, range(data.n_variables))
        n_levels = np.asarray(data.domain.n_levels, dtype=np.int64)
        largest = min(data.n_rows + _largest_table(n_levels), _MOST_FACTORIALS)
        factorials = special.gammaln(np.arange(1.0, largest + 2))
        return cls(Columns(codes, np.array(data.counts), n_used, n_levels, factorials))

    @property
    def n_variables(self) -> int:
        """The number of columns."""
        return len(self.columns.codes)

    @property
    def n_distinct(self) -> int:
        """The number of distinct rows."""
        return len(self.columns.counts)

    def desk(self) -> Desk:
        """Make room to work in; each thread needs its own."""
        m, most = self.n_distinct, int(self.columns.n_used.max())
        cells = _largest_table(self.columns.n_used)
        return Desk(
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

    def everything(self) -> Strata:
        """Return all rows as one stratum."""
        return Strata(
            np.arange(self.n_distinct, dtype=np.uint32),
            np.array([0, self.n_distinct], dtype=np.uint32),
            np.empty(0, dtype=np.int64),
            0,
        )

    def refined(self, strata: Strata, variable: int, desk: Desk) -> Strata:
        """Cut strata by one more variable."""
        n_steps = _STEPS_OF_A_ROW * len(strata.rows)
        cut = interruptible_kernel(lambda: refine(variable, self.columns, strata, desk), n_steps)
        n_rows, n_strata, n_lone, n_ones = cut
        # Copies: the desk is written to again.
        return Strata(
            desk.rows[:n_rows].copy(), desk.starts[: n_strata + 1].copy(), desk.lone[:n_lone].copy(), n_ones
        )

    def given(self, variables: Iterable[int], desk: Desk) -> Strata:
        """Group the rows by some variables."""
        strata = self.everything()
        for variable in sorted(variables):
            strata = self.refined(strata, variable, desk)
        return strata

    def leaving_out(
        self, variables: Sequence[int], desk: Desk, within: Strata | None = None
    ) -> Iterator[tuple[int, Strata]]:
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
                    cut = self.refined(cut, variable, desk)
                yield from self.leaving_out(left_out, desk, cut)

    def chi_square(
        self, strata: Strata, pairs: npt.ArrayLike, desk: Desk, *, likelihood_ratio: bool
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
                desk,
                statistics[part],
                freedoms[part],
                used[part],
            )
        return statistics, freedoms, used

    def bayesian(
        self, strata: Strata, a: int, others: Sequence[int], desk: Desk, given: int | None = None
    ) -> tuple[Floats, Floats]:
        """Return log Pr(independent) and log Pr(dependent) of a and each other one, by Margaritis's test.

        `given` cuts the strata by one more variable.
        """
        asked = np.asarray(others, dtype=np.int64)
        independent, dependent = np.empty(len(asked)), np.empty(len(asked))
        for part in _parts(len(asked), len(strata.rows)):
            answers = independent[part], dependent[part]
            if given is None:
                bayesian(a, asked[part], self.columns, strata, desk, *answers)
            else:
                bayesian_refined(given, a, asked[part], self.columns, strata, desk, *answers)
        return independent, dependent


def used_codes(data: Dataset, order: Iterable[int]) -> tuple[npt.NDArray[np.uint16], Integers]:
    """Return columns of codes without gaps, in the given order, and how many levels each of them shows."""
    columns = list(order)
    codes = np.empty((len(columns), data.n_distinct), dtype=np.uint16)
    n_used = np.empty(len(columns), dtype=np.int64)
    for place, column in enumerate(columns):
        is_used = np.zeros(data.domain.n_levels[column], dtype=np.bool_)
        is_used[data.rows[:, column]] = True
        n_used[place] = is_used.sum()
        codes[place] = (np.cumsum(is_used) - 1)[data.rows[:, column]]
    return codes, n_used


def bytes_to_count(data: Dataset, n_workers: int) -> int:
    """Estimate the memory of a table of strata and of as many desks as there are workers."""
    n, m = data.n_variables, data.n_distinct
    cells = _largest_table(np.minimum(data.domain.n_levels, m))
    # The dataset sorted by name, then as columns; while sorting, the order and a comparison besides.
    table = 10 * n * m + 32 * m + 8 * _MOST_FACTORIALS
    desk = 80 * m + 8 * cells
    # A few groupings are held while another is made: one for each halving of a blanket.
    return table + n_workers * (desk + (2 + n.bit_length()) * 16 * m)


def _largest_table(n_levels: Integers) -> int:
    return int(np.prod(np.sort(n_levels)[-2:]))


def _parts(n_questions: int, n_rows: int) -> list[slice]:
    size = max(1, _PATIENCE // max(n_rows, 1))
    return [slice(begin, begin + size) for begin in range(0, n_questions, size)]
