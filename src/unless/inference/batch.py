"""Answers for whole tables: a target predicted, or holes filled, row by row; like rows are answered once."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.domain import Code, Domain, shorten
from unless.errors import ImpossibleEvidence
from unless.inference.cells import HOLE, Cells, read_cells, with_levels
from unless.inference.exact import ExactEngine
from unless.inference.frames import values
from unless.inference.gibbs import chosen
from unless.inference.model import LogLinearModel
from unless.kernels.potentials import log_potentials
from unless.structures.conditions import FeatureArrays
from unless.structures.distinct import distinct_rows

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
# Hidden variables with at most this many joint states are summed over as they are.
MAX_STATES = 4_096
# Cells of the table of states that is made at once.
_MOST_AT_ONCE = 2**24
# Sums of the same weights in another order are the same but for this.
_ROUNDING = 1e-9


def predict_proba(model: LogLinearModel, table: object, target: str) -> Floats:
    """Return, for each row, the probabilities of the levels of a target given all else the row shows.

    What a row does not show, holes or columns the table has not, is summed over.
    """
    position = model.domain.index(target)
    cells = read_cells(model.domain, table)
    cells[:, position] = HOLE
    return hidden_marginals(model, cells, position)


def hidden_marginals(model: LogLinearModel, cells: Cells, position: int) -> Floats:
    """Return, for each row, the probabilities of the levels of a variable that all rows hide."""
    answers = np.empty((len(cells), int(model.domain.n_levels[position])))
    for rows, hidden in _patterns(cells == HOLE):
        part = _part_of(model, hidden, position)
        answers[rows] = part.each(cells, rows, partial(part.marginals, position))
    return answers


def predict(model: LogLinearModel, table: object, target: str) -> npt.NDArray[Any]:
    """Return, for each row, the most probable level of a target; of equals the first."""
    best = _first_best(predict_proba(model, table, target))
    return values(model.domain[target], best.astype(Code))


def impute(model: LogLinearModel, table: object) -> Any:
    """Return a copy of a table whose holes hold their most probable values given the rest of the row.

    The holes of a row are filled together, by their joint mode; of equals by the first level.
    """
    cells = read_cells(model.domain, table)
    filled = fill_cells(model, cells)
    changes = {}
    for position, variable in enumerate(model.domain):
        rows = np.flatnonzero(cells[:, position] == HOLE)
        if len(rows):
            changes[variable.name] = rows, filled[rows, position]
    return with_levels(table, model.domain, changes)


def fill_cells(model: LogLinearModel, cells: Cells) -> Cells:
    """Replace the holes of each row by their most probable codes given the rest of the row."""
    filled = cells.copy()
    for rows, hidden in _patterns(cells == HOLE):
        for position in np.flatnonzero(hidden).tolist():
            if filled[rows[0], position] == HOLE:
                part = _part_of(model, hidden, position)
                filled[np.ix_(rows, part.hidden)] = part.each(cells, rows, part.most_probable)
    return filled


class _Part(NamedTuple):
    """Hidden variables that depend on each other, the shown ones they depend on, and their features."""

    domain: Domain
    hidden: Cells  # positions in the domain
    shown: Cells
    arrays: FeatureArrays
    weights: Floats

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of levels of the hidden variables."""
        return tuple(int(size) for size in self.domain.n_levels[self.hidden])

    @property
    def n_states(self) -> float:
        """The number of joint states of the hidden variables."""
        return float(np.prod(self.shape, dtype=np.float64))

    def each(self, cells: Cells, rows: Cells, answer: Callable[[Cells], Floats]) -> Floats:
        """Answer every distinct assignment of the shown variables once; the others are holes to it."""
        distinct, place = _distinct(cells[np.ix_(rows, self.shown)])
        asked = np.full((len(distinct), len(self.domain)), HOLE)
        asked[:, self.shown] = distinct
        at_once = max(1, int(_MOST_AT_ONCE // (min(self.n_states, MAX_STATES) * len(self.domain))))
        parts = [answer(asked[low : low + at_once]) for low in range(0, len(asked), at_once)]
        answers = np.concatenate(parts)
        impossible = np.asarray(np.isnan(answers).any(axis=1))[place]
        if impossible.any():
            raise ImpossibleEvidence(
                f"The model gives what row {int(rows[impossible][0]) + 1:,} shows probability zero, so "
                f"nothing follows for {shorten(self.domain.names[v] for v in self.hidden)}; correct "
                "the row or leave it out."
            )
        return np.asarray(answers[place])

    def marginals(self, position: int, rows: Cells) -> Floats:
        """Return the distribution of a hidden variable in each row; not a number where it has none."""
        if self.n_states > MAX_STATES:
            return self._exact_marginals(position, rows)
        potentials = self._potentials(rows)
        tops = potentials.max(axis=tuple(range(1, potentials.ndim)), keepdims=True)
        others = tuple(axis + 1 for axis, variable in enumerate(self.hidden) if variable != position)
        with np.errstate(invalid="ignore"):
            sums = np.exp(potentials - tops).sum(axis=others)
        return np.asarray(sums / sums.sum(axis=1, keepdims=True))

    def most_probable(self, rows: Cells) -> Floats:
        """Return the most probable codes of the hidden variables in each row; not numbers where none are."""
        if self.n_states > MAX_STATES:
            return self._exact_best(rows)
        potentials = self._potentials(rows).reshape(len(rows), -1)
        best = np.column_stack(np.unravel_index(_first_best(potentials), self.shape)).astype(np.float64)
        best[np.isneginf(potentials.max(axis=1))] = np.nan
        return best

    def _potentials(self, rows: Cells) -> Floats:
        """Return the log potentials of all hidden states in each row, one axis per hidden variable."""
        states = np.indices(self.shape).reshape(len(self.hidden), -1).T
        every = np.repeat(rows.astype(Code), len(states), axis=0)
        every[:, self.hidden] = np.tile(states, (len(rows), 1))
        # Copies, because numba would compile once more for arrays that cannot be written.
        sums = log_potentials(every, *map(np.array, (*self.arrays, self.weights)))
        return np.asarray(sums).reshape(len(rows), *self.shape)

    def _engine(self) -> ExactEngine:
        engine = ExactEngine(self.arrays, self.weights, self.domain.n_levels)
        engine.check()
        return engine

    def _exact_marginals(self, position: int, rows: Cells) -> Floats:
        engine = self._engine()
        logs, answers = engine.posteriors(rows)
        marginals = answers[:, engine.slots[position] : engine.slots[position + 1]]
        return np.where(np.isneginf(logs)[:, None], np.nan, marginals)

    def _exact_best(self, rows: Cells) -> Floats:
        logs, states = self._engine().most_probable(rows)
        return np.where(np.isneginf(logs)[:, None], np.nan, states[:, self.hidden])


def _distinct(rows: Cells) -> tuple[Cells, npt.NDArray[np.intp]]:
    """Return the distinct rows, one even where they have no columns, and where each row is among them."""
    if rows.shape[1]:
        return distinct_rows(rows)
    return rows[:1], np.zeros(len(rows), dtype=np.intp)


def _patterns(holes: Bools) -> Iterator[tuple[Cells, Bools]]:
    """Give each pattern of holes with the rows that show it."""
    distinct, place = distinct_rows(holes)
    order = np.argsort(place, kind="stable")
    ends = np.cumsum(np.bincount(place, minlength=len(distinct)))
    return zip(np.split(order, ends[:-1]), distinct, strict=False)


def _part_of(model: LogLinearModel, hidden: Bools, position: int) -> _Part:
    """Return what a hidden variable hangs on: the rest of the row is cut off from it by what is shown."""
    arrays, weights = model.plain
    feature = np.repeat(np.arange(len(weights)), np.diff(arrays.start))
    members = np.zeros(len(hidden), dtype=np.bool_)
    reached = members.copy()
    reached[position] = True
    while (reached & hidden != members).any():
        members = reached & hidden
        told = np.bincount(feature, weights=members[arrays.variable], minlength=len(weights)) > 0
        reached[arrays.variable[told[feature]]] = True
    told = np.bincount(feature, weights=members[arrays.variable], minlength=len(weights)) > 0
    shown = np.flatnonzero(reached & ~hidden)
    return _Part(model.domain, np.flatnonzero(members), shown, chosen(arrays, told), weights[told])


def _first_best(scores: Floats) -> npt.NDArray[np.intp]:
    """Return the first of the best in each row, whatever rounding says of equals."""
    tops = scores.max(axis=1, keepdims=True)
    return np.asarray(np.argmax(scores >= np.where(np.isfinite(tops), tops - _ROUNDING, tops), axis=1))
