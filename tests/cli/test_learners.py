"""Every learner, from a table on disk to a question answered."""

import json

import pytest

import unless as library
from unless.learners.registry import LEARNERS

# Settings that decide quickly, as words.
QUICK = {
    "DTSL": ["--set", "kappa=0.01", "--set", "prior=Gaussian(1)"],
    "GSSL": ["--set", "n_draws=500", "--set", "prune=1", "--set", "prior=Gaussian(1) + Laplace(1)"],
}


@pytest.mark.parametrize("learner", LEARNERS)
def test_learn_show_fit_and_query(unless, berkeley_csv, tmp_path, learner):
    words = ["--learner", learner.lower(), *QUICK.get(learner, [])]
    result = unless("learn", berkeley_csv, "-o", tmp_path / "m.unless", *words)
    assert result.exit_code == 0, result.stderr
    assert f"{learner} learned from 4,526 rows of 3 columns" in result.stdout
    assert type(library.load(tmp_path / "m.unless")).__name__ == learner
    shown = unless("show", tmp_path / "m.unless")
    assert shown.exit_code == 0
    for text in (result.stdout, shown.stdout):
        assert "Admit and Dept are linked, given Gender" in text
    told = json.loads(unless("show", tmp_path / "m.unless", "--json").stdout)
    assert (told["format"], told["learner"]) == ("unless-statements", learner)
    assert ["Admit", "Dept"] in [one["pair"] for one in told["statements"] if one["is_finding"]]
    in_b = unless("show", tmp_path / "m.unless", "--context", "Dept=B").stdout
    assert "Where Dept = B: 585 of 4,526 rows" in in_b
    asked = unless("ask", tmp_path / "m.unless", "Admit", "Gender", "--context", "Dept=A")
    assert "dependent (933 of 4,526 rows" in asked.stdout
    assert unless("fit", tmp_path / "m.unless", berkeley_csv, "-o", tmp_path / "f.unless").exit_code == 0
    answer = json.loads(unless("query", tmp_path / "f.unless", "Admit", "--given", "Dept=A", "--json").stdout)
    assert answer


def test_what_a_learner_counts_is_named(unless, berkeley_csv, tmp_path):
    asked, weighed = (
        unless("learn", berkeley_csv, "-o", tmp_path / "m.unless", "--learner", learner).stdout
        for learner in ("CSGS", "CSMPL")
    )
    assert " tests, 12 of them distinct." in asked
    # CSMPL asks no tests.
    assert "It weighed 60 scores, 24 of them distinct." in weighed


def test_json_holds_settings_in_words_and_what_was_tried(unless, berkeley_csv, tmp_path):
    words = [
        "--learner",
        "DTSL",
        "--set",
        "kappa=[0.1, 0.01]",
        "--set",
        "prior=Gaussian(1),Laplace(5)",
        "--json",
    ]
    result = unless("learn", berkeley_csv, "-o", tmp_path / "m.unless", *words)
    told = json.loads(result.stdout)
    assert told["format"] == "unless-statements"
    assert told["settings"]["prior"] == ["Gaussian(1)", "Laplace(5)"]
    assert told["settings"]["kappa"] == [0.1, 0.01]
    assert [one["kappa"] for one in told["results"]["tried"]] == [0.1, 0.1, 0.01, 0.01]


def test_settings_are_judged_by_another_table(unless, berkeley_csv, tmp_path):
    words = ["--learner", "dtsl", "--validation", berkeley_csv]
    assert unless("learn", berkeley_csv, "-o", tmp_path / "m.unless", *words).exit_code == 0
    data = library.read(berkeley_csv)
    wanted = library.DTSL().fit(data, validation=data)
    assert library.load(tmp_path / "m.unless").tried_ == wanted.tried_


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--learner pc", "There is no learner 'pc'"),
        ("--learner gsmn --blankets shared", "--blankets is no setting of GSMN; add --learner CSGS"),
        ("--test bayesian", "--test is no setting of GGS; add --learner CSGS, CSPC, CSGSSL or GSMN"),
        ("--set blankets=shared", "GGS has no setting 'blankets'"),
        ("--fdr 0", "--fdr 0"),
        ("--learner csgs --no-rows", "which --no-rows would leave out"),
        ("--learner dtsl --set kappa=2", "kappa=2"),
        ("--learner dtsl --set kappa", "NAME=LABEL"),
        ("--learner dtsl --set random_state=abc", "'abc' must be None or a whole number"),
        ("--learner csgs --alpha 0.1 --set alpha=0.2", "alpha is given by its own option and by --set"),
        ("--learner dtsl --set kappa=.1 --set kappa=.2", "--set names 'kappa' twice"),
        ("--learner dtsl --set prior=Weak(1)", "'Weak(1)' is no prior"),
        ("--learner csgs --validation TABLE", "--validation is of no use"),
        ("--learner dtsl --validation nowhere.csv", "nowhere.csv"),
    ],
)
def test_wrong_words_get_one_sentence(unless, berkeley_csv, tmp_path, words, sentence):
    given = [str(berkeley_csv) if word == "TABLE" else word for word in words.split()]
    result = unless("learn", berkeley_csv, "-o", tmp_path / "m.unless", *given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "m.unless").exists()
