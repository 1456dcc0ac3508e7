"""Counting the contexts in unions of partial contexts, exactly, without going through all of them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from unless.errors import TooLarge
from unless.structures.conditions import Box

Boxes = frozenset[Box]
# What is left of a pair is counted cell by cell once it has no more cells than this.
MAX_CELLS = 2**14
# A step is a condition of a partial context that is looked at: half a minute of them, at most.
MAX_STEPS = 2**25


class Work:
    """Counts steps, so that what would take hours is refused and not begun."""

    def __init__(self, n_pairs: int, n_contexts: int) -> None:
        self.n_pairs = n_pairs
        self.n_contexts = n_contexts
        self.n_done = 0
        self.n_steps = 0

    def spend(self, n_steps: int) -> None:
        """Count; refuse beyond the limit."""
        self.n_steps += n_steps
        if self.n_steps > MAX_STEPS:
            estimate = self.n_steps * self.n_pairs / (self.n_done + 1)
            raise TooLarge(
                f"Comparing in all 2^{self.n_contexts.bit_length() - 1} contexts needs about {estimate:.1g} "
                f"steps, more than the {MAX_STEPS:.1g} allowed; give contexts=, such as the table."
            )


class Counting:
    """Counts the complete contexts that lie in one union of boxes, in another, and in both."""

    def __init__(self, n_levels: npt.NDArray[np.int64], work: Work) -> None:
        self._n_levels: list[int] = n_levels.tolist()
        self._n_contexts = prod(self._n_levels)
        self._work = work
        self._known: dict[tuple[Boxes, Boxes], tuple[int, int, int]] = {}

    def count(self, first: Sequence[Box], second: Sequence[Box]) -> tuple[int, int, int]:
        """Return the numbers of contexts in the first, in the second and in both."""
        asked = _reduced(first), _reduced(second)
        if asked not in self._known:
            n_inside, found = self._count(*asked, {})
            self._known[asked] = _times(found, self._n_contexts // n_inside)
        return self._known[asked]

    def _count(
        self,
        first: Boxes,
        second: Boxes,
        seen: dict[tuple[Boxes, Boxes], tuple[int, tuple[int, int, int]]],
    ) -> tuple[int, tuple[int, int, int]]:
        """Return the number of contexts of the variables spoken of, and the three counts among them."""
        known = seen.get((first, second))
        if known is not None:
            return known
        mentions = Counter(variable for box in (*first, *second) for variable, _ in box)
        variables = sorted(mentions)
        n_inside = prod(self._n_levels[variable] for variable in variables)
        self._work.spend(mentions.total() + len(first) + len(second) + 1)
        if n_inside <= MAX_CELLS:
            found = self._by_cells(first, second, variables)
        else:
            # What most boxes speak of makes them shorter, and is often a gate that ends many of them.
            split = min(variables, key=lambda variable: (-mentions[variable], variable))
            found = (0, 0, 0)
            for level, n_alike in self._alike(first | second, split):
                parts = _given(first, split, level), _given(second, split, level)
                n_part, counts = self._count(*parts, seen)
                share = n_inside // self._n_levels[split] // n_part * n_alike
                found = _plus(found, _times(counts, share))
        seen[first, second] = n_inside, found
        return n_inside, found

    def _alike(self, boxes: Boxes, variable: int) -> list[tuple[int, int]]:
        """Return one level of each kind that the boxes tell apart, and how many are of that kind."""
        masks = sorted({levels for box in boxes for one, levels in box if one == variable})
        kinds: dict[tuple[int, ...], list[int]] = {}
        for level in range(self._n_levels[variable]):
            kinds.setdefault(tuple(mask >> level & 1 for mask in masks), []).append(level)
        return [(levels[0], len(levels)) for levels in kinds.values()]

    def _by_cells(self, first: Boxes, second: Boxes, variables: list[int]) -> tuple[int, int, int]:
        """Hold a bit for each context of the variables, all of them in one number."""
        sizes = [self._n_levels[variable] for variable in variables]
        n_cells = prod(sizes)
        # How many cells lie between one level of a variable and the next.
        strides = {variable: prod(sizes[axis + 1 :]) for axis, variable in enumerate(variables)}
        unions = []
        for boxes in (first, second):
            union = 0
            for box in boxes:
                cells = (1 << n_cells) - 1
                for variable, levels in box:
                    cells &= _cells(n_cells, strides[variable], self._n_levels[variable], levels)
                union |= cells
            unions.append(union)
        one, other = unions
        return one.bit_count(), other.bit_count(), (one & other).bit_count()


@lru_cache(maxsize=2**12)
def _cells(n_cells: int, stride: int, n_levels: int, levels: int) -> int:
    """Return the cells in which a variable has one of some levels."""
    run = (1 << stride) - 1
    bits = sum(run << level * stride for level in range(n_levels) if levels >> level & 1)
    width = stride * n_levels
    while width < n_cells:
        bits |= bits << width
        width *= 2
    return bits & ((1 << n_cells) - 1)


def _reduced(boxes: Iterable[Box]) -> Boxes:
    # Where everything is in, nothing else matters.
    reduced = frozenset(boxes)
    return frozenset({()}) if () in reduced else reduced


def _given(boxes: Boxes, variable: int, level: int) -> Boxes:
    """Fix a variable: drop what contradicts, and leave the variable out of the rest."""
    return _reduced(
        tuple(pair for pair in box if pair[0] != variable)
        for box in boxes
        if all(one != variable or levels >> level & 1 for one, levels in box)
    )


def _times(counts: tuple[int, int, int], factor: int) -> tuple[int, int, int]:
    return counts[0] * factor, counts[1] * factor, counts[2] * factor


def _plus(one: tuple[int, int, int], other: tuple[int, int, int]) -> tuple[int, int, int]:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]
