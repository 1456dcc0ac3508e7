"""Mutual information of all pairs, from bitmaps over all rows."""

import math

import numpy as np

from unless.kernels.compiling import compiled
from unless.kernels.slices import (
    borrowed_crossing,
    borrowed_slices,
    borrowed_table,
    count,
    cross,
    take_all,
)

# Fixed point: sums of integers do not depend on their order, so neither does the ranking.
FIXED_POINT = float(2**40)


@compiled
def association_sums(table, slices, crossing):
    """Return for each variable the sum of its mutual informations with all others, in nats as fixed point."""
    table, slices, crossing = borrowed_table(table), borrowed_slices(slices), borrowed_crossing(crossing)
    n = table.codes.shape[0]
    sums = np.zeros(n, dtype=np.int64)
    take_all(0, table, slices)
    for a in range(n):
        n_a = table.offsets[a + 1] - table.offsets[a]
        total = cross(0, a, n_a, table, slices, crossing)
        for b in range(a):
            n_b = table.offsets[b + 1] - table.offsets[b]
            count(0, b, n_a, n_b, table, slices, crossing)
            information = 0.0
            for j in range(n_b):
                column = 0
                for i in range(n_a):
                    column += crossing.cells[i * n_b + j]
                for i in range(n_a):
                    cell = crossing.cells[i * n_b + j]
                    if cell > 0:
                        expected = float(crossing.totals[i]) * float(column) / total
                        information += cell * math.log(cell / expected)
            rounded = np.int64(round(information / total * FIXED_POINT))
            sums[a] += rounded
            sums[b] += rounded
    return sums
