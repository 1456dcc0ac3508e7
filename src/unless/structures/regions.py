"""Parts of a domain: for some variables the levels they may have."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Rows
from unless.data.domain import Domain
from unless.data.showing import html_table
from unless.errors import SettingError

# What would be read as a part of the sentence that a name or level stands in, or not be seen at all.
_MISLEADING = re.compile(r"^$|^\s|\s$|[,{}\n]| (?:and|or) | = ")


def spoken(text: str) -> str:
    """Write a name or level as it is, in quotes where it would be misread: 'a, b' and ''."""
    if not _MISLEADING.search(text):
        return text
    quote = '"' if "'" in text else "'"
    return f"{quote}{text}{quote}"


@dataclass(frozen=True)
class Region:
    """All contexts in which each of some variables has one of some levels; without conditions, all there are.

    Conditions are in the order of names, their levels in the order of the domain: equal regions are equal.
    """

    conditions: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, domain: Domain, conditions: Mapping[str, Iterable[object]]) -> "Region":
        """Name the levels that variables may have; one that may have all says nothing and is left out."""
        kept = []
        for name in sorted(conditions):
            codes = sorted({domain[name].code(label) for label in conditions[name]})
            if not codes:
                raise SettingError(f"{name!r} is left no level; give at least one.")
            if len(codes) < len(domain[name].levels):
                kept.append((name, tuple(domain[name].levels[code] for code in codes)))
        return cls(tuple(kept))

    @property
    def names(self) -> tuple[str, ...]:
        """The variables with a condition."""
        return tuple(name for name, _ in self.conditions)

    def holds(self, domain: Domain, rows: Rows) -> npt.NDArray[np.bool_]:
        """Tell, for each row of codes, whether it is in here."""
        inside = np.ones(len(rows), dtype=np.bool_)
        for name, labels in self.conditions:
            variable = domain[name]
            allowed = np.zeros(len(variable.levels), dtype=np.bool_)
            allowed[[variable.levels.index(label) for label in labels]] = True
            inside &= allowed[rows[:, domain.index(name)]]
        return inside

    def to_dict(self) -> dict[str, list[str]]:
        """Return plain values: the levels of each variable with a condition."""
        return {name: list(labels) for name, labels in self.conditions}

    def __str__(self) -> str:
        return " and ".join(
            f"{spoken(name)} = {spoken(labels[0])}"
            if len(labels) == 1
            else f"{spoken(name)} in {{{', '.join(map(spoken, labels))}}}"
            for name, labels in self.conditions
        )

    def _repr_html_(self) -> str:
        rows = [(name, ", ".join(map(spoken, labels))) for name, labels in self.conditions]
        return html_table("Region" if rows else "Region: everywhere", ("variable", "levels"), rows)
