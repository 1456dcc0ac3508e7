"""The test for sparse tables: against all arrangements of small tables, and a readable twin of its draws."""

from collections import Counter
from fractions import Fraction
from itertools import permutations
from math import exp, floor, lgamma, log, pi, sqrt
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from unless.independence import sparse
from unless.independence.sparse import SparseTest
from unless.kernels.permuting import Margins, draw_statistics, expect_rare_cells

WORD = 2**64 - 1


def run(a: Any, b: Any, strata: Any = None, counts: Any = None) -> SparseTest:
    a, b = np.asarray(a), np.asarray(b)
    strata = np.zeros(len(a), np.int64) if strata is None else strata
    counts = np.ones(len(a), np.int64) if counts is None else counts
    n_a, n_b = (int(codes.max(initial=0)) + 1 for codes in (a, b))
    return sparse.independence_within_strata(a, b, strata, counts, n_a, n_b)


def rows_of(table: Any) -> tuple[Any, Any, Any, Any]:
    """Return codes, strata and counts of a table (strata x a x b or a x b)."""
    table = np.asarray(table) if np.ndim(table) == 3 else np.asarray(table)[None]
    strata, a, b = np.indices(table.shape).reshape(3, -1)
    return a, b, strata, table.ravel()


# ---------------------------------------------------------------------------- a readable twin


class Stream:
    """The generator splitmix64."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def word(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & WORD
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
        return z ^ (z >> 31)

    def below(self, bound: int) -> int:
        """Lemire: of 2**32 equally likely numbers, as many as are a multiple of the bound are kept."""
        while True:
            product = (self.word() >> 32) * bound
            if product % 2**32 >= 2**32 % bound:
                return product >> 32

    def uniform(self) -> float:
        return (self.word() >> 11) * 2.0**-53


def log_factorial(n: int) -> float:
    if n < 1024:
        return lgamma(n + 1.0)
    return (n + 0.5) * log(n) - n + 0.5 * log(2 * pi) + (1 / 12 - 1 / (360.0 * n * n)) / n


def log_choose(n: int, k: int) -> float:
    return log_factorial(n) - log_factorial(k) - log_factorial(n - k)


def hypergeometric(stream: Stream, good: int, bad: int, taken: int) -> int:
    """Try values from the most likely one outwards, upwards first, until they add up to a random share."""
    least, most = max(0, taken - bad), min(good, taken)
    if least == most:
        return least
    mode = min(max(floor((taken + 1) * (good + 1) / (good + bad + 2)), least), most)

    def chance(value: int) -> float:
        return exp(log_choose(good, value) + log_choose(bad, taken - value) - log_choose(good + bad, taken))

    left = stream.uniform() - chance(mode)
    for step in range(1, most - least + 1):
        for value in (mode + step, mode - step):
            if left >= 0 and least <= value <= most:
                left -= chance(value)
                if left < 0:
                    return value
    return mode


def twin_margins(a: Any, b: Any, strata: Any, counts: Any) -> list[tuple[list[int], list[int]]]:
    """Return for each stratum in which both vary the margins that are dealt, and those that are blocks."""
    found = []
    for stratum in set(strata.tolist()):
        sides: list[Counter[int]] = [Counter(), Counter()]
        for x, y, z, count in zip(a.tolist(), b.tolist(), strata.tolist(), counts.tolist(), strict=True):
            if z == stratum and count:
                sides[0][x] += count
                sides[1][y] += count
        margins = [sorted(side.values()) for side in sides]
        if min(len(side) for side in margins) > 1:
            found.append(sorted(margins, key=lambda side: (side[-1], fingerprint(side))))
    by_margins = sorted(found, key=lambda pair: (sum(pair[0]), fingerprint(pair[1]), fingerprint(pair[0])))
    return [(dealt, blocks) for dealt, blocks in by_margins]


def fingerprint(sizes: list[int]) -> int:
    """Return the sum of what splitmix64 makes of each size, as a signed word."""
    total = 0
    for size in sizes:
        stream = Stream((size - 1) * 0x9E3779B97F4A7C15 & WORD)
        total += stream.word()
    total &= WORD
    return total - 2**64 if total >= 2**63 else total


class TwinDraws:
    """Draws of X2 in the plainest words, one table after the other."""

    def __init__(self, margins: list[tuple[list[int], list[int]]]) -> None:
        self.stream, self.margins = Stream(sparse._SEED), margins
        self.individuals = [
            [level for level, size in enumerate(dealt) for _ in range(size)] for dealt, _ in margins
        ]

    def tables(self) -> list[list[Counter[int]]]:
        found = []
        for (dealt, blocks), individuals in zip(self.margins, self.individuals, strict=True):
            cost = (len(dealt) - 1) * (len(blocks) - 1)
            cost *= sparse.STEPS_OF_CELL + sqrt(sum(dealt) / (len(dealt) * len(blocks)))
            if sum(dealt) - blocks[-1] <= cost:
                found.append(self.shuffled(blocks, individuals))
            else:
                found.append(self.cell_by_cell(dealt, blocks))
        return found

    def shuffled(self, blocks: list[int], individuals: list[int]) -> list[Counter[int]]:
        for at in range(len(individuals) - blocks[-1]):
            other = at + self.stream.below(len(individuals) - at)
            individuals[at], individuals[other] = individuals[other], individuals[at]
        ends = np.cumsum([0, *blocks])
        return [Counter(individuals[ends[i] : ends[i + 1]]) for i in range(len(blocks))]

    def cell_by_cell(self, dealt: list[int], blocks: list[int]) -> list[Counter[int]]:
        left, found = list(dealt), []
        for size in blocks[:-1]:
            block: Counter[int] = Counter()
            for level in range(len(dealt)):
                taken = size - block.total()
                block[level] = hypergeometric(self.stream, left[level], sum(left[level + 1 :]), taken)
            left = [n - block[level] for level, n in enumerate(left)]
            found.append(block)
        return [*found, Counter(dict(enumerate(left)))]

    def statistic(self) -> float:
        total = 0.0
        for (dealt, blocks), table in zip(self.margins, self.tables(), strict=True):
            n = sum(dealt)
            for size, block in zip(blocks, table, strict=True):
                for level, expected in enumerate(m * size / n for m in dealt):
                    total += (block[level] - expected) ** 2 / expected
        return total


def twin(a: Any, b: Any, strata: Any, counts: Any) -> SparseTest:
    """Do what `independence_within_strata` does."""
    margins = twin_margins(a, b, strata, counts)
    if not margins:
        return SparseTest(0.0, 0, 1.0, "chi-square", 0)
    statistic, df, contributions = 0.0, 0, []
    for stratum in set(strata.tolist()):
        inside = strata == stratum
        crossed = np.zeros((a.max() + 1, b.max() + 1))
        np.add.at(crossed, (a[inside], b[inside]), counts[inside])
        crossed = crossed[crossed.sum(axis=1) > 0][:, crossed.sum(axis=0) > 0]
        if min(crossed.shape) > 1:
            expected = crossed.sum(axis=1)[:, None] * crossed.sum(axis=0) / crossed.sum()
            parts = (crossed - expected) ** 2 / expected
            statistic += parts.sum()
            df += (crossed.shape[0] - 1) * (crossed.shape[1] - 1)
            freedom = (1 - crossed.sum(axis=1) / crossed.sum())[:, None] * (
                1 - crossed.sum(axis=0) / crossed.sum()
            )
            contributions += (parts / freedom)[crossed > expected].tolist()
    expected = [m * s / sum(dealt) for dealt, blocks in margins for m in dealt for s in blocks]
    n_small = sum(Fraction(m * s, sum(dealt)) < 5 for dealt, blocks in margins for m in dealt for s in blocks)
    n_tiny = sum(Fraction(m * s, sum(dealt)) < 1 for dealt, blocks in margins for m in dealt for s in blocks)
    if n_tiny == 0 and n_small < 0.2 * len(expected):
        return SparseTest(statistic, df, float(stats.chi2.sf(statistic, df)), "chi-square", 0)
    mean, variance = twin_moments(margins)
    if variance <= 1e-9 * df:
        return SparseTest(statistic, df, 1.0, "moments", 0)
    draws = TwinDraws(margins)
    n_rows = sum(sum(dealt) for dealt, _ in margins)
    slack = sparse.STATISTIC_SLACK * (statistic + n_rows)
    found = np.array([draws.statistic() for _ in range(199)])
    if len(np.flatnonzero(np.diff(np.sort(found)) > slack)) + 1 < 100:
        p = (1 + (found >= statistic - slack).sum()) / 200
        if p >= 0.1:
            return SparseTest(statistic, df, p, "permutations", 199)
    else:
        p = twin_tail(statistic, mean, variance, found)
        if p >= (0.02 if skewness_of(found, mean, variance) < 1 else 0.1):
            return SparseTest(statistic, df, p, "moments", 199)
    found = np.concatenate([found, [draws.statistic() for _ in range(1_800)]])
    p = (1 + (found >= statistic - slack).sum()) / 2_000
    if p == 1 / 2_000:
        smooth, chance, left = [twin_tail(statistic, mean, variance, found)], 1.0, statistic
        for part in sorted(contributions, reverse=True)[:16]:
            rate = twin_rate(margins, part)
            if rate >= 0.005:
                break
            chance, left = chance * rate, left - part
            rest = (found >= left).mean() or twin_tail(left, mean, variance, found)
            smooth.append(chance * (1 if left <= mean else rest))
        p = max(1e-12, min(p, max(smooth)))
    return SparseTest(statistic, df, p, "permutations", 1_999)


def twin_moments(margins: list[tuple[list[int], list[int]]]) -> tuple[float, float]:
    mean, variance = Fraction(0), Fraction(0)
    for sides in margins:
        n = sum(sides[0])
        v = [Fraction((len(side) - 1) * (n - len(side)), n - 1) for side in sides]
        inverse = [sum(Fraction(1, size) for size in side) for side in sides]
        w = [(n * total - len(side) ** 2) / max(1, n - 2) for side, total in zip(sides, inverse, strict=True)]
        mean += Fraction(n, n - 1) * (len(sides[0]) - 1) * (len(sides[1]) - 1)
        variance += Fraction(n * n, n - 1) * w[0] * w[1]
        if n > 3:
            variance += Fraction(2 * n, n - 3) * (v[0] - w[0]) * (v[1] - w[1])
    return float(mean), float(variance)


def skewness_of(draws: Any, mean: float, variance: float) -> float:
    return float((((draws - mean) / sqrt(variance)) ** 3).mean())


def twin_tail(value: float, mean: float, variance: float, draws: Any) -> float:
    skewness = skewness_of(draws, mean, variance)
    return float(stats.pearson3.sf((value - mean) / sqrt(variance), skewness))


def twin_rate(margins: list[tuple[list[int], list[int]]], part: float) -> float:
    total = 0.0
    for dealt, blocks in margins:
        n = sum(dealt)
        for good in dealt:
            for size in blocks:
                variance = good * size / n * (1 - good / n) * (1 - size / n)
                least = int(np.ceil(good * size / n + sqrt(variance * part) * (1 - 1e-9)))
                total += float(stats.hypergeom.sf(least - 1, n, good, size))
    return total


def assert_twins(*table: Any) -> SparseTest:
    found, expected = run(*table), twin(*(np.asarray(part) for part in table))
    assert (found.df, found.method, found.n_draws) == (expected.df, expected.method, expected.n_draws)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-9, abs=1e-9)
    # Shares of draws are equal; tails differ by the rounding of two gamma functions.
    assert found.p == pytest.approx(expected.p, rel=1e-6)
    if expected.p >= 1 / 2_000 and found.method == "permutations":
        assert found.p == expected.p
    return found


def random_table(rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    n_rows = int(rng.integers(2, 60))
    n_a, n_b, n_strata = rng.integers(1, 9), rng.integers(1, 9), rng.choice([1, 1, 2, 5])
    a = rng.choice(n_a, n_rows, p=rng.dirichlet(np.full(n_a, 1.5)))
    b = np.where(rng.random(n_rows) < rng.choice([0, 0.7]), a % n_b, rng.integers(0, n_b, n_rows))
    return a, b, rng.integers(0, n_strata, n_rows), rng.choice([0, 1, 1, 1, 2, 4], n_rows)


def test_the_fast_form_equals_its_twin_on_random_tables() -> None:
    rng = np.random.default_rng(5)
    methods = Counter(assert_twins(*random_table(rng)).method for _ in range(60))
    assert min(methods["moments"], methods["permutations"]) >= 5


@pytest.mark.parametrize(
    "table",
    [
        ([0], [0], [0], [1]),
        ([0], [0], [0], [0]),
        ([0, 0, 0], [0, 1, 2], [0, 0, 0], [1, 2, 3]),
        ([0, 1], [0, 1], [0, 0], [1, 1]),
        ([0, 1], [0, 1], [0, 0], [1, 2]),
        ([0, 1], [0, 1], [7, 3], [5, 5]),
        # Strata without rows in between, and one that is full.
        ([0, 0, 1, 1, 0, 1], [0, 1, 0, 1, 0, 1], [90, 90, 90, 90, 2, 2], [30, 40, 50, 60, 2, 2]),
        ([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0], [30, 40, 50, 60]),
        # A copy.
        (list(range(12)), list(range(12)), [0] * 12, [2] * 12),
        # All arrangements are alike.
        (list(range(12)), [0, 1, 2] * 4, [0] * 12, [1] * 12),
        # Drawn cell by cell.
        ([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2], [0] * 6, [0, 1, 2, 3, 900, 800]),
        ([0, 0, 1, 1], [0, 1, 0, 1], [0] * 4, [2, 1, 1, 2_000]),
    ],
)
def test_the_fast_form_equals_its_twin_on_nasty_tables(table: Any) -> None:
    assert_twins(*table)


def test_the_fast_form_equals_its_twin_on_three_hundred_levels() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.permutation(np.arange(320) % 300), rng.permutation(np.arange(320) % 290)
    counted = sparse._count(a, b, np.zeros(320, np.int64), np.ones(320, np.int64), 300, 300)
    assert counted is not None
    draws, drawn = TwinDraws(twin_margins(a, b, np.zeros(320), np.ones(320, np.int64))), np.empty(5)
    draw_statistics(counted.margins, np.array([sparse._SEED], np.uint64), drawn)
    assert drawn - 320 == pytest.approx([draws.statistic() for _ in range(5)], rel=1e-9)
    assert run(a, b).df == 299 * 289
    assert run(a, a).p <= 1e-6


def test_the_order_of_rows_names_of_strata_and_levels_and_sides_change_nothing() -> None:
    rng = np.random.default_rng(2)
    for _ in range(40):
        a, b, strata, counts = random_table(rng)
        expected = run(a, b, strata, counts)
        order = rng.permutation(len(a))
        assert run(a[order], b[order], strata[order], counts[order]) == expected
        assert run(b, a, strata, counts) == expected
        assert run(a, b, rng.permutation(9)[strata], counts) == expected
        assert run(rng.permutation(9)[a], rng.permutation(9)[b], strata, counts) == expected
        alone = np.repeat(np.arange(len(a)), counts)
        assert run(a[alone], b[alone], strata[alone]) == expected


# ---------------------------------------------------------------------------- all arrangements


def all_arrangements(a: Any, b: Any) -> list[float]:
    """Return X2 of every arrangement of one column against the other."""
    cache: dict[tuple[int, ...], float] = {}
    for order in set(permutations(b)):
        crossed = np.zeros((max(a) + 1, max(b) + 1))
        np.add.at(crossed, (list(a), list(order)), 1)
        expected = crossed.sum(axis=1)[:, None] * crossed.sum(axis=0) / crossed.sum()
        cache[order] = float(((crossed - expected) ** 2 / expected).sum())
    return list(cache.values())


SMALL = [
    ((0, 1), (0, 1)),
    ((0, 1, 1), (0, 1, 1)),
    ((0, 1, 2), (0, 1, 1)),
    ((0, 0, 1, 1), (0, 0, 1, 1)),
    ((0, 0, 0, 1), (0, 1, 1, 2)),
    ((0, 0, 0, 1, 1, 1), (0, 0, 1, 1, 2, 2)),
    ((0, 0, 0, 0, 0, 1, 2), (0, 0, 0, 1, 1, 1, 2)),
    ((0, 0, 0, 0, 1, 1, 1, 1), (0, 0, 0, 0, 1, 1, 1, 1)),
    ((0, 0, 0, 1, 1, 1, 2, 2), (0, 0, 0, 1, 1, 1, 2, 2)),
]


@pytest.mark.parametrize(("a", "b"), SMALL)
def test_mean_and_variance_are_those_of_all_arrangements(a: Any, b: Any) -> None:
    values = all_arrangements(a, b)
    n = len(a)
    counted = sparse._count(*(np.array(x) for x in (a, b, [0] * n, [1] * n)), max(a) + 1, max(b) + 1)
    assert counted is not None
    assert sparse.moments(counted.margins) == pytest.approx((np.mean(values), np.var(values)), abs=1e-9)


def test_moments_add_up_over_strata() -> None:
    found = [np.array(x) for x in ([*SMALL[5][0], *SMALL[6][0]], [*SMALL[5][1], *SMALL[6][1]])]
    counted = sparse._count(*found, np.repeat([4, 9], [6, 7]), np.ones(13, np.int64), 3, 3)
    assert counted is not None
    values = [all_arrangements(*SMALL[k]) for k in (5, 6)]
    expected = sum(map(np.mean, values)), sum(map(np.var, values))
    assert sparse.moments(counted.margins) == pytest.approx(expected)


@pytest.mark.parametrize(("a", "b"), SMALL)
def test_p_is_close_to_that_of_all_arrangements(a: Any, b: Any) -> None:
    values = np.array(all_arrangements(a, b))
    crossed = np.zeros((max(a) + 1, max(b) + 1))
    np.add.at(crossed, (list(a), list(b)), 1)
    observed = stats.chi2_contingency(crossed, correction=False)[0]
    exact = float((values >= observed - 1e-9).mean())
    found = run(a, b)
    assert found.statistic == pytest.approx(observed)
    n = max(found.n_draws, 1)
    assert abs(found.p - exact) <= 4 * sqrt(exact * (1 - exact) / n) + 1 / (n + 1)


def test_p_of_two_by_two_is_that_of_fisher_where_both_order_tables_alike() -> None:
    # With one margin even, X2 and the chance of a table put all tables in the same order.
    for k in range(6):
        table = [[k, 10 - k], [6 - k, 4 + k]]
        exact = stats.fisher_exact(table).pvalue
        found = run(*rows_of(table))
        assert abs(found.p - exact) <= 4 * sqrt(exact * (1 - exact) / max(found.n_draws, 1)) + 1 / 200


@pytest.mark.parametrize("is_shuffled", [True, False])
def test_both_ways_to_draw_follow_the_hypergeometric_law(is_shuffled: bool) -> None:
    margins, n = ([3, 9], [5, 7]), 12
    starts = np.array([0, 2])
    individuals = np.repeat([0, 1], margins[0]).astype(np.int32)
    drawn = np.empty(20_000)
    laid = Margins(
        np.array(margins[0]), starts, np.array(margins[1]), starts, np.array([n]),
        individuals, np.array([0, n if is_shuffled else 0]),
    )  # fmt: skip
    draw_statistics(laid, np.array([3], np.uint64), drawn)
    for k in range(4):
        crossed = np.array([[k, 3 - k], [5 - k, 4 + k]])
        value = n * (crossed**2 / np.outer(margins[0], margins[1])).sum()
        share, exact = np.isclose(drawn, value).mean(), stats.hypergeom.pmf(k, n, 3, 5)
        assert share == pytest.approx(exact, abs=4 * sqrt(exact * (1 - exact) / 20_000))


# ---------------------------------------------------------------------------- what p says


def test_full_cells_have_the_chi_square_law() -> None:
    table = [[[30, 40], [50, 60]], [[20, 9], [8, 20]]]
    found = run(*rows_of(table))
    expected = [stats.chi2_contingency(one, correction=False)[0] for one in table]
    assert (found.method, found.df, found.n_draws) == ("chi-square", 2, 0)
    assert found.statistic == pytest.approx(sum(expected))
    assert found.p == pytest.approx(special.chdtrc(2, sum(expected)))


def test_one_row_is_no_evidence_among_cells_that_are_full() -> None:
    # Nineteen cells of a hundred are small, and chi-square would say 1e-100.
    table = np.full((10, 10), 12)
    table[0], table[:, 0] = 0, 0
    table[0, 0] = 1
    assert run(*rows_of(table)).p >= 0.0005


def test_cells_too_rare_for_the_draws_have_their_own_chance() -> None:
    # Two rows of three meet two of three among a thousand.
    table = [[2, 1], [1, 996]]
    exact = stats.hypergeom.sf(1, 1000, 3, 3)
    found = run(*rows_of(table))
    assert exact <= found.p <= 3 * exact
    # The same beside a sparse table of many levels, where other cells may be as remarkable.
    rng = np.random.default_rng(3)
    a, b = rng.integers(1, 30, 600), rng.integers(1, 30, 600)
    a, b = np.concatenate([a, [0, 0, 0]]), np.concatenate([b, [0, 0, 0]])
    assert run(a, b).p >= stats.hypergeom.pmf(3, 603, 3, 3) / 2


def test_the_number_of_rare_cells_is_a_sum_of_chances() -> None:
    laid = Margins(
        np.array([2, 8]), np.array([0, 2]), np.array([3, 7]), np.array([0, 2]), np.array([10]),
        np.zeros(0, np.int32), np.array([0, 0]),
    )  # fmt: skip
    # Two of two meet three: X2 is 70/12, told by that cell and by the one opposite.
    assert expect_rare_cells(laid, 70 / 12) == pytest.approx(2 * stats.hypergeom.pmf(2, 10, 2, 3))
    assert expect_rare_cells(laid, 5.9) == 0


def test_p_falls_with_the_evidence_and_not_below_what_is_known() -> None:
    rng = np.random.default_rng(4)
    a, noise = rng.integers(0, 25, 400), rng.integers(0, 25, 400)
    share = rng.random(400)
    found = [run(a, np.where(share < strength, a, noise)).p for strength in (0, 0.1, 0.2, 1)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.02
    assert found[-1] == sparse.LEAST_P


def test_independent_columns_are_rejected_as_often_as_is_said() -> None:
    rng = np.random.default_rng(6)
    p = []
    for _ in range(600):
        strata = rng.integers(0, 3, 80)
        a, b = (np.minimum(rng.geometric(0.3, 80) - 1 + strata, 12) for _ in range(2))
        p.append(run(a, b, strata).p)
    assert (np.array(p) < 0.05).sum() <= 47
    assert (np.array(p) < 0.05).sum() >= 16


def test_many_individuals_are_counted_and_not_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    table = [[3, 1, 0], [1, 500_000, 1_000_000], [0, 2_000_000, 4_000_000]]
    found = run(*rows_of(table))
    assert found.method == "permutations"
    assert found.p < 1e-6
    monkeypatch.setattr(sparse, "MOST_STEPS", 10)
    alone = run(*rows_of(table))
    assert (alone.method, alone.n_draws) == ("moments", 0)
    # Without draws the cells of a handful of rows still have their own chance.
    assert alone.p >= stats.hypergeom.sf(2, 7_500_005, 4, 4) / 2


def test_strata_with_too_many_individuals_are_drawn_cell_by_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "MOST_STEPS", 150)
    rows = rows_of([[[1, 1], [1, 97]], [[1, 1], [1, 97]]])
    counted = sparse._count(*rows, 2, 2)
    assert counted is not None
    assert len(counted.margins.individuals) == 0
    assert counted.n_steps <= 150
    # Two cells that meet by chance, each with chances of 2 x 2 in 100.
    assert run(*rows).p == pytest.approx(0.0394**2, abs=0.003)
