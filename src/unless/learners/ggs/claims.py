"""Where pairs are linked, and the claims that are made of it.

`Linker` joins the gate trees of the two ends of a pair; `select_claims` turns the hypotheses of all
pairs into claims with p and q, and `labelled` into the graph they make.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import comb, isqrt, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Domain, Region, quote_label
from unless.data.showing import html_table
from unless.errors import SettingError
from unless.independence.logistic import Effect, average, common, size_of, total, turned
from unless.independence.statistics import (
    NOTHING,
    Statistic,
    adapted,
    adjusted,
    critical_value,
    largest_shift,
)
from unless.learners.base import Run
from unless.learners.ggs.gates import GateProblem, GateSearch, GateTree, gate_ranks
from unless.learners.ggs.regressions import Conditions, NeighbourTests, Stratum
from unless.referee.counted import WideTester
from unless.referee.regressions import RegressionTable
from unless.runtime.interrupts import cancellable
from unless.structures.labelled import LabelledGraph, Link
from unless.structures.structure import Edge
from unless.typing import Bools, Floats

# The ends of a pair may cut the table in different ways; beyond so many strata one end's way is enough.
MAX_STRATA = 8
# Links are weighed, if not claimed, as long as no more than this share of them is expected to be false.
WEIGHED = 0.2
# Where all but one in so many pairs of a region are weighed, all are.
MOST = 3
# Arithmetic on other machines may end on other last digits; files should not.
_DIGITS = 10


class Hypothesis(NamedTuple):
    """A hypothesis about a pair that was tested in a stratum of the table.

    `corrected` is its p after the search that led to it, `doubt` what that becomes because its gates may be
    none; `gate` is the variable between whose levels the link may differ, for hypotheses of that kind.
    """

    conditions: Conditions
    statistic: Statistic
    n_rows: int
    corrected: float
    gate: int | None = None
    doubt: float = 0.0

    @property
    def p(self) -> float:
        """The p of the whole claim, gates and all."""
        return max(self.corrected, self.doubt)


class PairLinks(NamedTuple):
    """All about a pair: where it seems linked, where it does not, between which levels it differs."""

    linked: tuple[Hypothesis, ...] = ()
    unlinked: tuple[Hypothesis, ...] = ()
    differs: tuple[Hypothesis, ...] = ()


class PairEffect(NamedTuple):
    """A stratum in which a pair has one set of weights, and the test that they are all zero."""

    stratum: Stratum
    effect: Effect
    n_rows: int
    size: Statistic


class Explanation(NamedTuple):
    """A choice of links of a pair in some strata, its worth, and the test that the weights differ."""

    worth: float
    differ: Statistic
    links: PairLinks


_PairLinks = Mapping[tuple[int, int], PairLinks]
_Meeting = tuple[Stratum, GateTree | None, GateTree | None]


class Linker:
    """Decides, pair by pair, in which contexts there is a link."""

    def __init__(
        self, tests: Sequence[NeighbourTests], trees: Sequence[GateTree], alpha: float, n_gates: int
    ) -> None:
        self.tests, self.trees, self.alpha, self.n_gates = tests, trees, alpha, n_gates
        self.table = tests[0].table
        self.n_tests = self.n_searched = 0
        self.rank = gate_ranks(trees)
        self.doubts = _gate_doubts(trees, len(tests) * (n_gates + 1))

    def pair(self, a: int, b: int) -> PairLinks:
        """Say where two variables are linked."""
        mine, yours = self._stops(a, b), self._stops(b, a)
        apart = _without_overlap([*self._switched(a, b, mine), *self._switched(b, a, yours)])
        if any(not one.conditions for one in apart):
            return PairLinks(linked=tuple(apart))
        # Where one end alone counts its leaves may lie where the other end is a gate.
        effects = [
            one
            for one in self._effects(a, b, mine, yours)
            if not any(overlap(one.stratum.conditions, other.conditions) for other in apart)
        ]
        if not effects:
            return PairLinks(linked=tuple(apart))
        self.n_searched += 1
        before = self.n_tests
        # Where one end is a gate the rest of the table is no region, and each stratum is its own.
        if apart:
            best = _joined([self._best([one], one.stratum.conditions) for one in effects], NOTHING)
        else:
            best = self._best(effects, ())
        n_tried = self.n_tests - before
        linked = tuple(self._doubted(_corrected(one, n_tried)) for one in best.links.linked)
        differs = tuple(
            _corrected(one, self.n_gates ** len(one.conditions or ((),))) for one in best.links.differs
        )
        return PairLinks((*apart, *linked), best.links.unlinked, differs)

    def _stops(self, a: int, b: int) -> list[GateTree]:
        # A gate sees the links that it switches as its own, switched by their ends: there the others know.
        return [] if self.rank[a] > self.rank[b] else list(self.trees[a].stops(b))

    def _switched(self, a: int, b: int, stops: list[GateTree]) -> Iterator[Hypothesis]:
        """Give the strata in which b is a gate of a's links, and so linked to a; and test that it is not."""
        tests = self.tests[a]
        for stop in stops:
            if stop.gate != b:
                continue
            apart = [tests.regression(child.stratum, stop.union) for child in stop.children]
            without = tests.regression(stop.stratum, stop.union)
            gained = sum(one.log_likelihood for one in apart) - without.log_likelihood
            df = sum(one.n_weights for one in apart) - without.n_weights
            # Levels that are not shown on one side have no weights there: fewer may be left than before.
            statistic = Statistic(max(0.0, 2 * gained), df) if df > 0 else NOTHING
            self.n_tests += 1
            # Either end might have shown it, and the neighbours it is tested with were searched for.
            n_tried = 2 * comb(len(self.tests) - 2, len(stop.union))
            n_rows = self.table.n_rows(stop.stratum)
            tested = Hypothesis(stop.stratum.conditions, statistic, n_rows, min(1.0, n_tried * statistic.p))
            yield self._doubted(tested, b)

    def _doubted(self, tested: Hypothesis, *gates: int) -> Hypothesis:
        """Correct for the gates that could have been chosen, unless those chosen are gates for sure."""
        named = {*gates, *(variable for variable, _ in tested.conditions)}
        doubt = max((self.doubts.get(gate, 0.0) for gate in named), default=0.0)
        return tested._replace(doubt=min(1.0, doubt, tested.corrected * self.n_gates ** len(named)))

    def _effects(self, a: int, b: int, mine: list[GateTree], yours: list[GateTree]) -> Iterator[PairEffect]:
        here = [stop for stop in mine if stop.gate is None]
        there = [stop for stop in yours if stop.gate is None]
        if not any(b in stop.blanket for stop in here) and not any(a in stop.blanket for stop in there):
            return
        meetings = list(_meetings(here, there))
        if len(meetings) > MAX_STRATA:
            meetings = list(_meetings(*(([], there) if len(there) <= len(here) else (here, []))))
        for stratum, one, other in meetings:
            ends = [] if one is None else [self.tests[a].effect(stratum, one.blanket, b)]
            if other is not None:
                ends.append(turned(self.tests[b].effect(stratum, other.blanket, a)))
            effect = average(ends[0], ends[-1])
            yield PairEffect(stratum, effect, self.table.n_rows(stratum), size_of(effect))

    def _best(self, effects: list[PairEffect], path: Conditions) -> Explanation:
        """Choose between no link, one link, and a gate that decides which of the two."""
        self.n_tests += 1
        together = common([one.effect for one in effects])
        alone = total(one.size for one in effects)
        differ = Statistic(max(0.0, alone.value - together.value), alone.df - together.df)
        tested = (Hypothesis(path, together, sum(one.n_rows for one in effects), together.p),)
        choices = [Explanation(0.0, differ, PairLinks(unlinked=tested))]
        if together.df:
            worth = together.value - critical_value(together.df, self.alpha)
            choices.append(Explanation(worth, differ, PairLinks(linked=tested)))
        choices += [self._split(effects, differ, path, gate) for gate in _gates(effects)]
        return max(choices, key=lambda choice: choice.worth)

    def _split(
        self, effects: list[PairEffect], differ: Statistic, path: Conditions, gate: int
    ) -> Explanation:
        sides: dict[tuple[int, ...], list[PairEffect]] = {}
        for one in effects:
            sides.setdefault(dict(one.stratum.conditions)[gate], []).append(one)
        below = [
            self._best(inside, tuple(sorted({**dict(path), gate: levels}.items())))
            for levels, inside in sorted(sides.items())
        ]
        # Test that the link is the same on all sides of the gate, given what else it differs by.
        df = differ.df - sum(choice.differ.df for choice in below)
        value = differ.value - sum(choice.differ.value for choice in below)
        contrast = Statistic(max(0.0, value), df) if df > 0 else NOTHING
        n_rows = sum(one.n_rows for one in effects)
        return _joined(below, differ, Hypothesis(path, contrast, n_rows, contrast.p, gate))


def _joined(below: Sequence[Explanation], differ: Statistic, *differs: Hypothesis) -> Explanation:
    """Join the explanations of different strata."""
    linked, unlinked, more = (
        tuple(one for choice in below for one in choice.links[kind]) for kind in range(3)
    )
    links = PairLinks(linked, unlinked, (*differs, *more))
    return Explanation(sum(choice.worth for choice in below), differ, links)


def _meetings(here: list[GateTree], there: list[GateTree]) -> Iterator[_Meeting]:
    """Give the strata in which leaves of the two ends overlap; an end without leaves does not count."""
    if not here or not there:
        for leaf in here:
            yield leaf.stratum, leaf, None
        for leaf in there:
            yield leaf.stratum, None, leaf
        return
    for one in here:
        for other in there:
            stratum = one.stratum.intersection(other.stratum)
            if len(stratum.rows):
                yield stratum, one, other


def _gates(effects: list[PairEffect]) -> list[int]:
    """Return the variables that all strata have a condition on, with each level on one side only.

    Where the two ends of a pair join the levels of a gate in different ways, a side may be a part of another.
    """
    named = [dict(one.stratum.conditions) for one in effects]
    gates = []
    for gate in sorted(set.intersection(*(set(one) for one in named))):
        sides = {one[gate] for one in named}
        levels = [level for side in sides for level in side]
        if len(sides) > 1 and len(levels) == len(set(levels)):
            gates.append(gate)
    return gates


def _gate_doubts(trees: Sequence[GateTree], n_tested: int) -> dict[int, float]:
    """Return, for each gate, the probability of what is seen where it is plainest if it were no gate."""
    doubts: dict[int, float] = {}
    nodes = list(trees)
    while nodes:
        node = nodes.pop()
        nodes += node.children
        for one in node.candidates:
            if one.gate == node.gate:
                doubts[one.gate] = min(doubts.get(one.gate, 1.0), n_tested * one.p)
    return doubts


def _corrected(tested: Hypothesis, n_tried: int) -> Hypothesis:
    return tested._replace(corrected=min(1.0, tested.statistic.p * n_tried))


def _without_overlap(several: list[Hypothesis]) -> list[Hypothesis]:
    disjoint: list[Hypothesis] = []
    for one in sorted(several, key=lambda one: (len(one.conditions), one.corrected, one.conditions)):
        if not any(overlap(one.conditions, other.conditions) for other in disjoint):
            disjoint.append(one)
    return disjoint


def overlap(one: Conditions, other: Conditions) -> bool:
    """Tell whether conditions can hold together."""
    known = dict(other)
    return all(set(levels) & set(known.get(variable, levels)) for variable, levels in one)


def link_pairs(
    problem: GateProblem, searches: Sequence[GateSearch], trees: Sequence[GateTree], run: Run
) -> tuple[Linker, dict[tuple[int, int], PairLinks]]:
    """Say of every pair that may be linked and need not be where it is."""
    # The ends of a pair are not gates of it.
    n_gates = max(1, min(int(problem.gates.sum()), len(searches) - 2))
    linker = Linker([search.tests for search in searches], trees, problem.alpha, n_gates)
    open_pairs = np.argwhere(np.triu(problem.allowed & ~problem.required, 1)).tolist()
    token = run.steps(len(open_pairs), "pairs")

    def link() -> dict[tuple[int, int], PairLinks]:
        pairs = {}
        for a, b in open_pairs:
            pairs[a, b] = linker.pair(a, b)
            token.tick()
        return pairs

    return linker, cancellable(link, token)


_ClaimKind = Literal["linked", "differs", "vanishes"]
# A pair and what was tested of it.
_About = tuple[tuple[int, int], Hypothesis]


@dataclass(frozen=True)
class Claim:
    """What is said of a pair in a region, and what it rests on.

    "linked": the two depend on each other there, given all else; "differs": they do so differently at the
    levels of the `gate`. Both are discoveries, made where `q` is at most the `fdr` aimed at. "vanishes" is
    none: if they were linked there, it would be by less than `at_most`. `p` is corrected for the search that
    led to the claim. `effect` and `at_most` are Cramer's V.
    """

    kind: _ClaimKind
    pair: Edge
    region: Region
    gate: str | None
    statistic: float
    df: int
    n_rows: int
    p: float
    q: float | None
    effect: float
    at_most: float | None = None

    def _repr_html_(self) -> str:
        return html_table(str(self), ("rows", "p"), [(f"{self.n_rows:,}", f"{self.p:.3g}")])

    def __str__(self) -> str:
        where = f" where {self.region}" if self.region.conditions else ""
        if self.kind == "vanishes":
            sure = f"V at most {self.at_most:.2g}"
        else:
            sure = f"V = {self.effect:.2g}, q = {self.q:.2g}"
        by = f" between levels of {quote_label(self.gate)}" if self.gate else ""
        a, b = map(quote_label, self.pair)
        return f"{a} - {b} {self.kind}{by}{where} ({self.n_rows:,} rows, {sure})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "pair": list(self.pair), "region": self.region.to_dict()}


def select_claims(
    domain: Domain,
    pairs: _PairLinks,
    n_searched: int,
    *,
    fdr: float,
    negligible: float,
    required: Iterable[Edge] = (),
) -> list[Claim]:
    """Claim the discoveries whose q is small enough, and where the links of these pairs vanish."""
    linked, differs = _listed(pairs, "linked"), _listed(pairs, "differs")
    q_linked = _q_by_region(domain, linked, [one.p for _, one in linked], fdr)
    q_differs = adjusted([one.p for _, one in differs], max(n_searched, len(differs)))
    claims = [
        _claim(domain, kind, pair, one, q=_rounded(q))
        for kind, several, rates in (("linked", linked, q_linked), ("differs", differs, q_differs))
        for (pair, one), q in zip(several, rates.tolist(), strict=True)
        if q <= fdr and _edge(domain, pair) not in required
    ]
    named = {claim.pair for claim in claims if claim.kind == "linked"}
    for pair, one in _listed(pairs, "unlinked"):
        if one.statistic.df and _edge(domain, pair) in named:
            shift = largest_shift(one.statistic.value, one.statistic.df)
            limit = _cramers_v(domain, pair, Statistic(shift, one.statistic.df), one.n_rows)
            if limit < negligible:
                claims.append(_claim(domain, "vanishes", pair, one, at_most=_rounded(limit)))
    return sorted(claims, key=lambda claim: (claim.pair, claim.kind, claim.region.conditions))


def select_weighed(
    domain: Domain, pairs: _PairLinks, claims: Iterable[Claim]
) -> Iterator[tuple[Edge, Region]]:
    """Give candidate links that are too weak to be claimed, but more often there than not.

    Each by itself adds little, all together much. Whether their gates are gates for sure does not matter.
    Where most pairs of a region are linked, the rest of them is given too.
    """
    claimed = {(claim.pair, claim.region) for claim in claims if claim.kind == "linked"}
    linked = _listed(pairs, "linked")
    rates = _q_by_region(domain, linked, [one.corrected for _, one in linked], WEIGHED)
    likely = []
    for (pair, one), rate in zip(linked, rates.tolist(), strict=True):
        if rate <= WEIGHED:
            likely.append(one.conditions)
            link = _edge(domain, pair), region_of(domain, one.conditions)
            if link not in claimed:
                yield link
    taken = {pair: [one.conditions for one in about.linked] for pair, about in pairs.items()}
    for conditions in sorted(set(likely)):
        gates = dict(conditions)
        if MOST * likely.count(conditions) < (MOST - 1) * comb(len(domain) - len(gates), 2):
            continue
        for pair, known in taken.items():
            if not gates.keys() & set(pair) and not any(overlap(one, conditions) for one in known):
                known.append(conditions)
                yield _edge(domain, pair), region_of(domain, conditions)


def _listed(pairs: _PairLinks, kind: str) -> list[_About]:
    return [(pair, one) for pair, about in pairs.items() for one in getattr(about, kind)]


def _q_by_region(domain: Domain, linked: Sequence[_About], p_values: Sequence[float], level: float) -> Floats:
    """Return q for each p among the pairs of its region.

    Where most pairs are linked a weak link is likely; where few are it is not, whatever holds elsewhere.
    """
    n, n_linked = len(domain), len({pair for pair, _ in linked})
    regions: dict[Conditions, list[int]] = {}
    for number, (_, one) in enumerate(linked):
        regions.setdefault(one.conditions, []).append(number)
    q_values = np.ones(len(linked))
    for conditions, numbers in regions.items():
        # Gates are not part of the pairs they switch; without gates, pairs without a region count.
        n_pairs = comb(n - len(conditions), 2) if conditions else len(numbers) + comb(n, 2) - n_linked
        q_values[numbers] = adapted([p_values[number] for number in numbers], n_pairs, level)
    return q_values


def _claim(
    domain: Domain,
    kind: Any,
    pair: tuple[int, int],
    tested: Hypothesis,
    q: float | None = None,
    at_most: float | None = None,
) -> Claim:
    return Claim(
        kind=kind,
        pair=_edge(domain, pair),
        region=region_of(domain, tested.conditions),
        gate=None if tested.gate is None else domain.names[tested.gate],
        statistic=_rounded(tested.statistic.value),
        df=tested.statistic.df,
        n_rows=tested.n_rows,
        p=_rounded(tested.p),
        q=q,
        effect=_rounded(_cramers_v(domain, pair, tested.statistic, tested.n_rows)),
        at_most=at_most,
    )


def _cramers_v(domain: Domain, pair: tuple[int, int], statistic: Statistic, n_rows: int) -> float:
    free = min(int(domain.n_levels[position]) for position in pair) - 1
    # Levels that are not shown are not free: of (r - 1)(s - 1) the smaller is at most the root.
    free = max(1, min(free, isqrt(statistic.df)))
    return min(1.0, sqrt(statistic.value / (max(1, n_rows) * free)))


def _edge(domain: Domain, pair: tuple[int, int]) -> Edge:
    a, b = sorted(domain.names[position] for position in pair)
    return a, b


def region_of(domain: Domain, conditions: Conditions) -> Region:
    """Name a stratum of the table."""
    return Region.of(
        domain,
        {
            domain.names[variable]: [domain.variables[variable].levels[level] for level in levels]
            for variable, levels in conditions
        },
    )


def claim_wide_pairs(data: Dataset, pairs: Bools, fdr: float) -> list[Claim]:
    """Claim links of columns of many levels, tested within the strata of what goes together with an end."""
    if not pairs.any():
        return []
    tester, names = WideTester(RegressionTable(data)), data.names
    tested = []
    for a, b in np.argwhere(np.triu(pairs)).tolist():
        rest = [c for c in range(len(names)) if c not in (a, b)]
        test, _, is_complete = tester.given_others(a, b, rest)
        tested.append((a, b, test, test.p if is_complete else 1.0))
    rates = adjusted([p for *_, p in tested]).tolist()
    return [
        Claim(
            kind="linked", pair=(names[a], names[b]), region=Region(), gate=None, statistic=test.statistic,
            df=test.df, n_rows=data.n_rows, p=p, q=q, effect=tester.estimate(a, b, test).v,
        )
        for (a, b, test, p), q in zip(tested, rates, strict=True)
        if q <= fdr
    ]  # fmt: skip


def labelled(
    domain: Domain, claims: Sequence[Claim], required: Iterable[Edge], weighed: Iterable[tuple[Edge, Region]]
) -> LabelledGraph:
    """Draw a link wherever one is claimed, or required; weigh the others."""
    claimed = ((claim.pair, claim.region) for claim in claims if claim.kind == "linked")
    everywhere = ((pair, Region()) for pair in sorted(required))
    return LabelledGraph(domain, _links((*everywhere, *claimed)), _links(weighed))


def _links(several: Iterable[tuple[Edge, Region]]) -> Iterator[Link]:
    regions: dict[Edge, list[Region]] = {}
    for pair, region in several:
        regions.setdefault(pair, []).append(region)
    return (Link(pair, tuple(where)) for pair, where in regions.items())


def claims_to_records(claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """Write claims as flat records."""
    return [
        {
            **{name: value for name, value in asdict(claim).items() if name not in ("pair", "region")},
            "first": claim.pair[0],
            "second": claim.pair[1],
            "region": json.dumps(claim.region.to_dict()),
        }
        for claim in claims
    ]


def claims_from_records(records: Any, domain: Domain) -> list[Claim]:
    """Read flat records back."""
    if not isinstance(records, list):
        raise SettingError("its claims are no list of records")
    claims = []
    for record in records:
        fields = dict(record)
        pair = fields.pop("first"), fields.pop("second")
        region = Region.of(domain, json.loads(fields.pop("region")))
        claims.append(Claim(pair=pair, region=region, **fields))
    return claims


def _rounded(value: float) -> float:
    return float(np.format_float_scientific(value, precision=_DIGITS - 1))
