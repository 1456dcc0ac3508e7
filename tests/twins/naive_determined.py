"""The slow twin of the search for copies and functions, written to be obviously right."""

import numpy as np
from scipy.stats import chi2


def naive_may_break(n_broken, n_rows, n_wrong):
    """Tell whether so few rows break a function that it counts as one."""
    # The expected number of which n_broken, or fewer, would be seen with 1 % chance.
    upper = chi2.ppf(0.99, 2 * (n_broken + 1)) / 2
    return (
        n_broken <= 0.01 * n_rows
        and n_broken <= 0.05 * n_wrong
        and upper <= 0.1 * n_wrong
        and (n_broken == 0 or upper <= 0.01 * n_rows)
    )


def naive_determined(data):
    """Return the set of (source, column, n_broken, is_copy)."""
    found = {}
    codes = np.asarray(data.rows, dtype=np.int64)
    for source in range(data.n_variables):
        for column in range(data.n_variables):
            table = np.zeros((data.domain.n_levels[source], data.domain.n_levels[column]), dtype=np.int64)
            np.add.at(table, (codes[:, source], codes[:, column]), data.counts)
            totals = table.sum(axis=1)
            repeated = table[totals > 1].sum(axis=0)
            n_broken = table.sum() - table.max(axis=1).sum()
            n_wrong = repeated.sum() - repeated.max()
            enough = data.n_rows >= 5 * np.count_nonzero(totals)
            if source != column and enough and naive_may_break(n_broken, data.n_rows, n_wrong):
                found[source, column] = int(n_broken)
    return {(a, b, n_broken, (b, a) in found) for (a, b), n_broken in found.items()}
