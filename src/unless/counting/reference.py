"""What a source of counts promises, and the reference: plain numpy, exact in 64-bit integers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from unless.data.dataset import Counts, Dataset, Rows
from unless.errors import TooLarge
from unless.structures.structure import agreeing

# A gigabyte: far more than a table a person asks for, far less than what would stop their machine.
MAX_BYTES = 2**30


class CountSource(Protocol):
    """A table of rows from which two variables can be counted in any context."""

    def count(self, a: int, b: int, context: Mapping[int, int]) -> Counts:
        """Count variable `a` against `b` on the rows that agree with a context (position -> code)."""
        ...


@dataclass(frozen=True)
class PlainCounts:
    """The reference source: it adds up the counts of a dataset's rows."""

    data: Dataset
    max_bytes: int = MAX_BYTES

    def count(self, a: int, b: int, context: Mapping[int, int]) -> Counts:
        """Count variable `a` against `b` on the rows that agree with a context (position -> code)."""
        tables, _ = stratified_tables(self.data, a, b, (), context, max_bytes=self.max_bytes)
        counts: Counts = tables.sum(axis=0)
        return counts


def stratified_tables(
    dataset: Dataset,
    a: int,
    b: int,
    given: Sequence[int],
    context: Mapping[int, int],
    *,
    max_bytes: int = MAX_BYTES,
) -> tuple[Counts, Rows]:
    """Count a against b in every observed stratum of the given variables within the context.

    Return the tables (stratum x a x b) and the codes of the given variables in each stratum, sorted.
    """
    agrees = agreeing(dataset.rows, context)
    rows, counts = dataset.rows[agrees], dataset.counts[agrees]
    if len(given):
        strata, stratum = np.unique(rows[:, list(given)], axis=0, return_inverse=True)
    else:
        # Given nothing, all rows are one stratum, if there are any.
        strata, stratum = rows[:1, :0], np.zeros(len(rows), dtype=np.intp)
    n_a, n_b = (int(dataset.domain.n_levels[position]) for position in (a, b))
    needed = 8 * len(strata) * n_a * n_b
    if needed > max_bytes:
        raise TooLarge(
            f"This question needs {needed / 1e6:,.0f} MB: {len(strata):,} strata of {n_a:,} x {n_b:,} "
            f"levels, more than the {max_bytes / 1e6:,.0f} MB allowed; condition on fewer variables."
        )
    tables = np.zeros((len(strata), n_a, n_b), dtype=np.int64)
    # Not bincount: it adds weights as doubles, which lose units beyond 2^53.
    np.add.at(tables, (stratum.ravel(), rows[:, a], rows[:, b]), counts)
    return tables, strata
