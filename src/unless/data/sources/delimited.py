"""CSV, TSV and their relatives: delimiter and header are found here, the rows are parsed by DuckDB."""

# ruff: noqa: S608 (every name in the SQL is our own, c0, c1, ...; every text goes through `quoted`)

import codecs
import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import dropwhile, islice
from typing import IO

from unless.data.settings import Settings, made_up_names
from unless.data.sources.session import (
    DuckDBSession,
    Field,
    Source,
    TableFile,
    check_width,
    column_names,
    quoted,
    table_names,
)
from unless.errors import DataError

# In order of preference where several would do.
_DELIMITERS = (",", "\t", ";", "|", " ", ":")
_SAMPLE = 2**16
_HEAD = 200
# Lines before the header that may be blank.
_BLANK = 10_000
# What the database takes for one row.
_LONGEST_LINE = 2_000_000


def open_delimited(files: Sequence[TableFile], session: DuckDBSession, how: Settings) -> Source:
    """Open text files that share one header."""
    readable = [_as_utf8(one, session, how) for one in files]
    delimiter = how.delimiter or _find_delimiter(readable[0], session)
    headers = [_first_record(one, delimiter, session) for one in readable]
    first = readable[0]
    if how.header:
        _refuse_title(headers[0], first, (delimiter,) if how.delimiter else _DELIMITERS[:4], session)
    _check_same(headers, readable, how)
    if how.header:
        hint = "rename one of them, or pass header=False if the first line is data"
        names = table_names(headers[0], first.title, how, hint)
    else:
        names = made_up_names(len(headers[0]), how)
        check_width(names, how)
    return _source(readable, names, delimiter, session, how)


def _source(
    files: Sequence[TableFile], names: tuple[str, ...], delimiter: str, session: DuckDBSession, how: Settings
) -> Source:
    inner = column_names(len(names))
    spec = ", ".join(f"'{column}': 'VARCHAR'" for column in inner)
    paths = ", ".join(quoted(str(one.path)) for one in files)
    # Nothing is sniffed: "01" stays "01", whatever stands in the first rows.
    relation = (
        f"read_csv([{paths}], auto_detect = false, header = {str(how.header).lower()}, "
        f"delim = {quoted(delimiter)}, quote = '\"', escape = '\"', columns = {{{spec}}})"
    )
    fields = tuple(Field(name, column, "words") for name, column in zip(names, inner, strict=True))

    def repair() -> Source:
        cleaned = [_rewritten(one, delimiter, len(names), session) for one in files]
        return replace(_source(cleaned, names, delimiter, session, how), repair=None)

    return Source(files[0].title, relation, names, fields, session, nameless=not how.header, repair=repair)


def _check_same(headers: Sequence[list[str]], files: Sequence[TableFile], how: Settings) -> None:
    for header, one in zip(headers[1:], files[1:], strict=True):
        same = header == headers[0] if how.header else len(header) == len(headers[0])
        if not same:
            raise DataError(f"{one.title} and {files[0].title} have different columns; read them one by one.")


def _as_utf8(file: TableFile, session: DuckDBSession, how: Settings) -> TableFile:
    encoding = how.encoding
    if file.compression != ".zst":
        with file.path.open("rb") as stream:
            start = stream.read(8192)
        if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            encoding = encoding or "utf-16"
        if b"\0" in start and encoding is None:
            raise DataError(
                f"{file.title} does not look like a table of text; save it as CSV in UTF-8 or as Parquet."
            )
    if encoding in (None, "utf-8"):
        return file
    target = session.temporary_path(file.suffix)
    try:
        with _text(file, encoding, session) as stream, target.open("w", encoding="utf-8", newline="") as out:
            session.stage(f"reading {encoding}")
            while block := stream.read(2**20):
                out.write(block)
                session.bar.share(-1.0)
    except UnicodeError:
        raise DataError(f"{file.title} is not written in {encoding}; give its real encoding=.") from None
    return replace(file, path=target, compression="")


def _find_delimiter(file: TableFile, session: DuckDBSession) -> str:
    if file.suffix in (".tsv", ".tab"):
        return "\t"
    with _opened(file, session, n_lines=_HEAD) as stream:
        sample = stream.read(_SAMPLE)
    lines = sample.splitlines(keepends=True)
    if len(sample) == _SAMPLE and len(lines) > 2:
        # The last line of a cut sample may be incomplete.
        lines.pop()
    return max(_DELIMITERS, key=lambda one: (*_fit(lines, one), -_DELIMITERS.index(one)))


def _fit(lines: Sequence[str], delimiter: str) -> tuple[bool, bool, int]:
    """Judge a delimiter: it splits the header, all rows have as many fields, the more the better."""
    try:
        widths = [len(record) for record in csv.reader(lines[:_HEAD], delimiter=delimiter) if record]
    except csv.Error:
        widths = []
    width = widths[0] if widths else 1
    # Words in a sentence are not columns: a blank or a colon must split every line alike to be taken.
    strict = delimiter in " :"
    same = len(set(widths)) == 1
    return width > 1 and same, width > 1 and not strict, width if same or not strict else 0


def _first_record(file: TableFile, delimiter: str, session: DuckDBSession) -> list[str]:
    with _opened(file, session, n_lines=_HEAD) as stream:
        try:
            lines = islice(lines_of(stream, file.title), _BLANK)
            record = next((one for one in csv.reader(lines, delimiter=delimiter) if one), None)
        except csv.Error as error:
            if "limit" in str(error):
                raise _long_field(file.title, 1, is_one_line=False) from None
            raise DataError(
                f"The header of {file.title} cannot be read ({error}); check its quotes."
            ) from None
    if record is None or not any(name.strip() for name in record):
        raise DataError(f"{file.title} has no header line; give a table with a header and rows.")
    return [name.strip() for name in record]


def _refuse_title(
    header: list[str], file: TableFile, delimiters: Sequence[str], session: DuckDBSession
) -> None:
    """Refuse a file that begins with a title: one cell above lines that have several."""
    if not header[0] or any(header[1:]):
        return
    with _opened(file, session, n_lines=_HEAD) as stream:
        lines = list(islice(lines_of(stream, file.title), _HEAD))
    for delimiter in delimiters:
        try:
            records = [one for one in csv.reader(lines, delimiter=delimiter) if any(map(str.strip, one))]
        except csv.Error:
            continue
        below = list(dropwhile(lambda one: not any(map(str.strip, one[1:])), records[1:]))
        widths = {len(one) for one in below}
        if len(below) > 1 and len(widths) == 1 and widths.pop() > 1:
            raise DataError(
                f"{file.title} begins with a line of a single cell, {header[0][:60]!r}, as a title is; "
                "delete what stands above the line of column names, or name every column if it is that line."
            )


def _rewritten(file: TableFile, delimiter: str, width: int, session: DuckDBSession) -> TableFile:
    """Copy a file that DuckDB refused, field by field, or name the line that no reader could take."""
    target = session.temporary_path(".csv")
    with _opened(file, session) as stream, target.open("w", encoding="utf-8", newline="") as out:
        reader = csv.reader(lines_of(stream, file.title), delimiter=delimiter, strict=True)
        writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
        start = 1
        try:
            for record in reader:
                if record and len(record) != width:
                    fields = "1 field" if len(record) == 1 else f"{len(record):,} fields"
                    raise DataError(
                        f"Line {start:,} of {file.title} has {fields} where the header has {width:,}; "
                        "complete or remove it."
                    )
                if sum(map(len, record)) > _LONGEST_LINE:
                    raise _long_line(file.title, start)
                if record:
                    writer.writerow(record)
                start = reader.line_num + 1
        except csv.Error as error:
            if "limit" in str(error):
                raise _long_field(file.title, start, is_one_line=reader.line_num == start) from None
            raise DataError(
                f"Line {start:,} of {file.title} has a quote that is not closed or stands inside a field; "
                "close it, or write it twice."
            ) from None
    return replace(file, path=target, compression="")


def lines_of(stream: IO[str], title: str) -> Iterator[str]:
    """Yield lines, none of which takes more memory than a row may."""
    number = 0
    while line := stream.readline(_LONGEST_LINE):
        number += 1
        if len(line) == _LONGEST_LINE and not line.endswith(("\n", "\r")):
            raise _long_line(title, number)
        yield line


def _long_line(title: str, line: int) -> DataError:
    return DataError(
        f"Line {line:,} of {title} is longer than {_LONGEST_LINE:,} characters; shorten its fields, or check "
        "that the file is a table of text."
    )


def _long_field(title: str, line: int, *, is_one_line: bool) -> DataError:
    what = f"Line {line:,} of {title} has a field of more than {csv.field_size_limit():,} characters"
    if is_one_line:
        return DataError(f"{what}; shorten it.")
    return DataError(f"{what}, or a quote that is not closed; shorten the one or close the other.")


@contextmanager
def _opened(file: TableFile, session: DuckDBSession, n_lines: int | None = None) -> Iterator[IO[str]]:
    with _text(file, "utf-8-sig", session, n_lines) as stream:
        try:
            yield stream
        except UnicodeDecodeError:
            raise DataError(
                f"{_bad_line(file)} of {file.title} is not UTF-8; save the file as UTF-8, or pass the "
                "encoding it is written in, such as encoding='cp1252'."
            ) from None


@contextmanager
def _text(
    file: TableFile, encoding: str, session: DuckDBSession, n_lines: int | None = None
) -> Iterator[IO[str]]:
    path = file.path
    if file.compression == ".zst":
        # Python below 3.14 cannot open .zst, but DuckDB can; a delimiter that no file has gives whole lines.
        path, encoding = session.temporary_path(".txt"), "utf-8-sig"
        session.run(
            f"copy (select line from read_csv([{quoted(str(file.path))}], auto_detect = false, "
            "header = false, delim = chr(1), quote = '', escape = '', strict_mode = false, "
            "columns = {'line': 'VARCHAR'})"
            f"{'' if n_lines is None else f' limit {n_lines}'}) "
            f"to {quoted(str(path))} (format csv, header false, quote '', escape '', delim chr(1))"
        )
    with path.open(encoding=encoding, newline="") as stream:
        yield stream


def _bad_line(file: TableFile) -> str:
    if file.compression:
        return "A line"
    number, decoder = 1, codecs.getincrementaldecoder("utf-8")()
    with file.path.open("rb") as stream:
        while block := stream.read(2**20):
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                number += error.object.count(b"\n", 0, error.start)
                break
            number += block.count(b"\n")
    return f"Line {number:,}"
