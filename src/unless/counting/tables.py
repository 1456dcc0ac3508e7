"""Contingency tables of a Dataset for single questions, in plain numpy, exact in 64-bit integers."""

from collections.abc import Mapping, Sequence

import numpy as np

from unless.data.dataset import Counts, Dataset, Rows
from unless.errors import TooLarge

# A gigabyte: far more than a table a person asks for, far less than what would stop their machine.
MAX_BYTES = 2**30


def slice_table(
    dataset: Dataset, a: int, b: int, context: Mapping[int, int], *, max_bytes: int = MAX_BYTES
) -> Counts:
    """Count a against b over the rows that agree with the context (position -> code)."""
    rows, counts = rows_in(dataset, context)
    table: Counts = _zeros(dataset, 1, a, b, max_bytes)[0]
    # Not bincount: it adds weights as doubles, which lose units beyond 2^53.
    np.add.at(table, (rows[:, a], rows[:, b]), counts)
    return table


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
    rows, counts = rows_in(dataset, context)
    if len(given):
        strata, stratum = np.unique(rows[:, list(given)], axis=0, return_inverse=True)
    else:
        # Given nothing, all rows are one stratum, if there are any.
        strata, stratum = rows[:1, :0], np.zeros(len(rows), dtype=np.intp)
    tables = _zeros(dataset, len(strata), a, b, max_bytes)
    np.add.at(tables, (stratum.ravel(), rows[:, a], rows[:, b]), counts)
    return tables, strata


def rows_in(dataset: Dataset, context: Mapping[int, int]) -> tuple[Rows, Counts]:
    """Return the distinct rows that agree with a context, and their counts."""
    agrees = np.full(dataset.n_distinct, True)
    for position, code in context.items():
        agrees &= dataset.rows[:, position] == code
    return dataset.rows[agrees], dataset.counts[agrees]


def _zeros(dataset: Dataset, n_strata: int, a: int, b: int, max_bytes: int) -> Counts:
    n_a, n_b = (int(dataset.domain.n_levels[position]) for position in (a, b))
    needed = 8 * n_strata * n_a * n_b
    if needed > max_bytes:
        raise TooLarge(
            f"This question needs {needed / 1e6:,.0f} MB: {n_strata:,} strata of {n_a:,} x {n_b:,} levels, "
            f"more than the {max_bytes / 1e6:,.0f} MB allowed; condition on fewer variables."
        )
    return np.zeros((n_strata, n_a, n_b), dtype=np.int64)
