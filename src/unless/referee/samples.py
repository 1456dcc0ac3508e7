"""Rows of a survey as rows drawn alike, for what counts whole rows."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from unless.data.dataset import Dataset
from unless.referee.regressions import Table

# Pairs of columns whose design effects are averaged, at most.
_MOST_PAIRS = 40


def drawn_alike(data: Dataset, pair: Sequence[int] | None = None) -> Dataset:
    """Return a sample of the rows of a survey that may be taken as drawn alike; other tables are themselves.

    Its size is the effective one: by weights, and by the design effect of a pair of columns, or the mean of
    some pairs.
    """
    if data.design is None:
        return data
    table = Table(data)
    pairs = [tuple(pair)] if pair is not None else list(pairwise(range(data.n_variables)))[:_MOST_PAIRS]
    effect = float(np.mean([table.design_effect(a, b) for a, b in pairs])) if pairs else 1.0
    return data.self_weighting(effect)
