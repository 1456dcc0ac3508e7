"""A file that one process at a time can hold, for as long as it lives."""

import errno
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

# What systems say when another process holds the file; whatever else they say means that they cannot tell.
_HELD = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}
# The byte that is locked: one beyond the text, which others may want to read.
_BYTE = 2**20
# A system gives one process the same lock twice, and takes it away when either of the two is done.
_own: set[str] = set()
_guard = Lock()


@contextmanager
def holding(path: Path, refuse: Callable[[str], Exception]) -> Iterator[None]:
    """Hold a file, or raise what `refuse` makes of the name of whoever does.

    The system lets go of it when the process ends in whatever way. Where a folder knows no locks, as on some
    network disks, nothing is held and nobody refused.
    """
    name = os.path.realpath(path)
    with _guard:
        if name in _own:
            raise refuse(_this_process())
        _own.add(name)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _is_free(handle):
                raise refuse(_read(handle))
            yield
        finally:
            # Which lets go. The file stays: whoever is about to hold it may have opened it already.
            os.close(handle)
    finally:
        with _guard:
            _own.discard(name)


def _is_free(handle: int) -> bool:
    try:
        _lock(handle)
    except OSError as error:
        return error.errno not in _HELD
    os.ftruncate(handle, 0)
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, _this_process().encode())
    return True


if sys.platform == "win32":

    def _lock(handle: int) -> None:
        import msvcrt

        os.lseek(handle, _BYTE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:

    def _lock(handle: int) -> None:
        import fcntl

        # Not flock: children that a process forked would go on holding it after its death.
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _BYTE)


def _read(handle: int) -> str:
    os.lseek(handle, 0, os.SEEK_SET)
    return os.read(handle, 200).decode(errors="replace") or "another process"


def _this_process() -> str:
    return f"process {os.getpid()} on {platform.node() or 'this machine'}"
