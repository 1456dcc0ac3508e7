import pandas as pd
import pytest

from data.tables import levels_of, rows_of, write
from unless import read
from unless.errors import DataError, TooLarge

RAW = {"a": ["x", "x", "y"], "b": ["p", "p", "q"]}
COUNTED = {"a": ["x", "y", "y"], "b": ["p", "q", "p"], "Freq": [2, 1, 0]}


def test_a_contingency_table_is_as_good_as_rows():
    data = read(COUNTED, count_column="Freq")
    assert rows_of(data) == rows_of(read(RAW))
    assert data == read(RAW)


def test_rows_counted_zero_times_leave_their_levels():
    data = read({"a": ["x", "z"], "b": ["p", "q"], "n": [1, 0]}, count_column="n")
    assert levels_of(data) == {"a": ("x", "z"), "b": ("p", "q")}
    assert data.n_rows == 1
    assert "Left out rows that are counted 0 times; their levels are kept." in data.notes


@pytest.mark.parametrize("dtype", ["int8", "float64", "Int64", "string", "object", "category"])
def test_counts_may_have_any_type(dtype, tmp_path):
    frame = pd.DataFrame(COUNTED).astype({"Freq": dtype})
    assert read(frame, count_column="Freq") == read(RAW)
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert read(tmp_path / "t.csv", count_column="Freq", columns=["a", "b"]) == read(RAW)


@pytest.mark.parametrize(
    ("count", "said"),
    [(-1, "'-1'"), (1.5, "'1.5'"), ("many", "'many'"), (None, "nothing"), (float("inf"), "'inf'")],
)
@pytest.mark.parametrize("source", ["columns", "csv", "pandas"])
def test_a_count_that_is_none_is_named_with_its_column_and_row(count, said, source, tmp_path):
    table = {"a": ["x", "y", "z"], "b": [1, 2, 3], "n": [3, count, count]}
    if source == "pandas":
        table = pd.DataFrame(table)
    if source == "csv":
        text = "".join(f"{a},{b},{'' if n is None else n}\n" for a, b, n in zip(*table.values(), strict=True))
        table = write(tmp_path / "t.csv", "a,b,n\n" + text)
    with pytest.raises(DataError, match=f"Row 2 of count column 'n' holds {said}; counts are whole numbers"):
        read(table, count_column="n")


def test_counts_that_are_all_zero():
    with pytest.raises(DataError, match="All counts in 'n' are 0"):
        read({"a": [1, 2], "b": [1, 2], "n": [0, 0]}, count_column="n")


def test_counts_that_cannot_be_added():
    with pytest.raises(TooLarge, match=r"'n' add up to 9.22e\+18"):
        read({"a": [1, 2], "b": [1, 2], "n": [2**62, 2**62]}, count_column="n")


def test_large_counts_are_exact():
    data = read({"a": [1, 1, 2], "b": [1, 1, 2], "n": [10**12, 1, 7]}, count_column="n")
    assert data.counts.tolist() == [10**12 + 1, 7]


def test_one_column_and_its_counts_relate_nothing():
    with pytest.raises(DataError, match="one column, 'a',"):
        read({"a": [1, 2], "n": [1, 2]}, count_column="n")
