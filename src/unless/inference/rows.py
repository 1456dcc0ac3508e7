"""Tables read with the variables and levels of a model, so that codes mean the same in both."""

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Domain, shorten
from unless.errors import UnknownLevel, UnknownName


def read_rows(domain: Domain, X: object) -> Dataset:
    """Read a Dataset, a frame or a file as rows of a domain; columns it does not know are left out."""
    if isinstance(X, Dataset):
        return X if X.domain == domain else _recoded(domain, X)
    from unless.data.read import read

    return read(X, columns=domain.names, levels=domain)


def _recoded(domain: Domain, data: Dataset) -> Dataset:
    missing = [name for name in domain.names if name not in data.domain]
    if missing:
        raise UnknownName(f"The table has no column {shorten(missing)}, of which the model speaks.")
    columns = []
    for variable in domain:
        column = data.rows[:, data.domain.index(variable.name)]
        known = {label: code for code, label in enumerate(variable.levels)}
        codes = np.array([known.get(label, -1) for label in data.domain[variable.name].levels])
        strange = [data.domain[variable.name].levels[code] for code in np.unique(column[codes[column] < 0])]
        if strange:
            raise UnknownLevel(
                f"Column {variable.name!r} holds {shorten(strange)}, which the model does not know; its "
                f"levels are {shorten(variable.levels)}."
            )
        columns.append(codes[column])
    return Dataset.from_codes(domain, np.column_stack(columns), data.counts, data.notes)
