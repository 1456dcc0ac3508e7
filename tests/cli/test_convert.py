import json

import numpy as np
import pytest

import unless as library
from unless.formats.catalogue import read_model
from unless.formats.graphml import read_graphml

BIF = """network unknown { }
variable Rain { type discrete [ 2 ] { yes, no }; }
variable Grass { type discrete [ 2 ] { wet, dry }; }
probability ( Rain ) { table 0.2, 0.8; }
probability ( Grass | Rain ) { (yes) 0.9, 0.1; (no) 0.25, 0.75; }
"""


@pytest.mark.parametrize("ending", [".unless", ".mn", ".uai", ".json"])
def test_there_and_back(unless, fitted, tmp_path, ending):
    there, back = tmp_path / f"there{ending}", tmp_path / "back.unless"
    assert unless("convert", fitted, there).exit_code == 0
    assert unless("convert", there, back).exit_code == 0
    net, again = read_model(fitted), read_model(back)
    assert again.domain == net.domain
    for variable in net.domain.names:
        np.testing.assert_allclose(net.query(variable).probabilities, again.query(variable).probabilities)
    if ending != ".uai":
        assert again.features == net.features
        assert again.weights.tolist() == net.weights.tolist()
    if ending == ".unless":
        # Other formats do not tell how the weights were found.
        assert back.read_bytes() == fitted.read_bytes()


def test_what_was_written_is_told(unless, fitted, tmp_path):
    result = unless("convert", fitted, tmp_path / "m.mn")
    assert result.stdout == f"{tmp_path}/m.mn: a model, 3 variables, 34 weights\n"
    assert f"{tmp_path}/m.mn.names.json" in result.stderr
    told = json.loads(unless("convert", fitted, tmp_path / "m.uai", "--json").stdout)
    assert told["names"] == str(tmp_path / "m.uai.names.json")
    assert (told["kind"], told["n_variables"], told["n_features"]) == ("model", 3, 34)
    described = unless("convert", "--help").stdout.partition("The JSON document")[2]
    assert all(key in described for key in told)


def test_a_known_network(unless, tmp_path):
    (tmp_path / "n.bif").write_text(BIF)
    assert unless("convert", tmp_path / "n.bif", tmp_path / "n.json").exit_code == 0
    assert read_model(tmp_path / "n.json").query("Grass")["wet"] == pytest.approx(0.38)
    assert "0.3800" in unless("query", tmp_path / "n.bif", "Grass").stdout


def test_a_fitted_model_becomes_a_directed_network(unless, fitted, tmp_path):
    result = unless("convert", fitted, tmp_path / "m.bif")
    assert result.stdout == f"{tmp_path}/m.bif: a model, 3 variables, 34 weights\n"
    assert result.stderr == ""
    before, after = library.load(fitted), read_model(tmp_path / "m.bif")
    for name in after.domain.names:
        np.testing.assert_allclose(
            after.query(name).probabilities, before.query(name).probabilities, atol=1e-9
        )


def test_a_learned_structure_becomes_a_graph(unless, contexts, tmp_path):
    result = unless("convert", contexts, tmp_path / "g.graphml")
    assert result.stdout == f"{tmp_path}/g.graphml: a graph, 3 variables, 3 edges\n"
    assert "Only the graph" in result.stderr
    graph = read_graphml(tmp_path / "g.graphml")
    assert graph.shares == pytest.approx(dict(library.load(contexts).structure_.given().shares))
    back = unless("convert", tmp_path / "g.graphml", tmp_path / "g.unless")
    assert (back.exit_code, back.stderr) == (0, "")
    assert library.load(tmp_path / "g.unless") == graph


def test_a_model_becomes_a_graph(unless, fitted, tmp_path):
    unless("convert", fitted, tmp_path / "g.graphml")
    assert read_graphml(tmp_path / "g.graphml") == read_model(fitted).features.graph()


def test_a_set_of_features_becomes_a_graph(unless, fitted, tmp_path):
    features = read_model(fitted).features
    library.save(features, tmp_path / "f.unless")
    assert unless("convert", tmp_path / "f.unless", tmp_path / "g.graphml").exit_code == 0
    assert read_graphml(tmp_path / "g.graphml") == features.graph()
    copied = unless("convert", tmp_path / "f.unless", tmp_path / "h.unless")
    assert "a set of features, 3 variables, 34 features" in copied.stdout


def test_what_was_learned_stays_learned(unless, berkeley, contexts, tmp_path):
    told = {
        berkeley: "a graph with gates, 3 variables, 3 links",
        contexts: "a graph for each context, 3 variables, 24 contexts",
    }
    for model, words in told.items():
        result = unless("convert", model, tmp_path / "m.unless")
        assert words in result.stdout
        assert model.read_bytes() == (tmp_path / "m.unless").read_bytes()
