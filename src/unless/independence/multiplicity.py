"""Many claims at once: the expected share of false ones among those made."""

import numpy as np
import numpy.typing as npt
from scipy.special import chndtr

METHOD = "Benjamini-Hochberg"


def adjusted(p_values: npt.ArrayLike, n_hypotheses: int | None = None) -> npt.NDArray[np.float64]:
    """Return q for each p (Benjamini and Hochberg): claims with q <= r have an expected false share of r.

    Hypotheses beyond those given, up to `n_hypotheses`, were looked at and left alone: their p counts as 1.
    """
    p = np.asarray(p_values, dtype=np.float64)
    n = max(len(p), n_hypotheses or 0)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * n / np.arange(1, len(p) + 1)
    q = np.empty_like(p)
    q[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return q


def adjusted_whatever_depends(p_values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return q for each p where tests depend on each other in any way (Benjamini and Yekutieli, 2001)."""
    p = np.asarray(p_values, dtype=np.float64)
    q: npt.NDArray[np.float64] = np.minimum(1.0, adjusted(p) * (1 / np.arange(1, len(p) + 1)).sum())
    return q


def adapted(p_values: npt.ArrayLike, n_hypotheses: int, level: float) -> npt.NDArray[np.float64]:
    """Return q for each p where many hypotheses may be false (Benjamini, Krieger and Yekutieli, 2006).

    What `adjusted` rejects a little below the level tells how many hypotheses can be true at most; only these
    can make false claims. No q is smaller than its p.
    """
    p, q = np.asarray(p_values, dtype=np.float64), adjusted(p_values, n_hypotheses)
    n_true = max(1, n_hypotheses - int((q <= level / (1 + level)).sum()))
    return np.clip(q * (1 + level) * n_true / max(1, n_hypotheses), p, 1.0)


def largest_shift(statistic: float, df: int, chance: float = 0.05) -> float:
    """Return the noncentrality at which a chi-square as small as this one has no more than this chance."""
    if chndtr(statistic, df, 0.0) <= chance:
        return 0.0
    low, high = 0.0, max(1.0, statistic)
    while chndtr(statistic, df, high) > chance:
        low, high = high, 2 * high
    # Bisection, for its bits are the same everywhere.
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chndtr(statistic, df, middle) > chance else (low, middle)
    return high
