"""How well a learner predicts rows that it has not seen."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf

import numpy as np

from unless.data.columns.levels import free_name
from unless.data.dataset import Dataset
from unless.data.domain import MAX_LEVELS, Domain
from unless.errors import DataError
from unless.inference.model import LogLinearModel
from unless.inference.tables import UNKNOWN, Cells, of_the_model, read_cells
from unless.learners.examples import check_columns
from unless.structures.graph import FeatureSet
from unless.typing import Bools, Integers

MISSING = {"missing", "(missing)"}


def held_out_score(
    make_network: Callable[[], LogLinearModel],
    learned: Dataset,
    X: object,
    learner: str,
    *,
    max_memory: int | str | None,
    show_progress: bool | None,
) -> float:
    """Return the mean over rows of the sum over columns of log P(x_v | the others), in nats.

    P is that of the network of the rows learned from. A level that it does not know has the probability
    1 / (n + k + 1), for n rows learned from and k known levels: every structure loses the same by it. In the
    conditionals of the other columns no feature of its column's levels holds.
    """
    domain, show = learned.domain, show_progress
    cells, counts = _rows(domain, check_columns(X, domain, learner), show)
    # After the table was read: what is wrong with it is said at once.
    network = make_network()
    total = 0.0
    for columns, rows in _by_columns(cells == UNKNOWN):
        asked = _with_more_levels(network, columns) if columns.any() else network
        codes = np.where(columns, domain.n_levels, cells[rows])
        data = Dataset.from_codes(asked.domain, codes, counts[rows])
        scores = asked.pseudo_log_likelihood(data, show_progress=show, max_memory=max_memory)
        for is_unknown, variable in zip(columns.tolist(), domain, strict=True):
            new = -np.log(learned.n_rows + len(variable.levels) + 1)
            total += data.n_rows * float(new if is_unknown else scores.by_variable[variable.name])
    return total / int(counts.sum())


def _rows(domain: Domain, X: object, show: bool | None) -> tuple[Cells, Integers]:
    """Return distinct rows of codes, UNKNOWN where a level is not known, and how often each occurs."""
    data = X if isinstance(X, Dataset) else _read(domain, X, show)
    if not data.n_rows:
        raise DataError("The table has no rows; there is nothing to score.")
    return read_cells(domain, data, unknown="mark"), data.counts


def _read(domain: Domain, X: object, show: bool | None) -> Dataset:
    """Read a table with levels of its own; numbers are cut where those learned from were."""
    from unless.data.read import read

    has_level = any(MISSING & set(variable.levels) for variable in domain)
    bins = {one.name: (-inf, *one.cuts, inf) for one in domain if one.cuts}
    with of_the_model():
        data = read(
            X,
            columns=domain.names,
            missing="level" if has_level else "drop",
            bins=bins,
            max_levels=MAX_LEVELS,
            strict=True,
            show_progress=show,
        )
    variables = []
    for own, known in zip(data.domain, domain, strict=True):
        n_groups = len(known.cuts) + 1
        groups = (*known.levels[:n_groups], *own.levels[n_groups:])
        variables.append(replace(own, levels=groups) if known.cuts else own)
    return replace(data, domain=Domain(tuple(variables)))


def _by_columns(unknown: Bools) -> Iterator[tuple[Bools, Integers]]:
    """Give rows together that do not know the levels of the same columns: these columns, and the rows."""
    kinds, kind = np.unique(unknown, axis=0, return_inverse=True)
    for number, columns in enumerate(kinds):
        yield columns, np.flatnonzero(kind == number)


def _with_more_levels(network: LogLinearModel, columns: Bools) -> LogLinearModel:
    """Return a network in which some columns have one more level, of which no feature speaks."""
    variables = [
        replace(one, levels=(*one.levels, free_name("unknown", one.levels))) if is_unknown else one
        for one, is_unknown in zip(network.domain, columns.tolist(), strict=True)
    ]
    features = FeatureSet.from_arrays(Domain(tuple(variables)), network.features.arrays)
    return LogLinearModel(features, network.weights)
