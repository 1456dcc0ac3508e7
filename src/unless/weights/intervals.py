"""How far fitted weights may be from what infinitely many rows would give."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from unless.data.dataset import Dataset
from unless.data.showing import MOST_ROWS, html_table
from unless.errors import SettingError, TooLarge
from unless.inference.model import LogLinearModel
from unless.inference.pseudo_likelihood import Conditionals, mirror
from unless.inference.tables import rows_to_score
from unless.runtime.progress import BAR_DELAY, Bar, progress
from unless.typing import Floats
from unless.weights.optimise import factorise_in_calls
from unless.weights.priors import NO_PRIOR, Prior

MAX_FEATURES = 4_000
# Numbers of the matrix of gradients held at once; more would keep Ctrl-C waiting.
_BLOCK = 2**18
# Multiplications in one call of a kernel: a tenth of a second.
_AT_ONCE = 2**28
# Columns of the inverse found at once.
_COLUMNS = 32
# A share of what a feature says, for rounding.
_NOTHING = 1e-10


@dataclass(frozen=True)
class WeightIntervals:
    """For each weight, in the order of the features, its interval and its standard error."""

    low: Floats
    high: Floats
    standard_errors: Floats
    level: float

    def _repr_html_(self) -> str:
        numbers = zip(self.low.tolist(), self.high.tolist(), self.standard_errors.tolist(), strict=True)
        rows = [
            (place, *(f"{number:+.3f}" for number in line[:2]), f"{line[2]:.3f}")
            for place, line in zip(range(MOST_ROWS), numbers, strict=False)
        ]
        title = f"{100 * self.level:g} % intervals of {len(self.low):,} weights"
        more = len(self.low) - len(rows)
        return html_table(title, ("feature", "low", "high", "standard error"), rows, more=more)


def weight_intervals(
    net: LogLinearModel,
    data: object,
    level: float = 0.95,
    *,
    prior: Prior | None = None,
    show_progress: bool | None = None,
) -> WeightIntervals:
    """Return intervals for weights that were fitted to a table.

    The rows of a table are independent but the terms of a pseudo-likelihood are not, so the curvature alone
    would promise too much: this is the sandwich H^-1 J H^-1, where J is the scatter of the rows' gradients.
    The prior's pull towards zero is not undone. `prior` is by default that of the fit.

    >>> import unless
    >>> data = unless.datasets.load_ucb_admissions()
    >>> net = unless.CSGS().fit(data).network(data)
    >>> found = weight_intervals(net, data)
    >>> bool((found.low < net.weights).all())
    True
    """
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise SettingError(f"level={level!r} must be a number between 0 and 1, both excluded.")
    used = prior or (net.fit_report.prior if net.fit_report is not None else NO_PRIOR)
    _check(net, used)
    if net.fit_report is not None and net.fit_report.measure != "pseudo_log_likelihood":
        raise SettingError(
            "Intervals are for weights found by pseudo-likelihood; fit them with objective='pseudo'."
        )
    table = rows_to_score(net.domain, data, show_progress)
    with progress("weight_intervals", show_progress, after=BAR_DELAY) as bar:
        conditionals = Conditionals.of(net.features.arrays, table)
        conditionals.value_and_gradient(np.array(net.weights), keep=True)
        bar.begin("curvature", table.n_variables)
        bend = conditionals.hessian(bar)
        bend[np.diag_indices_from(bend)] += used.precision
        errors = np.sqrt(np.maximum(_variances(net, table, _inverse(bend, bar), bar), 0.0))
    reach = NormalDist().inv_cdf(0.5 + level / 2) * errors
    return WeightIntervals(net.weights - reach, net.weights + reach, errors, float(level))


def _check(net: LogLinearModel, prior: Prior) -> None:
    if prior.l1:
        raise SettingError(
            "A Laplace prior makes weights exactly zero, for which intervals of this kind are wrong; fit "
            "with a Gaussian prior."
        )
    if not np.isfinite(net.weights).all():
        raise SettingError("Some weights are infinite; intervals are only for models that were fitted.")
    if len(net.features) > MAX_FEATURES:
        raise TooLarge(
            f"Intervals need a matrix of {len(net.features):,} x {len(net.features):,} weights, and at most "
            f"{MAX_FEATURES:,} x {MAX_FEATURES:,} are allowed; use fewer features."
        )


def _inverse(matrix: Floats, bar: Bar) -> Floats:
    """Invert by kernels, whose digits do not depend on the number of threads; the matrix is destroyed."""
    from unless.kernels.algebra import substitute_all

    bar.begin("factor", None, counted=False)
    before = matrix.diagonal().copy()
    # What the features before it say already leaves nothing of a feature's own, up to rounding.
    if not factorise_in_calls(matrix, bar) or (matrix.diagonal() ** 2 <= _NOTHING * before).any():
        raise SettingError(
            "Some features say the same, so that their weights are not determined; fit with a Gaussian prior."
        )
    mirror(matrix)
    inverse = np.empty_like(matrix)
    begins = range(0, len(matrix), _COLUMNS)
    bar.begin("inverse", len(begins))
    for begin in begins:
        columns = np.eye(len(matrix), min(_COLUMNS, len(matrix) - begin), -begin)
        substitute_all(matrix, columns)
        inverse[:, begin : begin + _COLUMNS] = columns
        bar()
    return inverse


def _variances(net: LogLinearModel, data: Dataset, inverse: Floats, bar: Bar) -> Floats:
    """Return the diagonal of H^-1 J H^-1: the scatter, over the rows, of H^-1 times their gradients."""
    from unless.kernels.algebra import add_product, add_spread
    from unless.kernels.features import row_gradients

    n_features = len(net.features)
    offsets = np.concatenate([[0], np.cumsum(data.domain.n_levels)])
    arrays = tuple(map(np.array, (*net.features.arrays, net.weights)))
    total, mean, pull = np.zeros(n_features), np.zeros(n_features), np.zeros(n_features)
    step = max(1, _BLOCK // max(1, n_features))
    at_once = max(1, _AT_ONCE // max(1, n_features**2))
    begins = range(0, data.n_distinct, step)
    bar.begin("rows", len(begins))
    for begin in begins:
        rows, counts = np.array(data.rows[begin : begin + step]), data.counts[begin : begin + step]
        gradients, worth = np.empty((len(rows), n_features)), counts.astype(np.float64)
        row_gradients(rows, offsets, *arrays, gradients)
        for first in range(0, len(rows), at_once):
            some = slice(first, first + at_once)
            add_spread(gradients[some], worth[some], inverse, total)
        mean += (counts[:, None] * gradients).sum(axis=0)
        bar()
    # At the optimum the mean is the pull of the prior, which is not scatter.
    add_product(inverse, mean, pull)
    return np.asarray(total - pull**2 / data.n_rows)
