"""Pairs that regressions cannot judge: columns of many levels, and cells that too few rows fill.

They are tested within strata, by permutations where cells are nearly empty (`independence.sparse`). A column
that goes together with an end must be held fixed; where the rows do not bear that, the pair is at most
associated.
"""

from collections.abc import Sequence

import numpy as np

from unless.data.dataset import whole_numbers
from unless.independence.sparse import SparseTest, independence_within_strata
from unless.independence.statistics import Statistic
from unless.referee.gates import Side, side_of
from unless.referee.regressions import Bools, Codes, Ints, Table

# Columns with more levels have no regression of their own.
MOST_REGULAR = 12
# Two columns are judged by regressions where each of their cells has so many rows on average.
ROWS_PER_CELL = 5
# A column of many levels is held fixed in a regression where each of its weights has so many rows.
ROWS_PER_WEIGHT = 10
# A column that goes together with an end at this level must be held fixed.
ASSOCIATED = 0.01
# Cells of two columns that are counted in one go.
MOST_QUICK = 4096
# Strata hold so many rows on average, or one column less is held fixed.
ROWS_PER_STRATUM = 10


def regressable(table: Table) -> Bools:
    """Tell, for each target (row), which columns its regression may hold."""
    sizes = np.array([len(levels) for levels in table.used], dtype=np.float64)
    regular = (sizes > 1) & (sizes <= MOST_REGULAR)
    cells = np.outer(sizes, sizes)
    weights = np.outer(sizes - 1, sizes - 1)
    both = regular[:, None] & regular[None, :] & (table.n_rows >= ROWS_PER_CELL * cells)
    wide = regular[:, None] & (sizes > MOST_REGULAR)[None, :] & (table.n_rows >= ROWS_PER_WEIGHT * weights)
    return np.asarray(both | wide)


class WideTester:
    """Tests pairs within strata; tests of two columns by themselves are kept."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.n_patterns = len(table.counts)
        self._alone: dict[tuple[int, int], SparseTest] = {}

    def counts(self, a: int, b: int, held: Sequence[int] = ()) -> Ints:
        """Return how often each row occurs, 0 where one of some columns has no value.

        Of a survey, how often it does in a sample of rows that count the same and tell as much of the pair.
        """
        weights = self.table.weights(self.table.incomplete([a, b, *held]))
        if self.table.survey is not None:
            return whole_numbers(weights / self.table.design_effect(a, b))
        return weights.astype(np.int64)

    def alone(self, a: int, b: int) -> SparseTest:
        """Test two columns by themselves."""
        pair = (min(a, b), max(a, b))
        if pair not in self._alone:
            found = self._quick(*pair)
            if found is None:
                found = self._test(*pair, np.zeros(self.n_patterns, dtype=np.int64))
            self._alone[pair] = found
        return self._alone[pair]

    def _quick(self, a: int, b: int) -> SparseTest | None:
        """Test two columns of few levels whose cells are full by Pearson's chi-square; None for others."""
        sizes = self.table.n_levels[a], self.table.n_levels[b]
        if sizes[0] * sizes[1] > MOST_QUICK:
            return None
        key = self.table.codes[a] * sizes[1] + self.table.codes[b]
        weights = self.table.weights(self.table.incomplete((a, b)))
        counts = np.bincount(key, weights=weights, minlength=sizes[0] * sizes[1]).reshape(sizes)
        counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
        df = (counts.shape[0] - 1) * (counts.shape[1] - 1)
        if not df:
            return SparseTest(0.0, 0, 1.0, "chi-square", 0)
        expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
        if expected.min() < 5:
            return None
        found = Statistic(float(((counts - expected) ** 2 / expected).sum()), df)
        if self.table.survey is not None:
            found = self.table.corrected(found, a, b)
        return SparseTest(found.value, df, found.p, "chi-square", 0)

    def _test(self, a: int, b: int, strata: Ints, held: Sequence[int] = ()) -> SparseTest:
        table, counts = self.table, self.counts(a, b, held)
        first, second = (table.codes[c].astype(np.int64) for c in (a, b))
        sizes = table.n_levels[a], table.n_levels[b]
        return independence_within_strata(first, second, strata, counts, *sizes)

    def given_others(self, a: int, b: int, others: list[int]) -> tuple[SparseTest, tuple[int, ...], bool]:
        """Test a pair given the columns that go together with an end: the test, what it holds, and if all.

        The columns that go together most with both ends come first.
        """
        p_values = {c: sorted(self.alone(c, end).p for end in (a, b)) for c in others}
        near = [c for c in others if p_values[c][0] < ASSOCIATED]
        held: list[int] = []
        strata, is_complete = np.zeros(self.n_patterns, dtype=np.int64), True
        for c in sorted(near, key=lambda one: (p_values[one][1], one)):
            finer, n_strata = _refined(strata, self.table.codes[c], self.table.n_levels[c])
            if n_strata * ROWS_PER_STRATUM > self.table.n_rows:
                is_complete = False
                continue
            strata = finer
            held.append(c)
        return self._test(a, b, strata, held), tuple(sorted(held)), is_complete

    def within(self, a: int, b: int, held: Sequence[int], inside: Bools) -> SparseTest:
        """Test a pair in some rows, given as many of some columns as they bear, the first first."""
        table, counts = self.table, self.counts(a, b, held)[inside]
        strata = np.zeros(len(counts), dtype=np.int64)
        for c in held:
            finer, n_strata = _refined(strata, table.codes[c][inside], table.n_levels[c])
            if n_strata * ROWS_PER_STRATUM <= counts.sum():
                strata = finer
        first, second = (table.codes[c][inside].astype(np.int64) for c in (a, b))
        sizes = table.n_levels[a], table.n_levels[b]
        return independence_within_strata(first, second, strata, counts, *sizes)

    def side(self, a: int, b: int, test: SparseTest, n_rows: float | None = None) -> Side:
        """Return the strength that a test shows, in all rows or so many."""
        rows = self.table.n_complete((a, b)) if n_rows is None else n_rows
        return side_of(self.table, (a, b), Statistic(test.statistic, test.df), rows)


def _refined(strata: Ints, codes: Codes, n_levels: int) -> tuple[Ints, int]:
    key = strata * n_levels + codes
    occurring, which = np.unique(key, return_inverse=True)
    return which.astype(np.int64), len(occurring)
