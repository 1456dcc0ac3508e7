"""Spreadsheets, through python-calamine where it is installed: one sheet, its first row as header."""

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from unless.data.delimited import open_delimited
from unless.data.domain import shorten
from unless.data.duck import DuckDBSession
from unless.data.files import TableFile, write_in_child
from unless.data.settings import Settings
from unless.data.sheets import needs_calamine
from unless.data.source import Source
from unless.errors import DataError


def open_excel(file: TableFile, session: DuckDBSession, how: Settings) -> Source:
    """Let a child process write one sheet as CSV, and open that."""
    if find_spec("python_calamine") is None:
        raise needs_calamine(file.title)
    target = session.place(".csv")
    session.stage("reading the sheet")
    told = write_in_child(
        "unless.data.sheets:write_sheet",
        {"source": str(file.path), "suffix": file.suffix, "title": file.title, "sheet": how.sheet},
        target,
        session,
        packages=("python_calamine",),
        memory=how.max_memory,
        # Three times what a sheet of numbers takes.
        seconds=4 + file.path.stat().st_size / 2**20,
        way_out="save the sheet as CSV and name that.",
    )
    if told["place"] is None:
        raise DataError(_empty(told, file.title, how.sheet))
    plain = replace(how, delimiter=",", encoding=None)
    source = open_delimited([replace(file, path=target, suffix=".csv")], session, plain)
    others = [name for place, name in enumerate(told["names"]) if place != told["place"]]
    # Who named the sheet knows which was read.
    notes = (_note(told["read"], others),) if others and how.sheet is None else ()
    return replace(source, notes=notes, repair=None)


def _empty(told: dict[str, Any], title: str, sheet: str | int | None) -> str:
    if sheet is not None:
        others = [name for name in told["names"] if name != str(sheet)]
        return f"Sheet {sheet!r} of {title} is empty; name another one of {shorten(others, 50)}."
    if told["n_sheets"] > 1:
        return f"All {told['n_sheets']:,} sheets of {title} are empty; put the table in one of them."
    return f"The first sheet of {title} is empty; put the table there."


def _note(read: str, others: list[str]) -> str:
    word = "another sheet is" if len(others) == 1 else "other sheets are"
    return f"Read sheet {read!r}; {word} {shorten(others, 20)} (choose with sheet=)."
