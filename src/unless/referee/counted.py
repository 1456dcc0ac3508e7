"""What is judged by counting rows, without regressions: copies and functions, rules, pairs of many levels.

*Determined*: a column that is a copy or a function of one other column, or nearly so.

*Rules*: gates of columns whose regressions have weights without end. A stratum is a set of rows alike in all
other columns, and it is informative where the first column has two levels in it or more. If the second column
varies with the first only in strata inside a box, and many strata outside show that it does not, the box is a
gate.

*Wide pairs*: columns of many levels, and cells that too few rows fill. They are tested within strata, by
permutations where cells are nearly empty (`independence.sparse`). A column that goes together with an end
must be held fixed; where the rows do not bear that, the pair is at most associated.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, lgamma

import numpy as np

from unless.data.dataset import Dataset, unknown_levels, whole_numbers
from unless.independence.sparse import SparseTest, independence_within_strata
from unless.independence.statistics import Statistic, critical_value, expected_counts, pearson_statistic
from unless.referee.regressions import Codes, LinkEstimate, RegressionTable, estimate_link
from unless.typing import Bools, Integers

# A column and some of its levels.
Clause = tuple[int, tuple[int, ...]]

# At most one row of this many breaks a function,
NEARLY = 100
# and at most one of this many that the most frequent level of the column gets wrong.
NEARLY_OF_WRONG = 20
# Rows for each level of the source, on average: with fewer, chance makes functions.
ROWS_A_LEVEL = 5
# A small table may hold few of the rows that break a function, or none. So the upper limit of their expected
# number, at this confidence, is at most this share of the rows that the most frequent level gets wrong; and
# at most one row of NEARLY, unless none breaks it. In tables of 200 rows from ALARM, which has no function,
# 47 were found without this (200 tables), 2 at 95 % (200 others) and none at 99 % (800 others).
CONFIDENCE, MOST_OF_WRONG = 0.99, 0.1

# With fewer informative strata, or fewer in which the second column varies, no rule is looked for.
LEAST_STRATA, LEAST_VARYING = 20, 5
# Rows in informative strata, as a share of all: where most strata show one level, the rest are no fair
# sample.
LEAST_INFORMATIVE = 0.5
# A clause earns its place where chance alone would leave its far side without a varying stratum less often.
LEAST_CHANCE = 1e-4
# A rule is broken where rows alike in the first column and all others differ in the second, and no row may
# break it. Where less than the first share of rows have a like, strata must show the second share of all
# levels of the first column, as a designed table does: else they vary by how many rows they have.
LEAST_REPEATED, LEAST_FILLED = 0.2, 0.75
# A column with more levels is no gate: a list of its levels is no sentence.
MOST_LEVELS = 8

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


# ---------------------------------------------------------------------- copies and functions


@dataclass(frozen=True)
class Determined:
    """A column that another one determines; rows that break it are counted.

    Attributes
    ----------
    source
        The position of the column that determines the other.
    column
        The position of the column that it determines.
    n_broken
        The rows whose level of `column` is not the one most frequent at their level of `source`.
    is_copy
        Whether `column` determines `source` as well; that is an entry of its own, with its own `n_broken`.
    """

    source: int
    column: int
    n_broken: int
    is_copy: bool


def find_determined(data: Dataset) -> tuple[Determined, ...]:
    """Return all pairs of columns of which one determines the other, by the names of source and column.

    Two columns that determine each other are two entries with `is_copy`. A source has at least five rows a
    level on average, and at most `most_broken` rows break the function. A row whose level of the source
    occurs only once breaks nothing and shows nothing: it does not count as one that the source gets right
    and the most frequent level wrong. Constant columns neither determine nor are determined; columns that
    need two others are not looked for.
    """
    from unless.kernels.regression import count_broken

    n_columns, n_rows = data.n_variables, data.n_rows
    totals = [_totals(data, column) for column in range(n_columns)]
    is_source = np.array([ROWS_A_LEVEL * np.count_nonzero(one) <= n_rows for one in totals], dtype=np.bool_)
    limits = np.array([most_broken(n_rows, _n_wrong(one)) for one in totals], dtype=np.int64)
    # The rows of a dataset are sorted, but a function is refuted soonest by rows that come in no order.
    order = np.random.default_rng(0).permutation(data.n_distinct)
    codes = np.ascontiguousarray(data.rows.T[:, order])
    broken = np.full((n_columns, n_columns), -1, dtype=np.int64)
    n_levels = np.array([len(one) for one in totals], dtype=np.int64)
    count_broken(codes, data.counts[order], n_levels, is_source, limits, broken)

    for source in np.flatnonzero((broken >= 0).any(axis=1)).tolist():
        once = totals[source] == 1
        if once.any():
            repeated = ~once[data.rows[:, source]]
            for column in np.flatnonzero(broken[source] >= 0).tolist():
                limit = most_broken(n_rows, _n_wrong(_totals(data, column, repeated)))
                if broken[source, column] > limit:
                    broken[source, column] = -1

    for source, column in np.argwhere(broken >= 0).tolist():
        if not _varies_where_known(data, source, column):
            broken[source, column] = -1

    pairs = sorted(np.argwhere(broken >= 0).tolist(), key=lambda pair: [data.names[one] for one in pair])
    return tuple(Determined(i, j, int(broken[i, j]), bool(broken[j, i] >= 0)) for i, j in pairs)


def _varies_where_known(data: Dataset, source: int, column: int) -> bool:
    """Tell whether a column that another determines shows two levels where neither is missing.

    A question that only some people are asked shows, where it is empty, who was not: that is no function.
    """
    unknown = unknown_levels(data)
    known = np.ones(data.n_distinct, dtype=np.bool_)
    for one in (source, column):
        if data.names[one] in unknown:
            known &= data.rows[:, one] != unknown[data.names[one]]
    return bool(known.all()) or len(np.unique(data.rows[known, column])) > 1


def determined_pairs(determined: Iterable[Determined], n_columns: int) -> Bools:
    """Return a matrix that is True where one of two columns determines the other."""
    matrix = np.zeros((n_columns, n_columns), dtype=np.bool_)
    for one in determined:
        matrix[one.source, one.column] = matrix[one.column, one.source] = True
    return matrix


def most_broken(n_rows: int, n_wrong: int) -> int:
    """Return the largest number of rows that may break a function, or -1 if even none shows no function.

    Parameters
    ----------
    n_rows
        All rows.
    n_wrong
        The rows that a guess of the column's most frequent level gets wrong. None may break where these are
        fewer than 67 or all rows fewer than 664; where they are fewer than 47, nothing is shown.
    """
    if _upper_limit(0) > MOST_OF_WRONG * n_wrong:
        return -1
    most = min(n_rows // NEARLY, n_wrong // NEARLY_OF_WRONG)
    # Where no row breaks it, it need not be shown that fewer than 1 % would: it is most likely exact.
    return bisect_right(range(1, most + 1), min(n_rows / NEARLY, MOST_OF_WRONG * n_wrong), key=_upper_limit)


def _upper_limit(n_broken: int) -> float:
    """Return the expected number of which so few, or fewer, would be seen with 1 % chance."""
    return critical_value(2 * (n_broken + 1), 1 - CONFIDENCE) / 2


def _totals(data: Dataset, column: int, keep: Bools | slice = slice(None)) -> Integers:
    """Count the rows of each level, of those to keep."""
    # In floats, which are exact: a dataset has fewer than 2^53 rows.
    n_levels = int(data.domain.n_levels[column])
    totals = np.bincount(data.rows[keep, column], weights=data.counts[keep], minlength=n_levels)
    return totals.astype(np.int64)


def _n_wrong(totals: Integers) -> int:
    return int(totals.sum() - totals.max(initial=0))


# ---------------------------------------------------------------------- rules


@dataclass(frozen=True)
class Rule:
    """Where `column` varies with the other end of a pair, everything else held fixed, and by what chance."""

    clauses: tuple[Clause, ...]
    chance: float


def find_rule(
    table: RegressionTable, first: int, column: int, fixed: Sequence[int], gates: Sequence[int]
) -> Rule | None:
    """Find the smallest box of levels of gates outside of which a column never varies with a first one.

    `fixed` are the columns that make the strata; `gates`, some of them, may be in a clause.
    """
    which, example = table.numbered(tuple(sorted(fixed)))
    n_strata = len(example)
    several = _shows_several(which, table.codes[first], table.n_levels[first], n_strata)
    n_several = int(several.sum())
    if n_several < LEAST_STRATA:
        return None
    if float(table.counts[several[which]].sum()) < LEAST_INFORMATIVE * table.n_rows:
        return None
    varying = several & _shows_several(which, table.codes[column], table.n_levels[column], n_strata)
    n_varying = int(varying.sum())
    if n_varying < LEAST_VARYING or n_varying == n_several:
        return None
    if not _is_rule(table, first, column, fixed, which, several):
        return None
    accepted: list[tuple[float, Clause]] = []
    inside = several.copy()
    left = [gate for gate in gates if 2 <= len(table.used_levels(gate)) <= MOST_LEVELS]
    while left:
        # The next clause is judged among the strata that the others leave.
        chance, gate, levels = min(_clause(table, gate, example, inside, varying) for gate in left)
        if chance >= LEAST_CHANCE / len(left):
            break
        accepted.append((chance, (gate, levels)))
        inside &= np.isin(table.codes[gate][example], levels)
        left.remove(gate)
    if not accepted:
        return None
    clauses = tuple(sorted(clause for _, clause in accepted))
    return Rule(clauses, float(np.prod([chance for chance, _ in accepted])))


def _is_rule(
    table: RegressionTable, first: int, column: int, fixed: Sequence[int], strata: Integers, several: Bools
) -> bool:
    """Tell whether the other columns tell the second, as far as rows that are alike in them can show."""
    which, example = table.numbered(tuple(sorted((*fixed, first))))
    counts = table.counted(which, column, len(example))
    totals, largest = counts.sum(axis=1), counts.max(axis=1)
    repeated = totals > 1
    n_repeated = float(totals[repeated].sum())
    if n_repeated >= LEAST_REPEATED * table.n_rows:
        return bool((totals == largest)[repeated].all())
    n_levels = np.bincount(strata[example], minlength=len(several))[several]
    return float(n_levels.mean()) >= LEAST_FILLED * len(table.used_levels(first))


def _shows_several(which: Integers, codes: Codes, n_levels: int, n_strata: int) -> Bools:
    """Tell which strata show two levels of a column or more."""
    seen = np.zeros(n_strata * n_levels, dtype=np.bool_)
    seen[which * n_levels + codes] = True
    return np.asarray(seen.reshape(n_strata, n_levels).sum(axis=1) > 1)


def _clause(
    table: RegressionTable, gate: int, example: Integers, inside: Bools, varying: Bools
) -> tuple[float, int, tuple[int, ...]]:
    """Return the chance that no stratum varies at other levels of a gate, the gate, and these levels.

    The chance is hypergeometric, times the number of sets of as many levels.
    """
    levels = table.codes[gate][example]
    open_levels = tuple(np.unique(levels[varying & inside]).tolist())
    n_used = len(table.used_levels(gate))
    if len(open_levels) == n_used:
        return 1.0, gate, open_levels
    n, k = int(inside.sum()), int((varying & inside).sum())
    m = int((inside & np.isin(levels, open_levels)).sum())
    chance = exp(_log_choose(m, k) - _log_choose(n, k) + _log_choose(n_used, len(open_levels)))
    return min(1.0, chance), gate, open_levels


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


# ---------------------------------------------------------------------- wide pairs


def regressable(table: RegressionTable) -> Bools:
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

    def __init__(self, table: RegressionTable) -> None:
        self.table = table
        self.n_patterns = len(table.counts)
        self._alone: dict[tuple[int, int], SparseTest] = {}

    def counts(self, a: int, b: int, fixed: Sequence[int] = ()) -> Integers:
        """Return how often each row occurs, 0 where one of some columns has no value.

        Of a survey, how often it does in a sample of rows that count the same and tell as much of the pair.
        """
        weights = self.table.weights(self.table.incomplete([a, b, *fixed]))
        if self.table.survey is not None:
            return whole_numbers(weights / self.table.correction(a, b).factor)
        return weights.astype(np.int64)

    def alone(self, a: int, b: int) -> SparseTest:
        """Test two columns by themselves."""
        pair = (min(a, b), max(a, b))
        if pair not in self._alone:
            test = self._quick(*pair)
            self._alone[pair] = test or self._test(*pair, np.zeros(self.n_patterns, dtype=np.int64))
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
        value, df = pearson_statistic(counts)
        if not df:
            return SparseTest(0.0, 0, 1.0, "chi-square", 0)
        if expected_counts(counts).min() < 5:
            return None
        statistic = self.table.corrected(Statistic(float(value), int(df)), a, b)
        return SparseTest(statistic.value, statistic.df, statistic.p, "chi-square", 0)

    def _test(self, a: int, b: int, strata: Integers, fixed: Sequence[int] = ()) -> SparseTest:
        return self._test_in(a, b, strata, self.counts(a, b, fixed), slice(None))

    def _test_in(
        self, a: int, b: int, strata: Integers, counts: Integers, inside: Bools | slice
    ) -> SparseTest:
        first, second = (self.table.codes[c][inside].astype(np.int64) for c in (a, b))
        sizes = self.table.n_levels[a], self.table.n_levels[b]
        return independence_within_strata(first, second, strata, counts, *sizes)

    def given_others(self, a: int, b: int, others: list[int]) -> tuple[SparseTest, tuple[int, ...], bool]:
        """Test a pair given the columns that go together with an end: the test, what it holds, and if all.

        The columns that go together most with both ends come first.
        """
        p_values = {c: sorted(self.alone(c, end).p for end in (a, b)) for c in others}
        near = [c for c in others if p_values[c][0] < ASSOCIATED]
        fixed: list[int] = []
        strata, is_complete = np.zeros(self.n_patterns, dtype=np.int64), True
        for c in sorted(near, key=lambda one: (p_values[one][1], one)):
            finer, n_strata = _refined(strata, self.table.codes[c], self.table.n_levels[c])
            if n_strata * ROWS_PER_STRATUM > self.table.n_rows:
                is_complete = False
                continue
            strata = finer
            fixed.append(c)
        return self._test(a, b, strata, fixed), tuple(sorted(fixed)), is_complete

    def within(self, a: int, b: int, fixed: Sequence[int], inside: Bools) -> SparseTest:
        """Test a pair in some rows, given as many of some columns as they bear, the first first."""
        table, counts = self.table, self.counts(a, b, fixed)[inside]
        strata = np.zeros(len(counts), dtype=np.int64)
        for c in fixed:
            finer, n_strata = _refined(strata, table.codes[c][inside], table.n_levels[c])
            if n_strata * ROWS_PER_STRATUM <= counts.sum():
                strata = finer
        return self._test_in(a, b, strata, counts, inside)

    def estimate(self, a: int, b: int, test: SparseTest, n_rows: float | None = None) -> LinkEstimate:
        """Return the strength that a test shows, in all rows or so many."""
        rows = self.table.n_complete((a, b)) if n_rows is None else n_rows
        return estimate_link(self.table, (a, b), Statistic(test.statistic, test.df), rows)


def _refined(strata: Integers, codes: Codes, n_levels: int) -> tuple[Integers, int]:
    key = strata * n_levels + codes
    occurring, which = np.unique(key, return_inverse=True)
    return which.astype(np.int64), len(occurring)
