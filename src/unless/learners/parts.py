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
        # Variable by variable: a regression reads a few of them, from top to bottom.
        self.codes = np.ascontiguousarray(data.rows.T, dtype=np.int32)
        # Row by row: many variables are counted in one go.
        self.by_row = np.ascontiguousarray(data.rows, dtype=np.int32)
        self.counts: Floats = data.counts.astype(np.float64)
        self.n_levels: list[int] = data.domain.n_levels.tolist()
        self.sizes = np.array(self.n_levels, dtype=np.int64)
        weighted = [
            np.bincount(column, weights=self.counts, minlength=size)
            for column, size in zip(self.codes, self.n_levels, strict=True)
        ]
        # Weights are told against the most frequent level, the same in every part.
        self.reference = [int(np.argmax(counts)) for counts in weighted]
        self.used = [np.flatnonzero(counts).tolist() for counts in weighted]
        self._parts: dict[tuple[int, tuple[int, ...]], Part] = {}
        self.references = np.array(self.reference, dtype=np.int64)
        # There is an indicator for each level that is used but the reference.
        self.n_free = np.array([len(levels) - 1 for levels in self.used], dtype=np.int64)
        self.free = [
            np.array([level for level in levels if level != reference], dtype=np.int64)
            for levels, reference in zip(self.used, self.reference, strict=True)
        ]

    @cached_property
    def whole(self) -> Part:
        """All rows."""
        return Part((), np.arange(self.codes.shape[1]))

    def narrowed(self, part: Part, variable: int, levels: tuple[int, ...]) -> Part:
        """Keep the rows in which a variable has one of some levels."""
        if not part.conditions and len(levels) == 1:
            return self._at(variable, levels)
        return self._narrowed(part, variable, levels)

    def _at(self, variable: int, levels: tuple[int, ...]) -> Part:
        # Every variable asks for these.
        key = variable, levels
        if key not in self._parts:
            self._parts[key] = self._narrowed(self.whole, variable, levels)
        return self._parts[key]

    def _narrowed(self, part: Part, variable: int, levels: tuple[int, ...]) -> Part:
        from unless.kernels.patterns import narrow

        wanted = np.zeros(self.n_levels[variable], dtype=np.bool_)
        wanted[list(levels)] = True
        kept = np.empty_like(part.rows)
        n_kept = narrow(self.codes[variable], part.rows, wanted, kept)
        conditions = tuple(sorted({**dict(part.conditions), variable: levels}.items()))
        return Part(conditions, kept[:n_kept].copy())

    def levels_in(self, part: Part, variable: int) -> list[int]:
        """Return the levels that a variable shows in a part."""
        from unless.kernels.patterns import find_levels

        seen = np.zeros(self.n_levels[variable], dtype=np.bool_)
        find_levels(self.codes[variable], part.rows, seen)
        return [level for level, is_seen in enumerate(seen.tolist()) if is_seen]

    def n_rows(self, part: Part) -> int:
        """Return the number of rows of a part, repeated ones included."""
        return int(self.counts[part.rows].sum())
