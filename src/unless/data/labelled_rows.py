"""Files of Stata and SPSS become CSV here, in a child process, with a JSON file that tells of their columns.

The reader, pyreadstat, is a C library. Rows are read in chunks that fit into the memory; user-missing codes
come as missing. A column with value labels is written twice: its values, and the number of the label of each.
Nothing is imported that takes long.
"""

import csv
import json
import os
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any

from unless.data.labels import to_label
from unless.errors import DataError, MissingExtra
from unless.runtime.child import allow_memory

READERS = {".dta": "read_dta", ".sav": "read_sav", ".zsav": "read_sav", ".por": "read_por"}
# What a cell takes as an object of Python, besides the characters of a text.
_PER_CELL = 64
# Values without a label that are told apart; with more, a column is one of numbers.
_MOST_UNLABELLED = 64


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
        # Which codes are missing is told only to those who ask for them as they are.
        about = read(metadataonly=True, **({} if is_portable else {"user_missing": True}))[1]
        names = list(about.column_names)
        columns = [_Labels(name, about) for name in names]
        n_rows = _write(_chunks(read, about, memory), names, columns, target)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, OverflowError, ValueError) as error:
        why = " ".join(str(error).split()).rstrip(".")[:100]
        raise DataError(f"{title} is damaged or of another format ({why}); save it again.") from None
    told = {"names": names, "columns": [one.told() for one in columns], "n_rows": n_rows}
    Path(f"{target}.json").write_text(json.dumps(told), encoding="utf-8")
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
        # Each chunk begins at the beginning of the file, so that none is asked for in vain.
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
        kept = {
            value: " ".join(str(label).split()) or to_label(value)
            for value, label in given.items()
            if isinstance(value, str) == is_text and not _is_missing(value, missing)
        }
        self.places = {value: place for place, value in enumerate(sorted(kept))}
        self.labels = [kept[value] for value in self.places]
        self.n_given = len(kept)
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
            -1 if text is None else self._place(value) for value, text in zip(values, written, strict=True)
        ]
        self.seen.update(codes)
        return [written, codes]

    def _place(self, value: Any) -> int:
        place = self.places.get(value)
        if place is None:
            if len(self.places) - self.n_given >= _MOST_UNLABELLED:
                return -2
            place = self.places[value] = len(self.labels)
            self.labels.append(to_label(value))
        return place

    def told(self) -> dict[str, Any]:
        """Return what is known of the column now that all its values were seen."""
        n_labelled = sum(0 <= place < self.n_given for place in self.seen)
        n_others = len(self.labels) - self.n_given
        order = [place for _, place in sorted(self.places.items())]
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
