"""Random log-linear models for tests of inference, and the two models conditioning is made for."""

import numpy as np
from hypothesis import strategies as st

from unless.data.domain import Domain, Variable
from unless.inference.model import LogLinearModel
from unless.structures.graph import FeatureSet
from unless.structures.structure import FeatureArrays, tidy


def domain_of(n_levels):
    """Make a domain with these numbers of levels: variables A0, A1, ..., levels a, b, ..."""
    return Domain(tuple(Variable(f"A{i}", tuple("abcdefgh"[:size])) for i, size in enumerate(n_levels)))


def model_of(domain, weighted):
    """Make a model from pairs of literals [(variable, level, equal), ...] and a weight; duplicates add up."""
    total = {}
    for literals, weight in weighted:
        key = tuple(tidy(literals, domain.n_levels))
        total[key] = total.get(key, 0.0) + weight
    features = FeatureSet.from_arrays(domain, FeatureArrays.of(total))
    return LogLinearModel(features, [total[key] for key in features.arrays.literals()])


def random_model(
    rng, n_variables, *, max_levels=4, n_features=None, max_length=4, scale=1.0, zeros=0.0, locality=None
):
    """Draw a model; `zeros` is the share of weights that are -inf, `locality` the width of a window of scope.

    All-a states never match a feature of weight -inf, so the model is possible.
    """
    n_levels = rng.integers(2, max_levels + 1, n_variables)
    n_features = 4 * n_variables if n_features is None else n_features
    weighted = []
    for _ in range(n_features):
        length = int(rng.integers(1, min(max_length, n_variables) + 1))
        width = max(min(locality or n_variables, n_variables), length)
        first = int(rng.integers(0, n_variables - width + 1))
        scope = first + rng.choice(width, length, replace=False)
        literals = [(int(v), int(rng.integers(n_levels[v])), bool(rng.random() < 0.7)) for v in scope]
        impossible = rng.random() < zeros and any((level == 0) != equal for _, level, equal in literals)
        weighted.append((literals, -np.inf if impossible else float(scale * rng.standard_normal())))
    return model_of(domain_of(n_levels), weighted)


def random_evidence(rng, domain, share=0.3):
    """Draw evidence (position -> code) on some variables."""
    chosen = np.flatnonzero(rng.random(len(domain)) < share)
    return {int(v): int(rng.integers(domain.n_levels[v])) for v in chosen}


@st.composite
def models(draw, *, max_variables=8, **settings):
    """Draw a random model."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_model(rng, draw(st.integers(1, max_variables)), **settings)


def csi_model(n_variables, random_state=0):
    """Return the paper's domain as a model: complete while the last variable is 0, a star while it is 1."""
    from unless.datasets.synthetic import make_csi

    return make_csi(n_variables, random_state=random_state)


def trees_by_context(rng, n_variables=40, n_gates=3):
    """Draw a model of binary variables whose first ones, the gates, choose one of 2^n_gates random trees."""
    weighted = []
    for context in range(2**n_gates):
        gates = [(gate, context >> gate & 1, True) for gate in range(n_gates)]
        order = n_gates + rng.permutation(n_variables - n_gates)
        for i in range(1, len(order)):
            a, b = int(order[i]), int(order[rng.integers(i)])
            for x, y in np.ndindex(2, 2):
                weighted.append(([*gates, (a, x, True), (b, y, True)], float(rng.standard_normal())))
    return model_of(domain_of([2] * n_variables), weighted)


def complete_model(rng, n_variables):
    """Draw a model of binary variables every two of which are linked."""
    weighted = [
        ([(a, x, True), (b, y, True)], float(rng.standard_normal()) / n_variables)
        for a in range(n_variables)
        for b in range(a)
        for x, y in np.ndindex(2, 2)
    ]
    return model_of(domain_of([2] * n_variables), weighted)


def grid_model(rng, rows, columns, scale=1.0):
    """Draw a model of binary variables on a grid."""
    weighted = []
    for r, c in np.ndindex(rows, columns):
        for other in ((r + 1, c), (r, c + 1)):
            if other[0] < rows and other[1] < columns:
                a, b = r * columns + c, other[0] * columns + other[1]
                weighted += [
                    ([(a, x, True), (b, y, True)], float(scale * rng.standard_normal()))
                    for x, y in np.ndindex(2, 2)
                ]
    return model_of(domain_of([2] * rows * columns), weighted)
