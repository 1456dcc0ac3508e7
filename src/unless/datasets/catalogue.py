"""What the datasets room offers, described in a sentence each."""

from collections.abc import Callable
from dataclasses import dataclass

from unless.data.dataset import Dataset
from unless.datasets.titanic import load_titanic
from unless.datasets.ucb_admissions import load_ucb_admissions
from unless.errors import UnknownName


@dataclass(frozen=True, slots=True)
class Description:
    """A bundled table: its size, what it shows, where it comes from, and how to load it."""

    name: str
    n_rows: int
    n_columns: int
    about: str
    source: str
    load: Callable[[], Dataset]


DESCRIPTIONS = (
    Description(
        "ucb_admissions",
        4526,
        3,
        "Admission to Berkeley by gender and department: the two are linked in department A only.",
        "Bickel, Hammel and O'Connell, Science 187 (1975)",
        load_ucb_admissions,
    ),
    Description(
        "titanic",
        2201,
        4,
        "Survival on the Titanic by class, sex and age: no child of 1st or 2nd class died.",
        "Dawson, Journal of Statistics Education 3 (1995)",
        load_titanic,
    ),
)


def catalogue() -> dict[str, Description]:
    """Return the bundled tables by name."""
    return {description.name: description for description in DESCRIPTIONS}


def load(name: str) -> Dataset:
    """Load a bundled table by its name."""
    try:
        return catalogue()[name].load()
    except KeyError:
        raise UnknownName(f"There is no dataset {name!r}; there are {', '.join(catalogue())}.") from None
