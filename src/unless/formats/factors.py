"""Dense tables, one a scope: what programs that know no features can read."""

from math import prod

import numpy as np

from unless.errors import SettingError, TooLarge
from unless.formats.gather import Floats, Scope
from unless.inference.model import LogLinearModel
from unless.structures.conditions import Literal

MOST_CELLS = 10_000_000


def factors_of(model: LogLinearModel, at_most: int = MOST_CELLS) -> dict[Scope, Floats]:
    """Group the features of one scope into one table of log potentials, its axes in the order of the scope.

    Variables of a single level say nothing and are left out of scopes. A variable that is in no scope gets an
    even table of its own, because other programs expect one.
    """
    sizes = [int(size) for size in model.domain.n_levels]
    # A weight of +inf has no potential, but what it rules out has: zero.
    arrays, weights = model.plain
    grouped: dict[Scope, list[tuple[tuple[Literal, ...], float]]] = {}
    for literals, weight in zip(arrays.literals(), weights.tolist(), strict=True):
        scope = tuple(sorted({variable for variable, _, _ in literals if sizes[variable] > 1}))
        grouped.setdefault(scope, []).append((literals, weight))
    if any(weight == -np.inf for _, weight in grouped.pop((), [])):
        raise SettingError("A feature that always holds has the weight -inf, so nothing is possible.")
    spoken = {variable for scope in grouped for variable in scope}
    grouped.update({(variable,): [] for variable in range(len(sizes)) if variable not in spoken})
    _check_size([[sizes[variable] for variable in scope] for scope in grouped], at_most)
    ordered = sorted(grouped.items(), key=lambda item: (len(item[0]), item[0]))
    return {scope: _table(scope, features, sizes) for scope, features in ordered}


def _check_size(shapes: list[list[int]], at_most: int) -> None:
    n_cells = sum(map(prod, shapes))
    if n_cells <= at_most:
        return
    widest = max(shapes, key=prod)
    raise TooLarge(
        f"The tables would have {_rounded(n_cells)} cells, more than {at_most:,} (one feature speaks of "
        f"{len(widest)} variables); keep the model in a format of features: .unless, .mn or .json."
    )


def _rounded(number: int) -> str:
    # Python refuses to write out numbers of thousands of digits.
    return f"{number:,}" if number < 10**15 else f"about 10^{number.bit_length() * 0.30103:.0f}"


def _table(scope: Scope, features: list[tuple[tuple[Literal, ...], float]], sizes: list[int]) -> Floats:
    table = np.zeros([sizes[variable] for variable in scope])
    place = {variable: axis for axis, variable in enumerate(scope)}
    for literals, weight in features:
        if all(equal for _, _, equal in literals):
            table[tuple(level for variable, level, _ in literals if variable in place)] += weight
            continue
        kept = [np.ones(size, dtype=np.bool_) for size in table.shape]
        for variable, level, equal in literals:
            if variable in place:
                holds = np.arange(sizes[variable]) == level
                kept[place[variable]] &= holds if equal else ~holds
        table[np.ix_(*kept)] += weight
    return table
