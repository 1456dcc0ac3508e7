"""Pseudo-likelihood: how well a model predicts each value of a row from all the others."""

import numpy as np

from unless.errors import DataError
from unless.inference.conditionals import Conditionals
from unless.inference.likelihood import ConditionalScore
from unless.inference.model import LogLinearModel
from unless.inference.rows import read_rows

# Stands for an infinite weight: dwarfs every sum of finite ones, and can be subtracted from itself.
_HUGE = 1e100


def pseudo_log_likelihood(
    model: LogLinearModel, X: object, *, max_memory: int | str | None = None
) -> ConditionalScore:
    """Return the mean over rows of the sum over variables of log P(x_v | all others), in nats.

    Needs no partition function, so it is cheap for every model. A row with a value that the model excludes
    gives -inf.
    """
    data = read_rows(model.domain, X)
    if not data.n_rows:
        raise DataError("The table has no rows; there is nothing to score.")
    features, weights = model.plain
    conditionals = Conditionals.of(features, data, max_memory=max_memory, once=True)
    losses = conditionals.losses(np.maximum(weights, -_HUGE))
    means = np.where(losses > _HUGE / 1e10, -np.inf, -losses / data.n_rows)
    by_variable = dict(zip(model.domain.names, means.tolist(), strict=True))
    return ConditionalScore(float(means.sum()), by_variable, data.n_rows)
