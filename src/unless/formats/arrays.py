"""Arrays as .npy members whose type and shape are known before they are read."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.errors import FileFormatError


def to_npy(array: npt.NDArray[Any], dtype: str) -> bytes:
    """Write an array as numpy.save would, byte for byte the same with every numpy."""
    return _header(dtype, array.shape) + np.ascontiguousarray(array, dtype=dtype).tobytes()


def from_npy(members: Mapping[str, bytes], name: str, dtype: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Read an array of exactly this type and shape.

    Nothing in the member is interpreted: its header must be the one expected, so it can ask for no memory.
    """
    content = members[name]
    header = _header(dtype, shape)
    if len(content) != len(header) + prod(shape) * np.dtype(dtype).itemsize or not content.startswith(header):
        raise FileFormatError(f"{name} has another type or size than model.json says")
    return np.frombuffer(content, dtype=dtype, offset=len(header)).reshape(shape)


def _header(dtype: str, shape: tuple[int, ...]) -> bytes:
    fields = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode("ascii")
    # Version 1.0 of the format: ten bytes, then the fields, padded so that data begins at a multiple of 64.
    padding = -(10 + len(fields) + 1) % 64
    text = fields + b" " * padding + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
