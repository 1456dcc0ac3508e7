import json

import unless as library


def test_groups_of_a_table(unless, berkeley_csv):
    result = unless("compare", berkeley_csv, "--by", "Dept")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.count("First:  Dept = A\n") == 5
    assert result.stdout.count("Only in the first:\n  Admit - Gender\n") == 5
    assert "first:  Admit depends on Gender (933 rows, V = .14, q = 3e-5)." in result.stdout
    told = json.loads(unless("compare", berkeley_csv, "--by", "Dept", "--json").stdout)
    assert (told["format"], told["version"]) == ("unless-changes", 1)
    assert [one["second"] for one in told["comparisons"]] == [f"Dept = {label}" for label in "BCDEF"]
    for one in told["comparisons"]:
        assert [lost["pair"] for lost in one["lost"]] == [["Admit", "Gender"]]
        assert (one["gained"], one["changed"], one["n_same"]) == ([], [], 0)


def test_two_models(unless, berkeley_csv, berkeley, tmp_path):
    words = ("--forbid", "Admit:Gender", "--alpha", "0.01")
    assert unless("learn", berkeley_csv, "-o", tmp_path / "other.unless", *words).exit_code == 0
    (same,) = json.loads(unless("compare", berkeley, berkeley, "--json").stdout)["comparisons"]
    assert (same["n_same"], same["gained"], same["lost"], same["changed"]) == (3, [], [], [])
    (one,) = json.loads(unless("compare", berkeley, tmp_path / "other.unless", "--json").stdout)[
        "comparisons"
    ]
    assert [change["pair"] for change in one["changed"]] == [["Admit", "Gender"]]
    # Pooled over departments the dependence is seen, though this model does not draw it.
    assert "though the structure does not link them" in one["changed"][0]["second"]["sentence"]
    assert "In other contexts:" in unless("compare", berkeley, tmp_path / "other.unless").stdout


def test_what_cannot_be_compared_gets_one_sentence(unless, berkeley_csv, berkeley, tmp_path):
    library.save(library.Graph(library.load(berkeley).structure_.domain), tmp_path / "g.unless")
    for words, sentence in (
        ([berkeley], "give two models, or a table and --by"),
        ([berkeley, tmp_path / "g.unless"], "keeps no rows to weigh"),
        ([berkeley_csv, "--by", "Dep"], "did you mean 'Dept'?"),
        ([berkeley_csv, "--by", "Dept", "--learner", "pc"], "There is no learner 'pc'"),
    ):
        result = unless("compare", *words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert sentence in result.stderr
        assert result.stderr.count("\n") == 1
    (tmp_path / "one.csv").write_text("a,b,c\n" + "0,0,x\n1,1,x\n" * 20)
    assert "makes one group" in unless("compare", tmp_path / "one.csv", "--by", "c").stderr


def test_models_without_rows_are_weighed_by_a_table(unless, berkeley_csv, berkeley, tmp_path):
    domain = library.load(berkeley).structure_.domain
    library.save(library.Graph(domain, [("Admit", "Dept")]), tmp_path / "g.unless")
    files = berkeley, tmp_path / "g.unless"
    result = unless("compare", *files, "--table", berkeley_csv, "--missing", "drop")
    assert "In other contexts:" in result.stdout
    for words, sentence in (
        ([*files, "--table", berkeley_csv, "--columns", "Dept"], "--columns is for tables"),
        ([berkeley_csv, "--by", "Dept", "--table", berkeley_csv], "--table is for two models"),
    ):
        assert sentence in unless("compare", *words).stderr


def test_options_that_learn_are_refused_where_nothing_is_learned(unless, berkeley):
    for words in (["--alpha", "0.01"], ["--learner", "GSMN"], ["--missing", "drop"], ["--set", "rule=and"]):
        result = unless("compare", berkeley, berkeley, *words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"{words[0]} is for tables" in result.stderr


def test_a_group_that_says_nothing_says_why(unless, tmp_path):
    rows = [f"{a},{a},big" for a in "01" for _ in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,group", *rows, "0,0,small", "1,1,small"]))
    result = unless("compare", tmp_path / "t.csv", "--by", "group")
    assert "Of the second: The table has 2 rows; fewer than 5 say nothing about any pair." in result.stdout
    (one,) = json.loads(unless("compare", tmp_path / "t.csv", "--by", "group", "--json").stdout)[
        "comparisons"
    ]
    assert (one["notes"][0], one["notes"][1][:20]) == ("", "The table has 2 rows")
