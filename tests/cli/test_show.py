import json
import subprocess
import sys

import pytest

import unless as library

GATED = (
    "Admit and Gender are linked only when Dept = A (Admit = Admitted: 82 % where Gender = Female against "
    "62 % where Male; V = .14; elsewhere V at most .04; 933 of 4,526 rows; confidence .89)."
)


def test_all_pairs(unless, berkeley, contexts):
    lines = unless("show", berkeley).stdout.splitlines()
    assert lines[:2] == ["GGS, 4,526 rows, 3 columns", ""]
    assert lines[2] == GATED
    assert {line.partition(" (")[0] for line in lines[3:5]} == {
        "Dept and Gender are linked, given Admit",
        "Admit and Dept are linked, given Gender",
    }
    assert lines == [line.rstrip() for line in lines]
    first = unless("show", contexts).stdout.splitlines()[0]
    assert first == "CSGS, 4,526 rows, 3 columns, 24 contexts, 2 different graphs"


def test_a_context_where_a_link_is_absent(unless, berkeley):
    result = unless("show", berkeley, "--context", "Dept=B")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "Where Dept = B: 585 of 4,526 rows",
        "",
        "Admit and Gender: absent (V at most .04).",
        "Dept and Gender: fixed.",
        "Admit and Dept: fixed.",
    ]


def test_a_context_where_it_is_present_or_in_part(unless, berkeley):
    assert "Admit and Gender: holds." in unless("show", berkeley, "--context", "Dept=A").stdout
    told = json.loads(unless("show", berkeley, "--json", "--context", "Gender=Male").stdout)
    assert {tuple(one["pair"]): one["state"] for one in told["statements"]} == {
        ("Admit", "Gender"): "fixed",
        ("Dept", "Gender"): "fixed",
        ("Admit", "Dept"): "holds",
    }


def test_a_context_is_read_without_a_test(unless, berkeley, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a test is run")

    monkeypatch.setattr("unless.knowledge.explaining.explain", refuse)
    assert unless("show", berkeley, "-c", "Dept=B", "--target", "Admit").exit_code == 0
    assert unless("show", berkeley).exit_code == 0


def test_what_matters_for_one_column(unless, berkeley):
    shown = unless("show", berkeley, "--target", "Gender").stdout
    assert GATED in shown
    assert "Admit and Dept are linked" not in shown
    assert unless("show", berkeley, "--target", "Gendre").exit_code == 2


def test_what_matters_for_a_target_is_in_order_with_its_direction(unless, berkeley):
    lines = unless("show", berkeley, "--target", "Admit").stdout.splitlines()
    assert lines[2] == "What matters for Admit, most first:"
    assert lines[3].startswith("1. Admit = Rejected is more common when Dept = F: 94 % against 30 % when A. ")
    assert lines[4].startswith("2. Where Dept = A, Admit = Rejected is more common when Gender = Male")
    told = json.loads(unless("show", berkeley, "--target", "Admit", "--json").stdout)
    assert told["target"] == "Admit"
    assert [one["pair"] for one in told["statements"]] == [["Admit", "Dept"], ["Admit", "Gender"]]
    assert "more common when Dept = F" in told["statements"][0]["direction"]


def test_a_target_that_was_learned_for_is_remembered(unless, berkeley_csv, tmp_path):
    est = library.learn(berkeley_csv, target="Dept")
    library.save(est, tmp_path / "m.unless")
    assert "Admit and Gender" not in unless("show", tmp_path / "m.unless").stdout
    assert "Admit and Gender" in unless("show", tmp_path / "m.unless", "--target", "Admit").stdout


def test_in_a_complete_context_all_is_fixed(unless, berkeley):
    words = ("-c", "Dept=C", "-c", "Gender=Male", "-c", "Admit=Rejected")
    told = json.loads(unless("show", berkeley, *words, "--json").stdout)
    assert told["context"] == {"Admit": "Rejected", "Gender": "Male", "Dept": "C"}
    assert told["n_rows"] == 205
    assert {one["state"] for one in told["statements"]} == {"fixed"}


def test_determined_columns_are_a_block_of_their_own(unless, tmp_path):
    rows = [f"{i % 6},{i % 6 // 2},{i // 6 % 2},{i // 12 % 2}" for i in range(480)]
    (tmp_path / "t.csv").write_text("\n".join(["city,country,a,b", *rows]) + "\n")
    learned = unless("learn", tmp_path / "t.csv", "-o", tmp_path / "m")
    assert "determined 1" in learned.stdout
    lines = unless("show", tmp_path / "m").stdout.splitlines()
    place = lines.index("country is determined by city.")
    assert lines[place + 1] == ""
    assert lines[place + 2].startswith("Other pairs: ")
    assert "country and city: holds." not in lines
    assert "city and country: holds." in unless("show", tmp_path / "m", "-c", "a=0").stdout.splitlines()


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
    assert "No row has" in result.stderr
    unless("learn", tmp_path / "t.csv", "-o", tmp_path / "m", "--learner", "CSGS")
    result = unless("show", tmp_path / "m", "-c", "a=0", "-c", "b=1")
    assert result.exit_code == 2
    assert "never showed" in result.stderr


def test_no_links_at_all(unless, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "0,0\n1,1\n0,1\n1,0\n" * 50)
    unless("learn", tmp_path / "t.csv", "-o", tmp_path / "m")
    assert "a and b are not linked (V at most " in unless("show", tmp_path / "m").stdout
    (said,) = json.loads(unless("show", tmp_path / "m", "--json").stdout)["statements"]
    assert (said["kind"], said["is_finding"], said["confidence"]) == ("unlinked", False, None)


def test_a_table_too_small_to_speak_of(unless, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n0,0\n1,1\n")
    learned = unless("learn", tmp_path / "t.csv", "-o", tmp_path / "m")
    assert "The table has 2 rows; fewer than 5 say nothing about any pair." in learned.stdout
    assert "fewer than 5" in unless("show", tmp_path / "m").stdout


def test_a_structure_without_a_learner(unless, contexts, tmp_path):
    library.save(library.load(contexts).structure_, tmp_path / "m.unless")
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


def test_a_model_without_rows_keeps_what_it_says(unless, berkeley, berkeley_csv, tmp_path):
    model = tmp_path / "m.unless"
    learned = unless("learn", berkeley_csv, "-o", model, "--no-rows")
    assert learned.exit_code == 0
    assert "It keeps no rows: `unless ask`, `unless report`" in learned.stderr
    assert unless("show", model).stdout == unless("show", berkeley).stdout
    in_b, counted = (unless("show", one, "-c", "Dept=B").stdout for one in (model, berkeley))
    assert in_b == counted.replace(": 585 of 4,526 rows", ":")
    told = json.loads(unless("show", model, "--json", "-c", "Dept=A").stdout)
    assert (told["n_rows"], told["statements"][0]["state"]) == (None, "holds")
    asked = unless("ask", model, "Admit", "Gender")
    assert (asked.exit_code, asked.stdout) == (2, "")
    assert "keeps no rows; name the table as well: --table FILE" in asked.stderr
    assert unless("ask", model, "Admit", "Gender", "--table", berkeley_csv).exit_code == 0


def test_another_table_is_explained_anew(unless, berkeley, berkeley_csv, tmp_path):
    half = tmp_path / "half.csv"
    header, *lines = berkeley_csv.read_text().splitlines(keepends=True)
    half.write_text(header + "".join(lines[::2]))
    shown = unless("show", berkeley, half)
    assert shown.stdout.startswith("GGS, 2,263 rows")
    assert GATED not in shown.stdout


def test_the_default_learner_looks_at_every_pair_of_another_table(unless, berkeley, berkeley_csv, tmp_path):
    est = library.load(berkeley)
    est.structure_ = library.LabelledGraph(est.structure_.domain, ())
    library.save(est, tmp_path / "g.unless")
    assert GATED in unless("show", tmp_path / "g.unless", berkeley_csv).stdout
    est.report(tmp_path / "page.html", data=berkeley_csv)
    assert "Admit and Gender are linked only when Dept = A" in (tmp_path / "page.html").read_text()


def test_a_structure_without_rows_is_explained_by_a_table(unless, berkeley, berkeley_csv, tmp_path):
    library.save(library.load(berkeley).structure_, tmp_path / "g.unless")
    assert "A graph with gates over 3 columns" in unless("show", tmp_path / "g.unless").stdout
    assert GATED in unless("show", tmp_path / "g.unless", berkeley_csv).stdout
    assert "name the table" in unless("show", tmp_path / "g.unless", "--target", "Admit").stderr


def test_features_are_counted_by_pair(unless, fitted, tmp_path):
    features = library.load(fitted).features
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
    said = [{**one, "state": None} for one in statements.to_dict()["statements"]]
    assert told["statements"] == json.loads(json.dumps(said))
    assert told["counts"] == statements.counts()
    assert "claims" not in told["results"]


def test_every_key_of_the_json_is_in_the_help(unless, berkeley):
    told = json.loads(unless("show", berkeley, "--json").stdout)
    described = unless("show", "--help").stdout.partition("The JSON document")[2]
    said = next(one for one in told["statements"] if one["gate"])
    side = said["evidence"][0]
    for key in [
        key for one in (told, said, said["gate"], side, side["contrast"], told["made_by"]) for key in one
    ]:
        assert key in described


def test_damaged_statements_are_refused_in_one_sentence(unless, berkeley, tmp_path):
    from unless.formats.record import read_container, write_container

    members = read_container(berkeley)
    text = members["model.json"].replace(b'"kind":"gated"', b'"kind":"gates"')
    write_container(tmp_path / "m.unless", {**members, "model.json": text})
    result = unless("show", tmp_path / "m.unless")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "is damaged: there is no kind of statement 'gates'." in result.stderr


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
