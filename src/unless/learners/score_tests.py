"""Score tests: what a variable would add to a logistic regression that does not have it."""

import numpy as np

from unless.independence.logistic import Fit, probabilities_of
from unless.independence.statistics import Floats, Statistic
from unless.learners.parts import Part, Table
from unless.learners.patterns import Ints, Patterns

# A column of which no more than this share is left unexplained has nothing of its own to say.
EXPLAINED = 1e-7


class Pairs:
    """How often the levels of variables are seen with those of a target in a part, counted once."""

    def __init__(self, table: Table, part: Part, target: int, variables: list[int]) -> None:
        self.conditions, self.variables = part.conditions, variables
        which = table.codes[target][part.rows].astype(np.int64)
        self._counts, places = _counted(table, part.rows, which, table.n_levels[target], variables)
        self._places = dict(zip(variables, places, strict=True))

    def free(self, variables: list[int]) -> Floats:
        """Give, by level of the target, the counts of the levels of variables but the most frequent."""
        return np.asarray(self._counts[:, np.concatenate([self._places[one] for one in variables])])


class Score:
    """What is left of a target once a regression on a blanket has spoken, pattern by pattern of it."""

    def __init__(self, table: Table, part: Part, target: int, patterns: Patterns, fitted: Fit) -> None:
        self.table, self.rows, self.target, self.patterns = table, part.rows, target, patterns
        self.chances = probabilities_of(patterns.columns, fitted)
        self.covariance, self.shown = np.ascontiguousarray(fitted.covariance), fitted.shown[1:]

    def variables(self, variables: list[int], pairs: Pairs) -> list[Statistic]:
        """Test one variable after another by the indicators of its levels but the most frequent."""
        from unless.kernels.regression import score_variables

        if not variables:
            return []
        by_target = pairs.free(variables)
        if len(self.chances) > 1:
            which = self.patterns.which
            counts, places = _counted(self.table, self.rows, which, len(self.chances), variables)
            seen = np.ascontiguousarray(counts.T[np.concatenate(places)])
        else:
            seen = by_target.sum(axis=0)[:, None]
        widths = self.table.n_free[variables]
        ends, sizes = _ends(widths), len(self.shown) * widths
        slopes, variances = np.empty(int(sizes.sum())), np.empty(int((sizes**2).sum()))
        found = np.empty((len(variables), 2))
        begins, active, *_ = self.patterns.columns
        shown = np.ascontiguousarray(by_target.T[:, self.shown])
        score_variables(
            begins, active, self.chances, self.covariance,
            seen, shown, ends, EXPLAINED, slopes, variances, found,
        )  # fmt: skip
        tests = [Statistic(value, int(df)) for value, df in found.tolist()]
        for place in np.flatnonzero(found[:, 1] < 0).tolist():
            at, begin, size = int((sizes[:place] ** 2).sum()), int(sizes[:place].sum()), int(sizes[place])
            variance = variances[at : at + size**2].reshape(size, size)
            tests[place] = _known_part(slopes[begin : begin + size], variance, float(found[place, 0]))
        return tests

    def gates(self, gates: list[int]) -> list[Statistic]:
        """Test, for each gate, that all columns but its own have the same weights at all its levels."""
        from unless.kernels.patterns import join
        from unless.kernels.regression import score_gate

        table, (which, columns), n_levels = self.table, self.patterns, len(self.shown) + 1
        level_of = np.full(table.n_levels[self.target], -1, dtype=np.int64)
        level_of[self.shown] = np.arange(len(self.shown))
        joined = np.empty_like(which)
        join(which, table.codes[self.target], self.rows, level_of, n_levels, joined)
        counts, places = _counted(table, self.rows, joined, len(self.chances) * n_levels, gates)
        counts = counts.reshape(len(self.chances), n_levels, -1)
        known = columns.begins, columns.active, columns.owners, self.chances, self.covariance, counts
        tests = []
        for gate, free in zip(gates, places, strict=True):
            value, df, rest = score_gate(*known, free, gate, EXPLAINED)
            known_part = (
                _known_part(rest[:, -1], rest[:, :-1], value) if df < 0 else Statistic(value, int(df))
            )
            tests.append(known_part)
        return tests


def _counted(
    table: Table, rows: Ints, which: Ints, n_kinds: int, variables: list[int]
) -> tuple[Floats, list[Ints]]:
    """Count the levels of variables by kind of row; say where, for each, those but the most frequent are."""
    from unless.kernels.patterns import count_levels

    chosen = np.array(variables, dtype=np.int64)
    ends = _ends(table.sizes[chosen])
    counts = np.zeros((n_kinds, int(ends[-1])))
    count_levels(table.by_row, rows, table.counts, which, chosen, ends, counts)
    places = [begin + table.free[one] for begin, one in zip(ends.tolist(), variables, strict=False)]
    return counts, places


def _ends(sizes: Ints) -> Ints:
    """Return where each of some begins if they follow each other, and where the last ends."""
    return np.append(0, np.cumsum(sizes))


def _known_part(slope: Floats, variance: Floats, least: float) -> Statistic:
    """Divide slopes by their variance (its lower triangle) as far as it is more than the least."""
    from unless.kernels.algebra import spectrum

    turned, sizes = np.array(slope), np.empty(len(slope))
    spectrum(np.array(variance), turned, sizes)
    kept = sizes > least
    return Statistic(float((turned[kept] ** 2 / sizes[kept]).sum()), int(kept.sum()))
