import json
import subprocess
import sys

import pytest

import unless as library

GATED = "Admit depends on Gender only when Dept = A (933 of 4,526 rows, V = .14, q = 2e-4)."


def test_all_pairs(unless, berkeley):
    lines = unless("show", berkeley).stdout.splitlines()
    assert lines[:2] == ["CSGS, 4,526 rows, 3 columns, 24 contexts, 2 different graphs", ""]
    assert lines[2] == GATED
    assert {line.partition(" (")[0] for line in lines[3:5]} == {
        "Dept depends on Gender",
        "Admit depends on Dept",
    }
    assert lines == [line.rstrip() for line in lines]


def test_a_context_where_a_link_is_absent(unless, berkeley):
    result = unless("show", berkeley, "--context", "Dept=B")
    assert result.exit_code == 0
    assert "Where Dept = B: 585 of 4,526 rows" in result.stdout
    assert "Admit and Gender are never linked (585 rows, p = .61, V at most .11)." in result.stdout


def test_a_context_where_it_is_present(unless, berkeley):
    assert "Admit depends on Gender (933 rows," in unless("show", berkeley, "--context", "Dept=A").stdout


def test_what_matters_for_one_column(unless, berkeley):
    shown = unless("show", berkeley, "--target", "Gender").stdout
    assert "Gender depends on Admit only when Dept = A" in shown
    assert "Admit depends on Dept" not in shown
    assert unless("show", berkeley, "--target", "Gendre").exit_code == 2


def test_a_complete_context_leaves_nothing_to_say(unless, berkeley):
    words = ("-c", "Dept=C", "-c", "Gender=Male", "-c", "Admit=Rejected")
    told = json.loads(unless("show", berkeley, *words, "--json").stdout)
    graph = library.load(berkeley).structure_.graph(told["context"])
    assert (told["n_rows"], told["statements"]) == (graph.n_rows, [])
    assert told["note"] in unless("show", berkeley, *words).stdout


@pytest.mark.parametrize(
    ("context", "word"),
    [
        (["Dep=A"], "did you mean 'Dept'?"),
        (["Dept=Z"], "'Z' is not a level of 'Dept'"),
        (["Dept"], "NAME=LABEL"),
        (["Dept=A", "Dept=B"], "'Dept' twice"),
    ],
)
def test_a_context_that_cannot_be(unless, berkeley, context, word):
    result = unless("show", berkeley, *(part for text in context for part in ("-c", text)))
    assert (result.exit_code, result.stdout) == (2, "")
    assert word in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_context_never_seen(unless, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n0,0\n1,1\n")
    unless("learn", tmp_path / "t.csv", "-o", tmp_path / "m")
    result = unless("show", tmp_path / "m", "-c", "a=0", "-c", "b=1")
    assert result.exit_code == 2
    assert "never showed" in result.stderr


def test_no_links_at_all(unless, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "0,0\n1,1\n0,1\n1,0\n" * 50)
    unless("learn", tmp_path / "t.csv", "-o", tmp_path / "m")
    assert "a and b are never linked (200 rows, p = 1, V at most " in unless("show", tmp_path / "m").stdout
    (said,) = json.loads(unless("show", tmp_path / "m", "--json").stdout)["statements"]
    assert (said["claim"], said["verdict"]) == ("never", "independent")


def test_a_table_too_small_to_speak_of(unless, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n0,0\n1,1\n")
    learned = unless("learn", tmp_path / "t.csv", "-o", tmp_path / "m")
    assert "The table has 2 rows; fewer than 5 say nothing about any pair." in learned.stdout
    assert "fewer than 5" in unless("show", tmp_path / "m").stdout


def test_a_structure_without_a_learner(unless, berkeley, tmp_path):
    library.save(library.load(berkeley).structure_, tmp_path / "m.unless")
    assert unless("show", tmp_path / "m.unless").stdout.startswith("4,526 rows")
    assert json.loads(unless("show", tmp_path / "m.unless", "--json").stdout)["learner"] is None


def test_a_single_graph_is_the_same_in_every_context(unless, berkeley, tmp_path):
    model = library.load(berkeley).structure_
    library.save(library.Graph(model.domain, [("Dept", "Admit")]), tmp_path / "g.unless")
    result = unless("show", tmp_path / "g.unless")
    assert result.stdout.splitlines() == [
        "A graph over 3 columns: 1 of 3 pairs linked, everywhere.", "", "Pair", "Admit - Dept"
    ]  # fmt: skip
    told = json.loads(unless("show", tmp_path / "g.unless", "--json").stdout)
    assert (told["format"], told["links"]) == ("unless-graph", [{"pair": ["Admit", "Dept"]}])
    assert unless("show", tmp_path / "g.unless", "-c", "Dept=A").exit_code == 2


def test_a_model_without_rows_is_weighed_by_a_table(unless, berkeley, berkeley_csv, tmp_path):
    est = library.GGS().fit(library.read(berkeley_csv))
    library.save(est, tmp_path / "m.unless")
    said = [f"{one.sentence}." for one in est.statements_ if one.claim != "never" or one.is_dependent]
    result = unless("show", tmp_path / "m.unless", berkeley_csv)
    assert result.stdout.startswith("GGS, 4,526 rows, a graph with gates, 3 variables")
    assert result.stdout.splitlines()[2 : 2 + len(said)] == said
    told = json.loads(unless("show", tmp_path / "m.unless", berkeley_csv, "--json", "-c", "Dept=A").stdout)
    assert (told["format"], told["n_rows"], told["context"]) == ("unless-statements", 933, {"Dept": "A"})
    assert "name the table" in unless("show", tmp_path / "m.unless", "--target", "Admit").stderr


def test_features_are_counted_by_pair(unless, berkeley, fitted, tmp_path):
    features = library.load(berkeley).structure_.features()
    library.save(features, tmp_path / "f.unless")
    for path in (tmp_path / "f.unless", fitted):
        assert (
            f"{len(features)} features over 3 columns: 3 of 3 pairs together" in unless("show", path).stdout
        )
        told = json.loads(unless("show", path, "--json", "-c", "Dept=B").stdout)
        assert told["format"] == "unless-features"
        assert {tuple(link["pair"]) for link in told["links"]} == features.given({"Dept": "B"}).edges
        for link in told["links"]:
            both = [one for one in features if {*link["pair"]} <= {*one.scope}]
            agree = [one for one in both if all(c.name != "Dept" or (c.label == "B") == c.equal for c in one)]
            assert link["n_features"] == len(agree)


def test_json_says_what_python_says(unless, berkeley):
    told = json.loads(unless("show", berkeley, "--json").stdout)
    statements = library.load(berkeley).statements_
    assert told["statements"] == json.loads(json.dumps(statements.to_dict()["statements"]))
    shares = library.load(berkeley).structure_.link_shares()
    assert {tuple(one["pair"]): one["share"] for one in told["statements"]} == pytest.approx(shares)


def test_every_key_of_the_json_is_in_the_help(unless, berkeley):
    told = json.loads(unless("show", berkeley, "--json").stdout)
    described = unless("show", "--help").stdout.partition("The JSON document")[2]
    said = next(one for one in told["statements"] if one["gate"])
    nested = (said, said["gate"], said["linked"], said["linked"]["odds_ratio"], told["made_by"])
    for key in [*told, *(key for one in nested for key in one)]:
        assert key in described


def test_showing_needs_no_kernels(berkeley):
    code = f"""
import sys
from unless.cli import main
try:
    main(["show", {str(berkeley)!r}])
except SystemExit:
    sys.exit("numba" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_a_terminal_that_cannot_write_a_name(process, unless, tmp_path):
    (tmp_path / "t.csv").write_text("日本,b\n0,é\n1,b\n" * 50, encoding="utf-8")
    unless("learn", tmp_path / "t.csv", "-o", tmp_path / "m")
    plain = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1"}
    assert r"\u65e5\u672c" in process("show", tmp_path / "m", **plain).stdout
    told = process("show", tmp_path / "m", "--json", **plain).stdout
    assert json.loads(told)["variables"][0]["name"] == "日本"
