import pandas as pd
import pytest

from data.tables import levels_of, rows_of, write
from unless import read
from unless.errors import SettingError, TooManyLevels, UnknownLevel, UnknownName

TABLE = {"a": ["lo", "hi", "lo"], "b": [10, 9, 10]}


def test_given_levels_win_and_unused_ones_are_kept():
    data = read(TABLE, levels={"a": ["lo", "mid", "hi"], "b": [10, 9]})
    assert levels_of(data) == {"a": ("lo", "mid", "hi"), "b": ("10", "9")}
    frame = pd.DataFrame({"a": pd.Categorical(["lo", "hi"], categories=["hi", "lo"]), "b": [1, 2]})
    assert levels_of(read(frame, levels={"a": ["lo", "hi"]}))["a"] == ("lo", "hi")


def test_the_levels_of_a_first_table_serve_a_second():
    first = read(TABLE)
    second = read({"a": ["hi"], "b": [9]}, levels=first.domain)
    assert second.domain == first.domain


@pytest.mark.parametrize("make", [dict, pd.DataFrame])
def test_a_level_that_is_not_given_is_refused_with_column_label_and_row(make):
    with pytest.raises(
        UnknownLevel, match=r"'hi' in column 'a' \(row 2\) is not among its levels='lo', 'mid'"
    ):
        read(make(TABLE), levels={"a": ["lo", "mid"]})


def test_the_row_is_found_in_a_file(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\nlo,1\nlo,2\n hi ,3\n")
    with pytest.raises(UnknownLevel, match=r"'hi' in column 'a' \(row 3\)"):
        read(path, levels={"a": ["lo"]})


def test_a_dropped_row_needs_no_level():
    data = read({"a": ["lo", "hi"], "b": [1, None]}, levels={"a": ["lo", "mid"]}, missing="drop")
    assert levels_of(data)["a"] == ("lo", "mid")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"columns": ["a", "B"]}, "columns= names 'B', which is not a column of the table"),
        ({"columns": ["a", "bb"]}, "did you mean 'b'"),
        ({"levels": {"c": ["x"]}}, "levels= names 'c'"),
        ({"bins": {"c": 3}}, "bins= names 'c'"),
        ({"rare": {"c": 3}}, "rare= names 'c'"),
        ({"count_column": "c"}, "count_column= names 'c'"),
    ],
)
def test_an_unknown_column_is_refused(settings, sentence):
    with pytest.raises(UnknownName, match=sentence):
        read(TABLE, **settings)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"columns": "a"}, "columns='a' is a text"),
        ({"columns": ["a", "a"]}, "names 'a' twice"),
        ({"columns": ["a", "b"], "count_column": "b"}, "'b' is the count_column"),
        ({"levels": ["x"]}, "does not say for which column"),
        ({"levels": {"a": "lo"}}, "is a text; give a list of levels"),
        ({"rare": 0}, "rare=0 is out of range"),
        ({"rare": 0.1}, "rare=0.1 is out of range"),
        ({"max_levels": 1}, "from 2 to 65,535"),
        ({"max_memory": "lots"}, "not an amount of memory"),
        ({"max_memory": 1000}, "below 64 MB"),
        ({"delimiter": "ab"}, "delimiter='ab'"),
        ({"encoding": "klingon"}, "encoding='klingon' is not known"),
    ],
)
def test_an_argument_out_of_its_range_is_refused(settings, sentence):
    with pytest.raises(SettingError, match=sentence):
        read(TABLE, **settings)


def test_a_dataset_is_not_read_in_another_way():
    with pytest.raises(SettingError, match="read already"):
        read(read(TABLE), rare=2)


def ids(n_rows=50_000):
    return [f"user {number}" for number in range(n_rows)]


def test_an_identifier_is_refused(tmp_path):
    sentence = (
        "'id' has a different value in each of its 50,000 rows, as an identifier .* has; leave it out with"
    )
    with pytest.raises(TooManyLevels, match=sentence):
        read({"id": ids(), "b": [1, 2] * 25_000}, strict=True)
    path = write(tmp_path / "t.csv", "id,b\n" + "".join(f"{one},{one[-1]}\n" for one in ids()))
    with pytest.raises(TooManyLevels, match=sentence):
        read(path, strict=True)
    assert read(path, columns=["b", "id"], max_levels=50_000).n_distinct == 50_000


@pytest.mark.parametrize("text", [False, True])
def test_a_measurement_is_refused_with_the_way_to_cut_it(text, tmp_path):
    values = [number / 7 for number in range(1000)] * 2
    table = {"x": values, "b": [1, 2] * 1000}
    if text:
        table = write(tmp_path / "t.csv", "x,b\n" + "".join(f"{one},1\n" for one in values))
    with pytest.raises(
        TooManyLevels, match=r"'x' has 1,000 different numbers, more than 256; .*bins=\{'x': 4\}"
    ):
        read(table, strict=True)


def test_text_of_many_levels_is_refused_with_the_way_to_merge():
    with pytest.raises(
        TooManyLevels, match=r"'id' has 1,000 levels, more than 256; .* rare= or keep it with max_levels=1000"
    ):
        read({"id": ids(1000) * 2, "b": [1, 2] * 1000}, strict=True)


def test_the_limit_is_exact():
    table = {"a": list(range(300)), "b": [1, 2, 3] * 100}
    assert read(table, max_levels=300).domain.n_levels.tolist() == [300, 3]
    with pytest.raises(TooManyLevels):
        read(table, max_levels=299, strict=True)


def test_spellings_of_one_label_are_one_level(tmp_path):
    rows = [f"{number % 200}{'.0' if number % 3 else ''}{' ' * (number % 2)},x" for number in range(1200)]
    path = write(tmp_path / "t.csv", "a,b\n" + "\n".join(rows))
    assert len(read(path, max_levels=200).domain["a"].levels) == 200


def test_levels_that_differ_by_odd_characters_are_distinct():
    labels = ["a'b", 'a"b', "a\\b", "a\0b", "a;--", "é", "é", "\x02", "日本"]
    data = read({"a": labels, "b": list(range(9))})
    assert set(levels_of(data)["a"]) == set(labels)
    assert len(rows_of(data)) == 9


def test_constant_columns_are_kept_and_said():
    data = read({"a": ["x", "x"], "b": [1, 2]})
    assert levels_of(data)["a"] == ("x",)
    assert data.notes == ("Column 'a' shows a single level; it is kept and linked to nothing.",)
    assert "Columns 'a', 'b' show a single level each" in read({"a": ["x"], "b": [1]}).notes[0]
