import csv
import io
import json

import pytest

import unless as library
from unless.formats.catalogue import read_model
from unless.inference.model import LogLinearModel


def rows_of(text):
    return list(csv.reader(io.StringIO(text)))


def test_rows_as_csv(unless, fitted):
    result = unless("sample", fitted, "-n", 20)
    assert (result.exit_code, result.stderr) == (0, "")
    header, *rows = rows_of(result.stdout)
    domain = read_model(fitted).domain
    assert tuple(header) == domain.names
    assert len(rows) == 20
    assert all(label in one.levels for row in rows for one, label in zip(domain, row, strict=True))


def test_rows_are_those_of_python(unless, fitted):
    drawn = read_model(fitted).sample(50, 7, evidence={"Dept": "A"}, backend="dict")
    _, *rows = rows_of(unless("sample", fitted, "-n", 50, "--seed", 7, "--given", "Dept=A").stdout)
    assert [list(row) for row in zip(*drawn.values(), strict=True)] == rows


def test_the_seed_decides(unless, fitted):
    first, again, other = (unless("sample", fitted, "-n", 30, "--seed", seed).stdout for seed in (0, 0, 1))
    assert first == again == unless("sample", fitted, "-n", 30).stdout
    assert first != other


def test_a_file_holds_the_same_and_is_replaced_whole(unless, fitted, tmp_path):
    (tmp_path / "s.csv").write_text("old")
    result = unless("sample", fitted, "-n", 25_000, "-o", tmp_path / "s.csv")
    assert (result.exit_code, result.stdout) == (0, "")
    assert (tmp_path / "s.csv").read_text() == unless("sample", fitted, "-n", 25_000).stdout
    assert [path.name for path in tmp_path.iterdir()] == ["s.csv"]


def test_json(unless, fitted, tmp_path):
    words = ["sample", fitted, "-n", 5, "-g", "Dept=A", "--json"]
    told = json.loads(unless(*words).stdout)
    header, *rows = rows_of(unless(*words[:-1]).stdout)
    assert (told["columns"], told["rows"], told["method"]) == (header, rows, "exact")
    kept = json.loads(unless(*words, "-o", tmp_path / "s.csv").stdout)
    assert (kept["rows"], kept["output"]) == (None, str(tmp_path / "s.csv"))
    described = unless("sample", "--help").stdout.partition("The JSON document")[2]
    assert all(key in described for key in told)


def test_gibbs_says_so_on_stderr(unless, fitted, wide):
    result = unless("sample", fitted, "-n", 10, "--method", "gibbs")
    assert "Gibbs" in result.stderr
    assert len(rows_of(result.stdout)) == 11
    assert "Gibbs" in unless("sample", wide, "-n", 10, "--max-memory", "64 MB").stderr


def test_unkind_names_come_back(unless, tmp_path):
    levels = ("x,y", 'say "hi"', "line\nbreak", "")
    domain = library.Domain((library.Variable("a,b", levels), library.Variable("日本", ("é",))))
    net = LogLinearModel(library.FeatureSet(domain), [])
    library.save(net, tmp_path / "m.unless")
    unless("sample", tmp_path / "m.unless", "-n", 200, "-o", tmp_path / "s.csv")
    with (tmp_path / "s.csv").open(newline="", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    assert header == ["a,b", "日本"]
    assert {row[0] for row in rows} == set(levels)


def test_a_sample_can_be_learned_from(unless, fitted, tmp_path):
    unless("sample", fitted, "-n", 4526, "-o", tmp_path / "s.csv")
    assert unless("learn", tmp_path / "s.csv", "-o", tmp_path / "m.unless").exit_code == 0
    assert library.load(tmp_path / "m.unless").data_.n_rows == 4526


def test_a_reader_that_leaves_early(process, program, fitted):
    import subprocess

    command = f"{program} sample {fitted} -n 200000 | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("Admit,Gender,Dept\n", "")


@pytest.mark.parametrize("seed", [0, 5])
def test_given_holds_in_every_row(unless, fitted, seed):
    _, *rows = rows_of(unless("sample", fitted, "-n", 50, "-g", "Admit=Rejected", "--seed", seed).stdout)
    assert {row[0] for row in rows} == {"Rejected"}
