"""Tables that several tests of reading share."""

import pandas as pd

from unless.data.dataset import Dataset


def write(path, text, encoding="utf-8"):
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def rows_of(data: Dataset) -> dict[tuple[str, ...], int]:
    """The rows of a dataset as labels, with their counts."""
    return {
        tuple(variable.levels[code] for variable, code in zip(data.domain, row, strict=True)): int(count)
        for row, count in zip(data.rows, data.counts, strict=True)
    }


def levels_of(data: Dataset) -> dict[str, tuple[str, ...]]:
    return {variable.name: variable.levels for variable in data.domain}


def kinds_of(data: Dataset) -> dict[str, str]:
    return {variable.name: variable.kind for variable in data.domain}


def mixed_frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "größe": ["tall", "short", "tall", "tall", 'a "quoted", one', "two\nlines"],
            "n": [10, 9, 10, 10, -1, 9],
            "x": [1.0, 1.5, 1.0, 1.0, 0.25, 2.0],
            "yes": [True, False, True, True, False, True],
        }
    )
