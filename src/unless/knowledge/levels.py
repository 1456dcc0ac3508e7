"""Unions of partial contexts, each variable with the levels it may have, said as briefly as they can be."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Rows
from unless.data.domain import Domain
from unless.structures.regions import Region

# By variable, the levels it may have; what may be anything is left out.
Box = dict[int, frozenset[int]]


def merged(boxes: Sequence[Box]) -> list[Box]:
    """Join boxes that differ in the levels of one variable, until none do."""
    left = list(boxes)
    for place, one in enumerate(left):
        for other in left[place + 1 :]:
            differ = [v for v in one if one[v] != other.get(v)]
            if one.keys() == other.keys() and len(differ) == 1:
                (variable,) = differ
                joined = {**one, variable: one[variable] | other[variable]}
                return merged([joined, *(box for box in left if box is not one and box is not other)])
    return left


def shortened(boxes: Sequence[Box], others: Sequence[Box], domain: Domain) -> list[Box]:
    """Drop conditions as long as a box does not reach into the others, and boxes that say nothing new."""
    short = [_relaxed(box, others, domain) for box in boxes]
    kept: list[Box] = []
    for place, box in enumerate(short):
        rest = [*kept, *short[place + 1 :]]
        if not any(_contains(other, box) for other in rest):
            kept.append(box)
    return kept


def as_regions(boxes: Sequence[Box], domain: Domain) -> tuple[Region, ...]:
    """Name boxes, those with the fewest conditions first."""
    regions = [
        Region.of(
            domain,
            {
                domain.names[variable]: [domain.variables[variable].levels[code] for code in sorted(codes)]
                for variable, codes in box.items()
            },
        )
        for box in boxes
    ]
    return tuple(sorted(regions, key=lambda region: (len(region.conditions), region.conditions)))


def _relaxed(box: Box, others: Sequence[Box], domain: Domain) -> Box:
    everything = {variable: frozenset(range(int(domain.n_levels[variable]))) for variable in box}
    relaxed = {variable: codes for variable, codes in box.items() if codes != everything[variable]}
    for variable in sorted(relaxed, key=lambda one: domain.names[one]):
        wider = {one: codes for one, codes in relaxed.items() if one != variable}
        if not any(_overlap(wider, other) for other in others):
            relaxed = wider
    return relaxed


def _overlap(one: Box, other: Box) -> bool:
    return all(codes & other[variable] for variable, codes in one.items() if variable in other)


def _contains(outer: Box, inner: Box) -> bool:
    return all(variable in inner and inner[variable] <= codes for variable, codes in outer.items())


def holds(box: Box, rows: Rows, domain: Domain) -> npt.NDArray[np.bool_]:
    """Tell, for each row of codes, whether it is in a box."""
    inside = np.ones(len(rows), dtype=np.bool_)
    for variable, codes in box.items():
        allowed = np.zeros(int(domain.n_levels[variable]), dtype=np.bool_)
        allowed[sorted(codes)] = True
        inside &= allowed[rows[:, variable]]
    return inside
