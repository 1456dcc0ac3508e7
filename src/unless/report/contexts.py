"""Which links hold in which contexts, packed for the page."""

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.knowledge.presence import Presence
from unless.report.page import Contexts
from unless.structures.distinct import distinct_bytes
from unless.structures.pairs import Edge, pair_nodes

# Bytes of contexts a page may hold, before they are written as text.
MOST_BYTES = 3_600_000


@dataclass(frozen=True)
class Held:
    """The contexts that a page holds, those pairs that are linked in any, and what had to be left out."""

    contexts: Contexts
    # Numbers of the pairs, and the share of all rows in which each is linked.
    pairs: npt.NDArray[np.intp]
    shares: npt.NDArray[np.float64]
    left_out: tuple[str, ...]

    def nodes(self, n_variables: int) -> list[tuple[int, int]]:
        """Return the two ends of each pair."""
        first, second = pair_nodes(self.pairs, n_variables)
        return list(zip(first.tolist(), second.tolist(), strict=True))


def hold(structure: Any, data: Dataset, wanted: Iterable[Edge], most_bytes: int = MOST_BYTES) -> Held:
    """Ask a structure about these pairs in every row; keep the most frequent contexts if all are too many."""
    presence = Presence.of(structure, data)
    place = data.domain.index
    asked = np.array(sorted(int(presence.numbers[place(a), place(b)]) for a, b in wanted), dtype=np.intp)
    pairs = asked[presence.shares[asked] > 0]
    rows, counts = presence.rows, presence.counts
    widths = [1 if n <= 256 else 2 for n in presence.domain.n_levels]
    stride = (len(pairs) + 7) // 8
    # At worst every context has a graph of its own.
    most = most_bytes // (sum(widths) + 8 + (0 if presence.is_constant else stride))
    kept, left_out = _most_frequent(counts, most)
    notes = [*_of_another_table(presence, data), *left_out]
    graphs, index = _graphs(presence, pairs, kept)
    contexts = Contexts(
        n=len(kept),
        codes=[_base64(rows[kept, column].astype(f"<u{width}")) for column, width in enumerate(widths)],
        code_bytes=widths,
        counts=counts[kept].tolist(),
        graph=_base64(index.astype("<u4")),
        n_graphs=len(graphs),
        stride=stride,
        graphs=_base64(graphs),
        note=" ".join(notes),
    )
    return Held(contexts, pairs, presence.shares[pairs], left_out)


def _of_another_table(presence: Presence, data: Dataset) -> tuple[str, ...]:
    """Say so where the contexts are those a model was learned from, and the table is another one."""
    own = Dataset.from_codes(data.domain, presence.rows, presence.counts)
    if np.array_equal(own.rows, data.rows) and np.array_equal(own.counts, data.counts):
        return ()
    return (
        f"Contexts and their numbers of rows are those of the {own.n_rows:,} rows that the model was learned "
        f"from; statements and their tables are of the {data.n_rows:,} rows looked at here.",
    )


def _most_frequent(counts: npt.NDArray[np.int64], most: int) -> tuple[npt.NDArray[np.intp], tuple[str, ...]]:
    if len(counts) <= most:
        return np.arange(len(counts)), ()
    kept = np.sort(np.argsort(-counts, kind="stable")[:most])
    share = 100 * float(counts[kept].sum()) / float(counts.sum())
    return kept, (
        f"The page holds the {most:,} most frequent of {len(counts):,} contexts, {share:.0f} % of the rows; "
        "numbers of rows and links under a chosen context are of these. The statements are of all rows.",
    )


def _graphs(
    presence: Presence, pairs: npt.NDArray[np.intp], kept: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.intp]]:
    if presence.is_constant:
        links = presence.bits[pairs, 0].astype(np.bool_)[None]
        return np.packbits(links, axis=1, bitorder="little"), np.zeros(len(kept), dtype=np.intp)
    packed = np.zeros((len(kept), (len(pairs) + 7) // 8), dtype=np.uint8)
    for place, pair in enumerate(pairs):
        packed[:, place // 8] |= presence.linked(int(pair))[kept].astype(np.uint8) << (place % 8)
    return distinct_bytes(packed)


def _base64(array: npt.NDArray[Any]) -> str:
    return b64encode(np.ascontiguousarray(array).tobytes()).decode()
