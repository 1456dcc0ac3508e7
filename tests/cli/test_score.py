import json

import pytest

import unless as library
from unless.formats.catalogue import read_model


def told_by(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_the_mean_log_likelihood(unless, fitted, berkeley_csv):
    score = read_model(fitted).score(library.read(berkeley_csv))
    assert (
        unless("score", fitted, berkeley_csv).stdout == f"Log-likelihood per row: {score:.6f} (4,526 rows)\n"
    )
    told = told_by(unless("score", fitted, berkeley_csv, "--json"))
    assert (told["per_row"], told["measure"], told["n_rows"]) == (score, "log_likelihood", 4526)
    assert told["by_variable"] is None
    described = unless("score", "--help").stdout.partition("The JSON document")[2]
    assert all(key in described for key in told)


def test_the_pseudo_log_likelihood_is_the_sum_over_variables(unless, fitted, berkeley_csv):
    told = told_by(unless("score", fitted, berkeley_csv, "--pll", "--by-variable", "--json"))
    assert list(told["by_variable"]) == ["Admit", "Dept", "Gender"]
    assert sum(told["by_variable"].values()) == pytest.approx(told["per_row"])
    lines = unless("score", fitted, berkeley_csv, "--pll", "--by-variable").stdout.splitlines()
    assert lines[0] == f"Pseudo-log-likelihood per row: {told['per_row']:.6f} (4,526 rows)"
    # In the order of the columns.
    shown = {line.split()[0]: line.split()[1] for line in lines[3:]}
    assert list(shown) == ["Admit", "Gender", "Dept"]
    assert shown == {name: f"{value:.6f}" for name, value in told["by_variable"].items()}


def test_the_pseudo_log_likelihood_is_that_of_the_conditionals(unless, fitted, berkeley_csv):
    import numpy as np

    net, data = read_model(fitted), library.read(berkeley_csv)
    told = told_by(unless("score", fitted, berkeley_csv, "--pll", "--json"))
    naive = 0.0
    for codes, number in zip(data.rows, data.counts, strict=True):
        row = data.domain.decode(codes)
        for name in data.names:
            others = {other: label for other, label in row.items() if other != name}
            naive += number * np.log(net.query(name, others)[row[name]])
    assert told["per_row"] == pytest.approx(naive / data.n_rows, abs=1e-9)


def test_other_columns_and_counts(unless, fitted, berkeley_csv, tmp_path):
    counted = tmp_path / "c.csv"
    unless("datasets", "ucb_admissions", "--counts", "-o", counted)
    header, *lines = counted.read_text().splitlines()
    counted.write_text("\n".join([f"id,{header}", *(f"p{i},{line}" for i, line in enumerate(lines))]))
    result = unless("score", fitted, counted, "--count-column", "count")
    assert result.stdout == unless("score", fitted, berkeley_csv).stdout


def test_several_files_are_one_table(unless, fitted, berkeley_csv, tmp_path):
    header, *lines = berkeley_csv.read_text().splitlines(keepends=True)
    for place in range(2):
        (tmp_path / f"{place}.csv").write_text(header + "".join(lines[place::2]))
    result = unless("score", fitted, tmp_path / "0.csv", tmp_path / "1.csv")
    assert result.stdout == unless("score", fitted, berkeley_csv).stdout


def test_an_impossible_row(unless, certain, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n0,0\n0,1\n")
    result = unless("score", certain, tmp_path / "t.csv")
    assert result.stdout == "Log-likelihood per row: -inf (2 rows)\n"
    assert "probability zero" in result.stderr
    assert told_by(unless("score", certain, tmp_path / "t.csv", "--json"))["per_row"] is None
    assert told_by(unless("score", certain, tmp_path / "t.csv", "--pll", "--json"))["per_row"] is None


def test_too_wide_for_an_exact_score(unless, wide, tmp_path):
    unless("sample", wide, "-n", 10, "-o", tmp_path / "t.csv", "--method", "gibbs")
    result = unless("score", wide, tmp_path / "t.csv", "--max-memory", "64 MB")
    assert result.exit_code == 2
    assert "score by --pll or --cmll, or raise --max-memory" in result.stderr


@pytest.mark.parametrize("targets", [None, ["Admit"], ["Admit", "Gender"]])
def test_the_conditional_marginal_log_likelihood(unless, fitted, berkeley_csv, targets):
    words = ["score", fitted, berkeley_csv, "--cmll", *(["--target", ",".join(targets)] if targets else [])]
    wanted = read_model(fitted).conditional_marginal_log_likelihood(library.read(berkeley_csv), targets)
    told = told_by(unless(*words, "--by-variable", "--json"))
    assert told["measure"] == "conditional_marginal_log_likelihood"
    assert told["per_row"] == wanted.value
    assert told["by_variable"] == dict(wanted.by_variable)
    shown = unless(*words).stdout
    assert shown == f"Conditional marginal log-likelihood per row: {wanted.value:.6f} (4,526 rows)\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--pll --cmll", "--pll and --cmll exclude each other"),
        ("--target Admit", "--target is only for --cmll"),
        ("--by-variable", "--by-variable is only for --pll and --cmll"),
        ("--cmll --target Adm", "Adm"),
    ],
)
def test_scores_that_are_not_meant(unless, fitted, berkeley_csv, words, said):
    result = unless("score", fitted, berkeley_csv, *words.split())
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_table_is_read_by_a_plan_or_by_what_is_said(unless, tmp_path):
    lines = ["id,price,size,tools,kind_a,kind_b"]
    for i in range(240):
        tools = ";".join(one for place, one in enumerate(("x", "y", "z")) if i * (place + 3) % 7 < 3)
        lines.append(f'{i},"${1000 + 37 * (i % 90):,}.50",{"SML"[i % 3]},{tools},{i % 2},{1 - i % 2}')
    table, plan = tmp_path / "t.csv", tmp_path / "p.json"
    table.write_text("\n".join(lines))
    learned, fitted = tmp_path / "m.unless", tmp_path / "f.unless"
    assert unless("check", table, "--save", plan).exit_code == 0
    assert unless("learn", table, "--plan", plan, "-o", learned).exit_code == 0
    assert unless("fit", learned, table, "--plan", plan, "-o", fitted).exit_code == 0
    plain = unless("score", fitted, table)
    assert plain.exit_code == 0, plain.stderr
    for words in (
        ["--plan", plan],
        ["--as", "size=category"],
        ["--exclude", "id"],
        ["--join", "kind=kind_a,kind_b"],
        ["--ordered", "size=S,M,L"],
        ["--strict"],
    ):
        assert unless("score", fitted, table, *words).stdout == plain.stdout, words
    for words in (["ask", learned, "price", "size", "--table", table], ["show", learned, table]):
        assert unless(*words, "--plan", plan).exit_code == 0
    refused = unless("score", fitted, table, "--exclude", "price")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "The table has no column 'price'" in refused.stderr
