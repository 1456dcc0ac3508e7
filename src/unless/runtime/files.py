"""Files appear whole or not at all, and never in place of something that is no file."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from unless.errors import SettingError


@contextmanager
def replacing(
    path: str | os.PathLike[str], *, lasting: bool = True, private: bool = False
) -> Iterator[BinaryIO]:
    """Open a file that takes its name only when all went well.

    One that is not `lasting` is not waited for until it is on the disk: it may be spoiled if the machine
    itself fails, and who reads it must look. One that is `private` may be read by its owner alone, unless it
    replaces a file: then it may be read by those who could read that.
    """
    with replacing_all(path, lasting=lasting, private=private) as (stream,):
        yield stream


@contextmanager
def replacing_all(
    *paths: str | os.PathLike[str], lasting: bool = True, private: bool = False
) -> Iterator[list[BinaryIO]]:
    """Open files that take their names together, when all of them are whole."""
    targets = [_target(path) for path in paths]
    drafts = [one.with_name(f".{one.name[:200]}.{secrets.token_hex(6)}.part") for one in targets]
    try:
        with ExitStack() as stack:
            streams: list[BinaryIO] = []
            for draft in drafts:
                # Not tempfile: its files are private whatever the umask says.
                mode = 0o600 if private else 0o666
                handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
                streams.append(stack.enter_context(os.fdopen(handle, "wb")))
            yield streams
            for stream in streams:
                stream.flush()
                if lasting:
                    os.fsync(stream.fileno())
        for draft, target in zip(drafts, targets, strict=True):
            if private and target.exists():
                draft.chmod(stat.S_IMODE(target.stat().st_mode))
            draft.replace(target)
    except OSError as error:
        # The draft's name means nothing to the caller.
        named = dict(zip(map(str, drafts), paths, strict=True)).get(str(error.filename), paths[-1])
        raise OSError(error.errno, error.strerror, os.fspath(named)) from None
    finally:
        for draft in drafts:
            draft.unlink(missing_ok=True)


def _target(path: str | os.PathLike[str]) -> Path:
    # Through a link, as open() would write.
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # Renaming onto /dev/null would replace it.
        raise SettingError(f"{os.fspath(path)!r} is not an ordinary file; name another place.")
    return target
