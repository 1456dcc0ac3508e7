"""Exact marginals equal those of pyAgrum on models too large to enumerate."""

import warnings

import numpy as np
import pytest

from inference.models import random_evidence, random_model

with warnings.catch_warnings():
    # Its wrappers warn when they are first used, and crash where warnings are errors.
    warnings.simplefilter("ignore")
    pyagrum = pytest.importorskip("pyagrum", reason="pyAgrum (0.4 GB) is an oracle, not a dependency")
    pyagrum.MarkovRandomField()


def to_markov_network(model):
    """Write a model as a pyAgrum Markov random field: features of one scope are one factor."""
    network = pyagrum.MarkovRandomField()
    for variable in model.domain:
        network.add(pyagrum.LabelizedVariable(variable.name, variable.name, list(variable.levels)))
    factors = {(v,): np.zeros(len(model.domain.variables[v].levels)) for v in range(len(model.domain))}
    for literals, weight in zip(model.features.arrays.literals(), model.weights, strict=True):
        scope = tuple(sorted({variable for variable, _, _ in literals}))
        shape = [len(model.domain.variables[v].levels) for v in scope]
        states = np.indices(shape)
        holds = np.ones(shape, dtype=bool)
        for variable, level, equal in literals:
            holds &= (states[scope.index(variable)] == level) == equal
        factors.setdefault(scope, np.zeros(shape))[holds] += weight
    for scope, logs in factors.items():
        names = [model.domain.names[v] for v in scope]
        network.addFactor(names)
        factor = network.factor(set(names))
        order = [names.index(name) for name in factor.names]
        # pyAgrum's first variable varies fastest.
        factor.fillWith(np.exp(logs).transpose(order).ravel(order="F").tolist())
    return network


@pytest.mark.parametrize("seed", range(10))
def test_marginals_of_30_variables_equal_pyagrums(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, 30, max_levels=3, max_length=3, n_features=90, locality=6)
    evidence = random_evidence(rng, model.domain, share=0.1)
    other = pyagrum.ShaferShenoyMRFInference(to_markov_network(model))
    other.setEvidence({model.domain.names[v]: code for v, code in evidence.items()})
    other.makeInference()
    ours = model.marginals(model.domain.decode(evidence))
    for name in model.domain.names:
        np.testing.assert_allclose(
            ours[name].probabilities, other.posterior(name).toarray(), rtol=0, atol=1e-6
        )
