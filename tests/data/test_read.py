"""Reading against its slow twin, and what holds for every reading."""

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.tables import levels_of, mixed_frame, rows_of, write
from unless import read

LABELS = st.one_of(
    st.none(),
    st.sampled_from(["x", "y", "10", "9", "é", "a,b", 'q"r', "Ω\nω", "'"]),
    st.text("abcXYZ019é-_.", min_size=1, max_size=3).filter(lambda text: text not in ("NA", "nan")),
)


@st.composite
def tables(draw):
    width = draw(st.integers(2, 4))
    rows = draw(st.lists(st.tuples(*[LABELS] * width), min_size=1, max_size=30))
    return [f"col {place}" for place in range(width)], rows


def twin(rows, missing):
    """Count rows in plain Python."""
    if missing == "drop":
        rows = [row for row in rows if None not in row]
    return Counter(tuple("missing" if cell is None else cell for cell in row) for row in rows)


@settings(max_examples=25, deadline=None)
@given(tables(), st.sampled_from(["drop", "level"]))
def test_the_collapse_equals_counting_in_plain_python(table, missing):
    names, rows = table
    expected = twin(rows, missing)
    if not expected:
        return
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    for source in (
        columns,
        pd.DataFrame(columns, dtype=object),
        pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String)),
    ):
        data = read(source, missing=missing, strict=True)
        assert rows_of(data) == expected
        assert data.rows.tolist() == sorted(data.rows.tolist())


@settings(max_examples=15, deadline=None)
@given(tables(), st.randoms(use_true_random=False))
def test_neither_shuffling_nor_counting_the_rows_before_changes_anything(table, rng):
    names, rows = table
    shuffled = rng.sample(rows, len(rows))
    data = read([dict(zip(names, row, strict=True)) for row in rows], missing="level", strict=True)
    again = [dict(zip(names, row, strict=True)) for row in shuffled]
    assert read(again, missing="level", strict=True) == data
    counted = [{**dict(zip(names, row, strict=True)), "n": n} for row, n in Counter(shuffled).items()]
    assert read(counted, missing="level", count_column="n", strict=True) == data


def test_columns_choose_and_order():
    data = read(mixed_frame(), columns=["yes", "n"])
    assert data.names == ("yes", "n")
    assert rows_of(data) == {("True", "10"): 3, ("False", "9"): 1, ("False", "-1"): 1, ("True", "9"): 1}


def test_a_second_reading_at_the_same_time_does_not_disturb():
    frames = [pd.DataFrame({"a": [number, number + 1], "b": ["x", "y"]}) for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(read, frames))
    assert [levels_of(data)["a"][0] for data in found] == [str(number) for number in range(8)]


@pytest.mark.parametrize("engine", ["pandas", "polars", "pyarrow"])
def test_no_frame_library_is_imported(tmp_path, engine):
    path = write(tmp_path / "t.csv", "a,b\n1,2\n")
    script = f"import sys, unless; unless.read({str(path)!r}); sys.exit({engine!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_polars_is_read_without_pyarrow_and_nothing_is_printed():
    script = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import polars, unless\n"
        "frame = polars.DataFrame({'a': ['x'], 'b': [1]}, schema_overrides={'a': polars.Categorical})\n"
        "assert unless.read(frame).n_rows == 1"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""


def test_the_database_is_not_loaded_with_the_library():
    script = "import sys, unless.data.read; sys.exit('duckdb' in sys.modules or 'narwhals' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_other_files_are_out_of_reach(tmp_path):
    from unless.data.sources.session import DuckDBSession
    from unless.errors import DataError

    one, other = write(tmp_path / "1.csv", "a,b\n1,2\n"), write(tmp_path / "2.csv", "a,b\n1,2\n")
    with DuckDBSession(2**28) as session:
        session.lock([one])
        assert session.rows(f"select count(*) from read_csv('{one}')") == [(1,)]
        with pytest.raises(DataError, match="disabled"):
            session.rows(f"select count(*) from read_csv('{other}')")
        with pytest.raises(DataError, match="locked"):
            session.run("set enable_external_access = true")
    assert not session.folder.exists()
