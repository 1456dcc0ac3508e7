"""Which runs a study consists of: a variant, a truth, a size and a method each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

from studies.paper.methods import METHODS
from studies.paper.variants import HEADLINE, VARIANTS, variant_named
from unless.errors import SettingError

Shape = Literal["complete", "chain", "grid"]
SIZES = (20, 40, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
# One sample a network, of which a size is the first rows.
SAMPLE = SIZES[-1]
# Divergences and comparisons go through all states.
MAX_VARIABLES = 14


@dataclass(frozen=True)
class Table:
    """A table to learn from: the first rows of the sample of one network, under one variant."""

    variant: str
    shape: Shape
    n_variables: int
    network: int
    size: int


@dataclass(frozen=True)
class Run:
    """One method on one table: what a file keeps."""

    table: Table
    method: str

    @property
    def name(self) -> str:
        """A name for its file, in the order of the plan when sorted."""
        table = self.table
        place = f"{table.shape}-n{table.n_variables:02d}-{table.network:02d}-N{table.size:06d}"
        return f"{table.variant}/{place}-{self.method}"


@dataclass(frozen=True)
class Study:
    """All methods on all combinations of sizes and networks."""

    variants: tuple[str, ...] = (HEADLINE.name,)
    shapes: tuple[Shape, ...] = ("complete",)
    n_variables: tuple[int, ...] = (6, 7, 8, 9)
    sizes: tuple[int, ...] = SIZES
    n_networks: int = 10
    methods: tuple[str, ...] = tuple(METHODS)

    def runs(self) -> Iterator[Run]:
        """List the runs, table by table."""
        numbers = range(self.n_networks)
        for place in product(self.variants, self.shapes, self.n_variables, numbers, self.sizes):
            changes, table = variant_named(place[0]).changes, Table(*place)
            work = table.n_variables**3 * table.size
            for method in self.methods:
                if method in changes and work <= METHODS[method].most_work:
                    yield Run(table, method)


@dataclass(frozen=True)
class Plan:
    """The paper's study under every variant, and the same for more variables."""

    main: Study
    large: Study | None

    def runs(self) -> list[Run]:
        """List all runs."""
        return [*self.main.runs(), *(self.large.runs() if self.large else ())]


_ALL_VARIANTS = tuple(variant.name for variant in VARIANTS)
LARGE = Study(
    shapes=("chain", "grid"),
    n_variables=(15, 20, 30),
    sizes=(500, 2_000, 10_000),
    n_networks=3,
    methods=tuple(one for one in METHODS if one != "canonical"),
)
FULL = Plan(Study(variants=_ALL_VARIANTS), LARGE)
QUICK = Plan(
    Study(variants=_ALL_VARIANTS, sizes=(20, 100, 1_000, 10_000), n_networks=2),
    replace(LARGE, n_variables=(15,), sizes=(500, 2_000), n_networks=1),
)


def make_plan(
    *,
    quick: bool = False,
    sizes: Sequence[int] | None = None,
    n_networks: int | None = None,
    methods: Sequence[str] | None = None,
    n_variables: Sequence[int] | None = None,
) -> Plan:
    """Return the full or the quick plan; one that is narrowed is the paper's study alone."""
    plan = QUICK if quick else FULL
    wishes: dict[str, Any] = {
        "sizes": _in_range("--sizes", sizes, 10, SAMPLE),
        "n_variables": _in_range("--variables", n_variables, 3, MAX_VARIABLES),
        "methods": _checked_methods(methods),
        "n_networks": None if n_networks is None else _in_range("--reps", [n_networks], 1, 1_000)[0],
    }
    given = {name: value for name, value in wishes.items() if value is not None}
    return Plan(replace(plan.main, **given), None) if given else plan


def _in_range(option: str, numbers: Sequence[int] | None, least: int, most: int) -> Any:
    for number in numbers or ():
        if not least <= number <= most:
            raise SettingError(f"{option} {number} must be from {least} to {most:,}.")
    return tuple(sorted(set(numbers))) if numbers else None


def _checked_methods(methods: Sequence[str] | None) -> tuple[str, ...] | None:
    known = {one.lower(): one for one in METHODS}
    for one in methods or ():
        if one.lower() not in known:
            raise SettingError(f"--learners {one!r} is not known; there are {', '.join(METHODS)}.")
    asked = {one.lower() for one in methods or ()}
    return tuple(one for one in METHODS if one.lower() in asked) or None
