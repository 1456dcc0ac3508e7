"""Rows with missing values, completed: every completion with its probability, or some that are drawn.

A completion of a row gives each of its missing values a level. Rows with few completions get all of them; a
row with more gets some that Gibbs sampling draws given what the row shows.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from unless.data.dataset import Rows
from unless.data.domain import Code, Domain
from unless.inference.imputation import patterns
from unless.inference.potentials import sums_of_weights
from unless.inference.randomness import RandomState, make_rng
from unless.inference.tables import HOLE, Cells
from unless.runtime.progress import Look, unseen
from unless.structures.structure import FeatureArrays
from unless.typing import Bools, Floats, Integers

if TYPE_CHECKING:
    from unless.inference.model import LogLinearModel

# A row with more completions than this is completed by draws.
MOST_STATES = 1_024
# Draws that complete such a row.
N_DRAWS = 32
# The most completed rows held at once, however much memory there is: each costs time, too.
MOST_ROWS = 2**20
# Sweeps of Gibbs sampling: before the first draw, and between one draw of a row and its next.
FIRST_SWEEPS, SWEEPS = 20, 3
# Completions of a row that are averaged over one by one, and draws where there are more.
MOST_AVERAGED, N_AVERAGED = 4_096, 256
# Rows of which all levels of one column are tried at once, and completions that are averaged over at once.
_AT_ONCE = 2**16


class Completions:
    """The completions of some rows, and how probable each is under any model of their columns.

    `rows` are the completions, `owner` the row that each completes; the first `n_listed` are of rows of which
    all are listed. `n_drawn` rows have too many completions
    to list; of them `draw` moves the ones held here on, by Gibbs sampling, and the same seed gives the same.
    """

    def __init__(
        self,
        domain: Domain,
        cells: Cells,
        *,
        most_rows: int = MOST_ROWS,
        most_states: int = MOST_STATES,
        n_draws: int = N_DRAWS,
        random_state: RandomState = None,
    ) -> None:
        self._rng = make_rng(0 if random_state is None else random_state)
        self._levels = domain.n_levels
        holes = cells == HOLE
        with np.errstate(over="ignore"):
            n_states = np.where(holes, self._levels, 1).prod(axis=1, dtype=np.float64)
        limit, n_draws = _share_out(n_states, most_states, most_rows, n_draws)
        is_listed = n_states <= limit
        listed = [_every(cells, rows, hidden, self._levels) for rows, hidden in _listed(holes, is_listed)]
        drawn = np.repeat(np.flatnonzero(~is_listed), n_draws)
        self.n_rows, self.n_drawn = len(cells), int((~is_listed).sum())
        self.n_listed = sum(len(owner) for _, owner in listed)
        self._holes = holes[drawn]
        first = self._first_guess(cells, drawn)
        self.rows: Rows = np.concatenate([*(rows for rows, _ in listed), first])
        self.owner: Integers = np.concatenate([*(owner for _, owner in listed), drawn])
        self._n_draws, self._n_sweeps = n_draws, FIRST_SWEEPS

    def _first_guess(self, cells: Cells, drawn: Integers) -> Rows:
        """Complete rows by values that other rows show, whatever the rest of the row is."""
        first = cells[drawn]
        for column in np.flatnonzero(self._holes.any(axis=0)).tolist():
            shown = cells[cells[:, column] != HOLE, column]
            known = shown if len(shown) else np.arange(self._levels[column])
            missing = self._holes[:, column]
            first[missing, column] = self._rng.choice(known, int(missing.sum()))
        return first.astype(Code)

    def probabilities(self, model: "LogLinearModel", look: Look = unseen) -> Floats:
        """Return the probability of each completion given what its row shows; draws of a row count alike."""
        logs = sums_of_weights(self.rows[: self.n_listed], *model.plain, look)
        owner = self.owner[: self.n_listed]
        top = np.full(self.n_rows, -np.inf)
        np.maximum.at(top, owner, logs)
        probabilities = np.exp(logs - top[owner])
        total = np.bincount(owner, probabilities, self.n_rows)
        draws = np.full(len(self.owner) - self.n_listed, 1 / self._n_draws)
        return np.concatenate([probabilities / total[owner], draws])

    def draw(self, model: "LogLinearModel") -> None:
        """Move the draws on under a model: each missing value is drawn given the rest of its row, in turn."""
        if not self.n_drawn:
            return
        arrays, weights = model.plain
        states = self.rows[self.n_listed :]
        columns = [
            (column, np.flatnonzero(self._holes[:, column]), *_about(arrays, weights, column))
            for column in np.flatnonzero(self._holes.any(axis=0)).tolist()
        ]
        for _ in range(self._n_sweeps):
            for column, rows, told, some in columns:
                for begin in range(0, len(rows), _AT_ONCE):
                    where = rows[begin : begin + _AT_ONCE]
                    states[where, column] = self._drawn(states[where], column, told, some)
        self._n_sweeps = SWEEPS

    def _drawn(self, states: Rows, column: int, arrays: FeatureArrays, weights: Floats) -> Rows:
        """Draw the value of one column of some rows given their other columns."""
        n_levels = int(self._levels[column])
        logs = np.empty((len(states), n_levels))
        for level in range(n_levels):
            states[:, column] = level
            logs[:, level] = sums_of_weights(states, arrays, weights)
        probabilities = np.exp(logs - logs.max(axis=1, keepdims=True))
        below = probabilities.cumsum(axis=1)
        point = self._rng.random(len(states)) * below[:, -1]
        drawn = np.minimum((below <= point[:, None]).sum(axis=1), n_levels - 1)
        return np.asarray(drawn, dtype=Code)


def _share_out(n_states: Floats, most_states: int, most_rows: int, most_draws: int) -> tuple[float, int]:
    """Return up to how many completions of a row are listed, and the draws of each other row."""
    n_draws = max(1, min(most_draws, most_rows // max(1, len(n_states))))
    limit = float(most_states)
    while limit > n_draws and np.where(n_states <= limit, n_states, n_draws).sum() > most_rows:
        limit = max(limit / 2, n_draws)
    return limit, n_draws


def _listed(holes: Bools, chosen: Bools) -> Iterator[tuple[Integers, Cells]]:
    """Give the chosen rows that lack the same columns, and these columns."""
    positions = np.flatnonzero(chosen)
    for rows, hidden in patterns(holes[positions]):
        yield positions[rows], np.flatnonzero(hidden)


def _every(cells: Cells, rows: Integers, hidden: Cells, n_levels: Integers) -> tuple[Rows, Integers]:
    """List all completions of rows that lack the same columns, and the row of each."""
    shape = tuple(int(n_levels[column]) for column in hidden)
    states = np.indices(shape).reshape(len(shape), -1).T
    completed = np.repeat(cells[rows], len(states), axis=0).astype(Code)
    completed[:, hidden] = np.tile(states, (len(rows), 1))
    return completed, np.repeat(rows, len(states))


def _about(arrays: FeatureArrays, weights: Floats, column: int) -> tuple[FeatureArrays, Floats]:
    """Return the features that speak of a column, and their weights."""
    told = arrays.with_any(arrays.variable == column)
    return arrays.take(told), weights[told]


def averages(model: "LogLinearModel", cells: Cells, answer: Callable[[Rows], Floats]) -> Floats:
    """Return, for each row of cells, the mean of an answer over its completions under a model.

    `answer` gives a line of numbers for each complete row. Of rows with more than `MOST_AVERAGED`
    completions, `N_AVERAGED` draws are taken, the same ones whatever other rows there are.
    """
    domain = model.domain
    with np.errstate(over="ignore"):
        n_states = np.where(cells == HOLE, domain.n_levels, 1).prod(axis=1, dtype=np.float64)
    order = np.argsort(n_states, kind="stable")
    n_listed = int((n_states <= MOST_AVERAGED).sum())
    # Each block has about as many completions as are held at once.
    ends = np.flatnonzero(np.diff(np.cumsum(n_states[order[:n_listed]]) // _AT_ONCE)) + 1
    groups = [*np.split(order[:n_listed], ends), *order[n_listed:, None]]
    parts = []
    for group in groups:
        if len(group):
            made = Completions(domain, cells[group], most_states=MOST_AVERAGED, n_draws=N_AVERAGED)
            made.draw(model)
            told = answer(made.rows) * made.probabilities(model)[:, None]
            total = np.zeros((len(group), told.shape[1]))
            np.add.at(total, made.owner, told)
            parts.append(total)
    found = np.empty((len(cells), parts[0].shape[1]))
    found[order] = np.concatenate(parts)
    return found
