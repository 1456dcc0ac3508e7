"""What a blanket looks like in a part of a table: its distinct values, and the columns they switch on."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.independence.logistic import Columns
from unless.learners.parts import Part, Table

Ints = npt.NDArray[np.int64]


class Patterns(NamedTuple):
    """Distinct values of a blanket in a part: which of them each row has, and the columns they switch on."""

    which: Ints
    columns: Columns


def patterns_of(table: Table, part: Part, target: int, blanket: tuple[int, ...]) -> Patterns:
    """Count the target's levels for each distinct value of a blanket.

    Each level of the blanket but one of each variable has a column, as has what is always there (column 0).
    """
    from unless.kernels.patterns import find_patterns

    variables = np.array(blanket, dtype=np.int64)
    which, *columns = find_patterns(
        table.codes, part.rows, table.counts, variables, table.sizes, table.references, target
    )
    return Patterns(which, Columns(*columns))
