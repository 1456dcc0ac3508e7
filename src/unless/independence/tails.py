"""Chi-square tails of many tests, and their logarithms where the tails are too small for a double."""

import math

import numpy as np
import numpy.typing as npt
from scipy import special
from scipy.special import cython_special

Floats = npt.NDArray[np.float64]
# Below this the tail function loses digits and then everything.
_LEAST = 1e-280
_MOST_STEPS = 10_000


def tail(df: int, statistic: float) -> float:
    """Return p of one chi-square statistic, in a fraction of a microsecond; one where nothing is tested.

    >>> tail(0, 0.0), round(tail(1, 3.841), 3), round(tail(6, 19.9), 4)
    (1.0, 0.05, 0.0029)
    """
    if df == 1:
        # The general function takes microseconds here.
        return math.erfc(math.sqrt(statistic / 2))
    # The one of scipy.special, called without the way through arrays.
    return cython_special.chdtrc(float(df), statistic) if df else 1.0


def tails(df: npt.NDArray[np.int64], statistic: Floats) -> Floats:
    """Do the same for many."""
    p = np.ones(len(statistic))
    one, more = df == 1, df > 1
    p[one] = special.erfc(np.sqrt(statistic[one] / 2))
    p[more] = special.chdtrc(df[more], statistic[more])
    return p


def log_tail(df: npt.ArrayLike, statistic: npt.ArrayLike) -> Floats:
    """Return log p of chi-square statistics; p is one where nothing is tested (df = 0).

    >>> [round(float(value), 2) for value in log_tail([0, 1, 2], [0.0, 3.841, 5000.0])]
    [0.0, -3.0, -2500.0]
    """
    freedom, value = np.broadcast_arrays(np.asarray(df, np.float64), np.asarray(statistic, np.float64))
    p = np.asarray(special.chdtrc(np.maximum(freedom, 1.0), value))
    result: Floats = np.array(np.log(np.maximum(p, _LEAST)))
    far = (p < _LEAST) & (freedom > 0)
    result[far] = _log_far_tail(freedom[far] / 2, value[far] / 2)
    result[freedom <= 0] = 0.0
    return result


def _log_far_tail(shape: Floats, x: Floats) -> Floats:
    """Log of the regularised upper incomplete gamma function far beyond its shape.

    By its continued fraction, evaluated as a product of ratios of convergents (Lentz's way).
    """
    tiny = 1e-300
    b = x + 1 - shape
    c, d = np.full_like(x, 1 / tiny), 1 / b
    fraction = d.copy()
    for step in range(1, _MOST_STEPS):
        numerator = -step * (step - shape)
        b = b + 2
        d = numerator * d + b
        d = 1 / np.where(np.abs(d) < tiny, tiny, d)
        c = b + numerator / c
        c = np.where(np.abs(c) < tiny, tiny, c)
        fraction *= c * d
        if (np.abs(c * d - 1) < 1e-15).all():
            break
    return np.asarray(shape * np.log(x) - x - special.gammaln(shape) + np.log(fraction))
