"""Weights beside a table are worth as many repeated rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from unless.data.read import read
from unless.data.weighting import read_weighted
from unless.errors import DataError

COLUMNS = {"a": ["x", "y", "x"], "b": ["p", "p", "q"]}
REPEATED = {"a": ["x", "x", "x", "x"], "b": ["p", "p", "q", "q"]}
WEIGHTS = [2, 0, 2]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, dict])
def test_weighted_rows_are_repeated_rows_that_keep_their_levels(make):
    weighted = read_weighted(make(COLUMNS), WEIGHTS)
    assert weighted == read(REPEATED, levels={"a": ["x", "y"]})


def test_arrays_and_lists_are_weighted_too():
    rows = [["x", "p"], ["x", "q"]]
    expected = read([["x", "p"], ["x", "p"], ["x", "p"], ["x", "q"]])
    assert read_weighted(rows, [3, 1]) == expected
    assert read_weighted(np.array(rows), [3.0, 1.0]) == expected


def test_rows_as_dictionaries_and_structured_arrays_are_weighted_too():
    expected = read([{"a": "x", "b": "p"}] * 3 + [{"a": "y", "b": "q"}])
    assert read_weighted([{"a": "x", "b": "p"}, {"a": "y", "b": "q"}], [3, 1]) == expected
    structured = np.array([("x", "p"), ("y", "q")], dtype=[("a", "U1"), ("b", "U1")])
    assert read_weighted(structured, [3, 1]) == expected
    assert read_weighted(pl.LazyFrame({"a": ["x", "y"], "b": ["p", "q"]}), [3, 1]) == expected


def test_a_column_may_be_called_sample_weight():
    table = {"sample_weight": ["x", "y"], "b": ["p", "q"]}
    assert read_weighted(table, [1, 1]) == read(table)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, -1, 1], "row 2 is -1"),
        ([1, 1, 0.5], "row 3 is 0.5"),
        ([1, 1], "2 weights for 3 rows"),
        ([[1]], "plain list"),
        (["a"], "plain list"),
        ([0, 0, 0], "Every weight is zero"),
    ],
)
def test_weights_that_count_no_rows_are_refused(weights, words):
    with pytest.raises(DataError, match=words):
        read_weighted(COLUMNS, weights)


def test_a_file_has_a_count_column_instead():
    with pytest.raises(DataError, match="count_column"):
        read_weighted("table.csv", [1])
