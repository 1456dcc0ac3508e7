"""Answers for whole tables: a target predicted, or holes filled, row by row; like rows are answered once."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.domain import Code
from unless.inference.cells import HOLE, Cells, read_cells, with_levels
from unless.inference.frames import values
from unless.inference.model import LogLinearModel, Memory
from unless.inference.parts import Part, first_best, parts_of, patterns, refuse_forbidden
from unless.runtime.progress import Look, showing_share, unseen, within

Floats = npt.NDArray[np.float64]


def predict_proba(
    model: LogLinearModel,
    table: object,
    target: str,
    *,
    max_memory: Memory = None,
    show_progress: bool | None = None,
) -> Floats:
    """Return, for each row, the probabilities of the levels of a target given all else the row shows.

    What a row does not show, holes or columns the table has not, is summed over.
    """
    position = model.domain.index(target)
    cells = read_cells(model.domain, table, show_progress)
    cells[:, position] = HOLE
    with showing_share("Predicting", show_progress, "rows") as look:
        return hidden_marginals(model, cells, [position], max_memory=max_memory, look=look)[0]


def hidden_marginals(
    model: LogLinearModel,
    cells: Cells,
    positions: Sequence[int],
    *,
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
    model: LogLinearModel,
    table: object,
    target: str,
    *,
    max_memory: Memory = None,
    show_progress: bool | None = None,
) -> npt.NDArray[Any]:
    """Return, for each row, the most probable level of a target; of equals the first."""
    chances = predict_proba(model, table, target, max_memory=max_memory, show_progress=show_progress)
    best = first_best(chances)
    return values(model.domain[target], best.astype(Code))


def impute(
    model: LogLinearModel, table: object, *, max_memory: Memory = None, show_progress: bool | None = None
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
    model: LogLinearModel, cells: Cells, *, max_memory: Memory = None, look: Look = unseen
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
    parts: list[Part], cells: Cells, look: Look, n_done: int, rows: Cells
) -> Iterator[tuple[Look, Part]]:
    """Give each part with what it tells its share of some rows; so many rows were done before.

    They are taken out: the tables of one go before those of the next are made.
    """
    n_parts = len(parts)
    share = len(rows) / max(1, n_parts)
    for number in range(n_parts):
        begin, end = n_done + number * share, n_done + (number + 1) * share
        yield within(look, begin / len(cells), end / len(cells)), parts.pop(0)
