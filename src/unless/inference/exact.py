"""Exact answers: gates are fixed level by level, and clique trees answer what is left.

Planned once per model and laid out once; a question under new evidence only passes messages.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.errors import TooLarge
from unless.inference.conditioning import PATIENCE, Branch, Conjunctions, Floats, Ints, Planner, Tree
from unless.inference.forest import STEPS_OF_A_CELL, Laid, Tables, fill, lay_out, reachable
from unless.kernels.trees import Forest, posteriors
from unless.runtime.interrupts import interruptible_kernel
from unless.runtime.memory import LEAST, parse_memory, show_memory
from unless.runtime.progress import Look, unseen, within
from unless.structures.conditions import FeatureArrays

# A cell is held as a log, scaled, and as work of the query under way.
BYTES_PER_CELL = 24
# Evidence answered in one call: bounds the memory of the answers.
ROWS_AT_ONCE = 4_096
# Cells that one call passes over, for all its evidence: about a tenth of a second.
_CELLS_AT_ONCE = 2**23


@dataclass(frozen=True)
class Cost:
    """What exact answers cost: cells of all tables, and the bytes they take."""

    cells: float
    n_trees: int
    n_gates: int

    @property
    def n_bytes(self) -> float:
        """The memory a query needs."""
        return BYTES_PER_CELL * self.cells


class ExactEngine:
    """Answers for one set of weighted features; weights may be -inf, not +inf.

    Evidence is a mapping from positions to codes; rows of evidence hold codes, and -1 where unknown.
    """

    def __init__(
        self, arrays: FeatureArrays, weights: Floats, n_levels: Ints, *, conditioning: bool = True
    ) -> None:
        self.n_levels = np.array(n_levels)
        self._planner = Planner(self.n_levels, conditioning)
        everything = np.arange(len(self.n_levels))
        self._top: Branch = self._planner.branch(
            -1, Conjunctions.of(arrays), np.array(weights), everything, PATIENCE
        )

    @cached_property
    def cost(self) -> Cost:
        """The estimate, known before any table is made."""
        nodes = [self._planner.nodes[node] for node in reachable(self._planner, self._top)]
        trees = [node for node in nodes if isinstance(node, Tree)]
        return Cost(sum(tree.cells for tree in trees), len(trees), len(nodes) - len(trees))

    def check(
        self, max_memory: int | str | None = None, way_out: str = "use fewer features or raise max_memory="
    ) -> None:
        """Refuse what would not fit, with the way out that the caller has."""
        limit = parse_memory(max_memory)
        if self.cost.n_bytes > limit:
            raise TooLarge(
                f"Exact inference needs tables of {self.cost.cells:.3g} cells, about "
                f"{show_memory(self.cost.n_bytes)}, more than the {show_memory(limit)} allowed; "
                f"{way_out}."
            )

    def fits(self, max_memory: int | str | None = None) -> bool:
        """Tell whether the tables fit into memory."""
        if max_memory is None and self.cost.n_bytes <= LEAST:
            # So much is always allowed, and asking the machine takes as long as a small answer.
            return True
        return self.cost.n_bytes <= parse_memory(max_memory)

    @cached_property
    def plan(self) -> Laid:
        """The plan as arrays, for any weights."""
        return lay_out(self._planner, self._top)

    @cached_property
    def laid_out(self) -> tuple[Forest, Tables]:
        """The arrays the kernels walk."""
        forest, wiring, weights, _ = self.plan
        return forest, fill(forest, wiring, weights)

    @cached_property
    def n_inner(self) -> int:
        """The largest number of states that one clique sums out."""
        forest = self.plan.forest
        rows = np.diff(forest.row_start)
        return int((np.diff(forest.cell_start) // np.maximum(rows, 1)).max(initial=1))

    def codes(self, evidence: Mapping[int, int]) -> Ints:
        """Write evidence as one row of codes."""
        row = np.full(len(self.n_levels), -1, dtype=np.int64)
        for position, code in evidence.items():
            row[position] = code
        return row

    def posteriors(
        self, evidence: npt.ArrayLike, *, marginals: bool = True, look: Look = unseen
    ) -> tuple[Floats, Floats]:
        """Return, for each row of evidence, the log partition function and all marginals side by side.

        The levels of variable v are the columns from `slots[v]` to `slots[v + 1]`. Where evidence is
        impossible the first is -inf and the second means nothing.
        """
        rows = np.ascontiguousarray(np.atleast_2d(np.asarray(evidence, dtype=np.int64)))
        _, tables = self.laid_out
        sums = np.empty(len(rows))
        answers = np.zeros((len(rows), int(self.n_levels.sum()) if marginals else 0))
        trusted = np.zeros(len(rows), dtype=np.bool_)
        if tables.scaled is not None:
            trusted = self._posteriors(rows, tables.scaled, False, sums, answers, look)
        again = np.flatnonzero(~trusted)
        if len(again):
            sums_again, answers_again = np.empty(len(again)), answers[again]
            self._posteriors(rows[again], tables.logs, True, sums_again, answers_again, look)
            sums[again], answers[again] = sums_again, answers_again
        return sums, answers

    def _posteriors(
        self, rows: Ints, base: Floats, in_logs: bool, sums: Floats, answers: Floats, look: Look
    ) -> npt.NDArray[np.bool_]:
        """Fill in some rows after another, so that Ctrl-C is heard; return where they can be trusted."""
        forest, tables = self.laid_out
        at_once = max(1, _CELLS_AT_ONCE // max(1, len(base)))
        trusted, room = np.zeros(len(rows), dtype=np.bool_), np.empty(len(base))

        def fill_in(some: slice) -> Any:
            given = (forest, base, tables.scales, in_logs, self.n_inner, room)
            return posteriors(rows[some], *given, sums[some], answers[some])

        for begin in range(0, len(rows), at_once):
            some = slice(begin, begin + at_once)
            trusted[some] = interruptible_kernel(partial(fill_in, some), STEPS_OF_A_CELL * len(base))
            look(min(1.0, some.stop / len(rows)))
        return trusted

    @cached_property
    def slots(self) -> Ints:
        """Where the levels of each variable begin among all marginals."""
        return np.append(0, np.cumsum(self.n_levels))

    def joint(
        self, variables: list[int], evidence: Mapping[int, int], look: Look = unseen
    ) -> tuple[float, Floats]:
        """Return the log partition function and the joint probabilities of variables, one axis for each.

        All but one variable are fixed in turn, and the marginal of that one is read off.
        """
        read = max(variables, key=lambda v: int(self.n_levels[v]))
        fixed = [v for v in variables if v != read]
        shape = [int(self.n_levels[v]) for v in fixed]
        n_states = int(np.prod(shape))
        logs, table = np.full(n_states, -np.inf), np.zeros((n_states, int(self.n_levels[read])))
        begin, end = self.slots[read], self.slots[read + 1]
        for first in range(0, n_states, ROWS_AT_ONCE):
            numbers = np.arange(first, min(first + ROWS_AT_ONCE, n_states))
            states = np.stack(np.unravel_index(numbers, shape), axis=1) if fixed else np.zeros((1, 0), int)
            rows = np.tile(self.codes(evidence), (len(numbers), 1))
            agrees = ((rows[:, fixed] < 0) | (rows[:, fixed] == states)).all(axis=1)
            rows[:, fixed] = states
            part = within(look, first / n_states, (first + len(numbers)) / n_states)
            sums, answers = self.posteriors(rows[agrees], look=part)
            logs[numbers[agrees]], table[numbers[agrees]] = sums, answers[:, begin:end]
        top = float(logs.max(initial=-np.inf))
        log_partition = top
        if top > -np.inf:
            # Logs are compared with each other before they meet probabilities, which they would swallow.
            shares = np.exp(logs - top)
            table = np.where(shares[:, None] > 0, table, 0.0) * (shares / shares.sum())[:, None]
            log_partition = top + float(np.log(shares.sum()))
        axes = [*fixed, read]
        return log_partition, np.transpose(
            table.reshape(*shape, -1), [axes.index(variable) for variable in variables]
        )

    def most_probable(self, evidence: npt.ArrayLike, look: Look = unseen) -> tuple[Floats, Ints]:
        """Return, for each row of evidence, the log potential and the codes of a most probable state.

        Where evidence is impossible the first is -inf and the second means nothing.
        """
        from unless.kernels.walks import most_probable

        rows = np.ascontiguousarray(np.atleast_2d(np.asarray(evidence, dtype=np.int64)))
        forest, tables = self.laid_out
        states = np.zeros_like(rows)
        n_steps = STEPS_OF_A_CELL * len(tables.logs)
        values = np.empty(len(rows))
        for place, (row, state) in enumerate(zip(rows, states, strict=True)):
            values[place] = interruptible_kernel(
                partial(most_probable, row, forest, tables.logs, state), n_steps
            )
            look((place + 1) / len(rows))
        return values, states
