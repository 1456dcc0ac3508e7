"""The slow twin of inference: every state of the domain, one after another."""

from functools import lru_cache

import numpy as np


@lru_cache(maxsize=2)
def log_potentials(model):
    """Return the table of log potentials, one axis per variable; a weight of +inf is a demand."""
    shape = tuple(int(size) for size in model.domain.n_levels)
    states = np.indices(shape)
    table = np.zeros(shape)
    for literals, weight in zip(model.features.arrays.literals(), model.weights, strict=True):
        holds = np.ones(shape, dtype=bool)
        for variable, level, equal in literals:
            holds &= (states[variable] == level) == equal
        if weight == np.inf:
            table[~holds] = -np.inf
        else:
            table[holds] += weight
    table.flags.writeable = False
    return table


def given(table, evidence):
    """Give states that contradict the evidence (position -> code) no probability."""
    kept = np.full(table.shape, -np.inf)
    where = tuple(evidence.get(axis, slice(None)) for axis in range(table.ndim))
    kept[where] = table[where]
    return kept


def log_partition(model, evidence=None):
    """Return the log of the sum over all states that agree with the evidence (position -> code)."""
    table = given(log_potentials(model), evidence or {})
    top = table.max()
    return top if top == -np.inf else float(top + np.log(np.exp(table - top).sum()))


def joint(model, variables, evidence=None):
    """Return the table of probabilities of some variables (positions), axes in the order given."""
    table = given(log_potentials(model), evidence or {})
    table = np.exp(table - table.max())
    table /= table.sum()
    others = tuple(axis for axis in range(table.ndim) if axis not in variables)
    kept = sorted(variables)
    return np.transpose(table.sum(axis=others), [kept.index(variable) for variable in variables])


def map_value(model, evidence=None):
    """Return the largest log potential among states that agree with the evidence."""
    return float(given(log_potentials(model), evidence or {}).max())
