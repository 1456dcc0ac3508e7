"""Files that appear whole or not at all, and temporary folders that go with their process.

A file is written under another name beside its own, `.NAME.MACHINE-NUMBER.unless-part`, and renamed when it
is whole; the process has it locked until then. A temporary folder holds a file `.lock` that its process has
locked. A process that is killed leaves its part files and folders behind, unlocked: the next run that writes
in the same folder, or makes a temporary folder, removes them.
"""

import atexit
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from unless.errors import SettingError
from unless.runtime.locks import (
    create_locked,
    is_reserved,
    is_same_file,
    open_abandoned,
    release,
    reserve,
    this_machine,
)

PathLike = str | os.PathLike[str]
_SUFFIX = ".unless-part"
_PART_NAME = re.compile(r"\..*\.(?P<machine>[0-9a-f]{8})-[0-9a-f]{12}" + re.escape(_SUFFIX), re.DOTALL)
_PREFIX = "unless-"
_FOLDER = re.compile(_PREFIX + r"(?P<machine>[0-9a-f]{8})-[0-9a-f]{12}")
_LOCK = ".lock"
# Bytes of the name that a part file's name begins with; file systems allow 255 for all of it.
_MOST_OF_NAME = 180
# Seconds after which nobody goes on writing a part file, where locks cannot tell.
_OLD = 3600
# How often a file or folder is made again that another process removed as abandoned before it was locked.
_ATTEMPTS = 100
_PERMISSIONS = 0o777


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
