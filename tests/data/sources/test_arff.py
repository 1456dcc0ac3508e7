import pytest

from data.tables import kinds_of, levels_of, rows_of, write
from unless import read
from unless.errors import DataError, UnknownLevel

IRIS = """% a comment
@RELATION 'a table'

@attribute 'my size' {small, 'very large', mid, "it\\'s"}
@attribute score NUMERIC
@Attribute words string
@attribute day date "yyyy-MM-dd"
@DATA
small, 1.0, 'a, b', 2020-01-01
'very large', 2, ?, 2020-01-02
% another
"it\\'s", 2, '?', 2020-01-02
small,1,"a, b",2020-01-01
"""


def test_declared_levels_keep_their_order_and_question_marks_are_missing(tmp_path):
    data = read(write(tmp_path / "t.arff", IRIS), missing="level", missing_values=[])
    assert levels_of(data) == {
        "my size": ("small", "very large", "mid", "it's"),
        "score": ("1", "2"),
        "words": ("?", "a, b", "missing"),
        "day": ("2020-01-01", "2020-01-02"),
    }
    assert rows_of(data)[("small", "1", "a, b", "2020-01-01")] == 2
    assert kinds_of(data)["my size"] == "category"


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("x,p\nz,q\n", "Line 6 of 't.arff' has 'z' in column 'a', which declares only 'x', 'y'"),
        ("{0 x, 1 p}\n", "Line 5 of 't.arff' is a sparse row"),
        ("x,p\nx\n", "Line 6 of 't.arff' has 1 values for 2 attributes"),
        ("x,'p\n", "Line 5 of 't.arff'"),
        ("", "no rows"),
    ],
)
def test_a_row_that_does_not_fit_is_named(tmp_path, rows, sentence):
    head = "@relation t\n@attribute a {x,y}\n@attribute b {p,q}\n@data\n"
    with pytest.raises(DataError, match=sentence):
        read(write(tmp_path / "t.arff", head + rows))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("@relation t\n@attribute a {x,y}\n", "no @data section"),
        ("@relation t\n@data\nx\n", "declares no @attribute"),
        ("@relation t\n@attribute a\n@data\nx\n", "Line 2 of 't.arff' is no whole @attribute"),
        ("@relation t\n@attribute a relational\n@data\nx\n", "relational"),
        ("@relation t\n@attribute a {x}\n@attribute a {x}\n@data\nx,x\n", "'a' appears more than once"),
        ("@relation ü\n".encode("latin-1"), "not UTF-8"),
    ],
)
def test_a_damaged_header_is_named(tmp_path, text, sentence):
    with pytest.raises(DataError, match=sentence):
        read(write(tmp_path / "t.arff", text))


def test_files_are_read_one_at_a_time(tmp_path):
    write(tmp_path / "1.arff", IRIS)
    write(tmp_path / "2.arff", IRIS)
    with pytest.raises(DataError, match="one at a time"):
        read(tmp_path / "*.arff")


def test_an_unknown_level_is_an_unknown_level(tmp_path):
    with pytest.raises(UnknownLevel):
        read(write(tmp_path / "t.arff", "@relation t\n@attribute a {x}\n@attribute b {p}\n@data\ny,p\n"))
