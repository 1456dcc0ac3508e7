import json
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from studies.paper.__main__ import command

SMALL = ("--sizes", "20,60", "--variables", "4", "--reps", "2", "--learners", "CSGS,cspc,GSMN", "--jobs", "1")


def run(*words):
    return CliRunner().invoke(command, [str(word) for word in words])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper")
    result = run("--out", folder, *SMALL, "--json")
    assert result.exit_code == 0, result.stderr
    return folder, result


def test_the_claims_as_json(written):
    told = json.loads(written[1].stdout)
    assert (told["format"], told["version"], told["n_cells"]) == ("unless-paper", 2, 2)
    assert {claim["key"] for claim in told["claims"]} >= {"similar", "CSGS-GSMN", "fewer", "growing"}
    described = run("--help").stdout.partition("The JSON document")[2]
    assert all(key in described for key in {**told, **told["claims"][0]})


def test_figures_and_tables_are_written(written):
    folder, _ = written
    names = {path.name for path in folder.iterdir()}
    assert names == {"runs", "times", "claims.md", "numbers.md", "means.csv", "networks.csv", "times.csv",
                     "figure1.svg", "figure2.svg", "figure3.svg", "figure4.svg"}  # fmt: skip
    for path in folder.glob("*.svg"):
        words = " ".join(ElementTree.parse(path).getroot().itertext())
        assert "n = 4" in words
        assert "CSGS" in words


def test_run_again_it_says_the_same_at_once(written):
    folder, _ = written
    before = {path: path.stat().st_mtime_ns for path in (folder / "runs").rglob("*.json")}
    shown = run("--out", folder, *SMALL).stdout
    assert before == {path: path.stat().st_mtime_ns for path in (folder / "runs").rglob("*.json")}
    assert "questions of CSGS below CSPC" in shown


def test_figures_of_a_wider_plan_do_not_stay(tmp_path):
    stale = [tmp_path / name for name in ("figure2.svg", "figure5.svg", "figure5-f1.svg")]
    for path in (*stale, tmp_path / "mine.svg"):
        path.touch()
    words = ("--sizes", "1500", "--variables", "3", "--reps", "1", "--learners", "generating", "--jobs", "1")
    assert run("--out", tmp_path, *words).exit_code == 0
    assert not any(path.exists() for path in stale)
    # A reference learns nothing: there are no curves for the other figures.
    assert {path.name for path in tmp_path.glob("*.svg")} == {"figure1.svg", "mine.svg"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--sizes", "5"), "--sizes 5 must be from 10 to 100,000."),
        (("--sizes", "a"), "'a' is no list of whole numbers; write 20,100,1000"),
        (("--variables", "40"), "--variables 40 must be from 3 to 14."),
        (("--learners", "PC"), "--learners 'PC' is not known"),
    ],
)
def test_bad_wishes_get_a_sentence(tmp_path, words, sentence):
    result = run("--out", tmp_path / "new", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not (tmp_path / "new").exists()


def test_without_the_library_that_draws_nothing_is_begun(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("--out", tmp_path / "new", *SMALL)
    assert result.exit_code == 2
    assert "pip install 'unless[figures]'" in result.stderr
    assert not (tmp_path / "new").exists()
