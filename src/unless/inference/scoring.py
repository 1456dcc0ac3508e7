"""Pseudo-likelihood: how well a model predicts each value of a row from all the others."""

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.inference.conditionals import Conditionals
from unless.inference.likelihood import ConditionalScore
from unless.inference.model import LogLinearModel
from unless.inference.rows import rows_to_score
from unless.inference.sums import sums_of_weights
from unless.runtime.progress import showing_share, within
from unless.structures.conditions import FeatureArrays

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
# Stands for an infinite weight: dwarfs every sum of finite ones, and can be subtracted from itself.
_HUGE = 1e100


def pseudo_log_likelihood(
    model: LogLinearModel,
    X: object,
    *,
    max_memory: int | str | None = None,
    show_progress: bool | None = None,
) -> ConditionalScore:
    """Return the mean over rows of the sum over variables of log P(x_v | all others), in nats.

    Needs no partition function, so it is cheap for every model. A row that the model excludes gives -inf, to
    all the variables of what excludes it.
    """
    data = rows_to_score(model.domain, X, show_progress)
    features, weights = model.plain
    finite = np.maximum(weights, -_HUGE)
    with showing_share("Scoring", show_progress, "variables") as look:
        # Most of the time goes into putting rows together.
        laid_out = Conditionals.of(
            features, data, max_memory=max_memory, once=True, look=within(look, 0.0, 0.7)
        )
        losses = laid_out.losses(finite, within(look, 0.7, 1.0))
    means = -losses / data.n_rows
    if (weights == -np.inf).any():
        for variable in _swallowed(features, weights):
            told, some = _with_levels_apart(features, weights, variable, int(model.domain.n_levels[variable]))
            losses = Conditionals.of(told, data, max_memory=max_memory, once=True).losses(some)
            means[variable] = -losses[variable] / data.n_rows
        means[_excluded(model, data)] = -np.inf
    by_variable = dict(zip(model.domain.names, means.tolist(), strict=True))
    return ConditionalScore(float(means.sum()), by_variable, data.n_rows)


def _swallowed(features: FeatureArrays, weights: Floats) -> list[int]:
    """List the variables of which a feature of weight -inf excludes all but several levels.

    "Not a, not b" is counted as an advantage of a and b, in which their own weights would be lost.
    """
    feature = np.repeat(np.arange(len(weights)), np.diff(features.start))
    named = ~features.equal & (weights[feature] == -np.inf)
    again = named[1:] & named[:-1] & (feature[1:] == feature[:-1])
    again &= features.variable[1:] == features.variable[:-1]
    return [int(variable) for variable in np.unique(features.variable[1:][again])]


def _with_levels_apart(
    features: FeatureArrays, weights: Floats, variable: int, n_levels: int
) -> tuple[FeatureArrays, Floats]:
    """Return the features of a variable, those of weight -inf once for each level of it they exclude."""
    told, finite = [], []
    for literals, weight in zip(features.literals(), weights.tolist(), strict=True):
        others = [literal for literal in literals if literal[0] != variable]
        spoken = [literal for literal in literals if literal[0] == variable]
        if weight == -np.inf and spoken and not spoken[0][2]:
            allowed = {level for _, level, _ in spoken}
            apart = [[*others, (variable, level, True)] for level in range(n_levels) if level not in allowed]
            told += apart
            finite += [-_HUGE] * len(apart)
        elif spoken:
            told.append([*literals])
            finite.append(max(weight, -_HUGE))
    return FeatureArrays.of(told), np.array(finite)


def _excluded(model: LogLinearModel, data: Dataset) -> Bools:
    """Tell of each variable whether it is in a feature of weight -inf that holds in some row."""
    features, weights = model.plain
    rows = data.rows[np.isneginf(model.log_potentials(data.rows))]
    excluded = np.zeros(len(model.domain), dtype=np.bool_)
    forbidden = features.take(weights == -np.inf)
    feature = np.repeat(np.arange(len(forbidden.start) - 1), np.diff(forbidden.start))
    for variable in np.unique(forbidden.variable).tolist() if len(rows) else ():
        speaks = np.bincount(feature, forbidden.variable == variable, len(forbidden.start) - 1) > 0
        some = forbidden.take(speaks)
        sums = sums_of_weights(rows, some, np.full(int(speaks.sum()), -1.0))
        excluded[variable] = sums.min() < 0
    return excluded
