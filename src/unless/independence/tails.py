"""The logarithm of a chi-square tail, where the tail itself is too small for a double."""

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
# Below this the tail function loses digits and then everything.
_LEAST = 1e-280
_MOST_STEPS = 10_000


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
