"""Whether two columns are independent within strata, however empty the cells are.

The statistic is Pearson's X2, summed over strata. Given the margins of every stratum, all arrangements of its
rows are equally likely if the columns are independent there, so that the law of X2 is known without any
asymptotics. Cheap answers come first:

1. *chi-square* where the cells are full enough (Cochran's rule);
2. *moments*: a Pearson type III law with the exact mean and variance of X2, and the skewness of 199 random
   arrangements, where p is not small by it;
3. *permutations*: 1,999 random arrangements, of which 1 + k reach the observed X2 if that itself is counted:
   p = (1 + k) / 2,000 rejects no true independence too often, whatever the table.

Where no arrangement reaches X2, p is at most 1 / 2,000, and searches over many pairs have to know more. The
type III law, fitted to all of them, then gives the tail. It knows nothing of cells so rare that the
arrangements hardly show them: with three rows of a thousand on either side, two that meet by chance make X2
444 instead of 1. Their chance is hypergeometric and counted by itself: p is at least the chance of cells as
remarkable as the k most remarkable ones, times the tail of what they leave of X2, for every k. No p is below
1e-12: nothing here is known to more digits.

The random numbers are always the same, and arrangements are drawn from the sorted margins alone: the answer
does not depend on the order of rows, the numbers of strata and levels, or which column comes first.

>>> a, b = np.repeat([0, 1], [3, 265]), np.repeat([0, 1], [1, 267])
>>> independence_within_strata(a, b, np.zeros(268, np.int64), np.ones(268, np.int64), 2, 2).p > 0.005
True
"""

from dataclasses import dataclass
from math import erfc, fsum, sqrt
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from unless.independence.statistics import gamma_below, gamma_tail, tail
from unless.kernels.compiling import plain_if_small
from unless.typing import Bools, Floats, Integers

if TYPE_CHECKING:
    from unless.kernels.permuting import Margins

Method = Literal["chi-square", "moments", "permutations"]

# Chi-square is used where fewer cells than this share expect below five, and none below one (Cochran 1954):
# of ten levels by ten, the cells of one rare level on either side are 19 %, and one row may add a thousand.
MOST_SMALL_CELLS = 0.2
FEW_DRAWS, ALL_DRAWS = 199, 1_999
# Where p is larger by the smooth tail, nothing more is drawn; of a law more skewed than this, a few cells
# make the tail (it then rejects 5.7 % at .05), and p must be larger still.
CLEAR, SKEWED, CLEAR_IF_SKEWED = 0.02, 1.0, 0.1
# Where so few of the first draws differ, X2 has too few values for a smooth tail, and draws decide alone: the
# first ones where p is larger than this by them.
LEAST_DISTINCT, CLEAR_BY_DRAWS = 100, 0.1
LEAST_P = 1e-12
# Two X2 are equal where they differ by at most this share of X2 and rows: the terms of one table, added up in
# another order, give other last digits.
STATISTIC_SLACK = 1e-10
# Cells as remarkable as one are rare where fewer than ten of all draws are expected to have any.
RARE, MOST_RARE = 10 / (ALL_DRAWS + 1), 16
# The steps that one draw may take (about 4 ns each); beyond, the moments decide alone. Individuals that are
# shuffled are a step each, and are never more than this.
MOST_STEPS = 2_000_000
# What it costs to draw a cell given those before, in steps, and one more for each standard deviation.
STEPS_OF_CELL = 32
_SEED = 20_260_101


@dataclass(frozen=True)
class SparseTest:
    """A test that two columns are independent within strata, given the margins of each.

    Attributes
    ----------
    statistic
        Pearson's X2, summed over strata.
    df
        Degrees of freedom, from the levels that occur in each stratum.
    p
        The chance of such a statistic if the columns are independent; one where nothing can be tested.
    method
        What p comes from.
    n_draws
        How many arrangements were drawn.
    """

    statistic: float
    df: int
    p: float
    method: Method
    n_draws: int


class _Margin(NamedTuple):
    """The levels of one column that occur, stratum by stratum."""

    sizes: Integers
    strata: Integers
    level_of_row: Integers


class _StrataCounts(NamedTuple):
    """Strata in which both columns vary: their margins, and the cells that are not empty."""

    margins: "Margins"
    n_steps: float
    observed: Floats
    expected: Floats
    # The variance of each count is nearly its expectation times this.
    freedom: Floats

    @property
    def n_rows(self) -> int:
        """The individuals in these strata."""
        return int(self.margins.totals.sum())


def independence_within_strata(
    a: npt.ArrayLike, b: npt.ArrayLike, strata: npt.ArrayLike, counts: npt.ArrayLike, n_a: int, n_b: int
) -> SparseTest:
    """Test that two columns are independent within strata.

    Parameters
    ----------
    a, b
        The codes of both columns by distinct row, below `n_a` and `n_b`.
    strata
        The number of the stratum of each distinct row.
    counts
        How often it occurs: whole numbers. Rows that do not occur are as if they were not there.
    n_a, n_b
        The number of levels of both columns.

    Returns
    -------
    SparseTest
        Statistic, degrees of freedom and p.

    Notes
    -----
    Memory follows the distinct rows, and the individuals of strata that are shuffled (2 million at most);
    large strata of few cells are drawn cell by cell.
    """
    from unless.kernels.permuting import count_small_cells

    codes_a, codes_b, numbers, worth = (np.asarray(part, dtype=np.int64) for part in (a, b, strata, counts))
    counted = _count(codes_a, codes_b, numbers, worth, n_a, n_b)
    if counted is None:
        return SparseTest(0.0, 0, 1.0, "chi-square", 0)
    margins = counted.margins
    n_dealt, n_blocks = np.diff(margins.dealt_starts), np.diff(margins.block_starts)
    df = int(((n_dealt - 1) * (n_blocks - 1)).sum())
    # A sum that is rounded once is the same in any order.
    terms = counted.observed * counted.observed / counted.expected
    statistic = max(0.0, fsum([*terms.tolist(), -float(counted.n_rows)]))
    with plain_if_small(10.0 * len(counted.expected)):
        n_cells, n_below_five, n_below_one = count_small_cells(margins)
    if n_below_one == 0 and n_below_five < MOST_SMALL_CELLS * n_cells:
        return SparseTest(statistic, df, tail(df, statistic), "chi-square", 0)
    p, method, n_draws = _judge(counted, statistic, df)
    return SparseTest(statistic, df, p, method, n_draws)


def _judge(counted: _StrataCounts, statistic: float, df: int) -> tuple[float, Method, int]:
    """Return p by moments or by permutations, which of them, and the number of draws."""
    from unless.kernels.permuting import draw_statistics

    mean, variance = moments(counted.margins)
    if variance <= 1e-9 * df:
        # Every arrangement has the same statistic.
        return 1.0, "moments", 0
    if counted.n_steps > MOST_STEPS:
        # The skewness of a gamma law that begins at zero, as a chi-square law does.
        skewness = 2 * sqrt(variance) / mean
        p = max(LEAST_P, _smooth_tail(counted, statistic, (mean, variance, skewness), np.empty(0)))
        return p, "moments", 0
    state, draws = np.array([_SEED], dtype=np.uint64), np.empty(ALL_DRAWS)
    slack = STATISTIC_SLACK * (statistic + counted.n_rows)
    draw_statistics(counted.margins, state, draws[:FEW_DRAWS])
    first = draws[:FEW_DRAWS] - counted.n_rows
    if 1 + int((np.diff(np.sort(first)) > slack).sum()) < LEAST_DISTINCT:
        p = (1 + int((first >= statistic - slack).sum())) / (FEW_DRAWS + 1)
        if p >= CLEAR_BY_DRAWS:
            return p, "permutations", FEW_DRAWS
    else:
        skewness = _skewness(first, mean, variance)
        p = pearson_tail(statistic, mean, variance, skewness)
        if p >= (CLEAR if skewness < SKEWED else CLEAR_IF_SKEWED):
            return p, "moments", FEW_DRAWS
    draw_statistics(counted.margins, state, draws[FEW_DRAWS:])
    draws -= counted.n_rows
    n_reached = int((draws >= statistic - slack).sum())
    p = (1 + n_reached) / (ALL_DRAWS + 1)
    if n_reached == 0:
        fitted = mean, variance, _skewness(draws, mean, variance)
        p = max(LEAST_P, min(p, _smooth_tail(counted, statistic, fitted, draws)))
    return p, "permutations", ALL_DRAWS


def moments(margins: "Margins") -> tuple[float, float]:
    """Return the exact mean and variance of X2 over all arrangements, summed over strata.

    The variance is Haldane's (1940) as Dawson (1954) wrote it.
    """
    n = margins.totals.astype(np.float64)
    sides = []
    for sizes, starts in ((margins.dealt, margins.dealt_starts), (margins.blocks, margins.block_starts)):
        k = np.diff(starts).astype(np.float64)
        v = (k - 1) * (n - k) / (n - 1)
        # Of two individuals all sizes are one, and n times the sum of inverses is k squared.
        w = (n * np.add.reduceat(1.0 / sizes, starts[:-1]) - k * k) / np.maximum(n - 2, 1)
        sides.append((k, v, w))
    (k_a, v_a, w_a), (k_b, v_b, w_b) = sides
    means = n / (n - 1) * (k_a - 1) * (k_b - 1)
    # Of three individuals v = w on either side.
    free = np.where(n > 3, 2 * n / np.maximum(n - 3, 1), 0.0)
    variances = free * ((v_a - w_a) * (v_b - w_b)) + n * n / (n - 1) * (w_a * w_b)
    return fsum(means.tolist()), max(0.0, fsum(variances.tolist()))


def pearson_tail(value: float, mean: float, variance: float, skewness: float) -> float:
    """Return the chance of at least a value by the Pearson type III law, a shifted gamma law.

    >>> round(pearson_tail(3.841, 1, 2, 8**0.5), 3), round(pearson_tail(1.96, 0, 1, 0), 3)
    (0.05, 0.025)
    """
    z = (value - mean) / sqrt(variance)
    if abs(skewness) < 1e-3:
        return 0.5 * erfc(z / sqrt(2))
    shape = 4 / (skewness * skewness)
    if skewness > 0:
        return gamma_tail(shape, max(0.0, shape + z * sqrt(shape)))
    return gamma_below(shape, max(0.0, shape - z * sqrt(shape)))


def _skewness(draws: Floats, mean: float, variance: float) -> float:
    return float((((draws - mean) / sqrt(variance)) ** 3).mean())


def _smooth_tail(
    counted: _StrataCounts, statistic: float, fitted: tuple[float, float, float], draws: Floats
) -> float:
    """Return the type III tail, or what cells make likelier that are too rare for the draws to show."""
    from unless.kernels.permuting import expect_rare_cells

    # What a cell adds to X2, with what it takes from the cells beside it: X2 of it against all others.
    above = np.maximum(0.0, counted.observed - counted.expected)
    largest = np.sort(above * above / (counted.expected * counted.freedom))[::-1][:MOST_RARE]
    p, chance, left = pearson_tail(statistic, *fitted), 1.0, statistic
    for contribution in largest.tolist():
        expected = expect_rare_cells(counted.margins, contribution)
        if expected >= RARE:
            break
        chance *= expected
        left -= contribution
        # Draws that reach what is left are more exact than the law, which rare cells distort.
        n_reached = int((draws >= left).sum())
        rest = n_reached / len(draws) if n_reached else pearson_tail(left, *fitted)
        p = max(p, chance * (1.0 if left <= fitted[0] else rest))
    return p


def _count(
    a: Integers, b: Integers, strata: Integers, counts: Integers, n_a: int, n_b: int
) -> _StrataCounts | None:
    """Count the strata in which both columns vary; none where there are none."""
    present = counts > 0
    a, b, counts = a[present], b[present], counts[present]
    strata = np.unique(strata[present], return_inverse=True)[1]
    n_strata = int(strata.max(initial=-1)) + 1
    varies = np.ones(n_strata, dtype=np.bool_)
    for codes, n_levels in ((a, n_a), (b, n_b)):
        varies &= np.bincount(np.unique(strata * n_levels + codes) // n_levels, minlength=n_strata) > 1
    if not varies.any():
        return None
    kept = varies[strata]
    a, b, counts = a[kept], b[kept], counts[kept]
    strata = (np.cumsum(varies) - 1)[strata[kept]]
    totals = _sums(strata, counts, int(varies.sum()))
    sides = _margin(a, strata, counts, n_a), _margin(b, strata, counts, n_b)
    margins, n_steps = _arrange(sides[0], sides[1], totals)
    cells, cell_of_row = np.unique(sides[0].level_of_row * n_b + b, return_inverse=True)
    observed = _sums(cell_of_row, counts, len(cells)).astype(np.float64)
    row_of_cell = np.empty(len(cells), dtype=np.int64)
    row_of_cell[cell_of_row] = np.arange(len(cell_of_row))
    r, c = (side.sizes[side.level_of_row[row_of_cell]].astype(np.float64) for side in sides)
    n = totals[strata[row_of_cell]].astype(np.float64)
    return _StrataCounts(margins, n_steps, observed, r * c / n, (n - r) * (n - c) / (n * n))


def _sums(index: Integers, values: Integers, n: int) -> Integers:
    sums = np.zeros(n, dtype=np.int64)
    np.add.at(sums, index, values)
    return sums


def _margin(codes: Integers, strata: Integers, counts: Integers, n_levels: int) -> _Margin:
    keys, level_of_row = np.unique(strata * n_levels + codes, return_inverse=True)
    return _Margin(_sums(level_of_row, counts, len(keys)), keys // n_levels, level_of_row)


def _arrange(a: _Margin, b: _Margin, totals: Integers) -> tuple["Margins", float]:
    """Lay out the margins for draws, and return with them the steps that a draw takes.

    Everything is sorted by the margins themselves, so that the draws depend on nothing else. In each stratum
    the column with the largest level gives the blocks: the individuals in its largest block need no draw.
    """
    from unless.kernels.permuting import Margins

    n_strata = len(totals)
    largest, prints = (np.zeros((2, n_strata), dtype=np.int64) for _ in range(2))
    for number, margin in enumerate((a, b)):
        np.maximum.at(largest[number], margin.strata, margin.sizes)
        np.add.at(prints[number], margin.strata, _mixed(margin.sizes))
    # Equal fingerprints mean equal margins, but for chance (2^-64), and then the sides are interchangeable.
    is_swapped = (largest[0] > largest[1]) | ((largest[0] == largest[1]) & (prints[0] > prints[1]))
    block, dealt = np.where(is_swapped, 0, 1), np.where(is_swapped, 1, 0)
    every = np.arange(n_strata)
    order = np.lexsort((prints[dealt, every], prints[block, every], totals))
    rank = np.empty(n_strata, dtype=np.int64)
    rank[order] = every
    dealt_sizes, dealt_starts = _sorted_sizes((a, ~is_swapped), (b, is_swapped), rank)
    block_sizes, block_starts = _sorted_sizes((b, ~is_swapped), (a, is_swapped), rank)
    totals = totals[order]
    n_dealt, n_blocks = np.diff(dealt_starts), np.diff(block_starts)
    to_shuffle = totals - block_sizes[block_starts[1:] - 1]
    cells = (n_dealt - 1) * (n_blocks - 1) * (STEPS_OF_CELL + np.sqrt(totals / (n_dealt * n_blocks)))
    is_shuffled = to_shuffle <= cells
    if totals[is_shuffled].sum() > MOST_STEPS:
        # Too many to lay out one by one.
        is_shuffled[:] = False
    n_steps = float(np.where(is_shuffled, to_shuffle, cells).sum())
    levels = (np.arange(len(dealt_sizes)) - np.repeat(dealt_starts[:-1], n_dealt)).astype(np.int32)
    individuals = np.repeat(levels, np.where(np.repeat(is_shuffled, n_dealt), dealt_sizes, 0))
    starts = np.concatenate([[0], np.cumsum(np.where(is_shuffled, totals, 0))])
    margins = Margins(dealt_sizes, dealt_starts, block_sizes, block_starts, totals, individuals, starts)
    return margins, n_steps


def _sorted_sizes(
    first: tuple[_Margin, Bools], second: tuple[_Margin, Bools], rank: Integers
) -> tuple[Integers, Integers]:
    """Return the sizes of levels, each stratum's from one of two sides, and where each stratum begins."""
    kept = [(side, use[side.strata]) for side, use in (first, second)]
    sizes = np.concatenate([side.sizes[use] for side, use in kept])
    ranks = np.concatenate([rank[side.strata[use]] for side, use in kept])
    order = np.lexsort((sizes, ranks))
    return sizes[order], np.searchsorted(ranks[order], np.arange(len(rank) + 1)).astype(np.int64)


def _mixed(values: Integers) -> Integers:
    """Mix the bits of numbers, so that their sum identifies them (the last steps of splitmix64)."""
    words = values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (words ^ (words >> np.uint64(31))).view(np.int64)
