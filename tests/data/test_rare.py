import random

import pandas as pd
import pytest

from data.tables import kinds_of, levels_of, rows_of, write
from unless import read

TABLE = {"a": list("xxxxyyz"), "b": list("pqpqpqp")}


def test_rare_levels_become_one_at_the_end_and_it_is_said():
    data = read(TABLE, rare=3)
    assert levels_of(data) == {"a": ("x", "other"), "b": ("p", "q")}
    assert rows_of(data) == {("x", "p"): 2, ("x", "q"): 2, ("other", "p"): 2, ("other", "q"): 1}
    assert data.notes == ("Merged the levels of 'a' seen fewer than 3 times ('y', 'z') into 'other'.",)


def test_a_single_rare_level_keeps_its_name():
    assert levels_of(read(TABLE, rare=2))["a"] == ("x", "y", "z")


def test_levels_can_be_merged_by_column():
    data = read({"a": TABLE["a"], "b": TABLE["a"]}, rare={"b": 3})
    assert levels_of(data) == {"a": ("x", "y", "z"), "b": ("x", "other")}


def test_the_name_of_the_level_is_free():
    table = {"a": ["other"] * 5 + ["x", "y"], "b": list("pqpqpqp")}
    assert levels_of(read(table, rare=2))["a"] == ("other", "(other)")


def test_counts_are_counted():
    table = {"a": ["x", "y", "z"], "b": [1, 2, 2], "n": [5, 1, 1]}
    assert rows_of(read(table, rare=2, count_column="n")) == {("x", "1"): 5, ("other", "2"): 2}


def test_missing_values_are_never_rare():
    data = read({"a": ["x", "x", None, "y", "z"], "b": [1, 2, 1, 2, 1]}, rare=2, missing="level")
    assert levels_of(data)["a"] == ("x", "other", "missing")


def test_numbers_and_categories_merge_too():
    frame = pd.DataFrame({"a": [1, 1, 2, 3], "c": pd.Categorical(list("uuvw"), categories=list("wvut"))})
    data = read(frame, rare=2)
    assert levels_of(data) == {"a": ("1", "other"), "c": ("u", "other")}
    assert kinds_of(data) == {"a": "category", "c": "category"}


@pytest.mark.parametrize("source", ["columns", "frame", "csv", "json", "numbers", "floats"])
def test_a_column_of_very_many_values_can_be_merged(source, tmp_path):
    rows = [(str(number), "p") for number in range(2000)] + [("-5", "q")] * 30
    random.Random(1).shuffle(rows)
    table = {"a": [one for one, _ in rows], "b": [other for _, other in rows]}
    if source == "csv":
        table = write(tmp_path / "t.csv", "a,b\n" + "".join(f"{one}.0,{other}\n" for one, other in rows))
    elif source == "json":
        table = write(
            tmp_path / "t.jsonl", "".join(f'{{"a": {one}, "b": "{other}"}}\n' for one, other in rows)
        )
    elif source == "frame":
        table = pd.DataFrame(table)
    elif source in ("numbers", "floats"):
        table["a"] = list(map(int if source == "numbers" else float, table["a"]))
    data = read(table, rare=5, strict=True)
    assert rows_of(data) == {("-5", "q"): 30, ("other", "p"): 2000}
    assert data.notes == ("Merged the levels of 'a' seen fewer than 5 times into 'other'.",)


def test_more_values_than_can_be_coded_can_be_merged():
    table = {"a": [f"u{number}" for number in range(70_000)] + ["often"] * 9, "b": [1, 2] * 35_004 + [1]}
    assert levels_of(read(table, rare=9, strict=True))["a"] == ("often", "other")
