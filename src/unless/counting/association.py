"""How strongly each variable is associated with all others."""

import numpy as np

from unless.counting.packed import PackedTable
from unless.data.dataset import Dataset


def association_order(data: Dataset) -> list[int]:
    """Return the columns by the sum of their mutual informations with all others, ties by name."""
    from unless.kernels.association import association_sums

    # By name first: the order of the columns must not decide anything, not even the rounding.
    by_name = sorted(range(data.n_variables), key=lambda column: data.names[column])
    packed = PackedTable.of(data, by_name)
    sums = association_sums(packed.table, packed.slices(1, 0), packed.crossing(0))
    ranked = np.argsort(-sums, kind="stable")
    return [by_name[position] for position in ranked]
