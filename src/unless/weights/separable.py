"""Feature sets whose weights, without a prior, would grow for ever."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from unless.errors import SettingError
from unless.structures.graph import FeatureSet
from unless.weights.newton import direction_at
from unless.weights.objective import Objective

Floats = npt.NDArray[np.float64]


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
    from unless.kernels.products import dot

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


def _sentence(features: FeatureSet, place: int, why: str) -> str:
    name = next(feature for position, feature in enumerate(features) if position == place)
    return (
        f"Without a prior the weight of the feature [{name}] has no finite best value, because {why}; give "
        "a prior such as Gaussian(1.0)."
    )
