"""Files appear whole or not at all, and never in place of something that is no file.

Each file is written as a draft beside its place, `.NAME.MACHINE-NUMBER.unless-part`, and renamed when it is
whole. The process holds a lock on its draft until then. A process that is killed leaves its draft behind,
which nobody holds any more; whoever writes in the same folder next removes it.
"""

import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from unless.errors import SettingError
from unless.runtime.locks import SAFELY, claim, disclaim, is_own, is_still, take, this_machine

PathLike = str | os.PathLike[str]
_SUFFIX = ".unless-part"
_DRAFT = re.compile(r"\..*\.(?P<machine>[0-9a-f]{8})-[0-9a-f]{12}" + re.escape(_SUFFIX), re.DOTALL)
# Bytes of the name that a draft's name begins with; file systems allow 255 for all of it.
_MOST_OF_NAME = 180
# Seconds after which nobody goes on writing a draft, where locks cannot tell.
_OLD = 3600
# How often a draft is begun again that another process took for a dead one's before it was locked.
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
    drafts = [_Draft(path, private=private, follow_links=follow_links) for path in paths]
    try:
        if lasting:
            # What is not lasting is written often, in a folder that was swept at the beginning.
            for folder in {draft.target.parent for draft in drafts}:
                sweep_drafts(folder)
        for draft in drafts:
            with draft.named():
                draft.begin()
        try:
            yield [draft.stream for draft in drafts]
        except OSError as error:
            if error.errno is None or error.filename not in (None, *(draft.path for draft in drafts)):
                raise
            # The draft's name means nothing to the caller.
            raise OSError(error.errno, error.strerror, os.fspath(paths[-1])) from None
        for draft in drafts:
            with draft.named():
                draft.complete(lasting)
        for draft in drafts:
            with draft.named():
                draft.rename()
        if lasting:
            for folder in {draft.target.parent for draft in drafts}:
                _sync_folder(folder)
    finally:
        for draft in drafts:
            draft.clean_up()


def try_writing(path: PathLike, *, follow_links: bool = True) -> None:
    """Raise what writing this file would raise, as far as can be known beforehand; changes no file."""
    draft = _Draft(path, private=True, follow_links=follow_links)
    try:
        sweep_drafts(draft.target.parent)
        with draft.named():
            draft.begin()
    finally:
        draft.clean_up()


def sweep_drafts(folder: Path) -> None:
    """Remove the drafts in a folder that processes of this user left behind when they were killed."""
    with suppress(OSError), os.scandir(os.path.realpath(folder)) as entries:
        for entry in entries:
            if found := _DRAFT.fullmatch(entry.name):
                with suppress(OSError):
                    _sweep(entry, found["machine"])


class _Draft:
    """A file that is being written, and where it goes."""

    def __init__(self, path: PathLike, *, private: bool, follow_links: bool) -> None:
        self.given, self.private, self.keeps = os.fspath(path), private, follow_links
        with self.named():
            self.target = _place(path, follow_links)
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
        """Make the draft, which is new, and hold it."""
        # What is going to have the permissions of another file has none to begin with.
        mode = 0o600 if self.private or self.replaced is not None else 0o666
        for _ in range(_ATTEMPTS):
            name = f".{_short(self.target.name)}.{this_machine()}-{secrets.token_hex(6)}{_SUFFIX}"
            self.path = str(self.target.with_name(name))
            claim(self.path)
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFELY, mode)
            self._stream = os.fdopen(handle, "wb")
            # Another process may have removed it before it was locked.
            if take(handle) is not False and is_still(self.path, handle):
                return
            self.clean_up()
        raise SettingError(f"{self.given!r} cannot be written: its draft is removed again and again.")

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
        # Held until it has its name: a draft that nobody holds may be removed.
        os.replace(self.path, self.target)  # noqa: PTH105 (the draft is a text)

    def clean_up(self) -> None:
        """Close and remove what is left; it must not fail, or the reason why it is called would be lost."""
        if not self.path:
            return
        # First, as closing would let go of it. Ctrl-C may have come between making it and noting that.
        with suppress(OSError):
            os.unlink(self.path)  # noqa: PTH108 (the draft is a text)
        if self._stream is not None:
            with suppress(OSError):
                # Which tries to write the rest again.
                self._stream.close()
            self._stream = None
        disclaim(self.path)

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


def _place(path: PathLike, follow_links: bool) -> Path:
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
    """Remove a draft if it is ours and no process writes it."""
    # To open and close one that this process holds would let go of it.
    if is_own(entry.path) or not _is_left_by_us(entry.stat(follow_symlinks=False)):
        return
    handle = os.open(entry.path, os.O_WRONLY | SAFELY)
    try:
        info = os.fstat(handle)
        is_free = take(handle)
        if machine != this_machine() and is_free is not False:
            # The other machine's locks are not seen everywhere.
            is_free = None
        if is_free is None:
            is_free = info.st_mtime < time.time() - _OLD
        if is_free and _is_left_by_us(info) and is_still(entry.path, handle):
            os.unlink(entry.path)  # noqa: PTH108 (an entry's path is a text)
    finally:
        os.close(handle)


def _is_left_by_us(info: os.stat_result) -> bool:
    is_ours = not hasattr(os, "geteuid") or info.st_uid == os.geteuid()
    return is_ours and stat.S_ISREG(info.st_mode) and info.st_nlink == 1
