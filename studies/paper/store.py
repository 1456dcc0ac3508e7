"""Results of cells on disk: one small file each, whole or not there."""

import json
from itertools import chain
from pathlib import Path
from typing import Any

from studies.paper.plan import Cell
from unless import __version__
from unless.runtime.files import replacing

Record = dict[str, Any]
# Raised whenever a cell would come out differently: files of another protocol are not taken up.
PROTOCOL = 1
_STAMP = {"unless": __version__, "protocol": PROTOCOL}


class Store:
    """A folder of results, and one of the times they took."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "cells"
        self.times = folder / "times"

    def clear_drafts(self) -> None:
        """Remove what a run that was killed had begun to write; a folder belongs to one run at a time."""
        # Only where a run writes, and what it writes: the folder may hold other things, and other folders.
        cells = (place.rglob(".*.json.*.part") for place in (self.results, self.times))
        pages = (self.folder.glob(f".*.{kind}.*.part") for kind in ("csv", "md", "svg"))
        for draft in chain(*cells, *pages):
            draft.unlink(missing_ok=True)

    def has(self, cell: Cell) -> bool:
        """Tell whether a cell was finished, by this protocol."""
        return self.read(cell) is not None

    def read(self, cell: Cell) -> Record | None:
        """Return the result of a cell, or None."""
        return _read(self.results / f"{cell.name}.json")

    def read_times(self, cell: Cell) -> Record | None:
        """Return the seconds a cell took, or None."""
        return _read(self.times / f"{cell.name}.json")

    def write(self, cell: Cell, record: Record, times: Record) -> None:
        """Keep a cell; its result comes last, so that a cell with a result has its times."""
        for folder, content in ((self.times, times), (self.results, record)):
            path = folder / f"{cell.name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as stream:
                stream.write(json.dumps({**_STAMP, **content}, sort_keys=True, indent=1).encode() + b"\n")


def _read(path: Path) -> Record | None:
    try:
        content = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(content, dict) or any(content.pop(key, None) != value for key, value in _STAMP.items()):
        return None
    return content
