import json

import numpy as np
import pytest

import unless as library
from unless.formats.catalogue import read_model, write_model
from unless.weights.fit import fit_weights
from unless.weights.priors import Gaussian, Laplace


def test_a_summary_a_file_and_what_to_do_next(unless, berkeley, berkeley_csv, tmp_path):
    result = unless("fit", berkeley, berkeley_csv, "-o", tmp_path / "m.unless")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "Fitted 34 weights to 4,526 rows of 3 columns, prior Gaussian(1)."
    assert lines[1].startswith("Converged after")
    assert [line.partition(":")[0] for line in lines[2:]] == ["Objective", "Pseudo-log-likelihood per row"]
    assert f"unless query {tmp_path}/m.unless Admit" in result.stderr


def test_the_file_is_what_python_would_save(berkeley, berkeley_csv, fitted, tmp_path):
    features = library.load(berkeley).structure_.features()
    net = fit_weights(features, library.read(berkeley_csv, levels=features.domain))
    library.save(net, tmp_path / "m.unless")
    assert fitted.read_bytes() == (tmp_path / "m.unless").read_bytes()


@pytest.mark.parametrize(
    ("words", "prior"),
    [
        ("--sd 0.5", Gaussian(0.5)),
        ("--l1 5", Gaussian(1) + Laplace(5)),
        ("--sd 2 --l1 5 --jobs 2", Gaussian(2) + Laplace(5)),
        ("--sd inf --l1 5", Laplace(5)),
        ("--no-prior", None),
        ("--features pairs", Gaussian(1)),
        ("--features subcliques", Gaussian(1)),
        ("--tolerance 1e-9", Gaussian(1)),
    ],
)
def test_priors_and_features_are_as_asked(unless, contexts, berkeley_csv, tmp_path, words, prior):
    result = unless("fit", contexts, berkeley_csv, "-o", tmp_path / "m.json", *words.split(), "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    kind = words.split()[-1] if "--features" in words else "cliques"
    net = fit_weights(library.load(contexts).structure_.features(kind), berkeley_csv, prior)
    np.testing.assert_allclose(read_model(tmp_path / "m.json").weights, net.weights, rtol=1e-9, atol=1e-12)
    sd = net.fit_report.prior.sd
    assert told["prior"] == {"sd": None if np.isinf(sd) else sd, "l1": net.fit_report.prior.l1}
    assert told["n_features"] == len(net.features)
    assert told["tolerance"] == (1e-9 if "tolerance" in words else 1e-6)
    assert told["n_nonzero"] == np.count_nonzero(net.weights)


def test_json_says_how_it_went(unless, berkeley, berkeley_csv, tmp_path):
    words = ["fit", berkeley, berkeley_csv, "-o", tmp_path / "m.mn", "--l1", "2", "--json"]
    told = json.loads(unless(*words).stdout)
    scored = json.loads(unless("score", tmp_path / "m.mn", berkeley_csv, "--pll", "--json").stdout)
    assert told["per_row"] == pytest.approx(scored["per_row"], abs=1e-12)
    assert told["measure"] == scored["measure"]
    assert (told["model"], told["n_rows"], told["converged"]) == (str(tmp_path / "m.mn"), 4526, True)
    described = unless("fit", "--help").stdout.partition("The JSON document")[2]
    assert all(key in described for key in told)


@pytest.mark.parametrize("ending", [".unless", ".mn", ".uai", ".json"])
def test_every_ending_holds_the_same_law(unless, berkeley, berkeley_csv, fitted, tmp_path, ending):
    out = tmp_path / f"m{ending}"
    assert unless("fit", berkeley, berkeley_csv, "-o", out, "-q").exit_code == 0
    names = [f"m{ending}", *([f"m{ending}.names.json"] if ending in (".mn", ".uai") else [])]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    first, second = read_model(fitted).query("Admit"), read_model(out).query("Admit")
    np.testing.assert_allclose(first.probabilities, second.probabilities, atol=1e-12)
    assert first.labels == second.labels


def structures(learned):
    model = learned.structure_
    return {
        "canonical": model,
        "graph": library.Graph(model.domain, [("Admit", "Dept"), ("Dept", "Gender")]),
        "features": model.features("pairs"),
    }


@pytest.mark.parametrize("name", ["canonical", "graph", "features"])
def test_every_structure_can_be_fitted(unless, berkeley, berkeley_csv, tmp_path, name):
    structure = structures(library.load(berkeley))[name]
    library.save(structure, tmp_path / "s.unless")
    result = unless("fit", tmp_path / "s.unless", berkeley_csv, "-o", tmp_path / "m.unless", "--json")
    assert result.exit_code == 0, result.stderr
    n_features = len(structure if name == "features" else structure.features())
    assert json.loads(result.stdout)["n_features"] == n_features


@pytest.mark.parametrize("ending", [".mn", ".uai", ".json", ".unless"])
def test_a_model_gets_new_weights(unless, fitted, berkeley_csv, tmp_path, ending):
    model = read_model(fitted)
    write_model(library_model(model, np.zeros(len(model.weights))), tmp_path / f"s{ending}")
    assert unless("fit", tmp_path / f"s{ending}", berkeley_csv, "-o", tmp_path / "m.unless").exit_code == 0
    again = read_model(tmp_path / "m.unless")
    if ending != ".uai":
        # Tables have cells, not features.
        np.testing.assert_allclose(again.weights, model.weights, atol=1e-6)


def library_model(model, weights):
    return type(model)(model.features, weights)


def test_a_graph_from_elsewhere(unless, berkeley, berkeley_csv, tmp_path):
    unless("convert", berkeley, tmp_path / "g.graphml")
    result = unless("fit", tmp_path / "g.graphml", berkeley_csv, "-o", tmp_path / "m.unless", "--json")
    assert json.loads(result.stdout)["n_features"] == 24


def test_a_file_of_numbers_without_names(unless, tmp_path):
    (tmp_path / "s.mn").write_text("2,3\nMN {\n0 +v0_0 +v1_0\n0 +v0_1 +v1_2\n}\n")
    (tmp_path / "d.data").write_text("0,0\n1,2\n1,1\n0,0\n")
    result = unless("fit", tmp_path / "s.mn", tmp_path / "d.data", "--no-header", "-o", tmp_path / "m.mn")
    assert result.exit_code == 0, result.stderr
    assert (read_model(tmp_path / "m.mn").weights > 0).all()


def test_the_table_is_read_like_the_one_learned_from(unless, tmp_path):
    rows = [f"{i % 50};{'xyz'[i % 3] if i % 7 else '-'};{'qrst'[min(i, 3)]};{i}" for i in range(200)]
    (tmp_path / "t.csv").write_text("\n".join(["age;kind;side;id", *rows]))
    how = ["--delimiter=;", "--bins=age=2", "--missing-value=-", "--missing=level", "--rare=side=2"]
    words = ["learn", tmp_path / "t.csv", "-o", tmp_path / "s.unless", *how, "--columns", "kind,age,side"]
    assert unless(*words).exit_code == 0
    result = unless("fit", tmp_path / "s.unless", tmp_path / "t.csv", "-o", tmp_path / "m.unless", *how)
    assert result.exit_code == 0, result.stderr
    assert "Cut 'age'" in result.stderr
    assert read_model(tmp_path / "m.unless").domain.names == ("kind", "age", "side")


def test_what_is_said_of_learning_is_not_said_here(unless, berkeley, tmp_path):
    (tmp_path / "t.csv").write_text("Gender,Dept,Admit\nMale,A,Admitted\nMale,A,Rejected\n")
    result = unless("fit", berkeley, tmp_path / "t.csv", "-o", tmp_path / "m.unless")
    assert result.exit_code == 0
    assert "linked to nothing" not in result.stderr


def test_quiet_is_silent(unless, berkeley, berkeley_csv, tmp_path):
    result = unless("fit", berkeley, berkeley_csv, "-o", tmp_path / "m.unless", "-q")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_threads_and_seeds_change_no_byte(process, berkeley, berkeley_csv, fitted, tmp_path):
    words = ["fit", berkeley, berkeley_csv, "-o", tmp_path / "m.unless", "--jobs", 2]
    assert process(*words, PYTHONHASHSEED="7").returncode == 0
    assert (tmp_path / "m.unless").read_bytes() == fitted.read_bytes()


def test_weights_by_likelihood(unless, berkeley, berkeley_csv, tmp_path):
    words = ["fit", berkeley, berkeley_csv, "-o", tmp_path / "m.unless", "--objective", "likelihood"]
    told = json.loads(unless(*words, "--json").stdout)
    net = fit_weights(library.load(berkeley).structure_.features(), berkeley_csv, objective="likelihood")
    assert read_model(tmp_path / "m.unless").weights.tolist() == net.weights.tolist()
    scored = json.loads(unless("score", tmp_path / "m.unless", berkeley_csv, "--json").stdout)
    assert (told["measure"], told["stopped_by"]) == ("log_likelihood", "tolerance")
    assert told["per_row"] == pytest.approx(scored["per_row"], abs=1e-12)
    assert "\nLog-likelihood per row: " in unless(*words).stdout


def test_a_likelihood_that_is_not_cheap(unless, wide, tmp_path):
    unless("sample", wide, "-n", 10, "-o", tmp_path / "t.csv", "--method", "gibbs")
    words = ["fit", wide, tmp_path / "t.csv", "-o", tmp_path / "m.unless", "--objective", "likelihood"]
    result = unless(*words, "--max-memory", "64 MB")
    assert result.exit_code == 2
    assert "leave out --objective likelihood, or raise --max-memory" in result.stderr
    assert not (tmp_path / "m.unless").exists()


@pytest.mark.parametrize("judge", [None, "3", "0.3", "file"])
def test_a_prior_chosen_by_validation(unless, berkeley, berkeley_csv, tmp_path, judge):
    words = ["fit", berkeley, berkeley_csv, "-o", tmp_path / "m.unless", "--validate", "--seed", "3"]
    if judge:
        words += ["--validation", berkeley_csv if judge == "file" else judge]
    told = json.loads(unless(*words, "--json").stdout)
    asked = {None: None, "3": 3, "0.3": 0.3, "file": berkeley_csv}[judge]
    features = library.load(berkeley).structure_.features()
    report = fit_weights(features, berkeley_csv, "validate", validation=asked, random_state=3).fit_report
    assert told["prior"] == {"sd": report.prior.sd, "l1": 0.0}
    assert [one["per_row"] for one in told["candidates"]] == [one.score for one in report.candidates]
    assert unless(*words).stdout.splitlines()[1] == "It is the best of 7 priors for rows they had not seen."


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--tolerance 0", "'0' is no tolerance; give a number above 0, such as 1e-6"),
        ("--validate --sd 1", "--validate and --sd exclude each other"),
        ("--validate --no-prior", "--validate and --no-prior exclude each other"),
        ("--validation 5", "--validation is only for --validate"),
        ("--validate --validation 1", "--validation 1 must be at least 2 folds"),
        ("--validate --validation 1.5", "--validation 1.5 is no way to judge priors"),
        ("--validate --validation missing.csv", "missing.csv"),
    ],
)
def test_odd_options(unless, berkeley, berkeley_csv, tmp_path, words, said):
    result = unless("fit", berkeley, berkeley_csv, "-o", tmp_path / "m.unless", *words.split())
    assert result.exit_code == 2
    assert said in result.stderr
    assert not (tmp_path / "m.unless").exists()


@pytest.fixture
def holed(unless, berkeley_csv, tmp_path):
    """Write the table with every tenth Dept missing."""
    header, *lines = berkeley_csv.read_text().splitlines()
    place = header.split(",").index("Dept")
    rows = [line.split(",") for line in lines]
    for row in rows[::10]:
        row[place] = ""
    path = tmp_path / "holed.csv"
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n")
    return path


def test_rows_with_missing_values_are_used(unless, berkeley, holed, tmp_path):
    out = tmp_path / "m.unless"
    result = unless("fit", berkeley, holed, "-o", out)
    assert result.exit_code == 0, result.stderr
    assert "to 4,526 rows of 3 columns" in result.stdout
    assert "They are 4,073 complete rows and 453 with missing values, by EM in " in result.stdout
    told = json.loads(unless("fit", berkeley, holed, "-o", out, "--json").stdout)
    kept = {name: told["incomplete"][name] for name in ("n_complete", "n_incomplete", "n_drawn")}
    assert kept == {"n_complete": 4073, "n_incomplete": 453, "n_drawn": 0}
    assert told["n_rows"] == 4526
    net = fit_weights(library.load(berkeley).structure_.features(), holed)
    assert read_model(out).weights.tolist() == net.weights.tolist()
    assert read_model(out).fit_report == net.fit_report
    scored = json.loads(unless("score", out, holed, "--json").stdout)
    assert scored["n_rows"] == 4526
    assert scored["per_row"] == pytest.approx(net.score(holed))
    assert (
        "453 rows of 4,526 lack values; of these what is shown is scored."
        in unless("score", out, holed).stderr
    )


def test_rows_with_missing_values_can_be_dropped_or_refused(unless, berkeley, holed, tmp_path):
    first, second = tmp_path / "a.unless", tmp_path / "b.unless"
    result = unless("fit", berkeley, holed, "-o", first, "--incomplete", "drop")
    assert "Dropped 453 of 4,526 rows" in result.stderr
    assert unless("fit", berkeley, holed, "-o", second, "--missing", "drop").exit_code == 0
    assert first.read_bytes() == second.read_bytes()
    result = unless("fit", berkeley, holed, "-o", tmp_path / "c.unless", "--missing", "error")
    assert result.exit_code == 2
    assert "missing values in 'Dept' (453)" in result.stderr
    result = unless("score", first, holed, "--pll")
    assert result.exit_code == 2
    assert "missing values in 'Dept' (453)" in result.stderr
