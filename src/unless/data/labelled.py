"""Files of Stata and SPSS, through pyreadstat where it is installed: labels of values are levels."""

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from unless.data.domain import shorten
from unless.data.duck import DuckDBSession
from unless.data.files import TableFile, write_in_child
from unless.data.labelled_rows import READERS, needs_pyreadstat
from unless.data.settings import Settings
from unless.data.source import Field, Source, form_of, outer_names, quoted
from unless.errors import DataError
from unless.runtime.memory import check_columns, show_memory

_TYPES = {"integer": "BIGINT", "float": "DOUBLE", "date": "DATE", "moment": "TIMESTAMP", "text": "VARCHAR"}
# Labels and names; an interview of 10,000 questions has some MiB.
_MOST_ABOUT = 2**26
# Address space of Python, numpy and pyreadstat.
_ALONE = 2**27


def open_labelled(file: TableFile, session: DuckDBSession, how: Settings) -> Source:
    """Let a child process write the rows as CSV, and open that with the labels of its values."""
    if find_spec("pyreadstat") is None:
        raise needs_pyreadstat(file.title)
    target = session.place(".csv")
    session.stage("reading the file")
    write_in_child(
        "unless.data.labelled_rows:write_rows",
        {
            "source": str(file.path),
            "suffix": file.suffix if file.suffix in READERS else _ending(file.path),
            "title": file.title,
            "memory": how.max_memory,
            "encoding": how.encoding,
        },
        target,
        session,
        packages=("pyreadstat", "numpy", "narwhals"),
        memory=how.max_memory + _ALONE,
        # Packed rows become more; a large file is begun again for every chunk.
        seconds=20 + 20 * file.path.stat().st_size / 2**20,
        way_out="save it as CSV and name that.",
    )
    about = _about(Path(f"{target}.json"), file.title)
    names = outer_names(about["names"], file.title)
    check_columns(len(names), sum(map(how.wants, names)), how.max_memory)
    types: dict[str, str] = {}
    fields = []
    for place, (name, one) in enumerate(zip(names, about["columns"], strict=True)):
        column, code = f"c{place}", f"p{place}"
        types[column] = _TYPES[one["kind"]]
        if one["has_labels"]:
            types[code] = "INTEGER"
        fields.append(_field(name, column, code, one))
    return Source(
        file.title,
        _relation(target, types),
        names,
        tuple(field for field in fields if how.wants(field.name)),
        notes=_notes(names, about["columns"]),
    )


def _ending(path: Path) -> str:
    """Tell by its first bytes what a file is whose name does not tell."""
    with path.open("rb") as stream:
        return ".dta" if stream.read(7) == b"<stata_" else ".sav"


def _about(path: Path, title: str) -> dict[str, Any]:
    if path.stat().st_size > _MOST_ABOUT:
        raise DataError(
            f"{title} has more than {show_memory(_MOST_ABOUT)} of names and labels; save it as CSV and name "
            "that."
        )
    about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if not about["names"]:
        raise DataError(f"{title} has no columns; give a table with columns and rows.")
    return about


def _field(name: str, column: str, code: str, one: dict[str, Any]) -> Field:
    if not one["is_labelled"]:
        form, kind = form_of(_TYPES[one["kind"]])
        return Field(name, column, form, kind)
    labels = tuple(one["labels"])
    levels = tuple(dict.fromkeys(labels[place] for place in one["order"]))
    return replace(Field(name, code, "code", "category", labels, levels), is_ordered=one["ordered"])


def _relation(path: Path, types: dict[str, str]) -> str:
    columns = ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in types.items())
    return (
        f"read_csv([{quoted(str(path))}], auto_detect = false, header = false, delim = ',', quote = '\"', "
        f"escape = '\"', nullstr = '', columns = {{{columns}}}) as t"
    )


def _notes(names: tuple[str, ...], columns: list[dict[str, Any]]) -> tuple[str, ...]:
    partly = [
        name
        for name, one in zip(names, columns, strict=True)
        if one["has_labels"] and one["n_labelled"] and not one["is_labelled"]
    ]
    if not partly:
        return ()
    verb = (
        "has labels for some of its values, and is"
        if len(partly) == 1
        else "have labels for some values, and are"
    )
    return (f"{shorten(partly)} {verb} read without them.",)
