"""Tables drawn at random with given margins, stratum by stratum, and Pearson's statistic of each."""

import math
from typing import Any, NamedTuple

import numpy as np

from unless.kernels.compiling import compiled, exp, helper, inlined, log, without_refcount

_LOW, _HALF, _ONE = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
# Logarithms of the factorials of 0, 1, ...; beyond, Stirling's series is exact to the last digits.
_LOG_FACTORIALS = np.array([math.lgamma(k + 1.0) for k in range(1024)])
_HALF_LOG_TWO_PI = 0.5 * log(2.0 * math.pi)


class Margins(NamedTuple):
    """The margins of each stratum: those of one column, dealt out over the levels ("blocks") of the other."""

    dealt: Any  # int64: the counts of the levels that occur, stratum by stratum, ascending in each
    dealt_starts: Any  # int64 (strata + 1)
    blocks: Any  # int64: the same of the other column
    block_starts: Any  # int64 (strata + 1)
    totals: Any  # int64 (strata)
    individuals: Any  # int32: the level dealt to each individual of a stratum that is shuffled, in any order
    individual_starts: Any  # int64 (strata + 1): nothing for a stratum that is drawn cell by cell


@inlined
def _random(state):
    """Return the next 64 random bits: splitmix64 (Steele, Lea and Flood)."""
    state[0] += _STEP
    word = state[0]
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


@inlined
def _below(state, bound):
    """Return a whole number below a bound of at most 32 bits, each with exactly the same chance (Lemire)."""
    limit = np.uint64(bound)
    product = (_random(state) >> _HALF) * limit
    if product & _LOW < limit:
        least = ((_LOW - limit) + _ONE) % limit
        while product & _LOW < least:
            product = (_random(state) >> _HALF) * limit
    return np.int64(product >> _HALF)


@helper
def _log_factorial(n):
    if n < _LOG_FACTORIALS.shape[0]:
        return _LOG_FACTORIALS[n]
    x = float(n)
    return (x + 0.5) * log(x) - x + _HALF_LOG_TWO_PI + (1.0 / 12.0 - 1.0 / (360.0 * x * x)) / x


@helper
def _log_choose(n, k):
    return _log_factorial(n) - _log_factorial(k) - _log_factorial(n - k)


@helper
def _hypergeometric(state, good, bad, taken):
    """Draw how many of those taken are good: the values are tried from the most likely one outwards."""
    least, most = max(0, taken - bad), min(good, taken)
    if least == most:
        return least
    mode = np.int64(float(taken + 1) * float(good + 1) / float(good + bad + 2))
    mode = min(max(mode, least), most)
    at_mode = exp(_log_choose(good, mode) + _log_choose(bad, taken - mode) - _log_choose(good + bad, taken))
    left = float(_random(state) >> np.uint64(11)) * 2.0**-53 - at_mode
    low, high, at_low, at_high = mode, mode, at_mode, at_mode
    while left >= 0.0 and (low > least or high < most):
        if high < most:
            at_high *= float(good - high) * float(taken - high)
            high += 1
            at_high /= float(high) * float(bad - taken + high)
            left -= at_high
            if left < 0.0:
                return high
        if low > least:
            at_low *= float(low) * float(bad - taken + low)
            low -= 1
            at_low /= float(good - low) * float(taken - low)
            left -= at_low
            if left < 0.0:
                return low
    # All were tried, and rounding left something over.
    return mode


@inlined
def _last_block(shares, left, size):
    """Return the share of the last block, which gets what the others left."""
    inside = 0.0
    for level in range(left.shape[0]):
        inside += float(left[level]) * float(left[level]) * shares[level]
    return inside / float(size)


@helper
def _shuffled(state, shares, blocks, individuals, left, counts):
    """Deal individuals out at random; return the sum of squared counts, each over its two margins.

    Only the individuals of the smaller blocks are drawn: the last and largest has the others.
    """
    total, n, at = 0.0, individuals.shape[0], 0
    for block in range(blocks.shape[0] - 1):
        inside, begin = 0.0, at
        for _ in range(blocks[block]):
            other = at + _below(state, n - at)
            level = individuals[other]
            individuals[other] = individuals[at]
            individuals[at] = level
            # The square of a count that grows by one grows by twice the count and one.
            inside += float(2 * counts[level] + 1) * shares[level]
            counts[level] += 1
            left[level] -= 1
            at += 1
        for i in range(begin, at):
            counts[individuals[i]] = 0
        total += inside / float(blocks[block])
    return total + _last_block(shares, left, blocks[-1])


@helper
def _cell_by_cell(state, shares, blocks, total_left, left):
    """Do the same where the individuals are many and the cells few: each cell is drawn given those before."""
    total = 0.0
    for block in range(blocks.shape[0] - 1):
        inside, taken, others = 0.0, blocks[block], total_left
        for level in range(left.shape[0]):
            good = left[level]
            others -= good
            count = _hypergeometric(state, good, others, taken)
            inside += float(count) * float(count) * shares[level]
            left[level] -= count
            taken -= count
        total_left -= blocks[block]
        total += inside / float(blocks[block])
    return total + _last_block(shares, left, blocks[-1])


@compiled
def draw_statistics(margins, state, statistics):
    """Fill `statistics` with those of tables drawn with these margins: Pearson's X2 plus all totals.

    The state of the generator and the order of the individuals are carried over to the next call.
    """
    dealt_starts, block_starts = without_refcount((margins.dealt_starts, margins.block_starts))
    starts, dealt, blocks = without_refcount((margins.individual_starts, margins.dealt, margins.blocks))
    individuals, totals = without_refcount((margins.individuals, margins.totals))
    widest = 0
    for stratum in range(totals.shape[0]):
        widest = max(widest, dealt_starts[stratum + 1] - dealt_starts[stratum])
    room, zeros = np.zeros(widest, dtype=np.int64), np.zeros(widest, dtype=np.int64)
    all_shares = np.empty(dealt.shape[0])
    for i in range(dealt.shape[0]):
        all_shares[i] = 1.0 / float(dealt[i])
    for draw in range(statistics.shape[0]):
        statistic = 0.0
        for stratum in range(totals.shape[0]):
            first, last = dealt_starts[stratum], dealt_starts[stratum + 1]
            levels, shares = without_refcount((dealt[first:last], all_shares[first:last]))
            sizes = without_refcount(blocks[block_starts[stratum] : block_starts[stratum + 1]])
            left, counts = without_refcount((room[: last - first], zeros[: last - first]))
            for level in range(last - first):
                left[level] = levels[level]
            if starts[stratum] < starts[stratum + 1]:
                here = without_refcount(individuals[starts[stratum] : starts[stratum + 1]])
                found = _shuffled(state, shares, sizes, here, left, counts)
            else:
                found = _cell_by_cell(state, shares, sizes, totals[stratum], left)
            statistic += float(totals[stratum]) * found
        statistics[draw] = statistic


@compiled
def count_small_cells(margins):
    """Return how many cells there are, and how many of them expect fewer than five and fewer than one."""
    n_cells, n_below_five, n_below_one = 0, 0, 0
    for stratum in range(margins.totals.shape[0]):
        total = margins.totals[stratum]
        for i in range(margins.dealt_starts[stratum], margins.dealt_starts[stratum + 1]):
            for j in range(margins.block_starts[stratum], margins.block_starts[stratum + 1]):
                product = float(margins.dealt[i]) * float(margins.blocks[j])
                n_cells += 1
                n_below_five += product < 5.0 * float(total)
                n_below_one += product < float(total)
    return n_cells, n_below_five, n_below_one


@helper
def _chance_of(count, good, bad, taken):
    """Return the chance that at least so many of those taken are good, for a count beyond the mean."""
    if count > min(good, taken):
        return 0.0
    term = exp(_log_choose(good, count) + _log_choose(bad, taken - count) - _log_choose(good + bad, taken))
    total = 0.0
    while term > 1e-12 * total:
        total += term
        term *= float(good - count) * float(taken - count)
        count += 1
        term /= float(count) * float(bad - taken + count)
    return total


@compiled
def expect_rare_cells(margins, contribution):
    """Return how many cells are expected to add at least so much to X2 by counts above their expectation.

    What a cell adds is the X2 of its two levels against all others.
    """
    expected_number = 0.0
    for stratum in range(margins.totals.shape[0]):
        total = margins.totals[stratum]
        for i in range(margins.dealt_starts[stratum], margins.dealt_starts[stratum + 1]):
            for j in range(margins.block_starts[stratum], margins.block_starts[stratum + 1]):
                good, taken = margins.dealt[i], margins.blocks[j]
                expected = float(good) * float(taken) / float(total)
                variance = expected * float(total - good) * float(total - taken) / float(total) / float(total)
                # A little less, so that the count that gave the contribution is among those meant.
                count = np.int64(math.ceil(expected + math.sqrt(variance * contribution) * (1.0 - 1e-9)))
                expected_number += _chance_of(count, good, total - good, taken)
    return expected_number
