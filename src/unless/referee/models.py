"""The regressions of all columns: the neighbours of each, then the products that several of them need.

Neighbours are grown by score tests and shrunk by likelihood ratios. A product means that a pair interacts
differently at the levels of a third column; products are found forward. One that is missing from the
regressions makes neighbours of its columns look linked, or look as if they were gated. So each is tested with
all products found so far in the regressions of its three ends, and each pair with whatever products its
regressions need without it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from unless.independence.statistics import NOTHING, Statistic, chi_square_tails, p_values_of
from unless.referee.regressions import RegressionTable, Term, TermFit, mean_of, p_with_trends
from unless.typing import Bools

Triple = tuple[int, int, int]
# A product is kept where p, times the number of triples looked at, is below this.
KEPT = 0.01
# Pearson's statistic against what the regressions expect is a little small: it only rules out.
SCREENED = 1e-3
# A column of a blanket whose weights have a p below this share of alpha would not leave by likelihood ratio.
SETTLED = 0.05
# Of more columns than these, only those that tell something (`LIKELY`) are asked again while one of them
# enters a blanket clearly (`CLEARLY`): what is less clear may stand for one that was not asked.
FEW_NEAR, LIKELY, CLEARLY = 20, 0.05, 1e-6
# Products that have a p above this at first are not tried again.
TRIED_AGAIN = 0.05
# Products enter the regression that a pair is tested beside where p, times their number, is below this.
ENRICHED = 0.01
MOST_ENRICHED = 12
# Columns cubed times distinct rows, up to which all triples are looked at.
MOST_COUNTED = 50_000_000
# A product has at most so many weights for each row.
WEIGHTS_PER_ROW = 0.05
# Larger blankets cost more than they tell.
MOST_NEIGHBOURS = 24
# Of more columns, only those that go together most with the target by themselves are looked at again.
MOST_NEAR = 150


def find_blanket(
    table: RegressionTable, target: int, allowed: Collection[int], alpha: float
) -> tuple[int, ...]:
    """Return the columns that a target depends on given all others of them.

    A column enters where p < alpha given those that are in, the strongest first; then the weakest leave
    while p >= alpha. The blanket is there to shut other columns out, so that alpha is not corrected: one
    column too many costs a few degrees of freedom, one too few makes false links.
    """
    inside: list[int] = []
    near = list(allowed)
    asked, enough = near, alpha
    while len(inside) < MOST_NEIGHBOURS:
        fitted = table.fit(target, [(c,) for c in inside])
        rest = [c for c in asked if c not in inside]
        tests = table.scores_and_trends(target, fitted, rest)
        ranked = sorted(zip(p_with_trends(tests), [-one.value for one, _ in tests], rest, strict=True))
        if not ranked or ranked[0][0] >= enough:
            if asked is near:
                break
            asked, enough = near, alpha
            continue
        if asked is near and len(near) > MOST_NEAR:
            near = [c for _, _, c in ranked[:MOST_NEAR]]
        inside.append(ranked[0][2])
        asked, enough = near, alpha
        if len(near) > FEW_NEAR and len(ranked) > 1 and ranked[1][0] < CLEARLY:
            asked, enough = [c for p, _, c in ranked if p < LIKELY], CLEARLY
    while inside:
        terms: set[Term] = {(c,) for c in inside}
        settled = table.settled(target, terms, alpha * SETTLED)
        doubted, tests = [c for c in inside if (c,) not in settled], []
        for c in doubted:
            whole = table.likelihood_ratio(target, terms - {(c,)}, [(c,)])
            # Both together give twice the smaller p at most.
            tests.append((whole, table.trend(target, terms - {(c,)}, c) if 2 * whole.p >= alpha else NOTHING))
        worst, leaving = max(zip(p_with_trends(tests), doubted, strict=True), default=(0.0, -1))
        if worst < alpha:
            break
        inside.remove(leaving)
    return tuple(sorted(inside))


@dataclass
class Models:
    """The regressions of all columns: their blankets, and the products that they share."""

    table: RegressionTable
    allowed: Bools
    blankets: list[set[int]]
    # Sets of three columns, or four, that interact; an end has the product of the others.
    products: set[tuple[int, ...]] = field(default_factory=set)
    _enriched: dict[tuple[int, frozenset[Term]], frozenset[Term]] = field(default_factory=dict)
    _not_allowed: dict[int, frozenset[int]] = field(default_factory=dict)
    # Score tests of products, by the end and the terms of the regression without them.
    _scored: dict[tuple[int, frozenset[Term]], dict[Term, Statistic]] = field(default_factory=dict)

    def terms(self, target: int, more: Iterable[int] = ()) -> set[Term]:
        """Return the terms of a target's regression: its blanket, its products, and more columns."""
        products = {tuple(c for c in triple if c != target) for triple in self.products if target in triple}
        columns = {*self.blankets[target], *more, *(c for term in products for c in term)} - {target}
        return {(c,) for c in columns if self.allowed[target, c]} | products

    def base(
        self, end: int, other: int, more: Iterable[int] = (), with_products: bool = True
    ) -> frozenset[Term]:
        """Return the terms of one end of a pair that do not have the other, enough to shut all else out.

        They are those of the end and the neighbours of the other, the products that these need (if asked
        for), and more columns.
        """
        shut_out = self._shut_out_by(other)
        terms = {
            term
            for term in self.terms(end, self.blankets[other])
            if other not in term and not shut_out.intersection(term)
        }
        key = end, frozenset(terms)
        if with_products and key not in self._enriched:
            self._enriched[key] = self._with_products(end, terms)
        return (self._enriched[key] if with_products else key[1]) | {
            (c,) for c in more if self.allowed[end, c]
        }

    def _shut_out_by(self, column: int) -> frozenset[int]:
        """Return the other columns that the regression of a column may not hold."""
        if column not in self._not_allowed:
            not_allowed = np.flatnonzero(~self.allowed[column]).tolist()
            self._not_allowed[column] = frozenset(not_allowed) - {column}
        return self._not_allowed[column]

    def _with_products(self, target: int, terms: set[Term]) -> frozenset[Term]:
        """Add products of the columns, the strongest first, as long as they are needed."""
        table = self.table
        columns = sorted({c for term in terms for c in term})
        limit = ENRICHED / max(1, len(columns) * (len(columns) - 1) // 2)
        screened = screen(table, target, table.fit(target, terms), columns, columns, is_ascending=True)
        tried: list[Term] = [
            term
            for term in combinations(columns, 2)
            if term not in terms and screened[term] < max(SCREENED, 10 * limit)
        ]
        for _ in range(MOST_ENRICHED):
            fitted = table.fit(target, terms)
            tests = table.product_scores(target, fitted, tried)
            ranked = sorted(zip(p_values_of(tests), [-one.value for one in tests], tried, strict=True))
            # Those that tell nothing now are not asked again.
            tried = [term for p, _, term in ranked if p < TRIED_AGAIN]
            if not ranked or ranked[0][0] >= limit:
                break
            best = tried.pop(0)
            if table.likelihood_ratio(target, terms, [best]).p >= limit:
                break
            terms = terms | {best}
            wider = [tuple(sorted((*best, c))) for c in columns if c not in best] if len(best) == 2 else []
            tried += [
                term
                for term in wider
                if term not in terms
                and term not in tried
                and sum(part in terms for part in combinations(term, 2)) >= 2
                and table.n_weights(term) * fitted.n_free <= WEIGHTS_PER_ROW * table.n_rows
            ]
        return frozenset(terms)

    def product_test(self, triple: Triple) -> Statistic:
        """Test, by likelihood ratio, that no end of a triple needs the product of the others."""
        return mean_of(
            self.table.likelihood_ratio(end, terms, [product])
            for end, terms, product in self._without_product(triple)
        )

    def product_scores(self, triples: Iterable[Triple]) -> list[Statistic]:
        """Test the same of many triples by score, all products that one regression does without at once."""
        asked = [self._without_product(triple) for triple in triples]
        not_scored: dict[tuple[int, frozenset[Term]], list[Term]] = {}
        for ends in asked:
            for end, terms, product in ends:
                if product not in self._scored.setdefault((end, terms), {}):
                    not_scored.setdefault((end, terms), []).append(product)
        for (end, terms), products in not_scored.items():
            tests = self.table.product_scores(end, self.table.fit(end, terms), products)
            self._scored[end, terms].update(zip(products, tests, strict=True))
        return [mean_of(self._scored[end, terms][product] for end, terms, product in ends) for ends in asked]

    def _without_product(self, triple: Triple) -> list[tuple[int, frozenset[Term], Term]]:
        """Return each end of a triple, the terms of its regression without the product, and the product."""
        ends = []
        for end in triple:
            product = tuple(other for other in triple if other != end)
            ends.append((end, frozenset(self.terms(end, product) - {product}), product))
        return ends

    def links(self) -> list[tuple[int, int]]:
        """Return the pairs of which one is in the blanket of the other, or that a product has."""
        near = {(min(a, b), max(a, b)) for a, inside in enumerate(self.blankets) for b in inside}
        found = near.union(*(combinations(product, 2) for product in self.products))
        return sorted(pair for pair in found if self.may_link(*pair))

    def may_link(self, a: int, b: int) -> bool:
        """Tell whether each of two columns may stand in the regression of the other."""
        return bool(self.allowed[a, b] and self.allowed[b, a])


def find_products(models: Models) -> None:
    """Add products to the models, the strongest first."""
    screened, n_triples = _screened(models)
    limit = KEPT / max(1, n_triples)
    changed = True
    while changed:
        changed = False
        rest = [triple for triple in screened if triple not in models.products]
        for p, triple in sorted(zip(p_values_of(models.product_scores(rest)), rest, strict=True)):
            if p >= limit:
                break
            # Others that were accepted meanwhile may account for it.
            if models.product_scores([triple])[0].p < limit and models.product_test(triple).p < limit:
                models.products.add(triple)
                changed = True
    for triple in screened:
        if triple in models.products:
            models.products.remove(triple)
            if models.product_test(triple).p < limit:
                models.products.add(triple)


def _screened(models: Models) -> tuple[list[Triple], int]:
    """Return the triples whose cells are not as the regressions expect, and how many were tried."""
    table = models.table
    least: dict[Triple, float] = {}
    for target, seconds in enumerate(_partners(models)):
        thirds = [c for c in range(table.n_columns) if models.may_link(target, c)]
        if not seconds or len(thirds) < 2:
            continue
        fitted = table.fit(target, models.terms(target, seconds))
        for (second, third), p in screen(table, target, fitted, seconds, thirds).items():
            if models.may_link(second, third):
                a, b, c = sorted((target, second, third))
                least[a, b, c] = min(p, least.get((a, b, c), 1.0))
    # Of few triples, each may be kept at a larger p.
    limit = max(SCREENED, 5 * KEPT / max(1, len(least)))
    return sorted(triple for triple, p in least.items() if p < limit), len(least)


def screen(
    table: RegressionTable,
    target: int,
    fitted: TermFit,
    seconds: Sequence[int],
    thirds: Sequence[int],
    is_ascending: bool = False,
) -> dict[tuple[int, int], float]:
    """Return p for pairs of columns: that a regression which has the seconds needs no product of the two.

    Of all of them, or of those alone whose second comes before the third.

    By Pearson's statistic of the counts against what the regression expects: cheap, and a little small.
    """
    from unless.kernels.regression import screen_products

    which, _, _, probabilities = table.expected(fitted)
    everything = np.column_stack([1 - probabilities.sum(axis=1), probabilities])
    statistics, held = np.zeros((len(seconds), len(thirds))), set(table.sources(fitted.terms))
    # Together those columns that are missing in the same rows, or in none.
    for rows, some in _alike(table, seconds):
        for columns, others in _alike(table, thirds):
            part = np.zeros((len(some), len(others)))
            screen_products(
                table.codes, table.weights(fitted.needed | rows | columns), target, which, everything,
                fitted.shown, np.array([seconds[s] for s in some], dtype=np.int64),
                np.array([thirds[t] for t in others], dtype=np.int64),
                np.array([thirds[t] in held for t in others]),
                table.sizes, is_ascending, part,
            )  # fmt: skip
            statistics[np.ix_(some, others)] = part
    free = {c: len(table.used_levels(c)) - 1 for c in {target, *seconds, *thirds}}
    df = free[target] * np.outer([free[c] for c in seconds], [free[c] for c in thirds])
    p_values = chi_square_tails(np.maximum(df, 1), statistics)
    return {
        (second, third): float(p_values[s, t]) if df[s, t] else 1.0
        for s, second in enumerate(seconds)
        for t, third in enumerate(thirds)
        if (second < third if is_ascending else second != third)
    }


def _alike(table: RegressionTable, columns: Sequence[int]) -> list[tuple[frozenset[int], list[int]]]:
    """Group the positions of columns by what rows with a value in them need."""
    groups: dict[frozenset[int], list[int]] = {}
    for position, column in enumerate(columns):
        groups.setdefault(table.incomplete([column]), []).append(position)
    return list(groups.items())


def _partners(models: Models) -> list[list[int]]:
    """Return, for each column, those that triples with it are begun with.

    All of them where the table is small: three columns may interact though no two of them go together. Of
    many columns those that it is linked to, for all triples would take too long.
    """
    table = models.table
    n, n_rows = table.n_columns, table.codes.shape[1]
    if n**3 * n_rows <= MOST_COUNTED:
        return [[c for c in range(n) if models.may_link(target, c)] for target in range(n)]
    partners: list[list[int]] = [[] for _ in range(n)]
    for a, b in models.links():
        partners[a].append(b)
        partners[b].append(a)
    return partners


def regrow(models: Models, alpha: float) -> None:
    """Add to each blanket what the regression with its products still misses."""
    table = models.table
    for target in range(table.n_columns):
        for _ in range(8):
            terms = models.terms(target)
            known = {c for term in terms for c in term}
            rest = [c for c in np.flatnonzero(models.allowed[target]).tolist() if c not in known]
            if not rest:
                break
            tests = table.scores(target, table.fit(target, terms), rest)
            p, _, best = min(zip(p_values_of(tests), [-one.value for one in tests], rest, strict=True))
            if p >= alpha:
                break
            models.blankets[target].add(best)
