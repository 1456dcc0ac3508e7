import json

import numpy as np
import pytest

import unless as library


def write(path, n, seed, strength):
    rng = np.random.default_rng(seed)
    x, z = rng.integers(0, 2, n), rng.integers(0, 2, n)
    y = np.where(rng.random(n) < strength, x, rng.integers(0, 2, n))
    path.write_text("x,y,z\n" + "".join(f"{a},{b},{c}\n" for a, b, c in zip(x, y, z, strict=True)))
    return path


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("years")
    return write(folder / "2023.csv", 1_000, 1, 0.0), write(folder / "2024.csv", 1_000, 2, 0.5)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Keep a model that has its rows."""
    path = tmp_path_factory.mktemp("models") / "berkeley.unless"
    library.save(library.CSGS().fit(library.datasets.load_ucb_admissions()), path)
    return path


@pytest.fixture(scope="module")
def graph(model):
    """Keep a graph of the same columns, which has no rows."""
    path = model.with_name("graph.unless")
    domain = library.datasets.load_ucb_admissions().domain
    library.save(library.Graph(domain, [("Admit", "Dept")]), path)
    return path


def test_two_tables(unless, tables):
    result = unless("compare", *tables)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(
        "2023.csv: 1,000 rows\n2024.csv: 1,000 rows\n\n"
        "x and y are linked in 2024.csv (V = .49) but not in 2023.csv (V at most .10; q = 2e-33).\n"
    )
    told = json.loads(unless("compare", *tables, "--json").stdout)
    assert (told["format"], told["version"], told["is_test"]) == ("unless-changes", 2, True)
    assert [(one["pair"], one["kind"]) for one in told["pairs"] if one["kind"] != "not shown"] == [
        (["x", "y"], "gained")
    ]
    assert "No difference is shown for 3 pairs" in unless("compare", tables[0], tables[0]).stdout


def test_options_of_reading_and_testing(unless, tables):
    told = json.loads(unless("compare", *tables, "--columns", "x,z", "--json", "--effect", "0.01").stdout)
    (one,) = told["pairs"]
    assert (one["pair"], one["kind"]) == (["x", "z"], "not shown")
    assert one["more_rows"] > 10_000
    result = unless("compare", *tables, "--fdr", "2")
    assert (result.exit_code, result.stdout) == (2, "")


def test_groups_of_a_table(unless, berkeley_csv, model):
    result = unless("compare", berkeley_csv, "--by", "Dept")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "Dept = A: 933 rows\nDept = B: 585 rows\nDept = C: 918 rows\nDept = D: 792 rows\n"
        "Dept = E: 584 rows\nDept = F: 714 rows\n\n"
        "Admit and Gender are linked where Dept = A (V = .14) but not where Dept is not A (V at most .04; "
        "q = .0027).\n"
    )
    # A model that keeps its rows is as good as its table.
    assert unless("compare", model, "--by", "Dept").stdout == result.stdout
    told = json.loads(unless("compare", berkeley_csv, "--by", "Dept", "--json").stdout)
    assert told["settings"]["by"] == "Dept"
    assert told["pairs"][0]["first"]["where"] == [{"Dept": ["A"]}]


def test_models_that_keep_rows_are_compared_by_them(unless, model, berkeley_csv):
    told = json.loads(unless("compare", model, model, "--json").stdout)
    assert (told["is_test"], {one["kind"] for one in told["pairs"]}) == (True, {"not shown"})
    assert [one["n_rows"] for one in told["sides"]] == [4_526, 4_526]
    assert unless("compare", model, berkeley_csv).exit_code == 0


def test_models_without_rows_are_compared_as_structures(unless, model, berkeley_csv, graph):
    result = unless("compare", model, graph)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "This is no test of a difference." in result.stdout
    assert "Dept - Gender: linked only in the first in 24 of 24 contexts\n" in result.stdout
    result = unless("compare", model, graph, "--table", berkeley_csv, "--missing", "drop")
    assert "Dept - Gender: linked only in the first in 4,526 of 4,526 rows\n" in result.stdout
    told = json.loads(unless("compare", model, graph, "--table", berkeley_csv, "--json").stdout)
    assert (told["is_test"], told["version"], told["structures"]["n_contexts"]) == (False, 2, 4_526)


def test_what_cannot_be_compared_gets_one_sentence(unless, berkeley_csv, model, graph, tmp_path):
    for words, sentence in (
        ([model], "give two tables or models, or a table and --by"),
        ([berkeley_csv, graph], "keeps no rows to compare"),
        ([graph, "--by", "Dept"], "keeps no rows to compare"),
        ([berkeley_csv, "--by", "Dep"], "did you mean 'Dept'?"),
        ([berkeley_csv, "--by", "Dept", "--table", berkeley_csv], "--table is for two models"),
        ([berkeley_csv, berkeley_csv, "--table", berkeley_csv], "--table is for two models"),
        ([model, graph, "--table", berkeley_csv, "--columns", "Dept"], "--columns is for tables"),
        ([model, graph, "--table", berkeley_csv, "--fdr", "0.1"], "--fdr is for tests"),
    ):
        result = unless("compare", *words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert sentence in result.stderr
        assert result.stderr.count("\n") == 1
    (tmp_path / "one.csv").write_text("a,b,c\n" + "0,0,x\n1,1,x\n" * 20)
    assert "constant, left out" in unless("compare", tmp_path / "one.csv", "--by", "c").stderr
    alone = unless("compare", tmp_path / "one.csv", "--by", "c", "--strict")
    assert "makes one group" in alone.stderr


def test_options_that_read_are_refused_where_nothing_is_read(unless, model):
    for words in (["--missing", "drop"], ["--columns", "Dept"]):
        for files in ([model, model], [model, "--by", "Dept"]):
            result = unless("compare", *files, *words)
            assert (result.exit_code, result.stdout) == (2, "")
            assert f"{words[0]} is for tables" in result.stderr


def test_a_group_that_is_too_small_is_told(unless, tmp_path):
    rows = [f"{a},{a},big" for a in "01" for _ in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,group", *rows, "0,0,small", "1,1,small"]))
    result = unless("compare", tmp_path / "t.csv", "--by", "group")
    assert (result.exit_code, result.stdout) == (
        0,
        "group = big: 80 rows\n\nFewer than 20 rows, too few to compare: small.\n",
    )


def test_help_has_examples(unless):
    told = unless("compare", "--help").stdout
    assert "unless compare 2023.csv 2024.csv" in told
    assert "that is no test" in " ".join(told.split())
