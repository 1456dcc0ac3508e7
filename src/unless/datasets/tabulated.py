"""Contingency tables written out as arrays, one axis per variable."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable


def from_table(levels: Mapping[str, tuple[str, ...]], counts: npt.NDArray[np.int64]) -> Dataset:
    """Turn counts with one axis per variable into a Dataset; cells without a count are no rows."""
    domain = Domain(tuple(Variable(name, labels, "category") for name, labels in levels.items()))
    cells = np.argwhere(counts > 0)
    return Dataset.from_codes(domain, cells, counts[counts > 0])
