"""The .unless file: what was learned, by whom and how, from which table, and what is said of it.

Outside it is a zip of stored members, the same bytes for the same contents.
"""

import io
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from unless.data.dataset import Dataset
from unless.data.domain import Domain
from unless.errors import FileFormatError, SettingError, UnlessError
from unless.formats.structures import (
    expect_members,
    read_structure,
    read_table,
    structure_members,
    table_members,
)
from unless.formats.text import about, read_content, take, valid_unicode
from unless.formats.wire import (
    FORMAT,
    VERSION,
    Opening,
    WireRecord,
    WireStatements,
    WireValue,
    read_domain,
    wire_domain,
)
from unless.runtime.files import replacing
from unless.structures.structure import Structure

Members = Mapping[str, bytes]
# Zip begins to count in 1980; a real date would change the bytes from one second to the next.
EPOCH = (1980, 1, 1, 0, 0, 0)
UNIX = 3
# Bytes before a member, of a member in the list at the end, and of the end of that list; names come on top.
_HEADER, _LISTED, _END = 30, 46, 22
Value = WireValue
Path = str | os.PathLike[str]


# Statements and the table have members of their own beside those of the structure.
STATEMENT_MEMBERS = (
    "statements_cells.npy",
    "statements_counts.npy",
    "statements_figures.npy",
    "statements_numbers.npy",
    "statements_strata.npy",
)
TABLE_MEMBERS = ("counts.npy", "rows.npy")


def write_container(
    path: str | os.PathLike[str], members: Members, *, private: bool = False, follow_links: bool = True
) -> None:
    """Write the members in sorted order; the file appears whole or not at all (see `replacing`)."""
    buffer = io.BytesIO()
    # Stored, not compressed: no version of zlib changes the bytes, no small file unfolds into a large one.
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(members.items()):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.create_system = UNIX
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    with replacing(path, private=private, follow_links=follow_links) as stream:
        stream.write(buffer.getbuffer())


def read_container(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """Read every member, each proved by its checksum."""
    with about(path):
        content = read_content(path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            # What names only the end of a file may have anything before it, or between its members.
            if any(map(_is_foreign, entries)) or archive.comment or not _is_gapless(entries, content):
                raise FileFormatError("its members are not stored the way Unless stores them")
            members = {entry.filename: archive.read(entry) for entry in entries}
    except Exception as error:  # zipfile answers hostile bytes with a dozen kinds of exception
        raise FileFormatError(
            f"{os.fspath(path)!r} is damaged or is not an .unless file ({error})."
        ) from None
    if len(members) != len(entries):
        raise FileFormatError(f"{os.fspath(path)!r} is damaged: a member appears twice.")
    return members


def _is_foreign(entry: zipfile.ZipInfo) -> bool:
    return bool(
        entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits or entry.file_size != entry.compress_size
    )


def _is_gapless(entries: list[zipfile.ZipInfo], content: bytes) -> bool:
    """Tell whether members, their list and its end follow one another, from the first byte to the last."""
    end = 0
    for entry in entries:
        if entry.header_offset != end:
            return False
        end += _HEADER + len(entry.filename.encode()) + entry.file_size
        if end >= 2**31:
            # What is larger is written in a second way, too; only its end is looked at.
            return content[-_END:].startswith(b"PK\5\6")
    listed = sum(_LISTED + len(entry.filename.encode()) for entry in entries)
    return end + listed + _END == len(content)


@dataclass(frozen=True)
class StatementsRecord:
    """Statements as a file holds them; `unless.knowledge.records` makes and reads them."""

    wire: WireStatements
    members: Members

    @property
    def holds_tables(self) -> bool:
        """Whether tables of counts are kept as evidence."""
        return any(one.n_cells for said in self.wire.statements for one in said.evidence)


@dataclass(frozen=True)
class Record:
    """A structure or a model with weights, and the learner, settings and results it came from.

    Values are None, bool, int, float, str, or lists of these, of pairs of names or of records; lists come
    back as lists, pairs as tuples. `table` are the distinct rows learned from, with their counts, None where
    they are not kept; a canonical model has them as its contexts, so that they always come back with it.
    """

    structure: Structure
    learner: str | None = None
    settings: Mapping[str, Value] = field(default_factory=dict)
    results: Mapping[str, Value] = field(default_factory=dict)
    table: Dataset | None = None
    statements: StatementsRecord | None = None

    def __post_init__(self) -> None:
        if self.structure.observed is not None:
            object.__setattr__(self, "table", self.structure.observed)
        elif self.table is not None and self.table.domain != self.structure.domain:
            raise SettingError("The table has other columns or levels than the structure; save them apart.")

    @property
    def holds_rows(self) -> bool:
        """Whether rows of the table can be read off it: then its file is private."""
        return self.table is not None or (self.statements is not None and self.statements.holds_tables)

    @property
    def domain(self) -> Domain:
        """The variables the structure is about."""
        return self.structure.domain


def save_record(record: Record, path: Path, *, follow_links: bool = True) -> None:
    """Write a record; the same record gives the same bytes, and the file appears whole or not at all.

    A new file that holds rows may be read by its owner alone. `follow_links` is that of `replacing`.
    """
    structure, members = structure_members(record.structure)
    table = None
    if record.table is not None and record.structure.observed is None:
        table, more = table_members(record.table)
        members.update(more)
    if record.statements is not None:
        members.update(record.statements.members)
    wire = WireRecord(
        format=FORMAT,
        version=VERSION,
        learner=record.learner,
        settings=_plain(record.settings),
        results=_plain(record.results),
        domain=wire_domain(record.domain),
        structure=structure,
        table=table,
        statements=None if record.statements is None else record.statements.wire,
    )
    with valid_unicode():
        text = msgspec.json.encode(wire, order="sorted")
    members = {**members, "model.json": text}
    write_container(path, members, private=record.holds_rows, follow_links=follow_links)


def load_record(path: Path) -> Record:
    """Read a record, believing nothing: damaged, foreign, older and newer files get a `FileFormatError`."""
    path = take(path)
    members = read_container(path)
    name = os.fspath(path)
    if "model.json" not in members:
        raise FileFormatError(f"{name!r} is not an .unless file: it holds no model.json.")
    _check_version(name, members["model.json"])
    try:
        wire = msgspec.json.decode(members["model.json"], type=WireRecord)
        return _read(wire, members)
    except (msgspec.MsgspecError, UnlessError, UnicodeDecodeError, RecursionError) as error:
        raise FileFormatError(f"{name!r} is damaged: {str(error).rstrip('.')}.") from None


def _read(wire: WireRecord, members: Members) -> Record:
    domain, rest = read_domain(wire.domain), dict(members)
    statements = table = None
    if wire.statements is not None:
        if missing := [name for name in STATEMENT_MEMBERS if name not in rest]:
            raise FileFormatError(f"{missing[0]} is missing")
        statements = StatementsRecord(wire.statements, {name: rest.pop(name) for name in STATEMENT_MEMBERS})
    if wire.table is not None:
        own = {name: rest.pop(name) for name in TABLE_MEMBERS if name in rest}
        expect_members({**own, "model.json": b""}, *TABLE_MEMBERS)
        table = read_table(wire.table.n_distinct, domain, own)
    structure = read_structure(wire.structure, domain, rest)
    return Record(structure, wire.learner, wire.settings, wire.results, table, statements)


def _check_version(name: str, text: bytes) -> None:
    try:
        opening = msgspec.json.decode(text, type=Opening)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FileFormatError(f"{name!r} is damaged or is not an .unless file ({error}).") from None
    if opening.format != FORMAT:
        raise FileFormatError(f"{name!r} is not an .unless file.")
    versions = f"format {opening.version}, known here: {VERSION}"
    if opening.version > VERSION:
        raise FileFormatError(f"{name!r} was written by a newer Unless ({versions}); upgrade yours.")
    if opening.version < 1:
        raise FileFormatError(f"{name!r} is damaged: there is no version {opening.version} of the format.")
    if opening.version < VERSION:
        raise FileFormatError(
            f"{name!r} was written by an older Unless ({versions}); learn or fit again from the table."
        )


def _plain(values: Mapping[str, object]) -> dict[str, Value]:
    return {name: _plain_value(name, value) for name, value in values.items()}


def _plain_value(name: str, value: object) -> Value:
    if hasattr(value, "tolist"):
        # A numpy scalar or array: the plain values inside are what was meant.
        value = value.tolist()
    if not all(map(_is_plain_number, _leaves(value))):
        # JSON has no word for what is not finite, and null would come back as None.
        raise SettingError(f"{name}={value!r} cannot be saved; only finite numbers of ordinary size can.")
    if isinstance(value, (tuple, list, set, frozenset)):
        members = [sorted(one) if isinstance(one, (set, frozenset)) else one for one in value]
        value = sorted(members) if isinstance(value, (set, frozenset)) else members
    try:
        plain: Value = msgspec.convert(value, WireValue)
    except msgspec.ValidationError as error:
        raise SettingError(f"{name}={value!r} cannot be saved ({error}).") from None
    return plain


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, (tuple, list, set, frozenset)):
        for one in value:
            yield from _leaves(one)
    elif isinstance(value, dict):
        yield from value.values()
    else:
        yield value


def _is_plain_number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or -(2**63) <= value < 2**63
