"""Statistics of contingency tables and their p-values by the chi-square law.

`Statistic(value, df).p` is the p-value of one statistic; `p_values_of` does the same for many. `tail` and
`tails` are faster for one degree of freedom and may differ in the last digit; `log_tail` is for p that are
too small to be written.

These are the readable references, in plain numpy, for a batch of tables (... x a x b): Pearson's X2, the
likelihood ratio G and the Dirichlet evidence of Margaritis's test. Kernels compute the same three inside
their loops (`kernels/answers.py`, `kernels/slices.py`, `kernels/strata.py`); tests hold them equal to these.
Where cells are too empty for a chi-square law, p comes from `sparse.py`.
"""

import math
import numbers
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt
from scipy import special
from scipy.special import cython_special

from unless.errors import DataError, SettingError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
# The prior probability of independence.
PRIOR = 0.5
# Below this the tail function loses digits and then everything.
_LEAST = 1e-280
_MOST_STEPS = 10_000


# ---------------------------------------------------------------------- p-values


class Statistic(NamedTuple):
    """A statistic that is chi-square with `df` degrees of freedom if the hypothesis is true."""

    value: float
    df: int

    @property
    def p(self) -> float:
        """The probability of a larger one; 1 where nothing was free to differ."""
        return float(special.chdtrc(self.df, self.value)) if self.df else 1.0


NOTHING = Statistic(0.0, 0)


def p_values_of(statistics: Sequence[Statistic]) -> list[float]:
    """Return p for each statistic."""
    values, df = np.array(statistics, dtype=np.float64).reshape(-1, 2).T
    p: list[float] = np.where(df > 0, special.chdtrc(np.maximum(df, 1), values), 1.0).tolist()
    return p


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


def tails(df: Integers, statistic: Floats) -> Floats:
    """Return what `tail` returns, for many statistics."""
    p = np.ones(len(statistic))
    one, more = df == 1, df > 1
    p[one] = special.erfc(np.sqrt(statistic[one] / 2))
    p[more] = special.chdtrc(df[more], statistic[more])
    return p


def log_tail(df: npt.ArrayLike, statistic: npt.ArrayLike) -> Floats:
    """Return log p of chi-square statistics, however small; p is one where nothing is tested (df = 0).

    >>> [round(float(value), 2) for value in log_tail([0, 1, 2], [0.0, 3.841, 5000.0])]
    [0.0, -3.0, -2500.0]
    """
    freedom, value = np.broadcast_arrays(np.asarray(df, np.float64), np.asarray(statistic, np.float64))
    p = np.asarray(special.chdtrc(np.maximum(freedom, 1.0), value))
    result: Floats = np.array(np.log(np.maximum(p, _LEAST)))
    underflows = (p < _LEAST) & (freedom > 0)
    result[underflows] = _log_small_tail(freedom[underflows] / 2, value[underflows] / 2)
    result[freedom <= 0] = 0.0
    return result


def _log_small_tail(shape: Floats, x: Floats) -> Floats:
    """Log of the regularised upper incomplete gamma function for x much larger than its shape.

    By its continued fraction, evaluated as a product of ratios of convergents (Lentz's method).
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


def largest_shift(statistic: float, df: int, chance: float = 0.05) -> float:
    """Return the noncentrality at which a chi-square as small as this one has no more than this chance."""
    if special.chndtr(statistic, df, 0.0) <= chance:
        return 0.0
    low, high = 0.0, max(1.0, statistic)
    while special.chndtr(statistic, df, high) > chance:
        low, high = high, 2 * high
    # Bisection, for its bits are the same everywhere.
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if special.chndtr(statistic, df, middle) > chance else (low, middle)
    return high


# ---------------------------------------------------------------------- many tests at once


def adjusted(p_values: npt.ArrayLike, n_hypotheses: int | None = None) -> Floats:
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


def adjusted_whatever_depends(p_values: npt.ArrayLike) -> Floats:
    """Return q for each p where tests depend on each other in any way (Benjamini and Yekutieli, 2001)."""
    p = np.asarray(p_values, dtype=np.float64)
    q: Floats = np.minimum(1.0, adjusted(p) * (1 / np.arange(1, len(p) + 1)).sum())
    return q


def adapted(p_values: npt.ArrayLike, n_hypotheses: int, level: float) -> Floats:
    """Return q for each p where many hypotheses may be false (Benjamini, Krieger and Yekutieli, 2006).

    The number that `adjusted` rejects a little below the level bounds how many hypotheses can be true; only
    these can make false claims. No q is smaller than its p.
    """
    p, q = np.asarray(p_values, dtype=np.float64), adjusted(p_values, n_hypotheses)
    n_true = max(1, n_hypotheses - int((q <= level / (1 + level)).sum()))
    return np.clip(q * (1 + level) * n_true / max(1, n_hypotheses), p, 1.0)


# ---------------------------------------------------------------------- tables


def as_strata(table: npt.ArrayLike) -> Integers:
    """Return the strata with anything in them, as z x a x b; a single table is one stratum."""
    tables = np.asarray(table)
    if tables.ndim not in {2, 3}:
        raise DataError(f"A contingency table has 2 axes and strata have 3, not {tables.ndim}.")
    if tables.size and not (np.isfinite(tables).all() and (tables == np.rint(tables)).all()):
        raise DataError("A count is not a whole number; give whole counts.")
    if tables.size and tables.min() < 0:
        raise DataError("A count is negative; give counts of 0 or more.")
    strata: Integers = tables.astype(np.int64).reshape(-1, *tables.shape[-2:])
    return np.asarray(strata[strata.sum(axis=(1, 2)) > 0])


def shapes(tables: npt.ArrayLike) -> tuple[Integers, Integers]:
    """Return the numbers of rows and of columns of each table that are not empty."""
    counts = np.asarray(tables)
    n_rows, n_columns = ((counts.sum(axis=axis) > 0).sum(axis=-1) for axis in (-1, -2))
    return np.asarray(n_rows), np.asarray(n_columns)


def degrees_of_freedom(tables: npt.ArrayLike) -> Integers:
    """Return (rows - 1)(columns - 1) of each table, without its empty rows and columns."""
    n_rows, n_columns = shapes(tables)
    return np.maximum(n_rows - 1, 0) * np.maximum(n_columns - 1, 0)


def expected_counts(tables: npt.ArrayLike) -> Floats:
    """Return the counts expected under independence for each of a batch of tables (... x a x b)."""
    counts = np.asarray(tables, dtype=np.float64)
    total = counts.sum(axis=(-2, -1), keepdims=True)
    # An empty table expects nothing; dividing by one keeps its zeros.
    return np.asarray(
        counts.sum(axis=-1, keepdims=True) * counts.sum(axis=-2, keepdims=True) / np.maximum(total, 1)
    )


def pearson_terms(tables: npt.ArrayLike) -> Floats:
    """Return (observed - expected)^2 / expected per cell, 0 where nothing was expected."""
    observed, expected = np.asarray(tables, dtype=np.float64), expected_counts(tables)
    return np.divide((observed - expected) ** 2, expected, out=np.zeros_like(expected), where=expected > 0)


def pearson_statistic(tables: npt.ArrayLike) -> tuple[Floats, Integers]:
    """Return Pearson's statistic and the degrees of freedom of each of a batch of tables (... x a x b)."""
    return np.asarray(pearson_terms(tables).sum(axis=(-2, -1))), degrees_of_freedom(tables)


def likelihood_ratio_statistic(tables: npt.ArrayLike) -> tuple[Floats, Integers]:
    """Return 2 sum O log(O / E) and the degrees of freedom of each of a batch of tables (... x a x b)."""
    observed, expected = np.asarray(tables, dtype=np.float64), expected_counts(tables)
    ratio = np.divide(observed, expected, out=np.ones_like(expected), where=expected > 0)
    statistic = 2 * special.xlogy(observed, ratio).sum(axis=(-2, -1))
    # Rounding may leave a perfectly independent table slightly below zero.
    return np.asarray(np.maximum(statistic, 0.0)), degrees_of_freedom(tables)


def log_bayes_factors(tables: npt.ArrayLike) -> Floats:
    """Return log(h / g), the evidence for dependence over that for independence, for a batch of tables.

    All levels of the variables count, those absent from a slice too: the prior knows of them.
    """
    counts = np.asarray(tables, dtype=np.float64)
    by_cell = counts.reshape(*counts.shape[:-2], counts.shape[-2] * counts.shape[-1])
    return _log_evidence(by_cell) - _log_evidence(counts.sum(axis=-1)) - _log_evidence(counts.sum(axis=-2))


def _log_evidence(counts: Floats) -> Floats:
    """Return the log of the Dirichlet evidence of counts (last axis), all parameters one."""
    n_cells = counts.shape[-1]
    total = counts.sum(axis=-1)
    return np.asarray(
        special.gammaln(n_cells) - special.gammaln(n_cells + total) + special.gammaln(1 + counts).sum(axis=-1)
    )


def log_probabilities(strata: npt.ArrayLike) -> tuple[float, float]:
    """Return log Pr(independent) and log Pr(dependent) given strata (z x a x b), none of them empty."""
    log_ratios = log_bayes_factors(strata)
    if not len(log_ratios):
        return math.log(PRIOR), math.log1p(-PRIOR)
    # Each of K strata is independent with prior p^(1/K), so that all of them are with prior p.
    log_prior = math.log(PRIOR) / len(log_ratios)
    log_odds = log_ratios + log1mexp(log_prior) - log_prior
    deficit = float(np.logaddexp(0.0, log_odds).sum())
    # Where the probability of independence rounds to one, that of dependence is the sum of the odds.
    log_dependent = log1mexp(-deficit) if deficit > 1e-300 else float(special.logsumexp(log_odds))
    return -deficit, log_dependent


def log1mexp(x: float) -> float:
    """Return log(1 - exp(x)) for x <= 0 without losing digits at either end."""
    if x >= 0:
        return -math.inf
    return math.log(-math.expm1(x)) if x > -math.log(2) else math.log1p(-math.exp(x))


class TableDescription(TypedDict):
    """The fields of a verdict that do not depend on the test."""

    df: int
    n_rows: int
    rows_used: int
    effect_size: float
    cramers_v: float
    small_expectations: float


def describe(strata: Integers) -> TableDescription:
    """Describe strata as every verdict does."""
    n_rows, n_columns = shapes(strata)
    df = degrees_of_freedom(strata)
    informative = strata[df > 0]
    smaller = np.minimum(n_rows, n_columns)[df > 0] - 1
    rows = informative.sum(axis=(1, 2))
    expected = expected_counts(informative)
    cells = expected[expected > 0]
    statistic = float(pearson_terms(informative).sum())
    return TableDescription(
        df=int(df.sum()),
        n_rows=int(strata.sum()),
        rows_used=int(rows.sum()),
        effect_size=_root_of_ratio(statistic, int(rows.sum())),
        cramers_v=_root_of_ratio(statistic, int((rows * smaller).sum())),
        small_expectations=float((cells < 5).mean()) if cells.size else 0.0,
    )


def _root_of_ratio(statistic: float, scale: int) -> float:
    return math.sqrt(statistic / scale) if scale else 0.0


# ---------------------------------------------------------------------- settings of tests


def check_rate(name: str, value: float) -> None:
    """Refuse a rate outside (0, 1)."""
    if not (_is_number(value) and 0 < value < 1):
        raise SettingError(f"{name} must lie between 0 and 1, not {value!r}.")


def check_effect(value: float) -> None:
    """Refuse an effect that is not a positive number."""
    if not (_is_number(value) and value > 0 and math.isfinite(value)):
        raise SettingError(f"effect must be a positive number, not {value!r}.")


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
