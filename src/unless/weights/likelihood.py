"""How probable a table is, and how often each feature is expected to hold, for any weights of the features.

Planned and laid out once; new weights only fill the tables and pass messages.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import ClassVar

import numpy as np

from unless.data.dataset import Dataset
from unless.errors import TooLarge
from unless.inference.exact import STEPS_OF_A_CELL, ExactSolver, fill, pass_up
from unless.inference.potentials import row_spans
from unless.inference.pseudo_likelihood import Counts
from unless.inference.results import Measure
from unless.kernels.clique_trees import spread, sum_holding
from unless.kernels.features import count_holding
from unless.runtime.interrupts import interruptible_kernel
from unless.runtime.memory import check_need, parse_memory
from unless.structures.structure import FeatureArrays
from unless.typing import Floats

# Logs, scaled cells and work, and what the layout of the features takes beside them.
BYTES_PER_CELL = 32
# Steps of one pass beyond which exact inference is no longer cheap: a pass takes about a second then.
MAX_STEPS = 2.0**28
# What messages do with a cell, in steps.
_STEPS_PER_CELL = 8
# Half the distance over which a gradient's change is the curvature's: its rounding must not show.
_SPAN = 1e-3


class Expectations:
    """Minus the log-likelihood of a table, summed over its rows, with its gradient and curvature.

    Weights are finite. The gradient is how much more often each feature is expected to hold than it did.
    `counts` are used in place of those of the table; they need not be whole numbers.
    """

    measure: ClassVar[Measure] = "log_likelihood"

    def __init__(
        self,
        features: FeatureArrays,
        data: Dataset,
        *,
        max_memory: int | str | None = None,
        counts: Counts | None = None,
    ) -> None:
        weighed = (data.counts if counts is None else counts).astype(np.float64)
        self.n_features = len(features.start) - 1
        self.n_rows = float(weighed.sum())
        # Numbers in place of weights: a plan must not join parts whose weights are equal only now.
        numbers = np.arange(self.n_features, dtype=np.float64)
        self._engine = ExactSolver(features, numbers, data.domain.n_levels)
        self._check_memory(max_memory)
        self._forest, self._wiring, placed, (self._branch, always) = self._engine.plan
        self._placed, self._always = placed.astype(np.int64), always.astype(np.int64)
        self._check_steps()
        self.observed = np.zeros(self.n_features)
        # Copies, because numba would compile once more for arrays that cannot be written.
        arrays = [np.array(part) for part in features]
        for some in row_spans(data.n_distinct, features):
            count_holding(np.array(data.rows[some]), weighed[some], *arrays, self.observed)
        self._work = np.empty(int(self._forest.cell_start[-1]))
        self._kept_weights = np.zeros(self.n_features)

    def losses(self, weights: Floats) -> Floats:
        """Return minus the log-likelihood, alone in an array: here all variables are judged together."""
        return np.array([self.value_and_gradient(weights)[0]])

    def value_and_gradient(self, weights: Floats, keep: bool = False) -> tuple[float, Floats]:
        """Return minus the log-likelihood and its gradient; `keep` remembers the weights."""
        from unless.kernels.algebra import dot

        log_partition, probabilities = self.expectations(weights)
        if keep:
            self._kept_weights, self._probabilities = np.array(weights), probabilities
        value = self.n_rows * log_partition - dot(self.observed, weights)
        return value, self.n_rows * probabilities - self.observed

    def product(self, direction: Floats) -> Floats:
        """Return the product of the Hessian with a vector, at the weights that were kept."""
        size = float(np.abs(direction).max(initial=0.0))
        if size == 0.0:
            return np.zeros_like(direction)
        step = _SPAN / size * direction
        ahead, behind = (self.expectations(self._kept_weights + move)[1] for move in (step, -step))
        return (ahead - behind) * (self.n_rows * size / (2 * _SPAN))

    def diagonal(self) -> Floats:
        """Return the diagonal of the Hessian at the weights that were kept."""
        return self.n_rows * self._probabilities * (1 - self._probabilities)

    def hessian(self) -> Floats:
        """Return the whole Hessian at the weights that were kept: a product for each feature."""
        columns = [self.product(unit) for unit in np.eye(self.n_features)]
        matrix = np.array(columns).reshape(self.n_features, self.n_features)
        return 0.5 * (matrix + matrix.T)

    def tallies(self) -> tuple[Floats, Floats]:
        """Return, for each feature, in how many rows it could be true or false, and in how many it was."""
        _, probabilities = self.expectations(np.zeros(self.n_features))
        could = np.where((probabilities > 0) & (probabilities < 1 - 1e-12), float(self.n_rows), 0.0)
        return could, self.observed

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Do nothing: messages are passed in one thread."""
        yield

    @property
    def hessian_work(self) -> float:
        """About how many steps the whole Hessian takes: two passes for each feature."""
        return 2.0 * self.n_features * self.work

    @cached_property
    def work(self) -> float:
        """About how many steps one pass takes: twice over the cells of each feature, and over all cells."""
        wiring, cells = self._wiring, np.diff(self._forest.cell_start)
        lengths = np.diff(wiring.start)
        feature = np.repeat(np.arange(len(lengths)), lengths)
        levels = wiring.clique_levels[wiring.clique_start[wiring.home[feature]] + wiring.axis]
        shares = np.where(wiring.equal, 1.0, levels - 1.0) / levels
        held = np.exp(np.bincount(feature, weights=np.log(shares), minlength=len(lengths)))
        return _STEPS_PER_CELL * float(cells.sum()) + 2.0 * float((held * cells[wiring.home]).sum())

    def expectations(self, weights: Floats) -> tuple[float, Floats]:
        """Return the log partition function and the probability of each feature."""
        given = np.asarray(weights, dtype=np.float64)
        constants = np.bincount(
            self._branch, weights=given[self._always], minlength=len(self._forest.branch_level)
        )
        # Of nothing numpy counts whole numbers, and numba would compile once more for those.
        forest = self._forest._replace(branch_constant=constants.astype(np.float64))
        tables = fill(forest, self._wiring, given[self._placed])
        nothing = np.full(len(self._engine.n_levels), -1)
        message, log_sums, log_branch, active = pass_up(forest, tables, nothing, self._work)
        share = np.empty(len(forest.gate))
        inner, marginals = np.empty(self._engine.n_inner), np.empty(int(self._engine.slots[-1]))
        down = (self._work, message, log_sums, log_branch, active, share, inner, marginals)
        interruptible_kernel(lambda: spread(forest, *down), STEPS_OF_A_CELL * len(self._work))
        return float(log_sums[-1]), self._gather(log_sums, log_branch, share)

    def _gather(self, log_sums: Floats, log_branch: Floats, share: Floats) -> Floats:
        forest = self._forest
        for empty in np.flatnonzero(share == 0.0).tolist():
            # Messages do not go down to where nothing is left to share out.
            first, last = forest.cell_start[forest.node_start[empty : empty + 2]]
            self._work[first:last] = 0.0
        sums = np.empty(len(self._placed))
        given = (self._wiring, forest.cell_start, forest.n_low, self._work, sums)
        interruptible_kernel(lambda: sum_holding(*given), self.work)
        node = np.repeat(np.arange(len(share)), np.diff(forest.branch_start))
        branches = share[node] * np.exp(log_branch - log_sums[node])
        which = np.concatenate([self._placed, self._always])
        probabilities = np.concatenate([sums, branches[self._branch]])
        return np.asarray(np.bincount(which, weights=probabilities, minlength=self.n_features), np.float64)

    def _check_memory(self, max_memory: int | str | None) -> None:
        cells = self._engine.cost.cells
        work = f"A likelihood needs exact inference, here with tables of {cells:.3g} cells, about"
        way_out = "use objective='pseudo', or raise max_memory="
        check_need(BYTES_PER_CELL * cells, parse_memory(max_memory), work, way_out)

    def _check_steps(self) -> None:
        if self.work > MAX_STEPS:
            raise TooLarge(
                f"A likelihood needs exact inference, here with about {self.work:.3g} steps for each of many "
                f"passes, more than the {MAX_STEPS:.3g} that are cheap; use objective='pseudo'."
            )
