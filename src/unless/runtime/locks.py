"""Locks on files, which one process at a time can have, for as long as it lives.

A lock is one of the operating system (`fcntl` on POSIX): it is gone when its process ends, in whatever way.
The system gives one process the same lock twice, and removes it as soon as the process closes any descriptor
of the file. So each process keeps a list of the paths that it has locked, and never opens them again.
"""

import errno
import os
import platform
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from threading import Lock

from unless.errors import SettingError

# Errors that mean that another process has the file locked; any other means that nobody can tell.
_LOCKED = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}
# What systems say where O_NOFOLLOW meets a link.
_IS_LINK = {errno.ELOOP, errno.EMLINK}
# The byte that is locked: one beyond the text, which others may want to read.
_BYTE = 2**20
# Longer than any text in a lock file.
_MOST_TEXT = 400
_BEGINNING = b"process "
# Flags of `os.open` so that it neither follows a link nor waits for the other end of a pipe, nor
# hands the file to programs that are started. Windows knows some of these only.
SAFELY = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_own: set[str] = set()
_guard = Lock()
if hasattr(os, "register_at_fork"):
    # Another thread may have had the guard when this process was forked; it does not exist in the child.
    os.register_at_fork(after_in_child=lambda: globals().update(_guard=Lock()))


@contextmanager
def locked(path: Path, refuse: Callable[[str], Exception]) -> Iterator[None]:
    """Hold a lock file, or raise what `refuse` makes of the name of the process that does.

    Where a folder knows no locks, as on some network disks, nothing is locked and nobody refused. A file that
    is no lock file is never changed.
    """
    name = os.path.realpath(path.parent) + os.sep + path.name
    if not reserve(name):
        raise refuse(_this_process())
    try:
        handle = _open(path)
        try:
            if try_lock(handle) is False:
                raise refuse(_read(handle).decode(errors="replace") or "another process")
            _sign(handle)
            yield
        finally:
            # Which unlocks it. The file stays: a process that waits for it may have opened it already.
            os.close(handle)
    finally:
        release(name)


def reserve(name: str) -> bool:
    """Note that this process is going to lock a path; False where it has done so already."""
    with _guard:
        if name in _own:
            return False
        _own.add(name)
        return True


def release(name: str) -> None:
    """Note that this process no longer has a path locked."""
    with _guard:
        _own.discard(name)


def create_locked(path: str, mode: int) -> tuple[int, bool]:
    """Make a new file and lock it; the second value is False if another process has removed it meanwhile.

    The caller has reserved the path.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | SAFELY, mode)
    return handle, try_lock(handle) is not False and is_same_file(path, handle)


@contextmanager
def open_abandoned(path: str) -> Iterator[tuple[int, bool | None]]:
    """Open an existing file and try to lock it, as `try_lock` does, until the end of the block."""
    handle = os.open(path, os.O_RDWR | SAFELY)
    try:
        yield handle, try_lock(handle)
    finally:
        os.close(handle)


def is_reserved(name: str) -> bool:
    """Tell whether this process has locked a path, or is about to."""
    return name in _own


def try_lock(handle: int) -> bool | None:
    """Lock an open file: True if it is ours now, False if another process has it, None if nobody can tell."""
    try:
        _lock(handle)
    except OSError as error:
        return False if error.errno in _LOCKED else None
    return True


def is_same_file(path: str, handle: int) -> bool:
    """Tell whether a path still is the file that was opened."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    except OSError:
        return False


@lru_cache(maxsize=1)
def this_machine() -> str:
    """Return 8 digits that stand for this machine: locks of others cannot be seen on all network disks."""
    return sha256(platform.node().encode(errors="replace")).hexdigest()[:8]


def is_trusted(info: os.stat_result, folder: os.stat_result) -> bool:
    """Tell whether a file may be ours: in our own folder, or made by us or by the folder's owner."""
    if not hasattr(os, "geteuid"):
        return True
    me = os.geteuid()
    return me == folder.st_uid or info.st_uid in (me, folder.st_uid)


def _open(path: Path) -> int:
    """Open a lock file, made if need be, and nothing else."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | SAFELY, 0o666)
    except OSError as error:
        if error.errno in _IS_LINK:
            raise _no_lock_file(path, "is a link") from None
        raise
    try:
        if reason := _reason_against(path, handle):
            raise _no_lock_file(path, reason)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _reason_against(path: Path, handle: int) -> str | None:
    info = os.fstat(handle)
    if not stat.S_ISREG(info.st_mode):
        return "is not an ordinary file"
    if info.st_nlink > 1:
        # Somebody else's file may be under this name, too.
        return "is a hard link"
    if not is_trusted(info, os.stat(path.parent)):  # noqa: PTH116 (the type of the result)
        return "belongs to another user"
    text = _read(handle)
    if text and (len(text) >= _MOST_TEXT or not text.startswith(_BEGINNING)):
        return "holds other text"
    return None


def _no_lock_file(path: Path, reason: str) -> SettingError:
    return SettingError(
        f"{str(path)!r} {reason} and cannot be used as a lock file; delete it, or choose another folder."
    )


def _sign(handle: int) -> None:
    text = _this_process().encode()
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, text)
    os.ftruncate(handle, len(text))


if sys.platform == "win32":

    def _lock(handle: int) -> None:
        import msvcrt

        os.lseek(handle, _BYTE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        os.lseek(handle, 0, os.SEEK_SET)

else:

    def _lock(handle: int) -> None:
        import fcntl

        # Not flock: children that a process forked would go on holding it after its death.
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _BYTE)


def _read(handle: int) -> bytes:
    os.lseek(handle, 0, os.SEEK_SET)
    return os.read(handle, _MOST_TEXT)


def _this_process() -> str:
    return f"process {os.getpid()} on {platform.node() or 'this machine'}"
