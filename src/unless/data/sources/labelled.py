"""Files of Stata and SPSS, through pyreadstat where it is installed: labels of values are levels.

A child process writes the rows as CSV and, beside it, a JSON file that describes the columns: pyreadstat is a
C library. Rows are read in chunks that fit into the memory; user-missing codes come as missing. A column with
value labels is written twice: its values, and the number of the label of each. The child imports this file,
so nothing is imported here that takes long.
"""

import csv
import json
import os
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unless.data.showing import to_label
from unless.errors import DataError, MissingExtra
from unless.runtime.child import allow_memory
from unless.runtime.memory import show_memory

if TYPE_CHECKING:
    from unless.data.settings import Settings
    from unless.data.sources.session import DuckDBSession, Source, TableFile

READERS = {".dta": "read_dta", ".sav": "read_sav", ".zsav": "read_sav", ".por": "read_por"}
# What a cell takes as an object of Python, besides the characters of a text.
_PER_CELL = 64
# Distinct values without a label; with more, a column is one of numbers.
_MOST_UNLABELLED = 64
_TYPES = {"integer": "BIGINT", "float": "DOUBLE", "date": "DATE", "moment": "TIMESTAMP", "text": "VARCHAR"}
# Labels and names; an interview of 10,000 questions has some MiB.
_MOST_ABOUT = 2**26
# Address space of Python, numpy and pyreadstat.
_ALONE = 2**27
_SAVE = "save it as CSV and name that."


def open_labelled(file: "TableFile", session: "DuckDBSession", how: "Settings") -> "Source":
    """Let a child process write the rows as CSV, and open that with the labels of its values."""
    # Not at the top: the child needs none of it, and starts in a third of the time.
    from unless.data.domain import shorten
    from unless.data.sources.session import Field, Source, quoted, table_names, typed_fields

    if find_spec("pyreadstat") is None:
        raise needs_pyreadstat(file.title)
    target, _ = session.write_in_child(
        "unless.data.sources.labelled:write_rows",
        {
            "source": str(file.path),
            "suffix": file.suffix if file.suffix in READERS else _ending(file.path),
            "title": file.title,
            "memory": how.max_memory,
            "encoding": how.encoding,
        },
        stage="reading the file",
        suffix=".csv",
        packages=("pyreadstat", "numpy", "narwhals"),
        memory=how.max_memory + _ALONE,
        # Packed rows become more; a large file is begun again for every chunk.
        seconds=20 + 20 * file.path.stat().st_size / 2**20,
        way_out=_SAVE,
    )
    about = _about(Path(f"{target}.json"), file.title)
    columns = about["columns"]
    names = table_names(about["names"], file.title, how)
    fields = typed_fields(names, [_TYPES[one["kind"]] for one in columns])
    types: list[str] = []
    partly: list[str] = []
    for position, (name, one) in enumerate(zip(names, columns, strict=True)):
        types.append(f"'c{position}': '{_TYPES[one['kind']]}'")
        if one["has_labels"]:
            types.append(f"'p{position}': 'INTEGER'")
        if one["is_labelled"]:
            labels = tuple(one["labels"])
            levels = tuple(dict.fromkeys(labels[code] for code in one["order"]))
            made = Field(name, f"p{position}", "code", "category", labels, levels, is_ordered=one["ordered"])
            fields[position] = made
        elif one["has_labels"] and one["n_labelled"]:
            partly.append(name)
    relation = (
        f"read_csv([{quoted(str(target))}], auto_detect = false, header = false, delim = ',', quote = '\"', "
        f"escape = '\"', nullstr = '', columns = {{{', '.join(types)}}}) as t"
    )
    verb = "have labels for some values, and are"
    if len(partly) == 1:
        verb = "has labels for some of its values, and is"
    notes = (f"{shorten(partly)} {verb} read without them.",) if partly else ()
    wanted = tuple(field for field in fields if how.wants(field.name))
    return Source(file.title, relation, names, wanted, session, notes=notes)


def _ending(path: Path) -> str:
    """Return the ending that suits a file whose name has none of them, by its first bytes."""
    with path.open("rb") as stream:
        return ".dta" if stream.read(7) == b"<stata_" else ".sav"


def _about(path: Path, title: str) -> dict[str, Any]:
    """Read what the child wrote of the columns."""
    if path.stat().st_size > _MOST_ABOUT:
        raise DataError(f"{title} has more than {show_memory(_MOST_ABOUT)} of names and labels; {_SAVE}")
    about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if not about["names"]:
        raise DataError(f"{title} has no columns; give a table with columns and rows.")
    return about


def needs_pyreadstat(title: str) -> MissingExtra:
    """Say which package is absent."""
    return MissingExtra(f'Reading {title} needs pyreadstat; install it with: pip install "unless[labelled]"')


def write_rows(
    source: str, target: str, suffix: str, title: str, memory: int, encoding: str | None
) -> dict[str, Any]:
    """Write the rows of a file as CSV, and beside it, in a file that ends in .json, what its columns are."""
    allow_memory(2**62)
    # Each thread of a library that is not used here would reserve memory.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    try:
        import pyreadstat
    except ImportError:
        raise needs_pyreadstat(title) from None
    # Portable files are in UTF-8, and say nothing of user-missing codes.
    is_portable = suffix == ".por"
    more = {} if is_portable else {"encoding": encoding}
    read = partial(getattr(pyreadstat, READERS[suffix]), source, output_format="dict", **more)
    try:
        # pyreadstat lists the missing codes only where they are read as they are.
        about = read(metadataonly=True, **({} if is_portable else {"user_missing": True}))[1]
        names = list(about.column_names)
        columns = [_Labels(name, about) for name in names]
        n_rows = _write(_chunks(read, about, memory), names, columns, target)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, OverflowError, ValueError) as error:
        why = " ".join(str(error).split()).rstrip(".")[:100]
        raise DataError(f"{title} is damaged or of another format ({why}); save it again.") from None
    about_all = {"names": names, "columns": [one.to_dict() for one in columns], "n_rows": n_rows}
    Path(f"{target}.json").write_text(json.dumps(about_all), encoding="utf-8")
    return {"n_rows": n_rows}


def _chunks(read: Any, about: Any, memory: int) -> Iterator[dict[str, Sequence[Any]]]:
    """Yield columns of some rows: half of the memory, or all."""
    widths = [about.variable_storage_width.get(name) or 8 for name in about.column_names]
    size = max(memory // 2 // max(sum(_PER_CELL + 2 * width for width in widths), 1), 100)
    first = 0
    while True:
        found = read(row_offset=first, row_limit=size)[0]
        n_rows = len(next(iter(found.values()), ()))
        if n_rows:
            yield found
        first += size
        # Each chunk begins at the beginning of the file, so that no empty one is read.
        if n_rows < size or (about.number_rows is not None and 0 <= about.number_rows <= first):
            return


def _write(
    chunks: Iterator[dict[str, Sequence[Any]]], names: list[str], columns: "list[_Labels]", target: str
) -> int:
    n_rows = 0
    with Path(target).open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        for chunk in chunks:
            written: list[Sequence[Any]] = []
            for name, one in zip(names, columns, strict=True):
                written += one.write(chunk[name])
            n_rows += len(written[0]) if written else 0
            writer.writerows(zip(*written, strict=True))
    return n_rows


class _Labels:
    """What a column holds, and the labels of its values, those without a label included."""

    def __init__(self, name: str, about: Any) -> None:
        given = about.variable_value_labels.get(name) or {}
        is_text = about.readstat_variable_types.get(name) == "string"
        missing = (about.missing_ranges or {}).get(name) or []
        # Codes of Stata for missing values are letters, which no number is.
        labels = {
            value: " ".join(str(label).split()) or to_label(value)
            for value, label in given.items()
            if isinstance(value, str) == is_text and not _is_missing(value, missing)
        }
        self.codes = {value: code for code, value in enumerate(sorted(labels))}
        self.labels = [labels[value] for value in self.codes]
        self.n_given = len(labels)
        self.ordered = about.variable_measure.get(name) == "ordinal"
        self.kinds: set[str] = set()
        self.seen: set[int] = set()

    def write(self, values: Sequence[Any]) -> list[list[Any]]:
        """Return the values as text, and with labels also the numbers of the labels, -1 where missing."""
        written: list[Any] = []
        for value in values:
            if value is None or value != value or value == "":  # noqa: PLR0124 (only NaN differs from itself)
                written.append(None)
                continue
            self.kinds.add(_kind(value))
            written.append(to_label(value))
        if not self.n_given:
            return [written]
        codes = [
            -1 if text is None else self._code(value) for value, text in zip(values, written, strict=True)
        ]
        self.seen.update(codes)
        return [written, codes]

    def _code(self, value: Any) -> int:
        code = self.codes.get(value)
        if code is None:
            if len(self.codes) - self.n_given >= _MOST_UNLABELLED:
                return -2
            code = self.codes[value] = len(self.labels)
            self.labels.append(to_label(value))
        return code

    def to_dict(self) -> dict[str, Any]:
        """Return what is known of the column now that all its values were seen."""
        n_labelled = sum(0 <= code < self.n_given for code in self.seen)
        n_others = len(self.labels) - self.n_given
        order = [code for _, code in sorted(self.codes.items())]
        return {
            "kind": next(iter(self.kinds)) if len(self.kinds) == 1 else _wider(self.kinds),
            "has_labels": bool(self.n_given),
            # A scale of which only the ends have labels is one of numbers.
            "is_labelled": bool(self.n_given) and -2 not in self.seen and n_labelled >= n_others,
            "n_labelled": n_labelled,
            "labels": self.labels,
            "order": order,
            "ordered": self.ordered,
        }


def _is_missing(value: Any, ranges: Sequence[Any]) -> bool:
    for one in ranges:
        if not isinstance(one, dict):
            if value == one:
                return True
        elif type(one["lo"]) is type(value) or not isinstance(value, str):
            try:
                if one["lo"] <= value <= one["hi"]:
                    return True
            except TypeError:
                continue
    return False


def _kind(value: Any) -> str:
    if isinstance(value, int | float):
        is_whole = isinstance(value, int) or (value.is_integer() and abs(value) < 2**53)
        return "integer" if is_whole else "float"
    if isinstance(value, datetime):
        return "moment"
    return "date" if isinstance(value, date) else "text"


def _wider(kinds: set[str]) -> str:
    return "float" if kinds == {"integer", "float"} else "text"
