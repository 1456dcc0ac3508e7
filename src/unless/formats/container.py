"""The outside of an .unless file: a zip of stored members, the same bytes for the same contents."""

import io
import os
import zipfile
from collections.abc import Mapping

from unless.errors import FileFormatError
from unless.formats.text import about, read_content
from unless.runtime.files import replacing

Members = Mapping[str, bytes]
# Zip begins to count in 1980; a real date would change the bytes from one second to the next.
EPOCH = (1980, 1, 1, 0, 0, 0)
UNIX = 3
# Bytes before a member, of a member in the list at the end, and of the end of that list; names come on top.
_HEADER, _LISTED, _END = 30, 46, 22


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
