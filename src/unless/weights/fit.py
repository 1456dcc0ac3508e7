"""Weights by penalised pseudo-likelihood, the objective of Libra's mnlearnw, converged; or by likelihood.

Of several priors the one that predicts unseen rows best is taken. Feature sets whose weights would grow for
ever without a prior are refused.

Rows with missing values are used by EM. The E step gives each row its completions, with their probabilities
under the present weights given what the row shows. The M step fits the weights to all completed rows, each
counted by its probability. It ends when a round changes the completions of an average row by less than a
thousandth. Where some rows have too many completions to list, these are drawn anew in each round (data
augmentation): the rule looks at the other rows, and if it does not end EM after 20 rounds the weights
returned are the mean of those of the last 10.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice, pairwise
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset, distinct_rows
from unless.errors import DataError, SettingError, TooLarge
from unless.inference.completing import MOST_ROWS, Completions
from unless.inference.model import LogLinearModel
from unless.inference.randomness import make_rng
from unless.inference.tables import Incomplete, incomplete_rows, read_incomplete, read_rows
from unless.kernels.compiling import plain_if_small
from unless.runtime.compilation import compile_ahead
from unless.runtime.memory import parse_memory, show_memory
from unless.runtime.progress import BAR_DELAY, Bar, progress
from unless.structures.graph import FeatureSet
from unless.typing import Floats
from unless.weights.optimise import Descent, Loss, Objective, StopRules, direction_at, make_loss, minimise
from unless.weights.priors import NO_PRIOR, Gaussian, Prior
from unless.weights.report import GAIN, Candidate, Completed, FitReport

# The largest component of the gradient where nothing else is asked for.
TOLERANCE = 1e-6
MOST_ITERATIONS = 5_000
# From strong to weak, so that the weights of one are a good start for the next.
GRID = tuple(Gaussian(sd) for sd in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0))
N_FOLDS = 5
# Done when a round changes the completions of an average row by less than this, or after so many rounds.
LEAST_CHANGE = 1e-3
MOST_ROUNDS = 100
# Rounds where some completions are drawn, and the last of them whose weights are averaged.
DRAWN_ROUNDS, AVERAGED = 20, 10
# The share of the memory that completed rows may take, and what each takes by column and beside them.
_SHARE = 0.5
_BYTES_A_CELL, _BYTES_A_ROW = 48, 64
Settings = dict[str, Any]


def refuse_one_sided(objective: Objective, features: FeatureSet) -> None:
    """Refuse a feature that is never, or always, true where it could be both: its best weight is infinite."""
    could, was = objective.loss.tallies()
    asked = could > 0.5
    for stuck, how in ((asked & (was < 0.5), "never"), (asked & (was > could - 0.5), "always")):
        if stuck.any():
            why = f"in the data it is {how} true where it could be true or false"
            raise SettingError(_sentence(features, int(np.argmax(stuck)), why))


def refuse_divergence(objective: Objective, features: FeatureSet, weights: Floats, tolerance: float) -> None:
    """Refuse weights that are together on their way to infinity, naming the fastest.

    Where a finite optimum is near, a Newton step leads to it and leaves no slope. On the way to infinity
    probabilities approach 1 exponentially, and every Newton step leaves 1/e of the slope.
    """
    from unless.kernels.algebra import dot

    _, gradient = objective.smooth(weights, keep=True)
    direction = direction_at(objective, weights, gradient, tolerance)
    if float(np.abs(direction).max(initial=0.0)) < 1e-2:
        return
    slopes = [dot(objective.smooth(weights + steps * direction)[1], direction) for steps in range(3)]
    # Slopes this small are rounding: the direction is one that changes no probability.
    if slopes[0] > -1e-11 or not all(0.1 < b / a < 0.7 for a, b in pairwise(slopes)):
        return
    why = "some features together tell a part of the data apart perfectly"
    raise SettingError(_sentence(features, int(np.argmax(np.abs(direction))), why))


def _sentence(features: FeatureSet, number: int, why: str) -> str:
    name = next(islice(features, number, None))
    return (
        f"Without a prior the weight of the feature [{name}] has no finite best value, because {why}; give "
        "a prior such as Gaussian(1.0)."
    )


def choose_prior(
    features: FeatureSet,
    data: Dataset,
    priors: Prior | str | Iterable[Prior] | None,
    validation: object,
    random_state: Any,
    layout: dict[str, Any],
    settings: dict[str, Any],
) -> tuple[Candidate, ...]:
    """Judge several priors by the (pseudo-)log-likelihood per row of rows they were not fitted to."""
    if priors is None or isinstance(priors, Prior):
        return (Candidate(priors or NO_PRIOR, math.nan),)
    tried = priors_to_try(priors)
    scores, n_rows = np.zeros(len(tried)), 0
    splits = _splits(data, validation, random_state)
    bar, quiet = settings["step"], {**settings, "step": lambda: None}
    bar.begin("fits", len(splits) * len(tried))
    for training, unseen in splits:
        path = prior_path(features, training, unseen, tried, layout, quiet)
        for position, (_, score) in enumerate(path):
            scores[position] += score
            bar()
        n_rows += unseen.n_rows
    return tuple(Candidate(prior, float(score) / n_rows) for prior, score in zip(tried, scores, strict=True))


def prior_path(
    features: FeatureSet,
    training: Dataset,
    unseen: Dataset,
    priors: Iterable[Prior],
    layout: dict[str, Any],
    settings: dict[str, Any],
) -> Iterator[tuple[Floats, float]]:
    """Give the weights under each prior and the (pseudo-)log-likelihood of the unseen rows, all together.

    The weights under one prior are the start for the next.
    """
    seen = make_loss(features, training, **layout)
    judge = make_loss(features, unseen, **layout, once=True)
    weights = np.zeros(len(features))
    for prior in priors:
        weights, _ = fit(features, seen, prior, weights, **settings)
        yield weights, -float(judge.losses(weights).sum())


def _splits(data: Dataset, validation: object, random_state: Any) -> list[tuple[Dataset, Dataset]]:
    rng = make_rng(random_state)
    share = isinstance(validation, Real) and not isinstance(validation, Integral)
    if isinstance(validation, bool | np.bool_) or (share and not 0 < validation < 1):  # type: ignore[operator]
        raise SettingError(
            f"validation={validation!r} is no way to judge priors; give a table, a share between 0 and 1 or "
            "a number of folds."
        )
    if share:
        unseen_counts = rng.binomial(data.counts, float(validation))  # type: ignore[arg-type]
        return [_split(data, unseen_counts)]
    if validation is None or isinstance(validation, Integral):
        n_folds = N_FOLDS if validation is None else int(validation)
        if n_folds < 2:
            raise SettingError(f"validation={n_folds!r} must be at least 2 folds.")
        folds = rng.multinomial(data.counts, np.full(n_folds, 1 / n_folds))
        return [_split(data, fold) for fold in folds.T]
    return [(data, read_rows(data.domain, validation))]


def _split(data: Dataset, unseen_counts: Any) -> tuple[Dataset, Dataset]:
    parts = [
        Dataset.from_codes(data.domain, data.rows, counts)
        for counts in (data.counts - unseen_counts, unseen_counts)
    ]
    if not all(part.n_rows for part in parts):
        raise DataError(
            f"{data.n_rows:,} rows are too few to set some aside and judge priors by them; give one prior."
        )
    return parts[0], parts[1]


def priors_to_try(prior: Prior | str | Iterable[Prior] | None) -> tuple[Prior, ...]:
    """Return the priors that were asked for: one, several, or the grid of "validate"."""
    if prior is None or isinstance(prior, Prior):
        return (prior or NO_PRIOR,)
    if isinstance(prior, str) and prior == "validate":
        return GRID
    listed = tuple(prior) if isinstance(prior, Iterable) and not isinstance(prior, str) else ()
    if not listed or not all(isinstance(one, Prior) for one in listed):
        raise SettingError(
            f"prior={prior!r} is not known; give Gaussian(sd), Laplace(l1), their sum, a list of them, "
            "'validate' or None."
        )
    return listed


class ExpectationMaximisation:
    """EM for the weights of features over a table, some rows of which have missing values."""

    def __init__(
        self,
        features: FeatureSet,
        data: Dataset,
        incomplete: Incomplete,
        layout: dict[str, Any],
        random_state: Any = None,
    ) -> None:
        self.features, self.data, self.incomplete, self.layout = features, data, incomplete, layout
        self.completions = Completions(
            features.domain, incomplete.cells, most_rows=self._most_rows(), random_state=random_state
        )
        self._known: tuple[Dataset, npt.NDArray[np.intp]] | None = None

    def _most_rows(self) -> int:
        """Return how many completed rows there may be; refuse a table of which memory holds none for each."""
        limit, n_rows = parse_memory(self.layout.get("max_memory")), len(self.incomplete.counts)
        each = _BYTES_A_CELL * self.data.n_variables + _BYTES_A_ROW
        if n_rows * each > _SHARE * limit:
            need = show_memory(n_rows * each / _SHARE)
            raise TooLarge(
                f"{n_rows:,} different rows with missing values would need {need}, and {show_memory(limit)} "
                "are allowed; leave them out with incomplete='drop', or raise max_memory=."
            )
        return int(min(MOST_ROWS, _SHARE * limit // each))

    def fit(self, prior: Prior, start: Floats, settings: dict[str, Any]) -> tuple[Floats, FitReport]:
        """Return the weights where rounds of EM change no more, and how they were found."""
        bar, made = settings["step"], self.completions
        weights, reports, trail = start, list[FitReport](), list[Floats]()
        before: Floats | None = None
        change: float | None = None
        most = DRAWN_ROUNDS if made.n_drawn else MOST_ROUNDS
        while len(reports) < most:
            model = LogLinearModel(self.features, weights)
            made.draw(model)
            probabilities = made.probabilities(model)
            change = None if before is None else self.change(before, probabilities)
            if change is not None and change < LEAST_CHANGE:
                break
            before = probabilities
            table, counts = self.completed(probabilities)
            bar.begin(f"EM round {len(reports) + 1}", None, counted=False)
            loss = make_loss(self.features, table, **self.layout, counts=counts)
            weights, report = fit(self.features, loss, prior, weights, **settings)
            reports.append(report)
            trail = [*trail[1 - AVERAGED :], weights]
        if made.n_drawn and len(reports) == most:
            weights = np.mean(trail, axis=0)
        return weights, self._report(reports, change)

    def complete(self, model: LogLinearModel) -> tuple[Dataset, Floats]:
        """Return all rows, completed under a model, and how much each counts."""
        self.completions.draw(model)
        return self.completed(self.completions.probabilities(model))

    def change(self, before: Floats, after: Floats) -> float | None:
        """Return what a round changed of the completions of an average row: half of all differences.

        Rows whose completions are drawn are left out; None where all are.
        """
        made = self.completions
        if made.n_drawn == made.n_rows:
            return None
        worth = self.incomplete.weights[made.owner[: made.n_listed]]
        moved = np.abs(after - before)[: made.n_listed]
        # The completions of a row have a probability of 1 together.
        return float((moved * worth).sum() / 2 / (after[: made.n_listed] * worth).sum())

    def completed(self, probabilities: Floats) -> tuple[Dataset, Floats]:
        """Return all rows, the complete ones and the completions, and how much each counts."""
        made, data = self.completions, self.data
        if self._known is None or made.n_drawn:
            rows, case = distinct_rows(np.concatenate([data.rows, made.rows]))
            self._known = Dataset(data.domain, rows, np.ones(len(rows), dtype=np.int64)), case
        table, case = self._known
        shares = probabilities * self.incomplete.weights[made.owner]
        whole = data.counts.astype(np.float64) if data.weights is None else data.weights
        weighed = np.concatenate([whole, shares])
        return table, np.bincount(case, weighed, table.n_distinct).astype(np.float64)

    def _report(self, reports: list[FitReport], change: float | None) -> FitReport:
        n_incomplete, n_drawn = int(self.incomplete.counts.sum()), self.completions.n_drawn
        told = Completed(self.data.n_rows, n_incomplete, len(reports), n_drawn, change)
        return replace(
            reports[-1],
            n_iterations=sum(one.n_iterations for one in reports),
            n_evaluations=sum(one.n_evaluations for one in reports),
            completed=told,
        )


def fit_weights(  # noqa: PLR0913 (every argument is one independent wish)
    features: FeatureSet,
    data: object,
    prior: Prior | str | Iterable[Prior] | None = Gaussian(1.0),  # noqa: B008 (a frozen value)
    *,
    objective: Literal["pseudo", "likelihood"] = "pseudo",
    incomplete: Literal["em", "drop"] = "em",
    tolerance: float | None = None,
    relative_tolerance: float | None = None,
    max_iterations: int = MOST_ITERATIONS,
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
        By default 1e-6; with a prior and so many features that Newton steps are dear (2,000, or fewer over
        many different rows) the default is also done when no more than about 0.002 nats a row are left to
        gain: `fit_report.stopped_by` is then "gain", and few probabilities are off by more than 0.01.
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
    gain = GAIN if tolerance is None and relative_tolerance is None else 0.0
    tolerance = TOLERANCE if tolerance is None else tolerance
    _check(features, limits := StopRules(tolerance, max_iterations, relative_tolerance, gain))
    table, holes = _rows(features, data, incomplete, show_progress)
    begin = _start(features, start)
    layout: Settings = {"objective": objective, "n_jobs": _checked_jobs(n_jobs), "max_memory": max_memory}
    # Some sixty times each conditional of each row is computed, from all features.
    n_steps = 60.0 * table.n_distinct * table.n_variables * len(features)
    with (
        plain_if_small(n_steps, "weights") as is_first,
        progress("fit_weights", show_progress, after=BAR_DELAY) as bar,
    ):
        if is_first:
            compile_ahead("weights", False)
        settings: Settings = {"step": bar, **limits._asdict()}
        tried = choose_prior(features, table, prior, validation, random_state, layout, settings)
        best = max(tried, key=lambda one: one.score).prior
        weights, report = _fit_rows(features, table, holes, best, begin, layout, settings, random_state)
    candidates = tried if len(tried) > 1 else ()
    return LogLinearModel(features, weights, report=replace(report, candidates=candidates))


def weigh(features: FeatureSet, data: Dataset, prior: Prior, bar: Bar, layout: Settings) -> Floats:
    """Return the weights that `fit_weights` finds, as a part of work that has a bar of its own."""
    settings: Settings = {"step": bar, **StopRules(TOLERANCE, MOST_ITERATIONS, None, GAIN)._asdict()}
    table, holes = _rows(features, data, "em", False)
    weights, _ = _fit_rows(features, table, holes, prior, np.zeros(len(features)), layout, settings)
    return weights


def _fit_rows(
    features: FeatureSet,
    table: Dataset,
    holes: Incomplete | None,
    prior: Prior,
    begin: Floats,
    layout: Settings,
    settings: Settings,
    random_state: Any = None,
) -> tuple[Floats, FitReport]:
    """Fit weights to the complete rows of a table and, by EM, to those that have holes."""
    bar = settings["step"]
    if holes is None:
        return fit(features, _laid_out(features, table, layout, bar), prior, begin, **settings)
    # Without a prior the weights of complete rows alone may be infinite.
    first = Gaussian(1.0) if prior == NO_PRIOR else prior
    if table.n_rows:
        begin, _ = fit(features, _laid_out(features, table, layout, bar), first, begin, **settings)
    em = ExpectationMaximisation(features, table, holes, layout, random_state)
    return em.fit(prior, begin, settings)


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
    gain: float = 0.0,
) -> tuple[Floats, FitReport]:
    """Fit weights to data that are laid out already; `gain` is by row, and for what Newton steps are dear."""
    objective = Objective(loss, prior, step)
    free = prior == NO_PRIOR
    # Without a prior weights may go to infinity, which shows only near the optimum.
    gain = 0.0 if free or objective.hessian_is_cheap else gain * loss.n_rows
    limits = StopRules(tolerance, max_iterations, relative_tolerance, gain)
    # What stops where little is gained says nothing of when that will be.
    is_guessed = relative_tolerance is None
    goal, of = (gain, "left to gain") if gain else (tolerance, "slope")
    objective.descent = Descent(step, goal, is_guessed, of)
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


def _check(features: object, limits: StopRules) -> None:
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
