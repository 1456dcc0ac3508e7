"""What a chi-square test can show: its power, the rows that power needs, and critical values.

Learners decide by tables per degree of freedom: critical values instead of p, row counts instead of power.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from unless.independence.statistics import (
    chi_square_critical,
    chi_square_tails,
    critical_value,
    noncentral_tail,
    noncentrality_of,
)
from unless.typing import Bools, Floats, Integers

# Cohen's convention: a test of less power, which misses the effect in more than one of five tables, and finds
# nothing, is undecided.
ENOUGH_POWER = 0.8
# Beyond this, counts are no longer exact as doubles.
_MOST_ROWS = 2**53
# Larger than any table: without degrees of freedom no number of rows suffices.
NEVER = int(np.iinfo(np.int64).max)
_LARGEST = int(np.float64(np.finfo(np.float64).max).view(np.int64))
# Tails are not monotonic in their last digits, so that near alpha they may cross it more than once.
_WOBBLE = 32


def power_of(df: npt.ArrayLike, n_rows: npt.ArrayLike, alpha: float, effect: float) -> Floats:
    """Return the chance of finding a dependence of Cohen's w = effect; 0 without degrees of freedom."""
    df = np.asarray(df, dtype=np.float64)
    # A df of 0 is asked as 1 and answered below, for the functions themselves know no such test.
    tested = np.maximum(df, 1.0)
    noncentrality = np.asarray(n_rows, dtype=np.float64) * effect**2
    each = np.broadcast_arrays(tested, noncentrality)
    power = [
        noncentral_tail(one, critical_value(one, alpha), shift)
        for one, shift in zip(*(part.ravel().tolist() for part in each), strict=True)
    ]
    return np.where(df > 0, np.reshape(power, each[0].shape), 0.0)


def rows_needed(df: npt.ArrayLike, alpha: float, effect: float, power: float = ENOUGH_POWER) -> Integers:
    """Return the fewest rows with which a test of one or more degrees of freedom has this power."""
    df = np.asarray(df, dtype=np.float64)

    def is_too_weak(n_rows: Integers) -> Bools:
        return power_of(df, n_rows, alpha, effect) < power

    needed = [noncentrality_of(one, critical_value(one, alpha), 1.0 - power) for one in df.ravel().tolist()]
    guess = np.clip(np.reshape(needed, df.shape) / effect**2, 0, _MOST_ROWS).astype(np.int64)
    return _last_true(is_too_weak, guess, margin=2, lowest=-1, highest=_MOST_ROWS) + 1


@lru_cache(maxsize=64)
def critical_values(alpha: float, max_df: int) -> Floats:
    """Return, for df = 0 to `max_df`, the largest statistic that still reads as independent.

    `statistic <= critical[df]` is `tail(df, statistic) >= alpha`; entry 0 is infinite: nothing is tested.
    """
    df = np.arange(1, max_df + 1, dtype=np.float64)

    def reads_independent(bits: Integers) -> Bools:
        return np.asarray(chi_square_tails(df, bits.view(np.float64)) >= alpha)

    # Positive doubles are ordered like their bits, so a search over bits ends at two neighbours.
    guess = chi_square_critical(df, alpha).view(np.int64)
    bits = _last_true(reads_independent, guess, margin=2 * _WOBBLE, lowest=0, highest=_LARGEST)
    critical = bits
    for step in range(1, _WOBBLE + 1):
        critical = np.where(reads_independent(bits + step), bits + step, critical)
    values = np.concatenate([[np.inf], critical.view(np.float64)])
    # Shared by all callers through the cache: none may write to it.
    values.setflags(write=False)
    return values


@lru_cache(maxsize=64)
def minimum_rows(alpha: float, effect: float, max_df: int) -> Integers:
    """Return, for df = 0 to `max_df`, the fewest rows that find Cohen's w = effect four times in five."""
    needed = rows_needed(np.arange(1, max_df + 1), alpha, effect)
    values = np.concatenate([np.array([NEVER]), needed])
    values.setflags(write=False)
    return values


def _last_true(
    claim: Callable[[Integers], Bools], guess: Integers, margin: int, lowest: int, highest: int
) -> Integers:
    """Return, per entry, the last integer for which a claim that turns from true to false is still true.

    The claim counts as true at `lowest` and as false at `highest`. The search starts within `margin` of the
    guess, and where the guess was bad widens around it, fourfold at a time.
    """
    low, high = guess, guess
    reach = margin
    rising, falling = np.ones(guess.shape, dtype=np.bool_), np.ones(guess.shape, dtype=np.bool_)
    while (rising | falling).any():
        low = np.where(falling, np.maximum(guess - reach, lowest), low)
        high = np.where(rising, np.where(guess < highest - reach, guess + reach, highest), high)
        falling = (low > lowest) & ~claim(low)
        rising = (high < highest) & claim(high)
        reach = min(4 * reach, highest)
    while (high - low).max(initial=0) > 1:
        middle = low + (high - low) // 2
        holds = claim(middle)
        low, high = np.where(holds, middle, low), np.where(holds, high, middle)
    return low
