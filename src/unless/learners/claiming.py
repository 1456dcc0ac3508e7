"""From what was found about pairs to claims with p and q, and to the graph they make."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import comb, isqrt, sqrt
from typing import Any, Literal

import numpy as np

from unless.data.domain import Domain
from unless.data.showing import html_table
from unless.errors import SettingError
from unless.independence.statistics import Statistic, adapted, adjusted, largest_shift
from unless.learners.linking import Found, Pair, meet
from unless.learners.parts import Conditions, Floats
from unless.structures.labelled import LabelledGraph, Link, Region, spoken
from unless.structures.pairs import Edge

About = tuple[tuple[int, int], Found]
Kind = Literal["linked", "differs", "vanishes"]
# Links are weighed, if not claimed, as long as no more than this share of them is expected to be false.
WEIGHED = 0.2
# Where all but one in so many pairs of a region are weighed, all are.
MOST = 3
# Arithmetic on other machines may end on other last digits; files should not.
_DIGITS = 10


@dataclass(frozen=True)
class Claim:
    """What is said of a pair in a region, and what it rests on.

    "linked": the two depend on each other there, given all else; "differs": they do so differently at the
    levels of the `gate`. Both are discoveries, made where `q` is at most the `fdr` aimed at. "vanishes" is
    none: if they were linked there, it would be by less than `at_most`. `p` is corrected for the search that
    led to the claim. `effect` and `at_most` are Cramer's V.
    """

    kind: Kind
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
        by = f" between levels of {spoken(self.gate)}" if self.gate else ""
        a, b = map(spoken, self.pair)
        return f"{a} - {b} {self.kind}{by}{where} ({self.n_rows:,} rows, {sure})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "pair": list(self.pair), "region": self.region.to_dict()}


class Notary:
    """Turns hypotheses about pairs of columns into claims about names."""

    def __init__(self, domain: Domain, fdr: float, negligible: float, required: set[Edge]) -> None:
        self.domain, self.fdr, self.negligible, self.required = domain, fdr, negligible, required

    def claims(self, pairs: Mapping[tuple[int, int], Pair], n_searched: int) -> list[Claim]:
        """Keep the discoveries whose q is small enough, and add where they vanish."""
        linked = _listed(pairs, "linked")
        differs = _listed(pairs, "differs")
        sure = self._by_region(linked, [found.p for _, found in linked], self.fdr)
        apart = adjusted([found.p for _, found in differs], max(n_searched, len(differs)))
        made = [*self._discoveries("linked", linked, sure), *self._discoveries("differs", differs, apart)]
        named = {claim.pair for claim in made if claim.kind == "linked"}
        made += [claim for claim in self._vanishing(_listed(pairs, "unlinked")) if claim.pair in named]
        return sorted(made, key=lambda claim: (claim.pair, claim.kind, claim.region.conditions))

    def weighed(
        self, pairs: Mapping[tuple[int, int], Pair], claims: Iterable[Claim]
    ) -> Iterator[tuple[Edge, Region]]:
        """Give candidate links that are too weak to be claimed, but more often there than not.

        Each by itself adds little, all together much. Whether their gates are gates for sure does not matter.
        """
        claimed = {(claim.pair, claim.region) for claim in claims if claim.kind == "linked"}
        linked = _listed(pairs, "linked")
        shares = self._by_region(linked, [found.corrected for _, found in linked], WEIGHED)
        for (pair, found), share in zip(linked, shares.tolist(), strict=True):
            one = self._pair(pair), region_of(self.domain, found.conditions)
            if share <= WEIGHED and one not in claimed:
                yield one
        likely = [
            found.conditions for (_, found), share in zip(linked, shares, strict=True) if share <= WEIGHED
        ]
        yield from self._rest_of_regions(pairs, likely)

    def _rest_of_regions(
        self, pairs: Mapping[tuple[int, int], Pair], likely: Sequence[Conditions]
    ) -> Iterator[tuple[Edge, Region]]:
        """Where most pairs are linked, give those too that show nothing."""
        taken = {pair: [found.conditions for found in about.linked] for pair, about in pairs.items()}
        for conditions in sorted(set(likely)):
            gates = dict(conditions)
            if MOST * likely.count(conditions) < (MOST - 1) * comb(len(self.domain) - len(gates), 2):
                continue
            for pair, known in taken.items():
                if not gates.keys() & set(pair) and not any(meet(one, conditions) for one in known):
                    known.append(conditions)
                    yield self._pair(pair), region_of(self.domain, conditions)

    def _by_region(self, linked: Sequence[About], p_values: Sequence[float], level: float) -> Floats:
        """Return q for each p among the pairs of its region.

        Where most pairs are linked a weak link is likely; where few are it is not, whatever holds elsewhere.
        """
        n = len(self.domain)
        n_elsewhere = len({pair for pair, _ in linked})
        regions: dict[Conditions, list[int]] = {}
        for place, (_, found) in enumerate(linked):
            regions.setdefault(found.conditions, []).append(place)
        q_values = np.ones(len(linked))
        for conditions, places in regions.items():
            # Gates are no part of the pairs they switch; where there are none, pairs of no region count.
            n_pairs = comb(n - len(conditions), 2) if conditions else len(places) + comb(n, 2) - n_elsewhere
            q_values[places] = adapted([p_values[place] for place in places], n_pairs, level)
        return q_values

    def _discoveries(self, kind: Kind, found: Sequence[About], q_values: Floats) -> Iterator[Claim]:
        for (pair, one), q in zip(found, q_values.tolist(), strict=True):
            if q <= self.fdr and self._pair(pair) not in self.required:
                yield self._claim(kind, pair, one, q=_rounded(q))

    def _vanishing(self, found: Sequence[About]) -> Iterator[Claim]:
        for pair, one in found:
            if one.statistic.df:
                shift = largest_shift(one.statistic.value, one.statistic.df)
                limit = self._cramers_v(pair, Statistic(shift, one.statistic.df), one.n_rows)
                if limit < self.negligible:
                    yield self._claim("vanishes", pair, one, at_most=_rounded(limit))

    def _claim(self, kind: Kind, pair: tuple[int, int], found: Found, **more: Any) -> Claim:
        statistic = found.statistic
        return Claim(
            kind=kind,
            pair=self._pair(pair),
            region=region_of(self.domain, found.conditions),
            gate=None if found.gate is None else self.domain.names[found.gate],
            statistic=_rounded(statistic.value),
            df=statistic.df,
            n_rows=found.n_rows,
            p=_rounded(found.p),
            q=more.get("q"),
            effect=_rounded(self._cramers_v(pair, statistic, found.n_rows)),
            at_most=more.get("at_most"),
        )

    def _cramers_v(self, pair: tuple[int, int], statistic: Statistic, n_rows: int) -> float:
        free = min(int(self.domain.n_levels[position]) for position in pair) - 1
        # Levels that are not shown are not free: of (r - 1)(s - 1) the smaller is at most the root.
        free = max(1, min(free, isqrt(statistic.df)))
        return min(1.0, sqrt(statistic.value / (max(1, n_rows) * free)))

    def _pair(self, pair: tuple[int, int]) -> Edge:
        a, b = sorted(self.domain.names[position] for position in pair)
        return a, b


def _listed(pairs: Mapping[tuple[int, int], Pair], what: str) -> list[About]:
    return [(pair, found) for pair, about in pairs.items() for found in getattr(about, what)]


def region_of(domain: Domain, conditions: Conditions) -> Region:
    """Name a part of the table."""
    return Region.of(
        domain,
        {
            domain.names[variable]: [domain.variables[variable].levels[level] for level in levels]
            for variable, levels in conditions
        },
    )


def labelled(
    domain: Domain, claims: Sequence[Claim], required: set[Edge], weighed: Iterable[tuple[Edge, Region]] = ()
) -> LabelledGraph:
    """Draw a link wherever one is claimed, or required; weigh the others."""
    claimed = ((claim.pair, claim.region) for claim in claims if claim.kind == "linked")
    everywhere = ((pair, Region()) for pair in sorted(required))
    return LabelledGraph(domain, _links((*everywhere, *claimed)), _links(weighed))


def _links(found: Iterable[tuple[Edge, Region]]) -> Iterator[Link]:
    regions: dict[Edge, list[Region]] = {}
    for pair, region in found:
        regions.setdefault(pair, []).append(region)
    return (Link(pair, tuple(where)) for pair, where in regions.items())


def plain_claims(claims: Sequence[Claim]) -> list[dict[str, Any]]:
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


def read_claims(records: Any, domain: Domain) -> list[Claim]:
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
