"""Models handed to pgmpy and pyAgrum, where they are installed."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from formats.models import log_probabilities, same_distribution, small_model, states
from unless.errors import MissingExtra, SettingError
from unless.formats.peers import from_pgmpy, from_pyagrum, to_pgmpy, to_pyagrum


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


def pgmpy_table(variables, values, states):
    return SimpleNamespace(variables=variables, values=np.array(values, dtype=float), state_names=states)


def rain(cpds=None):
    """Return what has the attributes of a Bayesian network of pgmpy: rain, and the grass that may be wet."""
    tables = cpds or [
        pgmpy_table(["rain"], [0.2, 0.8], {"rain": ["yes", "no"]}),
        # The states of the parent come in another order, and those of the child are numbers.
        pgmpy_table(
            ["grass", "rain"],
            [[0.1, 0.7], [0.3, 0.2], [0.6, 0.1]],
            {"grass": [0, 1, 2], "rain": ["no", "yes"]},
        ),
    ]
    return SimpleNamespace(get_cpds=lambda: tables, nodes=lambda: ["grass", "rain"])


def test_a_bayesian_network_with_the_attributes_of_pgmpys_becomes_a_model():
    model = from_pgmpy(rain())
    assert model.domain.names == ("grass", "rain")
    assert (model.domain["grass"].levels, model.domain["grass"].kind) == (("0", "1", "2"), "integer")
    np.testing.assert_allclose(model.query("rain", {}).probabilities, np.array([0.2, 0.8]))
    np.testing.assert_allclose(model.query("grass", {"rain": "yes"}).probabilities, [0.7, 0.2, 0.1])
    np.testing.assert_allclose(model.query("grass", {"rain": "no"}).probabilities, [0.1, 0.3, 0.6])
    assert np.exp(log_probabilities(model)).sum() == pytest.approx(1)


def test_a_markov_network_with_the_attributes_of_pgmpys_becomes_a_model():
    states = {"b": [True, False], "a": ["x", "y"]}
    factors = [pgmpy_table(["b", "a"], [[1, 2], [3, 0]], states), pgmpy_table(["a"], [2, 1], states)]
    network = SimpleNamespace(get_factors=lambda: factors, nodes=lambda: ["a", "b"])
    model = from_pgmpy(network)
    assert model.domain["b"].kind == "boolean"
    assert model.probability({"a": "x", "b": True}) == pytest.approx(2 / 10)
    assert model.probability({"a": "y", "b": True}) == pytest.approx(2 / 10)
    assert model.probability({"a": "x", "b": False}) == pytest.approx(6 / 10)
    assert model.probability({"a": "y", "b": False}) == 0


@pytest.mark.parametrize(
    ("cpds", "trouble"),
    [
        ([pgmpy_table(["rain"], [0.2, 0.8], {"rain": ["yes", "no"]})], "'grass' has no table"),
        (
            [
                pgmpy_table(["rain"], [0.2, 0.8], {"rain": ["yes", "no"]}),
                pgmpy_table(["rain", "grass"], [[0.5], [0.5]], {"rain": ["yes", "no"], "grass": ["x"]}),
            ],
            "'grass' does not have one table of its own",
        ),
        (
            [
                pgmpy_table(["rain"], [0.2, 0.8], {"rain": ["yes", "no"]}),
                pgmpy_table(["grass", "rain"], [[1, 1]], {"rain": ["y", "n"], "grass": ["x"]}),
            ],
            "different states of 'rain'",
        ),
        (
            [
                pgmpy_table(["rain"], [0.2, 0.7], {"rain": ["yes", "no"]}),
                pgmpy_table(["grass"], [1], {"grass": ["x"]}),
            ],
            "of 'rain' do not sum to 1",
        ),
        (
            [
                pgmpy_table(["rain"], [0.2, np.nan], {"rain": ["yes", "no"]}),
                pgmpy_table(["grass"], [1], {"grass": ["x"]}),
            ],
            "over 'rain' does not hold a number",
        ),
        ([SimpleNamespace(variable="rain", mean=3)], "takes a discrete Bayesian or Markov network of pgmpy"),
    ],
)
def test_what_is_wrong_with_a_network_is_told(cpds, trouble):
    with pytest.raises(SettingError, match=trouble):
        from_pgmpy(rain(cpds))


@pytest.mark.parametrize("convert", [from_pgmpy, from_pyagrum])
def test_other_objects_are_refused(convert):
    with pytest.raises(SettingError, match=r"takes a discrete Bayesian or Markov network of .*, not dict"):
        convert({})


class FakeVariable:
    def __init__(self, name, labels):
        self.name, self.labels = lambda: name, lambda: labels


def pyagrum_network(markov=False):
    """Return what has the attributes of a network of pyAgrum: axes of arrays are in reverse."""
    variables = [FakeVariable("rain", ("yes", "no")), FakeVariable("grass", ("wet", "a bit", "dry"))]
    alone = SimpleNamespace(names=("rain",), toarray=lambda: np.array([0.2, 0.8]))
    both = SimpleNamespace(
        names=("grass", "rain"), toarray=lambda: np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    )
    said = {"nodes": lambda: {1, 0}, "variable": variables.__getitem__}
    if not markov:
        return SimpleNamespace(**said, cpt=[alone, both].__getitem__)
    tables = {frozenset((0, 1)): both, frozenset((0,)): alone}
    return SimpleNamespace(
        **said, factors=lambda: list(tables), factor=lambda scope: tables[frozenset(scope)]
    )


@pytest.mark.parametrize("markov", [False, True])
def test_a_network_with_the_attributes_of_pyagrums_becomes_a_model(markov):
    model = from_pyagrum(pyagrum_network(markov))
    assert model.domain.names == ("rain", "grass")
    np.testing.assert_allclose(model.query("rain").probabilities, [0.2, 0.8])
    np.testing.assert_allclose(model.query("grass", {"rain": "yes"}).probabilities, [0.7, 0.2, 0.1])


@pytest.mark.filterwarnings("ignore")
def test_pgmpy_there_and_back():
    pytest.importorskip("pgmpy.models", reason="pgmpy is not installed")
    model = small_model()
    assert same_distribution(from_pgmpy(to_pgmpy(model)), model)


@pytest.mark.filterwarnings("ignore")
def test_a_bayesian_network_of_pgmpy_gives_the_same_answers(tmp_path):
    readwrite = pytest.importorskip("pgmpy.readwrite", reason="pgmpy is not installed")
    from unless.formats.bif import write_bif

    write_bif(small_model(), tmp_path / "x.bif")
    network = readwrite.BIFReader(str(tmp_path / "x.bif")).get_model()
    model = from_pgmpy(network)
    for name, shares in marginals(small_model()).items():
        np.testing.assert_allclose(model.query(name).probabilities, shares, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_pyagrum_there_and_back():
    gum = pytest.importorskip("pyagrum", reason="pyAgrum is not installed")
    model = small_model()
    assert same_distribution(from_pyagrum(to_pyagrum(model)), model)
    network = gum.fastBN("a{x|y|z}->b[3]->c;a->c;d")
    asked = gum.LazyPropagation(network)
    made = from_pyagrum(network)
    for name in made.domain.names:
        np.testing.assert_allclose(made.query(name).probabilities, asked.posterior(name).tolist(), atol=1e-9)
