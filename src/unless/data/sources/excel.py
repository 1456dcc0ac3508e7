"""Spreadsheets, through python-calamine where it is installed: one sheet, its first row as header.

A child process writes the sheet as CSV, and checks before that what the file claims: a few bytes can say that
a sheet has 17 billion cells, and the reader would allocate them. So a sheet is first looked through in small
blocks: how many bytes it unpacks to, how many cells it has, and how far they reach. The reader then gets the
memory that such a sheet needs. The child imports this file, so nothing is imported here that takes long.
"""

import csv
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from unless.data.showing import to_label
from unless.data.sources.unpacking import check_list
from unless.errors import DataError, MissingExtra
from unless.runtime.child import allow_memory
from unless.runtime.memory import show_memory

if TYPE_CHECKING:
    from unless.data.settings import Settings
    from unless.data.sources.session import DuckDBSession, Source, TableFile

# Sheets are XML, which packs well, but rarely to a fiftieth.
SMALL, RATIO = 2**24, 100
# What no program writes: Excel ends there, and so does LibreOffice.
_LAST_ROW, _LAST_COLUMN = 1_048_576, 16_384
# Cells that a sheet may span without having them: a table is rarely emptier than this.
_SPARE_CELLS, _SPAN = 2_000_000, 20
# A cell of Excel holds 32,767 characters.
_LONGEST_TEXT = 2**20
# What python-calamine needs, measured and doubled: for a cell that is there, for one that is spanned, for a
# byte of text; and Python itself.
_PER_CELL, _PER_SPANNED, _PER_BYTE, _ALONE = 112, 32, 1, 64 * 2**20
_BLOCK = 2**19
_SAVE = "save the sheet as CSV and name that."
# How much of the names of sheets the child reports.
_LONGEST_NAME, _MOST_NAMES = 100, 100


def open_excel(file: "TableFile", session: "DuckDBSession", how: "Settings") -> "Source":
    """Let a child process write one sheet as CSV, and open that."""
    # Not at the top: the child needs neither, and starts in a third of the time.
    from unless.data.domain import shorten
    from unless.data.sources.delimited import open_delimited

    if find_spec("python_calamine") is None:
        raise needs_calamine(file.title)
    target, report = session.write_in_child(
        "unless.data.sources.excel:write_sheet",
        {"source": str(file.path), "suffix": file.suffix, "title": file.title, "wanted": how.sheet},
        stage="reading the sheet",
        suffix=".csv",
        packages=("python_calamine",),
        memory=how.max_memory,
        # Three times what a sheet of numbers takes.
        seconds=4 + file.path.stat().st_size / 2**20,
        way_out=_SAVE,
    )
    names, index = report["names"], report["index"]
    if index is None and how.sheet is not None:
        rest = shorten([name for name in names if name != str(how.sheet)], 50)
        raise DataError(f"Sheet {how.sheet!r} of {file.title} is empty; name another one of {rest}.")
    if index is None and report["n_sheets"] > 1:
        raise DataError(
            f"All {report['n_sheets']:,} sheets of {file.title} are empty; put the table in one of them."
        )
    if index is None:
        raise DataError(f"The first sheet of {file.title} is empty; put the table there.")
    plain = replace(how, delimiter=",", encoding=None)
    source = open_delimited([replace(file, path=target, suffix=".csv")], session, plain)
    others = [name for number, name in enumerate(names) if number != index]
    if not others or how.sheet is not None:
        # Not said where the user named the sheet.
        return replace(source, repair=None)
    word = "another sheet is" if len(others) == 1 else "other sheets are"
    note = f"Read sheet {report['read']!r}; {word} {shorten(others, 20)} (choose with sheet=)."
    return replace(source, notes=(note,), repair=None)


def write_sheet(
    source: str, target: str, suffix: str, title: str, wanted: str | int | None
) -> dict[str, Any]:
    """Write a sheet as CSV: the one asked for, else the first with a table; return its name and all names."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise needs_calamine(title) from None
    with checked_book(Path(source), suffix, title) as allow:
        try:
            with CalamineWorkbook.from_path(source) as book:
                names = [str(name) for name in book.sheet_names]
                index = _write_some(book, _candidates(book, names, wanted, title), target, allow)
        except DataError:
            raise
        except (CalamineError, ValueError) as error:
            raise damaged(title, error) from None
    # The report of a child has a bound.
    shown = [name[:_LONGEST_NAME] for name in names[:_MOST_NAMES]]
    name = names[index][:_LONGEST_NAME] if index is not None else ""
    return {"read": name, "index": index, "names": shown, "n_sheets": len(names)}


def _candidates(book: Any, names: list[str], wanted: str | int | None, title: str) -> list[int]:
    """Return the numbers of the sheets to look at, from 0."""
    if wanted is None:
        listed = [
            index
            for index, one in enumerate(book.sheets_metadata)
            if str(one.typ).endswith("WorkSheet") and str(one.visible).endswith("Visible")
        ]
        # What is hidden, or a chart, is read only where there is nothing else.
        return listed or list(range(len(names)))
    if isinstance(wanted, str):
        if wanted in names:
            return [names.index(wanted)]
        key = wanted.strip().casefold()
        alike = [index for index, name in enumerate(names) if name.strip().casefold() == key]
        if len(alike) == 1:
            return alike
    if str(wanted).isascii() and str(wanted).isdigit() and 1 <= int(wanted) <= len(names):
        return [int(wanted) - 1]
    listed_names = ", ".join(repr(name[:_LONGEST_NAME]) for name in names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    raise DataError(f"{title} has no sheet {wanted!r}; its sheets are {listed_names}{more}.")


def _write_some(book: Any, candidates: list[int], target: str, allow: Callable[[int], None]) -> int | None:
    """Write the first of these sheets that has a table, else the first that is not empty; return which."""
    filled: int | None = None
    for index in candidates:
        n_rows, n_lines = _write_one(book, index, target, allow)
        if n_lines >= 2 or (n_rows and len(candidates) == 1):
            return index
        if n_rows and filled is None:
            filled = index
    if filled is not None:
        _write_one(book, filled, target, allow)
    return filled


def _write_one(book: Any, index: int, target: str, allow: Callable[[int], None]) -> tuple[int, int]:
    """Write a sheet; return how many rows are not empty, and how many have two cells or more."""
    n_rows = n_lines = 0
    allow(index)
    with Path(target).open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        for row in book.get_sheet_by_index(index).iter_rows():
            n_filled = sum(cell != "" for cell in row)
            if n_filled:
                writer.writerow([to_label(cell) for cell in row])
                n_rows += 1
                n_lines += n_filled > 1
    return n_rows, n_lines


def needs_calamine(title: str) -> MissingExtra:
    """Say which package is absent."""
    return MissingExtra(
        f'Reading {title} needs python-calamine; install it with: pip install "unless[excel]"'
    )


def damaged(title: str, error: object) -> DataError:
    """Say that a file is no spreadsheet."""
    why = f" ({error})"[:100] if str(error) else ""
    return DataError(f"{title} is damaged or not a spreadsheet{why}; save it again.")


@contextmanager
def checked_book(source: Path, suffix: str, title: str) -> Iterator[Callable[[int], None]]:
    """Look through what all sheets share, and allow the memory that it needs, or refuse the spreadsheet.

    Gives what does the same for a single sheet, by its number.
    """
    with source.open("rb") as packed:
        start = packed.read(8)
    if not start.startswith(b"PK"):
        # Excel keeps spreadsheets with a password in the old format.
        if suffix != ".xls" and start != b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
            raise damaged(title, "it is no archive")
        # The format of Excel 97 has no more than 65,536 rows and 256 columns, and packs nothing.
        allow_memory(2 * _ALONE + 20 * source.stat().st_size)
        yield lambda _: None
        return
    try:
        with source.open("rb") as packed:
            check_list(packed, title)
            with zipfile.ZipFile(packed) as archive:
                yield _Workbook(archive, suffix, title).allow
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, KeyError) as error:
        raise damaged(title, error) from None
    except Exception as error:
        if type(error).__module__ in ("zlib", "_lzma"):
            raise damaged(title, error) from None
        raise


class _Workbook:
    """A spreadsheet in an archive: each sheet is looked through, block by block, before it is read."""

    def __init__(self, archive: zipfile.ZipFile, suffix: str, title: str) -> None:
        self.archive, self.title, self.n_bytes = archive, title, 0
        self._names = set(archive.namelist())
        self._members: list[list[str]] | None = None
        if "content.xml" in self._names:
            # The reader opens all sheets at once.
            spans = _ods_spans(self.blocks("content.xml"))
            for index, span in enumerate(spans):
                span.check(_called(index, title))
            self._allow(*spans)
        elif "xl/workbook.bin" in self._names or suffix == ".xlsb":
            # Binary: its cells are not looked at, and the bound on memory must do.
            for name in sorted(self._names):
                if name.endswith(".bin"):
                    self.count(name)
            allow_memory(_ALONE + 12 * self.n_bytes)
        else:
            for name in sorted(self._names & {"xl/sharedStrings.xml", "xl/styles.xml"}):
                self.count(name)
            self._members = self._sheet_members()
            self._allow()

    def count(self, name: str) -> None:
        """Count the bytes of a member."""
        for _ in self._raw(name):
            pass

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield a member of XML; no tag is cut in two by the end of a block."""
        rest = b""
        for read in self._raw(name):
            block = rest + read
            end = block.rfind(b"<")
            if len(block) - max(end, 0) > _LONGEST_TEXT:
                raise DataError(
                    f"{self.title} has a cell of more than {show_memory(_LONGEST_TEXT)} of text; {_SAVE}"
                )
            if end > 0:
                yield block[:end]
            rest = block[max(end, 0) :]
        yield rest

    def _raw(self, name: str) -> Iterator[bytes]:
        member = self.archive.getinfo(name)
        if member.flag_bits & 1:
            raise DataError(f"{self.title} is protected by a password; save it without one.")
        if member.file_size > SMALL + RATIO * member.compress_size:
            raise DataError(
                f"{self.title} unpacks to {show_memory(member.file_size)}, more than {RATIO} times its size; "
                f"{_SAVE}"
            )
        with self.archive.open(member) as stream:
            # No more than announced is unpacked.
            while block := stream.read(_BLOCK):
                self.n_bytes += len(block)
                yield block

    def _allow(self, *spans: "_Span") -> None:
        n_cells, area = (sum(getattr(span, name) for span in spans) for name in ("n_cells", "area"))
        allow_memory(_ALONE + _PER_CELL * n_cells + _PER_SPANNED * area + _PER_BYTE * self.n_bytes)

    def _sheet_members(self) -> list[list[str]]:
        """Return the member that holds each sheet; all that may, where that is not plain."""
        members = ("xl/workbook.xml", "xl/_rels/workbook.xml.rels")
        book, rels = (b"".join(self.blocks(name)) if name in self._names else b"" for name in members)
        targets: dict[bytes, str] = {}
        for link in re.findall(rb"<(?:\w+:)?Relationship\s[^>]*>", rels):
            target = re.search(rb"\bTarget=[\"']([^\"']+)", link)
            identity = re.search(rb"\bId=[\"']([^\"']+)", link)
            if target and identity:
                path = target[1].decode("utf-8", "replace")
                targets[identity[1]] = (
                    path.lstrip("/") if path.startswith("/") else str(PurePosixPath("xl") / path)
                )
        listed = re.findall(rb"<(?:\w+:)?sheet\s[^>]*?\w+:id=[\"']([^\"']+)", book)
        found = [targets.get(one, "") for one in listed]
        return [[one] if one in self._names else _all_sheets(self._names) for one in found]

    def allow(self, index: int) -> None:
        """Look through a sheet, and allow the memory that it needs."""
        if self._members is None:
            return
        span = _Span()
        for name in self._members[index] if index < len(self._members) else _all_sheets(self._names):
            _xlsx_span(self.blocks(name), span)
        span.check(_called(index, self.title))
        self._allow(span)


def _called(index: int, title: str) -> str:
    return f"The first sheet of {title}" if index == 0 else f"Sheet {index + 1} of {title}"


def _all_sheets(names: set[str]) -> list[str]:
    return sorted(name for name in names if name.startswith("xl/") and "sheet" in name.lower())


class _Span:
    """How many cells a sheet has, and how far they reach."""

    def __init__(self) -> None:
        self.n_cells, self.n_rows, self.n_columns = 0, 0, 0

    @property
    def area(self) -> int:
        """How many cells are spanned."""
        return self.n_rows * self.n_columns

    def check(self, called: str) -> None:
        """Refuse a sheet that reaches further than any, or much further than it has cells."""
        if self.n_rows > _LAST_ROW or self.n_columns > _LAST_COLUMN:
            index, last = ("row", _LAST_ROW) if self.n_rows > _LAST_ROW else ("column", _LAST_COLUMN)
            raise DataError(f"{called} has a cell beyond {index} {last:,}, where spreadsheets end; {_SAVE}")
        if self.area > _SPARE_CELLS + _SPAN * self.n_cells:
            raise DataError(
                f"{called} spans {self.n_rows:,} rows and {self.n_columns:,} columns with "
                f"{self.n_cells:,} cells; delete what is far from the table, or {_SAVE}"
            )

    def reach(self, rows: Iterable[bytes | int], columns: Iterable[bytes]) -> None:
        """Take in cells in these rows and columns."""
        # Longer numbers are as far beyond the end.
        self.n_rows = max(self.n_rows, *(int(row if isinstance(row, int) else row[:12]) for row in rows), 0)
        self.n_columns = max(self.n_columns, *map(number_of, columns), 0)


def _xlsx_span(blocks: Iterator[bytes], span: _Span) -> None:
    """Count the cells of an Excel sheet."""
    tag = b""
    for block in blocks:
        if not tag:
            found = re.search(rb"<(\w+:)?worksheet\b", block)
            tag = b"<" + (found[1] or b"" if found else b"") + b"c"
            # Nearly all programs write cells so, and it is found fast.
            usual = [re.compile(tag + rb' r="' + part) for part in (rb"([A-Z]+)", rb"[A-Z]+(\d+)")]
        columns, rows = (one.findall(block) for one in usual)
        n_cells = block.count(tag + b" ") + block.count(tag + b">")
        if n_cells != len(rows):
            _reach_anyhow(block, tag, span)
        span.n_cells += n_cells
        span.reach(set(rows), set(columns))


def _reach_anyhow(block: bytes, tag: bytes, span: _Span) -> None:
    """Take in cells however they are written, those too that only follow one another."""
    cells = re.findall(tag + rb"\s[^>]*?\br\s*=\s*[\"']([A-Za-z]+)(\d+)", block)
    lines = block.split(tag[:-1] + b"row")
    numbers = re.findall(tag[:-1] + rb"row\s[^>]*?\br\s*=\s*[\"'](\d+)", block)
    span.reach(
        [span.n_rows + len(lines), *numbers, *(row for _, row in cells)], {one.upper() for one, _ in cells}
    )
    span.n_columns = max(span.n_columns, *(line.count(tag) for line in lines))


def number_of(letters: bytes) -> int:
    """Return the number of a column by its letters: A is 1, Z is 26, AA is 27."""
    number = 0
    for letter in letters[:8]:
        number = 26 * number + letter - 64
    return number


_ODS = re.compile(rb"<(/?)table:(table-row|table-cell|covered-table-cell|table)\b([^>]*?)(/?)>|<text:p\b")
_REPEATED = re.compile(rb"number-(?:rows|columns)-repeated\s*=\s*[\"'](\d+)")


def _ods_spans(blocks: Iterator[bytes]) -> list[_Span]:
    """Count the cells of the sheets of an OpenDocument, in which one row or cell may stand for many."""
    spans: list[_Span] = []
    span = _Span()
    row = times = column = filled = 0
    for block in blocks:
        for is_end, kind, attributes, is_alone in _ODS.findall(block):
            repeated = _REPEATED.search(attributes)
            number = int(repeated[1][:12]) if repeated else 1
            if kind == b"table" and is_end:
                spans.append(span)
                span, row, times, column, filled = _Span(), 0, 0, 0, 0
                continue
            if not kind or b"office:value" in attributes:
                # Text or a value; the empty cells and rows at the end of a sheet are not read.
                filled = column + (number if kind else 0)
            if kind.endswith(b"cell") and not is_end:
                column += number
                span.n_cells += 1
            if kind == b"table-row" and not is_end:
                times, column, filled = number, 0, 0
            if kind == b"table-row" and (is_end or is_alone):
                row += times
                if filled:
                    span.n_rows, span.n_columns = row, max(span.n_columns, filled)
            if number > _LAST_ROW:
                span.n_rows = number
    # What is not closed is counted all the same.
    return [*spans, span] if span.n_cells or not spans else spans
