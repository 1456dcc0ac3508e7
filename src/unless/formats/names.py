"""Names and labels beside a file whose format has none: x.mn is accompanied by x.mn.names.json."""

from pathlib import Path

import msgspec

from unless.data.domain import Domain
from unless.errors import SettingError
from unless.formats.json_places import decoded, domain_of, line_of
from unless.formats.text import PathLike, about, nameless_domain, read_text, write_texts, wrong
from unless.formats.wire import WireVariable, json_lines, wire_domain

FORMAT = "unless-names"
VERSION = 1


class WireNames(msgspec.Struct, forbid_unknown_fields=True):
    """The whole of a file of names."""

    format: str
    version: int
    variables: list[WireVariable]


def names_path(path: PathLike) -> Path:
    """Return the place of the names of a file, packed or not."""
    place = Path(path)
    return place.with_name(place.name.removesuffix(".gz") + ".names.json")


def write_with_names(path: PathLike, text: str, domain: Domain) -> None:
    """Write a text and the names that belong to it, both or neither."""
    write_texts((names_path(path), names_text(domain)), (path, text))


def names_text(domain: Domain) -> str:
    """Return the file of names: the same domain, the same text."""
    try:
        variables = json_lines(wire_domain(domain))
    except UnicodeEncodeError:
        raise SettingError("A name or label is not valid Unicode text; rename it before saving.") from None
    return f'{{"format": "{FORMAT}", "version": {VERSION}, "variables": [\n{variables}\n]}}\n'


def domain_beside(path: PathLike, sizes: list[int], line: int = 1) -> Domain:
    """Return the variables named beside a file; v0, v1, ... where no names, or those of another file, are."""
    with about(path):
        nameless = nameless_domain(sizes, line)
    named = _read(names_path(path))
    if named is None or named.n_levels.tolist() != sizes:
        return nameless
    return named


def _read(place: Path) -> Domain | None:
    if not place.is_file():
        return None
    with about(place):
        text = read_text(place)
        wire = decoded(text, WireNames)
        if wire.format != FORMAT or wire.version != VERSION:
            raise wrong(line_of(text, "$.format"), "it is not a file of names this version knows")
        return domain_of(wire.variables, text)
