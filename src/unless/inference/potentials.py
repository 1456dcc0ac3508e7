"""Potentials: sums of weights over the features that hold in rows, and tables of them as models and back."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Rows
from unless.data.domain import Domain
from unless.errors import SettingError, TooLarge
from unless.kernels.compiling import plain_if_small
from unless.runtime.memory import show_memory
from unless.runtime.progress import Look, unseen
from unless.structures.graph import FeatureSet
from unless.structures.structure import CodedCondition, FeatureArrays
from unless.typing import Floats, Integers

if TYPE_CHECKING:
    from unless.inference.model import LogLinearModel

# Conditions looked at in one call of a kernel, at most: about a tenth of a second.
CONDITIONS_AT_ONCE = 2**25
# A table of more cells is better left as features.
MAX_CELLS = 2**26
# Beyond e^700 a double is near its end; such a table is divided by its largest cell.
FAR = 700.0
LEAST = 2.2250738585072014e-308
# The names of the axes, and the table.
Potential = tuple[tuple[str, ...], npt.ArrayLike]
# Positions of variables, ascending.
Scope = tuple[int, ...]
Weighted = tuple[tuple[CodedCondition, ...], float]


def sums_of_weights(codes: Rows, features: FeatureArrays, weights: Floats, look: Look = unseen) -> Floats:
    """Return, for each row of codes, the sum of the weights of the features that hold in it."""
    from unless.kernels.features import log_potentials

    # Copies, because numba would compile once more for arrays that cannot be written.
    given = [np.array(part) for part in (*features, weights)]
    sums = np.zeros(len(codes))
    with plain_if_small(float(len(codes)) * len(features.variable)):
        for some in row_spans(len(codes), features):
            sums[some] = log_potentials(codes[some], *given)
            look(some.stop / len(codes))
    return sums


def row_spans(n_rows: int, features: FeatureArrays) -> list[slice]:
    """Cut rows into those that one call of a kernel takes."""
    at_once = max(1, CONDITIONS_AT_ONCE // max(1, len(features.variable)))
    return [slice(begin, min(begin + at_once, n_rows)) for begin in range(0, n_rows, at_once)]


def from_potentials(domain: Domain, tables: Iterable[Potential]) -> tuple[FeatureSet, list[float]]:
    """Return the features and weights of tables of potentials: an indicator of weight log phi for each cell.

    Cells of one assignment in several tables are one feature, whose weights add up. A potential of 1 says
    nothing and gives no feature; one of 0 gives a weight of -inf.

    >>> from unless import Variable
    >>> coin = Domain((Variable("Coin", ("heads", "tails")),))
    >>> features, weights = from_potentials(coin, [(("Coin",), [3.0, 1.0])])
    >>> [(str(feature), round(weight, 4)) for feature, weight in zip(features, weights)]
    [('Coin = heads', 1.0986)]
    """
    weights: dict[tuple[tuple[int, int, bool], ...], float] = {}
    for names, table in tables:
        positions, potentials = _checked(domain, names, table)
        for cell in map(tuple, np.argwhere(potentials != 1.0).tolist()):
            with np.errstate(divide="ignore"):
                weight = float(np.log(potentials[cell]))
            said = tuple(sorted((p, code, True) for p, code in zip(positions, cell, strict=True)))
            weights[said] = weights.get(said, 0.0) + weight
    features = FeatureSet.from_arrays(domain, FeatureArrays.of(weights))
    return features, [weights[said] for said in features.arrays.literals()]


def to_potentials(model: "LogLinearModel") -> list[Potential]:
    """Return one table of potentials for each scope of the model's features, names in column order.

    Their product is proportional to the model's law; "!=" conditions reach all the cells they allow.
    Variables of a single level say nothing and are left out. What is possible stays so: a table whose
    potentials would be too large or too small for numbers is divided by its largest, and what is still too
    small is the smallest number there is.
    """
    names, levels = model.domain.names, model.domain.n_levels
    scopes = by_scope(model)
    for scope in scopes:
        _check_size(levels[list(scope)], [names[v] for v in scope])
    return [
        (tuple(names[v] for v in scope), _potentials(log_table(scope, features, levels)))
        for scope, features in scopes.items()
    ]


def by_scope(model: "LogLinearModel") -> dict[Scope, list[Weighted]]:
    """Group the features of one scope; what they say of variables of a single level is left out."""
    sizes = model.domain.n_levels.tolist()
    # A weight of +inf has no potential, but what it rules out has: zero.
    arrays, weights = model.plain
    grouped: dict[Scope, list[Weighted]] = {}
    for literals, weight in zip(arrays.literals(), weights.tolist(), strict=True):
        varying = tuple(literal for literal in literals if sizes[literal[0]] > 1)
        scope = tuple(sorted({variable for variable, _, _ in varying}))
        grouped.setdefault(scope, []).append((varying, weight))
    if any(weight == -np.inf for _, weight in grouped.pop((), [])):
        raise SettingError("A feature that always holds has the weight -inf, so nothing is possible.")
    return grouped


def log_table(scope: Scope, features: Iterable[Weighted], n_levels: Integers) -> Floats:
    """Add up the weights of the features of a scope, one axis for each of its variables."""
    table = np.zeros(n_levels[list(scope)])
    for literals, weight in features:
        table[holding_cells(literals, scope, n_levels)] += weight
    return table


def _potentials(logs: Floats) -> Floats:
    largest = float(logs.max())
    if FAR < abs(largest) < np.inf:
        logs = logs - largest
    return np.where(np.isneginf(logs), 0.0, np.maximum(np.exp(logs), LEAST))


def holding_cells(
    literals: Sequence[CodedCondition], scope: Sequence[int], n_levels: Integers
) -> tuple[Any, ...]:
    """Return the index of the cells where literals hold, of a table with one axis for each variable."""
    if len(literals) == len(scope) and all(equal for _, _, equal in literals):
        return tuple(level for _, level, _ in sorted(literals))
    fits = {variable: np.ones(int(n_levels[variable]), dtype=np.bool_) for variable in scope}
    for variable, level, equal in literals:
        fits[variable] &= (np.arange(len(fits[variable])) == level) == equal
    return np.ix_(*(np.flatnonzero(fits[variable]) for variable in scope))


def _check_size(levels: Integers, names: list[str]) -> None:
    cells = float(np.prod(levels.astype(np.float64)))
    if cells > MAX_CELLS:
        raise TooLarge(
            f"The table over {len(names)} variables, from {names[0]!r} to {names[-1]!r}, would have "
            f"{cells:,.0f} cells and need {show_memory(8 * cells)}; keep this model as features."
        )


def _checked(domain: Domain, names: Iterable[str], table: npt.ArrayLike) -> tuple[list[int], Floats]:
    axes = [names] if isinstance(names, str) else list(names)
    positions = [domain.index(name) for name in axes]
    potentials = np.asarray(table, dtype=np.float64)
    wanted = tuple(domain.n_levels[positions].tolist())
    if len(set(positions)) != len(positions) or not positions or potentials.shape != wanted:
        raise SettingError(
            f"The table over {', '.join(map(repr, axes)) or 'nothing'} has the shape {potentials.shape}; "
            f"give one axis for each of its different variables, here {wanted}."
        )
    if not (np.isfinite(potentials).all() and (potentials >= 0).all()):
        raise SettingError(
            f"The table over {', '.join(map(repr, axes))} holds a potential that is not 0 or more."
        )
    return positions, potentials
