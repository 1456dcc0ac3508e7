"""Files of named arrays, each read and checked when it is asked for."""

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.errors import FileFormatError

# What a file that is no such file, or no longer one, makes a reader raise.
UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)


class ShardFile(Mapping[str, npt.NDArray[Any]]):
    """The arrays of a file, each read, and proved by its checksum, when it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        with self._open() as content:
            return np.asarray(content[name])

    def __iter__(self) -> Iterator[str]:
        with self._open() as content:
            return iter(content.files)

    def __len__(self) -> int:
        return len(list(iter(self)))

    @contextmanager
    def _open(self) -> Iterator[Any]:
        try:
            with self.path.open("rb") as stream, np.load(stream, allow_pickle=False) as content:
                yield content
        except UNREADABLE as error:
            raise _damaged(self.path, error) from None


def _damaged(path: Path, error: Exception) -> FileFormatError:
    return FileFormatError(
        f"{str(path)!r} is missing or damaged ({error}); delete it and go on with resume=True."
    )
