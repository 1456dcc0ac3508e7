"""Tables that can be read only once: standard input, pipes, FIFOs, open files."""

import bz2
import gzip
import importlib
import io
import json
import lzma
import os
import sys
import zipfile
from threading import Thread

import pandas as pd
import pytest

from data.tables import write
from unless import read
from unless.errors import DataError, TooLarge
from unless.runtime import files

TEXT = b"a,b\n" + b"x,1\ny,2\nx,3\n" * 2000


def zipped(content):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("t.csv", content)
    return made.getvalue()


def parquet(_):
    made = io.BytesIO()
    frame().to_parquet(made)
    return made.getvalue()


def excel(_):
    made = io.BytesIO()
    frame().to_excel(made, index=False, engine="xlsxwriter")
    return made.getvalue()


def frame():
    return pd.read_csv(io.BytesIO(TEXT))


def json_lines(_):
    return "".join(json.dumps(row) + "\n" for row in frame().to_dict("records")).encode()


def arff(_):
    rows = TEXT.removeprefix(b"a,b\n")
    return b"% made here\n@relation t\n@attribute a string\n@attribute b string\n@data\n" + rows


def zstandard(content):
    import pyarrow as pa

    return pa.compress(content, codec="zstd", asbytes=True)


FORMS = {
    "csv": bytes,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zip": zipped,
    "zstandard": zstandard,
    "json": json_lines,
    "parquet": parquet,
    "excel": excel,
    "arff": arff,
}


def told(data):
    return data.rows.tolist(), data.counts.tolist(), [(one.name, one.levels) for one in data.domain]


@pytest.mark.parametrize("form", FORMS)
def test_what_an_open_file_holds_is_known_by_how_it_begins(tmp_path, form):
    whole = read(write(tmp_path / "t.csv", TEXT))
    assert told(read(io.BytesIO(FORMS[form](TEXT)))) == told(whole)


@pytest.mark.parametrize("form", ["csv", "gz"])
def test_a_fifo_is_opened_once(tmp_path, form):
    os.mkfifo(tmp_path / "fifo")
    content = FORMS[form](TEXT)
    writer = Thread(target=(tmp_path / "fifo").write_bytes, args=(content,), daemon=True)
    writer.start()
    assert read(tmp_path / "fifo").n_rows == 6000
    writer.join()


def test_a_pipe_by_its_number_is_read_from_its_first_row():
    reading, writing = os.pipe()
    writer = Thread(target=lambda: (os.write(writing, TEXT), os.close(writing)))
    writer.start()
    try:
        assert read(f"/dev/fd/{reading}").n_rows == 6000
    finally:
        writer.join()
        os.close(reading)


def test_standard_input_is_read(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    assert read("-").n_rows == 6000


def test_a_file_called_like_standard_input_is_read_by_its_path(tmp_path, monkeypatch):
    write(tmp_path / "-", TEXT)
    monkeypatch.chdir(tmp_path)
    assert read("./-").n_rows == 6000


def test_open_files_are_one_table_and_stay_open(tmp_path):
    path = write(tmp_path / "t.csv", TEXT)
    with path.open("rb") as stream:
        assert read([stream, path]).n_rows == 12_000
        assert not stream.closed


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (io.BytesIO(b""), "the open file is empty"),
        (io.StringIO("a,b\n1,2\n"), "open it in binary mode"),
        ("/dev/zero", "is a device, not a file"),
        ("/dev/null", "is empty"),
    ],
)
def test_a_stream_that_is_no_table(source, sentence):
    with pytest.raises(DataError, match=sentence):
        read(source)


@pytest.mark.parametrize(
    ("stdin", "sentence"),
    [(None, "Standard input is closed"), (io.TextIOWrapper(io.BytesIO()), "standard input is empty")],
)
def test_standard_input_that_is_none(monkeypatch, stdin, sentence):
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(DataError, match=sentence):
        read("-")


def test_a_terminal_is_no_table(monkeypatch):
    pytest.importorskip("pty")
    leader, follower = os.openpty()
    with os.fdopen(follower, "rb", buffering=0) as terminal, os.fdopen(leader, "wb", buffering=0):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(terminal)))
        with pytest.raises(DataError, match="is a terminal; pipe a file into it"):
            read("-")


def test_a_stream_that_fills_the_disk_is_said_as_such(monkeypatch):
    monkeypatch.setattr(files, "room_in", lambda _: 10)
    with pytest.raises(TooLarge, match=r"There is no space for the open file .*; set TMPDIR"):
        read(io.BytesIO(TEXT))


@pytest.mark.parametrize("change", ["cut", "grown", "removed", "replaced"])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch, change):
    path = write(tmp_path / "t.csv", TEXT)
    changes = {
        "cut": lambda: os.truncate(path, 400),
        "grown": lambda: path.write_bytes(TEXT + b"z,4\n"),
        "removed": path.unlink,
        "replaced": lambda: write(tmp_path / "new", TEXT).replace(path),
    }
    reading = importlib.import_module("unless.data.read")
    encode = reading._encode

    def meanwhile(*arguments):
        changes[change]()
        return encode(*arguments)

    monkeypatch.setattr(reading, "_encode", meanwhile)
    done = "was removed" if change == "removed" else "changed"
    with pytest.raises(DataError, match=f"'t.csv' {done} while it was read; read it again"):
        read(path)


def test_a_file_removed_before_it_is_looked_into(tmp_path, monkeypatch):
    from unless.data.sources import opening

    path = write(tmp_path / "t.csv", TEXT)
    check = opening._check_readable

    def meanwhile(*arguments):
        check(*arguments)
        path.unlink()

    monkeypatch.setattr(opening, "_check_readable", meanwhile)
    with pytest.raises(DataError, match=r"'t.csv' was removed while it was read"):
        read(path)
