"""What a chi-square test could have seen: its power against an effect, and the rows that power needs."""

import numpy as np
import numpy.typing as npt
from scipy import special

from unless.independence.bisection import Integers, last_true

# Cohen's convention: a test that misses an effect more often than one time in five has not looked.
ENOUGH_POWER = 0.8
# Below this, 1 minus a probability has lost digits that are needed; terms of the sum that is taken instead.
_SMALL, _MOST_TERMS = 1e-4, 1_000_000
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
    critical = special.chdtri(tested, alpha)
    power = 1.0 - special.chndtr(critical, tested, noncentrality)
    if (small := power < _SMALL).any():
        power, each = np.array(power), np.broadcast_arrays(critical, tested, noncentrality)
        power[small] = _upper_tail(*(one[small] for one in each))
    return np.asarray(np.where(df > 0, power, 0.0))


def _upper_tail(
    values: npt.NDArray[np.float64], df: npt.NDArray[np.float64], noncentrality: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the upper tail of the noncentral chi-square law, where 1 minus the lower one has no digits left.

    It is a Poisson mixture of central tails. Beyond (value + noncentrality) / 2 the weights fall faster than
    the tails rise; some terms more leave out less than rounding does.
    """
    tails = np.zeros(len(values))
    for place, (value, degrees, half) in enumerate(zip(values, df, noncentrality / 2, strict=True)):
        terms = np.arange(min(int(value / 2 + half + 12 * np.sqrt(value + half)) + 50, _MOST_TERMS))
        weights = np.exp(special.xlogy(terms, half) - half - special.gammaln(terms + 1))
        tails[place] = np.sum(weights * special.chdtrc(degrees + 2 * terms, value))
    return tails


def rows_needed(df: npt.ArrayLike, alpha: float, effect: float, power: float = ENOUGH_POWER) -> Integers:
    """Return the fewest rows with which a test of one or more degrees of freedom has this power."""
    df = np.asarray(df, dtype=np.float64)

    def is_too_weak(n_rows: Integers) -> npt.NDArray[np.bool_]:
        return power_of(df, n_rows, alpha, effect) < power

    noncentrality = special.chndtrinc(special.chdtri(df, alpha), df, 1.0 - power)
    guess = np.clip(np.nan_to_num(noncentrality / effect**2), 0, _MOST_ROWS).astype(np.int64)
    return last_true(is_too_weak, guess, margin=2, lowest=-1, highest=_MOST_ROWS) + 1
