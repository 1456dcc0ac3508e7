"""Slow twin of the likelihood objective: every state of the domain, one after another."""

import itertools
import math

import numpy as np
from scipy.optimize import minimize

from twins.naive_objective import holds


def design(features):
    """Return, for every state of the domain, which features hold in it."""
    literals = list(features.arrays.literals())
    states = itertools.product(*(range(size) for size in features.domain.n_levels.tolist()))
    return np.array([[holds(said, state) for said in literals] for state in states], dtype=float)


def naive_likelihood(features, data, weights, sd=math.inf, l1=0.0):
    """Return the penalised negative log-likelihood and, without the L1 part, its gradient."""
    weights = np.asarray(weights, dtype=float)
    every = design(features)
    literals = list(features.arrays.literals())
    seen = np.array([[holds(said, row) for said in literals] for row in data.rows.tolist()], dtype=float)
    observed = data.counts @ seen
    logs = every @ weights
    log_partition = np.logaddexp.reduce(logs)
    expected = np.exp(logs - log_partition) @ every
    value = data.n_rows * log_partition - observed @ weights
    penalty = (weights**2).sum() / (2 * sd * sd) + l1 * np.abs(weights).sum()
    return value + penalty, data.n_rows * expected - observed + weights / sd**2


def naive_optimum(features, data, sd):
    """Return the weights that scipy finds."""
    found = minimize(
        lambda weights: naive_likelihood(features, data, weights, sd),
        np.zeros(len(features)),
        jac=True,
        method="BFGS",
        options={"gtol": 1e-8, "maxiter": 10_000},
    )
    return found.x
