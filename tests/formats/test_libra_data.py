"""The .data and .schema files of Libra."""

import gzip
import re

import numpy as np
import pytest

from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.errors import DataError, FileFormatError, MissingValues, SettingError
from unless.formats.libra import data_text, read_data, read_schema, write_data, write_schema


@pytest.fixture
def read(tmp_path):
    def read_text(text, **settings):
        (tmp_path / "x.data").write_text(text)
        return read_data(tmp_path / "x.data", **settings)

    return read_text


def test_rows_are_codes_and_may_be_weighted(read):
    data = read("0,1,2\n3|0,0,1\n\n 0, 1, 2 \n2.0|0,1,2\n0|1,1,1\n")
    assert data.names == ("v0", "v1", "v2")
    assert data.rows.tolist() == [[0, 0, 1], [0, 1, 2]]
    assert data.counts.tolist() == [3, 4]


def test_levels_are_counted_by_the_schema_or_the_rows(read, tmp_path):
    assert read("0,2\n0,0\n").domain.n_levels.tolist() == [2, 3]
    assert read("0,2\n0,0\n").notes == ("There was no schema: levels were counted by the rows.",)
    assert read("0,2\n", schema=[4, 3]).domain.n_levels.tolist() == [4, 3]
    (tmp_path / "x.schema").write_text("5,6\n")
    assert read("0,2\n").domain.n_levels.tolist() == [5, 6]
    assert read("0,2\n").notes == ()


def test_a_packed_file_is_read_with_what_lies_beside_it(tmp_path):
    domain = Domain((Variable("a", ("n", "y")), Variable("b", ("1", "2"), "integer")))
    data = Dataset.from_codes(domain, [[0, 1], [1, 1]], [1, 5])
    write_data(data, tmp_path / "x.train.data")
    assert (tmp_path / "x.train.schema").read_text() == "2,2\n"
    content = (tmp_path / "x.train.data").read_bytes()
    assert content == b"0,1\n5|1,1\n"
    (tmp_path / "x.train.data").unlink()
    (tmp_path / "x.train.data.gz").write_bytes(gzip.compress(content))
    assert read_data(tmp_path / "x.train.data.gz") == data


def test_missing_values_follow_the_policy(read):
    text = "0,1\n2|*,1\n1,0\n"
    with pytest.raises(MissingValues, match=r"missing values \('\*'\) in 2 rows; drop"):
        read(text)
    dropped = read(text, missing="drop")
    assert dropped.rows.tolist() == [[0, 1], [1, 0]]
    assert dropped.notes[-1] == "Dropped 2 of 4 rows with missing values."
    named = read(text, missing="level")
    assert named.domain["v0"].levels == ("0", "1", "missing")
    assert named.domain["v1"].levels == ("0", "1")
    assert named.rows.tolist() == [[0, 1], [1, 0], [2, 1]]
    with pytest.raises(DataError, match="nothing is left"):
        read("*,1\n", missing="drop")
    with pytest.raises(SettingError, match="missing='ignore' is not known"):
        read(text, missing="ignore")


def test_rows_counted_zero_times_have_no_holes(read):
    assert read("0|*,1\n1,1\n").n_rows == 1


def test_an_empty_table_has_no_file(tmp_path):
    with pytest.raises(SettingError, match="empty"):
        write_data(
            Dataset.from_codes(Domain((Variable("a", ("x",)),)), np.zeros((0, 1))), tmp_path / "x.data"
        )
    assert list(tmp_path.iterdir()) == []


def test_a_schema_comes_back(tmp_path):
    domain = Domain((Variable("a", ("x",)), Variable("b", ("x", "y", "z"))))
    write_schema(domain, tmp_path / "x.schema")
    assert read_schema(tmp_path / "x.schema") == [1, 3]
    (tmp_path / "x.schema").write_text("2,2\n2\n")
    with pytest.raises(FileFormatError, match="line 2: a schema is a single line"):
        read_schema(tmp_path / "x.schema")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: there are no rows"),
        ("0,1\n\n0,1,1\n", "line 3: the row has 3 values, the first one 2"),
        ("0,1\n0,x\n", "line 2: 'x' is not the code of a level"),
        ("0,1\n0,-1\n", "line 2: '-1' is not the code of a level"),
        ("0,1\n0,70000\n", "line 2: '70000' is not the code of a level"),
        ("0,1\n0.5|0,1\n", "line 2: the weight '0.5' is not a whole number"),
        ("0,1\n-1|0,1\n", "line 2: the weight '-1' is not a whole number"),
        ("0,1\n1|1|0,1\n", "line 2: the weight '1|1' is not a whole number"),
    ],
)
def test_trouble_is_told_by_file_and_line(read, text, message):
    with pytest.raises(FileFormatError, match=r"^'.*x\.data', " + re.escape(message)):
        read(text)


def test_codes_beyond_the_schema_are_told_by_line(read):
    with pytest.raises(FileFormatError, match="line 2: variable v1 has 2 levels, and none is 2"):
        read("0,1\n0,2\n", schema=[2, 2])
    with pytest.raises(FileFormatError, match="line 1: the row has 2 values, the schema 3"):
        read("0,1\n0,2\n", schema=[2, 2, 2])


def test_the_text_needs_no_file():
    data = Dataset.from_codes(Domain((Variable("a", ("x", "y")),)), [[1], [0], [1]])
    assert data_text(data) == "0\n2|1\n"


def test_files_of_rows_are_for_their_owner(tmp_path):
    domain = Domain((Variable("A", ("a", "b")),))
    write_data(Dataset.from_codes(domain, np.array([[0], [1]])), tmp_path / "t.data")
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
