"""Where groups of rows differ: for each pair of columns, a test that its link is the same in all groups.

Two lists of findings are no test of a difference: a link can be found in one sample and missed in another of
the same law. So the groups are stacked, and for each pair the product of one column with the group is tested
beside the column itself, in regressions in which all else may differ between the groups, too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, sqrt
from typing import Literal

import numpy as np

from unless.data.dataset import Dataset, regression_steps
from unless.data.domain import Domain, Variable
from unless.independence.statistics import (
    NOTHING,
    Statistic,
    adjusted_whatever_depends,
    p_values_of,
)
from unless.kernels.compiling import plain_if_small
from unless.referee.counted import determined_pairs, find_determined
from unless.referee.gates import FAR_LEVEL, FAR_SHARE, LEAST_ROWS, PairProblem
from unless.referee.models import MOST_NEIGHBOURS, Models, find_blanket
from unless.referee.regressions import LinkEstimate, RegressionTable, Term, mean_of
from unless.referee.verdicts import ALPHA, SIDE_LINKED, agreed
from unless.typing import Bools, Floats, Integers

Change = Literal["gained", "lost", "stronger", "weaker", "other", "not shown"]
# Of columns with more levels too few rows are left in each cell of each group.
MOST_LEVELS = 12
# More groups are no comparison that fits into a sentence.
MOST_GROUPS = 12
# All ways to cut so many groups in two are tried; of more groups, only cuts in the order of strength.
MOST_CUT = 6
# The cut of more than two groups is named where its p, times the number of cuts, is below this.
CUT = 0.05
# Pairs whose score has a larger p are not fitted again: their likelihood ratio could not make a difference.
SCREENED = 0.2
# Weights for what other columns do in one group only, for each row of the smallest group: with more of them,
# likelihood ratios come out too large.
WEIGHTS_PER_ROW = 0.05
# "More strongly" is said where the two V are so many standard errors apart.
STANDARD_ERRORS = 1.96
# Beyond this no table will ever grow.
MOST_ROWS_ASKED = 10**9

Pair = tuple[int, int]
Labels = tuple[str, ...]
# The groups in two, by codes.
Cut = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Difference:
    """What is found of one pair of columns in groups of rows.

    Attributes
    ----------
    pair
        The two names, sorted.
    kind
        "gained": linked in the second and not in the first, where V at its upper limit is at most half;
        "lost": the reverse; "stronger", "weaker": linked in both, in the second more or less strongly;
        "other": the link differs in another way. "not shown": no difference was found.
    statistic, p, q
        The test that the pair is linked alike in all groups: mean of the likelihood ratios of both ends; p
        that both bear out; q over all pairs (Benjamini and Yekutieli, for tests that depend on each other).
    limit
        The largest difference of V that is not ruled out (95 %).
    more_rows
        How many more rows would bring that limit down to the effect worth seeing, about; None where it is
        there, or where no number of rows would do, because a column does not vary in all groups.
    given
        The columns that the regressions hold, the group apart.
    groups
        The labels of the groups that are the first and the second; of more than two groups those of the best
        cut, the label that comes first in the table on the first side; empty where no cut is sure.
    sides
        The link in the first and in the second, where they are named.
    """

    pair: tuple[str, str]
    kind: Change
    statistic: Statistic
    p: float
    q: float
    limit: float
    more_rows: int | None
    given: tuple[str, ...]
    groups: tuple[Labels, Labels] | None = None
    sides: tuple[LinkEstimate, LinkEstimate] | None = None

    @property
    def is_shown(self) -> bool:
        """Whether the groups are said to differ."""
        return self.kind != "not shown"


@dataclass(frozen=True)
class Differences:
    """All pairs that were compared, those that differ first, the surest of them at the top.

    `groups` are the groups compared, `n_rows` the rows of each; `notes` list what was left out.
    """

    pairs: tuple[Difference, ...]
    groups: Labels
    n_rows: tuple[int, ...]
    notes: tuple[str, ...]


def find_differences(data: Dataset, group: str, *, fdr: float = 0.05, effect: float = 0.2) -> Differences:
    """Test for each pair of columns whether it is linked alike in the groups that a column makes.

    Parameters
    ----------
    group
        The column whose levels are the groups. Of more than two groups it is tested at once whether all are
        alike (one test a pair, so that no group is compared with a mixture of others); where they are not,
        the best cut of the groups in two is named, if it is sure beyond the choice among all cuts.
    fdr
        The share of differences that may be false.
    effect
        A difference of V that would be worth seeing, for the number of rows that are needed.
    """
    at = data.domain.index(group)
    table, groups, notes = _prepared(data, group)
    n_rows = tuple(int(data.counts[data.rows[:, at] == data.domain[group].code(one)].sum()) for one in groups)
    if len(groups) < 2 or table.n_variables < 3:
        return Differences((), groups, n_rows, notes)
    # As for statements, and every pair in each group.
    with plain_if_small(40.0 * regression_steps(table)):
        pairs = _Comparison(table, group, groups, effect).all_pairs(fdr)
    return Differences(tuple(sorted(pairs, key=_importance)), groups, n_rows, notes)


def _importance(one: Difference) -> tuple[bool, float, float, tuple[str, str]]:
    # Rounded, so that the last bits of a sum decide no order.
    return not one.is_shown, float(f"{one.q:.9g}"), float(f"{one.p:.9g}"), one.pair


# ---------------------------------------------------------------------- the table


def _prepared(data: Dataset, group: str) -> tuple[Dataset, Labels, tuple[str, ...]]:
    """Leave out groups and columns that cannot be compared; put the rest into an order of its own.

    Columns stand in the order of names, levels in that of labels, groups in that of their size and rows:
    which of two tables comes first, and how their levels are ordered, decides nothing, not even the rounding.
    """
    at, variable = data.domain.index(group), data.domain[group]
    sizes = np.bincount(data.rows[:, at], weights=data.counts, minlength=len(variable.levels))
    notes = []
    kept = [code for code in range(len(sizes)) if sizes[code] >= LEAST_ROWS]
    small = [variable.levels[code] for code in range(len(sizes)) if 0 < sizes[code] < LEAST_ROWS]
    if small:
        notes.append(f"Fewer than {LEAST_ROWS} rows, too few to compare: {', '.join(small)}.")
    if len(kept) > MOST_GROUPS:
        notes.append(f"{len(kept):,} groups are too many to compare; {MOST_GROUPS} are possible.")
        kept = []
    groups = tuple(variable.levels[code] for code in kept)
    nothing = Dataset.from_codes(Domain((variable,)), np.zeros((0, 1)))
    if len(kept) < 2:
        return nothing, groups, tuple(notes)
    inside = np.isin(data.rows[:, at], kept)
    rows, counts = data.rows[inside].astype(np.int64), data.counts[inside]

    columns, variables = [], []
    names = sorted(name for name in data.names if name != group)
    reasons: dict[str, list[str]] = {}
    for name in names:
        codes, labels = _by_label(rows[:, data.domain.index(name)], data.domain[name].levels)
        reason = _unfit(codes, len(labels), rows[:, at], kept)
        if reason:
            reasons.setdefault(reason, []).append(name)
            continue
        columns.append(codes)
        variables.append(Variable(name, labels))
    notes += [f"{reason}: {', '.join(left)}." for reason, left in sorted(reasons.items())]
    if not variables:
        return nothing, groups, tuple(notes)
    codes = np.column_stack(columns)
    parts = [_part(codes, counts, rows[:, at] == code) for code in kept]
    order = sorted(range(len(kept)), key=lambda one: parts[one])
    number = np.zeros(len(sizes), dtype=np.int64)
    number[[kept[one] for one in order]] = np.arange(len(kept))
    variables.append(Variable(group, tuple(groups[one] for one in order)))
    codes = np.column_stack([codes, number[rows[:, at]]])
    by_name = sorted(range(len(variables)), key=lambda one: variables[one].name)
    table = Dataset.from_codes(Domain(tuple(variables[one] for one in by_name)), codes[:, by_name], counts)
    return table, groups, tuple(notes)


def _by_label(codes: Integers, labels: Labels) -> tuple[Integers, Labels]:
    """Return codes that number the levels that occur, in the order of their labels, and these."""
    used = sorted((labels[code], code) for code in np.unique(codes).tolist())
    number = np.zeros(len(labels), dtype=np.int64)
    number[[code for _, code in used]] = np.arange(len(used))
    return number[codes], tuple(label for label, _ in used)


def _unfit(codes: Integers, n_levels: int, groups: Integers, compared: Sequence[int]) -> str:
    """Say why a column cannot be compared, if it cannot."""
    seen = [set(np.unique(codes[groups == one]).tolist()) for one in compared]
    if n_levels > MOST_LEVELS:
        return f"More than {MOST_LEVELS} levels, left out"
    if all(len(one) < 2 for one in seen):
        return "A single level in each group, left out"
    if all(not (one & other) for one, other in combinations(seen, 2)):
        return "No level in two of the groups, left out"
    return ""


def _part(codes: Integers, counts: Integers, inside: Bools) -> tuple[int, bytes, bytes]:
    """Return a key of the rows of one group that does not depend on its label."""
    order = np.lexsort(codes[inside].T[::-1])
    return int(counts[inside].sum()), codes[inside][order].tobytes(), counts[inside][order].tobytes()


# ---------------------------------------------------------------------- the tests


class _GroupedPair(PairProblem):
    """A pair whose regressions let what other columns do differ between the groups."""

    def __init__(self, models: Models, a: int, b: int, group: int, room: float) -> None:
        super().__init__(models, a, b, [group])
        self.group = group
        self.bases = {end: self._separated(end, terms, room) for end, terms in self.bases.items()}

    def _separated(self, end: int, terms: Iterable[Term], room: float) -> frozenset[Term]:
        """Add the products of the group with the columns given, those first that seem to matter."""
        base = set(terms)
        singles = sorted(term[0] for term in base if len(term) == 1)
        products = [_product(c, self.group) for c in singles if c != self.group]
        products = [term for term in products if term not in base]
        n_free = len(self.table.used_levels(end)) - 1
        cost = {term: self.table.n_weights(term) * n_free for term in products}
        if sum(cost.values()) > room:
            tests = self.table.product_scores(end, self.table.fit(end, base), products)
            products = [term for _, term in sorted(zip(p_values_of(tests), products, strict=True))]
        for term in products:
            room -= cost[term]
            if room < 0:
                break
            base.add(term)
        return frozenset(base)

    def scores(self) -> list[Statistic]:
        """Test by score, at both ends, that the link is the same in all groups."""
        tests = []
        for end, other in self.ends:
            fitted = self.table.fit(end, self.bases[end] | {(other,)})
            tests += self.table.product_scores(end, fitted, [_product(other, self.group)])
        return tests


class _Comparison:
    """All pairs of one table that `_prepared` made."""

    def __init__(self, data: Dataset, group: str, groups: Labels, effect: float) -> None:
        self.data, self.groups, self.effect = data, groups, effect
        self.group = data.domain.index(group)
        self.table = RegressionTable(data)
        n = self.table.n_columns
        together = determined_pairs(find_determined(data), n)
        # The group is no column that another one could stand for.
        together[self.group] = together[:, self.group] = False
        self.allowed: Bools = ~together
        np.fill_diagonal(self.allowed, False)
        self.sizes: Floats = np.asarray(self.table.totals[self.group], dtype=np.float64)
        # The rows that a difference is seen in: of two groups half of their harmonic mean, of more groups
        # that of the smallest and the rest.
        least = float(self.sizes.min())
        self.n_effective = least * (self.table.n_rows - least) / self.table.n_rows
        self.seen = [self._seen(column) for column in range(n)]

    def _seen(self, column: int) -> Bools:
        """Tell which levels of a column each group has."""
        seen = np.zeros((len(self.sizes), self.table.n_levels[column]), dtype=np.bool_)
        seen[self.table.codes[self.group], self.table.codes[column]] = True
        return seen

    def models(self) -> Models:
        """Find the blankets: columns that matter in all groups together, or differently in one."""
        table, group = self.table, self.group
        blankets: list[set[int]] = []
        for target in range(table.n_columns):
            if target == group:
                blankets.append(set())
                continue
            near = np.flatnonzero(self.allowed[target]).tolist()
            inside = set(find_blanket(table, target, near, ALPHA)) | {group}
            rest = [c for c in near if c not in inside]
            while rest and len(inside) < MOST_NEIGHBOURS:
                # What a column does in one group can cancel what it does in another.
                terms = {(c,) for c in inside} | {_product(c, group) for c in inside - {group}}
                products = [_product(c, group) for c in rest]
                p_values = p_values_of(table.product_scores(target, table.fit(target, terms), products))
                p, best = min(zip(p_values, rest, strict=True))
                if p >= ALPHA / len(rest):
                    break
                inside.add(best)
                rest.remove(best)
            blankets.append(inside)
        return Models(table, self.allowed, blankets)

    def all_pairs(self, fdr: float) -> list[Difference]:
        """Test all pairs, correct for their number, and describe those that differ."""
        models = self.models()
        room = WEIGHTS_PER_ROW * float(self.sizes.min()) * len(self.sizes)
        problems, differences = [], []
        for a, b in combinations(range(self.table.n_columns), 2):
            if self.group in (a, b) or not self.allowed[a, b]:
                continue
            problem = _GroupedPair(models, a, b, self.group, room)
            problems.append(problem)
            differences.append(self._tested(problem))
        testable = [number for number, one in enumerate(differences) if one.statistic.df]
        # Pairs that share a column share rows and regressions: what is said of them depends on each other.
        q_values = adjusted_whatever_depends([differences[number].p for number in testable])
        for number, q in zip(testable, q_values.tolist(), strict=True):
            one = replace(differences[number], q=q)
            differences[number] = self._described(problems[number], one) if q <= fdr else one
        return differences

    def _tested(self, problem: _GroupedPair) -> Difference:
        a, b = problem.pair
        names = self.data.names
        df = self._df(problem.pair, np.eye(len(self.sizes), dtype=np.bool_))
        tests = [_at_most(one, df) for one in problem.scores()]
        p = agreed(tests)
        if p < SCREENED:
            ratios = [_at_most(one, df) for one in problem.ratios([(self.group,)], beside=[()])]
            # The likelihood ratio is too large where cells are small, the score where effects are large.
            tests, p = ratios, max(p, agreed(ratios))
        statistic = mean_of(tests)
        # The likelihood ratio of a difference d of V between groups of n and m rows is about
        # d^2 n m / (n + m) for each degree that V has.
        limit = LinkEstimate(statistic, self.n_effective, problem.least_levels).largest_v
        missing = self.table.n_rows * ((limit / self.effect) ** 2 - 1)
        return Difference(
            (names[a], names[b]),
            "not shown",
            statistic,
            p,
            1.0,
            limit,
            min(ceil(missing), MOST_ROWS_ASKED) if missing > 0 and statistic.df else None,
            tuple(names[c] for c in problem.given if c != self.group),
        )

    def _df(self, pair: Pair, sides: Bools) -> int:
        """Return the degrees of freedom of a difference between sides, which are sets of groups.

        Cells of levels that a side does not have are no cells: what is left when the two margins with the
        side, and the link itself, are taken from the cells.
        """
        first, second = (np.asarray((sides[:, :, None] & self.seen[c]).any(axis=1)) for c in pair)
        cells = np.argwhere(first[:, :, None] & second[:, None, :])
        if len(cells) == first.size * second.shape[1]:
            return int((len(sides) - 1) * (first.shape[1] - 1) * (second.shape[1] - 1))
        margins = []
        for kept, shape in (
            ((0, 1), first.shape),
            ((0, 2), second.shape),
            ((1, 2), (first.shape[1], second.shape[1])),
        ):
            number = cells[:, kept[0]] * shape[1] + cells[:, kept[1]]
            margins.append(np.eye(shape[0] * shape[1], dtype=np.int64)[number])
        return len(cells) - _rank(np.concatenate(margins, axis=1))

    # ------------------------------------------------------------------ how a pair differs

    def _described(self, problem: _GroupedPair, one: Difference) -> Difference:
        """Say how a pair differs whose groups do."""
        one = replace(one, more_rows=None)
        cut = self._cut(problem)
        if cut is None:
            return replace(one, kind="other")
        # Fits begin where the latest ended: in an order of their own, whichever side is called the first.
        order = (0, 1) if cut[0] < cut[1] else (1, 0)
        tested = [self._estimate(problem, cut, which) for which in order]
        sides = tested[order[0]], tested[order[1]]
        groups = self._labels(cut[0]), self._labels(cut[1])
        return replace(one, kind=self._kind(problem, cut, sides), groups=groups, sides=sides)

    def _labels(self, codes: Sequence[int]) -> Labels:
        """Return the labels of groups, in the order of the table that was given."""
        known = self.data.domain.variables[self.group].levels
        wanted = {known[code] for code in codes}
        return tuple(label for label in self.groups if label in wanted)

    def _cut(self, problem: _GroupedPair) -> Cut | None:
        """Return the groups in two, the one that comes first in the table on the first side."""
        whole = tuple(range(len(self.groups)))
        first = self.data.domain.variables[self.group].levels.index(self.groups[0])
        if len(whole) == 2:
            return (first,), (1 - first,)
        if len(whole) <= MOST_CUT:
            parts = [(0, *more) for size in range(len(whole) - 1) for more in combinations(whole[1:], size)]
        else:
            ranked = problem.ranked(self.group)
            parts = [tuple(ranked[:size]) for size in range(1, len(ranked))]
        tested: list[tuple[float, float, Cut]] = []
        for part in parts:
            rest = set(whole) - set(part)
            cut = tuple(sorted(part)), tuple(sorted(rest))
            indicator = self.table.indicator([(self.group, part)])
            df = self._df(problem.pair, self._masks(cut))
            tests = [_at_most(one, df) for one in problem.ratios([(indicator,)], beside=[()])]
            tested.append((agreed(tests), -mean_of(tests).value, cut))
        p, _, (one, other) = min(tested)
        if p * (2.0 ** (len(whole) - 1) - 1) >= CUT:
            return None
        return (one, other) if first in one else (other, one)

    def _masks(self, cut: Sequence[Sequence[int]]) -> Bools:
        return np.array([np.isin(np.arange(len(self.sizes)), codes) for codes in cut])

    def _estimate(self, problem: _GroupedPair, cut: Cut, which: int) -> LinkEstimate:
        """Test the link on one side, beside a link of its own on the other."""
        here, there = (self.table.indicator([(self.group, cut[one])]) for one in (which, 1 - which))
        codes = list(cut[which])
        a, b = (int(self.seen[c][codes].any(axis=0).sum()) for c in problem.pair)
        tests = [_at_most(one, (a - 1) * (b - 1)) for one in problem.ratios([(here,)], beside=[(there,)])]
        # Groups in which one of the two does not vary show nothing, and do not make the link weaker.
        informative = [code for code in codes if all(self.seen[c][code].sum() > 1 for c in problem.pair)]
        return LinkEstimate(mean_of(tests), float(self.sizes[informative].sum()), problem.least_levels)

    def _kind(self, problem: _GroupedPair, cut: Cut, sides: Sequence[LinkEstimate]) -> Change:
        is_linked = [one.statistic.df > 0 and one.statistic.p < SIDE_LINKED for one in sides]
        kinds: tuple[Change, Change] = ("lost", "gained")
        for which, kind in enumerate(kinds):
            here, there = sides[which], sides[1 - which]
            is_empty = bool(there.statistic.df) and there.largest_v <= FAR_SHARE * here.v
            is_open_and_shut = is_linked[which] and not is_linked[1 - which] and is_empty
            if is_open_and_shut and self._is_empty_alone(problem, cut, 1 - which):
                return kind
        if all(is_linked):
            errors = sqrt(sum(_standard_error(one) ** 2 for one in sides))
            gain = sides[1].v - sides[0].v
            if abs(gain) >= STANDARD_ERRORS * errors:
                return "stronger" if gain > 0 else "weaker"
        return "other"

    def _is_empty_alone(self, problem: _GroupedPair, cut: Cut, which: int) -> bool:
        """Tell whether no group of a side shows the link by itself."""
        if len(cut[which]) < 2:
            return True
        other = self.table.indicator([(self.group, cut[1 - which])])
        alone = [self.table.indicator([(self.group, (code,))]) for code in cut[which]]
        p_values = [problem.ratio([(column,)], beside=[(other,)]).p for column in alone]
        return min(p_values) * len(alone) >= FAR_LEVEL


def _product(column: int, group: int) -> Term:
    return (min(column, group), max(column, group))


def _at_most(test: Statistic, df: int) -> Statistic:
    """Take away degrees of freedom that only levels without rows would have."""
    return Statistic(test.value, min(test.df, df)) if df > 0 else NOTHING


def _rank(matrix: Integers) -> int:
    """Return the rank of a matrix of zeros and ones, by elimination in whole numbers modulo a prime."""
    prime = 2**31 - 1
    rows, rank = matrix % prime, 0
    for column in range(rows.shape[1]):
        pivots = np.flatnonzero(rows[rank:, column])
        if not len(pivots):
            continue
        rows[[rank, rank + pivots[0]]] = rows[[rank + pivots[0], rank]]
        rows[rank] = rows[rank] * pow(int(rows[rank, column]), -1, prime) % prime
        below = rank + 1 + np.flatnonzero(rows[rank + 1 :, column])
        rows[below] = (rows[below] - rows[below, column, None] * rows[rank] % prime) % prime
        rank += 1
        if rank == len(rows):
            break
    return rank


def _standard_error(link: LinkEstimate) -> float:
    """Return about how far V would be off in another sample: its statistic is a noncentral chi-square."""
    value, df = link.statistic
    spread = sqrt(2 * (df + 2 * max(0.0, value - df)))
    return spread / (2 * max(1.0, link.n_rows * link.least_levels) * max(link.v, 1e-9))
