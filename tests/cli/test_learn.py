import csv
import json
import random
import stat

import pytest

import unless as library


@pytest.fixture
def table(tmp_path):
    """Write a table whose names and labels are as unkind as names can be."""
    draw = random.Random(0)
    path = tmp_path / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["[red]x[/red]", "a,b", "c:d", "e\x1b[31m", "日本"])
        for _ in range(600):
            x, gate = draw.random() < 0.5, draw.random() < 0.5
            y = x if gate else draw.random() < 0.5
            writer.writerow(
                [":smile:" if x else "[bold]", int(y), draw.choice("xy"), "on" if gate else "o\x07ff", "甲"]
            )
    return path


def test_a_summary_a_file_and_what_to_do_next(unless, berkeley_csv, tmp_path):
    result = unless("learn", berkeley_csv, "-o", tmp_path / "m.unless")
    assert result.exit_code == 0
    assert "GGS learned from 4,526 rows of 3 columns." in result.stdout
    assert "3 pairs: linked 2, gated 1." in result.stdout
    assert "only when Dept = A" in result.stdout
    assert f"unless show {tmp_path}/m.unless" in result.stderr
    assert stat.S_IMODE((tmp_path / "m.unless").stat().st_mode) == 0o600


def test_a_learner_of_contexts_tells_how_many(unless, berkeley_csv, tmp_path):
    result = unless("learn", berkeley_csv, "-o", tmp_path / "m.unless", "--learner", "CSGS")
    assert "4,526 rows of 3 columns: 24 contexts, 2 different graphs" in result.stdout
    assert "196 tests, 12 of them distinct" in result.stdout
    assert library.load(tmp_path / "m.unless").n_tests_ == 196


def test_the_file_is_what_python_would_save(berkeley_csv, berkeley, tmp_path):
    library.save(library.learn(berkeley_csv), tmp_path / "m.unless")
    assert berkeley.read_bytes() == (tmp_path / "m.unless").read_bytes()


def test_settings_reach_the_learner(unless, berkeley_csv, tmp_path):
    words = (
        "--alpha 0.01 --test likelihood_ratio --order Dept,Gender,Admit --blankets independent --rule and "
        "--max-blanket 2 --undecided keep --effect 0.2 --require Admit:Gender --forbid Gender:Dept --jobs 2 "
        "--learner csgs --max-memory 1GB"
    )
    result = unless("learn", berkeley_csv, "-o", tmp_path / "m.unless", *words.split())
    assert result.exit_code == 0, result.stderr
    learner = library.load(tmp_path / "m.unless")
    assert learner.answer_settings() == {
        "alpha": 0.01,
        "test": "likelihood_ratio",
        "order": ["Dept", "Gender", "Admit"],
        "blankets": "independent",
        "rule": "and",
        "max_blanket": 2,
        "undecided": "keep",
        "effect": 0.2,
        "required_edges": [("Admit", "Gender")],
        "forbidden_edges": [("Gender", "Dept")],
    }
    shares = learner.structure_.link_shares()
    assert (shares["Admit", "Gender"], shares["Dept", "Gender"]) == (1, 0)


def test_nothing_is_said_of_a_pair_that_is_linked_nowhere(unless, berkeley_csv, tmp_path):
    model = tmp_path / "m.unless"
    said = unless("learn", berkeley_csv, "-o", model, "--forbid", "Gender:Admit")
    assert "2 pairs: linked 2." in said.stdout
    for shown in (said, unless("show", model), unless("show", model, berkeley_csv)):
        assert shown.exit_code == 0, shown.stderr
        assert "Nothing is said of what is forbidden: 'Admit - Gender'." in shown.stdout + shown.stderr
        assert "Admit and Gender" not in shown.stdout
    learner = library.GGS(forbidden_edges=[("Admit", "Gender")])
    classifier = library.UnlessClassifier(target="Admit", learner=learner)
    library.save(classifier.fit(library.read(berkeley_csv)), model)
    assert "Admit and Gender" not in unless("show", model, berkeley_csv).stdout


def test_the_table_is_read_as_asked_and_what_was_done_is_told(unless, tmp_path):
    table = tmp_path / "t.txt"
    rows = [
        f"{i % 50};{'xyz'[i % 3] if i % 7 else '-'};{'qr'[i] if i < 2 else 'st'[i % 2]}" for i in range(200)
    ]
    table.write_text("\n".join(rows), encoding="utf-16")
    result = unless(
        "learn", table, "-o", tmp_path / "m.unless", "--delimiter", ";", "--no-header",
        "--encoding", "utf-16", "--columns", "age,kind,side", "--bins", "age=2", "--missing-value", "-",
        "--missing", "level", "--rare", "side=2", "--levels", "kind=z,y,x", "--max-levels", "10",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    domain = library.load(tmp_path / "m.unless").structure_.domain
    assert domain.names == ("age", "kind", "side")
    assert len(domain["age"].levels) == 2
    assert domain["kind"].levels[:3] == ("z", "y", "x")
    assert not {"q", "r"} & set(domain["side"].levels)
    assert "Cut 'age'" in result.stderr
    assert "Cut 'age'" not in result.stdout


def test_a_table_of_counts_is_as_good_as_rows(unless, berkeley, tmp_path):
    counted = tmp_path / "counted.csv"
    unless("datasets", "ucb_admissions", "--counts", "-o", counted)
    result = unless("learn", counted, "-o", tmp_path / "m.unless", "--count-column", "count")
    assert result.exit_code == 0, result.stderr
    again, first = library.load(tmp_path / "m.unless"), library.load(berkeley)
    assert again.structure_ == first.structure_


def test_several_files_are_one_table(unless, berkeley_csv, berkeley, tmp_path):
    header, *lines = berkeley_csv.read_text().splitlines(keepends=True)
    for place, name in enumerate([".first.csv", "second.csv", "sub/second.csv"]):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(header + "".join(lines[place::3]))
    result = unless(
        "learn", tmp_path / ".first.csv", tmp_path / "sec*.csv", tmp_path / "sub/second.csv",
        "-o", tmp_path / "m.unless",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert library.load(tmp_path / "m.unless").structure_ == library.load(berkeley).structure_


def test_files_of_different_columns_are_named(unless, berkeley_csv, tmp_path):
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    result = unless("learn", berkeley_csv, tmp_path / "other.csv", "-o", tmp_path / "m.unless")
    assert result.exit_code == 2
    assert (
        "'other.csv' and 'berkeley.csv'" in result.stderr or "'berkeley.csv' and 'other.csv'" in result.stderr
    )


def test_names_are_shown_as_they_are(unless, table, tmp_path):
    result = unless(
        "learn", table, "-o", tmp_path / "m.unless", "--require", '"a,b":"c:d"', "--columns", '"a,b"',
        "--columns", "[red]x[/red],c:d", "--columns", "e\x1b[31m,日本",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert r"[red]x[/red] and 'a,b' are linked only when e\x1b[31m = on" in result.stdout
    assert "\x1b" not in result.stdout + result.stderr


def test_quiet_is_silent(unless, table, tmp_path):
    result = unless("learn", table, "-o", tmp_path / "m.unless", "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_json_is_what_show_prints(unless, berkeley_csv, tmp_path):
    model = tmp_path / "m.unless"
    learned = unless("learn", berkeley_csv, "-o", model, "--json", "--require", "Admit:Gender")
    told = json.loads(learned.stdout)
    assert told.pop("model") == str(model)
    assert {one["role"] for one in told.pop("plan")["columns"]} == {"category"}
    assert told == json.loads(unless("show", model, "--json").stdout)


def test_the_output_is_replaced_on_success(unless, berkeley_csv, berkeley, tmp_path):
    (tmp_path / "m.unless").write_text("old")
    assert unless("learn", berkeley_csv, "-o", tmp_path / "m.unless", "-q").exit_code == 0
    assert (tmp_path / "m.unless").read_bytes() == berkeley.read_bytes()


def test_a_pipe_sees_no_progress(process, berkeley_csv, tmp_path):
    result = process("learn", berkeley_csv, "-o", tmp_path / "m.unless", FORCE_COLOR="1")
    assert "\x1b" not in result.stdout + result.stderr
    assert "\r" not in result.stderr


def test_a_target_is_told_kept_and_checked_before_the_work(unless, berkeley_csv, tmp_path):
    model = tmp_path / "m.unless"
    result = unless("learn", berkeley_csv, "-o", model, "--target", "Admit")
    assert "What matters for Admit, most first:\n1. Admit = Rejected is more common" in result.stdout
    assert "What matters for Admit" in unless("show", model).stdout
    told = json.loads(unless("learn", berkeley_csv, "-o", model, "--target", "Gender", "--json").stdout)
    assert told["target"] == "Gender"
    wrong = unless("learn", berkeley_csv, "-o", tmp_path / "n.unless", "--target", "Admti")
    assert wrong.exit_code == 2
    assert "did you mean 'Admit'?" in wrong.stderr
    assert not (tmp_path / "n.unless").exists()


MESSY = "id,age,sex,grade\n" + "".join(
    f"{i},{18 + (11 * i) % 70},{'fm'[i % 2]},{['low', 'mid', '', 'high'][i % 4 if i % 40 else 2]}\n"
    for i in range(1, 241)
)


def test_any_table_is_learned_from_and_the_plan_is_told(unless, tmp_path):
    (tmp_path / "t.csv").write_text(MESSY)
    done = unless("learn", tmp_path / "t.csv", "-o", tmp_path / "m.unless")
    assert done.exit_code == 0
    assert "id     identifier, left out" in done.stderr
    assert "age    number, cut at" in done.stderr
    told = json.loads(unless("learn", tmp_path / "t.csv", "-o", tmp_path / "m.unless", "--json").stdout)
    assert [one["name"] for one in told["plan"]["columns"]] == ["id", "age", "sex", "grade"]
    strict = unless("learn", tmp_path / "t.csv", "-o", tmp_path / "m.unless", "--strict")
    assert (strict.exit_code, strict.stderr.count("\n")) == (2, 1)


def test_the_plan_is_shown_saved_and_used(unless, tmp_path):
    (tmp_path / "t.csv").write_text(MESSY)
    options = ["--exclude", "id", "--as", "age=category", "--ordered", "grade=low,mid,high"]
    shown = unless("check", tmp_path / "t.csv", *options, "--save", tmp_path / "plan.json")
    assert "age    category, 70 levels" in shown.stdout
    assert "240 rows, 4 columns, 3 of them learned from." in shown.stdout
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert json.loads(unless("check", tmp_path / "t.csv", *options, "--json").stdout) == plan
    assert plan["columns"][3]["levels"] == ["low", "mid", "high"]
    words = ["learn", tmp_path / "t.csv", "-o", tmp_path / "m.unless"]
    done = unless(*words, "--plan", tmp_path / "plan.json", "--json")
    assert json.loads(done.stdout)["plan"] == plan
    wrong = unless("check", tmp_path / "t.csv", "--as", "age=nonsense")
    assert (wrong.exit_code, wrong.stderr.count("\n")) == (2, 1)
    (tmp_path / "plan.json").write_text("{}")
    refused = unless(*words, "--plan", tmp_path / "plan.json")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)


def test_a_second_table_is_cut_like_the_first(unless, tmp_path):
    (tmp_path / "t.csv").write_text(MESSY)
    lines = MESSY.splitlines(keepends=True)
    (tmp_path / "next.csv").write_text("".join([lines[0], "1,5,f,low\n", "2,110,m,high\n", *lines[2:20]]))
    model, fitted = tmp_path / "m.unless", tmp_path / "f.unless"
    assert unless("learn", tmp_path / "t.csv", "-o", model).exit_code == 0
    assert unless("fit", model, tmp_path / "t.csv", "-o", fitted).exit_code == 0
    assert unless("score", fitted, tmp_path / "next.csv").exit_code == 0
    assert unless("query", fitted, "sex", "--given", "age=37").exit_code == 0
    assert unless("report", model, "-o", tmp_path / "r.html").exit_code == 0
    assert "identifier, left out" in (tmp_path / "r.html").read_text()


def test_a_survey_is_read_with_its_weights(unless, tmp_path):
    draw = random.Random(3)
    with (tmp_path / "s.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["sex", "vote", "w", "house", "region"])
        for _ in range(300):
            writer.writerow(
                [
                    draw.choice("fm"),
                    draw.choice("abc"),
                    draw.random() + 0.1,
                    draw.randrange(90),
                    draw.choice("ns"),
                ]
            )
    options = ["--weight-column", "w", "--cluster-column", "house", "--strata-column", "region"]
    assert "weights the rows" in unless("check", tmp_path / "s.csv", *options).output
    found = unless("learn", tmp_path / "s.csv", "-o", tmp_path / "m.unless", *options)
    assert found.exit_code == 0
    assert "drawn alike (design effect" in found.output


def test_what_percentages_are_is_said_below_the_findings(unless, tmp_path):
    from unless.cli.output import LEGEND

    table, model = tmp_path / "titanic.csv", tmp_path / "m.unless"
    unless("datasets", "titanic", "-o", table)
    learned = unless("learn", table, "-o", model)
    assert learned.stdout.endswith(f"\n\n{LEGEND}\n")
    assert LEGEND in unless("show", model).stdout
    (tmp_path / "few.csv").write_text("a,b\n1,2\n2,1\n")
    assert LEGEND not in unless("learn", tmp_path / "few.csv", "-o", model).stdout
