"""Where a result may be written is checked before the work begins."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from unless.cli.wording import either
from unless.errors import SettingError

# What holds weights, what is followed by a second file that holds the names, and what holds a graph.
MODELS = (".unless", ".mn", ".uai", ".bif", ".json")
NAMELESS = (".mn", ".uai")
GRAPHS = (".unless", ".graphml")


def check_output(output: str, inputs: Sequence[Path] = (), what: str = "table") -> None:
    """Refuse, before the work begins, a place where the result cannot go."""
    from unless.runtime.files import sweep_folders, try_writing

    target = Path(output)
    if target.is_dir():
        raise SettingError(f"{output!r} is a folder; name a file in it.")
    if not target.parent.is_dir():
        raise SettingError(f"{output!r} cannot be written: there is no folder {str(target.parent)!r}.")
    if target.exists() and not target.is_file():
        # Replacing /dev/null with a file would harm the machine.
        raise SettingError(f"{output!r} is not an ordinary file; name another place.")
    if target.exists() and any(source.exists() and target.samefile(source) for source in inputs):
        raise SettingError(f"{output!r} is the {what} itself; write to another file.")
    # What processes left behind that were killed goes now, even if this command is stopped as well.
    sweep_folders()
    try_writing(output)


def check_model_output(output: str, tables: Sequence[Path], model: str, endings: Iterable[str]) -> None:
    """Refuse, before the work begins, a file that no format has a place for, or that would hide an input."""
    from unless.formats.json_model import names_path

    ending, known = Path(output).suffix.lower(), list(endings)
    if ending not in known:
        raise SettingError(f"{output!r} has no ending that tells a format; end it in {either(known)}.")
    # Formats without names keep them in a second file.
    beside = [str(names_path(output))] if ending in NAMELESS else []
    for place in (output, *beside):
        check_output(place, tables)
        check_output(place, [source for source in [Path(model)] if source.exists()], "input")
