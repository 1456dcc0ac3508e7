"""Where a result may be written is checked before the work begins."""

from collections.abc import Sequence
from pathlib import Path

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
