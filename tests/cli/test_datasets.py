import json

import pytest

import unless as library


def test_the_list(unless):
    result = unless("datasets")
    assert result.exit_code == 0
    for name in [*library.datasets.catalogue(), "csi", "make_csi"]:
        assert name in result.stdout
    listed = json.loads(unless("datasets", "--json").stdout)
    assert [one["name"] for one in listed] == ["ucb_admissions", "titanic", "csi"]


@pytest.mark.parametrize("name", ["ucb_admissions", "titanic"])
@pytest.mark.parametrize("counts", [[], ["--counts"]])
def test_a_table_survives_the_way_to_csv_and_back(unless, tmp_path, name, counts):
    path = tmp_path / "t.csv"
    result = unless("datasets", name, "-o", path, *counts)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    data = library.datasets.load(name)
    again = library.read(path, levels=data.domain, count_column="count" if counts else None)
    assert again == data
    assert unless("datasets", name, *counts).stdout.encode() == path.read_bytes()


def test_a_made_table_depends_on_its_seed_alone(unless):
    words = ["datasets", "csi", "--variables", 4, "--rows", 50, "--law", "uniform", "--seed"]
    first, second, other = (unless(*words, seed).stdout for seed in (3, 3, 4))
    assert first == second != other
    assert first.startswith("X1,X2,X3,W\n")
    assert first.count("\n") == 51


def test_the_file_is_replaced(unless, tmp_path):
    (tmp_path / "t.csv").write_text("old")
    assert unless("datasets", "titanic", "-o", tmp_path / "t.csv").exit_code == 0
    assert (tmp_path / "t.csv").read_text().startswith("Class,Sex,Age,Survived\n")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
