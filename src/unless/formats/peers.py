"""Models as objects of other packages, which are imported only when asked for."""

from importlib import import_module
from typing import Any

import numpy as np

from unless.errors import MissingExtra
from unless.formats.factors import MOST_CELLS, factors_of
from unless.formats.uai import potentials
from unless.inference.model import LogLinearModel


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


def _package(module: str, name: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(f"This needs the package {name}; install it with: pip install {name}") from None
