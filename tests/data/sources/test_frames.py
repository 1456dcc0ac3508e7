import datetime
import os
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import coo_array

from data.tables import kinds_of, levels_of, rows_of
from unless import read
from unless.errors import DataError

OTHER = ["p", "q", "p"]


def column(values, **settings):
    """Read a column beside another one."""
    return read(pd.DataFrame({"a": values, "b": OTHER}), **settings).domain["a"]


@pytest.mark.parametrize("dtype", [object, "str", "string", "category"])
def test_pandas_text_of_every_type(dtype):
    assert column(pd.Series(["y", "x", "y"], dtype=dtype)).levels == ("x", "y")


@pytest.mark.parametrize(
    "dtype", ["int8", "int64", "uint16", "Int64", "UInt8", "float64", "Float32", "int64[pyarrow]"]
)
def test_pandas_numbers_of_every_type(dtype):
    variable = column(pd.Series([10, 9, 10]).astype(dtype))
    assert variable.levels == ("9", "10")
    assert variable.kind == ("float" if "loat" in dtype else "integer")


@pytest.mark.parametrize("dtype", ["Int64", "UInt8", "float64", "Float64", "int64[pyarrow]", object])
def test_integers_with_holes_are_written_without_a_point(dtype):
    values = pd.Series([10, None, 9], dtype=dtype)
    assert column(values, missing="level").levels == ("9", "10", "missing")


@pytest.mark.parametrize("dtype", [bool, "boolean", object, "bool[pyarrow]"])
def test_false_comes_before_true(dtype):
    variable = column(pd.Series([True, False, True], dtype=dtype))
    assert (variable.levels, variable.kind) == (("False", "True"), "boolean")


def test_booleans_with_holes():
    assert column(pd.array([True, None, False], dtype="boolean"), missing="level").levels == (
        "False",
        "True",
        "missing",
    )


@pytest.mark.parametrize("ordered", [False, True])
def test_a_pandas_category_keeps_its_order_and_its_unused_levels(ordered):
    values = pd.Categorical(["lo", "hi", None], categories=["lo", "mid", "hi"], ordered=ordered)
    variable = column(values, missing="level")
    assert (variable.levels, variable.kind) == (("lo", "mid", "hi", "missing"), "category")


def test_a_pandas_category_of_numbers_and_intervals():
    assert column(pd.Categorical([3, 1, 3], categories=[3, 2, 1])).levels == ("3", "2", "1")
    assert column(pd.cut([1, 5, 1], [0, 2, 6])).levels == ("(0, 2]", "(2, 6]")


def test_a_polars_enum_keeps_its_order_and_a_categorical_is_sorted():
    frame = pl.DataFrame(
        {"e": ["lo", "hi", "lo"], "c": ["lo", "hi", "lo"]},
        schema={"e": pl.Enum(["lo", "mid", "hi"]), "c": pl.Categorical},
    )
    assert levels_of(read(frame)) == {"e": ("lo", "mid", "hi"), "c": ("hi", "lo")}


def test_an_ordered_arrow_dictionary_keeps_its_order_and_any_keeps_its_unused_levels():
    codes = pa.array([0, 2, 0], pa.int8())
    table = pa.table(
        {
            "ordered": pa.DictionaryArray.from_arrays(codes, ["lo", "mid", "hi"], ordered=True),
            "not": pa.DictionaryArray.from_arrays(codes, ["lo", "mid", "hi"], ordered=False),
        }
    )
    assert levels_of(read(table)) == {"ordered": ("lo", "mid", "hi"), "not": ("hi", "lo", "mid")}


def test_an_arrow_dictionary_made_in_order_of_appearance_does_not_tell():
    one = pa.table({"a": pa.array(["x", "y", "y"]).dictionary_encode(), "b": ["1", "2", "2"]})
    other = pa.table({"a": pa.array(["y", "x", "y"]).dictionary_encode(), "b": ["2", "1", "2"]})
    assert read(one) == read(other)


def test_arrow_and_polars_missing_values():
    table = pa.table({"a": pa.array(["x", None, "y"]).dictionary_encode(), "b": [1, 2, None]})
    assert rows_of(read(table, missing="level")) == {("x", "1"): 1, ("missing", "2"): 1, ("y", "missing"): 1}
    assert read(pl.from_arrow(table), missing="level").n_rows == 3
    assert levels_of(read(pa.table({"a": pa.nulls(2), "b": [1, 2]}), missing="level"))["a"] == ("missing",)


DATES = [datetime.date(2020, 1, 2), datetime.date(2019, 12, 31), datetime.date(2020, 1, 2)]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": DATES, "b": OTHER}),
        pd.DataFrame({"a": pd.to_datetime(DATES), "b": OTHER}),
        pl.DataFrame({"a": DATES, "b": OTHER}),
        pl.DataFrame({"a": [datetime.datetime(d.year, d.month, d.day) for d in DATES], "b": OTHER}),
        pa.table({"a": DATES, "b": OTHER}),
        {"a": np.array(DATES, dtype="datetime64[ns]"), "b": OTHER},
    ],
    ids=["dates", "timestamps", "polars dates", "polars timestamps", "arrow", "numpy"],
)
def test_days_are_labels_in_the_order_of_time(frame):
    assert read(frame).domain["a"].levels == ("2019-12-31", "2020-01-02")


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame, dict])
def test_decimals_are_numbers(make):
    data = read(make({"a": [Decimal("10.00"), Decimal("9.50"), Decimal("9.50")], "b": OTHER}))
    assert data.domain["a"].levels == ("9.50", "10")
    assert data.domain["a"].code(Decimal("10.00")) == 1


def test_objects_of_several_types_are_labels():
    assert column(pd.Series([1, "x", 2.5], dtype=object)).levels == ("1", "2.5", "x")
    data = read({"a": [1, True, "1", 1.0], "b": [1, 2, 3, 4]})
    assert data.domain["a"].levels == ("1", "True")


def test_single_precision_is_written_as_a_person_would():
    values = np.array([0.1, 0.2, 0.1], dtype=np.float32)
    expected = ("0.1", "0.2")
    assert column(values).levels == expected
    assert read(pa.table({"a": values, "b": OTHER})).domain["a"].levels == expected
    assert column(values).code(np.float32(0.2)) == 1


def test_names_are_text():
    data = read(pd.DataFrame([[1, 2], [3, 4]]))
    assert data.names == ("0", "1")
    assert read(pd.DataFrame([[1, 2, 3], [3, 4, 5]]), columns=[0, 2]).names == ("0", "2")


def test_the_index_is_no_column():
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]}, index=["p", "q"])
    assert read(frame).names == ("a", "b")


def test_sparse_and_big_numbers_survive():
    assert column(pd.arrays.SparseArray([0, 1, 0])).levels == ("0", "1")
    assert column([2**62 + 1, 2**62 + 2, 2**62 + 1]).levels == (str(2**62 + 1), str(2**62 + 2))
    assert column(np.array([2**64 - 1, 1, 1], dtype=np.uint64)).levels == ("1", str(2**64 - 1))
    data = read({"a": [2**70, 1, 1], "b": OTHER})
    assert data.n_rows == 3


def test_empty_text_is_missing_and_words_are_not():
    data = read(pd.DataFrame({"a": ["", "NA", " "], "b": OTHER}), missing="level")
    assert data.domain["a"].levels == ("NA", "missing")


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_every_way_to_be_missing(missing):
    values = pd.Series(["x", missing, "y"], dtype=object)
    assert column(values, missing="level").levels == ("x", "y", "missing")
    assert levels_of(read({"a": ["x", missing, "y"], "b": OTHER}, missing="level"))["a"] == (
        "x",
        "y",
        "missing",
    )


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), "'a' appears more than once in the DataFrame"),
        (
            pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
            "'a' appears more than once",
        ),
        (pd.DataFrame({"a": [1, 2]}), "one column, 'a',"),
        (pd.Series([1, 2]), "single column"),
        (pd.DataFrame({"a": [], "b": []}), "no rows"),
        (pl.DataFrame({"a": [], "b": []}), "no rows"),
        (pd.DataFrame(), "no column"),
        (pd.DataFrame({"a": [[1], [2]], "b": [1, 2]}), "Column 'a' holds lists"),
        (pl.DataFrame({"a": [[1], [2]], "b": [1, 2]}), "Column 'a' holds lists"),
        (pa.table({"a": [b"x", b"y"], "b": [1, 2]}), "Column 'a' holds lists, records or bytes"),
        ({"a": [[1], [2]], "b": [1, 2]}, "Column 'a' holds lists"),
        ({"a": [1, 2], "b": [1]}, "Column 'a' has 2 values and 'b' 1"),
        ({"a": 1, "b": 2}, "Column 'a' holds 1, which is no column"),
        ({"a": np.zeros((2, 2)), "b": [1, 2]}, "Column 'a' holds lists"),
        ({"a": np.ma.zeros((2, 2)), "b": [1, 2]}, "Column 'a' holds lists"),
        ({}, "no column"),
        ([], "no rows"),
        ([{"a": 1}, {"a": 2}], "one column"),
        ([[1, 2], [1]], "Row 2 has 1 values where row 1 has 2"),
        (["ab", 1], "does not hold rows"),
        (np.zeros(3), "1 dimension"),
        (np.zeros((0, 2)), "no rows"),
        (np.zeros((2, 2), dtype=complex), "Complex data not supported"),
        (coo_array(np.eye(3)), "Sparse data are not supported"),
        (7, "type int"),
        (pa.table({"a": np.array([1, 2], dtype=np.float16), "b": [1, 2]}), "type that cannot be read"),
    ],
)
def test_what_is_no_table_is_refused_in_one_sentence(table, sentence):
    with pytest.raises(DataError, match=sentence) as caught:
        read(table, strict=True)
    assert "\n" not in str(caught.value)


def test_what_makes_itself_an_array_is_one():
    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.eye(3, dtype=dtype or int)

    assert read(Wrapped()) == read(np.eye(3, dtype=int))


def test_no_columns_relate_nothing():
    with pytest.raises(DataError, match="no column"):
        read({"a": [1, 2], "b": [1, 2]}, columns=[])


def test_moments_of_a_time_zone_are_written_alike():
    frame = pd.DataFrame(
        {"a": pd.to_datetime(["2020-01-01 05:00", "2020-01-02 00:00"], utc=True), "b": [1, 2]}
    )
    levels = ("2020-01-01 05:00:00+00:00", "2020-01-02 00:00:00+00:00")
    assert read(frame).domain["a"].levels == levels
    assert read(pa.Table.from_pandas(frame)).domain["a"].levels == levels


def test_moments_do_not_depend_on_where_the_machine_stands():
    script = (
        "import polars, datetime as d, unless\n"
        "time = d.datetime(2020, 1, 1, tzinfo=d.timezone.utc)\n"
        "print(unless.read(polars.DataFrame({'a': [time], 'b': [1]})).domain['a'].levels[0])"
    )
    elsewhere = {**os.environ, "TZ": "America/New_York"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=elsewhere, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "2020-01-01 00:00:00+00:00"


def test_reading_does_not_change_the_frame():
    frame = pd.DataFrame({"a": ["x", None, "y"], "b": OTHER})
    copy = frame.copy(deep=True)
    read(frame, missing="drop")
    pd.testing.assert_frame_equal(frame, copy)


def test_kinds_follow_the_types():
    frame = pd.DataFrame({"s": ["1", "2"], "i": [1, 2], "f": [1.0, 2.0], "b": [True, False]})
    assert kinds_of(read(frame)) == {"s": "text", "i": "integer", "f": "float", "b": "boolean"}
