"""The dense cube of all partial assignments of a small domain."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Counts, Dataset
from unless.kernels.cube import Cube, fill

# Beyond this the cube leaves the cache and cohorts are faster.
MAX_CELLS = 2**20
MAX_QUESTIONS = 2**26


def fits_cube(n_levels: npt.NDArray[np.int64]) -> bool:
    """Tell whether the cube, and an answer for every pair in each of its cells, stay small."""
    cells = 1
    for size in n_levels.tolist():
        cells *= size + 1
        if cells > MAX_CELLS:
            return False
    return cells * len(n_levels) * (len(n_levels) - 1) // 2 <= MAX_QUESTIONS


def build_cube(data: Dataset, order: Sequence[int]) -> Cube:
    """Count every partial assignment, the variables in the given order of columns."""
    columns = list(order)
    n_levels = data.domain.n_levels[columns]
    # The last variable is the fastest digit.
    spans = np.concatenate([np.cumprod((n_levels + 1)[::-1])[::-1], [1]])
    cube = Cube(np.zeros(spans[0], dtype=np.int64), spans[1:].copy(), n_levels)
    fill(np.ascontiguousarray(data.rows[:, columns]), np.array(data.counts), cube)
    return cube


def cube_table(cube: Cube, a: int, b: int, context: Mapping[int, int]) -> Counts:
    """Read the table of variable `a` against `b` in a context (variable -> code)."""
    counts = cube.counts.reshape(tuple(cube.n_levels + 1))
    digits: list[int | slice] = [
        context.get(variable, size) for variable, size in enumerate(cube.n_levels.tolist())
    ]
    digits[a], digits[b] = slice(0, int(cube.n_levels[a])), slice(0, int(cube.n_levels[b]))
    table: Counts = counts[tuple(digits)]
    return table if a < b else table.T
