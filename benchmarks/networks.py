"""Random pairwise binary networks, and rows drawn from them by Gibbs sampling."""

import math

import numba
import numpy as np

from unless import Dataset, Domain, Variable


def random_network(n_variables: int, mean_degree: int, with_fields: bool, rng: np.random.Generator):
    """Return couplings and fields of spins on a random graph.

    With fields, each linked pair has four log-potentials from N(0, 1), which tilt its variables too; without,
    it has a coupling between 0.5 and 1 of either sign, and every variable is balanced.
    """
    first, second = np.triu_indices(n_variables, 1)
    chosen = rng.choice(len(first), n_variables * mean_degree // 2, replace=False)
    couplings, fields = np.zeros((n_variables, n_variables)), np.zeros(n_variables)
    for a, b in zip(first[chosen], second[chosen], strict=True):
        table = rng.normal(size=(2, 2))
        strength = (table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0]) / 4
        if with_fields:
            fields[a] += (table[1].sum() - table[0].sum()) / 4
            fields[b] += (table[:, 1].sum() - table[:, 0].sum()) / 4
        else:
            strength = np.sign(strength) * rng.uniform(0.5, 1)
        couplings[a, b] = couplings[b, a] = strength
    return couplings, fields


def _draw(couplings, fields, rows, n_sweeps, seed):
    """Fill every row by a chain of its own."""
    np.random.seed(seed)
    n = fields.shape[0]
    spins = np.empty(n)
    for row in range(rows.shape[0]):
        for i in range(n):
            spins[i] = 1.0 if np.random.random() < 0.5 else -1.0
        for _ in range(n_sweeps):
            for i in range(n):
                field = fields[i]
                for j in range(n):
                    field += couplings[i, j] * spins[j]
                spins[i] = 1.0 if np.random.random() * (1.0 + math.exp(-2.0 * field)) < 1.0 else -1.0
        for i in range(n):
            rows[row, i] = spins[i] > 0.0


_draw_compiled = numba.njit(_draw)


def sample_network(n_variables: int, mean_degree: int, n_rows: int, with_fields: bool, seed: int) -> Dataset:
    """Draw rows from a random network."""
    couplings, fields = random_network(n_variables, mean_degree, with_fields, np.random.default_rng(seed))
    rows = np.empty((n_rows, n_variables), dtype=np.uint16)
    _draw_compiled(couplings, fields, rows, 50, seed)
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    domain = Domain(tuple(Variable(f"X{i:02}", ("0", "1")) for i in range(n_variables)))
    return Dataset.from_codes(domain, distinct, counts)
