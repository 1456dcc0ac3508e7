"""The same table gives the same Dataset, whatever it is written in."""

import bz2
import gzip
import json
import lzma
import random
import zipfile

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.tables import kinds_of, levels_of, mixed_frame, rows_of, write
from unless import read


class Capsule:
    """An Arrow object of a library nobody knows, which can be read only once."""

    def __init__(self, table):
        self.reader = table.to_reader()

    def __arrow_c_stream__(self, requested_schema=None):
        return self.reader.__arrow_c_stream__(requested_schema)


def packed(pack, path, text):
    path.write_bytes(pack(text.encode()))
    return path


def zipped(path, text):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("inside/table.csv", text)
        archive.writestr("__MACOSX/table.csv", "junk")
    return path


def zstandard(path, frame):
    connection = duckdb.connect()
    connection.execute("create table t as select * from (values (0)) where false")
    connection.register("frame", frame.astype(str))
    connection.execute(f"copy frame to '{path}' (format csv, header true, compression zstd)")
    connection.close()
    return path


def excel(path, frame):
    frame.to_excel(path, index=False, engine="xlsxwriter")
    return path


def parquet(path, frame):
    pq.write_table(pa.Table.from_pandas(frame), path)
    return path


def json_lines(path, frame):
    records = frame.to_dict(orient="records")
    return write(path, "\n".join(json.dumps(one) for one in records))


FORMATS = {
    "pandas": lambda frame, folder: frame,
    "pandas object": lambda frame, folder: frame.astype(object),
    "pandas nullable": lambda frame, folder: frame.convert_dtypes(),
    "pandas on arrow": lambda frame, folder: frame.convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda frame, folder: pl.from_pandas(frame),
    "polars lazy": lambda frame, folder: pl.from_pandas(frame).lazy(),
    "pyarrow": lambda frame, folder: pa.Table.from_pandas(frame),
    "arrow stream": lambda frame, folder: Capsule(pa.Table.from_pandas(frame)),
    "columns": lambda frame, folder: {name: list(frame[name]) for name in frame},
    "rows": lambda frame, folder: frame.to_dict(orient="records"),
    "structured array": lambda frame, folder: frame.astype({"größe": object}).to_records(index=False),
    "csv": lambda frame, folder: write(folder / "t.csv", frame.to_csv(index=False)),
    "csv with BOM and CRLF": lambda frame, folder: write(
        folder / "t.csv", frame.to_csv(index=False, lineterminator="\r\n"), "utf-8-sig"
    ),
    "csv in UTF-16": lambda frame, folder: write(folder / "t.csv", frame.to_csv(index=False), "utf-16"),
    "semicolons": lambda frame, folder: write(folder / "t.txt", frame.to_csv(index=False, sep=";")),
    "bars": lambda frame, folder: write(folder / "t.data", frame.to_csv(index=False, sep="|")),
    "tsv": lambda frame, folder: write(folder / "t.tsv", frame.to_csv(index=False, sep="\t")),
    "gz": lambda frame, folder: packed(gzip.compress, folder / "t.csv.gz", frame.to_csv(index=False)),
    "bz2": lambda frame, folder: packed(bz2.compress, folder / "t.csv.bz2", frame.to_csv(index=False)),
    "xz": lambda frame, folder: packed(lzma.compress, folder / "t.csv.xz", frame.to_csv(index=False)),
    "zip": lambda frame, folder: zipped(folder / "t.zip", frame.to_csv(index=False)),
    "zst": lambda frame, folder: zstandard(folder / "t.csv.zst", frame),
    "parquet": lambda frame, folder: parquet(folder / "t.parquet", frame),
    "parquet by its first bytes": lambda frame, folder: parquet(folder / "t.unknown", frame),
    "json lines": lambda frame, folder: json_lines(folder / "t.jsonl", frame),
    "json lines, gz": lambda frame, folder: packed(
        gzip.compress, folder / "t.jsonl.gz", json_lines(folder / "t.jsonl", frame).read_text()
    ),
    "json array": lambda frame, folder: write(
        folder / "t.json", json.dumps(frame.to_dict(orient="records"), ensure_ascii=False)
    ),
    "excel": lambda frame, folder: excel(folder / "t.xlsx", frame),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_dataset(name, tmp_path):
    frame = mixed_frame()
    data = read(FORMATS[name](frame, tmp_path))
    assert data == read(frame)
    assert kinds_of(data) == {"größe": "text", "n": "integer", "x": "float", "yes": "boolean"}


def test_the_table_is_what_it_was():
    data = read(mixed_frame())
    assert levels_of(data) == {
        "größe": ('a "quoted", one', "short", "tall", "two\nlines"),
        "n": ("-1", "9", "10"),
        "x": ("0.25", "1", "1.5", "2"),
        "yes": ("False", "True"),
    }
    assert rows_of(data)[("tall", "10", "1", "True")] == 3
    assert data.n_rows == 6
    assert data.notes == ()


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow", "csv", "parquet", "json lines"])
def test_the_order_of_rows_never_matters(name, tmp_path):
    frame = mixed_frame()
    order = list(range(len(frame)))
    random.Random(5).shuffle(order)
    assert read(FORMATS[name](frame.iloc[order], tmp_path)) == read(frame)


def test_a_numpy_array_is_named_by_position_or_by_columns():
    array = np.array([[0, 1], [1, 1], [0, 1]])
    assert read(array).names == ("x0", "x1")
    assert read(array, columns=["a", "b"]).names == ("a", "b")
    assert read(array, columns=["x1", "x0"]).names == ("x1", "x0")
    assert read(array, columns=["a", "b"]) == read(array.tolist(), columns=["a", "b"])
    assert rows_of(read(array)) == {("0", "1"): 2, ("1", "1"): 1}


@pytest.mark.parametrize(
    "dtype", ["int8", "uint64", "float16", "float32", "float64", "bool", "U3", "object", ">i4"]
)
def test_a_numpy_array_may_have_any_plain_type(dtype):
    array = np.array([[0, 1], [1, 0], [0, 1]]).astype(dtype)
    assert sorted(rows_of(read(array)).values()) == [1, 2]


def test_masked_cells_are_missing():
    array = np.ma.MaskedArray([[0, 1], [1, 1]], mask=[[True, False], [False, False]])
    assert levels_of(read(array, missing="level"))["x0"] == ("1", "missing")


def test_a_dataset_passes_through_and_columns_select():
    data = read(mixed_frame())
    assert read(data) is data
    assert read(data, columns=["yes", "n"]).names == ("yes", "n")
    assert read(mixed_frame(), columns=["yes", "n"]) == read(data, columns=["yes", "n"])


def test_files_of_a_pattern_are_one_table(tmp_path):
    frame = mixed_frame()
    for number, part in enumerate([frame[:2], frame[2:]]):
        part.to_csv(tmp_path / f"part{number}.csv", index=False)
        pq.write_table(pa.Table.from_pandas(part, preserve_index=False), tmp_path / f"part{number}.parquet")
    assert read(str(tmp_path / "part*.csv")) == read(tmp_path / "part?.parquet") == read(frame)


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path):
    write(tmp_path / "a[1].csv", "a,b\n1,2\n")
    write(tmp_path / "a1.csv", "a,b\n3,4\n")
    assert rows_of(read(tmp_path / "a[1].csv")) == {("1", "2"): 1}


def test_names_that_differ_in_case_only_are_two_columns(tmp_path):
    table = pa.table({"a": [1, 2], "A": ["x", "y"]})
    pq.write_table(table, tmp_path / "t.parquet")
    write(tmp_path / "t.csv", "a,A\n1,x\n2,y\n")
    assert read(table) == read(tmp_path / "t.parquet") == read(tmp_path / "t.csv") == read(table.to_pandas())


def test_reading_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    for name, make in FORMATS.items():
        folder = tmp_path / name
        folder.mkdir()
        source = make(mixed_frame(), folder)
        before = sorted(folder.iterdir())
        read(source)
        assert sorted(folder.iterdir()) == before
    assert list((tmp_path / "temporary").iterdir()) == []
