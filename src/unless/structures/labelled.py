"""A graph whose links are labelled with the regions in which they hold."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise, product

import numpy as np

from unless.data.dataset import Dataset, Rows
from unless.data.domain import Domain, Region, any_agrees, quote_label
from unless.data.showing import html_table
from unless.errors import SettingError
from unless.structures.canonical import Assignment, CanonicalModel
from unless.structures.graph import FeatureSet, Graph, GraphPerContext, InstantiatedGraph
from unless.structures.structure import (
    Box,
    By,
    CodedCondition,
    Edge,
    FeatureArrays,
    Indicators,
    StructureView,
    box_of,
    check_kind,
    check_same,
    n_pairs,
    pack,
    pair_numbers,
)
from unless.typing import Bools

# Contexts whose graphs are made at once: so many answers, a byte each.
_ANSWERS = 2**24


@dataclass(frozen=True)
class Link:
    """Two variables and the disjoint regions in which they are linked; without conditions, everywhere."""

    pair: Edge
    regions: tuple[Region, ...] = (Region(),)

    @property
    def is_gated(self) -> bool:
        """Whether conditions are named; regions that cover all contexts tell links of different kinds."""
        return any(region.conditions for region in self.regions)

    @property
    def gates(self) -> tuple[str, ...]:
        """The variables that decide where the link holds, sorted."""
        return tuple(sorted({name for region in self.regions for name in region.names}))

    def __str__(self) -> str:
        where = f" where {' or '.join(map(str, self.regions))}" if self.is_gated else ""
        return f"{quote_label(self.pair[0])} - {quote_label(self.pair[1])}{where}"

    def _repr_html_(self) -> str:
        named = [(str(region),) for region in self.regions] if self.is_gated else []
        return html_table(" - ".join(map(quote_label, self.pair)), ("linked where",), named)


class LabelledGraph(GraphPerContext):
    """A graph for every context, said by its links: each holds everywhere, or in some regions only.

    It answers as a `CanonicalModel` does, for contexts that were observed and for those that were not. Its
    links are sorted; iterating gives them. Those that are only `weighed` are not said to be there, and none
    of its answers changes by them: `features` has theirs too, because links that are each too weak to be said
    may matter together.
    """

    kind = "links"
    _noun = "A labelled graph"
    _inner = ("interacting", "weighed")
    links: tuple[Link, ...]
    weighed: tuple[Link, ...]

    def __init__(self, domain: Domain, links: Iterable[Link] = (), weighed: Iterable[Link] = ()) -> None:
        drawn, beside = _sorted(domain, links), _sorted(domain, weighed)
        regions = {link.pair: link.regions for link in drawn}
        for link in beside:
            _check_disjoint(link.pair, (*link.regions, *regions.get(link.pair, ())))
        self.__dict__.update(domain=domain, links=drawn, weighed=beside)

    @cached_property
    def edges(self) -> frozenset[Edge]:
        """The pairs that are linked in some context."""
        return frozenset(link.pair for link in self.links)

    @property
    def gates(self) -> tuple[str, ...]:
        """The variables that switch some link, sorted."""
        return tuple(sorted({name for link in self.links for name in link.gates}))

    def regions(self, a: str, b: str) -> tuple[Region, ...]:
        """Return the regions in which two variables are linked; none if they never are."""
        pair = Graph(self.domain, [(a, b)]).edges
        return next((link.regions for link in self.links if link.pair in pair), ())

    def has_edge(self, a: str, b: str) -> bool:
        """Tell whether two variables are linked in every context."""
        # Regions are disjoint, so their shares of all contexts add up.
        return sum(map(self._share, self.regions(a, b))) == 1

    def graph(self, context: Assignment) -> Graph:
        """Return the graph of a complete context, observed or not."""
        codes = self._complete_codes(context)
        row = np.array([list(codes.values())], dtype=np.uint16)
        return Graph.from_packed(self.domain, pack(self.interacting(row)[:, 0]))

    def given(self, context: Assignment | None = None) -> InstantiatedGraph:
        """Unite the graphs of all contexts that agree with a partial one."""
        codes = self.domain.encode(context)
        known = self.domain.decode(codes)
        edges = [link.pair for link in self.links if any_agrees(link.regions, known)]
        return Graph(self.domain, edges)._as(InstantiatedGraph, context=known)

    def interacting(self, rows: Rows) -> Bools:
        """Tell, for each pair (in the order of packed bits) and row, whether it is linked."""
        linked = np.zeros((n_pairs(len(self.domain)), len(rows)), dtype=np.bool_)
        number = {frozenset(pair): k for k, pair in enumerate(combinations(self.domain.names, 2))}
        for link in self.links:
            for region in link.regions:
                linked[number[frozenset(link.pair)]] |= region.holds(self.domain, rows)
        return linked

    def to_canonical(self, data: Dataset) -> CanonicalModel:
        """Return the graph of every distinct row of a table."""
        if set(data.names) != set(self.domain.names):
            raise SettingError("The table has other variables than the graph; give one of the same.")
        table = data.select(self.domain.names)
        if table.domain != self.domain:
            raise SettingError("The table has other levels than the graph; give one of the same levels.")
        block = max(1, _ANSWERS // max(1, n_pairs(len(self.domain))))
        packed = [
            pack(self.interacting(table.rows[begin : begin + block]).T)
            for begin in range(0, max(1, table.n_distinct), block)
        ]
        return CanonicalModel.from_edges(self.domain, table.rows, table.counts, np.concatenate(packed))

    def features(self, kind: Indicators = "pairs") -> FeatureSet:
        """Return low-order indicators, whatever `kind`: the graph says by itself which it needs.

        For each link, drawn or only weighed, one for each pair of levels, joined with the gate levels under
        which it holds; and one for each variable's level and each level of each of its gates.
        """
        check_kind("kind", kind)
        conditions = [*self._link_features(), *self._own_features()]
        return FeatureSet.from_arrays(self.domain, FeatureArrays.of(conditions))

    indicators = features

    def view(self, domain: Domain, by: By = "graphs") -> StructureView:
        """Answer in which regions each pair is linked, or where features hold."""
        return self.features().view(domain) if by == "features" else _ByLabels(self, domain)

    def scopes_with(self, target: str) -> list[set[str]]:
        """Return the links with their gates, those that are only weighed too."""
        scopes = [{*link.pair, *link.gates} for link in (*self.links, *self.weighed)]
        return [scope for scope in scopes if target in scope]

    @property
    def size(self) -> tuple[str, int]:
        """The number of links."""
        return "n_links", len(self)

    def _link_features(self) -> Iterator[list[CodedCondition]]:
        for link in (*self.links, *self.weighed):
            a, b = (self.domain.index(name) for name in link.pair)
            for region in link.regions:
                where = [literal for condition in region.conditions for literal in self._said(*condition)]
                for one, other in product(self._levels(a), self._levels(b)):
                    yield [(a, one, True), (b, other, True), *where]

    def _own_features(self) -> Iterator[list[CodedCondition]]:
        switches: dict[int, set[int]] = {position: set() for position in range(len(self.domain))}
        for link in (*self.links, *self.weighed):
            for name in link.pair:
                switches[self.domain.index(name)].update(map(self.domain.index, link.gates))
        for variable, gates in switches.items():
            for level in self._levels(variable):
                if not gates:
                    yield [(variable, level, True)]
                for gate in sorted(gates):
                    yield from ([(variable, level, True), (gate, one, True)] for one in self._levels(gate))

    def _levels(self, variable: int) -> range:
        return range(int(self.domain.n_levels[variable]))

    def _share(self, region: Region) -> Fraction:
        share = Fraction(1)
        for name, labels in region.conditions:
            share *= Fraction(len(labels), len(self.domain[name].levels))
        return share

    def _said(self, name: str, labels: tuple[str, ...]) -> list[CodedCondition]:
        variable, place = self.domain[name], self.domain.index(name)
        if len(labels) == 1:
            return [(place, variable.code(labels[0]), True)]
        return [(place, code, False) for code, label in enumerate(variable.levels) if label not in labels]

    def __len__(self) -> int:
        return len(self.links)

    def __iter__(self) -> Iterator[Link]:
        return iter(self.links)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelledGraph):
            return NotImplemented
        same_domain = set(self.domain.variables) == set(other.domain.variables)
        return same_domain and (self.links, self.weighed) == (other.links, other.weighed)

    def __hash__(self) -> int:
        return hash((frozenset(self.domain.names), self.links, self.weighed))

    def _repr_html_(self) -> str:
        rows = [(*link.pair, " or ".join(map(str, link.regions)) or "everywhere") for link in self.links]
        return html_table(repr(self)[1:-1], ("linked", "", "where"), rows)

    def __repr__(self) -> str:
        n_gated = sum(link.is_gated for link in self.links)
        return f"<LabelledGraph: {len(self.domain)} variables, {len(self)} links, {n_gated} of them gated>"


def _sorted(domain: Domain, links: Iterable[Link]) -> tuple[Link, ...]:
    checked = sorted((_checked(domain, link) for link in links), key=lambda link: link.pair)
    for one, other in pairwise(checked):
        if one.pair == other.pair:
            raise SettingError(f"The link {one.pair!r} is given twice; give all its regions at once.")
    return tuple(checked)


def _checked(domain: Domain, link: Link) -> Link:
    (pair,) = Graph(domain, [link.pair]).edges
    regions = [Region.of(domain, dict(region.conditions)) for region in link.regions]
    for region in regions:
        if set(region.names) & set(pair):
            raise SettingError(f"The link {pair!r} cannot be its own gate; give conditions on others.")
    _check_disjoint(pair, regions)
    if not regions:
        raise SettingError(f"The link {pair!r} holds nowhere; leave it out.")
    return Link(pair, tuple(sorted(regions, key=lambda region: region.conditions)))


def _check_disjoint(pair: Edge, regions: Iterable[Region]) -> None:
    for one, other in combinations(regions, 2):
        if _overlap(one, other):
            raise SettingError(f"Two regions of the link {pair!r} overlap; give disjoint ones.")


def _overlap(one: Region, other: Region) -> bool:
    known = dict(other.conditions)
    return all(set(labels) & set(known.get(name, labels)) for name, labels in one.conditions)


class _ByLabels(StructureView):
    """A labelled graph: each pair in the regions of its link."""

    def __init__(self, graph: LabelledGraph, domain: Domain) -> None:
        check_same(domain, graph.domain, "structures")
        # Regions speak of names and labels, so they mean the same in any coding.
        self._graph = LabelledGraph(domain, graph.links)

    def links(self, rows: Rows) -> Bools:
        """Tell of each row whether it is in a region of each pair's link."""
        return self._graph.interacting(rows)

    def boxes(self) -> dict[int, list[Box]]:
        """Give the levels that the regions of each link leave."""
        domain, number = self._graph.domain, pair_numbers(len(self._graph.domain))
        return {
            int(number[tuple(map(domain.index, link.pair))]): [
                box_of(_excluded(domain, region), domain.n_levels) for region in link.regions
            ]
            for link in self._graph.links
        }


def _excluded(domain: Domain, region: Region) -> list[CodedCondition]:
    """Say a region by the levels it leaves out."""
    return [
        (domain.index(name), code, False)
        for name, labels in region.conditions
        for code, label in enumerate(domain[name].levels)
        if label not in labels
    ]
