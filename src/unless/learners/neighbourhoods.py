"""Questions about the neighbours of one variable in a part of a table, asked by logistic regression."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.independence.logistic import NO_EFFECT, NOTHING, Effect, Fit, Statistic, fit, size_of
from unless.learners.score_tests import EXPLAINED, Score
from unless.structures.distinct import Positions

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Blanket = tuple[int, ...]
# A variable and the levels it may have, in the order of variables.
Conditions = tuple[tuple[int, tuple[int, ...]], ...]
# Patterns are looked up in a table, and not sorted, while it has at most so many places for each row.
_PLACES = 4


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of a table that meet some conditions."""

    conditions: Conditions
    rows: Positions

    def meets(self, other: "Part") -> "Part":
        """Return the rows in both."""
        if self.conditions == other.conditions:
            return self
        allowed = {**dict(self.conditions)}
        for variable, levels in other.conditions:
            known = allowed.get(variable, levels)
            allowed[variable] = tuple(level for level in known if level in levels)
        rows = np.intersect1d(self.rows, other.rows, assume_unique=True)
        return Part(tuple(sorted(allowed.items())), rows)


class Table:
    """A dataset as regressions read it."""

    def __init__(self, data: Dataset) -> None:
        self.codes: Codes = np.ascontiguousarray(data.rows, dtype=np.int64)
        self.counts: Floats = data.counts.astype(np.float64)
        self.n_levels: list[int] = data.domain.n_levels.tolist()
        weighted = [
            np.bincount(column, weights=self.counts, minlength=size)
            for column, size in zip(self.codes.T, self.n_levels, strict=True)
        ]
        # Weights are told against the most frequent level, the same in every part.
        self.reference = [int(np.argmax(counts)) for counts in weighted]
        self.used = [np.flatnonzero(counts).tolist() for counts in weighted]
        self._columns()

    def _columns(self) -> None:
        """Lay out an indicator for each level but the reference, variable by variable."""
        n = len(self.n_levels)
        self.free = [[level for level in self.used[v] if level != self.reference[v]] for v in range(n)]
        self.begins = np.append(0, np.cumsum([len(levels) for levels in self.free]))
        self.indicators = np.zeros((len(self.codes), int(self.begins[-1])))
        for variable, levels in enumerate(self.free):
            for place, level in enumerate(levels, int(self.begins[variable])):
                self.indicators[:, place] = self.codes[:, variable] == level

    @cached_property
    def whole(self) -> Part:
        """All rows."""
        return Part((), np.arange(len(self.codes)))

    def narrowed(self, part: Part, variable: int, levels: tuple[int, ...]) -> Part:
        """Keep the rows in which a variable has one of some levels."""
        inside = np.isin(self.codes[part.rows, variable], levels)
        conditions = tuple(sorted({**dict(part.conditions), variable: levels}.items()))
        return Part(conditions, part.rows[inside])

    def levels_in(self, part: Part, variable: int) -> list[int]:
        """Return the levels that a variable shows in a part."""
        seen = np.bincount(self.codes[part.rows, variable], minlength=self.n_levels[variable])
        return [int(level) for level in np.flatnonzero(seen)]

    def n_rows(self, part: Part) -> int:
        """Return the number of rows of a part, repeated ones included."""
        return int(self.counts[part.rows].sum())


class Patterns(NamedTuple):
    """The distinct values of a blanket in a part, how often the target's levels go with each, who has which."""

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
        self._fits: dict[tuple[Conditions, Blanket], Regression] = {}
        self._drops: dict[tuple[Conditions, Blanket, int], Statistic] = {}
        self._scores: dict[tuple[Conditions, Blanket], list[Statistic]] = {}
        self._blankets: dict[Conditions, Blanket] = {}

    @property
    def n_distinct(self) -> int:
        """The number of different tests computed."""
        return len(self._drops) + sum(map(len, self._scores.values()))

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
        self.n_asked += len(self.table.n_levels)
        key = part.conditions, blanket
        if key not in self._scores:
            self._scores[key] = self._scored(part, blanket)
        return self._scores[key]

    def blanket(self, part: Part, start: Blanket = ()) -> Blanket:
        """Grow from a start by score, strongest first, then shrink by likelihood ratio, weakest first."""
        if part.conditions not in self._blankets:
            grown = self._grow(part, tuple(sorted({*start, *self.required})))
            self._blankets[part.conditions] = self._shrink(part, grown)
        return self._blankets[part.conditions]

    def effect(self, part: Part, blanket: Blanket, variable: int) -> Effect:
        """Return the weights of a variable beside a blanket, scaled so that their test is the likelihood ratio's."""
        blanket = tuple(sorted({*blanket, variable}))
        effect = self.regression(part, blanket).effect(variable)
        if not effect.cells:
            return NO_EFFECT
        ratio, wald = self.drop(part, blanket, variable).value, size_of(effect).value
        if min(ratio, wald) <= EXPLAINED:
            return effect
        return effect._replace(covariance=effect.covariance * np.clip(wald / ratio, 0.1, 10.0))

    def _grow(self, part: Part, blanket: Blanket) -> Blanket:
        while len(blanket) < self.max_blanket:
            scores = self.scores(part, blanket)
            open_ones = [
                (scores[b].p, b) for b in np.flatnonzero(self.allowed).tolist() if b not in blanket
            ]
            p, strongest = min(open_ones, default=(1.0, 0))
            if p >= self.alpha:
                break
            blanket = tuple(sorted((*blanket, strongest)))
        return blanket

    def _shrink(self, part: Part, blanket: Blanket) -> Blanket:
        while len(blanket) > len(self.required):
            found = self.regression(part, blanket)
            # A weight far from zero is never in doubt; one that seems near may be separated, and is asked.
            doubted = [
                b
                for b in blanket
                if b not in self.required and size_of(found.effect(b)).p >= self.alpha / 10
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
        return Patterns(codes[first][:, list(blanket)], counts.reshape(n_patterns, size), which)

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
        n = len(self.table.n_levels)
        found, design, patterns = self._fit(part, blanket)
        self._fits.setdefault((part.conditions, blanket), found)
        if len(found.target_levels) < 2:
            return [NOTHING] * n
        score = self._score(part, found, design[patterns.pattern_of], patterns)
        return score.exclusive(self.table.indicators[part.rows], self.table.begins.tolist())

    def split_scores(self, part: Part, blanket: Blanket, gates: list[int]) -> list[Statistic]:
        """Test, by score, for each gate that the weights of a blanket are the same at all its levels."""
        self.n_asked += len(gates)
        found, design, patterns = self._fit(part, blanket)
        if len(found.target_levels) < 2:
            return [NOTHING] * len(gates)
        beside = design[patterns.pattern_of]
        score = self._score(part, found, beside, patterns)
        begins, tested = self.table.begins, []
        for gate in gates:
            own = self.table.indicators[part.rows, begins[gate] : begins[gate + 1]]
            kept = beside[:, found.owners != gate]
            tested.append(score.together((own[:, :, None] * kept[:, None, :]).reshape(len(own), -1)))
        return tested

    def _score(self, part: Part, found: Regression, beside: Floats, patterns: Patterns) -> Score:
        shown = self.table.codes[part.rows, self.target][:, None] == np.array(found.target_levels[1:])
        chances = found.fitted.chances[patterns.pattern_of]
        return Score(shown, chances, self.table.counts[part.rows], beside, found.covariance)
