"""Where a pair is linked: its accounts (nowhere, everywhere, by level, inside a gate) and their scores.

An account is a set of terms for either end of the pair. Scores are comparable between accounts of one pair;
the bound on the far side decides whether "only when" may be said.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log

from unless.independence.statistics import Statistic
from unless.referee.counted import MOST_LEVELS, Clause
from unless.referee.models import Models
from unless.referee.regressions import LinkEstimate, Term, estimate_link, least_levels, mean_of
from unless.typing import Bools

# "Only when" is said where the far side, at its upper 95 % limit, has at most this share of V inside.
FAR_SHARE = 0.5
# Of a clear effect inside, the far side has at most this share of the information, too, at its upper limit:
# many rows with a small V may hold as much as few with a large one.
CLEAR, FAR_INFORMATION = 60.0, 0.12
# A level of the far side is linked by itself where p, times the number of its levels, is below this.
FAR_LEVEL = 0.005
# A side with fewer rows is too small to be reported.
LEAST_ROWS = 20
# A second clause is looked for where p, times the number of columns, is below this.
SECOND = 0.01
MOST_SECONDS = 3
# What a gate must gain over the best account without it, on the scale of twice a log-likelihood.
LEAST_ADVANTAGE = 0.0
# With less, not even a second clause would help.
HOPELESS = -10.0
# Both ends must see that the sides differ: where one alone does, its regression is likely to be wrong.
ENDS_AGREE = 0.05


@dataclass(frozen=True)
class Account:
    """A gate of a pair: its clauses, score, advantage over the best account without a gate, and two sides."""

    pair: tuple[int, int]
    clauses: tuple[Clause, ...]
    score: float
    advantage: float
    inside: LinkEstimate
    outside: LinkEstimate
    # Whether both sides differ, from either end.
    differences: tuple[Statistic, ...]
    # The least p of a link on the far side, where that was looked for.
    far_level_p: float = 1.0
    # What it gains over the best other account of the same columns.
    margin: float = 0.0

    @property
    def ratio(self) -> float:
        """The upper limit of V outside, as a share of V inside."""
        return self.outside.largest_v / self.inside.v if self.inside.v else float("inf")

    @property
    def columns(self) -> set[int]:
        """The columns of the account."""
        return {*self.pair, *(column for column, _ in self.clauses)}

    @property
    def is_sure(self) -> bool:
        """Whether the gate may be said."""
        agree = max(one.p for one in self.differences) < ENDS_AGREE
        return self.advantage > LEAST_ADVANTAGE and self.is_empty_outside and agree

    @property
    def is_empty_outside(self) -> bool:
        """Whether the far side is shown to be without the link, or nearly so."""
        if self.ratio > FAR_SHARE or self.far_level_p < FAR_LEVEL:
            return False
        if self.inside.beyond_chance < CLEAR or not self.outside.statistic.df:
            return True
        return self.outside.largest_beyond_chance <= FAR_INFORMATION * self.inside.beyond_chance


class PairProblem:
    """One pair, the regressions of its two ends without it, and accounts of it."""

    def __init__(
        self, models: Models, a: int, b: int, gates: Iterable[int] = (), with_products: bool = True
    ) -> None:
        self.table, self.pair = models.table, (a, b)
        self.gates = tuple(sorted(gates))
        # Where two columns open a gate together, each end has its own share of what they do together.
        together = {self.gates} if len(self.gates) == 2 else set()
        self.bases = {
            end: models.base(end, other, self.gates, with_products) | together
            for end, other in ((a, b), (b, a))
        }
        self.ends = (self.pair, self.pair[::-1])
        self.least_levels = least_levels(self.table, self.pair)

    def ratios(
        self, terms: Sequence[tuple[int, ...]], beside: Sequence[tuple[int, ...]] = ()
    ) -> list[Statistic]:
        """Test terms, each with the other end put in, at both ends; `beside` are terms already there."""
        return [
            self.table.likelihood_ratio(
                end,
                self.bases[end] | {_term(part, other) for part in beside},
                {_term(part, other) for part in terms},
                other,
            )
            for end, other in self.ends
        ]

    def trends(self) -> list[Statistic]:
        """Test at both ends that neither column rises with the other; nothing where they have no order."""
        if not self.table.has_trend(*self.pair):
            return []
        return [self.table.trend(end, self.bases[end], other) for end, other in self.ends]

    def product_scores(
        self, beside: Sequence[tuple[int, ...]], columns: Sequence[int], part: int, more: Iterable[int] = ()
    ) -> list[float]:
        """Return p, for each of some columns, of what it does to the link inside a part of the rows.

        Mean of the scores of both ends; `beside` are terms of the link, `more` columns that the regressions
        have as well.
        """
        tests = []
        for end, other in self.ends:
            terms = {_term(one, other) for one in beside} | {(c,) for c in more if c != end}
            fitted = self.table.fit(end, self.bases[end] | terms)
            tests.append(self.table.product_scores(end, fitted, [_term((part, c), other) for c in columns]))
        return [mean_of(both).p for both in zip(*tests, strict=True)]

    def ratio(self, terms: Sequence[tuple[int, ...]], beside: Sequence[tuple[int, ...]] = ()) -> Statistic:
        """Return the mean of the statistics of both ends."""
        return mean_of(self.ratios(terms, beside))

    @cached_property
    def plain(self) -> Statistic:
        """The test of a link that is the same everywhere."""
        return self.ratio([()])

    def free(self, gate: int) -> Statistic:
        """Test a link that may be another at each level of a gate."""
        return self.ratio([(), (gate,)])

    def n_rows(self, column: int) -> float:
        """Return the rows in which an indicator is on, of those that have what the regressions need."""
        weights = self.table.weights(self.table.incomplete([*self.pair, *self.given, column]))
        return float(weights[self.table.codes[column] == 1].sum())

    def n_complete(self, *columns: int) -> float:
        """Return the rows that have what the regressions of both ends need, and some columns."""
        return self.table.n_complete([*self.pair, *self.given, *columns])

    def estimate(self, statistic: Statistic, n_rows: float) -> LinkEstimate:
        """Return the strength that a test shows in some rows."""
        return estimate_link(self.table, self.pair, statistic, n_rows)

    def ranked(self, gate: int, within: Sequence[Clause] = ()) -> list[int]:
        """Return the levels of a gate, those where the link is strongest for their rows first.

        The link is tested at the end with fewer levels, which costs less: only the order matters.
        """
        end, other = min(self.ends, key=lambda one: (len(self.table.used_levels(one[0])), one))
        strengths = []
        for level in self.table.used_levels(gate):
            column = self.table.indicator([*within, (gate, (level,))])
            test = self.table.likelihood_ratio(end, self.bases[end], {_term((column,), other)}, other)
            strengths.append((-(test.value - test.df) / max(1.0, self.n_rows(column)), level))
        return [level for _, level in sorted(strengths)]

    def penalised(self, statistic: Statistic, choices: float = 0.0) -> float:
        """Score an account: its likelihood ratio, less what its weights and its choice cost."""
        return statistic.value - statistic.df * log(max(2, self.table.n_rows)) - choices

    def account(self, clauses: Sequence[Clause], against: float, choices: float) -> Account:
        """Weigh a gate."""
        inside, outside = self._sides(clauses)
        near = self.ratio([(inside,)])
        far = self.ratio([(outside,)], beside=[(inside,)])
        score = self.penalised(near, choices)
        return Account(
            self.pair,
            tuple(sorted(clauses)),
            score,
            score - against,
            self.estimate(near, self.n_rows(inside)),
            self.estimate(far, self.n_complete(inside) - self.n_rows(inside)),
            tuple(self.ratios([(inside,)], beside=[()])),
        )

    def with_far_levels(self, account: Account) -> Account:
        """Look for links at single levels of the far side of an account, unless it is linked as a whole."""
        if account.ratio > 1:
            return account
        inside, _ = self._sides(account.clauses)
        return replace(account, far_level_p=self._least_far_p(account.clauses, inside))

    def with_far_products(self, account: Account) -> Account:
        """Look, on the far side of an account that may be said, for links that another column turns round."""
        if not account.is_sure:
            return account
        least = self._least_far_product_p(*self._sides(account.clauses))
        return replace(account, far_level_p=min(account.far_level_p, least))

    def _sides(self, clauses: Sequence[Clause]) -> tuple[int, int]:
        inside = self.table.indicator(clauses)
        return inside, self.table.complement(inside)

    def _least_far_p(self, clauses: Sequence[Clause], inside: int) -> float:
        """Return the least p of the link at any one level of the far side, times their number."""
        least, n_tried = 1.0, 0
        for number, (gate, levels) in enumerate(clauses):
            others = [clause for k, clause in enumerate(clauses) if k != number]
            for level in self.table.used_levels(gate):
                if level in levels:
                    continue
                # With two clauses, one alone opens nothing: its own far levels are where the other is open.
                column = self.table.indicator([*others, (gate, (level,))])
                n_tried += 1
                least = min(least, self.ratio([(column,)], beside=[(inside,)]).p)
        return min(1.0, least * max(1, n_tried))

    def _least_far_product_p(self, inside: int, outside: int) -> float:
        """Return the least p of a link outside that another column turns round, times their number.

        Effects of opposite signs at the levels of a column that is held fixed cancel in a test of them all.
        """
        columns = [
            c for c in self.given if len(self.table.used_levels(c)) <= MOST_LEVELS and c not in self.gates
        ]
        if not columns:
            return 1.0
        p_values = self.product_scores([(inside,), (outside,)], columns, outside, more=columns)
        return min(1.0, min(p_values) * len(columns))

    @property
    def given(self) -> tuple[int, ...]:
        """The columns that the regressions of the two ends hold, but the ends."""
        held = {c for terms in self.bases.values() for term in terms for c in term}
        return tuple(sorted(held - set(self.pair)))

    def best_gate(self, gate: int, hopeless: float = HOPELESS) -> Account | None:
        """Return the best account by a set of levels of one gate: the levels by strength, cut in two.

        None where it gains less than `hopeless` over the best account without it.
        """
        ranked = self.ranked(gate)
        if not 2 <= len(ranked) <= MOST_LEVELS:
            return None
        best = self._best_levels(gate, (), ranked)
        if best is None:
            return None
        without = [self.penalised(one) for one in (self.plain, self.free(gate))]
        against, choices = max(0.0, *without), 2 * log(2.0 ** len(ranked) - 2)
        if best[0] - choices - against < hopeless:
            return None
        return self.account([(gate, best[1])], against, choices)

    def _is_large_enough(self, clauses: Sequence[Clause]) -> bool:
        inside, outside = self._sides(clauses)
        return min(self.n_rows(inside), self.n_rows(outside)) >= LEAST_ROWS

    def best_box(self, first: Clause, second: int, choices: float) -> Account | None:
        """Return the best account of two clauses, beginning with levels of the first column.

        The levels of one column are chosen inside those of the other, in turns until nothing changes.
        `choices` is what the choice of the columns costs.
        """
        clauses: dict[int, tuple[int, ...]] = dict([first])
        order = [second, first[0]]
        for turn in range(4):
            gate = order[turn % 2]
            others = [(column, levels) for column, levels in clauses.items() if column != gate]
            found = self._best_levels(gate, others, self.ranked(gate, others))
            if found is None:
                return None
            if clauses.get(gate) == found[1] and turn > 1:
                break
            clauses[gate] = found[1]
        if any(len(levels) == len(self.table.used_levels(c)) for c, levels in clauses.items()):
            return None
        columns = (first[0], second)
        price = choices + sum(2 * log(2.0 ** len(self.table.used_levels(column)) - 2) for column in columns)
        return self.account(list(clauses.items()), self._best_without_box(*columns), price)

    def _best_levels(
        self, gate: int, others: Sequence[Clause], ranked: Sequence[int]
    ) -> tuple[float, tuple[int, ...]] | None:
        """Return the score of the best set of the first levels, and the set."""
        scored = []
        for cut in range(1, len(ranked)):
            levels = tuple(sorted(ranked[:cut]))
            if self._is_large_enough([*others, (gate, levels)]):
                column = self.table.indicator([*others, (gate, levels)])
                scored.append((self.penalised(self.ratio([(column,)])), levels))
        return max(scored, default=None)

    def _best_without_box(self, first: int, second: int) -> float:
        """Return the best score of accounts that need no two clauses together."""
        freely = [self.free(first), self.free(second), self.ratio([(), (first,), (second,)])]
        single = [self.best_gate(gate) for gate in (first, second)]
        return max(
            0.0,
            self.penalised(self.plain),
            *(self.penalised(one) for one in freely),
            *(one.score for one in single if one is not None),
        )

    def second_clauses(self, first: Clause, columns: Sequence[int]) -> list[int]:
        """Return the columns at whose levels the link inside a first clause seems to differ, best first."""
        inside = self.table.indicator([first])
        p_values = [p * len(columns) for p in self.product_scores([(inside,)], columns, inside)]
        ranked = sorted(zip(p_values, columns, strict=True))
        return [column for p, column in ranked if p < SECOND][:MOST_SECONDS]


def find_gates(models: Models, may_gate: Bools) -> list[Account]:
    """Return the gates that may be said, one a pair at most; products of four columns enter the models.

    A gate is read off a product of three columns in the way that scores best; others of the same
    columns are not said.
    """
    found = sorted(_accounts(models, may_gate), key=lambda one: (-one.advantage, one.pair, one.clauses))
    said: list[Account] = []
    is_stale = False
    for one in found:
        if any(set(one.pair) <= known.columns for known in said):
            continue
        account = _again(models, one) if is_stale else one
        if account is None or not account.is_sure:
            continue
        said.append(replace(account, margin=one.margin))
        if len(account.clauses) > 1:
            # What four columns do together must not be read as something else of three of them.
            models.products.add(tuple(sorted(account.columns)))
            is_stale = True
    return said


def _accounts(models: Models, may_gate: Bools) -> list[Account]:
    found = {}
    for triple in sorted(models.products):
        for gate in triple:
            if not may_gate[gate]:
                continue
            a, b = (c for c in triple if c != gate)
            problem = PairProblem(models, a, b, [gate])
            single = problem.best_gate(gate)
            if single is None:
                continue
            single = problem.with_far_products(problem.with_far_levels(single))
            found[single.pair, single.clauses] = single
            # The second clause is looked for inside the first: outside of it there must be little.
            if single.ratio > 1 or single.far_level_p < FAR_LEVEL:
                continue
            columns = [c for c in _second_columns(models, triple) if may_gate[c]]
            for column in problem.second_clauses(single.clauses[0], columns):
                both = PairProblem(models, a, b, [gate, column])
                box = both.best_box(single.clauses[0], column, 2 * log(len(columns)))
                if box is not None:
                    found[box.pair, box.clauses] = both.with_far_products(both.with_far_levels(box))
    return [
        replace(one, margin=one.advantage - _best_rival(one, found.values()))
        for one in found.values()
        if one.is_sure
    ]


def _best_rival(account: Account, accounts: Iterable[Account]) -> float:
    """Return the advantage of the best account that reads the same columns in another way."""
    rivals = [
        one.advantage for one in accounts if one.columns == account.columns and one.pair != account.pair
    ]
    return max(rivals, default=HOPELESS)


def _second_columns(models: Models, triple: Sequence[int]) -> list[int]:
    return [
        column
        for column in range(models.table.n_columns)
        if column not in triple
        and all(models.may_link(one, column) for one in triple)
        and 2 <= len(models.table.used_levels(column)) <= MOST_LEVELS
    ]


def _again(models: Models, account: Account) -> Account | None:
    """Weigh an account in the models as they are now."""
    gates = [column for column, _ in account.clauses]
    problem = PairProblem(models, *account.pair, gates)
    if len(gates) == 1:
        again = problem.best_gate(gates[0])
    else:
        n_columns = len(_second_columns(models, (*account.pair, gates[0])))
        again = problem.best_box(account.clauses[0], gates[1], 2 * log(max(1, n_columns)))
    return None if again is None else problem.with_far_levels(again)


def _term(part: tuple[int, ...], other: int) -> Term:
    return tuple(sorted((*part, other)))
