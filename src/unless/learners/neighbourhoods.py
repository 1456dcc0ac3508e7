"""Questions about the neighbours of one variable in a part of a table, asked by logistic regression."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from unless.independence.logistic import NO_EFFECT, Effect, Fit, difference, fit, likelihood_without, size_of
from unless.independence.statistics import NOTHING, Statistic, p_values_of
from unless.learners.parts import Bools, Conditions, Part, Table
from unless.learners.patterns import Patterns, patterns_of
from unless.learners.score_tests import EXPLAINED, Pairs, Score
from unless.runtime.interrupts import CancelToken

Blanket = tuple[int, ...]
# Beyond the whole table only so many are asked about: those that were nearest in it.
MAX_NEAR = 20
# Where the test by the size of weights is this clear the likelihood ratio would not change the answer; but
# large weights that seem uncertain may be those of levels that are separated.
SETTLED, UNLIKELY, LARGE_WEIGHT = 1e-8, 0.2, 3.0


class Regression:
    """A fit of the target on a blanket in a part, and what its weights are worth."""

    def __init__(self, fitted: Fit) -> None:
        self.fitted, self.owners = fitted, fitted.owners
        self.target_levels: list[int] = fitted.shown.tolist()
        self.log_likelihood, self.n_weights = fitted.log_likelihood, fitted.n_weights

    @cached_property
    def sizes(self) -> dict[int, Statistic]:
        """Tests, for each variable that has columns, that its weights are all zero."""
        from unless.kernels.effects import size_variables

        if not self.n_weights:
            return {}
        found = np.empty((len(self.owners), 3))
        n_found = size_variables(self.fitted.weights, self.fitted.covariance, self.owners, found)
        return {
            int(variable): Statistic(value, int(df)) if value >= 0 else size_of(self.effect(int(variable)))
            for variable, value, df in found[:n_found].tolist()
        }

    def effect(self, variable: int) -> Effect:
        """Return the weights of one variable of the blanket."""
        columns = np.flatnonzero(self.owners == variable)
        n_columns, n_free = self.fitted.weights.shape
        if not n_free or not len(columns):
            return NO_EFFECT
        places = (np.arange(n_free) * n_columns + columns[:, None]).ravel()
        cells = tuple(
            (level, other)
            for level in self.fitted.levels[columns].tolist()
            for other in self.target_levels[1:]
        )
        weights = self.fitted.weights[columns].ravel()
        return Effect(cells, weights, self.fitted.covariance[places[:, None], places])


def differences(strata: Sequence[Regression], variables: Blanket) -> list[Statistic]:
    """Test, for each of some variables, that its weights are the same in all strata."""
    from unless.kernels.effects import part_variables

    fits = [one.fitted for one in strata]
    levels, targets = (
        np.concatenate([one.levels for one in fits]),
        np.concatenate([one.shown[1:] for one in fits]),
    )
    found = np.empty((len(variables), 2))
    part_variables(
        np.concatenate([one.weights.ravel() for one in fits]),
        np.concatenate([one.covariance.ravel() for one in fits]),
        np.array([one.weights.shape for one in fits]),
        np.concatenate([one.owners for one in fits]),
        levels,
        targets,
        np.array(variables, dtype=np.int64),
        1 + max(int(levels.max()), int(targets.max(initial=0))),
        found,
    )
    return [
        Statistic(value, int(df)) if value >= 0 else difference([one.effect(variable) for one in strata])
        for variable, (value, df) in zip(variables, found.tolist(), strict=True)
    ]


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
        self.known_fits: dict[tuple[Conditions, Blanket], Regression] = {}
        self.known_drops: dict[tuple[Conditions, Blanket, int], Statistic] = {}
        self.n_scored = 0
        self.known_blankets: dict[Conditions, Blanket] = {}
        # Most questions are about the patterns of the last one.
        self._last: tuple[tuple[Conditions, Blanket], Patterns] | None = None
        # Regressions start from the last one of their part, or of one it is a part of.
        self._latest: dict[Conditions, Fit] = {}
        self._pairs: Pairs | None = None
        self.token = CancelToken()

    @property
    def n_distinct(self) -> int:
        """The number of different tests computed."""
        return len(self.known_drops) + self.n_scored

    def regression(self, part: Part, blanket: Blanket) -> Regression:
        """Fit the target on a blanket in a part."""
        key = part.conditions, blanket
        if key not in self.known_fits:
            self.token.check()
            self.remember(*key, self._fit(part, blanket))
        return self.known_fits[key]

    def remember(self, conditions: Conditions, blanket: Blanket, found: Regression) -> None:
        """Keep a regression: the next one of its part starts from it."""
        self.known_fits[conditions, blanket] = found
        self._latest[conditions] = found.fitted

    def drop(self, part: Part, blanket: Blanket, variable: int) -> Statistic:
        """Test, by likelihood ratio, that a variable of the blanket can be spared."""
        self.n_asked += 1
        key = part.conditions, blanket, variable
        if key not in self.known_drops:
            self.known_drops[key] = self._dropped(part, blanket, variable)
        return self.known_drops[key]

    def scores(self, part: Part, blanket: Blanket) -> dict[int, Statistic]:
        """Test, by score, for every near variable that the blanket says all that it says of the target."""
        near = [b for b in self.near if b not in blanket]
        # A blanket that grows never is the same again: there is nothing to remember.
        self.n_asked += len(near)
        self.n_scored += len(near)
        if len(self.regression(part, blanket).target_levels) < 2:
            return dict.fromkeys(near, NOTHING)
        tests = self._score(part, blanket).variables(near, self._pairs_in(part))
        return dict(zip(near, tests, strict=True))

    def blanket(self, part: Part, start: Blanket = ()) -> Blanket:
        """Grow from a start by score, strongest first, then shrink by likelihood ratio, weakest first."""
        if part.conditions not in self.known_blankets:
            grown = self._grow(part, tuple(sorted({*start, *self.required})))
            self.known_blankets[part.conditions] = self._shrink(part, grown)
        return self.known_blankets[part.conditions]

    def effect(self, part: Part, blanket: Blanket, variable: int) -> Effect:
        """Return the weights of a variable beside a blanket, with a covariance that can be trusted.

        Where the size of the weights alone does not settle whether there are any, it is scaled so that their
        test is the likelihood ratio's or the score's, whichever is smaller: each alone finds a little too
        much in few rows.
        """
        blanket = tuple(sorted({*blanket, variable}))
        effect = self.regression(part, blanket).effect(variable)
        if not effect.cells:
            return NO_EFFECT
        size = size_of(effect)
        if size.p < SETTLED or (size.p > UNLIKELY and np.abs(effect.weights).max() < LARGE_WEIGHT):
            self.n_asked += 1
            return effect
        fewer = tuple(b for b in blanket if b != variable)
        pairs = Pairs(self.table, part, self.target, [variable])
        score = self._score(part, fewer).variables([variable], pairs)[0].value
        ratio, wald = min(self.drop(part, blanket, variable).value, score), size.value
        if min(ratio, wald) <= EXPLAINED:
            return effect
        return effect._replace(covariance=effect.covariance * np.clip(wald / ratio, 0.1, 10.0))

    def _grow(self, part: Part, blanket: Blanket) -> Blanket:
        least: dict[int, float] = {}
        while len(blanket) < self.max_blanket:
            scores = self.scores(part, blanket)
            p_values = p_values_of(list(scores.values()))
            open_ones = [(p, -scores[b].value, b) for p, b in zip(p_values, scores, strict=True)]
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
                b
                for b in blanket
                if b not in self.required and found.sizes.get(b, NOTHING).p >= self.alpha / 10
            ]
            p, weakest = max(((self.drop(part, blanket, b).p, b) for b in doubted), default=(0.0, 0))
            if p < self.alpha:
                break
            blanket = tuple(b for b in blanket if b != weakest)
        return blanket

    def patterns(self, part: Part, blanket: Blanket) -> Patterns:
        """Count the target's levels for each distinct value of a blanket."""
        key = part.conditions, blanket
        if self._last is None or self._last[0] != key:
            self._last = key, patterns_of(self.table, part, self.target, blanket)
        return self._last[1]

    def _fit(self, part: Part, blanket: Blanket) -> Regression:
        columns, reference = self.patterns(part, blanket).columns, self.table.reference[self.target]
        return Regression(fit(columns, reference, self._before(part.conditions)))

    def _before(self, conditions: Conditions) -> Fit | None:
        if conditions in self._latest or not conditions:
            return self._latest.get(conditions)
        wider = (conditions[:place] + conditions[place + 1 :] for place in range(len(conditions)))
        return next((self._latest[one] for one in wider if one in self._latest), self._latest.get(()))

    def _dropped(self, part: Part, blanket: Blanket, variable: int) -> Statistic:
        full = self.regression(part, blanket)
        df = int((full.owners == variable).sum()) * (len(full.target_levels) - 1)
        if not df:
            return NOTHING
        # The patterns of the full blanket do as well: some of them are alike without the variable.
        without = likelihood_without(self.patterns(part, blanket).columns, full.fitted, variable)
        return Statistic(max(0.0, 2 * (full.log_likelihood - without)), df)

    def _pairs_in(self, part: Part) -> Pairs:
        pairs = self._pairs
        if pairs is None or pairs.conditions != part.conditions or pairs.variables != self.near:
            pairs = self._pairs = Pairs(self.table, part, self.target, self.near)
        return pairs

    def split_scores(self, part: Part, blanket: Blanket, gates: list[int]) -> list[Statistic]:
        """Test, by score, for each gate that the weights of a blanket are the same at all its levels."""
        self.n_asked += len(gates)
        if len(self.regression(part, blanket).target_levels) < 2:
            return [NOTHING] * len(gates)
        return self._score(part, blanket).gates(gates)

    def _score(self, part: Part, blanket: Blanket) -> Score:
        fitted = self.regression(part, blanket).fitted
        return Score(self.table, part, self.target, self.patterns(part, blanket), fitted)
