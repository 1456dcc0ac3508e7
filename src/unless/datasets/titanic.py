"""Survival on the Titanic, 1912."""

import numpy as np

from unless.data.dataset import Dataset
from unless.datasets.tabulated import from_table

# People by class (1st, 2nd, 3rd, crew), sex (male, female), age (child, adult) and survival (no, yes).
_COUNTS = np.array(
    [
        [[[0, 5], [118, 57]], [[0, 1], [4, 140]]],
        [[[0, 11], [154, 14]], [[0, 13], [13, 80]]],
        [[[35, 13], [387, 75]], [[17, 14], [89, 76]]],
        [[[0, 0], [670, 192]], [[0, 0], [3, 20]]],
    ]
)


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
    return from_table(levels, _COUNTS)
