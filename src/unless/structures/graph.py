"""Undirected graphs over the variables of a domain, alone or in a context."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from unless.data.domain import Context, Domain
from unless.data.showing import html_table
from unless.errors import SettingError
from unless.structures.pairs import Edge, Packed, pack_edges, pair_names, unpack
from unless.structures.separation import Names, check_question, separated

if TYPE_CHECKING:
    from unless.structures.features import FeatureSet

Role = TypeVar("Role", bound="Graph")


class Graph:
    """Variables and the pairs of them that are linked.

    Graphs are equal when they have the same names and the same edges, whatever the order of the columns. An
    edge is a pair of names in sorted order. Iterating gives the edges, sorted.
    """

    domain: Domain
    packed: Packed

    def __init__(self, domain: Domain, edges: Iterable[Edge] = ()) -> None:
        self._settle(domain, pack_edges(domain, (_edge(domain, pair) for pair in edges)))

    @classmethod
    def from_packed(cls, domain: Domain, packed: Packed) -> "Graph":
        """Take the edges as packed bits (see `unless.structures.pairs`)."""
        graph = object.__new__(cls)
        graph._settle(domain, packed)
        return graph

    @cached_property
    def edges(self) -> frozenset[Edge]:
        """The linked pairs."""
        return frozenset(pair_names(self.domain, np.flatnonzero(unpack(self.packed, len(self.domain)))))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the variables, in column order."""
        return self.domain.names

    @property
    def n_edges(self) -> int:
        """The number of linked pairs."""
        return len(self.edges)

    def has_edge(self, a: str, b: str) -> bool:
        """Tell whether two variables are linked, named in either order."""
        return _ordered(self.domain, a, b) in self.edges

    def neighbours(self, name: str) -> tuple[str, ...]:
        """Return the variables linked to this one, in column order."""
        self.domain.index(name)
        return self._neighbours[name]

    def blanket(self, name: str) -> tuple[str, ...]:
        """Return the Markov blanket: in an undirected graph, the neighbours."""
        return self.neighbours(name)

    def is_independent(self, a: Names, b: Names, given: Names = ()) -> bool:
        """Tell whether the given variables intercept every path from a to b; each is a name or several."""
        return separated(self._neighbours, *check_question(self.domain, a, b, given, self._fixed))

    def features(self, at_most: int = 1_000_000) -> "FeatureSet":
        """Return one indicator per joint assignment of each maximal clique, observed or not."""
        from unless.structures.cliques import graph_features

        return graph_features(self, at_most)

    def to_networkx(self) -> Any:
        """Return a networkx.Graph with the same nodes and edges."""
        import networkx

        graph = networkx.Graph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self)
        return graph

    @property
    def _fixed(self) -> tuple[str, ...]:
        return ()

    @cached_property
    def _neighbours(self) -> dict[str, tuple[str, ...]]:
        linked: dict[str, list[str]] = {name: [] for name in self.nodes}
        for a, b in self.edges:
            linked[a].append(b)
            linked[b].append(a)
        return {name: tuple(sorted(others, key=self.domain.index)) for name, others in linked.items()}

    def _as(self, role: type[Role], **more: Any) -> Role:
        # Thousands of contexts share a graph: what was checked and computed for it once serves them all.
        graph = object.__new__(role)
        graph.__dict__.update(self.__dict__, **more)
        return graph

    def _settle(self, domain: Domain, packed: Packed) -> None:
        # A view, so that the array it came from stays as its owner left it.
        frozen = packed.view()
        frozen.flags.writeable = False
        self.__dict__.update(domain=domain, packed=frozen)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("A graph does not change; make another one.")

    def __iter__(self) -> Iterator[Edge]:
        return iter(sorted(self.edges))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        if self.nodes == other.nodes:
            return np.array_equal(self.packed, other.packed)
        return set(self.nodes) == set(other.nodes) and self.edges == other.edges

    def __hash__(self) -> int:
        return hash((frozenset(self.nodes), self.edges))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.nodes)} variables, {self.n_edges} edges{self._where()}>"

    def __dir__(self) -> list[str]:
        # What other parts of the library use is no help to people.
        inner = ("from_packed", "packed")
        return [name for name in super().__dir__() if not name.startswith("_") and name not in inner]

    def _repr_html_(self) -> str:
        return html_table(repr(self)[1:-1], ("linked", ""), list(self))

    def _where(self) -> str:
        return ""


class InstantiatedGraph(Graph):
    """A graph in a context (the paper's G(x_W)); what the context fixes intercepts every path."""

    context: Context

    @property
    def _fixed(self) -> tuple[str, ...]:
        return tuple(self.context)

    def _where(self) -> str:
        return f", given {self.context}" if self.context else ""


class ObservedGraph(InstantiatedGraph):
    """The union of the canonical graphs of the observed contexts that agree with a partial one.

    `shares` gives, for each edge, the share of the `n_rows` rows of those contexts in whose graph it is.
    """

    shares: Mapping[Edge, float]
    n_rows: int

    def to_networkx(self) -> Any:
        """Return a networkx.Graph whose edges carry their `share`."""
        graph = super().to_networkx()
        for (a, b), share in self.shares.items():
            graph.edges[a, b]["share"] = share
        return graph


class CanonicalGraph(Graph):
    """The graph of one complete context, and the number of rows that show it.

    Here the context is an address, not a condition: separation is asked of the graph as it stands.
    """

    context: Context
    n_rows: int


def _edge(domain: Domain, pair: Any) -> Edge:
    names = () if isinstance(pair, str) else tuple(pair)
    if len(names) != 2 or names[0] == names[1]:
        raise SettingError(f"{pair!r} is not an edge; give pairs of two different names.")
    return _ordered(domain, *names)


def _ordered(domain: Domain, a: str, b: str) -> Edge:
    for name in (a, b):
        domain.index(name)
    return (a, b) if a < b else (b, a)
