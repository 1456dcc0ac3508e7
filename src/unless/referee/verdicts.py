"""All pairs of a table judged: which are linked given all else, where, how surely, and what is open.

`Referee.judge` goes through the chapters in order: blankets and products (`models`), gates and rules
(`gates`, `counted`), then the test of each pair beside all that, a second look at pairs beside numbers, and
how surely each verdict holds.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import exp, log
from typing import Literal

import numpy as np

from unless.data.dataset import Dataset
from unless.independence.statistics import NOTHING, Statistic, adjusted, p_values_of
from unless.referee.counted import ASSOCIATED, MOST_LEVELS, Rule, WideTester, find_rule, regressable
from unless.referee.gates import Account, PairProblem, find_gates
from unless.referee.models import KEPT, Models, find_blanket, find_products, regrow
from unless.referee.regressions import (
    LinkEstimate,
    RegressionTable,
    Term,
    estimate_link,
    known_part,
    mean_of,
)
from unless.typing import Bools, Floats, Integers

Kind = Literal["linked", "gated", "differs", "partly", "determined", "associated", "unlinked", "open"]
Pair = tuple[int, int]
# The level at which blankets grow and shrink, and below which a pair may be a link; of many columns, blankets
# take in about so many by chance at most.
ALPHA, MOST_BY_CHANCE = 0.05, 2.0
# A second look bears out the first where its p, to this power, is no larger.
AGAIN = 2.0
# With a larger p beside main effects alone, no pair of a table becomes a finding.
HOPELESS_P = 0.02
# Rules are looked for with all other columns fixed where they are no more than this: else few rows agree.
MOST_FIXED = 12
# A column adds to a function of it where p is below this; else the coarser column has the link.
BEYOND = 0.001
# Sides that differ: what the free account must gain over the plain one.
LEAST_DIFFERENCE = 6.0
# A side is linked by itself where p is below this, and a far side only if it has this share of the effect:
# less may be what a regression leaves that is not quite right.
SIDE_LINKED, FAR_LINKED = 0.01, 0.3
# With so small a p it is linked, however weakly.
SURELY_LINKED = 1e-7

# p below this makes no difference to a confidence, and its logarithm stays finite.
LEAST_P = 1e-60
# The law of p where there is a link is x p^(x - 1): one x for links that are easily seen, one for weak ones.
STRONG, WEAK = 0.005, 0.1
# Shares of pairs with a strong and with a weak link that are thought possible, by equal factors; a weak share
# counts by the inverse of its square (chosen on design seeds, so that confidences are kept).
_STRONG_SHARES = tuple(np.geomspace(0.005, 0.8, 16).tolist())
_WEAK_SHARES = tuple(np.geomspace(0.002, 0.3, 12).tolist())
# A finding may be wrong with at most so many times the rate aimed at, however sure the others are.
LOCAL = 8.0
# A gate that is no better than another reading of the same columns is right about half the time; each gain of
# so much on the scale of its score halves the odds of error, or more. Even the clearest are not always right.
# (Fitted on gated tables of 300 to 2,000 rows; docs/accuracy.md has other seeds.)
_GATE_SCALE, _GATE_MOST = 2.2, 0.985
# Sides that are said to differ do so about this often.
DIFFERENCE = 0.97

# Numbers are corrected one after the other, so many times.
SWEEPS = 3
# Groups of a number, and the rows of each, inside which a line and a bend are taken off.
MOST_PARTS, ROWS_A_PART = 48, 60
# Of a number with so many places, rows in the outermost are left out.
LEAST_PLACES = 40
# Rows whose products are held at a time.
ROWS_AT_ONCE = 500
# A variance that is less than this share of the largest is what rounding left.
LEAST_SIZE = 1e-7
# A group with fewer different places has no bend, with fewer than two no line.
LEAST_BENT = 4


@dataclass(frozen=True)
class PairVerdict:
    """What is found of one pair. Columns are positions, in the order of names.

    `p` is corrected for the choice of the account, `q` over all pairs. `statistic` is the mean of both ends.
    `given` are the columns that the regressions of both ends hold. `account` has the sides of a gate.
    """

    pair: Pair
    kind: Kind
    link: LinkEstimate
    p: float
    q: float = 1.0
    # That there is a link, and that its gate is right where it has one.
    confidence: float = 0.0
    gate_confidence: float = 1.0
    given: tuple[int, ...] = ()
    account: Account | None = None
    is_candidate: bool = False
    method: str = "regression"


class Referee:
    """Judges the pairs of one table; its columns are in the order of their names."""

    def __init__(
        self,
        data: Dataset,
        determined: Bools | None = None,
        may_gate: Bools | None = None,
        functions: Sequence[tuple[int, int]] = (),
        step: Callable[[], object] = lambda: None,
    ) -> None:
        self.data, self.table = data, RegressionTable(data)
        n = self.table.n_columns
        varies = np.array([len(levels) > 1 for levels in self.table.used])
        # Pairs of which one column determines the other.
        self.determined = np.zeros((n, n), dtype=np.bool_) if determined is None else determined
        # Columns (source, column) of which the second is a function of the first.
        self.functions = tuple(functions)
        self.may_gate = np.ones(n, dtype=np.bool_) if may_gate is None else may_gate
        # Pairs that may be linked, and for each target the columns that its regression may hold.
        self.pairs: Bools = varies[:, None] & varies[None, :] & ~self.determined
        np.fill_diagonal(self.pairs, False)
        self.allowed: Bools = self.pairs & regressable(self.table)
        self.wide = WideTester(self.table)
        self._too_wide = np.flatnonzero(self.pairs.any(axis=1) & ~self.allowed.any(axis=1)).tolist()
        self.step = step
        self._associations: dict[Pair, float] = {}

    def association(self, a: int, b: int) -> float:
        """Return Cramer's V of two columns by themselves."""
        pair = (min(a, b), max(a, b))
        if pair not in self._associations:
            self._associations[pair] = marginal_test(self, pair)[0]
        return self._associations[pair]

    def search(self) -> Models:
        """Find the blankets, the products and what they leave open."""
        blankets, alpha = [], min(ALPHA, MOST_BY_CHANCE / self.table.n_columns)
        for target in range(self.table.n_columns):
            near = np.flatnonzero(self.allowed[target]).tolist()
            blankets.append(set(find_blanket(self.table, target, near, alpha)) if near else set())
            self.step()
        models = Models(self.table, self.allowed, blankets)
        find_products(models)
        regrow(models, alpha)
        return models

    def judge(self, unsaid: Collection[Pair] = (), never: Collection[Pair] = ()) -> list[PairVerdict]:
        """Judge all pairs that may be linked, in order, but for those of which nothing is to be said.

        `never` are pairs that are known not to be linked. Nothing is said of them either, and what is linked
        with neither end of a pair is no gate of it. Other pairs are judged as if nothing were known.
        """
        models = self.search()
        gates = {account.pair: account for account in find_gates(models, self.may_gate)}
        candidates = models.links()
        verdicts = {}
        for pair in candidates:
            account = self._rule(models, pair) or gates.get(pair)
            if account is not None and any(_is_apart(c, pair, never) for c, _ in account.clauses):
                account = None
            verdicts[pair] = self._candidate(models, pair, account)
        verdicts |= self._with_differences(models, verdicts, never)
        for verdict in self._others(models, candidates):
            verdicts[verdict.pair] = verdict
        for pair in combinations(range(self.table.n_columns), 2):
            if self.pairs[pair] and not models.may_link(*pair):
                verdicts[pair] = self._wide_pair(pair)
        verdicts |= self._carried_by_others(models, verdicts)
        weighed = self._weighed([verdicts[pair] for pair in sorted(verdicts) if pair not in unsaid])
        return [one for one in weighed if one.pair not in never]

    def _carried_by_others(
        self, models: Models, verdicts: Mapping[Pair, PairVerdict]
    ) -> dict[Pair, PairVerdict]:
        """Return as no candidates the links of a column that a function of it carries, or the other way.

        A column and a function of it go together with the same third columns. The function, which is coarser,
        has the link where the column adds nothing to it; else the column has it.
        """
        moved: dict[Pair, PairVerdict] = {}
        for source, column in self.functions:
            for third in range(self.table.n_columns):
                pairs = [(min(third, end), max(third, end)) for end in (source, column)]
                if not all(pair in verdicts and verdicts[pair].is_candidate for pair in pairs):
                    continue
                if any(pair in moved or verdicts[pair].p >= ALPHA for pair in pairs):
                    continue
                beyond = self._beyond(models, third, source, column)
                loser, carrier = (pairs[0], column) if beyond.p >= BEYOND else (pairs[1], source)
                given = tuple(sorted({*verdicts[loser].given, carrier} - set(loser)))
                rest = beyond if carrier == column else NOTHING
                link = replace(verdicts[loser].link, statistic=rest)
                moved[loser] = replace(
                    verdicts[loser], link=link, p=rest.p, given=given, kind="linked", account=None,
                    is_candidate=False,
                )  # fmt: skip
        return moved

    def _beyond(self, models: Models, third: int, source: int, column: int) -> Statistic:
        """Test that a source adds nothing to a function of it in the regression of a third column."""
        base = models.base(third, source, with_products=False) | {(column,)}
        ratio = self.table.likelihood_ratio(third, base, [(source,)])
        sizes = [len(self.table.used_levels(c)) for c in (source, column, third)]
        # The columns of the source hold those of its function.
        df = (sizes[0] - sizes[1]) * (sizes[2] - 1)
        return Statistic(ratio.value, df) if df > 0 else NOTHING

    def _candidate(self, models: Models, pair: Pair, account: Account | None) -> PairVerdict:
        self.step()
        if account is None and not any(set(pair) < set(product) for product in models.products):
            # Most candidates are none: a test beside main effects alone is cheap, and hardly ever too severe.
            quick = PairProblem(models, *pair, with_products=False)
            ends = quick.ratios([()])
            if agreed(ends) >= HOPELESS_P and agreed(quick.trends()) >= HOPELESS_P:
                link = quick.estimate(mean_of(ends), quick.n_complete())
                return PairVerdict(pair, "linked", link, agreed(ends), given=quick.given, is_candidate=True)
        problem = PairProblem(models, *pair)
        link, p = self._link(models, problem)
        given, is_shut_out = problem.given, not self._may_be_confounded(pair)
        if account is not None:
            within = PairProblem(models, *pair, [column for column, _ in account.clauses])
            given = within.given
            if account.differences:
                inside = self.table.indicator(account.clauses)
                p = min(p * 2, agreed(within.ratios([(inside,)])) * self._n_choices(account), 1.0)
                p = self._looked_at_again(within, p, [inside])
            kind: Kind = "partly" if self._is_common_effect(account) else "gated"
            return PairVerdict(
                pair, kind, account.inside, p, account=account, given=given, is_candidate=is_shut_out
            )
        return PairVerdict(pair, "linked", link, p, given=given, is_candidate=is_shut_out)

    def _with_differences(
        self, models: Models, verdicts: dict[Pair, PairVerdict], never: Collection[Pair]
    ) -> dict[Pair, PairVerdict]:
        """Return links that differ between the sides of a gate: one of the pairs of three columns."""
        sayable = {pair: one for pair, one in verdicts.items() if pair not in never}
        said = [one.account.columns for one in sayable.values() if one.account is not None]
        waiting = []
        for pair, one in sayable.items():
            if one.kind == "linked" and one.is_candidate and one.p < ALPHA and one.account is None:
                found = self._other_account(models, pair, never)
                if found is not None:
                    waiting.append((-found[0], pair, found[1], found[2]))
        changed = {}
        for _, pair, kind, account in sorted(waiting, key=lambda one: one[:2]):
            if not any(account.columns <= columns for columns in said):
                said.append(account.columns)
                changed[pair] = replace(verdicts[pair], kind=kind, account=account)
        return changed

    def _rule(self, models: Models, pair: Pair) -> Account | None:
        """Return the gate outside of which one end of a pair never varies with the other, all else fixed."""
        # Rows of a survey are not counted one by one.
        if self.table.incomplete(pair) or self.table.survey is not None:
            return None
        others = [
            c
            for c in range(self.table.n_columns)
            if self.pairs[c, pair[0]] and self.pairs[c, pair[1]] and not self.table.incomplete([c])
        ]
        gates = [c for c in others if self.may_gate[c]]
        near = set(models.blankets[pair[0]]) | set(models.blankets[pair[1]])
        best: Rule | None = None
        for first, column in (pair, pair[::-1]):
            for fixed in ([others] if len(others) <= MOST_FIXED else []) + [[c for c in others if c in near]]:
                rule = find_rule(self.table, first, column, fixed, [c for c in gates if c in fixed])
                if rule is not None and (best is None or rule.chance < best.chance):
                    best = rule
        if best is None:
            return None
        problem = PairProblem(models, *pair)
        inside = self.table.indicator(best.clauses)
        rows = problem.n_rows(inside)
        # Weights of a rule have no end: inside, the table itself is tested, within strata.
        test = self.wide.within(*pair, problem.given, self.table.codes[inside] == 1)
        advantage = -2 * log(max(best.chance, 1e-300))
        return Account(
            pair, best.clauses, advantage, advantage,
            problem.estimate(Statistic(test.statistic, test.df), rows),
            # Nothing varies there: what chance alone would give is the most that can be left.
            problem.estimate(Statistic(0.0, 1), self.table.n_rows - rows),
            (), 1.0, advantage,
        )  # fmt: skip

    def _is_common_effect(self, account: Account) -> bool:
        """Tell whether a gate looks like a common effect of the pair.

        Two columns that go together only once a third is known, which goes together with both, are its causes
        as likely as not. Causes are linked at all levels of their effect, at some of them weakly.
        """
        if not account.differences or len(account.clauses) != 1:
            return False
        (gate, _), (a, b) = account.clauses[0], account.pair
        goes_with_both = all(self.wide.alone(gate, end).p < ASSOCIATED for end in (a, b))
        return goes_with_both and self.wide.alone(a, b).p >= ALPHA

    def _may_be_confounded(self, pair: Pair) -> bool:
        """Tell whether a column that goes together with both ends has too many levels to be held fixed."""
        return any(
            all(self.pairs[c, end] and not self.allowed[end, c] for end in pair)
            and all(self.wide.alone(c, end).p < ASSOCIATED for end in pair)
            for c in self._too_wide
            if c not in pair
        )

    def _link(self, models: Models, problem: PairProblem) -> tuple[LinkEstimate, float]:
        """Test a link: one that is the same everywhere, or one with the products that the models have."""
        a, b = problem.pair
        ways = [problem.ratios([()])]
        shared = sorted(
            {c for triple in models.products if a in triple and b in triple for c in triple} - {a, b}
        )
        if shared:
            products = [
                tuple(c for c in product if c not in (a, b))
                for product in sorted(models.products)
                if a in product and b in product
            ]
            within = PairProblem(models, a, b, shared)
            ways.append(within.ratios([(), *products]))
        p_values = [agreed(way) for way in ways]
        best = int(np.argmin(p_values))
        link = problem.estimate(mean_of(ways[best]), problem.n_complete())
        trends = problem.trends()
        if trends:
            # How strong a link is follows from all levels, whether there is one also from the order.
            p_values.append(agreed(trends))
        levels = [
            self.table.indicator([(c, (level,))]) for c in shared for level in self.table.used_levels(c)
        ]
        return link, self._looked_at_again(problem, min(1.0, min(p_values) * len(p_values)), [None, *levels])

    def _looked_at_again(self, problem: PairProblem, p: float, parts: Sequence[int | None]) -> float:
        """Return the larger p where a number is held fixed, which varies inside its groups, too.

        `parts` are indicators of the rows in one of which there should be a link; None is all rows.
        """
        if p >= ALPHA:
            return p
        inside = [None if part is None else self.table.codes[part] == 1 for part in parts]
        again = look_again(self.table, problem.pair, problem.bases, inside)
        # For a link both p are nearly the same; for what is left inside groups the first is much smaller.
        return p if again is None or again**AGAIN <= p else max(p, again)

    def _n_choices(self, account: Account) -> float:
        """Return the number of gates that the same search could have chosen."""
        n = self.table.n_columns - 2
        return float(np.prod([n * (2.0 ** len(self.table.used_levels(c)) - 2) for c, _ in account.clauses]))

    def _other_account(
        self, models: Models, pair: Pair, never: Collection[Pair]
    ) -> tuple[float, Kind, Account] | None:
        """Return what is gained by a gate whose sides differ, how they do, and its account."""
        best: tuple[float, Kind, Account] | None = None
        for triple in sorted(models.products):
            if len(triple) != 3 or not set(pair) < set(triple):
                continue
            (gate,) = set(triple) - set(pair)
            if _is_apart(gate, pair, never):
                continue
            if len(self.table.used_levels(gate)) > MOST_LEVELS or not self.may_gate[gate]:
                continue
            problem = PairProblem(models, *pair, [gate])
            free, plain = problem.free(gate), problem.plain
            gain = problem.penalised(free) - problem.penalised(plain)
            if gain <= LEAST_DIFFERENCE:
                continue
            account = problem.best_gate(gate, hopeless=-np.inf)
            if account is None or max(one.p for one in account.differences) >= KEPT:
                continue
            if account.inside.statistic.p >= SIDE_LINKED:
                continue
            far = account.outside
            is_linked = far.statistic.p < SIDE_LINKED and far.v >= FAR_LINKED * account.inside.v
            is_linked |= far.statistic.p < SURELY_LINKED
            kind: Kind = "differs" if is_linked else "partly"
            if best is None or gain > best[0]:
                best = gain, kind, account
        return best

    def _others(self, models: Models, candidates: list[Pair]) -> list[PairVerdict]:
        """Judge pairs that no blanket has: by scores given the blankets of both ends."""
        table, known = self.table, set(candidates)
        by_pair: dict[Pair, list[Statistic]] = {}
        for target in range(table.n_columns):
            rest = [
                c
                for c in range(table.n_columns)
                if models.may_link(target, c) and (min(c, target), max(c, target)) not in known
            ]
            terms = models.terms(target)
            fixed = sorted({c for term in terms for c in term})
            # What determines the other column, or is determined by it, is no condition of the pair.
            single = [c for c in rest if self.determined[c, fixed].any()]
            rest = [c for c in rest if c not in single]
            tests = table.scores(target, table.fit(target, terms), rest)
            for column in single:
                fitted = table.fit(target, models.base(target, column, with_products=False))
                rest, tests = [*rest, column], [*tests, *table.scores(target, fitted, [column])]
            for column, test in zip(rest, tests, strict=True):
                by_pair.setdefault((min(column, target), max(column, target)), []).append(test)
        verdicts = []
        for pair, tests in sorted(by_pair.items()):
            together = mean_of(tests)
            given = {c for end in pair for term in models.terms(end) for c in term} - set(pair)
            given = {c for c in given if not self.determined[c, list(pair)].any()}
            link = estimate_link(table, pair, together, table.n_complete([*pair, *given]))
            verdicts.append(PairVerdict(pair, "unlinked", link, together.p, given=tuple(sorted(given))))
        return verdicts

    def _wide_pair(self, pair: Pair) -> PairVerdict:
        """Judge a pair that no regression can: within the strata of what goes together with an end."""
        self.step()
        alone = self.wide.alone(*pair)
        if alone.p >= ALPHA:
            return PairVerdict(
                pair, "unlinked", self.wide.estimate(*pair, alone), alone.p, method=alone.method
            )
        others = [
            c
            for c in range(self.table.n_columns)
            if c not in pair and all(self.pairs[c, end] for end in pair)
        ]
        test, given, is_complete = self.wide.given_others(*pair, others)
        link = self.wide.estimate(*pair, test)
        return PairVerdict(
            pair, "linked", link, test.p, given=given, is_candidate=is_complete, method=test.method
        )

    def _weighed(self, verdicts: list[PairVerdict]) -> list[PairVerdict]:
        """Give all verdicts q and a confidence."""
        p_values = [one.p for one in verdicts]
        q_values = adjusted(p_values) if p_values else np.zeros(0)
        weighed = []
        for one, q, confidence in zip(verdicts, q_values, link_confidences(p_values), strict=True):
            gate = 1.0
            if one.kind == "gated" and one.account is not None:
                gate = gate_confidence(one.account.margin)
            elif one.kind == "differs":
                gate = DIFFERENCE
            weighed.append(replace(one, q=float(q), confidence=float(confidence), gate_confidence=gate))
        return weighed


def _is_apart(column: int, pair: Pair, never: Collection[Pair]) -> bool:
    """Tell whether a column is known not to be linked with either end of a pair."""
    return all((min(column, end), max(column, end)) in never for end in pair)


def agreed(ends: list[Statistic]) -> float:
    """Return the p that both ends of a pair bear out.

    Their regressions are of the same rows: where they disagree, one of them is wrong. The cubed p of the
    weaker end is a bound that true links pass (docs/decisions/0027-the-referee.md).
    """
    tested = [one for one in ends if one.df]
    return max(mean_of(tested).p, max(one.p for one in tested) ** 3) if tested else 1.0


def marginal_test(referee: Referee, pair: Pair) -> tuple[float, float]:
    """Return Cramer's V, without what chance alone gives, and the p of two columns by themselves."""
    test = referee.wide.alone(*pair)
    return referee.wide.estimate(*pair, test).v, test.p


# ---------------------------------------------------------------------- a second look beside numbers
# Regressions hold groups of a number fixed. What follows the number closely still varies with it inside a
# group, and so do two columns that both follow it: they look linked. Here the residuals of both ends are
# taken, freed of what follows each number inside its groups (a line and a bend), and multiplied. Without a
# link the mean product is 0 (the generalised covariance measure; Shah and Peters 2020), unless the errors of
# both regressions agree.


def look_again(
    table: RegressionTable,
    pair: tuple[int, int],
    bases: Mapping[int, Iterable[Term]],
    parts: Sequence[Bools | None],
) -> float | None:
    """Return the p of a link in the strongest of some parts of the rows (None: all), times their number.

    `bases` are the terms that are held fixed at each end. None where no number is held.
    """
    fixed = {c for terms in bases.values() for term in terms for c in term}
    numbers = sorted(table.finest.keys() & table.columns_of(fixed))
    if not numbers:
        return None
    needed = table.incomplete([*pair, *fixed])
    weights = table.weights(needed)
    residuals = []
    for end in pair:
        fitted = table.fit(end, bases[end], needed=needed)
        if not fitted.n_free:
            return None
        which, _, _, probabilities = table.expected(fitted)
        seen = table.codes[end][:, None] == fitted.shown[None, 1:]
        residuals.append((fitted.shown, _freed(table, seen - probabilities[which], numbers, weights)))
    # Outermost places have no end: a number may vary by as much there as in all others.
    inner = np.logical_and.reduce([_is_inner(table.finest[column], weights) for column in numbers])
    p_values = []
    for part in parts:
        counts = np.where(inner if part is None else inner & part, weights, 0.0)
        p_values.append(_p_of(table, pair, residuals, counts))
    return min(1.0, min(p_values) * len(p_values))


def _is_inner(finest: Integers, weights: Floats) -> Bools:
    """Tell which rows are in neither the first nor the last place of a number, where there are many."""
    places = np.unique(finest[weights > 0])
    inner: Bools = np.ones(len(finest), dtype=np.bool_)
    if len(places) >= LEAST_PLACES:
        inner = (finest > places[0]) & (finest < places[-1])
    return inner


def _freed(table: RegressionTable, residuals: Floats, numbers: Sequence[int], weights: Floats) -> Floats:
    """Take from residuals what follows each number inside its groups."""
    designs = [_within(table, column, weights) for column in numbers]
    for _ in range(SWEEPS if len(designs) > 1 else 1):
        for group, basis in designs:
            for k in range(residuals.shape[1]):
                for one in basis:
                    residuals[:, k] = _without(residuals[:, k], one, group, weights)
    return residuals


def _within(table: RegressionTable, column: int, weights: Floats) -> tuple[Integers, list[Floats]]:
    """Return the group of each row, and a constant, a line and a bend that are orthogonal in each group."""
    finest = table.finest[column]
    totals = np.bincount(finest, weights=weights)
    n_groups = int(min(MOST_PARTS, max(1, totals.sum() // ROWS_A_PART)))
    # A place belongs to the group in which the middle of its rows lies.
    middle = (np.cumsum(totals) - totals / 2) / max(float(totals.sum()), 1.0)
    group: Integers = np.minimum((middle * n_groups).astype(np.int64), n_groups - 1)[finest]
    first, last = np.full(n_groups, np.iinfo(np.int64).max), np.zeros(n_groups, dtype=np.int64)
    np.minimum.at(first, group, finest)
    np.maximum.at(last, group, finest)
    place = 2 * (finest - first[group]) / np.maximum(last - first, 1)[group] - 1
    n_places = (last - first + 1)[group]
    constant = np.ones(len(group))
    line = _without(np.where(n_places > 1, place, 0.0), constant, group, weights)
    bend = np.where(n_places >= LEAST_BENT, place**2, 0.0)
    for one in (constant, line):
        bend = _without(bend, one, group, weights)
    return group, [constant, line, bend]


def _without(values: Floats, other: Floats, group: Integers, weights: Floats) -> Floats:
    """Take from values, in each group, what is a multiple of others."""
    along = np.bincount(group, weights=weights * other * values)
    size = np.bincount(group, weights=weights * other**2)
    known = size > LEAST_SIZE * np.bincount(group, weights=weights)
    freed: Floats = values - np.where(known, along / np.where(known, size, 1.0), 0.0)[group] * other
    return freed


def _p_of(
    table: RegressionTable, pair: tuple[int, int], residuals: list[tuple[Integers, Floats]], counts: Floats
) -> float:
    """Test that products of residuals have mean 0: by all levels and, where there is an order, by trend."""
    (shown, first), (other_shown, second) = residuals
    size = first.shape[1] * second.shape[1]
    total, spread = np.zeros(size), np.zeros((size, size))
    lower = np.tril_indices(size)
    rows = np.flatnonzero(counts)
    for begin in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[begin : begin + ROWS_AT_ONCE]
        products = (first[some][:, :, None] * second[some][:, None, :]).reshape(len(some), size)
        weighted = products * counts[some][:, None]
        total += weighted.sum(axis=0)
        spread[lower] += (weighted[:, lower[0]] * products[:, lower[1]]).sum(axis=0)
    largest = float(np.diag(spread).max())
    tests = [known_part(total, spread, LEAST_SIZE * max(largest, 1e-12))]
    scores, other_scores = (table.level_scores[end] for end in pair)
    if table.has_trend(*pair) and scores is not None and other_scores is not None:
        rises = scores[shown[1:]] - scores[shown[0]]
        other_rises = other_scores[other_shown[1:]] - other_scores[other_shown[0]]
        slope = np.outer(rises, other_rises).ravel()
        whole = spread + np.tril(spread, -1).T
        variance = float((np.outer(slope, slope) * whole).sum())
        if variance > 0:
            tests.append(Statistic(float((slope * total).sum()) ** 2 / variance, 1))
    tests = [table.corrected(one, *pair) for one in tests]
    return min(1.0, len(tests) * min(p_values_of(tests)))


# ---------------------------------------------------------------------- how surely


def link_confidences(p_values: Sequence[float]) -> Floats:
    """Return, for each pair, the probability that it is linked, from the p of all of them.

    The p of pairs without a link are uniform, those of links follow one of two laws. The shares of the two
    are not fitted but averaged over: a small table leaves them open, and a fitted share would follow chance.
    """
    if not len(p_values):
        return np.zeros(0)
    p = np.clip(np.asarray(p_values, dtype=np.float64), LEAST_P, 1.0)
    strong, weak = (shape * p ** (shape - 1) for shape in (STRONG, WEAK))
    likelihoods, linked = [], []
    for strong_share in _STRONG_SHARES:
        for weak_share in _WEAK_SHARES:
            absent = 1 - strong_share - weak_share
            if absent <= 0.02:
                continue
            density = absent + strong_share * strong + weak_share * weak
            likelihoods.append(float(np.log(density).sum()) - 2 * float(np.log(weak_share)))
            linked.append(1 - absent / density)
    weights = np.exp(np.array(likelihoods) - max(likelihoods))
    weights /= weights.sum()
    mean = np.zeros(len(p))
    for weight, one in zip(weights.tolist(), linked, strict=True):
        mean += weight * one
    return np.minimum(mean, 1.0)


def gate_confidence(margin: float) -> float:
    """Return how likely a gate is the right account of a pair that is linked, by its margin over others."""
    return _GATE_MOST / (1 + exp(-min(50.0, max(-50.0, margin)) / _GATE_SCALE))


def listed(confidences: Sequence[float], fdr: float) -> list[bool]:
    """Tell which candidates are findings: the surest, as long as at most `fdr` of them are expected false.

    None is listed that is itself false with more than `LOCAL` times that chance.
    """
    doubts = 1 - np.asarray(confidences, dtype=np.float64)
    order = np.argsort(doubts, kind="stable")
    means = np.cumsum(doubts[order]) / np.arange(1, len(order) + 1)
    is_listed = np.zeros(len(order), dtype=np.bool_)
    is_listed[order] = (means <= fdr) & (doubts[order] <= min(1.0, LOCAL * fdr))
    return [bool(one) for one in is_listed]
