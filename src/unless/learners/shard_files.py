"""Files of named arrays that are read in pieces, and prove each as they do."""

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from unless.errors import FileFormatError

# What a file that is no such file, or no longer one, makes a reader raise.
UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)


class ShardFile(Mapping[str, npt.NDArray[Any]]):
    """The arrays of a file, each read, and proved by its checksum, when it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._found: dict[str, tuple[int, tuple[int, ...], np.dtype[Any]]] = {}

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        with self._open() as content:
            return np.asarray(content[name])

    def __iter__(self) -> Iterator[str]:
        with self._open() as content:
            return iter(content.files)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def rows(self, name: str, begin: int, end: int) -> npt.NDArray[Any]:
        """Read some rows of an array, and nothing else."""
        try:
            with self.path.open("rb") as stream:
                if name not in self._found:
                    self._found[name] = self._find(name, stream)
                place, shape, dtype = self._found[name]
                width = int(np.prod(shape[1:]))
                stream.seek(place + begin * width * dtype.itemsize)
                return np.fromfile(stream, dtype, (end - begin) * width).reshape(-1, *shape[1:])
        except UNREADABLE as error:
            raise _damaged(self.path, error) from None

    def _find(self, name: str, stream: IO[bytes]) -> tuple[int, tuple[int, ...], np.dtype[Any]]:
        """Return where the rows of an array begin, its shape and type."""
        with zipfile.ZipFile(self.path) as archive:
            stream.seek(archive.getinfo(f"{name}.npy").header_offset)
        # A local header of zip: 30 bytes, the last four of them the lengths of name and extra field.
        header = stream.read(30)
        stream.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:], "little"), 1)
        np.lib.format.read_magic(stream)
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        return stream.tell(), shape, dtype

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
