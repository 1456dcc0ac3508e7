"""Logistic regressions of one column on terms: columns, and products of two or three of them.

Every verdict rests on these: likelihood ratios and score tests of terms, beside others that are held fixed,
and the strength of a pair that follows from them (`LinkEstimate`).
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import repeat
from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset, unknown_levels
from unless.data.domain import Variable
from unless.independence.design_effects import Correction, DesignEffects
from unless.independence.logistic import inverse
from unless.independence.statistics import NOTHING, Statistic, largest_shift, p_values_of
from unless.typing import Bools, Floats, Integers

Codes = npt.NDArray[np.int32]
# Columns whose product is meant, in ascending order; a single one is a main effect.
Term = tuple[int, ...]
# Ridges of the intercept and of all other weights, and what Newton's method stops at.
_RULES = (1e-6, 1e-1), 2e-2
# A score whose variance is no more than this share of its own is explained by the regression already.
EXPLAINED = 1e-7
# A level of a cut column is held as so many groups at most, of about so many rows or more.
GROUPS_A_LEVEL, ROWS_A_GROUP = 3, 100
# Numberings of rows that are kept, and layouts of terms: a fit is mostly tested by score right away.
_KEPT, _LAYOUTS_KEPT = 64, 16
# A regression starts from the one of the same target that is most like it, of so many latest ones.
_RECENT = 64


class TermFit(NamedTuple):
    """A fitted regression: weights are column x level of the target but the reference."""

    terms: tuple[Term, ...]
    shown: Integers
    weights: Floats
    owners: Integers
    levels: Integers
    log_likelihood: float
    # Columns with missing values: the rows that have none in these were used.
    needed: frozenset[int] = frozenset()

    @property
    def n_free(self) -> int:
        """The number of levels of the target but the reference."""
        return max(0, len(self.shown) - 1)


class Indicators(NamedTuple):
    """The indicators of a term: its variables, up to three, and the combinations of levels that have one."""

    term: Term
    parts: tuple[int, ...]
    n_combinations: int
    shown: Integers

    @classmethod
    def of(cls, term: Term, sizes: Integers, shown: Sequence[int] | Integers) -> "Indicators":
        """List a term of variables of these sizes, with the combinations that have an indicator."""
        n_combinations = 1
        for variable in term:
            n_combinations *= int(sizes[variable])
        parts = (*term, *(-1,) * (3 - len(term)))
        return cls(term, parts, n_combinations, np.asarray(shown, dtype=np.int64))


class Terms(NamedTuple):
    """Terms that a regression may need, by indicators of which a row has at most one of a term.

    A row of `parts` has the variables of a term, up to three, -1 where there are fewer; `sizes` are the
    numbers of levels of all variables. `numbers`, from the offset of a term in `offsets`, has the number of
    its indicator for each combination of its levels; where there is none, how many the term has. The
    indicators of a term end where those of the next begin (`ends`, from 0).
    """

    parts: Integers
    sizes: Integers
    offsets: Integers
    numbers: Integers
    ends: Integers

    @classmethod
    def of(
        cls, terms: Sequence[tuple[int, ...]], sizes: Integers, shown: Sequence[Sequence[int] | Integers]
    ) -> "Terms":
        """List terms of variables of these sizes, with the combinations of levels that have an indicator."""
        return cls.joined(
            [Indicators.of(*one) for one in zip(terms, repeat(sizes), shown, strict=False)], sizes
        )

    @classmethod
    def joined(cls, listed: Sequence[Indicators], sizes: Integers) -> "Terms":
        """Put the indicators of terms behind each other."""
        parts = np.array([one.parts for one in listed], dtype=np.int64).reshape(len(listed), 3)
        offsets, ends = [0], [0]
        for one in listed:
            offsets.append(offsets[-1] + one.n_combinations)
            ends.append(ends[-1] + len(one.shown))
        numbers = np.empty(offsets[-1], dtype=np.int64)
        for begin, end, one in zip(offsets, offsets[1:], listed, strict=False):
            numbers[begin:end] = len(one.shown)
            numbers[begin + one.shown] = np.arange(len(one.shown))
        return cls(parts, sizes, np.array(offsets), numbers, np.array(ends))

    def counts_in(self, codes: Codes, weights: Floats, target: int) -> Floats:
        """Add up the weights of rows by indicator and level of a target."""
        from unless.kernels.regression import count_indicators

        counts = np.zeros((int(self.ends[-1]), int(self.sizes[target])))
        count_indicators(codes, weights, target, *self, counts)
        return counts


def _as_rows(terms: Sequence[tuple[int, ...]]) -> Integers:
    """Return terms as kernels read them: a row each, -1 where there are fewer than three variables."""
    rows = [(*term, *(-1,) * (3 - len(term))) for term in terms]
    return np.array(rows, dtype=np.int64).reshape(len(rows), 3)


class Expected(NamedTuple):
    """What a regression expects of each pattern, and which pattern each row has.

    `begins` and `active` are those of `Columns`; `probabilities` are those of the levels of the target but
    the reference, by pattern.
    """

    which: Integers
    begins: Integers
    active: Integers
    probabilities: Floats


class ScoreTest(NamedTuple):
    """A score test of one term, with the slopes of its indicators and their variance (lower triangle)."""

    statistic: Statistic
    slope: Floats
    variance: Floats


def score_tests(
    codes: Codes,
    rows: Integers,
    weights: Floats,
    expected: Expected,
    covariance: Floats,
    terms: Terms,
    counts: Floats,
    levels: Integers,
) -> list[ScoreTest]:
    """Test, for each of some terms, that a regression in some rows of a table does not need it.

    `counts` are by indicator and level of the target, `levels` those that are shown, the reference first.
    """
    from unless.kernels.regression import score_terms

    which, begins, active, probabilities = expected
    sizes = (len(levels) - 1) * np.diff(terms.ends)
    # Nothing is written above the diagonals.
    slopes, variances = np.empty(int(sizes.sum())), np.zeros(int((sizes**2).sum()))
    results = np.empty((len(sizes), 2))
    score_terms(
        begins, active, probabilities, np.ascontiguousarray(covariance), codes, rows, weights, which, *terms,
        counts, levels, EXPLAINED, slopes, variances, results,
    )  # fmt: skip
    tests, at, begin = [], 0, 0
    for (value, df), size in zip(results.tolist(), sizes.tolist(), strict=True):
        slope = slopes[begin : begin + size]
        variance = variances[at : at + size**2].reshape(size, size)
        statistic = Statistic(value, int(df)) if df >= 0 else known_part(slope, variance, value)
        tests.append(ScoreTest(statistic, slope, variance))
        at, begin = at + size**2, begin + size
    return tests


def known_part(slope: Floats, variance: Floats, least: float) -> Statistic:
    """Divide slopes by their variance (its lower triangle) as far as it is more than the least."""
    from unless.kernels.algebra import spectrum

    turned, sizes = np.array(slope), np.empty(len(slope))
    spectrum(np.array(variance), turned, sizes)
    kept = sizes > least
    return Statistic(float((turned[kept] ** 2 / sizes[kept]).sum()), int(kept.sum()))


class RegressionTable:
    """A table as regressions read it: its columns, and indicators of levels made from them.

    A column that was cut from numbers is held fixed by its finer groups where the table has them; what is
    tested are its levels. A regression, and all that it is compared with, takes the rows that have a value in
    each of its columns. Of a survey, counts are weights that add up to its effective size, and statistics are
    corrected for the design effect of their pair.
    """

    def __init__(self, data: Dataset) -> None:
        rows = data if data.detail is None else data.detail
        self.n_columns = data.n_variables
        self.n_rows = data.n_rows
        # How many rows of the table each row stands for, and what it counts.
        self.row_counts = rows.counts
        self.counts: Floats = rows.counts.astype(np.float64)
        self.survey: DesignEffects | None = None
        if data.design is not None:
            self.survey = DesignEffects(data.design, rows.counts)
            self.counts = data.design.weights * self.survey.share
            self.n_rows = round(data.n_rows * self.survey.share)
        self._corrections: dict[tuple[int, int], Correction] = {}
        self._trend_corrections: dict[tuple[int, int], Correction] = {}
        self.n_levels: list[int] = [int(n) for n in data.domain.n_levels]
        self._sizes: Integers = np.zeros(0, dtype=np.int64)
        self._known_references: Integers = np.zeros(0, dtype=np.int64)
        # Room for indicators is made as they come.
        self._codes = np.ascontiguousarray(rows.rows.T, dtype=np.int32)
        self._n_used = self.n_columns
        self._sources: list[tuple[int, ...]] = [(c,) for c in range(self.n_columns)]
        # The column whose finer groups an added one has.
        self._owners: dict[int, int] = {}
        holes = {} if data.detail is None else data.detail.missing
        self._missing: dict[int, Bools] = {data.domain.index(name): one for name, one in holes.items()}
        for name, code in unknown_levels(data).items():
            column = data.domain.index(name)
            lacks = self._codes[column] == code
            self._missing[column] = lacks | self._missing.get(column, lacks)
        self._weights: dict[frozenset[int], Floats] = {frozenset(): self.counts}
        self._n_complete: dict[frozenset[int], float] = {}
        self.totals: list[Floats] = [
            np.bincount(
                self._codes[c], weights=self.weights(self.incomplete([c])), minlength=self.n_levels[c]
            ).astype(np.float64)
            for c in range(self.n_columns)
        ]
        # The most frequent level of a column has no weight of its own.
        self.references: list[int] = [int(np.argmax(counts)) for counts in self.totals]
        self.used: list[list[int]] = [np.flatnonzero(counts).tolist() for counts in self.totals]
        self._indicators: dict[tuple[tuple[int, tuple[int, ...]], ...], int] = {}
        self._complements: dict[int, int] = {}
        self._numbered: OrderedDict[tuple[int, ...], tuple[Integers, Integers]] = OrderedDict()
        self._layouts: OrderedDict[
            tuple[Term, ...], tuple[Integers, Integers, Integers, Integers, Integers]
        ] = OrderedDict()
        # Numbers for the levels of ordered columns, and of those that show two.
        self.level_scores = [_level_scores(*one) for one in zip(data.domain, self.totals, strict=True)]
        self._is_ordered = [_is_ordered(variable) for variable in data.domain]
        # Of cut columns, the groups that regressions hold, and the place of each row in their order.
        self._finer: dict[int, int] = {}
        self.finest: dict[int, Integers] = {}
        for name, codes in {} if data.detail is None else sorted(data.detail.finer.items()):
            column = data.domain.index(name)
            self.finest[column] = codes.astype(np.int64)
            groups = _held_groups(self.finest[column], self._codes[column], self.counts)
            if len(np.unique(groups)) > len(np.unique(self._codes[column])):
                self._finer[column] = self._added(groups.astype(np.int32), None)
                self._owners[self._finer[column]] = column
        self.fits: dict[tuple[int, tuple[Term, ...], frozenset[int]], TermFit] = {}
        # With a number that has the bits of their terms.
        self._recent: defaultdict[int, deque[tuple[int, TermFit]]] = defaultdict(
            partial(deque, maxlen=_RECENT)
        )
        self._bits = _Bits()
        self._listed: dict[Term, Indicators] = {}
        self._rows: Integers = np.arange(self._codes.shape[1])
        self._scored: dict[int, tuple[tuple[tuple[Term, ...], frozenset[int]], dict[int, Statistic]]] = {}
        # Rows by indicator of a term and level of a target, in the rows that have what is needed.
        self._indicator_counts: dict[tuple[int, frozenset[int]], dict[Term, Floats]] = {}

    @property
    def codes(self) -> npt.NDArray[np.int32]:
        """Codes, column x distinct row, indicators included."""
        return self._codes[: self._n_used]

    @property
    def sizes(self) -> Integers:
        """The number of levels of each column, indicators included."""
        if len(self._sizes) != len(self.n_levels):
            self._sizes = np.array(self.n_levels, dtype=np.int64)
        return self._sizes

    def incomplete(self, columns: Iterable[int]) -> frozenset[int]:
        """Return the columns of the table with missing values that some columns are made from."""
        if not self._missing:
            return frozenset()
        return frozenset(self.columns_of(columns) & self._missing.keys())

    def columns_of(self, columns: Iterable[int]) -> set[int]:
        """Return the columns of the table that some columns, indicators among them, are made from."""
        return {self._owners.get(s, s) for c in columns for s in self._sources[c]}

    def weights(self, needed: frozenset[int]) -> Floats:
        """Return the counts of rows, 0 where one of some columns has no value."""
        if needed not in self._weights:
            lacking = np.logical_or.reduce([self._missing[column] for column in sorted(needed)])
            self._weights[needed] = np.where(lacking, 0.0, self.counts)
        return self._weights[needed]

    def n_complete(self, columns: Iterable[int]) -> float:
        """Return the number of rows that have a value in each of some columns."""
        needed = self.incomplete(columns)
        if needed not in self._n_complete:
            self._n_complete[needed] = float(self.weights(needed).sum())
        return self._n_complete[needed]

    def indicator(self, conditions: Iterable[tuple[int, Iterable[int]]]) -> int:
        """Return the column that is 1 where columns have these levels, all of them."""
        key = tuple(sorted((column, tuple(sorted(levels))) for column, levels in conditions))
        if key not in self._indicators:
            inside = np.ones(self._codes.shape[1], dtype=np.bool_)
            for column, levels in key:
                inside &= np.isin(self._codes[column], levels)
            self._indicators[key] = self._added(inside.astype(np.int32), tuple(column for column, _ in key))
        return self._indicators[key]

    def complement(self, indicator: int) -> int:
        """Return the column that is 1 where an indicator is 0."""
        if indicator not in self._complements:
            self._complements[indicator] = self._added(1 - self._codes[indicator], self._sources[indicator])
        return self._complements[indicator]

    def _added(self, codes: npt.NDArray[np.int32], sources: tuple[int, ...] | None) -> int:
        """Add an indicator made from some columns, or a column of its own (None)."""
        if self._n_used == len(self._codes):
            room = np.zeros((max(64, len(self._codes)), self._codes.shape[1]), dtype=np.int32)
            self._codes = np.concatenate([self._codes, room])
        self._codes[self._n_used] = codes
        self._n_used += 1
        self.n_levels.append(2 if sources is not None else int(codes.max()) + 1)
        common = 0 if sources is not None else int(np.argmax(np.bincount(codes, weights=self.counts)))
        self.references.append(common)
        self._sources.append((self._n_used - 1,) if sources is None else sources)
        return self._n_used - 1

    def numbered(self, variables: tuple[int, ...]) -> tuple[Integers, Integers]:
        """Give the distinct values of columns numbers: that of each row, and an example of each."""
        from unless.kernels.regression import number_rows

        if variables not in self._numbered:
            columns = np.array(variables, dtype=np.int64)
            self._numbered[variables] = number_rows(self.codes, columns, self.sizes)
            if len(self._numbered) > _KEPT:
                self._numbered.popitem(last=False)
        self._numbered.move_to_end(variables)
        return self._numbered[variables]

    def sources(self, terms: Iterable[Term]) -> tuple[int, ...]:
        """Return the columns of the table that terms are made of."""
        return tuple(sorted({s for term in terms for c in term for s in self._sources[c]}))

    def layout(self, terms: tuple[Term, ...]) -> tuple[Integers, Integers, Integers, Integers, Integers]:
        """Return which pattern each row has, and begins, active, owners and levels of the patterns."""
        from unless.kernels.regression import lay_out_terms

        if terms not in self._layouts:
            which, example = self.numbered(self.sources(terms))
            if len(self._known_references) != len(self.references):
                self._known_references = np.array(self.references, dtype=np.int64)
            listed = _as_rows(terms)
            laid_out = lay_out_terms(self.codes, example, listed, self.sizes, self._known_references)
            self._layouts[terms] = (which, *laid_out)
            if len(self._layouts) > _LAYOUTS_KEPT:
                self._layouts.popitem(last=False)
        self._layouts.move_to_end(terms)
        return self._layouts[terms]

    def counted(
        self, which: Integers, target: int, n_patterns: int, needed: frozenset[int] = frozenset()
    ) -> Floats:
        """Count the levels of a target by pattern, in the rows that have what is needed."""
        from unless.kernels.regression import count_target

        counts = np.zeros((n_patterns, self.n_levels[target]))
        count_target(which, self.codes[target], self.weights(needed), counts)
        return counts

    def fit(
        self,
        target: int,
        terms: Iterable[Term],
        tested: Iterable[Term] = (),
        needed: frozenset[int] = frozenset(),
    ) -> TermFit:
        """Regress a target on terms that are held fixed, and on others that are tested.

        In the rows that have a value in all of these, and in what else is needed. What was fitted before is
        known.
        """
        # Cut columns that are held fixed are held by their finer groups.
        fixed = set(terms)
        if self._finer:
            fixed = {(self._finer.get(term[0], term[0]),) if len(term) == 1 else term for term in fixed}
        wanted = tuple(sorted(fixed.union(tested)))
        if self._missing:
            needed |= self.incomplete([target, *(c for term in wanted for c in term)])
        key = target, wanted, needed
        if key not in self.fits:
            self.fits[key] = self._fit(target, wanted, needed)
            self._recent[target].append((self._bits.of(wanted), self.fits[key]))
        return self.fits[key]

    def _fit(self, target: int, terms: tuple[Term, ...], needed: frozenset[int]) -> TermFit:
        from unless.kernels.regression import fit_only

        which, begins, active, owners, levels = self.layout(terms)
        counts = self.counted(which, target, len(begins) - 1, needed)
        before = self._start(target, terms)
        shown, weights, likelihood = fit_only(
            begins, active, counts, owners, levels, self.references[target], before, *_RULES
        )
        return TermFit(terms, shown, weights, owners, levels, likelihood, needed)

    def _start(self, target: int, terms: tuple[Term, ...]) -> tuple[Floats, Integers, Integers, Integers]:
        """Take the weights of the regression of this target that has most nearly the same terms."""
        recent = self._recent[target]
        if not recent:
            none = np.zeros(0, dtype=np.int64)
            return np.zeros((0, 0)), none, none, none
        wanted = self._bits.of(terms)
        # The latest of those that are most alike. Hardly any has the same terms: only of other rows.
        nearest, fewest = recent[-1][1], len(self._bits) + 1
        for bits, fitted in reversed(recent):
            n_other = (wanted ^ bits).bit_count()
            if n_other < fewest:
                nearest, fewest = fitted, n_other
                if n_other == 1:
                    break
        number_of = {term: number for number, term in enumerate(terms)}
        # By the term of a column; that of column 0, which is none, comes last.
        owners = np.array([*(number_of.get(term, -2) for term in nearest.terms), -1])[nearest.owners]
        kept = owners > -2
        return np.ascontiguousarray(nearest.weights[kept]), owners[kept], nearest.levels[kept], nearest.shown

    def correction(self, a: int, b: int) -> Correction:
        """Return the correction for statistics of two columns; none where rows were drawn alike."""
        if self.survey is None or a == b:
            return Correction()
        pair = (min(a, b), max(a, b))
        if pair not in self._corrections:
            kept = self.weights(self.incomplete(pair)) > 0
            self._corrections[pair] = self.survey.of(self.codes[pair[0]], self.codes[pair[1]], kept)
        return self._corrections[pair]

    def _corrected(self, statistic: Statistic, target: int, terms: Iterable[Term]) -> Statistic:
        """Correct a statistic for the largest design effect of a target and a column of some terms."""
        if self.survey is None:
            return statistic
        columns = self.columns_of(c for term in terms for c in term)
        if not columns:
            return statistic
        worst = max(sorted(columns), key=lambda c: self.correction(target, c).factor)
        return self.corrected(statistic, target, worst)

    def corrected(self, statistic: Statistic, a: int, b: int) -> Statistic:
        """Correct a statistic of two columns for their design effect."""
        return statistic if self.survey is None else self.survey.corrected(statistic, self.correction(a, b))

    def likelihood_ratio(
        self, target: int, terms: Iterable[Term], more: Iterable[Term], other: int | None = None
    ) -> Statistic:
        """Test that a target needs no more terms than some.

        Where all that is tested has one other column, its design effect is the one that matters.
        """
        base, tested = set(terms), set(more)
        needed = self.incomplete(c for term in base | tested for c in term)
        small = self.fit(target, base, needed=needed)
        large = self.fit(target, base, tested - base, needed)
        df = (len(large.owners) - len(small.owners)) * large.n_free
        statistic = Statistic(max(0.0, 2 * (large.log_likelihood - small.log_likelihood)), df)
        return self._corrected(statistic, target, tested if other is None else [(other,)])

    def settled(self, target: int, terms: Iterable[Term], level: float) -> set[Term]:
        """Return terms that the size of their weights alone shows to be needed: p is below the level.

        None where a cut column is held: by its levels, which are what is tested, it is not held closely.
        """
        from unless.kernels.patterns import size_variables

        fitted = self.fit(target, terms)
        if not fitted.n_free or any(c in self._owners for term in fitted.terms for c in term):
            return set()
        which, begins, active, *_ = self.layout(fitted.terms)
        covariance = self._covariance(target, fitted, which, begins, active)
        tests = np.empty((len(fitted.owners), 3))
        n_tests = size_variables(fitted.weights, covariance, fitted.owners, tests)
        sized = [
            (fitted.terms[int(owner)], Statistic(value, int(df)))
            for owner, value, df in tests[:n_tests].tolist()
            if value >= 0
        ]
        p_values = p_values_of([self._corrected(one, target, [term]) for term, one in sized])
        return {term for (term, _), p in zip(sized, p_values, strict=True) if p < level}

    def scores(self, target: int, fitted: TermFit, columns: Sequence[int]) -> list[Statistic]:
        """Test, for each of some columns, that a regression needs no term of it."""
        known = self._known_scores(target, fitted)
        new = [c for c in columns if c not in known]
        tests = self._score_tests(target, fitted, self._indicators_of(new))
        known.update((c, test.statistic) for c, test in zip(new, tests, strict=True))
        return [known[c] for c in columns]

    def _known_scores(self, target: int, fitted: TermFit) -> dict[int, Statistic]:
        """Return the scores of columns beside a regression, if it is the latest of its target to be tested.

        Each chapter of the search for a model ends with the tests that the next one begins with.
        """
        key = fitted.terms, fitted.needed
        if target not in self._scored or self._scored[target][0] != key:
            self._scored[target] = key, {}
        return self._scored[target][1]

    def _indicators_of(self, columns: Sequence[int]) -> list[Indicators]:
        for c in columns:
            if (c,) not in self._listed:
                shown = [level for level in self.used_levels(c) if level != self.references[c]]
                self._listed[c,] = Indicators.of((c,), self.sizes, shown)
        return [self._listed[c,] for c in columns]

    def scores_and_trends(
        self, target: int, fitted: TermFit, columns: Sequence[int]
    ) -> list[tuple[Statistic, Statistic]]:
        """Test the same, and where both columns are ordered that neither rises with the other.

        A trend has one degree of freedom: the product of the numbers of both levels is added, as in the
        linear-by-linear model (Agresti 2013, 6.3).
        """
        groups = self._indicators_of(columns)
        tests = self._score_tests(target, fitted, groups)
        known = self._known_scores(target, fitted)
        known.update((c, test.statistic) for c, test in zip(columns, tests, strict=True))
        return [
            (test.statistic, self._trend(target, fitted, one, test))
            for one, test in zip(groups, tests, strict=True)
        ]

    def trend(self, target: int, terms: Iterable[Term], column: int) -> Statistic:
        """Test that a target does not rise with a column beside some terms; nothing without an order."""
        if not self.has_trend(target, column):
            return NOTHING
        fitted, group = self.fit(target, terms), self._indicators_of([column])
        return self._trend(target, fitted, group[0], self._score_tests(target, fitted, group)[0])

    def _trend(self, target: int, fitted: TermFit, tested: Indicators, test: ScoreTest) -> Statistic:
        ((column,), levels) = tested.term, tested.shown
        first, second = self.level_scores[target], self.level_scores[column]
        if first is None or second is None or not self.has_trend(target, column) or not len(test.slope):
            return NOTHING
        rises = first[fitted.shown[1:]] - first[fitted.shown[0]]
        weights = np.outer(rises, second[levels] - second[self.references[column]]).ravel()
        # Only the lower triangle of the variance is known; above it are zeros.
        shares = weights[:, None] * weights * test.variance
        own = float(shares.diagonal().sum())
        spread = 2 * float(shares.sum()) - own
        if not spread > EXPLAINED * max(own, 1.0):
            return NOTHING
        statistic = Statistic(float((weights * test.slope).sum()) ** 2 / spread, 1)
        if self.survey is None:
            return statistic
        pair = (min(target, column), max(target, column))
        if pair not in self._trend_corrections:
            complete = self.weights(self.incomplete(pair)) > 0
            self._trend_corrections[pair] = self.survey.of_trend(
                first[self.codes[target]], second[self.codes[column]], complete
            )
        return self.survey.corrected(statistic, self._trend_corrections[pair])

    def has_trend(self, a: int, b: int) -> bool:
        """Tell whether two columns may rise together: ordered, or of two levels, but not both of two."""
        if max(a, b) >= self.n_columns or not (self._is_ordered[a] or self._is_ordered[b]):
            return False
        known = self.level_scores[a] is not None and self.level_scores[b] is not None
        return known and max(len(self.used[a]), len(self.used[b])) > 2

    def product_scores(self, target: int, fitted: TermFit, products: Sequence[Term]) -> list[Statistic]:
        """Test, for each of some products, that a regression that has their columns needs no term of it."""
        groups = [self._indicators_of_product(product) for product in products]
        return [test.statistic for test in self._score_tests(target, fitted, groups)]

    def _indicators_of_product(self, product: Term) -> Indicators:
        """Return the combinations of levels that some row shows, those without a reference level."""
        if product not in self._listed:
            joint = np.zeros(self._codes.shape[1], dtype=np.int32)
            for c in product:
                joint = joint * self.n_levels[c] + self._codes[c]
            is_on = np.logical_and.reduce([self._codes[c] != self.references[c] for c in product])
            shown = np.flatnonzero(np.bincount(joint[is_on]))
            self._listed[product] = Indicators.of(product, self.sizes, shown)
        return self._listed[product]

    def n_weights(self, term: Term) -> int:
        """Return the number of weights of a term for each level of a target but one, at most."""
        return int(np.prod([len(self.used_levels(c)) - 1 for c in term]))

    def used_levels(self, column: int) -> list[int]:
        """Return the levels that a column shows."""
        return self.used[column] if column < self.n_columns else [0, 1]

    def _score_tests(self, target: int, fitted: TermFit, groups: Sequence[Indicators]) -> list[ScoreTest]:
        """Test groups of indicators, each in the rows that have a value in its columns as well."""
        tests = [ScoreTest(NOTHING, np.zeros(0), np.zeros((0, 0)))] * len(groups)
        alike: dict[frozenset[int], list[int]] = {}
        for position, one in enumerate(groups):
            if len(one.shown):
                alike.setdefault(self.incomplete(one.term) | fitted.needed, []).append(position)
        for needed, positions in alike.items():
            own = fitted if needed == fitted.needed else self.fit(target, (), fitted.terms, needed)
            if own.n_free:
                of_rows = self._score_tests_of_rows(target, own, [groups[one] for one in positions])
                for position, test in zip(positions, of_rows, strict=True):
                    tests[position] = test
        return tests

    def expected(self, fitted: TermFit) -> Expected:
        """Return what a fit expects in all rows."""
        from unless.kernels.regression import expected_probabilities

        which, begins, active, *_ = self.layout(fitted.terms)
        probabilities = np.empty((len(begins) - 1, fitted.n_free))
        expected_probabilities(begins, active, fitted.weights, probabilities)
        return Expected(which, begins, active, probabilities)

    def _score_tests_of_rows(
        self, target: int, fitted: TermFit, groups: Sequence[Indicators]
    ) -> list[ScoreTest]:
        expected = self.expected(fitted)
        covariance = self._covariance(target, fitted, *expected[:3])
        tests = score_tests(
            self.codes, self._rows, self.weights(fitted.needed), expected, covariance,
            Terms.joined(groups, self.sizes), self._counts_of(target, fitted.needed, groups), fitted.shown,
        )  # fmt: skip
        if self.survey is None:
            return tests
        return [
            test._replace(statistic=self._corrected(test.statistic, target, [one.term]))
            for one, test in zip(groups, tests, strict=True)
        ]

    def _counts_of(self, target: int, needed: frozenset[int], groups: Sequence[Indicators]) -> Floats:
        """Count indicators by level of a target; what was counted for another regression is known."""
        known = self._indicator_counts.setdefault((target, needed), {})
        new = [one for one in groups if one.term not in known]
        if new:
            terms = Terms.joined(new, self.sizes)
            counts = terms.counts_in(self.codes, self.weights(needed), target)
            for one, begin, end in zip(new, terms.ends, terms.ends[1:], strict=False):
                known[one.term] = counts[begin:end]
        return np.concatenate([known[one.term] for one in groups])

    def _covariance(
        self, target: int, fitted: TermFit, which: Integers, begins: Integers, active: Integers
    ) -> Floats:
        """Return the covariance of the weights; only scores ask for it."""
        from unless.kernels.regression import covariance_of

        counts = self.counted(which, target, len(begins) - 1, fitted.needed)
        matrix, is_inverse = covariance_of(begins, active, counts, fitted.shown, fitted.weights, _RULES[0])
        return np.ascontiguousarray(matrix if is_inverse else inverse(matrix))


class _Bits(dict[Term, int]):
    """A power of two for each term, so that sets of terms are compared as numbers."""

    def __missing__(self, term: Term) -> int:
        self[term] = bit = 1 << len(self)
        return bit

    def of(self, terms: Iterable[Term]) -> int:
        """Return a number that has the bit of each term."""
        return sum(map(self.__getitem__, terms))


def p_with_trends(tests: Sequence[tuple[Statistic, Statistic]]) -> list[float]:
    """Return p for tests with and without an order of the levels: twice the smaller where there are both."""
    whole, trends = (p_values_of([one[which] for one in tests]) for which in (0, 1))
    return [
        min(1.0, 2 * min(p, p_trend)) if trend.df else p
        for p, p_trend, (_, trend) in zip(whole, trends, tests, strict=True)
    ]


def mean_of(statistics: Iterable[Statistic]) -> Statistic:
    """Average the statistics of both ends for one question: nearly the same, from the same rows."""
    listed = [one for one in statistics if one.df]
    if not listed:
        return NOTHING
    return Statistic(sum(one.value for one in listed) / len(listed), max(one.df for one in listed))


def _is_ordered(variable: Variable) -> bool:
    return bool(variable.ordered or variable.cuts)


def _level_scores(variable: Variable, totals: Floats) -> Floats | None:
    """Give the levels of an ordered column the numbers 0, 1, 2, ...; None for one without order.

    A level that stands for no value of the order, such as that of missing values, gets the mean of the rows.
    """
    if not _is_ordered(variable) and int((totals > 0).sum()) != 2:
        return None
    scores = np.arange(len(totals), dtype=np.float64)
    n_known = len(variable.cuts) + 1 if variable.cuts else len(totals)
    if not variable.cuts and variable.levels[-1] in ("missing", "(missing)"):
        n_known -= 1
    known = totals[:n_known]
    scores[n_known:] = (scores[:n_known] * known).sum() / max(1.0, float(known.sum()))
    return scores


def _held_groups(finest: Integers, levels: Codes, counts: Floats) -> Integers:
    """Join neighbouring places of each level into a few groups, each of enough rows."""
    totals = np.bincount(finest, weights=counts)
    level_of = np.zeros(len(totals), dtype=np.int64)
    level_of[finest] = levels
    order = np.lexsort((np.arange(len(totals)), level_of))
    groups, n_groups = np.zeros(len(totals), dtype=np.int64), 0
    for level in np.unique(level_of[np.unique(finest)]).tolist():
        places = [place for place in order.tolist() if level_of[place] == level and totals[place] > 0]
        rows = np.array([totals[place] for place in places])
        n_wanted = min(GROUPS_A_LEVEL, max(1, round(float(rows.sum()) / ROWS_A_GROUP)), len(places))
        # A place belongs to the part of the level in which its middle lies.
        middle = (np.cumsum(rows) - rows / 2) / rows.sum()
        parts = np.minimum((middle * n_wanted).astype(np.int64), n_wanted - 1)
        groups[places] = n_groups + np.unique(parts, return_inverse=True)[1]
        n_groups += int(np.unique(parts).size)
    return groups[finest]


@dataclass(frozen=True)
class LinkEstimate:
    """A pair inside some rows: the statistic of its link there, and the Cramer's V it implies."""

    statistic: Statistic
    # Rows drawn alike that tell as much, and how many rows of the table stand for one of them.
    n_rows: float
    least_levels: int
    design_effect: float = 1.0
    # Of a survey: the statistic divided by the design effect, but not corrected for how uncertain that is.
    divided: float | None = None

    @property
    def v(self) -> float:
        """Cramer's V, without what chance alone gives."""
        return self._v_of(self.beyond_chance)

    @property
    def largest_v(self) -> float:
        """The upper 95 % limit of V."""
        return self._v_of(self.largest_beyond_chance) if self.statistic.df else 1.0

    def _v_of(self, beyond_chance: float) -> float:
        return min(1.0, sqrt(beyond_chance / max(1.0, self.n_rows * self.least_levels)))

    @property
    def beyond_chance(self) -> float:
        """What the statistic has beyond chance: rows times twice the information, in nats."""
        return max(0.0, self._value - self.statistic.df)

    @cached_property
    def largest_beyond_chance(self) -> float:
        """The upper 95 % limit of that; a statistic smaller than chance gives counts as that."""
        return largest_shift(max(self._value, float(self.statistic.df)), self.statistic.df)

    @property
    def _value(self) -> float:
        return self.statistic.value if self.divided is None else self.divided


def least_levels(table: RegressionTable, pair: tuple[int, int]) -> int:
    """Return the levels of the column of a pair that shows fewer, but one."""
    return max(1, min(len(table.used_levels(c)) for c in pair) - 1)


def estimate_link(
    table: RegressionTable, pair: tuple[int, int], statistic: Statistic, n_rows: float
) -> LinkEstimate:
    """Return the strength of a pair that a test shows in rows that count so much."""
    least = least_levels(table, pair)
    if table.survey is None:
        return LinkEstimate(statistic, n_rows, least)
    correction = table.correction(*pair)
    divided = table.survey.divided(statistic, correction)
    effect = correction.factor
    return LinkEstimate(statistic, n_rows / effect, least, effect / table.survey.share, divided)
