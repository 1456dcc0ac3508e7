"""Files that appear whole or not at all, temporary folders that go with their process, locks, and streams.

A file is written under another name beside its own, `.NAME.MACHINE-NUMBER.unless-part`, and renamed when it
is whole; the process has it locked until then. A temporary folder holds a file `.lock` that its process has
locked. A process that is killed leaves its part files and folders behind, unlocked: the next run that writes
in the same folder, or makes a temporary folder, removes them.

One process at a time can have a lock, until it ends. A lock is one of the operating system (`fcntl`
on POSIX): it is gone when its process ends, in whatever way. The system gives one process the same lock
twice, and removes it as soon as the process closes any descriptor of the file. So each process keeps a list
of the paths that it has locked, and never opens them again.

A stream is what can be read only once: standard input, a pipe, a FIFO, process substitution or an open file.
It is copied into a regular file before anything else looks at it.
"""

import atexit
import errno
import os
import platform
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

from unless.errors import DataError, SettingError, TooLarge
from unless.runtime.memory import show_memory

PathLike = str | os.PathLike[str]
_SUFFIX = ".unless-part"
_PART_NAME = re.compile(r"\..*\.(?P<machine>[0-9a-f]{8})-[0-9a-f]{12}" + re.escape(_SUFFIX), re.DOTALL)
_PREFIX = "unless-"
_FOLDER = re.compile(_PREFIX + r"(?P<machine>[0-9a-f]{8})-[0-9a-f]{12}")
_LOCK = ".lock"
# Bytes of the name that a part file's name begins with; file systems allow 255 for all of it.
_MOST_OF_NAME = 180
# Seconds after which a part file counts as given up, where locks cannot tell.
_OLD = 3600
# How often a file or folder is made again that another process removed as abandoned before it was locked.
_ATTEMPTS = 100
_PERMISSIONS = 0o777
# Errors that mean that another process has the file locked; any other means that it is not known.
_LOCKED = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}
# What systems say where O_NOFOLLOW meets a link.
_IS_LINK = {errno.ELOOP, errno.EMLINK}
# The byte that is locked: one beyond the text, which others may want to read.
_BYTE = 2**20
# Longer than any text in a lock file.
_MOST_TEXT = 400
_BEGINNING = b"process "
STANDARD_INPUT = "-"
# Bytes of a stream that are read at once.
_BLOCK = 2**20
# Seconds until a pipe that does not wait is asked again.
_PAUSE = 0.05
# Bytes of the disk of temporary files that are left free, and that are written between two looks at it.
_RESERVE, _STRETCH = 64 * 2**20, 64 * 2**20
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
def replacing(
    path: PathLike, *, lasting: bool = True, private: bool = False, follow_links: bool = True
) -> Iterator[BinaryIO]:
    """Open a file that takes its name only when all went well.

    A file that replaces another keeps the permissions of that, and its owner and group where that is allowed.

    Parameters
    ----------
    lasting
        Wait until it is on the disk. One that is not may be spoiled if the machine itself fails, and who
        reads it must check it.
    private
        A new file may be read by its owner alone.
    follow_links
        Write to where a link points, as `open` does. Without it the link itself is replaced, and nothing of
        what was there is kept: for folders in which others may write, too.
    """
    with replacing_all(path, lasting=lasting, private=private, follow_links=follow_links) as (stream,):
        yield stream


@contextmanager
def replacing_all(
    *paths: PathLike, lasting: bool = True, private: bool = False, follow_links: bool = True
) -> Iterator[list[BinaryIO]]:
    """Open files that take their names one after the other, when all of them are whole."""
    parts = [_PartFile(path, private=private, follow_links=follow_links) for path in paths]
    try:
        if lasting:
            # What is not lasting is written often, in a folder that was swept at the beginning.
            for folder in {part.target.parent for part in parts}:
                sweep_part_files(folder)
        for part in parts:
            with part.named():
                part.begin()
        try:
            yield [part.stream for part in parts]
        except OSError as error:
            if error.errno is None or error.filename not in (None, *(part.path for part in parts)):
                raise
            # The name of the part file means nothing to the caller.
            raise OSError(error.errno, error.strerror, os.fspath(paths[-1])) from None
        for part in parts:
            with part.named():
                part.complete(lasting)
        for part in parts:
            with part.named():
                part.rename()
        if lasting:
            for folder in {part.target.parent for part in parts}:
                _sync_folder(folder)
    finally:
        for part in parts:
            part.clean_up()


def try_writing(path: PathLike, *, follow_links: bool = True) -> None:
    """Raise what writing this file would raise, as far as can be known beforehand; changes no file."""
    part = _PartFile(path, private=True, follow_links=follow_links)
    try:
        sweep_part_files(part.target.parent)
        with part.named():
            part.begin()
    finally:
        part.clean_up()


def sweep_part_files(folder: Path) -> None:
    """Remove the parts in a folder that processes of this user left behind when they were killed."""
    with suppress(OSError), os.scandir(os.path.realpath(folder)) as entries:
        for entry in entries:
            if found := _PART_NAME.fullmatch(entry.name):
                with suppress(OSError):
                    _sweep(entry, found["machine"])


class _PartFile:
    """A file that is being written, and where it goes."""

    def __init__(self, path: PathLike, *, private: bool, follow_links: bool) -> None:
        self.given, self.private, self.keeps = os.fspath(path), private, follow_links
        with self.named():
            self.target = _resolve(path, follow_links)
            self.replaced = self._old()
        self.path = ""
        self._stream: BinaryIO | None = None

    @property
    def stream(self) -> BinaryIO:
        assert self._stream is not None  # noqa: S101 (for type checkers)
        return self._stream

    @contextmanager
    def named(self) -> Iterator[None]:
        """Name the file as the caller does in whatever fails."""
        try:
            yield
        except OSError as error:
            if error.errno is None:
                raise
            raise OSError(error.errno, error.strerror, self.given) from None

    def begin(self) -> None:
        """Make the part file and lock it."""
        # What is going to have the permissions of another file has none to begin with.
        mode = 0o600 if self.private or self.replaced is not None else 0o666
        for _ in range(_ATTEMPTS):
            name = f".{_short(self.target.name)}.{this_machine()}-{secrets.token_hex(6)}{_SUFFIX}"
            self.path = str(self.target.with_name(name))
            reserve(self.path)
            handle, is_there = create_locked(self.path, mode)
            self._stream = os.fdopen(handle, "wb")
            if is_there:
                return
            self.clean_up()
        raise SettingError(f"{self.given!r} cannot be written: its part file is removed again and again.")

    def complete(self, lasting: bool) -> None:
        """Write what is in memory still, and make it last."""
        self.stream.flush()
        self._take_over(self._old() or self.replaced)
        if lasting:
            os.fsync(self.stream.fileno())

    def rename(self) -> None:
        """Give it its name."""
        if sys.platform == "win32":
            # An open file cannot be renamed there.
            self.stream.close()
        # Locked until it has its name: a part file that is not locked may be removed.
        os.replace(self.path, self.target)  # noqa: PTH105 (the path is a text)

    def clean_up(self) -> None:
        """Close and remove what is left; it must not fail, or the reason why it is called would be lost."""
        if not self.path:
            return
        # First, as closing would let go of it. Ctrl-C may have come between making it and noting that.
        with suppress(OSError):
            os.unlink(self.path)  # noqa: PTH108 (the path is a text)
        if self._stream is not None:
            with suppress(OSError):
                # Which tries to write the rest again.
                self._stream.close()
            self._stream = None
        release(self.path)

    def _old(self) -> os.stat_result | None:
        """Look at the file that is going to be replaced, if there is one."""
        if not self.keeps:
            return None
        try:
            found = os.lstat(self.target)
        except FileNotFoundError:
            return None
        return found if stat.S_ISREG(found.st_mode) else None

    def _take_over(self, old: os.stat_result | None) -> None:
        """Take over permissions, and owner and group where that is allowed."""
        if old is None or sys.platform == "win32":
            return
        handle = self.stream.fileno()
        mode = stat.S_IMODE(old.st_mode) & _PERMISSIONS
        own = os.fstat(handle)
        if own.st_gid != old.st_gid:
            with suppress(OSError):
                os.fchown(handle, -1, old.st_gid)
            if os.fstat(handle).st_gid != old.st_gid:
                # What one group was allowed, another is not: it gets what all others get.
                mode &= ~0o070 | (mode & 0o007) << 3
        if own.st_uid != old.st_uid:
            with suppress(OSError):
                os.fchown(handle, old.st_uid, -1)
        os.fchmod(handle, mode)


def _resolve(path: PathLike, follow_links: bool) -> Path:
    if not follow_links:
        given = Path(path)
        return Path(os.path.realpath(given.parent)) / given.name
    # Through a link, as open() would write.
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # Renaming onto /dev/null would replace it.
        raise SettingError(f"{os.fspath(path)!r} is not an ordinary file; name another place.")
    return target


def _short(name: str) -> str:
    return name.encode(errors="ignore")[:_MOST_OF_NAME].decode(errors="ignore")


def _sync_folder(folder: Path) -> None:
    """Make new names last; where a system cannot do that, the files themselves are safe all the same."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sweep(entry: os.DirEntry[str], machine: str) -> None:
    """Remove a part file if it is ours and no process writes it."""
    # To open and close one that this process has locked would unlock it.
    if is_reserved(entry.path) or not _is_left_by_us(entry.stat(follow_symlinks=False)):
        return
    with open_abandoned(entry.path) as (handle, is_free):
        info = os.fstat(handle)
        if machine != this_machine() and is_free is not False:
            # The other machine's locks are not seen everywhere.
            is_free = None
        if is_free is None:
            is_free = info.st_mtime < time.time() - _OLD
        if is_free and _is_left_by_us(info) and is_same_file(entry.path, handle):
            os.unlink(entry.path)  # noqa: PTH108 (an entry's path is a text)


def _is_left_by_us(info: os.stat_result) -> bool:
    return _is_ours(info) and stat.S_ISREG(info.st_mode) and info.st_nlink == 1


def _is_ours(info: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or info.st_uid == os.geteuid()


class TemporaryFolder:
    """A new folder that its owner alone can enter; it is removed by `clean_up`, or when the process ends."""

    def __init__(self) -> None:
        sweep_folders()
        base = os.path.realpath(tempfile.gettempdir())
        self._handle, self._process = -1, os.getpid()
        for _ in range(_ATTEMPTS):
            self.path = Path(base, f"{_PREFIX}{this_machine()}-{secrets.token_hex(6)}")
            try:
                if self._make():
                    return
            except BaseException:
                self.clean_up()
                raise
            self.clean_up()
        raise SettingError(
            f"The temporary folder in {base!r} is removed again and again; name another with TMPDIR."
        )

    def clean_up(self) -> None:
        """Remove it with all that is in it; what cannot be removed is left to the next run."""
        if self._process != os.getpid():
            # A child that was forked; the folder is its parent's.
            return
        _remove(str(self.path))
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        release(str(self.path))
        atexit.unregister(self.clean_up)

    def _make(self) -> bool:
        """Make it and lock it; False if another process has removed it in between."""
        atexit.register(self.clean_up)
        reserve(str(self.path))
        self.path.mkdir(mode=0o700)
        try:
            self._handle, is_there = create_locked(str(self.path / _LOCK), 0o600)
        except FileNotFoundError:
            return False
        return is_there


def sweep_folders() -> None:
    """Remove the temporary folders that processes of this user left behind when they were killed."""
    with suppress(OSError), os.scandir(os.path.realpath(tempfile.gettempdir())) as entries:
        for entry in entries:
            found = _FOLDER.fullmatch(entry.name)
            # Locks of another machine are not seen everywhere.
            if found and found["machine"] == this_machine():
                with suppress(OSError):
                    _sweep_folder(entry)


def _sweep_folder(entry: os.DirEntry[str]) -> None:
    info = entry.stat(follow_symlinks=False)
    if is_reserved(entry.path) or not stat.S_ISDIR(info.st_mode) or not _is_ours(info):
        return
    lock = str(Path(entry.path, _LOCK))
    try:
        with open_abandoned(lock) as (handle, is_free):
            if is_free and is_same_file(lock, handle):
                _remove(entry.path)
    except FileNotFoundError:
        # Just made, or nearly removed. If it is empty it goes; its maker makes another.
        Path(entry.path).rmdir()


def _remove(folder: str) -> None:
    """Remove a folder; its lock goes last, so that an interrupted removal can be finished later."""
    with suppress(OSError):
        with os.scandir(folder) as entries:
            inside = [entry for entry in entries if entry.name != _LOCK]
        for entry in inside:
            if entry.is_dir(follow_symlinks=False):
                # Follows no links.
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                Path(entry.path).unlink(missing_ok=True)
        if not any(path.name != _LOCK for path in Path(folder).iterdir()):
            Path(folder, _LOCK).unlink(missing_ok=True)
            Path(folder).rmdir()


@contextmanager
def locked(path: Path, refuse: Callable[[str], Exception]) -> Iterator[None]:
    """Hold a lock file, or raise what `refuse` makes of the name of the process that does.

    Where a folder knows no locks, as on some network disks, nothing is locked or refused. A file that
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
    """Lock an open file: True if it is ours now, False if another process has it, None if unknown."""
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
        # Another process's file may have this name, too.
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
                # Another process made the pipe non-blocking, and nothing has come yet.
                time.sleep(_PAUSE)
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
