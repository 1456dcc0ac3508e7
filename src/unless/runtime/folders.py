"""Temporary folders that go with their process, whatever ends it.

A folder holds a file `.lock` that its process has locked. A process that is killed leaves its folder behind,
which nobody holds any more; whoever makes a temporary folder or writes a file next removes it.
"""

import atexit
import os
import re
import secrets
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from unless.errors import SettingError
from unless.runtime.locks import SAFELY, claim, disclaim, is_own, is_still, take, this_machine

_PREFIX = "unless-"
_FOLDER = re.compile(_PREFIX + r"(?P<machine>[0-9a-f]{8})-[0-9a-f]{12}")
_LOCK = ".lock"
# How often a folder is made again that another process took for a dead one's before it was locked.
_ATTEMPTS = 100


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
        disclaim(str(self.path))
        atexit.unregister(self.clean_up)

    def _make(self) -> bool:
        """Make it and hold it; False if another process has removed it in between."""
        atexit.register(self.clean_up)
        claim(str(self.path))
        self.path.mkdir(mode=0o700)
        lock = str(self.path / _LOCK)
        try:
            self._handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL | SAFELY, 0o600)
        except FileNotFoundError:
            return False
        return take(self._handle) is not False and is_still(lock, self._handle)


def sweep_folders() -> None:
    """Remove the temporary folders that processes of this user left behind when they were killed."""
    with suppress(OSError), os.scandir(os.path.realpath(tempfile.gettempdir())) as entries:
        for entry in entries:
            found = _FOLDER.fullmatch(entry.name)
            # Locks of another machine are not seen everywhere.
            if found and found["machine"] == this_machine():
                with suppress(OSError):
                    _sweep(entry)


def _sweep(entry: os.DirEntry[str]) -> None:
    # To open and close a lock that this process holds would let go of it.
    if is_own(entry.path):
        return
    info = entry.stat(follow_symlinks=False)
    if not stat.S_ISDIR(info.st_mode) or (hasattr(os, "geteuid") and info.st_uid != os.geteuid()):
        return
    lock = str(Path(entry.path, _LOCK))
    try:
        handle = os.open(lock, os.O_RDWR | SAFELY)
    except FileNotFoundError:
        # Just made, or nearly removed. If it is empty it goes; whoever has just made it makes another.
        Path(entry.path).rmdir()
        return
    try:
        if take(handle) and is_still(lock, handle):
            _remove(entry.path)
    finally:
        os.close(handle)


def _remove(folder: str) -> None:
    """Remove a folder; its lock goes last, so that what is interrupted can be taken up."""
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
