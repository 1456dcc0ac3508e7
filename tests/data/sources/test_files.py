import json
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.tables import mixed_frame, write
from unless import read
from unless.errors import DataError


def test_a_missing_file_is_answered_with_the_closest_name(tmp_path):
    write(tmp_path / "titanic.csv", "a,b\n1,2\n")
    with pytest.raises(DataError, match=r"There is no file .*; did you mean 'titanic.csv'?"):
        read(tmp_path / "titanik.csv")


def test_a_missing_file_far_from_any_other(tmp_path):
    with pytest.raises(DataError, match="check the name and the folder"):
        read(str(tmp_path / "titanic.csv"))
    with pytest.raises(DataError, match="does not exist either"):
        read(tmp_path / "no" / "titanic.csv")


@pytest.mark.parametrize(
    "path", ["", " ", "x" * 5000, "a\0b.csv", "https://example.com/t.csv", "s3://b/*.parquet"]
)
def test_what_is_no_path_of_a_file(path):
    with pytest.raises(DataError):
        read(path)


def test_a_folder_is_not_a_table(tmp_path):
    with pytest.raises(DataError, match=r"is a folder; .*\*\.csv"):
        read(tmp_path)


def test_a_pattern_that_matches_nothing(tmp_path):
    with pytest.raises(DataError, match="No file matches"):
        read(str(tmp_path / "*.csv"))


def test_a_pattern_that_matches_different_formats(tmp_path):
    write(tmp_path / "a.csv", "a,b\n1,2\n")
    write(tmp_path / "a.jsonl", '{"a": 1, "b": 2}')
    with pytest.raises(DataError, match=r"different formats \('delimited', 'json'\)"):
        read(str(tmp_path / "a.*"))


def test_a_file_without_permission(tmp_path, monkeypatch):
    path = write(tmp_path / "t.csv", "a,b\n1,2\n")

    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(DataError, match=r"'t.csv' cannot be opened \(Permission denied\)"):
        read(path)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("t.parquet", b"PAR1 and nothing more", "damaged or not a Parquet file"),
        ("t.parquet", b"a,b\n1,2\n", "damaged or not a Parquet file"),
        ("t.csv.gz", b"a,b\n1,2\n", "damaged or not a .gz file"),
        ("t.csv.bz2", b"a,b\n1,2\n", "damaged or not a .bz2 file"),
        ("t.csv.xz", b"a,b\n1,2\n", "damaged or not a .xz file"),
        ("t.zip", b"a,b\n1,2\n", "damaged or not a .zip file"),
        ("t.csv.zst", b"a,b\n1,2\n", "damaged or not a .zst file"),
        ("t.xlsx", b"a,b\n1,2\n", "damaged or not a spreadsheet"),
        ("t.json", b'{"a": 1, "b": 2}\n{"a": ', "Malformed JSON"),
        ("t.json", b"[1, 2]", "holds no rows"),
        ("t.json", b"[]", "holds no rows"),
        ("t.arff", b"a,b\n1,2\n", "neither @relation"),
        ("t.feather", b"anything", "polars.read_ipc"),
        ("t.sas7bdat", b"anything", "pandas.read_sas"),
        ("t.unknown", b"\x00\x01\x02", "does not look like a table of text"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused_in_one_sentence(tmp_path, name, content, sentence):
    with pytest.raises(DataError, match=sentence) as caught:
        read(write(tmp_path / name, content))
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_cut_off_gz_file(tmp_path):
    import gzip
    import random

    text = "a,b\n" + "".join(f"{random.Random(i).random()},1\n" for i in range(3000))
    whole = gzip.compress(text.encode())
    with pytest.raises(DataError, match="damaged"):
        read(write(tmp_path / "t.csv.gz", whole[: len(whole) // 2]))


def test_an_archive_of_several_tables(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("a.csv", "a,b\n1,2\n")
        archive.writestr("b.csv", "a,b\n1,2\n")
    with pytest.raises(DataError, match=r"'t.zip' holds 'a.csv', 'b.csv'; unpack it"):
        read(tmp_path / "t.zip")


def test_an_unknown_ending_is_tried_as_text(tmp_path):
    assert read(write(tmp_path / "t.survey", "a,b\n1,2\n")).names == ("a", "b")


def test_parquet_files_of_a_pattern_must_have_the_same_types(tmp_path):
    pq.write_table(pa.table({"a": [1], "b": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [1.5], "b": [1]}), tmp_path / "2.parquet")
    with pytest.raises(DataError, match=r"'2.parquet' and '1.parquet' have different columns or types"):
        read(tmp_path / "*.parquet")


def test_nested_columns_are_refused_unless_left_out(tmp_path):
    pq.write_table(
        pa.table({"a": [1, 2], "b": [[1], [2]], "c": [{"d": 1, "e": 2}] * 2, "f": ["x", "y"]}),
        tmp_path / "t.parquet",
    )
    with pytest.raises(DataError, match="Column 'b' holds lists"):
        read(tmp_path / "t.parquet", strict=True)
    assert read(tmp_path / "t.parquet").names == ("a", "f")
    assert read(tmp_path / "t.parquet", columns=["a", "f"]).names == ("a", "f")
    write(tmp_path / "t.jsonl", '{"a": 1, "b": [1]}\n{"a": 2, "b": 3}\n')
    with pytest.raises(DataError, match="Column 'b' holds lists"):
        read(tmp_path / "t.jsonl", strict=True)


def test_parquet_names_that_repeat_are_refused(tmp_path):
    pq.write_table(
        pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), tmp_path / "t.parquet"
    )
    with pytest.raises(DataError, match=r"'a' appears more than once in 't.parquet'"):
        read(tmp_path / "t.parquet")


def test_the_row_numbers_pandas_hides_in_a_file_are_left_out(tmp_path):
    frame = mixed_frame()[lambda table: table["n"] > 0]
    frame.to_parquet(tmp_path / "t.parquet")
    data = read(tmp_path / "t.parquet")
    assert data == read(frame)
    assert data.notes == ("Left out '__index_level_0__', which holds row numbers of pandas.",)
    assert read(tmp_path / "t.parquet", columns=["n", "__index_level_0__"]).n_variables == 2


def test_a_parquet_file_without_rows(tmp_path):
    pq.write_table(
        pa.table({"a": pa.array([], pa.int8()), "b": pa.array([], pa.string())}), tmp_path / "t.parquet"
    )
    with pytest.raises(DataError, match=r"'t.parquet' has columns but no rows"):
        read(tmp_path / "t.parquet")


def test_json_rows_may_have_many_keys(tmp_path):
    rows = "".join(
        json.dumps({f"k{place}": (place + row) % 2 for place in range(300)}) + "\n" for row in range(3)
    )
    assert read(write(tmp_path / "t.jsonl", rows)).n_variables == 300


def test_a_key_a_json_row_lacks_is_missing_there(tmp_path):
    path = write(tmp_path / "t.jsonl", '{"a": 1, "b": "x"}\n{"a": 2}\n{"a": 2, "b": null}\n')
    assert read(path, missing="level").domain["b"].levels == ("x", "missing")


def test_a_list_of_paths_is_one_table(tmp_path):
    for place, text in enumerate(["a,b\nx,p\n", "a,b\ny,q\n"]):
        (tmp_path / f"{place}.csv").write_text(text)
    listed = [str(tmp_path / "1.csv"), tmp_path / "0.csv"]
    assert read(listed) == read(str(tmp_path / "*.csv"))
