"""Spreadsheets, through python-calamine where it is installed: the first sheet, its first row as header."""

import csv
from collections.abc import Sequence
from dataclasses import replace

from unless.data.delimited import open_delimited
from unless.data.duck import Workshop
from unless.data.files import TableFile
from unless.data.labels import to_label
from unless.data.settings import Settings
from unless.data.source import Source
from unless.errors import DataError, MissingExtra


def open_excel(file: TableFile, shop: Workshop, how: Settings) -> Source:
    """Write the first sheet as CSV and open that."""
    rows, note = _first_sheet(file)
    filled = [row for row in rows if any(cell != "" for cell in row)]
    if not filled:
        raise DataError(f"The first sheet of {file.title} is empty; put the table there.")
    target = shop.place(".csv")
    with target.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows([to_label(cell) for cell in row] for row in filled)
    plain = replace(how, delimiter=",", encoding=None)
    source = open_delimited([replace(file, path=target, suffix=".csv")], shop, plain)
    return replace(source, notes=(note,) if note else (), repair=None)


def _first_sheet(file: TableFile) -> tuple[Sequence[Sequence[object]], str]:
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise MissingExtra(
            f'Reading {file.title} needs python-calamine; install it with: pip install "unless[excel]"'
        ) from None
    try:
        with CalamineWorkbook.from_path(str(file.path)) as book:
            names = book.sheet_names
            rows = book.get_sheet_by_index(0).to_python() if names else []
    except (CalamineError, OSError, ValueError) as error:
        raise DataError(
            f"{file.title} is damaged or not a spreadsheet ({str(error)[:100]}); save it again."
        ) from None
    note = f"Read {names[0]!r}, the first of {len(names)} sheets of {file.title}." if len(names) > 1 else ""
    return rows, note
