"""Weights of +inf said another way, so that sums never meet both infinities."""

import numpy as np
import numpy.typing as npt

from unless.structures.conditions import FeatureArrays

Floats = npt.NDArray[np.float64]


def without_certainties(
    arrays: FeatureArrays, weights: Floats, n_levels: npt.NDArray[np.int64]
) -> tuple[FeatureArrays, Floats]:
    """Say "this feature must hold" (+inf) as "these levels must not be" (-inf, one feature each).

    A conjunction holds where each of its conditions does, so no feature longer than one is needed.
    """
    certain = np.isposinf(weights)
    if not certain.any():
        return arrays, weights
    sizes = np.diff(arrays.start)
    inside = np.repeat(certain, sizes)
    excluded = {
        (variable, level)
        for variable, said, equal in zip(*(array[inside].tolist() for array in arrays[1:]), strict=True)
        for level in (range(int(n_levels[variable])) if equal else (said,))
        if (level == said) != equal
    }
    listed = np.array(sorted(excluded), dtype=np.int64).reshape(-1, 2)
    start = np.append(0, np.cumsum(sizes[~certain])).astype(np.int64)
    others = FeatureArrays(start, arrays.variable[~inside], arrays.level[~inside], arrays.equal[~inside])
    joined = FeatureArrays.joined([others, FeatureArrays.of_equals(listed[:, :1], listed[:, 1:])])
    return joined, np.concatenate([weights[~certain], np.full(len(listed), -np.inf)])
