"""Statistics of contingency tables and their p-values by the chi-square law.

`Statistic(value, df).p` and `tail(df, value)` return the p-value of one statistic, `p_values_of` and `tails`
those of many, and `log_tail` the logarithm of p, which may be too small for a float.

These are the readable references, in plain numpy, for a batch of tables (... x a x b): Pearson's X2, the
likelihood ratio G and the Dirichlet evidence of Margaritis's test. Kernels compute the same three inside
their loops (`kernels/answers.py`, `kernels/strata.py`); tests hold them equal to these.
Where cells are too empty for a chi-square law, p comes from `sparse.py`.

The distribution functions, of chi-square and gamma laws, come last. scipy.special has them too, but its
import takes longer than most commands; tests hold these equal to it. `chi_square_tail` takes numbers and is
quick for small whole df, `chi_square_tails` takes arrays; both return the same digits. A gamma tail is a
front factor, x^a e^-x / Gamma(a), times an integral: a finite sum for small whole df, a power series or a
continued fraction for other small shapes, by Gauss-Legendre quadrature for large ones.
"""

import math
import numbers
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt

from unless.errors import DataError, SettingError
from unless.typing import Floats, Integers

# The prior probability of independence.
PRIOR = 0.5
# A p below this loses digits, as floats do near their smallest, and further on becomes 0.
_LEAST = 1e-280
# Degrees of freedom up to which a tail is summed term by term, and the shape that quadrature is for.
_MOST_SUMMED = 200
_LARGE = 30.0
_NEARLY_ONE = 0.9
# Beyond this, tails of smaller shapes are zero.
_FAR = 2_000.0
# Nodes of quadrature; what is left out beyond them is smaller by this many nats.
_NODES, _DROP = 48, 40.0
# Beyond half a noncentrality like this the sum has some 100,000 terms, and takes gigabytes in the end.
_MANY_TERMS = 1e7
_MOST_STEPS = 10_000
# Halves of a statistic and of a noncentrality below which a mixture is summed number by number.
_MOST_STEPPED = 300.0
# Roots of larger statistics are normal, but for an error far below what is printed, if their df are few.
_HUGE, _FEW_OF_HUGE = 1e9, 1e-4
_TINY = 1e-300


# ---------------------------------------------------------------------- p-values


class Statistic(NamedTuple):
    """A statistic that is chi-square with `df` degrees of freedom if the hypothesis is true."""

    value: float
    df: int

    @property
    def p(self) -> float:
        """The probability of a larger one; 1 where nothing was free to differ."""
        return tail(self.df, self.value)


NOTHING = Statistic(0.0, 0)


def p_values_of(statistics: Sequence[Statistic]) -> list[float]:
    """Return p for each statistic."""
    values, df = np.array(statistics, dtype=np.float64).reshape(-1, 2).T
    p: list[float] = tails(df, values).tolist()
    return p


def tail(df: int, statistic: float) -> float:
    """Return p of one chi-square statistic; one where nothing is tested.

    >>> tail(0, 0.0), round(tail(1, 3.841), 3), round(tail(6, 19.9), 4)
    (1.0, 0.05, 0.0029)
    """
    return chi_square_tail(df, statistic) if df > 0 else 1.0


def tails(df: Integers | Floats, statistic: Floats) -> Floats:
    """Return what `tail` returns, for many statistics."""
    return np.where(df > 0, chi_square_tails(np.maximum(df, 1), statistic), 1.0)


def log_tail(df: npt.ArrayLike, statistic: npt.ArrayLike) -> Floats:
    """Return log p of chi-square statistics, however small; p is one where nothing is tested (df = 0).

    >>> [round(float(value), 2) for value in log_tail([0, 1, 2], [0.0, 3.841, 5000.0])]
    [0.0, -3.0, -2500.0]
    """
    freedom, value = np.broadcast_arrays(np.asarray(df, np.float64), np.asarray(statistic, np.float64))
    p = chi_square_tails(np.maximum(freedom, 1.0), value)
    result: Floats = np.array(np.log(np.maximum(p, _LEAST)))
    underflows = (p < _LEAST) & (freedom > 0)
    result[underflows] = _log_small_tail(freedom[underflows] / 2, value[underflows] / 2)
    result[freedom <= 0] = 0.0
    return result


def _log_small_tail(shape: Floats, x: Floats) -> Floats:
    """Log of the regularised upper incomplete gamma function for x much larger than its shape."""
    fractions = [_continued_fraction(*one) for one in zip(shape.tolist(), x.tolist(), strict=True)]
    return np.asarray(shape * np.log(x) - x - _log_gamma(shape) + np.log(fractions))


@lru_cache(maxsize=4096)
def largest_shift(statistic: float, df: int, chance: float = 0.05) -> float:
    """Return the noncentrality at which a chi-square as small as this one has no more than this chance."""
    return noncentrality_of(df, statistic, chance)


# ---------------------------------------------------------------------- many tests at once


def adjusted(p_values: npt.ArrayLike, n_hypotheses: int | None = None) -> Floats:
    """Return q for each p by Benjamini-Hochberg: claims with q <= r have an expected false share of r.

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
    """Return q for each p by Benjamini-Yekutieli (2001), valid however the tests depend on each other."""
    p = np.asarray(p_values, dtype=np.float64)
    q: Floats = np.minimum(1.0, adjusted(p) * (1 / np.arange(1, len(p) + 1)).sum())
    return q


def adapted(p_values: npt.ArrayLike, n_hypotheses: int, level: float) -> Floats:
    """Return q for each p by the adaptive two-stage procedure (Benjamini, Krieger and Yekutieli, 2006).

    It finds more than Benjamini-Hochberg where many hypotheses are false: the number that `adjusted` rejects
    a little below the level bounds how many hypotheses can be true, and only these can make false claims. No
    q is smaller than its p.
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
    statistic = 2 * (observed * np.log(np.where(observed > 0, ratio, 1.0))).sum(axis=(-2, -1))
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
        math.lgamma(n_cells) - _log_gamma(n_cells + total) + _log_gamma(1 + counts).sum(axis=-1)
    )


def _log_gamma(values: Floats) -> Floats:
    return np.array([math.lgamma(one) for one in values.ravel().tolist()]).reshape(values.shape)


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
    log_dependent = log1mexp(-deficit) if deficit > 1e-300 else float(np.logaddexp.reduce(log_odds))
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


# ---------------------------------------------------------------------- central laws


def chi_square_tail(df: float, value: float) -> float:
    """Return the chance of a chi-square beyond a value.

    >>> round(chi_square_tail(1, 3.841), 3), round(chi_square_tail(6, 19.9), 4)
    (0.05, 0.0029)
    """
    if value <= 0:
        return 1.0
    half = value / 2
    if df == 1:
        return math.erfc(math.sqrt(half))
    if df > _MOST_SUMMED or df != int(df) or not half < math.inf:
        return gamma_tail(df / 2, half)
    # In two factors, for the sum may be as large as the exponential is small.
    root = math.exp(-half / 2)
    if df % 2:
        term = 2 * math.sqrt(half / math.pi)
        first, shape = math.erfc(math.sqrt(half)), 1.5
    else:
        first, term, shape = 0.0, 1.0, 1.0
    total = term
    while shape < df / 2 - 0.75:
        term *= half / shape
        total += term
        shape += 1
    summed = first + root * total * root
    # Near one, rounding may let the sum rise with the value; one less the small lower tail always falls.
    return summed if summed < _NEARLY_ONE else gamma_tail(df / 2, half)


def chi_square_tails(df: npt.ArrayLike, value: npt.ArrayLike) -> Floats:
    """Return what `chi_square_tail` returns, for arrays."""
    freedom, values = np.broadcast_arrays(np.asarray(df, np.float64), np.asarray(value, np.float64))
    large = (freedom > _MOST_SUMMED) & (values > 0)
    tails = np.empty(freedom.shape)
    rest = zip(freedom[~large].tolist(), values[~large].tolist(), strict=True)
    tails[~large] = [chi_square_tail(*one) for one in rest]
    if large.any():
        tails[large] = _large_parts(freedom[large] / 2, values[large] / 2)[1]
    return tails


def gamma_tail(shape: float, x: float) -> float:
    """Return the regularised upper incomplete gamma function: the chance of a gamma variable beyond x."""
    return _parts(shape, x)[1]


def gamma_below(shape: float, x: float) -> float:
    """Return the chance of a gamma variable up to x, with all digits where it is small."""
    return _parts(shape, x)[0]


def _parts(shape: float, x: float) -> tuple[float, float]:
    if math.isnan(shape) or math.isnan(x) or shape <= 0:
        return math.nan, math.nan
    if x <= 0 or x == math.inf or (x > _FAR and shape < _LARGE):
        return (0.0, 1.0) if x <= 0 else (1.0, 0.0)
    if shape >= _LARGE:
        both = _large_parts(np.array([shape]), np.array([x]))
        return float(both[0][0]), float(both[1][0])
    front = math.exp(-x / 2) * (x**shape / math.gamma(shape)) * math.exp(-x / 2)
    if x >= shape + 1:
        above = min(1.0, front * _continued_fraction(shape, x))
        return 1 - above, above
    total, term, step = 0.0, 1 / shape, shape
    while term > 1e-17 * total:
        total += term
        step += 1
        term *= x / step
    below = min(1.0, front * total)
    return below, 1 - below


def _continued_fraction(shape: float, x: float) -> float:
    """Return the upper tail over its front factor, for x of at least about the shape.

    It is evaluated as a product of ratios of convergents (Lentz's method).
    """
    b = x + 1 - shape
    c, d = 1 / _TINY, 1 / b
    fraction = d
    for step in range(1, _MOST_STEPS):
        numerator = -step * (step - shape)
        b += 2
        d = numerator * d + b
        d = 1 / (_TINY if abs(d) < _TINY else d)
        c = b + numerator / c
        c = _TINY if abs(c) < _TINY else c
        fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return fraction


def _front(shape: Floats, x: Floats) -> Floats:
    """Return x^a e^-x / Gamma(a)."""
    large = shape >= _LARGE
    a = np.where(large, shape, _LARGE)
    with np.errstate(divide="ignore"):
        power = np.exp(-a * _excess((x - a) / a))
    # Stirling's series: what Gamma is beyond sqrt(2 pi / a) (a / e)^a.
    inverse = 1 / a**2
    series = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse / 1680))) / a
    fronts = np.asarray(np.sqrt(a / (2 * math.pi)) * np.exp(-series) * power)
    if not large.all():
        some = ~large
        gammas = np.array([math.gamma(one) for one in shape[some].tolist()])
        root = np.exp(-x[some] / 2)
        fronts[some] = root * (x[some] ** shape[some] / gammas) * root
    return fronts


def _excess(u: Floats) -> Floats:
    """Return u - log(1 + u) without losing digits near zero."""
    near = np.abs(u) < 0.5
    if near.all():
        return _excess_near_zero(u)
    with np.errstate(divide="ignore"):
        if not near.any():
            return np.asarray(u - np.log1p(u))
        far = u - np.log1p(np.where(near, 0.0, u))
    return np.where(near, _excess_near_zero(np.where(near, u, 0.0)), far)


def _excess_near_zero(u: Floats) -> Floats:
    # log(1 + u) is twice the inverse hyperbolic tangent of z.
    z = u / (2 + u)
    square, series = z * z, np.zeros_like(z)
    for power in range(37, 1, -2):
        series *= square
        series += 1 / power
    return np.asarray(z * (u - 2 * square * series))


def _large_parts(shape: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Return the lower and the upper part of gamma laws of large shape, the smaller one with all digits."""
    side = np.where(x >= shape, 1.0, -1.0)
    drift, bend = side * (x + 1 - shape), shape - 1
    # The integrand falls by exp(-drift u - bend (u - log(1 + u))) with u, the distance from x in units of x.
    # Beyond the end it has fallen by the drop: u - log(1 + u) is at least 3 u^2 / (6 + 4 u).
    slope = np.where(side > 0, 6 * drift - 4 * _DROP, 6 * drift)
    square = np.where(side > 0, 3 * bend + 4 * drift, 3 * bend)
    end = (np.sqrt(slope**2 + 24 * _DROP * square) - slope) / (2 * square)
    end = np.where(side > 0, end, np.minimum(end, 1.0))
    nodes, weights = _gauss_legendre(_NODES)
    u = end[:, None] * nodes
    falls = np.exp(-drift[:, None] * u - bend[:, None] * _excess(side[:, None] * u))
    part = np.minimum(1.0, _front(shape, x) * end * (falls * weights).sum(axis=1))
    return np.where(side > 0, 1 - part, part), np.where(side > 0, part, 1 - part)


@lru_cache(maxsize=1)
def _gauss_legendre(n: int) -> tuple[Floats, Floats]:
    """Return the nodes and weights of Gauss and Legendre on the interval from 0 to 1, by Newton's method."""
    t = np.cos(np.pi * (np.arange(n) + 0.75) / (n + 0.5))
    for _ in range(8):
        before, here = np.ones(n), t
        for degree in range(2, n + 1):
            before, here = here, ((2 * degree - 1) * t * here - (degree - 1) * before) / degree
        slope = n * (t * here - before) / (t * t - 1)
        t = t - here / slope
    return (1 + t) / 2, 1 / ((1 - t * t) * slope**2)


def chi_square_critical(df: npt.ArrayLike, tail: npt.ArrayLike) -> Floats:
    """Return the values beyond which chi-squares have these probabilities.

    The log of a tail is concave, so that Newton's method comes to the root from above without a turn. It
    starts at the bound of Laurent and Massart.
    """
    freedom, chance = np.broadcast_arrays(np.asarray(df, np.float64), np.asarray(tail, np.float64))
    shape, aim = np.atleast_1d(freedom / 2), np.log(np.clip(np.atleast_1d(chance), _TINY, 1 - 2**-53))
    half = shape + np.sqrt(-2 * shape * aim) - aim
    for _ in range(100):
        tails, fronts = chi_square_tails(2 * shape, 2 * half), _front(shape, half)
        # Where both are too small to be written, the first term of the continued fraction is near.
        ratio = np.divide(tails, fronts, out=1 / (half + 1 - shape), where=fronts > _TINY)
        step = (np.log(np.maximum(tails, 5e-324)) - aim) * ratio * half
        half = np.maximum(half + step, half * 1e-3)
        if (np.abs(step) <= 1e-15 * half).all():
            break
    found = np.where(np.atleast_1d(chance) > 0, 2 * half, np.inf)
    return np.asarray(np.where(np.atleast_1d(chance) < 1, found, 0.0).reshape(freedom.shape))


@lru_cache(maxsize=4096)
def critical_value(df: float, tail: float) -> float:
    """Return the value beyond which a chi-square has this chance."""
    return float(chi_square_critical(df, tail))


# ---------------------------------------------------------------------- noncentral law


def noncentral_tail(df: float, value: float, noncentrality: float) -> float:
    """Return the chance of a noncentral chi-square beyond a value: a Poisson mixture of central tails.

    Beyond (value + noncentrality) / 2 the weights fall faster than the tails rise; some terms more leave out
    less than rounding does. Beyond half the noncentrality the weights alone are soon nothing beside the
    central tail, unless that is very small.
    """
    half, x = noncentrality / 2, value / 2
    if half <= 0 or not 0 < x < math.inf:
        return chi_square_tail(df, value)
    if half > _MANY_TERMS and value < df + noncentrality - 2 * math.sqrt(50 * (df + 2 * noncentrality)):
        # So far below the mean is a value with a chance of less than exp(-50) (Birge's bound).
        return 1.0
    first, last = _some_below(half), half + 12 * math.sqrt(half) + 50
    if chi_square_tail(df, value) < 1e-12:
        last = x + half + 12 * math.sqrt(value + half) + 50
    terms = np.arange(first, last)
    weights, steps = _mixture(df / 2, x, half, terms)
    tails = gamma_tail(df / 2 + first, x) + np.cumsum(steps) - steps
    return float(np.minimum(1.0, (weights * np.minimum(tails, 1.0)).sum()))


@lru_cache(maxsize=4096)
def noncentrality_of(df: float, value: float, below: float) -> float:
    """Return the noncentrality at which a chi-square up to a value has this chance; 0 where none is so large.

    By Newton's method on the log of the chance, which is concave.
    """
    if value > _HUGE and df**2 < _FEW_OF_HUGE * value:
        # Its root is normal, with a mean of r + (df - 1) / (2 r) where the noncentrality is r^2.
        z = math.copysign(math.sqrt(critical_value(1, 2 * min(below, 1 - below))), below - 0.5)
        root = math.sqrt(value) - z
        return ((root + math.sqrt(root**2 - 2 * (df - 1))) / 2) ** 2
    shape, x, half = df / 2, value / 2, max(0.5, value / 2)
    if gamma_below(shape, x) <= below:
        return 0.0
    for _ in range(100):
        chance, slope = _chance_up_to(shape, x, half)
        move = math.log(max(chance, _TINY) / below) * max(chance, _TINY) / max(slope, _TINY)
        half = max(half + move, half * 0.1)
        # The next move would be about as large as the square of this one.
        if abs(move) <= 1e-9 * half:
            break
    return 2 * half


def _chance_up_to(shape: float, x: float, half: float) -> tuple[float, float]:
    """Return the chance of a noncentral chi-square up to a value, and how much it falls with the other half.

    A chance up to x is a sum of steps, from one tail of the mixture to the next; a step counts with all the
    Poisson weights up to its own. Few steps are taken one by one, many at once.
    """
    if shape < _LARGE and max(x, half) < _MOST_STEPPED:
        weight = weights = math.exp(-half)
        step = math.exp(-x / 2) * (x**shape / math.gamma(shape + 1)) * math.exp(-x / 2)
        chance, slope, n = step * weights, step * weight, 1.0
        while not step <= 1e-17 * chance * (1 - x / (shape + n)):
            weight *= half / n
            weights += weight
            step *= x / (shape + n)
            chance += step * weights
            slope += step * weight
            n += 1
        return chance, slope
    peak = min(half, (math.sqrt(shape**2 + 4 * half * x) - shape) / 2)
    terms = np.arange(_some_below(peak), half + 12 * math.sqrt(half) + 50)
    every_weight, every_step = _mixture(shape, x, half, terms)
    under = gamma_below(shape + float(terms[-1]), x) + np.cumsum(every_step[::-1])[::-1] - every_step[-1]
    return float((every_weight * under).sum()), float((every_weight * every_step).sum())


def _some_below(peak: float) -> float:
    """Return the first term that matters of a mixture whose terms are largest here."""
    return float(max(0, int(peak - 12 * math.sqrt(peak) - 50)))


def _mixture(shape: float, x: float, half: float, terms: Floats) -> tuple[Floats, Floats]:
    """Return the Poisson weight of each term, and by how much the tail of the next term is larger."""
    weights = _front(terms + 1, np.full(len(terms), half)) / half
    return weights, _front(shape + terms + 1, np.full(len(terms), x)) / x
