"""Weka's ARFF: declared levels keep their order, `?` is missing, the rest is a table of text."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO

from unless.data.domain import shorten
from unless.data.settings import Settings
from unless.data.sources.delimited import lines_of, open_delimited
from unless.data.sources.session import DuckDBSession, Source, TableFile
from unless.errors import DataError, TooLarge, UnknownLevel

# Far more than can be counted together.
_MOST_ATTRIBUTES = 100_000
_QUOTED = r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+(?:{_QUOTED}|(\S+))\s+(.+)", re.IGNORECASE)
_VALUE = re.compile(rf"\s*(?:{_QUOTED}|([^,]*?))\s*(,|$)")


@dataclass(frozen=True)
class _Attribute:
    name: str
    levels: tuple[str, ...] | None


def open_arff(file: TableFile, session: DuckDBSession, how: Settings) -> Source:
    """Rewrite an ARFF file as CSV, open that, and add the declared levels."""
    target = session.temporary_path(".csv")
    try:
        with (
            file.path.open(encoding=how.encoding or "utf-8-sig") as stream,
            target.open("w", encoding="utf-8", newline="") as out,
        ):
            attributes = _rewrite(stream, out, file.title)
    except UnicodeError:
        raise DataError(
            f"{file.title} is not UTF-8; pass the encoding it is written in with encoding=."
        ) from None
    plain = replace(how, delimiter=",", header=True, encoding=None)
    source = open_delimited([replace(file, path=target, suffix=".csv")], session, plain)
    fields = tuple(
        replace(
            field,
            form="text" if one.levels else "words",
            kind="category" if one.levels else None,
            levels=one.levels,
        )
        for field, one in zip(source.fields, attributes, strict=True)
    )
    return replace(source, fields=fields, repair=None)


def _rewrite(stream: IO[str], out: IO[str], title: str) -> list[_Attribute]:
    lines = ((number, line.strip()) for number, line in enumerate(lines_of(stream, title), start=1))
    content = ((number, line) for number, line in lines if line and not line.startswith("%"))
    attributes = list(islice(_header(content, title), _MOST_ATTRIBUTES + 1))
    if len(attributes) > _MOST_ATTRIBUTES:
        raise TooLarge(
            f"{title} declares more than {_MOST_ATTRIBUTES:,} attributes; make a table with fewer columns."
        )
    if not attributes:
        raise DataError(f"{title} declares no @attribute; it is not an ARFF file.")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([one.name for one in attributes])
    for number, line in content:
        writer.writerow(_row(line, attributes, f"Line {number:,} of {title}"))
    return attributes


def _header(content: Iterator[tuple[int, str]], title: str) -> Iterator[_Attribute]:
    for number, line in content:
        keyword = line.split(None, 1)[0].lower()
        if keyword == "@data":
            return
        if keyword == "@attribute":
            yield _attribute(line, f"Line {number:,} of {title}")
        elif keyword != "@relation":
            raise DataError(
                f"Line {number:,} of {title} is neither @relation, @attribute nor @data; mend it."
            )
    raise DataError(f"{title} has no @data section; it is cut short or not an ARFF file.")


def _attribute(line: str, where: str) -> _Attribute:
    match = _ATTRIBUTE.fullmatch(line)
    if not match:
        raise DataError(f"{where} is no whole @attribute; write @attribute name type.")
    name, kind = _unescaped(match), match[4].strip()
    if kind.startswith("{") and kind.endswith("}"):
        return _Attribute(name, tuple(dict.fromkeys(value or "" for value in _values(kind[1:-1], where))))
    if kind.lower().startswith("relational"):
        raise DataError(
            f"{where} declares a relational attribute, which is no column of categories; leave it out."
        )
    return _Attribute(name, None)


def _row(line: str, attributes: Sequence[_Attribute], where: str) -> list[str]:
    if line.startswith("{"):
        raise DataError(
            f"{where} is a sparse row, which is not read; save the file with Weka's SparseToNonSparse."
        )
    values = _values(line, where)
    if len(values) != len(attributes):
        raise DataError(
            f"{where} has {len(values):,} values for {len(attributes):,} attributes; complete or remove it."
        )
    for value, one in zip(values, attributes, strict=True):
        if one.levels is not None and value is not None and value not in one.levels:
            raise UnknownLevel(
                f"{where} has {value!r} in column {one.name!r}, which declares only {shorten(one.levels)}; "
                "declare it or correct the row."
            )
    return [value or "" for value in values]


def _values(text: str, where: str) -> list[str | None]:
    values: list[str | None] = []
    position = 0
    while True:
        match = _VALUE.match(text, position)
        if not match:
            raise DataError(f"{where} cannot be split into values; check its quotes.")
        values.append(None if match[3] == "?" else _unescaped(match))
        position = match.end()
        if match[4] != ",":
            return values


def _unescaped(match: re.Match[str]) -> str:
    inside = match[1] if match[1] is not None else match[2]
    return match[3] if inside is None else re.sub(r"\\(.)", r"\1", inside)
