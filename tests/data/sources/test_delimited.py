import contextlib
import encodings.aliases

import pytest

from data.tables import kinds_of, levels_of, rows_of, write
from unless import prepare, read
from unless.errors import DataError, SettingError, UnlessError


def test_labels_are_kept_as_written(tmp_path):
    path = write(tmp_path / "t.csv", "code,grade\n01,1e3\n1,x\n")
    assert levels_of(read(path)) == {"code": ("01", "1"), "grade": ("1e3", "x")}
    assert kinds_of(read(path)) == {"code": "text", "grade": "text"}


def test_whole_numbers_lose_their_point_where_all_are_numbers(tmp_path):
    path = write(tmp_path / "t.csv", "a,b,c\n1.0,1.0,0.10\n2,x,5.00\n1,1.0,5\n")
    assert levels_of(read(path)) == {"a": ("1", "2"), "b": ("1.0", "x"), "c": ("0.10", "5")}


def test_a_number_with_a_zero_after_the_point_is_not_whole(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n1.05,x\n10.0,y\n")
    assert levels_of(read(path))["a"] == ("1.05", "10")


def test_spaces_around_labels_are_layout(tmp_path):
    path = write(tmp_path / "t.csv", "a, b\nx, yes\nx ,yes\ny, no\n")
    data = read(path)
    assert rows_of(data) == {("x", "yes"): 2, ("y", "no"): 1}
    assert "Removed spaces around the labels of 'a', 'b'." in data.notes


@pytest.mark.parametrize("delimiter", list(",;\t| :"))
def test_the_delimiter_is_found(tmp_path, delimiter):
    rows = ["one", "two"], ["1", "x"], ["2", "y"]
    path = write(tmp_path / "t.txt", "\n".join(delimiter.join(row) for row in rows))
    assert read(path).names == ("one", "two")


def test_the_delimiter_of_numbers_with_a_decimal_comma_is_found(tmp_path):
    path = write(tmp_path / "t.csv", "a;b\n1,5;2,5\n3,5;4,5\n")
    assert levels_of(read(path)) == {"a": ("1,5", "3,5"), "b": ("2,5", "4,5")}


def test_any_delimiter_can_be_given(tmp_path):
    assert read(write(tmp_path / "t.txt", "a~b\n1~2\n"), delimiter="~").names == ("a", "b")


def test_a_table_without_header_is_named_by_position_or_by_columns(tmp_path):
    path = write(tmp_path / "adult.data", "39, Private\n40, State\n")
    assert read(path, header=False).names == ("x0", "x1")
    assert read(path, header=False, columns=["age", "work"]).names == ("age", "work")
    assert read(path, header=False).n_rows == 2


def test_counts_of_a_table_without_header(tmp_path):
    path = write(tmp_path / "t.csv", "x,y,3\nx,z,2\n")
    data = read(path, header=False, columns=["a", "b", "n"], count_column="n")
    assert rows_of(data) == {("x", "y"): 3, ("x", "z"): 2}


def test_line_ends_may_be_mixed(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n1,2\r\n3,4\n\n5,6")
    assert read(path).n_rows == 3


def test_another_encoding_can_be_given(tmp_path):
    path = write(tmp_path / "t.csv", "é,b\nü,1\nö,2\n", "cp1252")
    assert levels_of(read(path, encoding="cp1252"))["é"] == ("ö", "ü")


def test_a_column_without_a_name_is_called_by_its_place(tmp_path):
    assert read(write(tmp_path / "t.csv", ",b\n1,2\n")).names == ("column 1", "b")


def test_a_delimiter_at_the_end_of_every_line_makes_no_column(tmp_path):
    data = read(write(tmp_path / "t.csv", "a,b,\n1,2,\n3,4,\n"))
    assert data.names == ("a", "b")
    assert data.notes == ("Left out 'column 3', which has neither a name nor a value.",)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n1,2\n3,4,5\n", r"Line 3 of 't.csv' has 3 fields where the header has 2"),
        ("a,b,c\n1,2,3\n4,5\n", r"Line 3 of 't.csv' has 2 fields where the header has 3"),
        ("a,b,c\n1,2,3\n4\n", r"Line 3 of 't.csv' has 1 field where"),
        ('a,b\n1,2\n"3,4\n5,6\n', r"Line 3 of 't.csv' has a quote that is not closed"),
        (
            "a,b,a\n1,2,3\n",
            r"'a' appears more than once in 't.csv'; rename one of them, or pass header=False",
        ),
        ("a,b,a,b\n1,2,3,4\n", r"'a', 'b' appear more than once in 't.csv'"),
        ("a\n1\n2\n", r"one column, 'a', to look at, so there is nothing to relate; .*delimiter="),
        ("a,b\n", r"'t.csv' has columns but no rows"),
        ("\n\n", r"'t.csv' has no header line"),
        ("", r"'t.csv' is empty"),
        ("a,b\n1,2\n".encode("utf-16")[2:], r"'t.csv' does not look like a table of text"),
        ("a,b\n1,2\nü,2\n".encode("latin-1"), r"Line 3 of 't.csv' is not UTF-8; .*encoding="),
        ("ä,b\n1,2\n".encode("latin-1"), r"Line 1 of 't.csv' is not UTF-8"),
        ("a,b\né,2\n".encode() + "ü,2\n".encode("latin-1"), r"Line 3 of 't.csv' is not UTF-8"),
    ],
)
def test_a_damaged_table_is_refused_in_one_sentence(tmp_path, text, sentence):
    with pytest.raises(DataError, match=sentence) as caught:
        read(write(tmp_path / "t.csv", text))
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_files_of_a_pattern_must_have_one_header(tmp_path):
    write(tmp_path / "1.csv", "a,b\n1,2\n")
    write(tmp_path / "2.csv", "a,c\n1,2\n")
    with pytest.raises(DataError, match=r"'2.csv' and '1.csv' have different columns"):
        read(tmp_path / "*.csv")


def test_the_wrong_encoding_is_named(tmp_path):
    with pytest.raises(DataError, match=r"'t.csv' is not written in utf-16"):
        read(write(tmp_path / "t.csv", "a,b\n1,2\n"), encoding="utf-16")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n1," + "x" * 3_000_000 + "\n", r"Line 2 of 't.csv' is longer than 2,000,000 characters"),
        ('a,b\n1,2\n1,"' + "x" * 2_500_000 + '"\n', r"Line 3 of 't.csv' is longer than 2,000,000"),
        (
            'a,b\n1,"' + "x\n" * 1_500_000 + '"\n',
            r"Line 2 of 't.csv' has a field of more than 131,072 characters",
        ),
        ("a" * 3_000_000 + ",b\n1,2\n", r"Line 1 of 't.csv' is longer than"),
        ("a" * 200_000 + ",b\n1,2\n", r"Line 1 of 't.csv' has a field of more than 131,072"),
        ("\n" * 3_000_000, r"'t.csv' has no header line"),
    ],
)
def test_a_field_too_long_is_said_to_be_too_long(tmp_path, text, sentence):
    with pytest.raises(DataError, match=sentence):
        read(write(tmp_path / "t.csv", text))


@pytest.mark.parametrize("encoding", ["zip", "rot13", "hex", "base64", "uu", "klingon", "a\0b", 5])
def test_what_is_no_encoding_of_text_is_refused(tmp_path, encoding):
    with pytest.raises(SettingError, match="is not known as an encoding of text; try 'utf-8'"):
        read(write(tmp_path / "t.csv", "a,b\n1,2\n"), encoding=encoding)


@pytest.mark.parametrize(
    "encoding", sorted(set(encodings.aliases.aliases.values()) | {"idna", "punycode", "undefined"})
)
def test_no_encoding_that_python_knows_ends_in_an_error_of_its_own(tmp_path, encoding):
    for ending in ("csv", "arff"):
        with contextlib.suppress(UnlessError):
            read(write(tmp_path / f"t.{ending}", "a,b\n1,2\n"), encoding=encoding)


def test_the_line_that_is_not_utf8_is_found_far_into_a_file(tmp_path):
    text = b"a,b\n" + "ü,x\n".encode() * 300_000 + b"\xfc,x\n"
    with pytest.raises(DataError, match=r"Line 300,002 of 't.csv' is not UTF-8"):
        read(write(tmp_path / "t.csv", text))


@pytest.mark.parametrize(
    "above", ["Survey 2024\n", "Survey 2024,,\n", '"Survey 2024, wave 1"\n', "Survey 2024\n\n", "# a\n# b\n"]
)
def test_a_title_above_the_header_is_refused(tmp_path, above):
    table = "a,b,c\n" + "x,1,u\ny,2,v\n" * 20
    with pytest.raises(
        DataError, match=r"'t\.csv' begins with a line of a single cell, .*delete what stands"
    ):
        prepare(write(tmp_path / "t.csv", above + table))
    assert prepare(write(tmp_path / "t.csv", table)).n_columns == 3


def test_what_is_no_title_is_read(tmp_path):
    # A column without a name, and a last column that has neither a name nor a value.
    for header, rows in ((",b", "1,2\n3,4\n"), ("a,b,", "1,2,\n3,4,\n")):
        assert "b" in read(write(tmp_path / "t.csv", f"{header}\n{rows}")).names
