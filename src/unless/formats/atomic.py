"""Files appear whole or not at all, and never in place of something that is no file."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from unless.errors import SettingError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes its name only when all went well."""
    # Through a link, as open() would write.
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # Renaming onto /dev/null would replace it.
        raise SettingError(f"{os.fspath(path)!r} is not an ordinary file; name another place.")
    draft = target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}.part")
    try:
        # Not tempfile: its files are private whatever the umask says.
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(target)
    except OSError as error:
        # The draft's name means nothing to the caller.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    finally:
        draft.unlink(missing_ok=True)
