"""Questions about the neighbours of one variable in a part of a table, asked by logistic regression."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from unless.independence.logistic import NO_EFFECT, NOTHING, Effect, Fit, Statistic, fit, size_of
from unless.learners.parts import Bools, Codes, Conditions, Floats, Part, Table
from unless.learners.score_tests import EXPLAINED, Score
from unless.structures.distinct import Positions

Blanket = tuple[int, ...]
# Beyond the whole table only so many are asked about: those that were nearest in it.
MAX_NEAR = 20
# Where the test by the size of weights is this clear the likelihood ratio would not change the answer; but
# large weights that seem uncertain may be those of levels that are separated.
SETTLED, UNLIKELY, LARGE_WEIGHT = 1e-8, 0.2, 3.0
# Patterns are looked up in a table, and not sorted, while it has at most so many places for each row.
_PLACES = 4


class Patterns(NamedTuple):
    """Distinct values of a blanket in a part, counts of the target's levels with each, and whose they are."""

    values: Codes
    counts: Floats
    pattern_of: Positions


class Regression:
    """A fit of the target on a blanket in a part, and whose each column is."""

    def __init__(self, fitted: Fit, owners: Codes, levels: Codes, target_levels: list[int]) -> None:
        self.fitted, self.owners, self.levels = fitted, owners, levels
        self.target_levels = target_levels
        self.log_likelihood, self.n_weights = fitted.log_likelihood, fitted.n_weights

    @cached_property
    def covariance(self) -> Floats:
        """The inverse of the information."""
        return np.asarray(np.linalg.inv(self.fitted.information))

    def effect(self, variable: int) -> Effect:
        """Return the weights of one variable of the blanket."""
        columns = np.flatnonzero(self.owners == variable)
        n_columns, n_free = self.fitted.weights.shape
        if not n_free or not len(columns):
            return NO_EFFECT
        places = (np.arange(n_free) * n_columns + columns[:, None]).ravel()
        cells = tuple(
            (level, other) for level in self.levels[columns].tolist() for other in self.target_levels[1:]
        )
        weights = self.fitted.weights[columns].ravel()
        return Effect(cells, weights, self.covariance[np.ix_(places, places)])


class Asker:
    """Answers everything that is asked about the neighbours of one variable, each question once."""

    def __init__(
        self, table: Table, target: int, allowed: Bools, required: Bools, alpha: float, max_blanket: int
    ) -> None:
        self.table, self.target, self.alpha, self.max_blanket = table, target, alpha, max_blanket
        self.allowed = allowed
        self.required: Blanket = tuple(np.flatnonzero(required).tolist())
        self.n_asked = 0
        # Those that may be neighbours somewhere; once the whole table has been seen, the nearest of them.
        self.near: list[int] = np.flatnonzero(allowed).tolist()
        self._fits: dict[tuple[Conditions, Blanket], Regression] = {}
        self._drops: dict[tuple[Conditions, Blanket, int], Statistic] = {}
        self._scores: dict[tuple[Conditions, Blanket], list[Statistic]] = {}
        self._n_scored = 0
        self._blankets: dict[Conditions, Blanket] = {}

    @property
    def n_distinct(self) -> int:
        """The number of different tests computed."""
        return len(self._drops) + self._n_scored

    def regression(self, part: Part, blanket: Blanket) -> Regression:
        """Fit the target on a blanket in a part."""
        key = part.conditions, blanket
        if key not in self._fits:
            self._fits[key] = self._fit(part, blanket)[0]
        return self._fits[key]

    def drop(self, part: Part, blanket: Blanket, variable: int) -> Statistic:
        """Test, by likelihood ratio, that a variable of the blanket can be spared."""
        self.n_asked += 1
        key = part.conditions, blanket, variable
        if key not in self._drops:
            self._drops[key] = self._dropped(part, blanket, variable)
        return self._drops[key]

    def scores(self, part: Part, blanket: Blanket) -> list[Statistic]:
        """Test, by score, for every variable that the blanket says all that it says of the target."""
        self.n_asked += len(self.near) - sum(b in blanket for b in self.near)
        key = part.conditions, blanket
        if key not in self._scores:
            self._scores[key] = self._scored(part, blanket)
            self._n_scored += len(self.near) - sum(b in blanket for b in self.near)
        return self._scores[key]

    def blanket(self, part: Part, start: Blanket = ()) -> Blanket:
        """Grow from a start by score, strongest first, then shrink by likelihood ratio, weakest first."""
        if part.conditions not in self._blankets:
            grown = self._grow(part, tuple(sorted({*start, *self.required})))
            self._blankets[part.conditions] = self._shrink(part, grown)
        return self._blankets[part.conditions]

    def effect(self, part: Part, blanket: Blanket, variable: int) -> Effect:
        """Return the weights of a variable beside a blanket, with a covariance that can be trusted.

        Where the size of the weights alone does not settle whether there are any, it is scaled so that their
        test is the likelihood ratio's.
        """
        blanket = tuple(sorted({*blanket, variable}))
        effect = self.regression(part, blanket).effect(variable)
        if not effect.cells:
            return NO_EFFECT
        size = size_of(effect)
        if size.p < SETTLED or (size.p > UNLIKELY and np.abs(effect.weights).max() < LARGE_WEIGHT):
            self.n_asked += 1
            return effect
        ratio, wald = self.drop(part, blanket, variable).value, size.value
        if min(ratio, wald) <= EXPLAINED:
            return effect
        return effect._replace(covariance=effect.covariance * np.clip(wald / ratio, 0.1, 10.0))

    def _grow(self, part: Part, blanket: Blanket) -> Blanket:
        least: dict[int, float] = {}
        while len(blanket) < self.max_blanket:
            scores = self.scores(part, blanket)
            open_ones = [(scores[b].p, -scores[b].value, b) for b in self.near if b not in blanket]
            for p, _, b in open_ones:
                least[b] = min(p, least.get(b, 1.0))
            p, _, strongest = min(open_ones, default=(1.0, 0.0, 0))
            if p >= self.alpha:
                break
            blanket = tuple(sorted((*blanket, strongest)))
        if not part.conditions:
            ranked = sorted(self.near, key=lambda b: (b not in blanket, least.get(b, 1.0), b))
            self.near = sorted(ranked[: max(MAX_NEAR, len(blanket))])
        return blanket

    def _shrink(self, part: Part, blanket: Blanket) -> Blanket:
        while len(blanket) > len(self.required):
            found = self.regression(part, blanket)
            # A weight far from zero is never in doubt; one that seems near may be separated, and is asked.
            doubted = [
                b for b in blanket if b not in self.required and size_of(found.effect(b)).p >= self.alpha / 10
            ]
            p, weakest = max(((self.drop(part, blanket, b).p, b) for b in doubted), default=(0.0, 0))
            if p < self.alpha:
                break
            blanket = tuple(b for b in blanket if b != weakest)
        return blanket

    def patterns(self, part: Part, blanket: Blanket) -> Patterns:
        """Count the target's levels for each distinct value of a blanket."""
        codes, sizes = self.table.codes[part.rows], self.table.n_levels
        key, n_places = np.zeros(len(part.rows), dtype=np.int64), 1
        for variable in blanket:
            key, n_places = key * sizes[variable] + codes[:, variable], n_places * sizes[variable]
            if n_places > 2**62:
                key = np.unique(key, return_inverse=True)[1]
                n_places = len(part.rows)
        if n_places <= _PLACES * len(part.rows) + 64:
            place = np.cumsum(np.bincount(key, minlength=n_places) > 0) - 1
            which = place[key]
        else:
            which = np.unique(key, return_inverse=True)[1]
        n_patterns = int(which.max(initial=-1)) + 1
        first = np.empty(n_patterns, dtype=np.intp)
        first[which[::-1]] = np.arange(len(which))[::-1]
        size = sizes[self.target]
        counts = np.bincount(
            which * size + codes[:, self.target],
            weights=self.table.counts[part.rows],
            minlength=n_patterns * size,
        )
        by_level = counts.reshape(n_patterns, size).astype(np.float64, copy=False)
        return Patterns(codes[first][:, list(blanket)], by_level, which)

    def _fit(self, part: Part, blanket: Blanket) -> tuple[Regression, Floats, Patterns]:
        patterns = self.patterns(part, blanket)
        design, owners, levels = self._design(patterns.values, blanket)
        order = self._target_levels(patterns.counts)
        fitted = fit(design, patterns.counts[:, order])
        return Regression(fitted, owners, levels, order), design, patterns

    def _design(self, values: Codes, blanket: Blanket) -> tuple[Floats, Codes, Codes]:
        columns, owners, levels = [np.ones(len(values))], [-1], [-1]
        for place, variable in enumerate(blanket):
            present = np.unique(values[:, place]).tolist()
            reference = self.table.reference[variable]
            for level in present:
                if level != (reference if reference in present else present[0]):
                    columns.append((values[:, place] == level).astype(np.float64))
                    owners.append(variable)
                    levels.append(level)
        return np.column_stack(columns), np.array(owners), np.array(levels)

    def _target_levels(self, counts: Floats) -> list[int]:
        present = [int(level) for level in np.flatnonzero(counts.sum(axis=0))]
        reference = self.table.reference[self.target]
        first = reference if reference in present else present[0]
        return [first, *(level for level in present if level != first)]

    def _dropped(self, part: Part, blanket: Blanket, variable: int) -> Statistic:
        full = self.regression(part, blanket)
        kept = full.owners != variable
        df = int((~kept).sum()) * (len(full.target_levels) - 1)
        if not df:
            return NOTHING
        patterns = self.patterns(part, tuple(b for b in blanket if b != variable))
        design = self._design(patterns.values, tuple(b for b in blanket if b != variable))[0]
        fewer = fit(design, patterns.counts[:, full.target_levels], full.fitted.weights[kept])
        return Statistic(max(0.0, 2 * (full.log_likelihood - fewer.log_likelihood)), df)

    def _scored(self, part: Part, blanket: Blanket) -> list[Statistic]:
        tests = [NOTHING] * len(self.table.n_levels)
        found, design, patterns = self._fit(part, blanket)
        self._fits.setdefault((part.conditions, blanket), found)
        if len(found.target_levels) < 2:
            return tests
        near = [b for b in self.near if b not in blanket]
        columns, begins = self.table.columns_of(near)
        own = self.table.indicators[np.ix_(part.rows, columns)]
        seen, shown = self._counted(part, patterns, own, found.target_levels)
        score = Score(found.fitted.chances, design, found.covariance)
        for variable, test in zip(near, score.variables(seen, shown, begins), strict=True):
            tests[variable] = test
        return tests

    def _counted(
        self, part: Part, patterns: Patterns, own: Floats, levels: list[int]
    ) -> tuple[Floats, Floats]:
        """Count indicators by pattern of the blanket, and by level of the target but the first."""
        weighted = own * self.table.counts[part.rows][:, None]
        codes = self.table.codes[part.rows, self.target]
        size = self.table.n_levels[self.target]
        by_level = _sums(codes, weighted, size)
        return _sums(patterns.pattern_of, weighted, len(patterns.values)), by_level[levels[1:]].T

    def split_scores(self, part: Part, blanket: Blanket, gates: list[int]) -> list[Statistic]:
        """Test, by score, for each gate that the weights of a blanket are the same at all its levels."""
        self.n_asked += len(gates)
        found, design, patterns = self._fit(part, blanket)
        if len(found.target_levels) < 2:
            return [NOTHING] * len(gates)
        score, sizes = Score(found.fitted.chances, design, found.covariance), self.table.n_levels
        codes, counts = self.table.codes[part.rows], self.table.counts[part.rows]
        size, tests = sizes[self.target], []
        for gate in gates:
            place = (patterns.pattern_of * sizes[gate] + codes[:, gate]) * size + codes[:, self.target]
            n_places = len(patterns.values) * sizes[gate] * size
            table = np.bincount(place, weights=counts, minlength=n_places).reshape(-1, sizes[gate], size)
            table = table[:, self.table.free[gate]]
            kept = found.owners != gate
            shown = np.asarray(table[:, :, found.target_levels[1:]], dtype=np.float64)
            tests.append(score.gate(shown.sum(axis=2) + table[:, :, found.target_levels[0]], shown, kept))
        return tests


def _sums(groups: Positions, values: Floats, n_groups: int) -> Floats:
    """Add up rows by group."""
    from scipy.sparse import csr_array

    n_rows = len(groups)
    belongs = csr_array((np.ones(n_rows), (groups, np.arange(n_rows))), shape=(n_groups, n_rows))
    return np.asarray(belongs @ values)
