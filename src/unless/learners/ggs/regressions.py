"""Regressions of one variable on others in strata of a table, and the tests that GGS makes with them.

A stratum is the rows that meet some conditions. `NeighbourTests` answers, for one variable, which others are
its neighbours in a stratum: a blanket is grown by score tests and shrunk by likelihood ratios.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from unless.data.dataset import Dataset, Positions
from unless.independence.logistic import (
    NO_EFFECT,
    Columns,
    Effect,
    Fit,
    difference,
    fit,
    likelihood_without,
    probabilities_of,
    size_of,
)
from unless.independence.statistics import NOTHING, Statistic, p_values_of
from unless.referee.models import CLEARLY, FEW_NEAR, LIKELY
from unless.referee.regressions import EXPLAINED, Expected, Terms, known_part, score_tests
from unless.runtime.interrupts import CancelToken
from unless.typing import Bools, Floats, Integers

Blanket = tuple[int, ...]
# A variable and the levels it may have, in the order of variables.
Conditions = tuple[tuple[int, tuple[int, ...]], ...]
# Beyond the whole table only so many are tested: those that were nearest in it.
MAX_NEAR = 20
# Once no variable is sure to enter a blanket, only those with p below this are asked, until none of them
# enters: then all are asked once more.
POSSIBLE = 0.3
# Where the test by the size of weights is this clear the likelihood ratio would not change the answer; but
# large weights that seem uncertain may be those of levels that are separated.
SETTLED, UNLIKELY, LARGE_WEIGHT = 1e-8, 0.2, 3.0


@dataclass(frozen=True, eq=False)
class Stratum:
    """The rows of a table that meet some conditions."""

    conditions: Conditions
    rows: Positions

    def intersection(self, other: "Stratum") -> "Stratum":
        """Return the rows in both."""
        if self.conditions == other.conditions:
            return self
        allowed = dict(self.conditions)
        for variable, levels in other.conditions:
            known = allowed.get(variable, levels)
            allowed[variable] = tuple(level for level in known if level in levels)
        rows = np.intersect1d(self.rows, other.rows, assume_unique=True)
        return Stratum(tuple(sorted(allowed.items())), rows)


class StratifiedTable:
    """A dataset as regressions in strata read it."""

    def __init__(self, data: Dataset) -> None:
        # Variable by variable: a regression reads a few of them, from top to bottom.
        self.codes = np.ascontiguousarray(data.rows.T, dtype=np.int32)
        # Row by row: many variables are counted in one go.
        self.by_row = np.ascontiguousarray(data.rows, dtype=np.int32)
        self.counts: Floats = data.counts.astype(np.float64)
        self.n_levels: Integers = data.domain.n_levels.astype(np.int64)
        weighted = [
            np.bincount(column, weights=self.counts, minlength=size)
            for column, size in zip(self.codes, self.n_levels.tolist(), strict=True)
        ]
        # The reference of the weights is the most frequent level, the same in every stratum.
        self.references: Integers = np.array([np.argmax(counts) for counts in weighted], dtype=np.int64)
        self.used = [np.flatnonzero(counts).tolist() for counts in weighted]
        # There is an indicator for each level that is used but the reference.
        self.free = [
            np.array([level for level in levels if level != reference], dtype=np.int64)
            for levels, reference in zip(self.used, self.references.tolist(), strict=True)
        ]
        self.n_free = np.array([len(levels) for levels in self.free], dtype=np.int64)
        self.whole = Stratum((), np.arange(self.codes.shape[1]))
        # The strata of single levels, which every variable needs.
        self._at_levels: dict[tuple[int, tuple[int, ...]], Stratum] = {}

    def restrict(self, stratum: Stratum, variable: int, levels: tuple[int, ...]) -> Stratum:
        """Return the rows of a stratum in which a variable has one of some levels."""
        is_common = not stratum.conditions and len(levels) == 1
        if is_common and (variable, levels) in self._at_levels:
            return self._at_levels[variable, levels]
        wanted = np.zeros(self.n_levels[variable], dtype=np.bool_)
        wanted[list(levels)] = True
        conditions = tuple(sorted({**dict(stratum.conditions), variable: levels}.items()))
        made = Stratum(conditions, stratum.rows[wanted[self.codes[variable][stratum.rows]]])
        if is_common:
            self._at_levels[variable, levels] = made
        return made

    def levels_in(self, stratum: Stratum, variable: int) -> list[int]:
        """Return the levels that a variable shows in a stratum."""
        levels: list[int] = np.flatnonzero(np.bincount(self.codes[variable][stratum.rows])).tolist()
        return levels

    def n_rows(self, stratum: Stratum) -> int:
        """Return the number of rows of a stratum, repeated ones included."""
        return int(self.counts[stratum.rows].sum())

    def count_levels(
        self, rows: Positions, which: Integers, n_kinds: int, variables: Sequence[int]
    ) -> tuple[Floats, list[Integers]]:
        """Count the levels of variables by kind of row; return the columns of their free levels, too."""
        from unless.kernels.patterns import count_levels

        chosen = np.array(variables, dtype=np.int64)
        begins = np.append(0, np.cumsum(self.n_levels[chosen]))
        counts = np.zeros((n_kinds, int(begins[-1])))
        count_levels(self.by_row, rows, self.counts, which, chosen, begins, counts)
        return counts, [begin + self.free[one] for begin, one in zip(begins, variables, strict=False)]


class Regression:
    """A fit of a target on a blanket in a stratum, and the tests of its weights."""

    def __init__(self, fitted: Fit) -> None:
        self.fitted, self.owners = fitted, fitted.owners
        self.target_levels: list[int] = fitted.shown.tolist()
        self.log_likelihood, self.n_weights = fitted.log_likelihood, fitted.n_weights

    @cached_property
    def sizes(self) -> dict[int, Statistic]:
        """Tests, for each variable that has columns, that its weights are all zero."""
        from unless.kernels.patterns import size_variables

        if not self.n_weights:
            return {}
        tests = np.empty((len(self.owners), 3))
        n_tests = size_variables(self.fitted.weights, self.fitted.covariance, self.owners, tests)
        return {
            int(variable): Statistic(value, int(df)) if value >= 0 else size_of(self.effect(int(variable)))
            for variable, value, df in tests[:n_tests].tolist()
        }

    def effect(self, variable: int) -> Effect:
        """Return the weights of one variable of the blanket."""
        columns = np.flatnonzero(self.owners == variable)
        n_columns, n_free = self.fitted.weights.shape
        if not n_free or not len(columns):
            return NO_EFFECT
        where = (np.arange(n_free) * n_columns + columns[:, None]).ravel()
        cells = tuple(
            (level, other)
            for level in self.fitted.levels[columns].tolist()
            for other in self.target_levels[1:]
        )
        weights = self.fitted.weights[columns].ravel()
        return Effect(cells, weights, self.fitted.covariance[where[:, None], where])


def differences(strata: Sequence[Regression], variables: Blanket) -> list[Statistic]:
    """Test, for each of some variables, that its weights are the same in all strata."""
    from unless.kernels.patterns import compare_variables

    fits = [one.fitted for one in strata]
    levels = np.concatenate([one.levels for one in fits])
    targets = np.concatenate([one.shown[1:] for one in fits])
    tests = np.empty((len(variables), 2))
    compare_variables(
        np.concatenate([one.weights.ravel() for one in fits]),
        np.concatenate([one.covariance.ravel() for one in fits]),
        np.array([one.weights.shape for one in fits]),
        np.concatenate([one.owners for one in fits]),
        levels,
        targets,
        np.array(variables, dtype=np.int64),
        1 + max(int(levels.max()), int(targets.max(initial=0))),
        tests,
    )
    return [
        Statistic(value, int(df)) if value >= 0 else difference([one.effect(variable) for one in strata])
        for variable, (value, df) in zip(variables, tests.tolist(), strict=True)
    ]


class Patterns(NamedTuple):
    """Distinct values of a blanket in a stratum: which one each row has, and the columns each sets to 1."""

    which: Integers
    columns: Columns


class NeighbourTests:
    """All tests about the neighbours of one variable, the target; each is computed once."""

    def __init__(
        self,
        table: StratifiedTable,
        target: int,
        allowed: Bools,
        required: Bools,
        alpha: float,
        max_blanket: int,
    ) -> None:
        self.table, self.target, self.alpha, self.max_blanket = table, target, alpha, max_blanket
        self.allowed = allowed
        self.required: Blanket = tuple(np.flatnonzero(required).tolist())
        self.n_tests = self.n_scored = 0
        # Those that may be neighbours somewhere; once the whole table has been seen, the nearest of them.
        self.near: list[int] = np.flatnonzero(allowed).tolist()
        self.known_fits: dict[tuple[Conditions, Blanket], Regression] = {}
        self.known_drops: dict[tuple[Conditions, Blanket, int], Statistic] = {}
        self.known_blankets: dict[Conditions, Blanket] = {}
        # Most tests need the patterns of the last one.
        self._last: tuple[tuple[Conditions, Blanket], Patterns] | None = None
        # Regressions start from the last one of their stratum, or of a wider one.
        self._latest: dict[Conditions, Fit] = {}
        # Counts of the levels of near variables with those of the target, in the last stratum.
        self._counted: tuple[tuple[Conditions, list[int]], Floats, dict[int, Integers]] | None = None
        self.token = CancelToken()

    @property
    def n_distinct(self) -> int:
        """The number of different tests computed."""
        return len(self.known_drops) + self.n_scored

    def regression(self, stratum: Stratum, blanket: Blanket) -> Regression:
        """Fit the target on a blanket in a stratum."""
        key = stratum.conditions, blanket
        if key not in self.known_fits:
            self.token.check()
            columns, reference = self._patterns(stratum, blanket).columns, self.table.references[self.target]
            self.remember(*key, Regression(fit(columns, int(reference), self._start(stratum.conditions))))
        return self.known_fits[key]

    def remember(self, conditions: Conditions, blanket: Blanket, regression: Regression) -> None:
        """Keep a regression: the next one of its stratum starts from it."""
        self.known_fits[conditions, blanket] = regression
        self._latest[conditions] = regression.fitted

    def drop(self, stratum: Stratum, blanket: Blanket, variable: int) -> Statistic:
        """Test, by likelihood ratio, that a variable of the blanket can be spared."""
        self.n_tests += 1
        key = stratum.conditions, blanket, variable
        if key not in self.known_drops:
            full = self.regression(stratum, blanket)
            df = int((full.owners == variable).sum()) * (len(full.target_levels) - 1)
            test = NOTHING
            if df:
                # The patterns of the full blanket do as well: some of them are alike without the variable.
                columns = self._patterns(stratum, blanket).columns
                without = likelihood_without(columns, full.fitted, variable)
                test = Statistic(max(0.0, 2 * (full.log_likelihood - without)), df)
            self.known_drops[key] = test
        return self.known_drops[key]

    def scores(
        self, stratum: Stratum, blanket: Blanket, asked: Sequence[int] | None = None
    ) -> dict[int, Statistic]:
        """Test, by score, for all near variables or some of them that they add nothing to the blanket."""
        near = [b for b in (self.near if asked is None else asked) if b not in blanket]
        # A blanket that grows is never asked about again: nothing is kept.
        self.n_tests += len(near)
        self.n_scored += len(near)
        if len(self.regression(stratum, blanket).target_levels) < 2:
            return dict.fromkeys(near, NOTHING)
        key = stratum.conditions, self.near
        if self._counted is None or self._counted[0] != key:
            self._counted = key, *self._count_with_target(stratum, self.near)
        counts, columns = self._counted[1:]
        by_target = counts[:, np.concatenate([columns[b] for b in near])] if near else counts
        return dict(zip(near, self._scored(stratum, blanket, near, by_target), strict=True))

    def blanket(self, stratum: Stratum, start: Blanket = ()) -> Blanket:
        """Grow from a start by score, strongest first, then shrink by likelihood ratio, weakest first."""
        if stratum.conditions not in self.known_blankets:
            grown = self._grow(stratum, tuple(sorted({*start, *self.required})))
            self.known_blankets[stratum.conditions] = self._shrink(stratum, grown)
        return self.known_blankets[stratum.conditions]

    def effect(self, stratum: Stratum, blanket: Blanket, variable: int) -> Effect:
        """Return the weights of a variable beside a blanket, with a covariance that can be trusted.

        Where the size of the weights alone does not settle whether there are any, it is scaled so that their
        test is the likelihood ratio's or the score's, whichever is smaller: each alone finds a little too
        much in few rows.
        """
        blanket = tuple(sorted({*blanket, variable}))
        effect = self.regression(stratum, blanket).effect(variable)
        if not effect.cells:
            return NO_EFFECT
        size = size_of(effect)
        if size.p < SETTLED or (size.p > UNLIKELY and np.abs(effect.weights).max() < LARGE_WEIGHT):
            self.n_tests += 1
            return effect
        fewer = tuple(b for b in blanket if b != variable)
        counts, columns = self._count_with_target(stratum, [variable])
        score = self._scored(stratum, fewer, [variable], counts[:, columns[variable]])[0].value
        ratio, wald = min(self.drop(stratum, blanket, variable).value, score), size.value
        if min(ratio, wald) <= EXPLAINED:
            return effect
        return effect._replace(covariance=effect.covariance * np.clip(wald / ratio, 0.1, 10.0))

    def split_scores(self, stratum: Stratum, blanket: Blanket, gates: list[int]) -> list[Statistic]:
        """Test, by score, for each gate that the weights of a blanket are the same at all its levels."""
        from unless.kernels.regression import score_gate

        self.n_tests += len(gates)
        fitted = self.regression(stratum, blanket).fitted
        if len(fitted.shown) < 2:
            return [NOTHING] * len(gates)
        which, columns = self._patterns(stratum, blanket)
        expected, n_shown = probabilities_of(columns, fitted), len(fitted.shown)
        # Patterns together with the levels of the target, all but the reference and those not shown first.
        level_of = np.full(self.table.n_levels[self.target], n_shown - 1, dtype=np.int64)
        level_of[fitted.shown[1:]] = np.arange(n_shown - 1)
        joined = which * n_shown + level_of[self.table.codes[self.target][stratum.rows]]
        counts, free = self.table.count_levels(stratum.rows, joined, len(expected) * n_shown, gates)
        counts = counts.reshape(len(expected), n_shown, -1)
        covariance = np.ascontiguousarray(fitted.covariance)
        known = columns.begins, columns.active, columns.owners, expected, covariance, counts
        tests = []
        for gate, levels in zip(gates, free, strict=True):
            value, df, rest = score_gate(*known, levels, gate, EXPLAINED)
            is_known = df >= 0
            tests.append(
                Statistic(value, int(df)) if is_known else known_part(rest[:, -1], rest[:, :-1], value)
            )
        return tests

    def _grow(self, stratum: Stratum, blanket: Blanket) -> Blanket:
        least: dict[int, float] = {}
        asked, enough = self.near, self.alpha
        while len(blanket) < self.max_blanket:
            scores = self.scores(stratum, blanket, asked)
            p_values = p_values_of(list(scores.values()))
            ranked = sorted((p, -scores[b].value, b) for p, b in zip(p_values, scores, strict=True))
            for p, _, b in ranked:
                least[b] = min(p, least.get(b, 1.0))
            p, _, strongest = ranked[0] if ranked else (1.0, 0.0, 0)
            if p >= enough:
                if asked is self.near:
                    break
                asked, enough = self.near, self.alpha
                continue
            blanket = tuple(sorted((*blanket, strongest)))
            asked, enough = self.near, self.alpha
            if len(self.near) > FEW_NEAR and len(ranked) > 1:
                # The test of a pair does not rest on what enters by chance, nor on its order.
                is_clear = ranked[1][0] < CLEARLY
                asked = [b for p, _, b in ranked if p < (LIKELY if is_clear else POSSIBLE)]
                enough = CLEARLY if is_clear else self.alpha
        if not stratum.conditions:
            nearest = sorted(self.near, key=lambda b: (b not in blanket, least.get(b, 1.0), b))
            self.near = sorted(nearest[: max(MAX_NEAR, len(blanket))])
        return blanket

    def _shrink(self, stratum: Stratum, blanket: Blanket) -> Blanket:
        while len(blanket) > len(self.required):
            sizes = self.regression(stratum, blanket).sizes
            # A weight far from zero is never in doubt; one that seems near may be separated, and is tested.
            doubted = [
                b for b in blanket if b not in self.required and sizes.get(b, NOTHING).p >= self.alpha / 10
            ]
            p, weakest = max(((self.drop(stratum, blanket, b).p, b) for b in doubted), default=(0.0, 0))
            if p < self.alpha:
                break
            blanket = tuple(b for b in blanket if b != weakest)
        return blanket

    def _patterns(self, stratum: Stratum, blanket: Blanket) -> Patterns:
        """Count the target's levels for each distinct value of a blanket.

        Each level of the blanket but one of each variable has a column, and so has the intercept (column 0).
        """
        from unless.kernels.patterns import find_patterns

        key = stratum.conditions, blanket
        if self._last is None or self._last[0] != key:
            table, variables = self.table, np.array(blanket, dtype=np.int64)
            which, *columns = find_patterns(
                table.codes, stratum.rows, table.counts, variables, table.n_levels, table.references,
                self.target,
            )  # fmt: skip
            self._last = key, Patterns(which, Columns(*columns))
        return self._last[1]

    def _start(self, conditions: Conditions) -> Fit | None:
        if conditions in self._latest or not conditions:
            return self._latest.get(conditions)
        wider = (conditions[:number] + conditions[number + 1 :] for number in range(len(conditions)))
        return next((self._latest[one] for one in wider if one in self._latest), self._latest.get(()))

    def _count_with_target(
        self, stratum: Stratum, variables: list[int]
    ) -> tuple[Floats, dict[int, Integers]]:
        """Count the levels of variables by level of the target, and find their free levels."""
        table = self.table
        which = table.codes[self.target][stratum.rows].astype(np.int64)
        counts, free = table.count_levels(stratum.rows, which, int(table.n_levels[self.target]), variables)
        return counts, dict(zip(variables, free, strict=True))

    def _scored(
        self, stratum: Stratum, blanket: Blanket, variables: list[int], by_target: Floats
    ) -> list[Statistic]:
        """Test by score what variables add to a regression, each by the indicators of its free levels.

        `by_target` are the counts of each level of the target with these levels.
        """
        if not variables:
            return []
        table, fitted = self.table, self.regression(stratum, blanket).fitted
        which, columns = self._patterns(stratum, blanket)
        expected = Expected(which, columns.begins, columns.active, probabilities_of(columns, fitted))
        terms = Terms.of([(b,) for b in variables], table.n_levels, [table.free[b] for b in variables])
        tests = score_tests(
            table.codes, stratum.rows, table.counts, expected, fitted.covariance, terms,
            np.ascontiguousarray(by_target.T), fitted.shown,
        )  # fmt: skip
        return [one.statistic for one in tests]
