"""Exact samples: gates first, then each clique given the variables it shares with the one above."""

from collections.abc import Mapping
from functools import partial

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Rows
from unless.data.domain import Code
from unless.inference.exact import ExactEngine
from unless.inference.forest import STEPS_OF_A_CELL
from unless.inference.randomness import RandomState, make_rng
from unless.kernels.trees import collect
from unless.kernels.walks import cumulate, draw
from unless.runtime.interrupts import interruptible_kernel
from unless.runtime.progress import Look, unseen

# Random numbers drawn at once: bounds their memory, and the time until Ctrl-C is heard.
NUMBERS_AT_ONCE = 2**20


def sample_exact(
    engine: ExactEngine,
    n: int,
    random_state: RandomState,
    evidence: Mapping[int, int],
    look: Look = unseen,
) -> Rows | None:
    """Draw n rows of codes given evidence; None if the evidence is impossible.

    A row uses one random number per variable, so the first rows of a longer sample are the shorter sample.
    """
    forest, tables = engine.laid_out
    n_nodes = len(forest.gate)
    work, message = np.empty(int(forest.cell_start[-1])), np.empty(int(forest.row_start[-1]))
    log_sums, active = np.empty(n_nodes), np.empty(n_nodes, dtype=np.bool_)
    log_branch = np.empty(len(forest.branch_level))
    n_steps = STEPS_OF_A_CELL * len(work)
    seen = engine.codes(evidence)
    attempts: list[tuple[npt.NDArray[np.float64] | None, bool]] = [
        (tables.scaled, False),
        (tables.logs, True),
    ]
    for base, in_logs in attempts:
        if base is None:
            continue
        up = (in_logs, work, message, log_sums, log_branch, active)
        if interruptible_kernel(partial(collect, seen, forest, base, tables.scales, *up), n_steps):
            break
    if log_sums[-1] == -np.inf:
        return None
    interruptible_kernel(lambda: cumulate(forest, active, work), n_steps)
    rng = make_rng(random_state)
    rows = np.empty((n, len(seen)), dtype=Code)
    at_once = max(1, NUMBERS_AT_ONCE // max(1, len(seen)))
    for first in range(0, n, at_once):
        some = rows[first : first + at_once]
        draw(rng.random(some.shape), forest, work, log_sums, log_branch, some)
        look((first + len(some)) / n)
    return rows
