"""What a chi-square test could have seen: its power against an effect, and the rows that power needs."""

import numpy as np
import numpy.typing as npt
from scipy import special

from unless.independence.bisection import Integers, last_true

# Cohen's convention: a test that misses an effect more often than one time in five has not looked.
ENOUGH_POWER = 0.8
# Beyond this, counts are no longer exact as doubles.
_MOST_ROWS = 2**53


def power_of(
    df: npt.ArrayLike, n_rows: npt.ArrayLike, alpha: float, effect: float
) -> npt.NDArray[np.float64]:
    """Return the chance of finding a dependence of Cohen's w = effect; 0 without degrees of freedom."""
    df = np.asarray(df, dtype=np.float64)
    # A df of 0 is asked as 1 and answered below, for the functions themselves know no such test.
    tested = np.maximum(df, 1.0)
    noncentrality = np.asarray(n_rows, dtype=np.float64) * effect**2
    power = 1.0 - special.chndtr(special.chdtri(tested, alpha), tested, noncentrality)
    return np.asarray(np.where(df > 0, power, 0.0))


def rows_needed(df: npt.ArrayLike, alpha: float, effect: float, power: float = ENOUGH_POWER) -> Integers:
    """Return the fewest rows with which a test of one or more degrees of freedom has this power."""
    df = np.asarray(df, dtype=np.float64)

    def is_too_weak(n_rows: Integers) -> npt.NDArray[np.bool_]:
        return power_of(df, n_rows, alpha, effect) < power

    noncentrality = special.chndtrinc(special.chdtri(df, alpha), df, 1.0 - power)
    guess = np.clip(np.nan_to_num(noncentrality / effect**2), 0, _MOST_ROWS).astype(np.int64)
    return last_true(is_too_weak, guess, margin=2, lowest=-1, highest=_MOST_ROWS) + 1
