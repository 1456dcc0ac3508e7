"""The table of a pair at each level of its gate, with intervals: what a picture of a link shows."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy import special

from unless.data.dataset import Dataset
from unless.data.domain import Context
from unless.knowledge.evidence import Evidence, Levels, settle, weigh
from unless.knowledge.gates import Gate
from unless.knowledge.measures import CONFIDENCE
from unless.knowledge.statements import Statement
from unless.knowledge.strata import Counter
from unless.structures.regions import Region

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
# More combinations of gate levels than this are shown as the two sides of the gate.
MOST_SLICES = 12


@dataclass(frozen=True, kw_only=True)
class Slice:
    """A pair in some contexts: `where` they are, what the test says there alone, and the table (a x b).

    `is_linked` tells on which side of the gate they are; None where there is no gate. `low` and `high` are
    the 95 % limits of the share of each level of a among the rows with a level of b, after Wilson. A single
    look needs no correction: q is p.
    """

    where: tuple[Region, ...]
    is_linked: bool | None
    evidence: Evidence
    table: Integers
    low: Floats
    high: Floats


class Slicer:
    """Cuts the tables of statements by the levels of their gates."""

    def __init__(self, data: Dataset, alpha: float = 0.05, effect: float = 0.3) -> None:
        self.data = data
        self.levels = Levels(alpha, alpha, effect)
        self.counter = Counter(data)

    def slices(self, statement: Statement) -> tuple[Slice, ...]:
        """Return one slice for each observed combination of levels of the gate, or one for all rows."""
        if statement.gate is None:
            return (self._slice(statement, (), None),)
        parts = [
            (where, is_linked, inside)
            for where, is_linked in self._parts(statement.gate)
            if (inside := self._inside(where)).any()
        ]
        return tuple(self._slice(statement, where, is_linked) for where, is_linked, _ in parts)

    def _parts(self, gate: Gate) -> list[tuple[tuple[Region, ...], bool]]:
        domain = self.data.domain
        levels = [domain[name].levels for name in gate.names]
        if np.prod([len(one) for one in levels], dtype=np.float64) > MOST_SLICES:
            return [(gate.linked, True), (gate.unlinked, False)]
        cells = [Context(zip(gate.names, labels, strict=True)) for labels in product(*levels)]
        return [
            ((Region.of(domain, {name: [label] for name, label in cell.items()}),), _is_in(cell, gate.linked))
            for cell in cells
        ]

    def _inside(self, where: tuple[Region, ...]) -> npt.NDArray[np.bool_]:
        masks = [region.holds(self.data.domain, self.data.rows) for region in where]
        return np.asarray(np.logical_or.reduce(masks))

    def _slice(self, statement: Statement, where: tuple[Region, ...], is_linked: bool | None) -> Slice:
        domain = self.data.domain
        pair = domain.index(statement.pair[0]), domain.index(statement.pair[1])
        counted = self.counter.count(*pair, (), self._inside(where) if where else None)
        evidence = weigh(counted, pair, domain, self.levels)
        table = counted.tables.sum(axis=0)
        low, high = wilson(table, table.sum(axis=0, keepdims=True))
        settled = settle(evidence, evidence.p, self.levels.fdr, self.levels)
        return Slice(where=where, is_linked=is_linked, evidence=settled, table=table, low=low, high=high)


def wilson(counts: Integers, totals: Integers) -> tuple[Floats, Floats]:
    """Return the limits of shares after Wilson; 0 to 1 where nothing was counted.

    >>> low, high = wilson(np.array([0, 5]), np.array([10, 10]))
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.237], [0.278, 0.763])
    """
    z = float(special.ndtri((1 + CONFIDENCE) / 2))
    n = np.where(totals > 0, totals, 1).astype(np.float64)
    share = counts / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    low = np.where(totals > 0, np.clip(centre - half, 0, 1), 0.0)
    high = np.where(totals > 0, np.clip(centre + half, 0, 1), 1.0)
    return np.where(counts > 0, low, 0.0), np.where(counts < totals, high, 1.0)


def _is_in(cell: Context, regions: tuple[Region, ...]) -> bool:
    return any(all(cell[name] in labels for name, labels in region.conditions) for region in regions)
