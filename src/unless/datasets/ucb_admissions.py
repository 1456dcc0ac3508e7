"""Berkeley admissions, 1973."""

import numpy as np

from unless.data.dataset import Dataset
from unless.datasets.tabulated import from_table

# Applicants by department, gender (male, female) and decision (admitted, rejected).
_COUNTS = np.array(
    [
        [[512, 313], [89, 19]],
        [[353, 207], [17, 8]],
        [[120, 205], [202, 391]],
        [[138, 279], [131, 244]],
        [[53, 138], [94, 299]],
        [[22, 351], [24, 317]],
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
    return from_table(levels, _COUNTS.transpose(2, 1, 0))
