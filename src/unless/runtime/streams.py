"""What is read only once: standard input, pipes, FIFOs, process substitution and open files.

Such a stream is copied into a regular file before anything else looks at it.
"""

import errno
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any, BinaryIO

from unless.errors import DataError, TooLarge
from unless.runtime.memory import show_memory

STANDARD_INPUT = "-"
_BLOCK = 2**20
# Seconds until a pipe that does not wait is asked again.
_PAUSE = 0.05
# Bytes of the disk of temporary files that are left free, and that are written between two looks at it.
_RESERVE, _STRETCH = 64 * 2**20, 64 * 2**20


def is_stream(source: object) -> bool:
    """Tell whether a path stands for something that can be read only once."""
    if not isinstance(source, str | os.PathLike):
        return hasattr(source, "read")
    name = os.fspath(source)
    if name == STANDARD_INPUT:
        return True
    try:
        mode = os.stat(name).st_mode  # noqa: PTH116 (a path may be bytes or no path at all)
    except (OSError, ValueError):
        return False
    # What /dev/stdin and /dev/fd/63 lead to has no name of its own, even where it is a regular file.
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or _has_number(name)


def _has_number(name: str | bytes) -> bool:
    return os.fsdecode(name).startswith(("/dev/stdin", "/dev/fd/", "/proc/self/fd/"))


def stream_title(source: object) -> str:
    """Return what a stream is called in messages."""
    named = source if isinstance(source, str | os.PathLike) else getattr(source, "name", None)
    if isinstance(named, int) or named is None:
        return "the open file"
    name = os.fsdecode(named)
    if name in (STANDARD_INPUT, "/dev/stdin", "<stdin>"):
        return "standard input"
    return "the pipe" if _has_number(name) else repr(Path(name).name)


def blocks_of(source: Any, title: str) -> Iterator[bytes]:
    """Yield what a stream holds, opening it once."""
    with _opened(source, title) as stream:
        while True:
            try:
                block: Any = stream.read(_BLOCK)
            except OSError as error:
                raise DataError(
                    f"{title} cannot be read ({error.strerror}); check where it comes from."
                ) from None
            if block is None:
                # Somebody made the pipe non-blocking, and nothing has come yet.
                sleep(_PAUSE)
                continue
            if not isinstance(block, bytes):
                raise DataError(f"{title} is open as text; open it in binary mode, with 'rb'.")
            if not block:
                return
            yield block


@contextmanager
def _opened(source: Any, title: str) -> Iterator[BinaryIO]:
    if not isinstance(source, str | os.PathLike):
        yield source
        return
    name = os.fspath(source)
    if name == STANDARD_INPUT:
        yield _standard_input()
        return
    try:
        is_device = stat.S_ISCHR(os.stat(name).st_mode) and not _has_number(name)  # noqa: PTH116
        if is_device and name != os.devnull:
            raise DataError(f"{title} is a device, not a file; name a file or pipe a table in.")
        with open(name, "rb", buffering=0) as stream:  # noqa: PTH123 (as above)
            _refuse_terminal(stream)
            yield stream
    except OSError as error:
        raise DataError(f"{title} cannot be opened ({error.strerror}); check its permissions.") from None


def _standard_input() -> BinaryIO:
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None or stream.closed:
        raise DataError("Standard input is closed; pipe a table or a model into it, or name a file.")
    _refuse_terminal(stream)
    made: BinaryIO = stream
    return made


def _refuse_terminal(stream: Any) -> None:
    if stream.isatty():
        raise DataError(
            "Standard input is a terminal; pipe a file into it, as in "
            "'zcat t.csv.gz | unless learn - -o m.unless', or name the file."
        )


def spool(source: Any, target: Path, title: str, look: Callable[[], object] = lambda: None) -> None:
    """Copy a stream to a new file, once, as far as the disk allows."""
    n_bytes, most = 0, 0
    with writing_temporary(target.parent), target.open("xb") as out:
        for block in blocks_of(source, title):
            if n_bytes + len(block) > most:
                # Others write to the disk as well, so the room is looked at again and again.
                room = room_in(target.parent)
                if len(block) > room:
                    raise too_large(f"{title} (more than {show_memory(n_bytes)})", target.parent)
                most = n_bytes + min(room, _STRETCH)
            n_bytes += out.write(block)
            look()
    if not n_bytes:
        raise DataError(f"{title} is empty; give a table with a header line and rows.")


def room_in(folder: Path) -> int:
    """Return how many bytes may be written to the disk of temporary files; some are left to others."""
    free = shutil.disk_usage(folder).free
    return max(0, free - min(_RESERVE, free // 10))


def too_large(what: str, folder: Path) -> TooLarge:
    """Say that the disk of temporary files has no place for something."""
    return TooLarge(
        f"There is no space for {what} in the folder for temporary files {str(folder.parent)!r}; set TMPDIR "
        "to a folder on another disk."
    )


@contextmanager
def writing_temporary(folder: Path) -> Iterator[None]:
    """Say in one sentence that the disk of temporary files is full."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise too_large("more", folder) from None
        raise
