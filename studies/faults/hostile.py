"""Files made to harm: each must be refused in one sentence, with little memory and in little time.

`python -m studies.faults.hostile` makes them all, runs `unless learn` on each and prints what it said.
"""

import bz2
import io
import json
import lzma
import os
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

# What a refusal may cost: megabytes of all processes together, and seconds.
MOST_MEGABYTES, MOST_SECONDS = 300, 20
_BLOCK = 2**20
_PAUSE = 0.005

_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPES = (
    f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    "</Types>"
)
_TABLE = b"a,b\n1,2\n3,4\n"


@dataclass(frozen=True)
class Hostile:
    """A file: its name, what is wrong with it, and how it is made."""

    name: str
    what: str
    make: Callable[[Path], object]


@dataclass(frozen=True)
class Refusal:
    """How a file was refused, and what that cost."""

    name: str
    what: str
    size: int
    sentence: str
    megabytes: float
    seconds: float
    faults: list[str]


def excel(path: Path, sheet: bytes | Iterator[bytes], strings: bytes | Iterator[bytes] = b"") -> None:
    """Write an .xlsx file around the XML of one sheet."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        archive.writestr("_rels/.rels", _links("officeDocument", "xl/workbook.xml"))
        book = f'<workbook {_MAIN} xmlns:r="{_RELATIONS}"><sheets>'
        archive.writestr(
            "xl/workbook.xml", f'{book}<sheet name="s" sheetId="1" r:id="r0"/></sheets></workbook>'
        )
        more = [("sharedStrings", "sharedStrings.xml")] if strings else []
        links = [("worksheet", "worksheets/sheet1.xml"), *more]
        archive.writestr("xl/_rels/workbook.xml.rels", _links(*(word for link in links for word in link)))
        for name, content in (("worksheets/sheet1.xml", sheet), ("sharedStrings.xml", strings)):
            if content:
                _write_member(archive, f"xl/{name}", content)


def _links(*words: str) -> str:
    pairs = zip(words[::2], words[1::2], strict=True)
    listed = "".join(
        f'<Relationship Id="r{place}" Type="{_RELATIONS}/{kind}" Target="{target}"/>'
        for place, (kind, target) in enumerate(pairs)
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{listed}</Relationships>'


def _write_member(archive: zipfile.ZipFile, name: str, content: bytes | Iterator[bytes]) -> None:
    with archive.open(name, "w", force_zip64=True) as out:
        for block in [content] if isinstance(content, bytes) else content:
            out.write(block)


def sheet(cells: str) -> bytes:
    """Return a sheet with two good cells and others."""
    good = '<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c><c r="B1"><v>2</v></c></row>'
    return f"<worksheet {_MAIN}><sheetData>{good}{cells}</sheetData></worksheet>".encode()


def _cell(reference: str, row: str = "") -> bytes:
    number = row or reference.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return sheet(f'<row r="{number}"><c r="{reference}"><v>1</v></c></row>')


def _repeated(head: bytes, middle: bytes, megabytes: int, tail: bytes) -> Iterator[bytes]:
    yield head
    block = middle * (_BLOCK // len(middle))
    for _ in range(megabytes):
        yield block
    yield tail


def _long_string(path: Path) -> None:
    text = _repeated(f"<sst {_MAIN}><si><t>".encode(), b"x", 1024, b"</t></si></sst>")
    excel(path, sheet('<row r="2"><c r="A2" t="s"><v>0</v></c></row>'), text)


def _shared_many_times(path: Path) -> None:
    text = f"<sst {_MAIN}><si><t>{'x' * 32_000}</t></si></sst>".encode()
    cells = "".join(f'<row r="{row}"><c r="A{row}" t="s"><v>0</v></c></row>' for row in range(2, 300_000))
    excel(path, sheet(cells), text)


def _evasive(path: Path) -> None:
    cells = "<x:row r='2'><x:c r='a1'/><x:c\ts='0'\n r = 'xfd1048576'><x:v>1</x:v></x:c></x:row>"
    main = _MAIN.replace("xmlns", "xmlns:x")
    excel(path, f"<x:worksheet {main}><x:sheetData>{cells}</x:sheetData></x:worksheet>".encode())


def _many_members(path: Path, first: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(first, _TABLE)
        for place in range(100_000):
            archive.writestr(zipfile.ZipInfo(f"xl/{place}.xml"), b"")


def _encrypted(path: Path, name: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, _TABLE)
    content = bytearray(path.read_bytes())
    # The flag that says so, in the member and in the list.
    content[6] |= 1
    content[content.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(content)


def document(path: Path, rows: str) -> None:
    """Write an .ods file around the XML of its rows."""
    names = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet", zipfile.ZIP_STORED)
        content = (
            f'<office:document-content{names}><office:body><office:spreadsheet><table:table table:name="s">'
            f"{rows}</table:table></office:spreadsheet></office:body></office:document-content>"
        )
        archive.writestr("content.xml", content)
        archive.writestr("META-INF/manifest.xml", "<manifest/>")


_FILLED = '<table:table-cell office:value-type="string"{}><text:p>x</text:p></table:table-cell>'


def _repeated_cells(path: Path) -> None:
    cell = _FILLED.format(' table:number-columns-repeated="16384"')
    document(path, f'<table:table-row table:number-rows-repeated="1048576">{cell}</table:table-row>')


def _empty_cells(path: Path) -> None:
    cell = '<table:table-cell table:number-columns-repeated="4294967295"/>' + _FILLED.format("")
    document(path, f"<table:table-row>{cell}</table:table-row>")


def binary_sheet(path: Path, row: int, column: int) -> None:
    """Write an .xlsb file with one number far away."""

    def record(kind: int, content: bytes = b"") -> bytes:
        written = bytes([kind]) if kind < 128 else bytes([kind & 127 | 128, kind >> 7])
        return written + bytes([len(content)]) + content

    def text(word: str) -> bytes:
        return struct.pack("<I", len(word)) + word.encode("utf-16-le")

    book = record(131) + record(143) + record(156, struct.pack("<II", 0, 1) + text("r0") + text("s"))
    cell = struct.pack("<IId", column, 0, 1.0)
    cells = record(0, struct.pack("<I", row) + bytes(13)) + record(5, cell)
    first = record(0, struct.pack("<I", 0) + bytes(13)) + record(5, struct.pack("<IId", 0, 0, 1.0))
    size = record(148, struct.pack("<IIII", 0, row, 0, column))
    content = record(129) + size + record(145) + first + cells + record(146) + record(130)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        archive.writestr("xl/workbook.bin", book + record(144) + record(132))
        archive.writestr("xl/_rels/workbook.bin.rels", _links("worksheet", "worksheets/sheet1.bin"))
        archive.writestr("xl/worksheets/sheet1.bin", content)


def _old_excel(path: Path) -> None:
    # A folder of sectors that lead to themselves, and a size of 4 GB.
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 62, 3, 0xFFFE, 9, 6)
    head += bytes(6) + struct.pack("<IIIIIIIII", 0, 2**24, 0, 0, 4096, 0, 2**24, 0, 2**24)
    path.write_bytes(head.ljust(512, b"\0") + struct.pack("<128I", *([0] * 128)) * 64)


def _in_a_row(path: Path, compress: Callable[[bytes], bytes], gigabytes: int = 10) -> None:
    part = compress(bytes(2**26))
    with path.open("wb") as out:
        for _ in range(16 * gigabytes):
            out.write(part)


def _gz(data: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return packer.compress(data) + packer.flush()


def _zip_bomb(
    path: Path, kind: int = zipfile.ZIP_DEFLATED, megabytes: int = 4096, name: str = "t.csv"
) -> None:
    with zipfile.ZipFile(path, "w", kind) as archive:
        _write_member(archive, name, _repeated(_TABLE, b"5,6\n", megabytes, b""))


def _lying_zip(path: Path) -> None:
    _zip_bomb(path, megabytes=1024)
    content = path.read_bytes()
    listed = content.index(b"PK\1\2")
    # The list says that the member has ten bytes.
    path.write_bytes(content[: listed + 24] + struct.pack("<I", 10) + content[listed + 28 :])


def _zstandard(path: Path) -> None:
    block = struct.pack("<I", (2**17 << 3) | 2)[:3] + b"7"
    path.write_bytes(b"\x28\xb5\x2f\xfd\x00\x58" + block * 100_000 + b"\x01\0\0")


def _zipped(name: str, content: bytes = _TABLE) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def _one_member(path: Path, name: str, content: bytes = _TABLE) -> None:
    _write(path, _zipped(name, content))


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _link_member(path: Path) -> None:
    member = zipfile.ZipInfo("t.csv")
    member.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, "/etc/passwd")


def _overlapping(path: Path) -> None:
    _zip_bomb(path, megabytes=64)
    content = path.read_bytes()
    start, end = content.index(b"PK\1\2"), content.rindex(b"PK\5\6")
    listed = content[start:end]
    tail = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 2000, 2000, 2000 * len(listed), start, 0)
    path.write_bytes(content[:start] + listed * 2000 + tail)


def _large_dictionary(path: Path) -> None:
    packed = bytearray(lzma.compress(_TABLE * 1000, check=lzma.CHECK_CRC32))
    # The dictionary of the first block: 40 stands for 4 GB. Its checksum follows.
    place = 12 + 4
    packed[place] = 40
    packed[20:24] = struct.pack("<I", zlib.crc32(bytes(packed[12:20])))
    path.write_bytes(packed)


def _cut(path: Path, content: bytes) -> None:
    path.write_bytes(content[: len(content) // 2])


def _nested_tags(path: Path) -> None:
    excel(path, f"<worksheet {_MAIN}><sheetData>".encode() + b"<row><c><is>" * 100_000)


def _quoted() -> bytes:
    return b'a,b\n1,"' + b"x,y\n" * 15_000_000


def _many_keys(path: Path) -> None:
    _write(path, _gz(b"{" + b",".join(b'"k%d":1' % place for place in range(900_000)) + b"}"))


def _many_attributes(path: Path) -> None:
    _write(path, _gz(b"@relation t\n" + b"@attribute a string\n" * 3_000_000 + b"@data\n"))


def _open_tags(path: Path) -> None:
    document(path, "<table:table-cell " * 800_000)


def _long_sheet(path: Path) -> None:
    head, row = sheet("").removesuffix(b"</sheetData></worksheet>"), b'<row r="2"><c r="A2"/></row>'
    excel(path, _repeated(head, row, 1024, b"</sheetData></worksheet>"))


def _long_cell(path: Path) -> None:
    with path.open("wb") as out:
        out.write(b'a,b\n1,"')
        for _ in range(100):
            out.write(b"x" * _BLOCK)
        out.write(b'"\n')


HOSTILE = (
    Hostile("far.xlsx", "one cell at XFD1048576", lambda path: excel(path, _cell("XFD1048576"))),
    Hostile("far_row.xlsx", "a row 4294967295", lambda path: excel(path, _cell("A4294967295"))),
    Hostile("far_column.xlsx", "a column ZZZZZZZZ", lambda path: excel(path, _cell("ZZZZZZZZ1"))),
    Hostile("far_in_row.xlsx", "a far cell in row 2", lambda path: excel(path, _cell("XFD1048576", "2"))),
    Hostile("evasive.xlsx", "a far cell, written in an unusual way", _evasive),
    Hostile("long_string.xlsx", "a shared string of 1 GB", _long_string),
    Hostile("shared.xlsx", "a string of 32,000 letters in 300,000 cells", _shared_many_times),
    Hostile("long_sheet.xlsx", "a sheet of 1 GB", _long_sheet),
    Hostile("nested.xlsx", "100,000 tags inside one another", _nested_tags),
    Hostile("members.xlsx", "100,000 members", lambda path: _many_members(path, "xl/workbook.xml")),
    Hostile("locked.xlsx", "encrypted members", lambda path: _encrypted(path, "xl/workbook.xml")),
    Hostile("cut.xlsx", "half of a spreadsheet", lambda path: _cut(path, _zipped("xl/workbook.xml"))),
    Hostile("repeated.ods", "a cell repeated 17 billion times", _repeated_cells),
    Hostile("empty.ods", "4 billion empty cells before one", _empty_cells),
    Hostile("far.xlsb", "a cell in the last row and column", lambda path: binary_sheet(path, 1048575, 16383)),
    Hostile("loop.xls", "sectors that lead to themselves", _old_excel),
    Hostile("zeros.csv.gz", "10 GB of zeros", lambda path: _in_a_row(path, _gz)),
    Hostile("zeros.csv.bz2", "10 GB of zeros", lambda path: _in_a_row(path, bz2.compress)),
    Hostile("zeros.csv.xz", "10 GB of zeros", lambda path: _in_a_row(path, lzma.compress)),
    Hostile("rows.csv.zst", "13 GB of one byte", _zstandard),
    Hostile("rows.zip", "4 GB of rows", _zip_bomb),
    Hostile("rows_bz2.zip", "1 GB of rows, by bzip2", lambda path: _zip_bomb(path, zipfile.ZIP_BZIP2, 1024)),
    Hostile("rows_lzma.zip", "1 GB of rows, by LZMA", lambda path: _zip_bomb(path, zipfile.ZIP_LZMA, 1024)),
    Hostile("lying.zip", "1 GB that is announced as ten bytes", _lying_zip),
    Hostile("sheet.zip", "an .xlsx of 4 GB in a .zip", lambda path: _zip_bomb(path, name="t.xlsx")),
    Hostile("nested.zip", "a .zip in a .zip", lambda path: _one_member(path, "t.zip", _zipped("t.csv"))),
    Hostile("packed.zip", "a .csv.gz in a .zip", lambda path: _one_member(path, "t.csv.gz", _gz(_TABLE))),
    Hostile("above.zip", "a member ../../t.csv", lambda path: _one_member(path, "../../t.csv")),
    Hostile("absolute.zip", "a member /etc/t.csv", lambda path: _one_member(path, "/etc/t.csv")),
    Hostile("link.zip", "a symbolic link to /etc/passwd", _link_member),
    Hostile("locked.zip", "an encrypted member", lambda path: _encrypted(path, "t.csv")),
    Hostile("members.zip", "100,000 members", lambda path: _many_members(path, "t.csv")),
    Hostile("overlapping.zip", "2,000 members that are the same bytes", _overlapping),
    Hostile("cut.csv.xz", "half of an .xz file", lambda path: _cut(path, lzma.compress(_TABLE * 999))),
    Hostile("dictionary.csv.xz", "a dictionary of 4 GB", _large_dictionary),
    Hostile("parts.csv.bz2", "200,000 empty parts", lambda path: _write(path, bz2.compress(b"") * 200_000)),
    Hostile("parts.csv.gz", "200,000 empty parts", lambda path: _write(path, _gz(b"") * 200_000)),
    Hostile("blank.csv.gz", "60 MB of blank lines", lambda path: _write(path, _gz(b"\n" * 60_000_000))),
    Hostile("line.csv.gz", "one line of 60 MB", lambda path: _write(path, _gz(b"x" * 60_000_000))),
    Hostile("quote.csv.gz", "a quote open for 60 MB", lambda path: _write(path, _gz(_quoted()))),
    Hostile("nested.json.gz", "60 million brackets", lambda path: _write(path, _gz(b"[" * 60_000_000))),
    Hostile("keys.json.gz", "an object of 900,000 keys", _many_keys),
    Hostile("names.arff.gz", "3,000,000 attributes", _many_attributes),
    Hostile("slow.ods", "800,000 tags that do not end", _open_tags),
    Hostile("cell.csv", "a cell of 100 MB", _long_cell),
)


def refuse(hostile: Hostile, folder: Path) -> Refusal:
    """Make a file, let `unless learn` refuse it, and note what that cost and what went wrong."""
    folder.mkdir(parents=True)
    temporary = folder / "tmp"
    temporary.mkdir()
    path, output = folder / hostile.name, folder / "m.unless"
    hostile.make(path)
    size = path.stat().st_size
    environment = {**os.environ, "TMPDIR": str(temporary), "UNLESS_DEBUG": "1"}
    command = [sys.executable, "-m", "unless", "learn", str(path), "-o", str(output)]
    begun = time.monotonic()
    with (folder / "err").open("wb") as err:
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=err, env=environment)  # noqa: S603
        megabytes = _watch(running, begun + 10 * MOST_SECONDS)
    seconds = time.monotonic() - begun
    said = (folder / "err").read_text(errors="replace").strip()
    found = {
        f"exit code {running.returncode}": running.returncode != 2,
        f"{said.count(chr(10)) + 1} lines": "\n" in said,
        "a traceback": "Traceback" in said or "bug" in said,
        "an output file": output.exists(),
        "something left in TMPDIR": any(temporary.iterdir()),
        "too much memory": megabytes > MOST_MEGABYTES,
        "too much time": seconds > MOST_SECONDS,
    }
    faults = [fault for fault, is_there in found.items() if is_there]
    sentence = said.removeprefix("unless: ")[:300]
    return Refusal(hostile.name, hostile.what, size, sentence, megabytes, seconds, faults)


def _watch(running: "subprocess.Popen[bytes]", end: float) -> float:
    """Wait for a process; return the megabytes that it and its children held, each at its highest."""
    highest: dict[int, int] = {}
    while running.poll() is None:
        command = _command(running.pid)
        for process in _family(running.pid):
            # Until it runs a command of its own, a child shows the memory of its parent.
            if process == running.pid or _command(process) != command:
                highest[process] = max(highest.get(process, 0), _high_water(process))
        if time.monotonic() > end:
            running.kill()
        time.sleep(_PAUSE)
    return sum(highest.values()) / 1024


def _family(process: int) -> Iterator[int]:
    yield process
    for task in _listed(f"/proc/{process}/task"):
        try:
            children = Path(f"/proc/{process}/task/{task}/children").read_text()
        except OSError:
            continue
        for child in children.split():
            yield from _family(int(child))


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 (threads come and go)
    except OSError:
        return []


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def _high_water(process: int) -> int:
    """Return the kilobytes that a process has held at most; 0 where the system does not tell."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def study(folder: Path, seed: int, quick: bool, minutes: float) -> str:  # noqa: ARG001 (nothing here is drawn)
    """Refuse all hostile files, or take up where an earlier run ended; return the section of the report."""
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * minutes
    refusals: list[Refusal] = []
    for hostile in HOSTILE:
        kept = folder / f"{hostile.name}.json"
        if not kept.exists():
            if time.monotonic() > end:
                break
            with tempfile.TemporaryDirectory(prefix="hostile-") as place:
                refusal = refuse(hostile, Path(place) / "run")
            kept.write_text(json.dumps(asdict(refusal), indent=1))
        refusals.append(Refusal(**json.loads(kept.read_text())))
    return section(refusals)


def section(refusals: list[Refusal]) -> str:
    """Write the table of what was refused, and how."""
    good = sum(not one.faults for one in refusals)
    lines = [
        "## Hostile files",
        "",
        f"{good} of {len(refusals)} spreadsheets, archives and tables made to harm are refused by `unless "
        "learn` with exit code 2 and one sentence, without an output or anything left in TMPDIR, below "
        f"{MOST_MEGABYTES} MB and {MOST_SECONDS} s. Memory is the sum over the command and its child "
        "processes of the most that each held (VmHWM, looked at every 5 ms).",
        "",
        "| file | bytes | what it is | the sentence | MB | s | faults |",
        "|---|---:|---|---|---:|---:|---|",
    ]
    for one in refusals:
        sentence = one.sentence.replace("|", "\\|").replace("\n", " ")
        cost = f"{one.megabytes:.0f} | {one.seconds:.1f} | {', '.join(one.faults) or 'none'}"
        lines.append(f"| {one.name} | {one.size:,} | {one.what} | {sentence} | {cost} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the section; a folder may be named, in which results are kept."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as place:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(place)
        sys.stdout.write(study(folder, seed=0, quick=False, minutes=60.0))


if __name__ == "__main__":
    main()
