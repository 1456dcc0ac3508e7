"""Libra's files: Markov networks (.mn), and tables (.data) with their numbers of levels (.schema).

A .data file holds rows of codes, one a line.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from unless.data.columns.levels import free_name
from unless.data.dataset import Counts, Dataset
from unless.data.domain import MAX_LEVELS, Domain, Variable
from unless.errors import DataError, FileFormatError, MissingValues, SettingError
from unless.formats.gather import Piece, model_of_pieces
from unless.formats.json_model import domain_beside, names_path, names_text, read_with_names, write_with_names
from unless.formats.text import (
    COUNT,
    MOST_NAMELESS_LEVELS,
    NUMBER,
    PathLike,
    Tokens,
    about,
    is_weight,
    quote,
    read_text,
    to_count,
    to_weight,
    write_text,
    write_texts,
    wrong,
)
from unless.inference.model import LogLinearModel
from unless.structures.structure import CodedCondition

TOKEN = re.compile(r"[ \t]+|(?:#|//)[^\n]*|(\n|[{}()]|[^ \t\n{}()]+)")
CONDITION = re.compile(r"([+-])v([0-9]{1,9})_([0-9]{1,9})")
SPLIT = re.compile(r"v([0-9]{1,9})_([0-9]{1,9})")
# The leaves of a tree repeat the conditions above them: a deep enough tree would fill any memory.
CONDITIONS_PER_CHARACTER = 8
FEW_CONDITIONS = 100_000
Missing = Literal["error", "drop", "level"]
UNKNOWN = -1
_CODE_PATTERN = r"[ \t]*(?:[0-9]+|\*)[ \t]*"
_ROW = re.compile(rf"(?:[^,|]*\|)?{_CODE_PATTERN}(?:,{_CODE_PATTERN})*")
Codes = npt.NDArray[np.int32]


def read_mn(path: PathLike) -> LogLinearModel:
    """Read a .mn file, with the names that lie beside it."""
    return read_with_names(path, parse_mn, model_of_pieces)


def write_mn(model: LogLinearModel, path: PathLike) -> None:
    """Write a .mn file, and its names beside it."""
    write_with_names(path, mn_text(model), model.domain)


def mn_text(model: LogLinearModel) -> str:
    """Return a .mn file of feature lines, in the order of the model."""
    if not len(model.domain):
        raise SettingError("A model without variables has no .mn file; keep it as .unless or .json.")
    lines = [schema_text(model.domain), "MN {"]
    for literals, weight in zip(model.features.arrays.literals(), model.weights.tolist(), strict=True):
        conditions = (f"{'-+'[equal]}v{variable}_{level}" for variable, level, equal in literals)
        lines.append(" ".join((repr(weight), *conditions)))
    return "\n".join([*lines, "}", ""])


def schema_text(domain: Domain) -> str:
    """Return the line of numbers of levels that begins a .mn file and is a .schema file."""
    return ",".join(map(str, domain.n_levels.tolist()))


def parse_schema(line: str, number: int) -> list[int]:
    """Read a line of numbers of levels."""
    sizes = [to_count(word.strip(), number, "a number of levels") for word in line.split(",")]
    if 0 in sizes:
        raise wrong(number, f"variable v{sizes.index(0)} has no levels")
    if max(sizes) > MAX_LEVELS:
        raise wrong(number, f"variable v{sizes.index(max(sizes))} has more than {MAX_LEVELS:,} levels")
    if sum(sizes) > MOST_NAMELESS_LEVELS:
        raise wrong(number, f"the variables have more than {MOST_NAMELESS_LEVELS:,} levels together")
    return sizes


def parse_mn(text: str) -> tuple[list[int], list[Piece]]:
    """Read the numbers of levels and the features, trees and tables turned into features.

    Weights are logs of potentials everywhere. A feature may be preceded by the number of the weight it
    shares, and lines such as "w 3 0.5" may list those; Libra reads no meaning into either, nor is it done
    here. "#" and "//" begin comments.
    """
    tokens = Tokens(TOKEN, text)
    _skip_lines(tokens)
    line, words = tokens.line, []
    while tokens.word not in ("\n", ""):
        words.append(tokens.take())
    sizes = parse_schema(" ".join(words), line)
    _skip_lines(tokens)
    if tokens.word.lower() != "mn":
        raise tokens.unexpected("'MN {'")
    tokens.take()
    _skip_lines(tokens)
    tokens.require("{")
    pieces = list(_contents(tokens, sizes))
    _skip_lines(tokens)
    if tokens.word:
        raise tokens.unexpected("the end of the file")
    return sizes, pieces


def _contents(tokens: Tokens, sizes: list[int]) -> Iterator[Piece]:
    budget = FEW_CONDITIONS + CONDITIONS_PER_CHARACTER * len(tokens.text)
    while True:
        _skip_lines(tokens)
        word = tokens.word.lower()
        if word == "}":
            tokens.take()
            return
        if word in ("features", "table", "tree"):
            tokens.take()
            tokens.require("{")
        if word == "features":
            yield from _features(tokens, sizes)
        elif word == "table":
            yield from _table(tokens, sizes)
        elif word == "tree":
            for piece in _tree(tokens, sizes):
                budget -= len(piece[0])
                if budget < 0:
                    raise wrong(piece[2], "the trees are too deep for a file of this size")
                yield piece
        elif word == "w":
            _shared_weight(tokens)
        else:
            yield _feature(tokens, sizes)


def _shared_weight(tokens: Tokens) -> None:
    tokens.take()
    line, what = tokens.line, "the number of a shared weight"
    to_count(tokens.take(), line, what)
    line = tokens.line
    to_weight(tokens.take(), line)
    if tokens.word not in ("\n", "}"):
        raise tokens.unexpected("the end of the line")


def _skip_lines(tokens: Tokens) -> None:
    while tokens.word == "\n":
        tokens.take()


def _features(tokens: Tokens, sizes: list[int]) -> Iterator[Piece]:
    while True:
        _skip_lines(tokens)
        if tokens.word == "}":
            tokens.take()
            return
        yield _feature(tokens, sizes)


def _table(tokens: Tokens, sizes: list[int]) -> Iterator[Piece]:
    rows: set[frozenset[CodedCondition]] = set()
    for piece in _features(tokens, sizes):
        row = frozenset(piece[0])
        if row in rows:
            # The format does not say whether the second value replaces the first or is added to it.
            raise wrong(piece[2], "a row of the table appears twice")
        rows.add(row)
        yield piece


def _feature(tokens: Tokens, sizes: list[int]) -> Piece:
    line = tokens.line
    if tokens.word in ("", "{", "(", ")"):
        raise tokens.unexpected("a feature or '}'")
    words = [tokens.take()]
    while tokens.word not in ("\n", "", "{", "}", "(", ")"):
        words.append(tokens.take())
    # A whole number before a weight is the number of a shared one; before anything else it is the weight.
    if COUNT.fullmatch(words[0]) and len(words) > 1 and is_weight(words[1]):
        del words[0]
    weight = to_weight(words[0], line)
    return tuple(_condition(word, sizes, line) for word in words[1:]), weight, line


def _condition(word: str, sizes: list[int], line: int) -> CodedCondition:
    match = CONDITION.fullmatch(word)
    if not match:
        raise wrong(line, f"{quote(word)} is not a condition such as +v0_1 or -v0_1")
    return (*_level(match[2], match[3], sizes, line), match[1] == "+")


def _level(variable: str, level: str, sizes: list[int], line: int) -> tuple[int, int]:
    if int(variable) >= len(sizes):
        raise wrong(line, f"there is no variable v{variable}; the last is v{len(sizes) - 1}")
    if int(level) >= sizes[int(variable)]:
        raise wrong(line, f"v{variable} has no level {level}; the last is {sizes[int(variable)] - 1}")
    return int(variable), int(level)


def _tree(tokens: Tokens, sizes: list[int]) -> Iterator[Piece]:
    # Questions that lead to the leaf, the last element telling whether the answer is yes.
    path: list[CodedCondition] = []
    while True:
        _skip_lines(tokens)
        line = tokens.line
        if tokens.word == "(":
            tokens.take()
            path.append((*_split(tokens, sizes), True))
            continue
        if tokens.word in ("", ")", "{", "}"):
            raise tokens.unexpected("a weight or '('")
        yield tuple(path), to_weight(tokens.take(), line), line
        if not _turn(tokens, path):
            break
    _skip_lines(tokens)
    tokens.require("}")


def _split(tokens: Tokens, sizes: list[int]) -> tuple[int, int]:
    _skip_lines(tokens)
    match = SPLIT.fullmatch(tokens.word)
    if not match:
        raise tokens.unexpected("a split such as v0_1")
    level = _level(match[1], match[2], sizes, tokens.line)
    tokens.take()
    return level


def _turn(tokens: Tokens, path: list[CodedCondition]) -> bool:
    """Go from a leaf to the next branch, closing what is complete; tells whether there is one."""
    while path:
        variable, level, is_first = path.pop()
        if is_first:
            path.append((variable, level, False))
            return True
        _skip_lines(tokens)
        tokens.require(")")
    return False


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
        codes[place] = [_code(word, number) for word in values.split(",")]
        counts[place] = repeats[row] * (_weight(weight, number) if bar else 1)
    if counts.sum(dtype=np.float64) >= 2**53:
        raise FileFormatError("line 1: the rows are weighted to more than can be counted.")
    return codes, counts, list(first.values())


def _code(word: str, line: int) -> int:
    word = word.strip(" \t")
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
