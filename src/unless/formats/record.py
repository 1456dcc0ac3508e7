"""The .unless file: what was learned, by whom and how, in one versioned file."""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from unless.data.domain import Domain
from unless.errors import FileFormatError, SettingError, UnlessError
from unless.formats.container import read_container, write_container
from unless.formats.structures import Structure, read_structure, structure_members
from unless.formats.wire import FORMAT, VERSION, Opening, WireRecord, WireValue, read_domain, wire_domain

Value = WireValue
Path = str | os.PathLike[str]


@dataclass(frozen=True)
class Record:
    """A structure or a model with weights, and the learner, settings and results it came from.

    Values are None, bool, int, float, str, or lists of these, of pairs of names or of records; lists come
    back as lists, pairs as tuples. The rows of the table are no part of it; the contexts of a canonical model
    are, being its keys.
    """

    structure: Structure
    learner: str | None = None
    settings: Mapping[str, Value] = field(default_factory=dict)
    results: Mapping[str, Value] = field(default_factory=dict)

    @property
    def domain(self) -> Domain:
        """The variables the structure is about."""
        return self.structure.domain


def save_record(record: Record, path: Path) -> None:
    """Write a record; the same record gives the same bytes, and the file appears whole or not at all."""
    structure, members = structure_members(record.structure)
    wire = WireRecord(
        learner=record.learner,
        settings=_plain(record.settings),
        results=_plain(record.results),
        domain=wire_domain(record.domain),
        structure=structure,
    )
    try:
        text = msgspec.json.encode(wire, order="sorted")
    except UnicodeEncodeError:
        raise SettingError("A name or label is not valid Unicode text; rename it before saving.") from None
    write_container(path, {**members, "model.json": text})


def load_record(path: Path) -> Record:
    """Read a record, believing nothing: damaged, foreign and newer files get a `FileFormatError`."""
    members = read_container(path)
    name = os.fspath(path)
    if "model.json" not in members:
        raise FileFormatError(f"{name!r} is not an .unless file: it holds no model.json.")
    _check_version(name, members["model.json"])
    try:
        wire = msgspec.json.decode(members["model.json"], type=WireRecord)
        structure = read_structure(wire.structure, read_domain(wire.domain), members)
    except (msgspec.MsgspecError, UnlessError, UnicodeDecodeError, RecursionError) as error:
        raise FileFormatError(f"{name!r} is damaged: {str(error).rstrip('.')}.") from None
    return Record(structure, wire.learner, wire.settings, wire.results)


def _check_version(name: str, text: bytes) -> None:
    try:
        opening = msgspec.json.decode(text, type=Opening)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FileFormatError(f"{name!r} is damaged or is not an .unless file ({error}).") from None
    if opening.format != FORMAT:
        raise FileFormatError(f"{name!r} is not an .unless file.")
    if opening.version > VERSION:
        versions = f"format {opening.version}, known here: {VERSION}"
        raise FileFormatError(f"{name!r} was written by a newer Unless ({versions}); upgrade yours.")
    if opening.version < 1:
        raise FileFormatError(f"{name!r} is damaged: there is no version {opening.version} of the format.")


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
