import json

import pytest

import unless as library


def test_the_rows_of_the_model_answer(unless, berkeley):
    result = unless("ask", berkeley, "Admit", "Gender", "--context", "Dept=A")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[:4] == [
        "Admit and Gender where Dept = A",
        "  data:  dependent (933 of 4,526 rows, V = .14, p = 3e-5, odds ratio 2.86 (1.71 to 4.79))",
        "  model: dependent (a link in 100 % of these rows)",
        "",
    ]
    asked = library.load(berkeley).ask("Admit", "Gender", context={"Dept": "A"})
    assert result.stdout == f"{asked}\n"


def test_given_other_columns(unless, berkeley):
    pooled = unless("ask", berkeley, "Admit", "Gender", "--given", "Dept").stdout
    assert pooled.startswith("Admit and Gender given Dept\n")
    assert pooled.count("Dept = ") == 6


def test_json_says_what_python_says(unless, berkeley):
    told = json.loads(unless("ask", berkeley, "Admit", "Gender", "-g", "Dept", "--json").stdout)
    asked = library.load(berkeley).ask("Admit", "Gender", given=["Dept"])
    assert told == json.loads(json.dumps({"format": "unless-answer", "version": 1, **asked.to_dict()}))
    described = unless("ask", "--help").stdout.partition("The JSON document")[2]
    nested = (told, told["data"], told["model"], told["data"]["odds_ratio"])
    assert [key for one in nested for key in one if key not in described] == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("Admit", "Missing argument 'B'"),
        ("Admit Gendre", "did you mean 'Gender'?"),
        ("Admit Admit", "'Admit' appears twice in the question"),
        ("Admit Gender --given Gender", "'Gender' appears twice in the question"),
        ("Admit Gender --context Dept", "NAME=LABEL"),
        ("Admit Gender --context Dept=Z", "'Z' is not a level of 'Dept'"),
        ("Admit Gender --context Dept=A --context Dept=B", "'Dept' twice"),
        ("Admit Gender --table nowhere.csv", "nowhere.csv"),
    ],
)
def test_wrong_words_get_one_sentence(unless, berkeley, words, sentence):
    result = unless("ask", berkeley, *words.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_model_without_rows_asks_for_the_table(unless, fitted, berkeley_csv):
    refused = unless("ask", fitted, "Admit", "Gender")
    assert refused.exit_code == 2
    assert "name the table as well: --table FILE" in refused.stderr
    assert unless("ask", fitted, "Admit", "Gender", "--table", berkeley_csv).exit_code == 0
