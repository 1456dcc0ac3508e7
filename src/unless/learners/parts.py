"""A table as regressions read it, and the parts of it that meet conditions."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.structures.distinct import Positions

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
# A variable and the levels it may have, in the order of variables.
Conditions = tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of a table that meet some conditions."""

    conditions: Conditions
    rows: Positions

    def meets(self, other: "Part") -> "Part":
        """Return the rows in both."""
        if self.conditions == other.conditions:
            return self
        allowed = {**dict(self.conditions)}
        for variable, levels in other.conditions:
            known = allowed.get(variable, levels)
            allowed[variable] = tuple(level for level in known if level in levels)
        rows = np.intersect1d(self.rows, other.rows, assume_unique=True)
        return Part(tuple(sorted(allowed.items())), rows)


class Table:
    """A dataset as regressions read it."""

    def __init__(self, data: Dataset) -> None:
        self.codes: Codes = np.ascontiguousarray(data.rows, dtype=np.int64)
        self.counts: Floats = data.counts.astype(np.float64)
        self.n_levels: list[int] = data.domain.n_levels.tolist()
        weighted = [
            np.bincount(column, weights=self.counts, minlength=size)
            for column, size in zip(self.codes.T, self.n_levels, strict=True)
        ]
        # Weights are told against the most frequent level, the same in every part.
        self.reference = [int(np.argmax(counts)) for counts in weighted]
        self.used = [np.flatnonzero(counts).tolist() for counts in weighted]
        self._columns()

    def _columns(self) -> None:
        """Lay out an indicator for each level but the reference, variable by variable."""
        n = len(self.n_levels)
        self.free = [[level for level in self.used[v] if level != self.reference[v]] for v in range(n)]
        self.begins = np.append(0, np.cumsum([len(levels) for levels in self.free]))
        self.indicators = np.zeros((len(self.codes), int(self.begins[-1])))
        for variable, levels in enumerate(self.free):
            for place, level in enumerate(levels, int(self.begins[variable])):
                self.indicators[:, place] = self.codes[:, variable] == level

    @cached_property
    def whole(self) -> Part:
        """All rows."""
        return Part((), np.arange(len(self.codes)))

    def columns_of(self, variables: list[int]) -> tuple[Positions, list[int]]:
        """Return the places of the indicators of some variables, and where those of each begin."""
        places = [np.arange(self.begins[v], self.begins[v + 1]) for v in variables]
        begins = np.append(0, np.cumsum([len(one) for one in places])).astype(np.int64)
        return np.concatenate([*places, np.zeros(0, dtype=np.int64)]), begins.tolist()

    def narrowed(self, part: Part, variable: int, levels: tuple[int, ...]) -> Part:
        """Keep the rows in which a variable has one of some levels."""
        inside = np.isin(self.codes[part.rows, variable], levels)
        conditions = tuple(sorted({**dict(part.conditions), variable: levels}.items()))
        return Part(conditions, part.rows[inside])

    def levels_in(self, part: Part, variable: int) -> list[int]:
        """Return the levels that a variable shows in a part."""
        seen = np.bincount(self.codes[part.rows, variable], minlength=self.n_levels[variable])
        return [int(level) for level in np.flatnonzero(seen)]

    def n_rows(self, part: Part) -> int:
        """Return the number of rows of a part, repeated ones included."""
        return int(self.counts[part.rows].sum())
