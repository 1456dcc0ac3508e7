"""Where a pair is linked and where it is not, by levels of other columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unless.data.domain import Domain
from unless.data.showing import html_table
from unless.structures.labelled import Region, spoken


@dataclass(frozen=True)
class Gate:
    """The contexts in which a pair is linked, and the others; every context is in one of them.

    Regions of one side may overlap, because that is shorter: Sex = Female, or Class = 3rd.
    """

    linked: tuple[Region, ...]
    unlinked: tuple[Region, ...]

    @classmethod
    def of(cls, domain: Domain, clauses: Sequence[tuple[int, Sequence[int]]]) -> "Gate":
        """Open a gate where columns (positions) have some levels (codes), all of them."""
        inside, outside = {}, []
        for column, codes in clauses:
            variable = domain.variables[column]
            inside[variable.name] = [variable.levels[code] for code in codes]
            others = [label for code, label in enumerate(variable.levels) if code not in codes]
            outside.append(Region.of(domain, {variable.name: others}))
        outside.sort(key=lambda region: region.conditions)
        return cls((Region.of(domain, inside),), tuple(outside))

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that decide, sorted."""
        return tuple(sorted({name for region in (*self.linked, *self.unlinked) for name in region.names}))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "linked": [region.to_dict() for region in self.linked],
            "not_linked": [region.to_dict() for region in self.unlinked],
        }

    def _repr_html_(self) -> str:
        rows = [
            (side, str(region))
            for side, regions in (("linked", self.linked), ("elsewhere", self.unlinked))
            for region in regions
        ]
        return html_table(f"Gate: {', '.join(map(spoken, self.names))}", ("side", "where"), rows)
