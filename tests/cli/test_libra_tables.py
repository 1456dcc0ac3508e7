"""Tables of codes, as Libra keeps them, on the command line."""

import json

import pytest

import unless as library
from unless.formats.libra import write_data, write_mn


@pytest.fixture
def libra(tmp_path):
    """Keep a model with names beside it, and rows of its codes, some weighted."""
    domain = library.Domain(
        (library.Variable("Rain", ("no", "yes")), library.Variable("Wet", ("a", "b", "c")))
    )
    features = library.FeatureSet(domain, [library.Feature.of({"Rain": "yes", "Wet": "c"})])
    model = library.LogLinearModel(features, [1.5])
    write_mn(model, tmp_path / "m.mn")
    library.save(model, tmp_path / "m.unless")
    (tmp_path / "t.data").write_text("3|0,1\n1,2\n0,0\n")
    data = library.Dataset.from_codes(domain, [[0, 1], [1, 2], [0, 0]], [3, 1, 1])
    return tmp_path, model, data


def scored(result):
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    return told["per_row"], told["n_rows"]


@pytest.mark.parametrize("words", [[], ["--no-header"]])
def test_codes_are_read_by_position_with_the_model_they_go_with(unless, libra, words):
    path, model, data = libra
    found = scored(unless("score", path / "m.mn", path / "t.data", "--json", *words))
    assert found == (model.score(data), 5)
    (path / "u.data").write_text("1,0\n")
    assert scored(unless("score", path / "m.mn", path / "t.data", path / "u.data", "--json"))[1] == 6
    result = unless("fit", path / "m.mn", path / "t.data", "-o", path / "f.mn", "--json")
    assert json.loads(result.stdout)["n_rows"] == 5


def test_a_schema_or_names_beside_the_table_vouch_for_it_too(unless, libra):
    path, model, data = libra
    refused = unless("score", path / "m.unless", path / "t.data", "--no-header")
    assert refused.exit_code == 2
    (path / "t.schema").write_text("2,3\n")
    assert scored(unless("score", path / "m.unless", path / "t.data", "--json")) == (model.score(data), 5)
    write_data(data, path / "named.data")
    assert scored(unless("score", path / "m.unless", path / "named.data", "--json")) == (model.score(data), 5)


def test_missing_values_are_stars(unless, libra):
    path, model, data = libra
    (path / "t.data").write_text("3|0,1\n*,2\n")
    refused = unless("score", path / "m.mn", path / "t.data")
    assert refused.exit_code == 2
    assert "missing values ('*') in 1 rows; drop those rows with --missing 'drop'" in refused.stderr
    kept = library.Dataset.from_codes(data.domain, [[0, 1]], [3])
    found = scored(unless("score", path / "m.mn", path / "t.data", "--json", "--missing", "drop"))
    assert found == (model.score(kept), 3)


def test_a_table_of_labels_may_be_called_data(unless, libra):
    path, model, _ = libra
    (path / "t.data").write_text("Rain,Wet\nno,b\nyes,c\n")
    expected = model.score({"Rain": ["no", "yes"], "Wet": ["b", "c"]})
    assert scored(unless("score", path / "m.mn", path / "t.data", "--json")) == (expected, 2)


def test_faults_are_told_by_line(unless, libra):
    path, _, _ = libra
    (path / "t.data").write_text("0,1\n1,3\n")
    result = unless("score", path / "m.mn", path / "t.data")
    assert result.exit_code == 2
    assert "t.data', line 2: variable v1 has 3 levels, and none is 3." in result.stderr


def test_a_model_of_one_column_is_scored(unless, tmp_path):
    domain = library.Domain((library.Variable("v", ("a", "b")),))
    library.save(library.LogLinearModel(library.FeatureSet(domain), []), tmp_path / "m.unless")
    (tmp_path / "t.csv").write_text("v,w\na,1\nb,2\n")
    assert scored(unless("score", tmp_path / "m.unless", tmp_path / "t.csv", "--json"))[1] == 2
