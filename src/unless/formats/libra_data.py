"""Tables as Libra's .data files keep them: rows of codes, and their numbers of levels in a .schema file."""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from unless.data.columns.levels import free_name
from unless.data.dataset import Counts, Dataset
from unless.data.domain import MAX_LEVELS, Domain, Variable
from unless.errors import DataError, FileFormatError, MissingValues, SettingError
from unless.formats.libra import parse_schema, schema_text
from unless.formats.names import domain_beside, names_path, names_text
from unless.formats.text import (
    COUNT,
    NUMBER,
    PathLike,
    about,
    quote,
    read_text,
    write_text,
    write_texts,
    wrong,
)

Missing = Literal["error", "drop", "level"]
UNKNOWN = -1
_CELL = r"[ \t]*(?:[0-9]+|\*)[ \t]*"
_ROW = re.compile(rf"(?:[^,|]*\|)?{_CELL}(?:,{_CELL})*")
Codes = npt.NDArray[np.int32]


def read_schema(path: PathLike) -> list[int]:
    """Read the numbers of levels from a .schema file."""
    with about(path):
        lines = read_text(path).rstrip("\n").split("\n")
        if len(lines) > 1:
            raise wrong(2, "a schema is a single line")
        return parse_schema(lines[0], 1)


def write_schema(domain: Domain, path: PathLike) -> None:
    """Write the numbers of levels to a .schema file."""
    write_text(path, schema_text(domain) + "\n")


def read_data(path: PathLike, schema: Sequence[int] | None = None, missing: Missing = "error") -> Dataset:
    """Read a .data file; `*` marks what is missing.

    Levels are counted by `schema`, else by the .schema file of the same name, else by the rows: as many as
    the largest code needs, and two at least. Names and labels are taken from beside the file.
    """
    if missing not in ("error", "drop", "level"):
        raise SettingError(f"missing={missing!r} is not known; give 'error', 'drop' or 'level'.")
    with about(path):
        codes, counts, lines = parse_data(read_text(path))
    notes = []
    sizes = list(schema) if schema is not None else _sizes_beside(path)
    if sizes is None:
        sizes = np.maximum(codes.max(axis=0) + 1, 2).tolist()
        notes.append("There was no schema: levels were counted by the rows.")
    with about(path):
        _check_codes(codes, sizes, lines)
    domain = domain_beside(path, sizes)
    domain, codes, counts, more = _settle_missing(domain, codes, counts, missing)
    return Dataset.from_codes(domain, codes, counts, [*notes, *more])


def read_codes(path: PathLike, domain: Domain, missing: Missing = "error") -> Dataset:
    """Read a .data file that goes with a model: columns as its variables stand, codes as their levels.

    Where names lie beside the file they are believed instead.
    """
    if names_path(path).is_file():
        return read_data(path, missing=missing)
    with about(path):
        codes, counts, lines = parse_data(read_text(path))
        _check_codes(codes, domain.n_levels.tolist(), lines)
    domain, codes, counts, notes = _settle_missing(domain, codes, counts, missing)
    return Dataset.from_codes(domain, codes, counts, notes)


def holds_codes(path: PathLike) -> bool:
    """Tell whether a file is called .data and begins with a row of codes: others call tables of labels so."""
    if not os.fspath(path).lower().removesuffix(".gz").endswith(".data"):
        return False
    with about(path):
        rows = (row for row in read_text(path).split("\n") if row.strip())
        return _ROW.fullmatch(next(rows, "")) is not None


def is_described(path: PathLike) -> bool:
    """Tell whether a schema or names lie beside a .data file."""
    return names_path(path).is_file() or _schema_path(path).is_file()


def write_data(data: Dataset, path: PathLike) -> None:
    """Write a .data file of distinct rows and their counts, with its schema and its names beside it.

    It holds rows: new files may be read by their owner alone.
    """
    if not data.n_distinct or not data.n_variables:
        raise SettingError("An empty table has no .data file; write one with rows and columns.")
    schema, names = schema_text(data.domain) + "\n", names_text(data.domain)
    files = ((_schema_path(path), schema), (names_path(path), names), (path, data_text(data)))
    write_texts(*files, private=True)


def data_text(data: Dataset) -> str:
    """Return a .data file; a count of one goes without saying."""
    rows = (",".join(map(str, row)) for row in data.rows.tolist())
    counts = (f"{count}|" if count != 1 else "" for count in data.counts.tolist())
    return "".join(f"{count}{row}\n" for count, row in zip(counts, rows, strict=True))


def parse_data(text: str) -> tuple[Codes, Counts, list[int]]:
    """Read distinct rows of codes (-1 where missing), their counts, and the line each is first in."""
    first: dict[str, int] = {}
    repeats: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if row := line.strip(" \t"):
            first.setdefault(row, number)
            repeats[row] = repeats.get(row, 0) + 1
    if not first:
        raise wrong(1, "there are no rows")
    width = next(iter(first)).count(",") + 1
    for row, number in first.items():
        # Before anything is allocated: a long first row and many short ones would ask for their product.
        if (n_cells := row.count(",") + 1) != width:
            raise wrong(number, f"the row has {n_cells:,} values, the first one {width:,}")
    codes = np.empty((len(first), width), dtype=np.int32)
    counts = np.empty(len(first), dtype=np.int64)
    for place, (row, number) in enumerate(first.items()):
        weight, bar, values = row.rpartition("|")
        if "," in weight:
            raise wrong(number, f"the weight {quote(weight)} is not a whole number of 0 or more")
        codes[place] = [_code(cell, number) for cell in values.split(",")]
        counts[place] = repeats[row] * (_weight(weight, number) if bar else 1)
    if counts.sum(dtype=np.float64) >= 2**53:
        raise FileFormatError("line 1: the rows are weighted to more than can be counted.")
    return codes, counts, list(first.values())


def _code(cell: str, line: int) -> int:
    word = cell.strip(" \t")
    if word == "*":
        return UNKNOWN
    if not COUNT.fullmatch(word) or int(word) >= MAX_LEVELS - 1:
        raise wrong(line, f"{quote(word)} is not the code of a level")
    return int(word)


def _weight(word: str, line: int) -> int:
    number = float(word) if NUMBER.fullmatch(word.strip()) else -1.0
    if not (0 <= number < 2**40 and number.is_integer()):
        raise wrong(line, f"the weight {quote(word)} is not a whole number of 0 or more")
    return int(number)


def _sizes_beside(path: PathLike) -> list[int] | None:
    schema = _schema_path(path)
    return read_schema(schema) if schema.is_file() else None


def _schema_path(path: PathLike) -> Path:
    # "x.data.names.json" without its endings is "x".
    return names_path(path).with_suffix("").with_suffix("").with_suffix(".schema")


def _check_codes(codes: Codes, sizes: list[int], lines: list[int]) -> None:
    if len(sizes) != codes.shape[1]:
        raise wrong(lines[0], f"the row has {codes.shape[1]:,} values, the schema {len(sizes):,}")
    bad = (codes >= np.array(sizes)).any(axis=1)
    if bad.any():
        row = int(bad.argmax())
        column = int((codes[row] >= np.array(sizes)).argmax())
        raise wrong(
            lines[row], f"variable v{column} has {sizes[column]:,} levels, and none is {codes[row, column]}"
        )


def _settle_missing(
    domain: Domain, codes: Codes, counts: Counts, missing: Missing
) -> tuple[Domain, Codes, Counts, list[str]]:
    holes = codes == UNKNOWN
    affected = holes.any(axis=1)
    n_rows = int(counts[affected].sum())
    if not n_rows:
        return domain, codes[~affected], counts[~affected], []
    if missing == "error":
        raise MissingValues(
            f"There are missing values ('*') in {n_rows:,} rows; drop those rows with missing='drop' or make "
            "them a level with missing='level'."
        )
    if missing == "drop":
        if affected.all():
            raise DataError("Every row has a missing value, so nothing is left; pass missing='level'.")
        note = f"Dropped {n_rows:,} of {int(counts.sum()):,} rows with missing values."
        return domain, codes[~affected], counts[~affected], [note]
    columns = set(np.flatnonzero(holes.any(axis=0)).tolist())
    variables = [
        _with_missing(variable) if place in columns else variable for place, variable in enumerate(domain)
    ]
    filled = np.where(holes, domain.n_levels, codes).astype(np.int32)
    note = f"Made missing values in {len(columns):,} columns a level."
    return Domain(tuple(variables)), filled, counts, [note]


def _with_missing(variable: Variable) -> Variable:
    label = free_name("missing", variable.levels)
    return replace(variable, levels=(*variable.levels, label))
