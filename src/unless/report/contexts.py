"""The rows of the table, packed for the page: by them it counts the rows of a chosen context."""

from base64 import b64encode
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.report.page import Contexts

# Bytes of contexts a page may hold, before they are written as text.
MOST_BYTES = 3_600_000


def hold(data: Dataset, most_bytes: int = MOST_BYTES) -> Contexts:
    """Pack the distinct rows of a table; of too many the most frequent."""
    widths = [1 if n <= 256 else 2 for n in data.domain.n_levels]
    kept, note = _most_frequent(data.counts, most_bytes // (sum(widths) + 4))
    return Contexts(
        n=len(kept),
        codes=[_base64(data.rows[kept, column].astype(f"<u{width}")) for column, width in enumerate(widths)],
        code_bytes=widths,
        counts=data.counts[kept].tolist(),
        note=note,
    )


def without_rows(data: Dataset) -> Contexts:
    """Return what a page holds that keeps no rows."""
    return Contexts(n=0, codes=["" for _ in data.domain], code_bytes=[1 for _ in data.domain], counts=[])


def _most_frequent(counts: npt.NDArray[np.int64], most: int) -> tuple[npt.NDArray[np.intp], str]:
    if len(counts) <= most:
        return np.arange(len(counts)), ""
    kept = np.sort(np.argsort(-counts, kind="stable")[:most])
    share = 100 * float(counts[kept].sum()) / float(counts.sum())
    return kept, (
        f"The page holds the {most:,} most frequent of {len(counts):,} contexts, {share:.0f} % of the rows; "
        "numbers of rows under a chosen context are of these. The statements are of all rows."
    )


def _base64(array: npt.NDArray[Any]) -> str:
    return b64encode(np.ascontiguousarray(array).tobytes()).decode()
