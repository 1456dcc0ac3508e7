"""Results of runs on disk: one small file each, whole or not there."""

import json
from itertools import chain
from pathlib import Path
from typing import Any

from studies.paper.plan import Run
from unless import __version__
from unless.runtime.files import replacing

Record = dict[str, Any]
# Raised whenever a run would come out differently: files of another protocol are not taken up.
PROTOCOL = 2
_STAMP = {"unless": __version__, "protocol": PROTOCOL}


class Store:
    """A folder of results, and one of the times they took."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "runs"
        self.times = folder / "times"

    def clear_drafts(self) -> None:
        """Remove what was begun to be written and killed; a folder belongs to one process at a time."""
        # Only where files are written, and such files: the folder may hold other things, and other folders.
        runs = (place.rglob(".*.json.*.part") for place in (self.results, self.times))
        pages = (self.folder.glob(f".*.{kind}.*.part") for kind in ("csv", "md", "svg"))
        for draft in chain(*runs, *pages):
            draft.unlink(missing_ok=True)

    def has(self, run: Run) -> bool:
        """Tell whether a run was finished, by this protocol."""
        return self.read(run) is not None

    def read(self, run: Run) -> Record | None:
        """Return the result of a run, or None."""
        return _read(self.results / f"{run.name}.json")

    def read_times(self, run: Run) -> Record | None:
        """Return the seconds a run took, or None."""
        return _read(self.times / f"{run.name}.json")

    def write(self, run: Run, record: Record, times: Record) -> None:
        """Keep a run; its result comes last, so that a run with a result has its times."""
        for folder, content in ((self.times, times), (self.results, record)):
            path = folder / f"{run.name}.json"
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
