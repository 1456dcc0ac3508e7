"""Spreadsheets and archives made to harm: each is refused in one sentence."""

import bz2
import errno
import io
import lzma
import os
import struct
import sys

import pytest

from studies.faults import hostile
from unless import read
from unless.data.sources import excel, session, unpacking
from unless.errors import TooLarge, UnlessError

MADE = {one.name: one for one in hostile.HOSTILE}
# Those that are made and refused in a second; `python -m studies.faults.hostile` tries them all.
FAST = {
    "far.xlsx": r"spans 1,048,576 rows and 16,384 columns with 3 cells; delete",
    "far_row.xlsx": r"beyond row 1,048,576",
    "far_column.xlsx": r"beyond column 16,384",
    "far_in_row.xlsx": r"spans 1,048,576 rows",
    "evasive.xlsx": r"spans 1,048,576 rows",
    "nested.xlsx": r"damaged or not a spreadsheet; save it again",
    "locked.xlsx": r"protected by a password",
    "cut.xlsx": r"damaged or not a spreadsheet",
    "repeated.ods": r"spans 1,048,576 rows and 16,384 columns",
    "empty.ods": r"beyond column 16,384",
    "far.xlsb": r"takes more memory to open than a file of its size may",
    "loop.xls": r"takes more memory to open|damaged",
    "rows.csv.zst": r"unpacks to more than 200 times its size; unpack it by hand",
    "nested.zip": r"holds another packed file",
    "packed.zip": r"holds another packed file",
    "above.zip": r"leads out of the archive",
    "absolute.zip": r"leads out of the archive",
    "link.zip": r"holds a link",
    "locked.zip": r"is encrypted",
    "cut.csv.xz": r"damaged or not a \.xz file",
    "keys.json.gz": r"an object of more than 100,000 keys",
    "dictionary.csv.xz": r"needs more memory to be unpacked",
}


def refused(path):
    with pytest.raises(UnlessError) as caught:
        read(path)
    said = str(caught.value)
    assert "\n" not in said
    assert path.name in said
    return said


@pytest.mark.parametrize("name", FAST)
def test_a_hostile_file_is_refused_in_one_sentence(tmp_path, name):
    MADE[name].make(tmp_path / name)
    with pytest.raises(UnlessError, match=FAST[name]):
        read(tmp_path / name)
    refused(tmp_path / name)


@pytest.mark.parametrize(
    ("ending", "pack"), [("gz", hostile._gz), ("bz2", bz2.compress), ("xz", lzma.compress)]
)
def test_what_unpacks_without_end_is_stopped_by_count(tmp_path, ending, pack):
    part = pack(bytes(2**25))
    (tmp_path / f"t.csv.{ending}").write_bytes(part * 8)
    assert "more than 200 times its size" in refused(tmp_path / f"t.csv.{ending}")


def test_an_archive_that_announces_too_much_is_not_unpacked(tmp_path):
    hostile._one_member(tmp_path / "t.zip", "t.csv")
    content = (tmp_path / "t.zip").read_bytes()
    size = content.index(b"PK\1\2") + 24
    (tmp_path / "t.zip").write_bytes(content[:size] + struct.pack("<I", 2**30) + content[size + 4 :])
    assert "unpacks to 1.0 GiB, more than 200 times its size" in refused(tmp_path / "t.zip")


def test_an_archive_whose_list_is_endless(tmp_path):
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 65535, 65535, 2**24, 0, 0)
    (tmp_path / "t.zip").write_bytes(b"PK\3\4" + bytes(100) + end)
    assert "holds more than 65,000 files" in refused(tmp_path / "t.zip")


def test_a_long_string_of_a_spreadsheet(tmp_path):
    strings = f"<sst {hostile._MAIN}><si><t>".encode() + b"x" * 2**25
    hostile.excel(tmp_path / "t.xlsx", hostile.sheet(""), strings)
    assert "unpacks to 32.0 MiB, more than 100 times its size" in refused(tmp_path / "t.xlsx")


def test_a_string_shared_by_many_cells_is_stopped_by_the_bound_on_memory(tmp_path):
    text = f"<sst {hostile._MAIN}><si><t>{'x' * 32_000}</t></si></sst>".encode()
    cells = "".join(f'<row r="{row}"><c r="A{row}" t="s"><v>0</v></c></row>' for row in range(2, 30_000))
    hostile.excel(tmp_path / "t.xlsx", hostile.sheet(cells), text)
    assert "takes more memory to open" in refused(tmp_path / "t.xlsx")


def test_a_cell_that_is_a_megabyte_of_text(tmp_path):
    import random

    text = random.Random(0).randbytes(2**20).hex()
    cell = f'<row r="2"><c r="A2" t="inlineStr"><is><t>{text}</t></is></c></row>'
    hostile.excel(tmp_path / "t.xlsx", hostile.sheet(cell))
    assert "a cell of more than 1.0 MiB of text" in refused(tmp_path / "t.xlsx")


def test_a_sheet_that_claims_to_be_large_and_is_not_is_read(tmp_path):
    cells = '<row r="2"><c r="A2"><v>1</v></c><c r="B2"><v>3</v></c></row>'
    claims = hostile.sheet(cells).replace(b"<sheetData>", b'<dimension ref="A1:XFD1048576"/><sheetData>')
    hostile.excel(tmp_path / "t.xlsx", claims)
    assert read(tmp_path / "t.xlsx").n_rows == 1


def test_a_document_with_repeated_rows_and_an_empty_end_is_read(tmp_path):
    cell = hostile._FILLED.format
    head = f"<table:table-row>{cell('')}{cell('').replace('>x<', '>y<')}"
    blank = '<table:table-cell table:number-columns-repeated="16382"/></table:table-row>'
    body = f'<table:table-row table:number-rows-repeated="40">{cell("")}{cell("")}{blank}'
    end = '<table:table-cell table:number-columns-repeated="16384"/></table:table-row>'
    last = f'<table:table-row table:number-rows-repeated="1048000">{end}'
    hostile.document(tmp_path / "t.ods", f"{head}{blank}{body}{last}")
    assert read(tmp_path / "t.ods", strict=True).n_rows == 40


def test_cells_without_references_are_counted(tmp_path):
    row = '<row><c t="inlineStr"><is><t>{}</t></is></c><c t="inlineStr"><is><t>{}</t></is></c></row>'
    cells = row.format("a", "b") + row.format("x", "y") * 3000
    sheet = f"<worksheet {hostile._MAIN}><sheetData>{cells}</sheetData></worksheet>"
    hostile.excel(tmp_path / "t.xlsx", sheet.encode())
    assert read(tmp_path / "t.xlsx", strict=True).n_rows == 3000


def test_the_number_of_a_column():
    assert [excel.number_of(letters) for letters in (b"A", b"Z", b"AA", b"XFD")] == [1, 26, 27, 16_384]


def test_a_zstandard_file_is_measured_by_its_blocks():
    raw, same = struct.pack("<I", 5 << 3 | 0)[:3] + b"a,b\n1", struct.pack("<I", 1000 << 3 | 3)[:3] + b"x"
    frame = b"\x28\xb5\x2f\xfd\x00\x58" + raw + same
    skipped = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
    assert unpacking._zst_size(io.BytesIO(skipped + frame + frame), 10**9) == 2010
    with pytest.raises(EOFError):
        unpacking._zst_size(io.BytesIO(frame[:-6]), 10**9)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG])
def test_a_full_disk_is_said_as_such(tmp_path, monkeypatch, number):
    (tmp_path / "t.csv.gz").write_bytes(hostile._gz(b"a,b\n1,2\n"))

    def full(*_args, **_named):
        raise OSError(number, "full")

    monkeypatch.setattr(session, "run_in_child", full)
    with pytest.raises(TooLarge, match=r"no space for .* in the folder for temporary files .*; set TMPDIR"):
        read(tmp_path / "t.csv.gz")


def test_a_member_of_an_archive_with_a_long_ending(tmp_path):
    hostile._one_member(tmp_path / "t.zip", "t." + "x" * 5000, b"a,b\n1,2\n")
    assert read(tmp_path / "t.zip", encoding="latin-1").n_rows == 1


def test_a_large_file_of_nothing_is_refused_at_once(tmp_path):
    for name in ("t.xlsx", "t.ods", "t.csv.gz", "t.zip", "t.csv"):
        with (tmp_path / name).open("wb") as stream:
            stream.truncate(2**33)
        refused(tmp_path / name)


def test_a_table_in_an_archive_keeps_its_format(tmp_path):
    hostile.excel(tmp_path / "t.xlsx", hostile.sheet('<row r="2"><c r="A2"/><c r="B2"><v>3</v></c></row>'))
    content = (tmp_path / "t.xlsx").read_bytes()
    hostile._one_member(tmp_path / "t.zip", "t.xlsx", content)
    (tmp_path / "t.xlsx.gz").write_bytes(hostile._gz(content))
    (tmp_path / "rows.jsonl.xz").write_bytes(lzma.compress(b'{"a": 1, "b": 2}\n'))
    whole = read(tmp_path / "t.xlsx", missing="level")
    assert read(tmp_path / "t.zip", missing="level") == read(tmp_path / "t.xlsx.gz", missing="level") == whole
    assert read(tmp_path / "rows.jsonl.xz").names == ("a", "b")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
@pytest.mark.parametrize("name", [b"t\xff.csv", b"t\xff.csv.gz", b"t\xff.xlsx", b"t\n.csv"])
def test_a_name_that_is_no_text_is_read(tmp_path, name):
    path = tmp_path / os.fsdecode(name)
    if path.suffix == ".xlsx":
        hostile.excel(path, hostile.sheet('<row r="2"><c r="A2"><v>1</v></c><c r="B2"><v>3</v></c></row>'))
    else:
        path.write_bytes(hostile._gz(b"a,b\n1,2\n") if path.suffix == ".gz" else b"a,b\n1,2\n")
    assert read(path).n_rows == 1


def test_a_packed_file_with_another_ending_is_recognised(tmp_path):
    (tmp_path / "t.csv").write_bytes(hostile._gz(b"a,b\n1,2\n"))
    assert read(tmp_path / "t.csv").names == ("a", "b")
