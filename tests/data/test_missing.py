import pandas as pd
import pytest

from data.tables import levels_of, rows_of, write
from unless import read
from unless.errors import DataError, MissingValues, SettingError

FRAME = pd.DataFrame({"a": ["x", None, "y", "x"], "b": [1.0, 2.0, None, 1.0], "c": list("pqpq")})


def test_missing_values_are_refused_when_strict_with_their_columns_and_counts():
    with pytest.raises(MissingValues) as caught:
        read(FRAME, strict=True)
    assert str(caught.value) == (
        "There are missing values in 'a' (1), 'b' (1); drop those rows with missing='drop' or make them a "
        "level with missing='level'."
    )


def test_dropping_rows_is_said_and_equals_dropping_them_before():
    data = read(FRAME, missing="drop")
    assert data == read(FRAME.dropna())
    assert data.notes[0] == "Dropped 2 of 4 rows with missing values in 'a' (1), 'b' (1)."


def test_missing_values_become_the_last_level():
    data = read(FRAME, missing="level")
    assert levels_of(data) == {"a": ("x", "y", "missing"), "b": ("1", "2", "missing"), "c": ("p", "q")}
    assert data.notes == ("Made missing values in 'a' (1), 'b' (1) a level, 'missing'.",)
    assert data.domain["b"].kind == "category"


def test_the_name_of_the_level_is_free():
    data = read({"a": ["missing", None, "(missing)"], "b": [1, 2, 3]}, missing="level")
    assert levels_of(data)["a"] == ("(missing)", "missing", "((missing))")


def test_levels_given_by_hand_may_have_a_place_for_it():
    data = read(FRAME, missing="level", levels={"a": ["missing", "x", "y"]})
    assert levels_of(data)["a"] == ("missing", "x", "y")


def test_words_stand_for_missing_in_text_files_and_are_named(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\nx,1\nNA,2\n?,3\n,4\n None ,5\n-,6\n")
    with pytest.raises(MissingValues, match=r"some written as '\?', 'NA', in 'a' \(3\).*missing_values="):
        read(path, strict=True)
    data = read(path, missing="level")
    assert levels_of(data)["a"] == ("-", "None", "x", "missing")
    assert "Read '?', 'NA' as missing." in data.notes


def test_what_stands_for_missing_can_be_said(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\nNA,1\nEU,2\n-,-9\n")
    assert levels_of(read(path, missing_values=[])) == {"a": ("-", "EU", "NA"), "b": ("-9", "1", "2")}
    data = read(path, missing_values=["-", -9], missing="level")
    assert levels_of(data) == {"a": ("EU", "NA", "missing"), "b": ("1", "2", "missing")}
    typed = read({"a": [1, -9, 2], "b": [1, 2, 3]}, missing_values=[-9], missing="drop")
    assert levels_of(typed)["a"] == ("1", "2")


def test_a_category_that_stands_for_missing_is_no_level():
    frame = pd.DataFrame({"a": pd.Categorical(["x", "?", "x"], categories=["?", "x"]), "b": [1, 2, 3]})
    assert levels_of(read(frame, missing_values="?", missing="level"))["a"] == ("x", "missing")


def test_missing_values_are_counted_by_their_counts():
    with pytest.raises(MissingValues, match=r"'a' \(5\)"):
        read({"a": ["x", None], "b": [1, 2], "n": [1, 5]}, count_column="n", strict=True)


def test_a_missing_value_in_a_row_counted_zero_times_is_none():
    data = read({"a": ["x", None], "b": [1, 2], "n": [1, 0]}, count_column="n")
    assert rows_of(data) == {("x", "1"): 1}


def test_dropping_everything_is_refused():
    with pytest.raises(DataError, match=r"Every row has a missing value, 'a' most often \(2\)"):
        read({"a": [None, None, "x"], "b": [1, 2, None]}, missing="drop")


def test_an_unknown_policy_is_refused():
    with pytest.raises(
        SettingError, match="missing='impute' is not known; choose one of 'error', 'drop', 'level'"
    ):
        read(FRAME, missing="impute")
