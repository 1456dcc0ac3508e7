"""Which cells a run consists of: a reading, a truth, a size and a contestant each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

from studies.paper.readings import CONTESTANTS, HEADLINE, READINGS, reading_named
from unless.errors import SettingError

Shape = Literal["complete", "chain", "grid"]
SIZES = (20, 40, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
# One sample a network, of which a size is the first rows.
SAMPLE = SIZES[-1]
# Divergences and comparisons go through all states.
MAX_VARIABLES = 14


@dataclass(frozen=True)
class Site:
    """A table to learn from: the first rows of the sample of one network, under one reading."""

    reading: str
    shape: Shape
    n_variables: int
    network: int
    size: int


@dataclass(frozen=True)
class Cell:
    """One contestant on one table: what a file keeps."""

    site: Site
    contestant: str

    @property
    def name(self) -> str:
        """A name for its file, in the order of the plan when sorted."""
        site = self.site
        place = f"{site.shape}-n{site.n_variables:02d}-{site.network:02d}-N{site.size:06d}"
        return f"{site.reading}/{place}-{self.contestant}"


@dataclass(frozen=True)
class Study:
    """All contestants on all combinations of sizes and networks."""

    readings: tuple[str, ...] = (HEADLINE.name,)
    shapes: tuple[Shape, ...] = ("complete",)
    n_variables: tuple[int, ...] = (6, 7, 8, 9)
    sizes: tuple[int, ...] = SIZES
    n_networks: int = 10
    contestants: tuple[str, ...] = CONTESTANTS

    def cells(self) -> Iterator[Cell]:
        """List the cells, table by table."""
        numbers = range(self.n_networks)
        for place in product(self.readings, self.shapes, self.n_variables, numbers, self.sizes):
            changes = reading_named(place[0]).changes
            for contestant in self.contestants:
                if contestant in changes:
                    yield Cell(Site(*place), contestant)


@dataclass(frozen=True)
class Plan:
    """The paper's study under every reading, and the same for more variables."""

    main: Study
    large: Study | None

    def cells(self) -> list[Cell]:
        """List all cells."""
        return [*self.main.cells(), *(self.large.cells() if self.large else ())]


_ALL_READINGS = tuple(reading.name for reading in READINGS)
LARGE = Study(
    shapes=("chain", "grid"),
    n_variables=(15, 20, 30),
    sizes=(500, 2_000, 10_000),
    n_networks=3,
    contestants=tuple(one for one in CONTESTANTS if one != "canonical"),
)
FULL = Plan(Study(readings=_ALL_READINGS), LARGE)
QUICK = Plan(
    Study(readings=_ALL_READINGS, sizes=(20, 100, 1_000, 10_000), n_networks=2),
    replace(LARGE, n_variables=(15,), sizes=(500, 2_000), n_networks=1),
)


def make_plan(
    *,
    quick: bool = False,
    sizes: Sequence[int] | None = None,
    n_networks: int | None = None,
    contestants: Sequence[str] | None = None,
    n_variables: Sequence[int] | None = None,
) -> Plan:
    """Return the full or the quick plan; one that is narrowed is the paper's study alone."""
    plan = QUICK if quick else FULL
    wishes: dict[str, Any] = {
        "sizes": _in_range("--sizes", sizes, 10, SAMPLE),
        "n_variables": _in_range("--variables", n_variables, 3, MAX_VARIABLES),
        "contestants": _checked_contestants(contestants),
        "n_networks": None if n_networks is None else _in_range("--reps", [n_networks], 1, 1_000)[0],
    }
    given = {name: value for name, value in wishes.items() if value is not None}
    return Plan(replace(plan.main, **given), None) if given else plan


def _in_range(option: str, numbers: Sequence[int] | None, least: int, most: int) -> Any:
    for number in numbers or ():
        if not least <= number <= most:
            raise SettingError(f"{option} {number} must be from {least} to {most:,}.")
    return tuple(sorted(set(numbers))) if numbers else None


def _checked_contestants(contestants: Sequence[str] | None) -> tuple[str, ...] | None:
    known = {one.lower(): one for one in CONTESTANTS}
    for one in contestants or ():
        if one.lower() not in known:
            raise SettingError(f"--learners {one!r} is not known; there are {', '.join(CONTESTANTS)}.")
    asked = {one.lower() for one in contestants or ()}
    return tuple(one for one in CONTESTANTS if one.lower() in asked) or None
