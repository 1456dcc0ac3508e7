"""Packed files are unpacked here, in a child process: every byte is counted, whatever a header announces.

Only the standard library is imported, so that the child starts at once.
"""

import bz2
import gzip
import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath, PureWindowsPath
from typing import IO, Any

from unless.errors import DataError
from unless.runtime.memory import show_memory

PACKED = (".gz", ".bz2", ".xz", ".zip", ".zst")
# A table rarely shrinks to a fiftieth; a file that unpacks further was made to fill the disk.
SMALL, RATIO = 128 * 2**20, 200
# What the largest dictionary of `xz -9` takes, and a little more.
_DICTIONARY = 72 * 2**20
_BLOCK = 2**16
# A list of members longer than this has thousands of them.
_LONGEST_LIST = 2**20
# Empty blocks make a Zstandard file longer and its table no larger.
_MOST_BLOCKS_PER_BYTE = 0.1
_WAY_OUT = "unpack it by hand and name the table."


def most_unpacked(packed: int) -> int:
    """Return how many bytes a packed file of this size may unpack to."""
    return SMALL + RATIO * packed


def unpack(source: str, target: str, packing: str, title: str) -> dict[str, str]:
    """Unpack a file to another and return the name of what it held, as far as that is known."""
    try:
        with Path(source).open("rb") as packed:
            most = most_unpacked(packed.seek(0, 2))
            if packing == ".zip":
                return {"name": _unzip(packed, Path(target), title)}
            if packing == ".zst":
                check_size(_zst_size(packed, most), most, title)
                return {"name": ""}
            # The size at the end of a .gz file is not looked at: where the file is cut, it is any number.
            if packing == ".xz":
                check_size(_xz_size(packed), most, title, is_announced=True)
            packed.seek(0)
            _write(_READERS[packing](packed), packed, 0, Path(target), title)
    except (EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile) as error:
        if "memory" in str(error).lower():
            raise DataError(
                f"{title} needs more memory to be unpacked than the {show_memory(_DICTIONARY)} that packed "
                f"files get; {_WAY_OUT}"
            ) from None
        raise DataError(f"{title} is damaged or not a {packing} file ({error}); unpack it by hand.") from None
    except OSError as error:
        if error.errno is None:
            # bz2 knows no error of its own.
            raise DataError(
                f"{title} is damaged or not a {packing} file ({error}); unpack it by hand."
            ) from None
        raise
    return {"name": ""}


def check_size(n_bytes: int, most: int, title: str, *, is_announced: bool = False) -> None:
    """Refuse what unpacks to more than a file of its size may."""
    if n_bytes > most:
        size = f"{show_memory(n_bytes)}, more than" if is_announced else "more than"
        raise DataError(f"{title} unpacks to {size} {RATIO} times its size; {_WAY_OUT}")


def _write(blocks: Iterator[bytes], packed: IO[bytes], begun: int, target: Path, title: str) -> None:
    n_bytes = 0
    with target.open("wb") as out:
        for block in blocks:
            n_bytes += len(block)
            # By what was read so far: a large file made to fill the disk is known by its first part.
            check_size(n_bytes, most_unpacked(packed.tell() - begun), title)
            out.write(block)


def _blocks(stream: Any) -> Iterator[bytes]:
    while block := stream.read(4 * _BLOCK):
        yield block


def _gz_blocks(packed: IO[bytes]) -> Iterator[bytes]:
    with gzip.open(packed) as stream:
        yield from _blocks(stream)


def _joined(packed: IO[bytes], make: Callable[[], Any]) -> Iterator[bytes]:
    """Yield what streams unpack to that follow one another."""
    decoder, block = make(), b""
    while True:
        if decoder.eof:
            # Between streams of .xz there may be zeros.
            block = (decoder.unused_data or packed.read(_BLOCK)).lstrip(b"\0")
            if not block and not (block := packed.read(_BLOCK).lstrip(b"\0")):
                return
            decoder = make()
        elif decoder.needs_input:
            block = packed.read(_BLOCK)
            if not block:
                raise EOFError("it is cut short")
        else:
            block = b""
        yield decoder.decompress(block, 4 * _BLOCK)


_READERS: dict[str, Callable[[IO[bytes]], Iterator[bytes]]] = {
    ".gz": _gz_blocks,
    ".bz2": lambda packed: _joined(packed, bz2.BZ2Decompressor),
    ".xz": lambda packed: _joined(packed, lambda: lzma.LZMADecompressor(memlimit=_DICTIONARY)),
}


def _xz_size(packed: IO[bytes]) -> int:
    """Return the size that the index at the end announces; 0 where there is none that can be read."""
    length = packed.seek(0, 2)
    if length < 32:
        return 0
    packed.seek(-12, 2)
    footer = packed.read(12)
    start = length - 12 - 4 * (int.from_bytes(footer[4:8], "little") + 1)
    if footer[10:] != b"YZ" or start < 0:
        return 0
    packed.seek(start)
    index = packed.read(min(length - 12 - start, 2**20))
    numbers: list[int] = []
    number = shift = 0
    for byte in index[1:]:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128 or shift > 63:
            numbers.append(number)
            number = shift = 0
    # How many blocks there are, then two numbers of each, the second of which is its size.
    n_blocks = numbers[0] if numbers else 0
    return sum(numbers[2 : 1 + 2 * min(n_blocks, len(numbers)) : 2])


def _zst_size(packed: IO[bytes], most: int) -> int:
    """Return the largest size that the blocks of a Zstandard file can unpack to, by their headers alone."""
    length = packed.seek(0, 2)
    packed.seek(0)
    size = n_blocks = 0
    while size <= most and packed.tell() < length:
        magic = packed.read(4)
        if magic[1:] == b"\x2a\x4d\x18" and magic[0] & 0xF0 == 0x50:
            packed.seek(int.from_bytes(packed.read(4), "little"), 1)
            continue
        if magic != b"\x28\xb5\x2f\xfd":
            raise EOFError("it is not Zstandard")
        descriptor = packed.read(1)[0]
        is_single, n_id = descriptor >> 5 & 1, (0, 1, 2, 4)[descriptor & 3]
        n_size = (is_single, 2, 4, 8)[descriptor >> 6]
        header = packed.read((not is_single) + n_id + n_size)
        largest = 2**17
        if not is_single and header:
            window = 2 ** (10 + (header[0] >> 3))
            largest = min(largest, window + window // 8 * (header[0] & 7))
        is_last = False
        while not is_last and size <= most:
            block = int.from_bytes(_whole(packed.read(3), 3), "little")
            is_last, kind, n_bytes = bool(block & 1), block >> 1 & 3, block >> 3
            # Bytes as they are, one byte again and again, or packed bytes.
            size += n_bytes if kind < 2 else largest
            packed.seek(1 if kind == 1 else n_bytes, 1)
            n_blocks += 1
            if n_blocks > 1000 + _MOST_BLOCKS_PER_BYTE * length + size:
                raise EOFError("it is made of empty blocks")
        packed.seek(4 * (descriptor >> 2 & 1), 1)
    return size


def _whole(read: bytes, length: int) -> bytes:
    if len(read) < length:
        raise EOFError("it is cut short")
    return read


def _unzip(packed: IO[bytes], target: Path, title: str) -> str:
    check_list(packed, title)
    with zipfile.ZipFile(packed) as archive:
        members = [one for one in archive.infolist() if not one.is_dir() and "__MACOSX" not in one.filename]
        if len(members) != 1:
            listed = ", ".join(repr(one.filename[:40]) for one in members[:3]) or "nothing"
            more = f" and {len(members) - 3:,} more" if len(members) > 3 else ""
            raise DataError(f"{title} holds {listed}{more}; unpack it and name one table.")
        member = members[0]
        name = member.filename
        if member.flag_bits & 1:
            raise DataError(f"{title} is encrypted; {_WAY_OUT}")
        parts = [*PurePath(name).parts, *PureWindowsPath(name).parts]
        if ".." in parts or PurePath(name).is_absolute() or PureWindowsPath(name).anchor:
            raise DataError(f"{title} holds {name[:60]!r}, a name that leads out of the archive; {_WAY_OUT}")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise DataError(f"{title} holds a link, {name[:60]!r}, in place of a table; {_WAY_OUT}")
        check_size(member.file_size, most_unpacked(member.compress_size), title, is_announced=True)
        try:
            with archive.open(member) as stream:
                _write(_blocks(stream), packed, member.header_offset, target, title)
        except NotImplementedError:
            raise DataError(f"{title} is packed by a method that is not known here; {_WAY_OUT}") from None
        except RuntimeError as error:
            raise zipfile.BadZipFile(str(error)) from None
    return PurePath(name).name


def check_list(packed: IO[bytes], title: str) -> None:
    """Refuse an archive whose list of members is too long to be looked at."""
    packed.seek(max(0, packed.seek(0, 2) - 2**16 - 22))
    end = packed.read()
    place = end.rfind(b"PK\5\6")
    if place < 0 or len(end) < place + 22:
        raise zipfile.BadZipFile("it has no list of members")
    n_members, length = struct.unpack("<HI", end[place + 10 : place + 16])
    larger = end.rfind(b"PK\6\6", 0, place)
    if larger >= 0 and length == 2**32 - 1 and place - larger >= 56:
        # Archives of more than 4 GB write their numbers a second time.
        n_members, length = struct.unpack("<QQ", end[larger + 32 : larger + 48])
    if length > _LONGEST_LIST:
        number = f"{n_members:,}" if n_members != 2**16 - 1 else "more than 65,000"
        raise DataError(f"{title} holds {number} files; {_WAY_OUT}")
