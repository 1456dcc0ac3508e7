"""The conditional of every variable given the others, over the cases that a table shows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.inference.cases import Call, Counts, lay_out_cases, lay_out_slots, list_slots, short_calls
from unless.inference.fit_report import Measure
from unless.kernels.cases import Cases, Conditions, Slots
from unless.kernels.pseudo_likelihood import DIAGONAL, PRODUCT, VALUE, sweep
from unless.runtime.memory import parse_memory
from unless.runtime.progress import Look, unseen
from unless.structures.conditions import FeatureArrays

Floats = npt.NDArray[np.float64]
# Below this many steps a pass takes less time than waking a thread.
_WORTH_SHARING = 500_000
# Steps in one call of a kernel: some tens of milliseconds, after which Ctrl-C is heard.
_AT_ONCE = 15_000_000
# Rows of a matrix of thousands that numpy turns at once.
_ROWS_AT_ONCE = 256
_STEPS_OF_A_LOOK, _STEPS_OF_A_CHANCE = 4, 8
_NOTHING = np.empty(0)


def mirror(matrix: Floats) -> None:
    """Write the lower triangle of a matrix over the upper one, some rows after another."""
    for begin in range(0, len(matrix), _ROWS_AT_ONCE):
        end = begin + _ROWS_AT_ONCE
        corner = matrix[begin:end, begin:end]
        corner[:] = np.tril(corner) + np.tril(corner, -1).T
        matrix[begin:end, end:] = matrix[end:, begin:end].T


@dataclass
class Conditionals:
    """Sums over all rows of log P(x_v | the other variables), for any weights of a set of features.

    Bit for bit the same whatever the number of threads: each variable is one thread's alone, and what
    variables say of one feature is added up in their order.
    """

    measure: ClassVar[Measure] = "pseudo_log_likelihood"

    conditions: Conditions
    cases: Cases
    slots: Slots
    n_jobs: int | None = None
    _chances: Floats = field(default_factory=lambda: _NOTHING)
    _pool: Any = None

    @property
    def n_features(self) -> int:
        """The number of features, and so of weights."""
        return len(self.conditions.start) - 1

    @classmethod
    def of(
        cls,
        features: FeatureArrays,
        data: Dataset,
        *,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
        once: bool = False,
        look: Look = unseen,
        counts: Counts | None = None,
    ) -> "Conditionals":
        """Lay out features over a table of their domain; `once` saves the lists that only pay when reused.

        `counts` are used in place of those of the table; they need not be whole numbers.
        """
        # Copies, because numba would compile once more for arrays that cannot be written.
        conditions = Conditions(*map(np.array, features))
        max_bytes = parse_memory(max_memory)
        slots = lay_out_slots(features, data.n_variables)
        cases, left = lay_out_cases(features, data, slots, max_bytes, look, counts)
        made = cls(conditions, cases, slots, n_jobs)
        made.slots = list_slots(conditions, cases, slots, 0 if once else left)
        return made

    def losses(self, weights: Floats, look: Look = unseen) -> Floats:
        """Return, for each variable, minus the sum of the logs of its conditional probabilities."""
        return self._sweep(VALUE, weights, _NOTHING, look=look)

    def value_and_gradient(self, weights: Floats, keep: bool = False) -> tuple[float, Floats]:
        """Return the loss of all variables and its gradient; `keep` remembers the probabilities."""
        if keep and not len(self._chances):
            self._chances = np.empty(int(self._kept[-1]))
        sums = np.zeros(len(self.slots.feature))
        losses = self._sweep(VALUE, weights, sums, self._chances if keep else _NOTHING)
        return float(losses.sum()), self._by_feature(sums)

    def product(self, direction: Floats) -> Floats:
        """Return the product of the Hessian with a vector, at the weights that were kept."""
        sums = np.zeros(len(self.slots.feature))
        self._sweep(PRODUCT, direction, sums, self._chances)
        return self._by_feature(sums)

    def diagonal(self) -> Floats:
        """Return the diagonal of the Hessian at the weights that were kept, or a little more."""
        sums = np.zeros(len(self.slots.feature))
        self._sweep(DIAGONAL, np.zeros(self.n_features), sums, self._chances)
        return self._by_feature(sums)

    def hessian(self, step: Callable[[], object] = lambda: None) -> Floats:
        """Return the whole Hessian at the weights that were kept; `step` is called after each variable."""
        from unless.kernels.curvature import add_hessian

        matrix = np.zeros((self.n_features, self.n_features))
        layout = (self._kept, self._chances, self.conditions, self.cases, self.slots, matrix)
        n_blocks = -(-np.diff(self.cases.start) // self.cases.block)
        steps = self._entering**2 / np.maximum(np.diff(self.cases.start), 1)
        for v, last in enumerate(n_blocks.tolist()):
            at_once = max(1, int(last * _AT_ONCE / max(steps[v], 1.0)))
            for begin in range(0, last, at_once):
                add_hessian(v, begin, begin + at_once, *layout)
            step()
        mirror(matrix)
        return matrix

    def tallies(self) -> tuple[Floats, Floats]:
        """Return, for each feature, how often it could be true or false, and how often it then was true.

        A row counts once for each variable that alone decides there, as in the pseudo-likelihood.
        """
        self.value_and_gradient(np.zeros(self.n_features), keep=True)
        excess, spread = np.zeros(len(self.slots.feature)), np.zeros(len(self.slots.feature))
        nothing = np.zeros(self.n_features)
        self._sweep(VALUE, nothing, excess)
        self._sweep(DIAGONAL, nothing, spread, self._chances)
        levels = np.repeat(self.cases.n_levels, np.diff(self.slots.start)).astype(np.float64)
        told = (self.slots.high - self.slots.low).astype(np.float64)
        # At zero weights all levels are equally likely, so that both sums are known multiples of the rows.
        columns = np.where(levels == 2, 1.0, told)
        rows = spread / np.maximum(columns * (1 - 1 / levels) / levels, 1e-300)
        share = np.where(self.conditions.equal[self.slots.low], 1.0, levels - told) / levels
        return self._by_feature(rows), self._by_feature(np.where(levels > 1, rows * share - excess, 0.0))

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Keep the threads alive between passes."""
        from joblib import Parallel, effective_n_jobs

        n_workers = min(effective_n_jobs(self.n_jobs), len(self.cases.n_levels))
        if n_workers == 1 or self.work < _WORTH_SHARING:
            yield
            return
        # Passes write into shared arrays, which only threads can.
        with Parallel(n_jobs=n_workers, require="sharedmem") as pool:
            self._pool = pool
            try:
                yield
            finally:
                self._pool = None

    @property
    def work(self) -> int:
        """About how many steps one pass takes."""
        return int(self._entering.sum()) + int(self.cases.start[-1])

    @property
    def hessian_work(self) -> int:
        """About how many steps the whole Hessian takes: in each case, all pairs of features that enter."""
        return int((self._entering**2 / np.maximum(np.diff(self.cases.start), 1)).sum())

    @cached_property
    def _entering(self) -> Floats:
        """About how many times, for each variable, a feature enters a case."""
        n_cases, n_slots = np.diff(self.cases.start), np.diff(self.slots.start)
        listed = np.diff(self.slots.bounds[self.slots.lists])
        owner = np.repeat(np.arange(len(n_cases)), n_slots)
        dense = np.bincount(owner, weights=~self.slots.listed, minlength=len(n_cases))
        return np.asarray(listed + dense * n_cases / 2)

    def _by_feature(self, sums: Floats) -> Floats:
        return np.asarray(
            np.bincount(self.slots.feature, weights=sums, minlength=self.n_features), np.float64
        )

    @cached_property
    def _kept(self) -> npt.NDArray[np.int64]:
        levels = self.cases.n_levels
        columns = np.where(levels == 2, 1, levels)
        return np.concatenate([[0], np.cumsum(np.diff(self.cases.start) * columns)])

    def _sweep(
        self, mode: int, weights: Floats, sums: Floats, chances: Floats = _NOTHING, look: Look = unseen
    ) -> Floats:
        values = np.zeros(len(self.cases.n_levels))
        layout = (self.conditions, self.cases, self.slots)
        given = np.array(weights, dtype=np.float64)
        self._each(lambda call: sweep(mode, *call, given, self._kept, chances, *layout, values, sums), look)
        return values

    @cached_property
    def _short_calls(self) -> list[list[Call]]:
        """What one call after the other takes, so that Ctrl-C is heard between them."""
        cases, n_cases = self.cases, np.diff(self.cases.start)
        # A list that is empty costs a look, a chance an exponential.
        looks, chances = np.diff(self.slots.lists), n_cases * cases.n_levels
        steps = self._entering + _STEPS_OF_A_LOOK * looks + _STEPS_OF_A_CHANCE * chances
        return short_calls(steps, -(-n_cases // cases.block), _AT_ONCE)

    def _each(self, make: Callable[[Call], object], look: Look) -> None:
        """Make all calls of a pass, in threads those of each variable apart."""
        if self._pool is None:
            for place, calls in enumerate(self._short_calls):
                for call in calls:
                    make(call)
                look((place + 1) / len(self._short_calls))
            return
        from joblib import delayed

        def make_all(calls: list[Call]) -> None:
            for call in calls:
                make(call)

        self._pool(delayed(make_all)(calls) for calls in self._calls_by_variable)

    @cached_property
    def _calls_by_variable(self) -> list[list[Call]]:
        """The same for single variables, which threads share out."""
        apart = []
        for calls in self._short_calls:
            together = calls[0].variables
            apart += [calls] if len(together) == 1 else [[Call(v, *calls[0][1:])] for v in together[:, None]]
        return apart
