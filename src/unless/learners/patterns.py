"""What a blanket looks like in a part of a table: its distinct values, and the columns they switch on."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.learners.parts import Floats, Part, Table

Ints = npt.NDArray[np.int64]
# Values are renumbered when there could be more than so many of them for each row.
_PLACES = 4


class Patterns(NamedTuple):
    """Distinct values of a blanket in a part, counts of the target's levels with each, and whose they are.

    Each level of the blanket but one of each variable has a column, as has what is always there (column 0);
    `owners` and `levels` say whose. Those on in a pattern are `active[begins[pattern]:begins[pattern + 1]]`.
    """

    which: Ints
    counts: Floats
    begins: Ints
    active: Ints
    owners: Ints
    levels: Ints

    def without(self, variable: int) -> tuple[Ints, Ints, int]:
        """Leave out the columns of a variable; return begins, active and the number of columns left."""
        from unless.kernels.logistic import without

        kept = self.owners != variable
        begins, active = np.empty_like(self.begins), np.empty_like(self.active)
        n_active = without(self.begins, self.active, places_among(kept), begins, active)
        return begins, active[:n_active], int(kept.sum())


def places_among(kept: npt.NDArray[np.bool_]) -> Ints:
    """Return the place of each among those kept, and -1 for the others."""
    return np.where(kept, np.cumsum(kept) - 1, -1)


def patterns_of(table: Table, part: Part, target: int, blanket: tuple[int, ...]) -> Patterns:
    """Count the target's levels for each distinct value of a blanket."""
    from unless.kernels.patterns import count_levels, lay_out, number

    variables = np.array(blanket, dtype=np.int64)
    sizes = table.sizes[variables]
    most = int(sizes.max(initial=1))
    n_rows, n_columns = len(part.rows), 1 + int((sizes - 1).sum())
    which = np.empty(n_rows, dtype=np.int64)
    room = np.empty(max(_PLACES, most) * n_rows + most, dtype=np.int64)
    n_patterns = number(table.codes, part.rows, variables, table.sizes, which, room)
    owners, levels = np.empty((2, n_columns), dtype=np.int64)
    begins = np.empty(n_patterns + 1, dtype=np.int64)
    active = np.empty(n_patterns * (len(blanket) + 1), dtype=np.int64)
    n_columns = lay_out(
        table.codes,
        part.rows,
        variables,
        table.references,
        which,
        np.empty((n_patterns, len(blanket)), dtype=np.int64),
        np.empty((len(blanket), most), dtype=np.int64),
        owners,
        levels,
        begins,
        active,
    )
    counts = np.zeros((n_patterns, table.n_levels[target]))
    count_levels(table.codes, part.rows, target, table.counts, which, counts)
    return Patterns(which, counts, begins, active, owners[:n_columns], levels[:n_columns])
