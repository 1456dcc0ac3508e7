"""What hangs together given what a row shows: hidden variables, and the law of their joint states."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.domain import Code, Domain, shorten
from unless.errors import ImpossibleEvidence
from unless.inference.cells import HOLE, Cells
from unless.inference.exact import ExactEngine
from unless.inference.model import LogLinearModel, Memory
from unless.inference.sums import sums_of_weights
from unless.runtime.progress import Look, unseen, within
from unless.structures.conditions import FeatureArrays, Literal
from unless.structures.distinct import distinct_rows

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
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
class Part:
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
            return self._exact_marginals(rows, look)
        potentials = self._potentials(rows)
        every = tuple(range(1, potentials.ndim))
        with np.errstate(invalid="ignore"):
            potentials -= potentials.max(axis=every, keepdims=True)
            chances = np.exp(potentials, out=potentials)
            chances /= chances.sum(axis=every, keepdims=True)
        return np.concatenate(
            [chances.sum(axis=tuple(axis for axis in every if axis != one)) for one in every], axis=1
        )

    def most_probable(self, rows: Cells, look: Look = unseen) -> Floats:
        """Return the most probable codes of the hidden variables in each row; not numbers where none are."""
        if not self.is_small:
            return self._exact_best(rows, look)
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
        feature = np.repeat(np.arange(len(self.weights)), np.diff(self.arrays.start))
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
            fits: dict[int, list[Literal]] = {}
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
    def _engine(self) -> ExactEngine:
        engine = ExactEngine(self.arrays, self.weights, self.domain.n_levels)
        engine.check(self.max_memory, "show more of the row, or raise max_memory=")
        return engine

    def _exact_marginals(self, rows: Cells, look: Look) -> Floats:
        logs, answers = self._engine.posteriors(rows, look=look)
        slots = self._engine.slots
        columns = np.concatenate([np.arange(slots[v], slots[v + 1]) for v in self.hidden])
        return np.where(np.isneginf(logs)[:, None], np.nan, answers[:, columns])

    def _exact_best(self, rows: Cells, look: Look) -> Floats:
        logs, states = self._engine.most_probable(rows, look)
        return np.where(np.isneginf(logs)[:, None], np.nan, states[:, self.hidden])


def patterns(holes: Bools) -> Iterator[tuple[Cells, Bools]]:
    """Give each pattern of holes with the rows that show it."""
    distinct, place = distinct_rows(holes)
    order = np.argsort(place, kind="stable")
    ends = np.cumsum(np.bincount(place, minlength=len(distinct)))
    return zip(np.split(order, ends[:-1]), distinct, strict=False)


def parts_of(
    model: LogLinearModel, hidden: Bools, positions: Iterable[int], max_memory: Memory = None
) -> Iterator[Part]:
    """Give, each once, the parts that some hidden variables are in."""
    done = np.zeros(len(hidden), dtype=np.bool_)
    for position in positions:
        if not done[position]:
            part = _part_of(model, hidden, position, max_memory)
            done[part.hidden] = True
            yield part


def _part_of(model: LogLinearModel, hidden: Bools, position: int, max_memory: Memory) -> Part:
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
    return Part(model.domain, np.flatnonzero(members), shown, arrays.take(told), weights[told], max_memory)


def refuse_forbidden(model: LogLinearModel, cells: Cells, rows: Cells, hidden: Bools) -> list[int]:
    """Refuse rows that show what a weight of -inf forbids; returns the hidden variables of such features."""
    arrays, weights = model.plain
    forbidden = arrays.take(np.isneginf(weights))
    n_features = len(forbidden.start) - 1
    if not n_features:
        return []
    feature = np.repeat(np.arange(n_features), np.diff(forbidden.start))
    open_ones = np.bincount(feature, hidden[forbidden.variable], n_features) > 0
    shown = forbidden.take(~open_ones)
    counts = sums_of_weights(cells[rows].astype(Code), shown, np.ones(int((~open_ones).sum())))
    if counts.any():
        names = (model.domain.names[v] for v in np.flatnonzero(hidden))
        raise nothing_follows(int(rows[np.argmax(counts > 0)]), names)
    spoken = np.unique(forbidden.take(open_ones).variable)
    return [int(variable) for variable in spoken if hidden[variable]]


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
