import json

import numpy as np
import pytest

from unless import Feature, FeatureSet, LogLinearModel, Variable, save
from unless.data.domain import Domain
from unless.formats.catalogue import read_model


def lines_of(result):
    assert result.exit_code == 0, result.stderr
    return result.stdout.splitlines()


def test_one_variable(unless, fitted):
    lines = lines_of(unless("query", fitted, "Admit"))
    assert lines[0] == "Exact."
    assert lines[2].split() == ["Admit", "Probability"]
    answer = read_model(fitted).query("Admit")
    assert lines[3:] == [f"{label}       {answer[label]:.4f}" for label in ("Admitted", "Rejected")]


def test_several_given_something(unless, fitted):
    lines = lines_of(unless("query", fitted, "Admit", "Gender", "-g", "Dept=A", "--given", "Gender=Male"))
    assert lines[:2] == ["Given Gender = Male, Dept = A.", "Exact."]
    assert lines[3].split() == ["Admit", "Gender", "Probability"]
    assert {line.split()[-1] for line in lines[4:] if "Female" in line} == {"0"}


def test_json_says_what_python_says(unless, fitted):
    told = json.loads(unless("query", fitted, "Dept", "Admit", "-g", "Gender=Male", "--json").stdout)
    answer = read_model(fitted).query(["Dept", "Admit"], {"Gender": "Male"})
    assert [tuple(cell["labels"]) for cell in told["cells"]] == list(answer)
    assert [cell["probability"] for cell in told["cells"]] == list(answer.values())
    assert (told["method"], told["given"], told["details"]) == ("exact", {"Gender": "Male"}, {})
    assert {cell["error"] for cell in told["cells"]} == {None}
    assert [one["name"] for one in told["variables"]] == ["Dept", "Admit"]


@pytest.mark.parametrize("words", [["Admit"], ["Admit", "--method", "gibbs"], ["--map"]])
def test_every_key_of_the_json_is_in_the_help(unless, fitted, words):
    told = json.loads(unless("query", fitted, *words, "--json").stdout)
    described = unless("query", "--help").stdout.partition("The JSON document")[2]
    cells = told.get("cells", [{}])
    assert all(key in described for key in [*told, *cells[0]])


def test_gibbs_tells_its_error_and_obeys_the_seed(unless, fitted):
    words = ["query", fitted, "Admit", "--method", "gibbs", "--seed"]
    text = unless(*words, 3).stdout
    assert text.startswith("Gibbs sampling, 4 chains")
    assert "Standard error" in text
    assert text == unless(*words, 3).stdout != unless(*words, 4).stdout
    told = json.loads(unless(*words, 3, "--json").stdout)
    exact = read_model(fitted).query("Admit")["Admitted"]
    assert abs(told["cells"][0]["probability"] - exact) < 5 * told["cells"][0]["error"]
    assert told["details"]["r_hat"] < 1.05


def test_belief_propagation_says_what_it_is_worth(unless, fitted):
    text = unless("query", fitted, "Admit", "--method", "belief").stdout
    assert text.startswith("Belief propagation converged after")
    assert json.loads(unless("query", fitted, "Admit", "--method", "belief", "--json").stdout)["details"]


def test_a_wide_model_is_sampled_and_says_so(unless, wide):
    assert "Gibbs" in unless("query", wide, "v0", "--max-memory", "64 MB").stdout
    result = unless("query", wide, "v0", "--max-memory", "64 MB", "--method", "exact")
    assert result.exit_code == 2
    assert "use --method 'gibbs' or --method 'belief', or raise --max-memory." in result.stderr


def test_an_answer_that_is_not_to_be_trusted_is_a_sentence_and_no_answer(unless, tmp_path):
    # One state of 2^22 has most of the mass.
    domain = Domain(tuple(Variable(f"v{i}", ("0", "1")) for i in range(22)))
    deep = FeatureSet(domain, [Feature.of({f"v{i}": "1" for i in range(22)})])
    save(LogLinearModel(deep, [17.0]), tmp_path / "deep.unless")
    for words in (["query", tmp_path / "deep.unless", "v0"], ["sample", tmp_path / "deep.unless", "-n", 5]):
        result = unless(*words, "--method", "gibbs")
        assert result.exit_code == 2
        assert result.stdout == ""
        assert result.stderr.startswith("unless: Gibbs sampling did not converge: ")
        assert result.stderr.count("\n") == 1
        assert "--method 'exact'" in result.stderr


def test_the_most_probable_of_all(unless, fitted):
    net = read_model(fitted)
    best = net.map_query(evidence={"Gender": "Male"})
    told = json.loads(unless("query", fitted, "--map", "-g", "Gender=Male", "--json").stdout)
    assert told["assignment"] == dict(best)
    assert told["log_probability"] == best.log_probability
    assert told["probability"] == pytest.approx(np.exp(best.log_probability))
    lines = lines_of(unless("query", fitted, "--map", "-g", "Gender=Male"))
    assert lines[0] == "Given Gender = Male."
    assert lines[1].startswith("Exact: together they have probability 0.")
    assert [line.split() for line in lines[4:]] == [list(item) for item in best.items()]


def test_the_most_probable_of_some(unless, fitted):
    told = json.loads(unless("query", fitted, "Dept", "--map", "--json").stdout)
    assert told["assignment"] == dict(read_model(fitted).map_query("Dept"))


def test_certainty_is_1_and_next_to_it_is_not(unless, certain):
    text = unless("query", certain, "b", "--given", "a=0").stdout
    assert [line.split()[-1] for line in text.splitlines()[4:]] == ["1", "0"]


def test_a_long_answer_is_cut_to_the_most_probable(unless, wide):
    words = ["query", wide, "v0", "v1", "v2", "v3", "--max-memory", "64 MB"]
    lines = lines_of(unless(*words))
    assert lines[-1] == "... and 31 less probable; --json prints all."
    shown = [float(line.split()[-2]) for line in lines[3:-1]]
    assert len(shown) == 50
    assert shown == sorted(shown, reverse=True)
    assert len(json.loads(unless(*words, "--json").stdout)["cells"]) == 81


@pytest.mark.parametrize("ending", [".mn", ".uai", ".json"])
def test_other_formats_are_asked_by_the_same_names(unless, fitted, tmp_path, ending):
    unless("convert", fitted, tmp_path / f"m{ending}")
    words = ("Admit", "--given", "Dept=B")
    assert unless("query", tmp_path / f"m{ending}", *words).stdout == unless("query", fitted, *words).stdout
