"""Decisions as tables per degree of freedom: critical values instead of p, row counts instead of power."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from unless.independence.bisection import Integers, last_true
from unless.independence.power import rows_needed

# Larger than any table: without degrees of freedom no number of rows suffices.
NEVER = int(np.iinfo(np.int64).max)
_LARGEST = int(np.float64(np.finfo(np.float64).max).view(np.int64))
# chdtrc wobbles in its last digits, so that near the crossing it may cross more than once.
_WOBBLE = 32


@lru_cache(maxsize=64)
def critical_values(alpha: float, max_df: int) -> npt.NDArray[np.float64]:
    """Return, for df = 0 to `max_df`, the largest statistic that still reads as independent.

    `statistic <= critical[df]` is `chdtrc(df, statistic) >= alpha`; entry 0 is infinite: nothing is tested.
    """
    df = np.arange(1, max_df + 1, dtype=np.float64)

    def reads_independent(bits: Integers) -> npt.NDArray[np.bool_]:
        return np.asarray(special.chdtrc(df, bits.view(np.float64)) >= alpha)

    # Positive doubles are ordered like their bits, so a search over bits ends at two neighbours.
    guess = special.chdtri(df, alpha).view(np.int64)
    bits = last_true(reads_independent, guess, margin=2 * _WOBBLE, lowest=0, highest=_LARGEST)
    critical = bits
    for step in range(1, _WOBBLE + 1):
        critical = np.where(reads_independent(bits + step), bits + step, critical)
    values = np.concatenate([[np.inf], critical.view(np.float64)])
    # Shared by every caller through the cache, so nobody may write to it.
    values.setflags(write=False)
    return values


@lru_cache(maxsize=64)
def minimum_rows(alpha: float, effect: float, max_df: int) -> Integers:
    """Return, for df = 0 to `max_df`, the fewest rows that find Cohen's w = effect four times in five."""
    needed = rows_needed(np.arange(1, max_df + 1), alpha, effect)
    values = np.concatenate([np.array([NEVER]), needed])
    values.setflags(write=False)
    return values
