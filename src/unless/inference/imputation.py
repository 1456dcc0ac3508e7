"""Answers for whole tables: a target predicted, or holes filled, row by row; like rows are answered once.

Given what a row shows, its hidden variables fall into parts that hang together; the law of the joint states
of each part is all that is needed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import distinct_rows
from unless.data.domain import Code, Domain, shorten
from unless.errors import ImpossibleEvidence
from unless.inference.exact import ExactSolver
from unless.inference.frames import values
from unless.inference.potentials import sums_of_weights
from unless.inference.tables import HOLE, Cells, read_cells, with_levels
from unless.runtime.memory import Memory
from unless.runtime.progress import Look, Show, showing_share, unseen, within
from unless.structures.structure import CodedCondition, FeatureArrays
from unless.typing import Bools, Floats

if TYPE_CHECKING:
    from unless.inference.model import LogLinearModel

# Hidden variables with at most this many joint states are summed over as they are.
MAX_STATES = 4_096
# Numbers of a table of states, or of features, that is made at once.
_MOST_AT_ONCE = 2**22
MAX_AXES = 30
# For fewer states than this, laying out tables takes longer than going through the features.
_WORTH_TABLES = 8_192
# Sums of the same weights in another order are the same but for this.
_ROUNDING = 1e-9


@dataclass(eq=False)
class HiddenPart:
    """Hidden variables that depend on each other, the shown ones they depend on, and their features."""

    domain: Domain
    hidden: Cells  # positions in the domain
    shown: Cells
    arrays: FeatureArrays
    weights: Floats
    max_memory: Memory = None

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The numbers of levels of the hidden variables."""
        return tuple(int(size) for size in self.domain.n_levels[self.hidden])

    @cached_property
    def n_states(self) -> float:
        """The number of joint states of the hidden variables."""
        return float(np.prod(self.shape, dtype=np.float64))

    @property
    def is_small(self) -> bool:
        """Whether all joint states are gone through; numpy has no more axes than this."""
        return self.n_states <= MAX_STATES and len(self.hidden) <= MAX_AXES

    @cached_property
    def columns(self) -> dict[int, slice]:
        """Where the levels of each hidden variable are among the marginals."""
        ends = np.cumsum([0, *self.shape]).tolist()
        spans = (slice(*span) for span in pairwise(ends))
        return dict(zip(self.hidden.tolist(), spans, strict=True))

    def each(
        self, cells: Cells, rows: Cells, answer: Callable[[Cells, Look], Floats], look: Look = unseen
    ) -> Floats:
        """Answer every distinct assignment of the shown variables once; the others are holes to it."""
        distinct, place = _distinct(cells[np.ix_(rows, self.shown)])
        asked = np.full((len(distinct), len(self.domain)), HOLE)
        asked[:, self.shown] = distinct
        widest = max(min(self.n_states, MAX_STATES), len(self.arrays.variable), len(self.domain))
        at_once = max(1, int(_MOST_AT_ONCE // widest))
        parts = []
        for low in range(0, len(asked), at_once):
            high = min(low + at_once, len(asked))
            parts.append(answer(asked[low:high], within(look, low / len(asked), high / len(asked))))
            look(high / len(asked))
        answers = np.concatenate(parts)
        impossible = np.asarray(np.isnan(answers).any(axis=1))[place]
        if impossible.any():
            raise nothing_follows(int(rows[impossible][0]), (self.domain.names[v] for v in self.hidden))
        return np.asarray(answers[place])

    def marginals(self, rows: Cells, look: Look = unseen) -> Floats:
        """Return the distributions of the hidden variables, side by side; not numbers where none are."""
        if not self.is_small:
            logs, answers = self._engine.posteriors(rows, look=look)
            slots = self._engine.slots
            columns = np.concatenate([np.arange(slots[v], slots[v + 1]) for v in self.hidden])
            return np.where(np.isneginf(logs)[:, None], np.nan, answers[:, columns])
        potentials = self._potentials(rows)
        every = tuple(range(1, potentials.ndim))
        with np.errstate(invalid="ignore"):
            potentials -= potentials.max(axis=every, keepdims=True)
            probabilities = np.exp(potentials, out=potentials)
            probabilities /= probabilities.sum(axis=every, keepdims=True)
        return np.concatenate(
            [probabilities.sum(axis=tuple(axis for axis in every if axis != one)) for one in every], axis=1
        )

    def most_probable(self, rows: Cells, look: Look = unseen) -> Floats:
        """Return the most probable codes of the hidden variables in each row; not numbers where none are."""
        if not self.is_small:
            logs, states = self._engine.most_probable(rows, look)
            return np.where(np.isneginf(logs)[:, None], np.nan, states[:, self.hidden])
        potentials = self._potentials(rows).reshape(len(rows), -1)
        best = np.column_stack(np.unravel_index(first_best(potentials), self.shape)).astype(np.float64)
        best[np.isneginf(potentials.max(axis=1))] = np.nan
        return best

    def _potentials(self, rows: Cells) -> Floats:
        """Return the log potentials of all hidden states in each row, one axis per hidden variable."""
        if len(rows) * self.n_states >= _WORTH_TABLES:
            return self._added_up(rows)
        states = np.indices(self.shape).reshape(len(self.hidden), -1).T
        every = np.repeat(rows.astype(Code), len(states), axis=0)
        every[:, self.hidden] = np.tile(states, (len(rows), 1))
        return sums_of_weights(every, self.arrays, self.weights).reshape(len(rows), *self.shape)

    def _added_up(self, rows: Cells) -> Floats:
        """Add up, scope by scope, the weights of the features that fit what the rows show."""
        weights = self._weights_given(rows)
        sums = np.zeros((len(rows), *self.shape))
        for axes, features in self._scopes.items():
            table = np.zeros((len(rows), *(self.shape[axis] for axis in axes)))
            for feature, cells in features:
                table[(slice(None), *cells)] += weights[:, feature].reshape(-1, *(1,) * len(axes))
            spread = [size if axis in axes else 1 for axis, size in enumerate(self.shape)]
            sums += table.reshape(-1, *spread)
        return sums

    def _weights_given(self, rows: Cells) -> Floats:
        """Return, for each row and feature, its weight where all that it says of shown variables is so."""
        feature = self.arrays.owner
        told = ~np.isin(self.arrays.variable, self.hidden)
        fits = (rows[:, self.arrays.variable[told]] == self.arrays.level[told]) == self.arrays.equal[told]
        holds = np.ones((len(rows), len(self.weights)), dtype=np.bool_)
        first = np.flatnonzero(np.diff(feature[told], prepend=-1))
        if len(first):
            holds[:, feature[told][first]] = np.logical_and.reduceat(fits, first, axis=1)
        return np.where(holds, self.weights, 0.0)

    @cached_property
    def _scopes(self) -> dict[tuple[int, ...], list[tuple[int, Any]]]:
        """Give, for each set of hidden axes, the features that speak of it and the cells each holds in."""
        axis_of = {variable: axis for axis, variable in enumerate(self.hidden.tolist())}
        scopes: dict[tuple[int, ...], list[tuple[int, Any]]] = {}
        for feature, literals in enumerate(self.arrays.literals()):
            fits: dict[int, list[CodedCondition]] = {}
            for literal in literals:
                if literal[0] in axis_of:
                    fits.setdefault(axis_of[literal[0]], []).append(literal)
            levels = [
                [
                    code
                    for code in range(self.shape[axis])
                    if all((code == level) == equal for _, level, equal in fits[axis])
                ]
                for axis in sorted(fits)
            ]
            scopes.setdefault(tuple(sorted(fits)), []).append((feature, np.ix_(*levels)))
        return scopes

    @cached_property
    def _engine(self) -> ExactSolver:
        engine = ExactSolver(self.arrays, self.weights, self.domain.n_levels)
        engine.check(self.max_memory, "show more of the row, or raise max_memory=")
        return engine


def patterns(holes: Bools) -> Iterator[tuple[Cells, Bools]]:
    """Give each pattern of holes with the rows that show it."""
    distinct, place = distinct_rows(holes)
    order = np.argsort(place, kind="stable")
    ends = np.cumsum(np.bincount(place, minlength=len(distinct)))
    return zip(np.split(order, ends[:-1]), distinct, strict=False)


def parts_of(
    model: "LogLinearModel", hidden: Bools, positions: Iterable[int], max_memory: Memory = None
) -> Iterator[HiddenPart]:
    """Give, each once, the parts that some hidden variables are in."""
    done = np.zeros(len(hidden), dtype=np.bool_)
    for position in positions:
        if not done[position]:
            part = _part_of(model, hidden, position, max_memory)
            done[part.hidden] = True
            yield part


def _part_of(model: "LogLinearModel", hidden: Bools, position: int, max_memory: Memory) -> HiddenPart:
    """Return what a hidden variable hangs on: the rest of the row is cut off from it by what is shown."""
    arrays, weights = model.plain
    members = np.zeros(len(hidden), dtype=np.bool_)
    reached = members.copy()
    reached[position] = True
    while (reached & hidden != members).any():
        members = reached & hidden
        told = arrays.with_any(members[arrays.variable])
        reached[arrays.take(told).variable] = True
    told = arrays.with_any(members[arrays.variable])
    shown = np.flatnonzero(reached & ~hidden)
    return HiddenPart(
        model.domain, np.flatnonzero(members), shown, arrays.take(told), weights[told], max_memory
    )


def refuse_forbidden(model: "LogLinearModel", cells: Cells, rows: Cells, hidden: Bools) -> list[int]:
    """Refuse rows that show what a weight of -inf forbids; returns the hidden variables of such features."""
    arrays, weights = model.plain
    forbidden = arrays.take(np.isneginf(weights))
    if not len(forbidden.variable):
        return []
    open_ones = forbidden.with_any(hidden[forbidden.variable])
    shown = forbidden.take(~open_ones)
    counts = sums_of_weights(cells[rows].astype(Code), shown, np.ones(int((~open_ones).sum())))
    if counts.any():
        names = (model.domain.names[v] for v in np.flatnonzero(hidden))
        raise nothing_follows(int(rows[np.argmax(counts > 0)]), names)
    mentioned = np.unique(forbidden.take(open_ones).variable)
    return [int(variable) for variable in mentioned if hidden[variable]]


def nothing_follows(row: int, names: Iterable[str]) -> ImpossibleEvidence:
    """Say that a row, counted from 0, is impossible."""
    return ImpossibleEvidence(
        f"The model gives what row {row + 1:,} shows probability zero, so nothing follows for "
        f"{shorten(names)}; correct the row or leave it out."
    )


def first_best(scores: Floats) -> npt.NDArray[np.intp]:
    """Return the first of the best in each row, whatever rounding says of equals."""
    tops = scores.max(axis=1, keepdims=True)
    return np.asarray(np.argmax(scores >= np.where(np.isfinite(tops), tops - _ROUNDING, tops), axis=1))


def _distinct(rows: Cells) -> tuple[Cells, npt.NDArray[np.intp]]:
    """Return the distinct rows, one even where they have no columns, and where each row is among them."""
    if rows.shape[1]:
        return distinct_rows(rows)
    return rows[:1], np.zeros(len(rows), dtype=np.intp)


def predict_proba(
    model: "LogLinearModel", table: object, target: str, max_memory: Memory = None, show_progress: Show = None
) -> Floats:
    """Return, for each row, the probabilities of the levels of a target given all else the row shows.

    What a row does not show, holes or columns the table has not, is summed over.
    """
    position = model.domain.index(target)
    cells = read_cells(model.domain, table, show_progress)
    cells[:, position] = HOLE
    with showing_share("Predicting", show_progress, "rows") as look:
        return hidden_marginals(model, cells, [position], max_memory, look)[0]


def hidden_marginals(
    model: "LogLinearModel",
    cells: Cells,
    positions: Sequence[int],
    max_memory: Memory = None,
    look: Look = unseen,
) -> list[Floats]:
    """Return, for each of some variables that all rows hide, the probabilities of its levels in each row."""
    answers = [np.empty((len(cells), int(model.domain.n_levels[position]))) for position in positions]
    n_done = 0
    for rows, hidden in patterns(cells == HOLE):
        # A row may be impossible for reasons that the variables asked about have no part in.
        doubtful = refuse_forbidden(model, cells, rows, hidden)
        parts = list(parts_of(model, hidden, [*positions, *doubtful], max_memory))
        for told, part in _in_turn(parts, cells, look, n_done, rows):
            found = part.each(cells, rows, part.marginals, told)
            for answer, position in zip(answers, positions, strict=True):
                if position in part.columns:
                    answer[rows] = found[:, part.columns[position]]
        n_done += len(rows)
    return answers


def predict(
    model: "LogLinearModel", table: object, target: str, max_memory: Memory = None, show_progress: Show = None
) -> npt.NDArray[Any]:
    """Return, for each row, the most probable level of a target; of equals the first."""
    best = first_best(predict_proba(model, table, target, max_memory, show_progress))
    return values(model.domain[target], best.astype(Code))


def impute(
    model: "LogLinearModel", table: object, max_memory: Memory = None, show_progress: Show = None
) -> Any:
    """Return a copy of a table whose holes hold their most probable values given the rest of the row.

    The holes of a row are filled together, by their joint mode; of equals by the first level.
    """
    cells = read_cells(model.domain, table, show_progress)
    with showing_share("Imputing", show_progress, "rows") as look:
        filled = fill_cells(model, cells, max_memory=max_memory, look=look)
    changes = {}
    for position, variable in enumerate(model.domain):
        rows = np.flatnonzero(cells[:, position] == HOLE)
        if len(rows):
            changes[variable.name] = rows, filled[rows, position]
    return with_levels(table, model.domain, changes)


def fill_cells(
    model: "LogLinearModel", cells: Cells, *, max_memory: Memory = None, look: Look = unseen
) -> Cells:
    """Replace the holes of each row by their most probable codes given the rest of the row."""
    filled = cells.copy()
    n_done = 0
    for rows, hidden in patterns(cells == HOLE):
        if hidden.any():
            refuse_forbidden(model, cells, rows, hidden)
        parts = list(parts_of(model, hidden, np.flatnonzero(hidden).tolist(), max_memory))
        for told, part in _in_turn(parts, cells, look, n_done, rows):
            filled[np.ix_(rows, part.hidden)] = part.each(cells, rows, part.most_probable, told)
        n_done += len(rows)
    return filled


def _in_turn(
    parts: list[HiddenPart], cells: Cells, look: Look, n_done: int, rows: Cells
) -> Iterator[tuple[Look, HiddenPart]]:
    """Give each part with what it tells its share of some rows; so many rows were done before.

    They are taken out: the tables of one go before those of the next are made.
    """
    n_parts = len(parts)
    share = len(rows) / max(1, n_parts)
    for number in range(n_parts):
        begin, end = n_done + number * share, n_done + (number + 1) * share
        yield within(look, begin / len(cells), end / len(cells)), parts.pop(0)
