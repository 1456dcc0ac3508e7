"""Score tests: what a variable would add to a logistic regression that does not have it."""

import numpy as np

from unless.independence.logistic import NOTHING, Floats, Statistic
from unless.learners.parts import Part, Table
from unless.learners.patterns import Ints, Patterns, places_among

# A column of which no more than this share is left unexplained has nothing of its own to say.
EXPLAINED = 1e-7


class Score:
    """What is left of a target once a regression on a blanket has spoken, pattern by pattern of the blanket.

    `chances` (pattern x level but the reference) are what the regression expects, `covariance` is the inverse
    of its information, and `levels` are those of the target, the reference first.
    """

    def __init__(
        self,
        table: Table,
        part: Part,
        target: int,
        patterns: Patterns,
        chances: Floats,
        covariance: Floats,
        levels: list[int],
    ) -> None:
        self.table, self.patterns, self.chances = table, patterns, chances
        self.covariance = np.ascontiguousarray(covariance)
        self.level_of = np.full(table.n_levels[target], -1, dtype=np.int64)
        self.level_of[levels[1:]] = np.arange(len(levels) - 1)
        self.counted = table.codes, part.rows, target, table.counts, patterns.which

    def variables(self, variables: list[int]) -> list[Statistic]:
        """Test one variable after another by the indicators of its levels."""
        from unless.kernels.patterns import count_indicators
        from unless.kernels.scores import score_variables

        chosen = np.array(variables, dtype=np.int64)
        widths, n_free = self.table.n_free[chosen], self.chances.shape[1]
        ends = np.append(0, np.cumsum(widths))
        seen, shown = np.zeros((len(self.chances), int(ends[-1]))), np.zeros((int(ends[-1]), n_free))
        count_indicators(*self.counted, chosen, ends, self.table.free_of, self.level_of, seen, shown)
        sizes = n_free * widths
        slopes, variances = np.empty(int(sizes.sum())), np.empty(int((sizes**2).sum()))
        found = np.empty((len(variables), 2))
        score_variables(*self._regression, seen, shown, ends, EXPLAINED, slopes, variances, found)
        tests = [Statistic(value, int(df)) for value, df in found.tolist()]
        for place in np.flatnonzero(found[:, 1] < 0).tolist():
            at, begin, size = int((sizes[:place] ** 2).sum()), int(sizes[:place].sum()), int(sizes[place])
            own = self._own(seen[:, ends[place] : ends[place + 1]])
            tests[place] = _known_part(slopes[begin : begin + size], variances[at : at + size**2], own)
        return tests

    def gate(self, gate: int) -> Statistic:
        """Test that all columns but the gate's have the same weights at all its levels."""
        from unless.kernels.patterns import count_gate
        from unless.kernels.scores import score_gate

        (n_patterns, n_free), n_levels = self.chances.shape, int(self.table.n_free[gate])
        seen, shown = np.zeros((n_patterns, n_levels)), np.zeros((n_patterns, n_levels, n_free))
        count_gate(*self.counted, gate, self.table.free_of[gate], self.level_of, seen, shown)
        kept = self.patterns.owners != gate
        size = n_free * n_levels * int(kept.sum())
        slope, variance, found = np.empty(size), np.empty(size * size), np.empty(2)
        score_gate(*self._regression, seen, shown, places_among(kept), EXPLAINED, slope, variance, found)
        if found[1] >= 0:
            return Statistic(float(found[0]), int(found[1]))
        # The column that is always on has the largest variance.
        return _known_part(slope, variance, self._own(seen))

    @property
    def _regression(self) -> tuple[Ints, Ints, Floats, Floats]:
        return self.patterns.begins, self.patterns.active, self.chances, self.covariance

    def _own(self, seen: Floats) -> float:
        """Return the largest variance of indicators before the regression explains a part of it."""
        return float((seen.T @ (self.chances * (1 - self.chances))).max())


def _known_part(slope: Floats, variance: Floats, own: float) -> Statistic:
    """Divide slopes by their variance as far as it is more than what rounding leaves."""
    if not len(slope):
        return NOTHING
    sizes, axes = np.linalg.eigh(variance.reshape(len(slope), len(slope)))
    kept = sizes > EXPLAINED * max(1.0, own)
    turned = axes.T @ slope
    return Statistic(float((turned[kept] ** 2 / sizes[kept]).sum()), int(kept.sum()))
