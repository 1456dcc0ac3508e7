"""Conjunctions of conditions as arrays, in the one form that each of them has."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.errors import SettingError
from unless.structures.distinct import Positions, row_set

# Position of the variable, code of the level, equal or not equal.
CodedCondition = tuple[int, int, bool]
# Conditions that are handled at once.
_BLOCK = 2**18
# Variable and the levels it may have, as the bits of a number, by variable; what may be anything is left out.
Box = tuple[tuple[int, int], ...]


class FeatureArrays(NamedTuple):
    """Features as arrays: feature k holds the conditions from start[k] to start[k + 1]."""

    start: npt.NDArray[np.int64]
    variable: npt.NDArray[np.int32]
    level: npt.NDArray[np.uint16]
    equal: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, features: Iterable[Iterable[CodedCondition]]) -> "FeatureArrays":
        """Lay out features one after another."""
        lists = [list(feature) for feature in features]
        start = np.zeros(len(lists) + 1, dtype=np.int64)
        np.cumsum([len(literals) for literals in lists], out=start[1:])
        flat = np.array([literal for literals in lists for literal in literals], dtype=np.int64).reshape(
            -1, 3
        )
        return cls(
            start, flat[:, 0].astype(np.int32), flat[:, 1].astype(np.uint16), flat[:, 2].astype(np.bool_)
        )

    @classmethod
    def joined(cls, parts: Iterable["FeatureArrays"]) -> "FeatureArrays":
        """Lay out several sets of features one after another."""
        everything = [cls.of(()), *parts]
        sizes = np.concatenate([np.diff(part.start) for part in everything])
        start = np.zeros(len(sizes) + 1, dtype=np.int64)
        np.cumsum(sizes, out=start[1:])
        return cls(
            start,
            np.concatenate([part.variable for part in everything]),
            np.concatenate([part.level for part in everything]),
            np.concatenate([part.equal for part in everything]),
        )

    @classmethod
    def of_equals(cls, variables: npt.ArrayLike, levels: npt.ArrayLike) -> "FeatureArrays":
        """Lay out indicators of one size: two matrices, one feature a row, all conditions "equal"."""
        scope = np.asarray(variables, dtype=np.int32)
        n_features, size = scope.shape
        start = np.arange(n_features + 1, dtype=np.int64) * size
        values = np.asarray(levels, dtype=np.uint16).ravel()
        return cls(start, scope.ravel(), values, np.ones(scope.size, dtype=np.bool_))

    @property
    def owner(self) -> Positions:
        """The feature of each condition."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def with_any(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Tell, for each feature, whether some of its conditions are among the chosen ones."""
        return np.bincount(self.owner, chosen, len(self.start) - 1) > 0

    def by_size(self) -> Iterator[tuple[Positions, Positions]]:
        """Give, for each number of conditions, its features and the matrix of their conditions' positions."""
        sizes = np.diff(self.start)
        for size in np.unique(sizes):
            features = np.flatnonzero(sizes == size)
            yield features, self.start[features][:, None] + np.arange(size)

    def blocks(self) -> Iterator["FeatureArrays"]:
        """Give the features in blocks of about as many conditions, so that no call takes long."""
        cuts = np.flatnonzero(np.diff(self.start[:-1] // _BLOCK)) + 1
        for begin, end in pairwise([0, *cuts.tolist(), len(self.start) - 1]):
            some = slice(int(self.start[begin]), int(self.start[end]))
            start = self.start[begin : end + 1] - self.start[begin]
            yield FeatureArrays(start, self.variable[some], self.level[some], self.equal[some])

    def take(self, chosen: npt.NDArray[np.bool_]) -> "FeatureArrays":
        """Return the features that are chosen, in their order."""
        sizes = np.diff(self.start)
        start = np.concatenate([[0], np.cumsum(sizes[chosen])]).astype(np.int64)
        where = np.repeat(chosen, sizes)
        return FeatureArrays(start, self.variable[where], self.level[where], self.equal[where])

    def same_as(self, other: "FeatureArrays") -> bool:
        """Tell whether two layouts are the same, number by number."""
        return (
            np.array_equal(self.start, other.start)
            and np.array_equal(self.variable, other.variable)
            and np.array_equal(self.level, other.level)
            and np.array_equal(self.equal, other.equal)
        )

    def literals(self) -> Iterator[tuple[CodedCondition, ...]]:
        """Give the conditions of one feature after another."""
        for block in self.blocks():
            flat = list(zip(block.variable.tolist(), block.level.tolist(), block.equal.tolist(), strict=True))
            for begin, end in pairwise(block.start.tolist()):
                yield tuple(flat[begin:end])


def normalised(arrays: FeatureArrays, n_levels: npt.NDArray[np.int64]) -> FeatureArrays:
    """Return the same features, each once, sorted by size, scope and values, each said in the one normal way.

    Two conjunctions that are true together are one feature: a second copy would be a second weight and so
    weaken the prior. The normal way to speak of a variable is "= v" where one level is left, else all its
    "!=".
    """
    tidied = [_tidied(_ordered(block), n_levels) for block in arrays.blocks()]
    return _sorted_set(tidied[0] if len(tidied) == 1 else FeatureArrays.joined(tidied))


def tidy(literals: Iterable[CodedCondition], n_levels: npt.NDArray[np.int64]) -> list[CodedCondition]:
    """Say a conjunction in the normal way."""
    required: dict[int, set[int]] = {}
    excluded: dict[int, set[int]] = {}
    for variable, level, equal in literals:
        (required if equal else excluded).setdefault(variable, set()).add(level)
    variables = sorted({*required, *excluded})
    return [
        literal
        for variable in variables
        for literal in _tidy_variable(
            variable, required.get(variable, set()), excluded.get(variable, set()), int(n_levels[variable])
        )
    ]


def _tidy_variable(
    variable: int, required: set[int], excluded: set[int], n_levels: int
) -> list[CodedCondition]:
    if len(required) > 1 or required & excluded or len(excluded) == n_levels:
        raise SettingError("A feature contradicts itself: its conditions leave no level of a variable.")
    if required:
        return [(variable, min(required), True)]
    if len(excluded) == n_levels - 1:
        return [(variable, next(level for level in range(n_levels) if level not in excluded), True)]
    return [(variable, level, False) for level in sorted(excluded)]


def _ordered(arrays: FeatureArrays) -> FeatureArrays:
    order = np.lexsort((arrays.level, arrays.variable, arrays.owner))
    return FeatureArrays(arrays.start, arrays.variable[order], arrays.level[order], arrays.equal[order])


def _tidied(arrays: FeatureArrays, n_levels: npt.NDArray[np.int64]) -> FeatureArrays:
    sizes = np.diff(arrays.start)
    if not sizes.all():
        raise SettingError("A feature without conditions is always true; give each at least one.")
    feature = arrays.owner
    again = (arrays.variable[1:] == arrays.variable[:-1]) & (feature[1:] == feature[:-1])
    untidy = np.zeros(len(sizes), dtype=np.bool_)
    untidy[feature[~arrays.equal]] = True
    untidy[feature[1:][again]] = True
    if not untidy.any():
        return arrays
    spoken = (
        tidy(literals, n_levels) if is_untidy else literals
        for literals, is_untidy in zip(arrays.literals(), untidy.tolist(), strict=True)
    )
    return FeatureArrays.of(spoken)


def _sorted_set(arrays: FeatureArrays) -> FeatureArrays:
    parts = []
    for _, where in arrays.by_size():
        size = where.shape[1]
        values = arrays.level[where].astype(np.uint32) * 2 + ~arrays.equal[where]
        rows = row_set(np.concatenate([arrays.variable[where].astype(np.uint32), values], axis=1))
        part = FeatureArrays.of_equals(rows[:, :size], rows[:, size:] >> 1)
        parts.append(part._replace(equal=(rows[:, size:] & 1 == 0).ravel()))
    return FeatureArrays.joined(parts)


def box_of(literals: Iterable[CodedCondition], n_levels: npt.NDArray[np.int64]) -> Box:
    """Turn the conditions of a feature into the levels they leave."""
    left: dict[int, int] = {}
    for variable, level, equal in literals:
        everything = (1 << int(n_levels[variable])) - 1
        allowed = 1 << level if equal else everything & ~(1 << level)
        left[variable] = left.get(variable, everything) & allowed
    return tuple(
        (variable, levels)
        for variable, levels in sorted(left.items())
        if levels != (1 << int(n_levels[variable])) - 1
    )
