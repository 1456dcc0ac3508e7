"""Models handed to pgmpy and pyAgrum, where they are installed."""

import sys

import numpy as np
import pytest

from formats.models import log_probabilities, small_model, states
from unless.errors import MissingExtra
from unless.formats.peers import to_pgmpy, to_pyagrum


def marginals(model):
    shares = np.exp(log_probabilities(model))
    rows = states(model.domain)
    return {
        variable.name: [shares[rows[:, place] == code].sum() for code in range(len(variable.levels))]
        for place, variable in enumerate(model.domain)
    }


@pytest.mark.parametrize(("convert", "package"), [(to_pgmpy, "pgmpy"), (to_pyagrum, "pyagrum")])
def test_a_package_that_is_absent_is_named(convert, package, monkeypatch):
    for module in (package, "pgmpy.models", "pgmpy.factors.discrete"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=f"pip install {package}"):
        convert(small_model())


@pytest.mark.filterwarnings("ignore")
def test_pgmpy_agrees():
    inference = pytest.importorskip("pgmpy.inference", reason="pgmpy is not installed")
    model = small_model()
    network = to_pgmpy(model)
    assert network.check_model()
    asked = inference.VariableElimination(network)
    for name, shares in marginals(model).items():
        answer = asked.query([name], show_progress=False)
        assert answer.state_names[name] == list(model.domain[name].levels)
        np.testing.assert_allclose(answer.values / answer.values.sum(), shares)


@pytest.mark.filterwarnings("ignore")
def test_pyagrum_agrees():
    gum = pytest.importorskip("pyagrum", reason="pyAgrum is not installed")
    model = small_model()
    asked = gum.ShaferShenoyMRFInference(to_pyagrum(model))
    asked.makeInference()
    for name, shares in marginals(model).items():
        posterior = asked.posterior(name)
        np.testing.assert_allclose([posterior[{name: label}] for label in model.domain[name].levels], shares)
