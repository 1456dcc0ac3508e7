"""Models as objects of other packages, and back; the packages are imported only when asked for."""

from collections.abc import Iterable, Sequence
from importlib import import_module
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.domain import Domain, Kind, Variable
from unless.data.showing import to_label
from unless.errors import MissingExtra, SettingError, TooLarge
from unless.formats.gather import MOST_CELLS, Scope, factors_of, model_of_tables
from unless.formats.uai import potentials
from unless.inference.model import LogLinearModel
from unless.typing import Floats

# Conditional probabilities of other packages are rounded as files are.
TOLERANCE = 1e-2


class PeerTable(NamedTuple):
    """A table of another package: the names and the labels of its axes, and its numbers.

    A table of conditional probabilities has its child first.
    """

    names: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    values: Floats
    is_conditional: bool


def to_pgmpy(model: LogLinearModel, at_most: int = MOST_CELLS) -> Any:
    """Return a pgmpy Markov network with one dense factor a scope; names and labels are kept.

    Factors of more than `at_most` cells together are refused. pgmpy is not installed with Unless.
    """
    models = _package("pgmpy.models", "pgmpy")
    factors = _package("pgmpy.factors.discrete", "pgmpy")
    # The class was renamed in pgmpy 1.0.
    network = getattr(models, "DiscreteMarkovNetwork", None) or models.MarkovNetwork
    made = network()
    made.add_nodes_from(model.domain.names)
    for scope, table in factors_of(model, at_most).items():
        variables = [model.domain.variables[place] for place in scope]
        names = [variable.name for variable in variables]
        made.add_edges_from((a, b) for place, a in enumerate(names) for b in names[place + 1 :])
        levels = {variable.name: list(variable.levels) for variable in variables}
        made.add_factors(factors.DiscreteFactor(names, table.shape, potentials(table), levels))
    return made


def to_pyagrum(model: LogLinearModel, at_most: int = MOST_CELLS) -> Any:
    """Return a pyAgrum Markov random field with one dense factor a scope; names and labels are kept.

    Factors of more than `at_most` cells together are refused. pyAgrum is not installed with Unless.
    """
    gum = _package("pyagrum", "pyagrum")
    made = gum.MarkovRandomField()
    for variable in model.domain:
        made.add(gum.LabelizedVariable(variable.name, "", list(variable.levels)))
    for scope, table in factors_of(model, at_most).items():
        names = [model.domain.names[place] for place in scope]
        factor = gum.Tensor()
        # The last variable added is the first axis of the array.
        for name in reversed(names):
            factor.add(made.variable(name))
        factor[:] = np.array(potentials(table)).reshape(table.shape)
        made.addFactor(factor)
    return made


def from_pgmpy(model: Any) -> LogLinearModel:
    """Return the model of a discrete Bayesian or Markov network of pgmpy; names and labels are kept.

    Each cell of its tables becomes a feature of weight log p. States that are numbers or booleans are labels
    of that kind.
    """
    if callable(getattr(model, "get_cpds", None)):
        given, is_conditional = list(model.get_cpds()), True
    elif callable(getattr(model, "get_factors", None)):
        given, is_conditional = list(model.get_factors()), False
    else:
        raise _unknown("from_pgmpy", "pgmpy", model)
    kinds: dict[str, Kind] = {}
    tables = []
    for one in given:
        if not all(hasattr(one, said) for said in ("variables", "values", "state_names")):
            raise _unknown("from_pgmpy", "pgmpy", model)
        names = tuple(map(str, one.variables))
        states = [list(one.state_names[name]) for name in one.variables]
        for name, known in zip(names, states, strict=True):
            kinds.setdefault(name, _kind(known))
        labels = tuple(tuple(map(to_label, known)) for known in states)
        values = _numbers(one.values, names, tuple(map(len, labels)))
        tables.append(PeerTable(names, labels, values, is_conditional))
    return _model([str(node) for node in model.nodes()], tables, kinds)


def from_pyagrum(model: Any) -> LogLinearModel:
    """Return the model of a Bayesian network or Markov random field of pyAgrum; names and labels are kept.

    Each cell of its tables becomes a feature of weight log p.
    """
    is_conditional = callable(getattr(model, "cpt", None))
    if not is_conditional and not callable(getattr(model, "factor", None)):
        raise _unknown("from_pyagrum", "pyAgrum", model)
    nodes = sorted(model.nodes())
    variables = {str(model.variable(node).name()): model.variable(node) for node in nodes}
    labels = {name: tuple(map(str, variable.labels())) for name, variable in variables.items()}
    given = [model.cpt(node) for node in nodes] if is_conditional else []
    if not is_conditional:
        given = [model.factor(scope) for scope in sorted(model.factors(), key=sorted)]
    tables = []
    for one in given:
        names = tuple(map(str, one.names))
        # The first variable is the last axis of the array.
        values = np.asarray(one.toarray()).transpose()
        sizes = tuple(len(labels[name]) for name in names)
        level_names = tuple(labels[name] for name in names)
        tables.append(PeerTable(names, level_names, _numbers(values, names, sizes), is_conditional))
    alone = [(name,) for name in variables if not any(name in table.names for table in tables)]
    tables += [PeerTable(name, (labels[name[0]],), np.ones(len(labels[name[0]])), False) for name in alone]
    return _model(list(variables), tables, {})


def _model(nodes: Sequence[str], tables: Sequence[PeerTable], kinds: dict[str, Kind]) -> LogLinearModel:
    labels: dict[str, tuple[str, ...]] = {}
    # States come in the order of a node's own table, which names it first.
    for table in sorted(tables, key=lambda one: len(one.names)):
        labels.setdefault(table.names[0], table.labels[0])
    for table in tables:
        for name, said in zip(table.names, table.labels, strict=True):
            labels.setdefault(name, said)
    if strange := [name for name in (*nodes, *labels) if name not in labels or name not in nodes]:
        raise SettingError(
            f"The node {strange[0]!r} has no table, or its table has no node; give every node one of its own."
        )
    conditional = [table.names[0] for table in tables if table.is_conditional]
    if len({*conditional}) != len(conditional) or (conditional and len(conditional) != len(nodes)):
        lacking = next(name for name in nodes if conditional.count(name) != 1)
        raise SettingError(f"The node {lacking!r} does not have one table of its own; give it one.")
    n_cells = sum(table.values.size for table in tables)
    if n_cells > MOST_CELLS:
        raise TooLarge(
            f"The tables have {n_cells:,} cells, more than {MOST_CELLS:,}; take a part of the network."
        )
    domain = Domain(tuple(Variable(name, labels[name], kinds.get(name, "text")) for name in nodes))
    return model_of_tables(domain, [_scoped(table, domain) for table in tables])


def _scoped(table: PeerTable, domain: Domain) -> tuple[Scope, Floats]:
    """Return log potentials whose axes are in the order of the domain, and their levels, too."""
    values = table.values
    if table.is_conditional:
        totals = values.sum(axis=0)
        if (np.abs(totals - 1) > TOLERANCE).any():
            raise SettingError(
                f"The probabilities of {table.names[0]!r} do not sum to 1 for all of its parents; mend them."
            )
        values = values / totals
    for axis, (name, labels) in enumerate(zip(table.names, table.labels, strict=True)):
        if {*labels} != {*domain[name].levels} or len(labels) != len(domain[name].levels):
            raise SettingError(f"Tables name different states of {name!r}; give it the same in all of them.")
        values = values.take([labels.index(label) for label in domain[name].levels], axis=axis)
    scope = [domain.index(name) for name in table.names]
    with np.errstate(divide="ignore"):
        return tuple(sorted(scope)), np.log(values).transpose(np.argsort(scope))


def _numbers(values: npt.ArrayLike, names: Sequence[str], sizes: tuple[int, ...]) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    if (
        numbers.shape != sizes
        or len({*names}) != len(names)
        or not (np.isfinite(numbers) & (numbers >= 0)).all()
    ):
        raise SettingError(
            f"The table over {', '.join(map(repr, names))} does not hold a number of 0 or more for each "
            "of its states; mend it."
        )
    return numbers


def _kind(states: Iterable[object]) -> Kind:
    kinds: set[Kind] = {
        "boolean"
        if isinstance(state, bool | np.bool_)
        else "integer"
        if isinstance(state, Integral)
        else "float"
        if isinstance(state, Real)
        else "text"
        for state in states
    }
    return kinds.pop() if len(kinds) == 1 else "text"


def _unknown(function: str, package: str, model: object) -> SettingError:
    return SettingError(
        f"{function} takes a discrete Bayesian or Markov network of {package}, not {type(model).__name__}; "
        "give one whose tables are known."
    )


def _package(module: str, name: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(f"This needs the package {name}; install it with: pip install {name}") from None
