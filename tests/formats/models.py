"""Models to write down, what they mean state by state, and a strategy for odd ones."""

from itertools import product

import numpy as np
from hypothesis import strategies as st

from structures.models import feature_lists
from unless.data.domain import Domain, Variable
from unless.inference.model import LogLinearModel
from unless.structures.graph import Condition, Feature, FeatureSet

# Words that mean something to one format or another, and characters that do to most.
ODD = (
    "MN", "variable", "table", "default", "probability", "+v0_1", "a b", '"q"', "it's", "two\nlines", "\r",
    "tab\there", "日本", "é", "", " ", "10", "1e5", "<b>&amp;", "{", "}", "(x, y)", "a;b", "//", "inf",
)  # fmt: skip
WEIGHTS = st.one_of(
    st.floats(-5, 5),
    st.sampled_from((0.0, -0.0, 1e-300, 0.1, 1 / 3, 720.0, -720.0, 709.7, 700.0, -np.inf, np.inf)),
)
KINDS = ("text", "integer", "float", "boolean", "category")


@st.composite
def odd_domains(draw, *, max_variables=4, max_levels=4):
    names = draw(st.permutations(ODD))[: draw(st.integers(1, max_variables))]
    return Domain(
        tuple(
            Variable(
                name,
                tuple(draw(st.permutations(ODD))[: draw(st.integers(1, max_levels))]),
                draw(st.sampled_from(KINDS)),
            )
            for name in names
        )
    )


@st.composite
def odd_models(draw, *, weights=WEIGHTS):
    domain = draw(odd_domains())
    features = FeatureSet(domain, draw(feature_lists(domain)))
    return LogLinearModel(features, [draw(weights) for _ in range(len(features))])


def states(domain):
    return np.array(list(product(*(range(size) for size in domain.n_levels))), dtype=np.uint16)


def log_potentials(model):
    """Add up weights literal by literal."""
    total = np.zeros(len(states(model.domain)))
    for literals, weight in zip(model.features.arrays.literals(), model.weights, strict=True):
        holds = np.ones(len(total), dtype=bool)
        for variable, level, equal in literals:
            holds &= (states(model.domain)[:, variable] == level) == equal
        if weight == np.inf:
            total[~holds] = -np.inf
        else:
            total[holds] += weight
    return total


def log_probabilities(model):
    """Return the log probability of every state; None if none is possible."""
    logs = log_potentials(model)
    if not (logs > -np.inf).any():
        return None
    return logs - np.logaddexp.reduce(logs)


def same_distribution(one, other, floor=-np.inf):
    first, second = log_probabilities(one), log_probabilities(other)
    if first is None or second is None:
        return (first is None) == (second is None)
    return np.allclose(np.maximum(first, floor), np.maximum(second, floor), rtol=1e-12, atol=1e-9)


def small_model():
    """Three variables, one of them of three levels; conditions of both kinds."""
    domain = Domain(
        (
            Variable("Dept", ("A", "B", "C"), "category"),
            Variable("Admit", ("no", "yes")),
            Variable("Sex", ("F", "M")),
        )
    )
    features = [
        Feature([Condition("Dept", "A", equal=False), Condition("Admit", "no")]),
        Feature([Condition("Admit", "yes")]),
        Feature([Condition("Dept", "C"), Condition("Admit", "yes"), Condition("Sex", "M")]),
    ]
    return LogLinearModel(FeatureSet(domain, features), [0.5, -1.25, 2.0])
