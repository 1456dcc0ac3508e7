"""Files appear whole or not at all, and never in place of something else."""

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from unless.errors import SettingError


def check_output(output: str, inputs: Sequence[Path] = ()) -> None:
    """Refuse, before the work begins, a place where the result cannot go."""
    target = Path(output)
    if target.is_dir():
        raise SettingError(f"{output!r} is a folder; name a file in it.")
    if not target.parent.is_dir():
        raise SettingError(f"{output!r} cannot be written: there is no folder {str(target.parent)!r}.")
    if target.exists() and not target.is_file():
        # Replacing /dev/null with a file would harm the machine.
        raise SettingError(f"{output!r} is not an ordinary file; name another place.")
    if target.exists() and any(target.samefile(source) for source in inputs):
        raise SettingError(f"{output!r} is the table itself; write to another file.")


@contextmanager
def replacing(output: str) -> Iterator[TextIO]:
    """Open a text file that takes its name only when all went well."""
    target = Path(os.path.realpath(output))
    draft = target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}.part")
    try:
        with draft.open("x", encoding="utf-8", newline="") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(target)
    except OSError as error:
        # The draft's name means nothing to the user.
        raise OSError(error.errno, error.strerror, output) from None
    finally:
        draft.unlink(missing_ok=True)
