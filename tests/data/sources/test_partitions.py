"""Dask DataFrames: collapsed where they lie, and read like the same table here."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import unless
import unless.errors
from unless.errors import DataError, MissingValues, TooLarge, TooManyLevels, UnknownLevel, UnknownName

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture(autouse=True)
def in_threads():
    with dask.config.set(scheduler="threads"):
        yield


def spread(frame, n_partitions=3):
    return dd.from_pandas(frame, npartitions=n_partitions, sort=False)


def same(here, there):
    """Tell whether two readings are the same to the last byte, notes included."""
    return (
        here == there
        and here.notes == there.notes
        and [one.kind for one in here.domain] == [one.kind for one in there.domain]
        and here.rows.tobytes() == there.rows.tobytes()
        and here.counts.tobytes() == there.counts.tobytes()
    )


def many_kinds(n_rows=60):
    rng = np.random.default_rng(3)
    holes = rng.random(n_rows) < 0.1
    floats = rng.choice([0.0, 0.5, 2.0], n_rows)
    floats[holes] = np.nan
    return pd.DataFrame(
        {
            "text": rng.choice(["b", "a", "  c", "10", "9"], n_rows),
            "n": rng.integers(-1, 2, n_rows).astype(np.int8),
            "u": pd.array(np.where(holes, None, rng.integers(0, 3, n_rows)), dtype="UInt8"),
            "f": floats,
            "yes": rng.random(n_rows) < 0.5,
            "maybe": pd.array(np.where(holes, None, rng.random(n_rows) < 0.5), dtype="boolean"),
            "size": pd.Categorical(
                rng.choice(["lo", "hi"], n_rows), categories=["lo", "mid", "hi", "never"], ordered=True
            ),
            "unordered": pd.Categorical(rng.choice(["z", "y"], n_rows), categories=["z", "x", "y"]),
            "day": pd.to_datetime(rng.choice(["2024-01-02", "2023-05-06"], n_rows)),
            "same": "one",
        }
    )


@pytest.mark.parametrize("missing", ["level", "drop"])
@pytest.mark.parametrize("n_partitions", [1, 2, 20])
def test_every_kind_of_column_is_read_as_it_is_here(missing, n_partitions):
    there = spread(many_kinds(), n_partitions)
    assert same(unless.read(there.compute(), missing=missing), unless.read(there, missing=missing))


@pytest.mark.parametrize(
    "settings",
    [
        {"columns": ["yes", "text"]},
        {"missing": "level", "missing_values": ["a"]},
        {"missing": "level", "levels": {"text": ["10", "9", "c", "  c", "b", "a"]}},
        {"missing": "level", "bins": {"n": 2, "f": [0, 0.5, 3]}},
        {"missing": "level", "rare": 13},
    ],
)
def test_settings_mean_the_same(settings):
    there = spread(many_kinds())
    assert same(unless.read(there.compute(), **settings), unless.read(there, **settings))


def test_mixed_objects_and_numbers_as_names():
    with dask.config.set({"dataframe.convert-string": False}):
        frame = pd.DataFrame({0: ["1", "x", None, "1"] * 5, 1: [1, "1", 2.5, 1] * 5}, dtype=object)
        there = spread(frame, 4)
        assert same(unless.read(frame, missing="level"), unless.read(there, missing="level"))


def test_categories_that_the_partitions_do_not_share():
    parts = [
        pd.DataFrame({"a": pd.Categorical(list(text)), "b": list("pq")}, index=[start, start + 1])
        for text, start in (("xy", 0), ("zz", 2), ("yw", 4))
    ]
    there = dd.concat([spread(part, 1) for part in parts])
    assert same(unless.read(there.compute()), unless.read(there))


def test_partitions_without_rows():
    frame = many_kinds(30)
    there = spread(frame, 5)
    few = there[there["n"] == 1]
    assert same(unless.read(few.compute(), missing="level"), unless.read(few, missing="level"))
    with pytest.raises(DataError, match="has columns but no rows"):
        unless.read(there[there["n"] == 7])


def test_a_count_column_counts_each_row_as_often_as_it_is_there():
    frame = pd.DataFrame({"a": list("xyxx"), "b": list("ppqp"), "times": [2, 3, 0, 2]})
    here, there = (unless.read(one, count_column="times") for one in (frame, spread(frame, 2)))
    assert same(here, there)
    assert there.n_rows == 7


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({}, MissingValues),
        ({"columns": ["text", "nonsense"]}, UnknownName),
        ({"columns": ["text", "yes"], "count_column": "n"}, DataError),
        ({"columns": ["text", "yes"], "levels": {"text": ["a"]}}, UnknownLevel),
        ({"columns": ["text", "yes"], "bins": {"text": 2}}, DataError),
        ({"columns": ["text", "yes"], "max_levels": 2}, TooManyLevels),
        ({"columns": ["nonsense", "nothing"]}, UnknownName),
    ],
)
def test_what_is_refused_here_is_refused_in_the_same_words(settings, error):
    said = []
    there = spread(many_kinds(), 4)
    for table in (there.compute(), there):
        with pytest.raises(error) as told:
            unless.read(table, **settings, strict=True)
        said.append(str(told.value))
    assert said[0] == said[1]


def test_cells_that_hold_lists_are_refused():
    with dask.config.set({"dataframe.convert-string": False}):
        there = spread(pd.DataFrame({"a": [[1], [2]], "b": ["p", "q"]}), 1)
        with pytest.raises(DataError, match="Column 'a' holds lists"):
            unless.read(there)


def test_more_distinct_rows_than_memory_are_refused_before_they_come():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{place}": rng.integers(0, 200, 800_000) for place in range(5)})
    with pytest.raises(TooLarge, match=r"distinct rows of 5 columns and would need about .* max_memory="):
        unless.read(spread(frame, 2), max_memory="64 MB")


ERRORS = [kind for kind in vars(unless.errors).values() if isinstance(kind, type)]


@pytest.mark.parametrize("kind", [kind for kind in ERRORS if not issubclass(kind, Warning)])
def test_errors_of_workers_arrive_as_they_are(kind):
    # Clusters make an error again by its class alone.
    error = kind.__new__(kind, "one sentence")
    assert str(error) == "one sentence"
    assert isinstance(error, unless.errors.UnlessError)


def test_it_can_be_learned_from():
    frame = unless.datasets.load_titanic()
    rows = pd.DataFrame(
        {
            name: np.repeat(np.array(frame.domain[name].levels)[frame.rows[:, place]], frame.counts)
            for place, name in enumerate(frame.names)
        }
    )
    assert unless.CSGS().fit(spread(rows, 4)).structure_ == unless.CSGS().fit(rows).structure_


def test_nothing_of_dask_is_imported_for_other_tables():
    code = "import sys, unless; unless.read({'a': [1, 2], 'b': [1, 1]}); print('dask' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "False"
