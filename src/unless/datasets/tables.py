"""The bundled tables: Berkeley admissions and the Titanic, written out as counts, and what they show."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.errors import UnknownName
from unless.typing import Integers

# Applicants by department, gender (male, female) and decision (admitted, rejected).
_UCB_ADMISSIONS = np.array(
    [
        [[512, 313], [89, 19]],
        [[353, 207], [17, 8]],
        [[120, 205], [202, 391]],
        [[138, 279], [131, 244]],
        [[53, 138], [94, 299]],
        [[22, 351], [24, 317]],
    ]
)
# People by class (1st, 2nd, 3rd, crew), sex (male, female), age (child, adult) and survival (no, yes).
_TITANIC = np.array(
    [
        [[[0, 5], [118, 57]], [[0, 1], [4, 140]]],
        [[[0, 11], [154, 14]], [[0, 13], [13, 80]]],
        [[[35, 13], [387, 75]], [[17, 14], [89, 76]]],
        [[[0, 0], [670, 192]], [[0, 0], [3, 20]]],
    ]
)


def load_ucb_admissions() -> Dataset:
    """Load the 4,526 applications to the six largest graduate departments of Berkeley in 1973.

    Admission depends on gender in department A and in no other.

    Bickel, P. J., Hammel, E. A., O'Connell, J. W. (1975). Sex bias in graduate admissions: data from
    Berkeley. Science 187, 398-403.
    """
    levels = {
        "Admit": ("Admitted", "Rejected"),
        "Gender": ("Male", "Female"),
        "Dept": ("A", "B", "C", "D", "E", "F"),
    }
    return _from_counts(levels, _UCB_ADMISSIONS.transpose(2, 1, 0))


def load_titanic() -> Dataset:
    """Load the 2,201 people aboard the Titanic; no child of 1st or 2nd class died.

    Dawson, R. J. M. (1995). The "Unusual Episode" data revisited. Journal of Statistics Education 3(3).
    The crew had no children. Counts by the British Board of Trade inquiry of 1912.
    """
    levels = {
        "Class": ("1st", "2nd", "3rd", "Crew"),
        "Sex": ("Male", "Female"),
        "Age": ("Child", "Adult"),
        "Survived": ("No", "Yes"),
    }
    return _from_counts(levels, _TITANIC)


def _from_counts(levels: Mapping[str, tuple[str, ...]], counts: Integers) -> Dataset:
    """Turn counts with one axis per variable into a Dataset; cells without a count are no rows."""
    domain = Domain(tuple(Variable(name, labels, "category") for name, labels in levels.items()))
    return Dataset.from_codes(domain, np.argwhere(counts > 0), counts[counts > 0])


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
