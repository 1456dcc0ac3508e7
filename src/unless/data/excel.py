"""Spreadsheets, through python-calamine where it is installed: the first sheet, its first row as header."""

from dataclasses import replace
from importlib.util import find_spec

from unless.data.delimited import open_delimited
from unless.data.duck import Workshop
from unless.data.files import TableFile, write_in_child
from unless.data.settings import Settings
from unless.data.sheets import needs_calamine
from unless.data.source import Source
from unless.errors import DataError


def open_excel(file: TableFile, shop: Workshop, how: Settings) -> Source:
    """Let a child process write the first sheet as CSV, and open that."""
    if find_spec("python_calamine") is None:
        raise needs_calamine(file.title)
    target = shop.place(".csv")
    shop.stage("reading the sheet")
    told = write_in_child(
        "unless.data.sheets:write_sheet",
        {"source": str(file.path), "suffix": file.suffix, "title": file.title},
        target,
        shop,
        packages=("python_calamine",),
        memory=how.max_memory,
        # Three times what a sheet of numbers takes.
        seconds=4 + file.path.stat().st_size / 2**20,
        way_out="save the first sheet as CSV and name that.",
    )
    if told["is_empty"]:
        raise DataError(f"The first sheet of {file.title} is empty; put the table there.")
    plain = replace(how, delimiter=",", encoding=None)
    source = open_delimited([replace(file, path=target, suffix=".csv")], shop, plain)
    note = f"Read {told['first']!r}, the first of {told['n_sheets']} sheets."
    return replace(source, notes=(note,) if told["n_sheets"] > 1 else (), repair=None)
