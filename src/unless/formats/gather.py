"""Models gathered from the pieces a file lists, conjunctions or tables of potentials; and dense tables again.

Dense tables, one a scope, are what programs that know no features can read.
"""

from collections.abc import Callable, Iterable
from math import inf, isfinite, prod

import numpy as np

from unless.data.domain import Domain
from unless.errors import SettingError, TooLarge
from unless.formats.text import wrong
from unless.inference.model import LogLinearModel
from unless.inference.potentials import by_scope, log_table
from unless.structures.graph import FeatureSet
from unless.structures.structure import CodedCondition, FeatureArrays, tidy
from unless.typing import Floats, Integers

# Positions of variables, ascending.
Scope = tuple[int, ...]
# conditions, weight, and where it was found: a line, or what a function turns into one
Piece = tuple[tuple[CodedCondition, ...], float, int]
MOST_CELLS = 10_000_000


def model_of_pieces(
    domain: Domain, pieces: Iterable[Piece], line: Callable[[int], int] = int
) -> LogLinearModel:
    """Add up the weights of features that are true together.

    What always holds changes no probability and what never holds none either: neither is kept.
    """
    sums: dict[tuple[CodedCondition, ...], float] = {}
    for literals, weight, place in pieces:
        normal = _normal(literals, domain.n_levels)
        if not normal:
            if weight == (inf if normal is None else -inf):
                holds = "never" if normal is None else "always"
                raise wrong(line(place), f"a feature that {holds} holds has the weight {weight}")
            continue
        total = sums[normal] + weight if normal in sums else weight
        if not isfinite(total) and total not in (weight, sums.get(normal)):
            # Opposite infinities, or numbers whose sum is too large for one.
            raise wrong(line(place), "the weights of this feature, here and above, have no sum")
        sums[normal] = total
    features = FeatureSet.from_arrays(domain, FeatureArrays.of(sums))
    return LogLinearModel(features, [sums[literals] for literals in features.arrays.literals()])


def model_of_tables(domain: Domain, tables: Iterable[tuple[Scope, Floats]]) -> LogLinearModel:
    """Turn tables of log potentials into indicators, one a cell; tables of one scope are added up.

    The axes of a table follow its scope. Variables of a single level say nothing and are left out.
    """
    sums: dict[Scope, Floats] = {}
    for scope, table in tables:
        kept = tuple(place for place, size in zip(scope, table.shape, strict=True) if size > 1)
        squeezed = table.reshape([size for size in table.shape if size > 1])
        sums[kept] = sums[kept] + squeezed if kept in sums else squeezed
    if np.isneginf(sums.pop((), np.zeros(()))):
        raise SettingError("A potential without variables is zero, so nothing is possible.")
    # The order of a FeatureSet: by size, by scope, by values.
    ordered = sorted(sums.items(), key=lambda item: (len(item[0]), item[0]))
    arrays = FeatureArrays.joined(_indicators(scope, table.shape) for scope, table in ordered)
    weights = np.concatenate([np.zeros(0), *(table.ravel() for _, table in ordered)])
    return LogLinearModel(FeatureSet.from_arrays(domain, arrays), weights)


def _indicators(scope: Scope, shape: tuple[int, ...]) -> FeatureArrays:
    levels = np.indices(shape, dtype=np.uint16).reshape(len(scope), -1).T
    return FeatureArrays.of_equals(np.broadcast_to(np.array(scope, dtype=np.int32), levels.shape), levels)


def _normal(literals: tuple[CodedCondition, ...], n_levels: Integers) -> tuple[CodedCondition, ...] | None:
    if all(equal for _, _, equal in literals) and len({variable for variable, _, _ in literals}) == len(
        literals
    ):
        return tuple(sorted(literals))
    try:
        return tuple(tidy(literals, n_levels))
    except SettingError:
        # It contradicts itself, as one leaf of a tree that asks twice must.
        return None


def factors_of(model: LogLinearModel, at_most: int = MOST_CELLS) -> dict[Scope, Floats]:
    """Group the features of one scope into one table of log potentials, its axes in the order of the scope.

    Variables of a single level say nothing and are left out of scopes. A variable that is in no scope gets an
    even table of its own, because other programs expect one.
    """
    sizes = model.domain.n_levels.tolist()
    grouped = by_scope(model)
    told = {variable for scope in grouped for variable in scope}
    grouped.update({(variable,): [] for variable in range(len(sizes)) if variable not in told})
    _check_size([[sizes[variable] for variable in scope] for scope in grouped], at_most)
    ordered = sorted(grouped.items(), key=lambda item: (len(item[0]), item[0]))
    return {scope: log_table(scope, features, model.domain.n_levels) for scope, features in ordered}


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
    # Python raises ValueError for numbers of thousands of digits.
    return f"{number:,}" if number < 10**15 else f"about 10^{number.bit_length() * 0.30103:.0f}"
