"""What a benchmark is told: where the data is, how often to measure."""

from dataclasses import dataclass
from pathlib import Path


class DataError(Exception):
    """A file of the data folder is not there."""


@dataclass(frozen=True)
class Options:
    """Settings of one run."""

    data: Path | None
    repeats: int
    draws: int = 40
    plots: Path | None = None

    def need(self, name: str) -> Path:
        """Return the path of a file in the data folder."""
        if self.data is None:
            raise DataError("no data folder was named (--data DIR, or make bench DATA=DIR)")
        path = self.data / name
        if not path.exists():
            raise DataError(f"the data folder has no {name}")
        return path
