import json
import subprocess
import sys

import pytest

import unless as library


def test_all_pairs(unless, berkeley):
    lines = unless("show", berkeley).stdout.splitlines()
    assert lines[0] == "CSGS, 4,526 rows, 3 columns, 24 contexts, 2 different graphs"
    assert [line.split("  ")[0] for line in lines[3:6]] == ["Admit - Dept", "Dept - Gender", "Admit - Gender"]
    assert lines[-1] == "Every pair is linked somewhere."
    assert lines == [line.rstrip() for line in lines]


def test_a_context_where_a_link_is_absent(unless, berkeley):
    result = unless("show", berkeley, "--context", "Dept=B", "-c", "Gender=Male")
    assert result.exit_code == 0
    assert "Where Gender = Male, Dept = B: 560 of 4,526 rows, 2 of 24 contexts" in result.stdout
    here, _, elsewhere = result.stdout.partition("Not linked here, though elsewhere:")
    assert "Admit - Gender" in elsewhere
    assert "Admit - Gender" not in here
    assert "Admit - Dept" in here


def test_a_context_where_nothing_is_absent(unless, berkeley):
    result = unless("show", berkeley, "--context", "Dept=A")
    assert "Every link of the whole table is found here." in result.stdout


def test_a_complete_context(unless, berkeley):
    told = json.loads(
        unless("show", berkeley, "-c", "Dept=C", "-c", "Gender=Male", "-c", "Admit=Rejected", "--json").stdout
    )
    graph = library.load(berkeley).structure_.graph(told["context"])
    assert told["here"] == {"n_contexts": 1, "n_graphs": 1, "n_rows": graph.n_rows}
    assert {tuple(link["pair"]) for link in told["links"] if link["here"]["share"]} == graph.edges


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
    (tmp_path / "t.csv").write_text("a,b\n0,0\n1,1\n0,1\n1,0\n")
    unless("learn", tmp_path / "t.csv", "-o", tmp_path / "m")
    assert unless("show", tmp_path / "m").stdout.endswith("\n\nLinked nowhere: 1 of 1 pair.\n")
    assert "No pair is linked here." in unless("show", tmp_path / "m", "-c", "a=0").stdout
    assert json.loads(unless("show", tmp_path / "m", "--json").stdout)["links"] == []


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
    told = json.loads(unless("show", berkeley, "--json", "-c", "Gender=Male").stdout)
    model = library.load(berkeley).structure_
    here, whole = model.link_shares({"Gender": "Male"}), model.link_shares()
    assert {tuple(link["pair"]): link["here"]["share"] for link in told["links"]} == here
    assert {tuple(link["pair"]): link["whole"]["share"] for link in told["links"]} == whole
    assert told["links"] == sorted(told["links"], key=lambda link: link["pair"])


def test_every_key_of_the_json_is_in_the_help(unless, berkeley):
    told = json.loads(unless("show", berkeley, "--json").stdout)
    described = unless("show", "--help").stdout.partition("The JSON document")[2]
    link = next(link for link in told["links"] if link["gate"])
    for key in [*told, *told["here"], *link, *link["here"], *link["gate"]]:
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
