"""Weights by penalised pseudo-likelihood, the objective of Libra's mnlearnw, converged; or by likelihood."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.errors import DataError, SettingError
from unless.inference.completing import Incomplete, incomplete_rows
from unless.inference.fit_report import Candidate, FitReport
from unless.inference.model import LogLinearModel
from unless.inference.priors import NO_PRIOR, Gaussian, Prior
from unless.inference.rows import read_incomplete
from unless.runtime.progress import BAR_DELAY, Bar, progress
from unless.structures.features import FeatureSet
from unless.weights.descent import Descent
from unless.weights.incomplete import ExpectationMaximisation
from unless.weights.minimise import Limits, minimise
from unless.weights.objective import Loss, Objective, make_loss
from unless.weights.separable import refuse_divergence, refuse_one_sided

Floats = npt.NDArray[np.float64]
Settings = dict[str, Any]


def fit_weights(  # noqa: PLR0913 (every argument is one independent wish)
    features: FeatureSet,
    data: object,
    prior: Prior | str | Iterable[Prior] | None = Gaussian(1.0),  # noqa: B008 (a frozen value)
    *,
    objective: Literal["pseudo", "likelihood"] = "pseudo",
    incomplete: Literal["em", "drop"] = "em",
    tolerance: float = 1e-6,
    relative_tolerance: float | None = None,
    max_iterations: int = 5_000,
    start: npt.ArrayLike | LogLinearModel | None = None,
    validation: object = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    max_memory: int | str | None = None,
    show_progress: bool | None = None,
) -> LogLinearModel:
    """Find the weights that minimise a penalised negative log-likelihood.

    f(w) = - sum over rows and variables v of log P(x_v | the others) + sum w^2 / (2 sd^2) + l1 sum |w|,
    or, for objective="likelihood", with log P(x) of each row in place of the sum over variables.

    Parameters
    ----------
    data
        A Dataset, a frame or a file; its labels must be levels of the features' domain. Rows of a survey
        count by their weights.
    prior
        `Gaussian(sd)`, `Laplace(l1)`, their sum, or None. Several, or "validate" for a grid from strong to
        weak, are tried on rows they have not seen, and the best is taken.
    objective
        "likelihood" uses the data better than "pseudo", but is refused where exact inference is not cheap.
    incomplete
        What to do with rows that have missing values where the features know no level for them: "em" uses
        what they show, by EM (docs/decisions/0034-incomplete-rows.md), which is right if what is missing
        depends on nothing but what the rows show; "drop" leaves them out. Several priors are judged by the
        complete rows.
    tolerance
        Done when no component of the (sub)gradient exceeds this. With a Gaussian part no weight is then
        farther from its optimum than tolerance * sd^2 * the square root of their number, mostly far less.
    relative_tolerance
        Move as Libra does, and stop where five iterations gain no more than this share (1e-3 in Libra).
    start
        Weights, or a model of the same features, to start from; zeros by default.
    validation
        For several priors: a table to judge them by, the share of rows to set aside, or the number of
        folds of a cross-validation (5 by default).
    random_state
        The seed of what is drawn: the rows set aside, and completions of rows with very many missing values.

    Examples
    --------
    >>> import unless
    >>> data = unless.datasets.load_ucb_admissions()
    >>> net = fit_weights(unless.CSGS().fit(data).structure_.features(), data)
    >>> net.fit_report.converged
    True
    """
    _check(features, limits := Limits(tolerance, max_iterations, relative_tolerance))
    table, holes = _rows(features, data, incomplete, show_progress)
    begin = _start(features, start)
    layout: Settings = {"objective": objective, "n_jobs": _checked_jobs(n_jobs), "max_memory": max_memory}
    with progress("fit_weights", show_progress, after=BAR_DELAY) as bar:
        settings: Settings = {"step": bar, **limits._asdict()}
        tried = _judged(features, table, prior, (validation, random_state), layout, settings)
        best = max(tried, key=lambda one: one.score).prior
        if holes is not None:
            # Without a prior the weights of complete rows alone may be infinite.
            first = Gaussian(1.0) if best == NO_PRIOR else best
            if table.n_rows:
                begin, _ = fit(features, _laid_out(features, table, layout, bar), first, begin, **settings)
            em = ExpectationMaximisation(features, table, holes, layout, random_state)
            weights, report = em.fit(best, begin, settings)
        else:
            weights, report = fit(features, _laid_out(features, table, layout, bar), best, begin, **settings)
    candidates = tried if len(tried) > 1 else ()
    return LogLinearModel(features, weights, report=replace(report, candidates=candidates))


def fit(
    features: FeatureSet,
    loss: Loss,
    prior: Prior,
    start: Floats,
    *,
    tolerance: float,
    max_iterations: int,
    step: Any,
    relative_tolerance: float | None = None,
) -> tuple[Floats, FitReport]:
    """Fit weights to data that are laid out already."""
    limits = Limits(tolerance, max_iterations, relative_tolerance)
    # What stops where little is gained says nothing of when that will be.
    descent = Descent(step, tolerance, is_guessed=relative_tolerance is None)
    objective = Objective(loss, prior, step, descent)
    free = prior == NO_PRIOR
    with loss.threads():
        if free:
            refuse_one_sided(objective, features)
        found = minimise(objective, start, limits)
        if free and found.stopped_by != "relative_tolerance":
            refuse_divergence(objective, features, found.weights, limits.tolerance)
        value = objective.value(found.weights)
    return found.weights, FitReport(
        prior=prior,
        measure=loss.measure,
        stopped_by=found.stopped_by,
        n_iterations=found.n_iterations,
        n_evaluations=objective.n_evaluations,
        objective=value,
        gradient_norm=found.norm,
        tolerance=limits.tolerance,
    )


def _rows(
    features: FeatureSet, data: object, incomplete: str, show_progress: bool | None
) -> tuple[Dataset, Incomplete | None]:
    if incomplete not in ("em", "drop"):
        raise SettingError(f"incomplete={incomplete!r} is not known; use 'em' or 'drop'.")
    table = read_incomplete(features.domain, data, show_progress)
    holes = incomplete_rows(table) if incomplete == "em" else None
    if not table.n_rows and (holes is None or not len(holes.counts)):
        raise DataError("The table has no rows; there is nothing to fit weights to.")
    return table, holes if holes is not None and len(holes.counts) else None


def _laid_out(features: FeatureSet, data: Dataset, layout: Settings, bar: Bar) -> Loss:
    bar.begin("layout", None, counted=False)
    loss = make_loss(features, data, **layout, look=bar.share, counts=data.weights)
    # How many there will be shows only at the end.
    bar.begin("iterations", None, counted=False)
    return loss


def _judged(
    features: FeatureSet,
    data: Dataset,
    prior: Prior | str | Iterable[Prior] | None,
    judging: tuple[object, Any],
    layout: Settings,
    settings: Settings,
) -> tuple[Candidate, ...]:
    if prior is None or isinstance(prior, Prior):
        return (Candidate(prior or NO_PRIOR, math.nan),)
    from unless.weights.validating import choose_prior

    return choose_prior(features, data, prior, *judging, layout, settings)


def _checked_jobs(n_jobs: int | None) -> int | None:
    whole = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    if n_jobs is not None and not (whole and n_jobs):
        raise SettingError(f"n_jobs={n_jobs!r} must be None, a number of threads, or -1 for all of them.")
    return n_jobs


def _start(features: FeatureSet, start: npt.ArrayLike | LogLinearModel | None) -> Floats:
    if start is None:
        return np.zeros(len(features))
    if isinstance(start, LogLinearModel):
        if start.features != features:
            raise SettingError("start= has other features; give weights for these, or a model of these.")
        start = start.weights
    try:
        weights = np.array(start, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.empty(())
    if weights.shape != (len(features),) or not np.isfinite(weights).all():
        raise SettingError(f"start= must be {len(features):,} finite weights, one for each feature.")
    return weights


def _check(features: object, limits: Limits) -> None:
    if not isinstance(features, FeatureSet):
        raise SettingError(
            f"Weights need a FeatureSet, not a {type(features).__name__}; call features() of a structure."
        )
    for name in ("tolerance", "relative_tolerance"):
        value = getattr(limits, name)
        if value is None and name == "relative_tolerance":
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < np.inf:
            raise SettingError(f"{name}={value!r} must be a number above 0.")
    most = limits.max_iterations
    if isinstance(most, bool) or not isinstance(most, int) or most < 0:
        raise SettingError(f"max_iterations={most!r} must be a whole number of 0 or more.")
