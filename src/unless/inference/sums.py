"""Sums of weights over the features that hold in rows, some rows after another, so that Ctrl-C is heard."""

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Rows
from unless.runtime.progress import Look, unseen
from unless.structures.conditions import FeatureArrays

Floats = npt.NDArray[np.float64]
# Conditions looked at in one call of a kernel, at most: about a tenth of a second.
CONDITIONS_AT_ONCE = 2**25


def sums_of_weights(codes: Rows, features: FeatureArrays, weights: Floats, look: Look = unseen) -> Floats:
    """Return, for each row of codes, the sum of the weights of the features that hold in it."""
    from unless.kernels.potentials import log_potentials

    # Copies, because numba would compile once more for arrays that cannot be written.
    given = [np.array(part) for part in (*features, weights)]
    sums = np.zeros(len(codes))
    for some in row_spans(len(codes), features):
        sums[some] = log_potentials(codes[some], *given)
        look(some.stop / len(codes))
    return sums


def row_spans(n_rows: int, features: FeatureArrays) -> list[slice]:
    """Cut rows into those that one call of a kernel takes."""
    at_once = max(1, CONDITIONS_AT_ONCE // max(1, len(features.variable)))
    return [slice(begin, min(begin + at_once, n_rows)) for begin in range(0, n_rows, at_once)]
