"""Undirected graphs over the variables of a domain, and features: conjunctions of conditions on labels.

The two are one chapter because each is made of the other: a graph stands for the indicators of its maximal
cliques, and a set of features for the graph of the variables that appear together. Both answer who is
separated from whom, alone or in a context.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Positions, Rows, distinct_rows, row_set
from unless.data.domain import Context, Domain, shorten
from unless.data.showing import MOST_ROWS, html_table, to_label
from unless.errors import SettingError, TooLarge, UnlessError
from unless.kernels.compiling import plain_if_small
from unless.structures.structure import (
    By,
    ByFeatures,
    ByGraph,
    CodedCondition,
    Edge,
    FeatureArrays,
    Indicators,
    Links,
    Packed,
    Structure,
    StructureView,
    n_pairs,
    normalised,
    pack_edges,
    pair_names,
    pair_nodes,
    tidy,
    unpack,
)
from unless.structures.structure import Context as Assignment
from unless.typing import Bools, Integers

if TYPE_CHECKING:
    from unless.structures.canonical import CanonicalModel

Names = str | Iterable[str]
Role = TypeVar("Role", bound="Graph")
# Enough for any graph a person would draw; a search that finds more would not end in useful time.
MAX_CLIQUES = 20_000_000
# As many as `Graph.features` makes: some 600 MB while they are listed.
MAX_SUBCLIQUES = 1_000_000
# Contexts are taken in blocks, so that memory holds the cliques of a block and not of a million contexts.
BLOCK = 1 << 16


def separated(
    neighbours: Mapping[str, Iterable[str]], a: Iterable[str], b: Iterable[str], given: Iterable[str]
) -> bool:
    """Tell whether every path from a to b is intercepted by the given nodes."""
    seen = {*a, *given}
    targets = set(b)
    frontier = list(a)
    while frontier:
        for node in neighbours[frontier.pop()]:
            if node in targets:
                return False
            if node not in seen:
                seen.add(node)
                frontier.append(node)
    return True


def check_question(
    domain: Domain, a: Names, b: Names, given: Names, fixed: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return a, b and given (with what is fixed) as names that exist and do not overlap."""
    sides = [_names(domain, group) for group in (a, b, given)]
    if not sides[0] or not sides[1]:
        raise SettingError("Independence is between two sides; name at least one variable on each.")
    _refuse_overlap({*sides[0]} & {*sides[1]}, "is on both sides of the question")
    _refuse_overlap({*sides[0], *sides[1]} & {*sides[2]}, "is both asked about and given")
    _refuse_overlap({*sides[0], *sides[1]} & {*fixed}, "is asked about but fixed by the context")
    return sides[0], sides[1], (*sides[2], *fixed)


def _names(domain: Domain, group: Names) -> tuple[str, ...]:
    names = (group,) if isinstance(group, str) else tuple(group)
    for name in names:
        domain.index(name)
    return names


def _refuse_overlap(overlap: set[str], trouble: str) -> None:
    if overlap:
        raise SettingError(f"Variable {min(overlap)!r} {trouble}; name it once.")


class Graph(Structure):
    """Variables and the pairs of them that are linked.

    Graphs are equal when they have the same names and the same edges, whatever the order of the columns. An
    edge is a pair of names in sorted order. Iterating gives the edges, sorted.
    """

    kind = "graph"
    _noun = "A graph"
    _inner = ("from_packed", "packed")
    packed: Packed

    def __init__(self, domain: Domain, edges: Iterable[Edge] = ()) -> None:
        self._settle(domain, pack_edges(domain, (_edge(domain, pair) for pair in edges)))

    @classmethod
    def from_packed(cls, domain: Domain, packed: Packed) -> "Graph":
        """Take the edges as packed bits (see `structure.py`)."""
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
        return graph_features(self, at_most)

    def indicators(self, kind: Indicators = "cliques") -> "FeatureSet":
        """Return those of its cliques."""
        if kind != "cliques":
            raise SettingError("A single graph has the features of its cliques; use features='cliques'.")
        return self.features()

    def graph_given(self, context: Assignment | None = None) -> "Graph":  # noqa: ARG002 (the same in every context)
        """Return the graph itself."""
        return self

    def view(self, domain: Domain, by: By = "graphs") -> StructureView:  # noqa: ARG002 (both are the same)
        """Answer with the edges in every row."""
        return ByGraph(self.packed, self.domain, domain)

    @property
    def size(self) -> tuple[str, int]:
        """The number of edges."""
        return "n_edges", self.n_edges

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


class GraphPerContext(Structure):
    """A structure that has a graph for each context."""

    def given(self, context: Assignment | None = None) -> Graph:
        """Unite the graphs of the contexts that agree with a partial one."""
        raise NotImplementedError

    def is_independent(
        self, a: Names, b: Names, given: Names = (), context: Assignment | None = None
    ) -> bool:
        """Tell whether the given variables and those of the context separate a from b in `given(context)`."""
        return self.given(context).is_independent(a, b, given)

    def graph_given(self, context: Assignment | None = None) -> Graph:
        """Return `given(context)`."""
        return self.given(context)

    def to_networkx(self, context: Assignment | None = None) -> Any:
        """Return `given(context)` as a networkx.Graph, whose edges carry their `share` where it is known."""
        return self.given(context).to_networkx()

    def _complete_codes(self, context: Assignment) -> Mapping[int, int]:
        """Return the codes of a context that gives every variable a value; refuse any other."""
        codes = self.domain.encode(context)
        if missing := [name for name in self.domain.names if name not in context]:
            raise SettingError(
                f"The context gives no value to {shorten(missing)}; use given() for a partial context."
            )
        return codes


def _edge(domain: Domain, pair: Any) -> Edge:
    names = () if isinstance(pair, str) else tuple(pair)
    if len(names) != 2 or names[0] == names[1]:
        raise SettingError(f"{pair!r} is not an edge; give pairs of two different names.")
    return _ordered(domain, *names)


def _ordered(domain: Domain, a: str, b: str) -> Edge:
    for name in (a, b):
        domain.index(name)
    return (a, b) if a < b else (b, a)


@dataclass(frozen=True, order=True, slots=True)
class Condition:
    """A variable has a level, or has it not."""

    name: str
    label: str
    equal: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", to_label(self.label))

    def __str__(self) -> str:
        return f"{self.name} {'=' if self.equal else '!='} {self.label}"

    def _repr_html_(self) -> str:
        return html_table(str(self), (), ())


@dataclass(frozen=True, repr=False)
class Feature:
    """An indicator: 1 where all of its conditions hold, 0 elsewhere.

    >>> str(Feature([Condition("Gender", "Male", equal=False), Condition("Dept", "A")]))
    'Dept = A & Gender != Male'
    """

    conditions: tuple[Condition, ...]

    def __init__(self, conditions: Iterable[Condition]) -> None:
        # A frozen value is completed once, here.
        object.__setattr__(self, "conditions", tuple(sorted(set(conditions))))

    @classmethod
    def of(cls, context: Mapping[str, object]) -> "Feature":
        """Return the indicator of an assignment."""
        return cls(Condition(name, to_label(value)) for name, value in context.items())

    @property
    def scope(self) -> tuple[str, ...]:
        """The names of the variables it speaks of, sorted."""
        return tuple(dict.fromkeys(condition.name for condition in self.conditions))

    def matches(self, context: Mapping[str, object]) -> bool:
        """Tell whether all conditions hold in a context that gives a value to the whole scope."""
        for name in self.scope:
            if name not in context:
                raise SettingError(f"The feature speaks of {name!r}, to which the context gives no value.")
        return all((to_label(context[c.name]) == c.label) == c.equal for c in self.conditions)

    def __iter__(self) -> Iterator[Condition]:
        return iter(self.conditions)

    def __len__(self) -> int:
        return len(self.conditions)

    def __str__(self) -> str:
        return " & ".join(map(str, self.conditions))

    def __repr__(self) -> str:
        return f"<Feature: {self}>"

    def _repr_html_(self) -> str:
        rows = [(one.name, "is" if one.equal else "is not", one.label) for one in self]
        return html_table("Feature", ("variable", "", "level"), rows)


class FeatureSet(Structure):
    """Distinct features over one domain, in a fixed order: by size, by scope, by values.

    Features that are true together are one feature: of two levels, "!= a" is "= b".
    """

    kind = "features"
    _noun = "A set of features"
    _inner = ("arrays", "from_arrays")
    arrays: FeatureArrays

    def __init__(self, domain: Domain, features: Iterable[Feature] = ()) -> None:
        said = FeatureArrays.of(_literals(domain, feature) for feature in features)
        self._settle(domain, said)

    @classmethod
    def from_arrays(cls, domain: Domain, arrays: FeatureArrays) -> "FeatureSet":
        """Take features given by positions and codes, in any order and with repetitions."""
        levels = domain.n_levels
        variable = arrays.variable.astype(np.int64)
        if ((variable < 0) | (variable >= len(domain))).any() or (arrays.level >= levels[variable]).any():
            raise SettingError(
                "A condition is outside the domain; give positions of variables and codes of levels."
            )
        features = object.__new__(cls)
        features._settle(domain, arrays)
        return features

    def take(self, chosen: npt.ArrayLike) -> "FeatureSet":
        """Keep some of the features: a yes or no for each, in the order of the set."""
        wanted = np.asarray(chosen)
        if wanted.dtype != np.bool_ or wanted.shape != (len(self),):
            raise SettingError(f"Say yes or no for each of the {len(self):,} features to keep some of them.")
        return FeatureSet.from_arrays(self.domain, self.arrays.take(wanted))

    def graph(self) -> Graph:
        """Link every two variables that appear together in some feature."""
        return self._graph(np.ones(len(self), dtype=np.bool_))

    def given(self, context: Mapping[str, object] | None = None) -> InstantiatedGraph:
        """Link every two variables that appear together in some feature the context does not contradict.

        A feature that leaves variables of the context out acts in every context, so it counts here too; the
        graph is thus the union, over all completions of the context, of the pairs that interact there.
        """
        codes = self.domain.encode(context)
        graph = self._graph(self._compatible(codes))
        return graph._as(InstantiatedGraph, context=self.domain.decode(codes))

    def n_compatible(self, context: Mapping[str, object] | None = None) -> int:
        """Count the features that a context does not contradict."""
        return int(self._compatible(self.domain.encode(context)).sum())

    def pair_counts(self, context: Mapping[str, object] | None = None) -> dict[Edge, int]:
        """Count, for every two variables linked in `given(context)`, the features that speak of both."""
        together = self._together(self._compatible(self.domain.encode(context)))
        names = self.domain.names
        # In either order of columns a pair is named in sorted order.
        return {
            (min(names[a], names[b]), max(names[a], names[b])): int(together[a, b])
            for a, b in np.argwhere(np.triu(together, 1)).tolist()
        }

    def is_independent(
        self, a: Names, b: Names, given: Names = (), context: Mapping[str, object] | None = None
    ) -> bool:
        """Tell whether the given variables and those of the context separate a from b in `given(context)`."""
        return self.given(context).is_independent(a, b, given)

    def indicators(self, kind: Indicators = "cliques") -> "FeatureSet":  # noqa: ARG002 (it has its own)
        """Return the set itself."""
        return self

    def graph_given(self, context: Assignment | None = None) -> Graph:
        """Return `given(context)`, or the graph of all features."""
        return self.given(context) if context else self.graph()

    def view(self, domain: Domain, by: By = "graphs") -> StructureView:  # noqa: ARG002 (both are the same)
        """Answer where features hold."""
        return ByFeatures(self.arrays, self.domain, domain)

    def scopes_with(self, target: str) -> list[set[str]]:
        """Return the scopes of the features."""
        names, scopes = self.domain.names, list[set[str]]()
        for _, where in self.arrays.by_size():
            distinct = np.unique(self.arrays.variable[where], axis=0)
            scopes += [{names[position] for position in scope} for scope in distinct.tolist()]
        return [scope for scope in scopes if target in scope]

    @property
    def size(self) -> tuple[str, int]:
        """The number of features."""
        return "n_features", len(self)

    def _compatible(self, codes: Mapping[int, int]) -> Bools:
        if not len(self):
            return np.zeros(0, dtype=np.bool_)
        fixed = np.full(len(self.domain), -1)
        fixed[list(codes)] = list(codes.values())
        _, variable, level, equal = self.arrays
        holds = (fixed[variable] < 0) | ((fixed[variable] == level) == equal)
        return np.logical_and.reduceat(holds, self.arrays.start[:-1])

    def _graph(self, wanted: Bools) -> Graph:
        names = self.domain.names
        pairs = np.argwhere(np.triu(self._together(wanted), 1)).tolist()
        return Graph(self.domain, ((names[a], names[b]) for a, b in pairs))

    def _together(self, wanted: Bools) -> Integers:
        """Count, for every two variables, the features among some that speak of both."""
        from scipy.sparse import csr_array

        # Copies, because duplicates are summed in place.
        start, variable = np.array(self.arrays.start), np.array(self.arrays.variable)
        shape = len(self), len(self.domain)
        speaks = csr_array((np.ones(len(variable), dtype=np.int64), variable, start), shape=shape)
        speaks.sum_duplicates()
        # A variable with several conditions in a feature is in it once.
        speaks.data[:] = np.repeat(wanted, np.diff(speaks.indptr))
        return np.asarray((speaks.T @ speaks).toarray())

    @cached_property
    def _literal_set(self) -> frozenset[tuple[CodedCondition, ...]]:
        return frozenset(self.arrays.literals())

    def _settle(self, domain: Domain, arrays: FeatureArrays) -> None:
        frozen = normalised(arrays, domain.n_levels)
        for array in frozen:
            array.flags.writeable = False
        self.__dict__.update(domain=domain, arrays=frozen)

    def __len__(self) -> int:
        return len(self.arrays.start) - 1

    def __iter__(self) -> Iterator[Feature]:
        variables = self.domain.variables
        conditions = {
            (position, level, equal): Condition(variable.name, label, equal)
            for position, variable in enumerate(variables)
            for level, label in enumerate(variable.levels)
            for equal in (True, False)
        }
        for literals in self.arrays.literals():
            yield Feature(conditions[literal] for literal in literals)

    def __contains__(self, feature: object) -> bool:
        if not isinstance(feature, Feature):
            return False
        try:
            literals = tidy(_literals(self.domain, feature), self.domain.n_levels)
        except UnlessError:
            # A name or level from elsewhere, or a contradiction, is in no set.
            return False
        return tuple(literals) in self._literal_set

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FeatureSet):
            return NotImplemented
        if self.domain != other.domain:
            return _levels(self.domain) == _levels(other.domain) and set(self) == set(other)
        return self.arrays.same_as(other.arrays)

    def __hash__(self) -> int:
        return hash((frozenset(self.domain.names), len(self)))

    def _repr_html_(self) -> str:
        first = [(str(feature),) for feature in islice(self, MOST_ROWS)]
        return html_table(repr(self)[1:-1], ("feature",), first, more=len(self) - len(first))

    def __repr__(self) -> str:
        return f"<FeatureSet: {len(self):,} features over {len(self.domain)} variables>"


def _literals(domain: Domain, feature: Feature) -> list[CodedCondition]:
    return [(domain.index(c.name), domain[c.name].code(c.label), c.equal) for c in feature]


def _levels(domain: Domain) -> dict[str, frozenset[str]]:
    return {variable.name: frozenset(variable.levels) for variable in domain}


@dataclass(frozen=True)
class Cliques:
    """The maximal cliques of several graphs: graph g has the scopes scope[start[g]:start[g + 1]].

    A scope is a row of `members`, shared by all graphs in which it is a maximal clique.
    """

    start: Integers
    scope: Positions
    members: Bools


def find_cliques(packed: Packed, n_nodes: int, at_most: int = MAX_CLIQUES) -> Cliques:
    """Find the maximal cliques of every graph; an isolated node is one."""
    from unless.kernels.graphs import maximal_cliques

    # A read-only array is another type to the compiler, which would compile everything once more.
    with plain_if_small(10.0 * len(packed) * 2.0 ** min(n_nodes, 64)):
        start, bitsets = maximal_cliques(np.require(packed, requirements=["C", "W"]), n_nodes, at_most)
    if start[-1] < 0:
        raise TooLarge(f"The graphs have more than {at_most:,} maximal cliques; learn a sparser structure.")
    distinct, scope = distinct_rows(bitsets)
    nodes = np.arange(n_nodes)
    members = (distinct[:, nodes >> 6] >> (nodes & 63).astype(np.uint64)) & np.uint64(1)
    return Cliques(start, scope, members.astype(np.bool_))


def graph_features(graph: "Graph", at_most: int) -> FeatureSet:
    """Return one indicator per joint assignment of each maximal clique."""
    levels = graph.domain.n_levels
    cliques = find_cliques(graph.packed[None], len(graph.domain))
    scopes = [np.flatnonzero(members) for members in cliques.members]
    # Python's integers do not overflow, whatever the clique.
    sizes = [int(np.prod(levels[scope].astype(object))) for scope in scopes]
    if sum(sizes) > at_most:
        raise TooLarge(f"The graph has {sum(sizes):,} features, more than at_most={at_most:,}.")
    parts = [_all_assignments(scope, levels[scope], size) for scope, size in zip(scopes, sizes, strict=True)]
    return FeatureSet.from_arrays(graph.domain, FeatureArrays.joined(parts))


def clique_features(model: "CanonicalModel") -> FeatureSet:
    """Return one indicator [X_C = x_C] per maximal clique C of each canonical graph, each once."""
    cliques = find_cliques(model.packed, len(model.domain))
    parts = [
        part
        for begin in range(0, len(model), BLOCK)
        for part in _seen_in(
            cliques, model.rows[begin : begin + BLOCK], model.graph_index[begin : begin + BLOCK]
        )
    ]
    return FeatureSet.from_arrays(model.domain, FeatureArrays.joined(parts))


def subclique_features(model: "CanonicalModel") -> FeatureSet:
    """Return one indicator [X_S = x_S] per non-empty part S of each clique of each canonical graph, once."""
    cliques = clique_features(model).arrays
    by_size = {where.shape[1]: where for _, where in cliques.by_size()}
    # Parts of one clique after the other, or all partial assignments. Python's integers do not overflow.
    listed = sum(len(where) * (2**size - 1) for size, where in by_size.items())
    at_most = min(listed, math.prod(int(n_levels) + 1 for n_levels in model.domain.n_levels) - 1)
    if at_most > MAX_SUBCLIQUES:
        number = f"up to {at_most:,}" if at_most < 10**15 else "up to more than 10^15"
        raise TooLarge(
            f"The cliques have {number} sub-cliques, more than {MAX_SUBCLIQUES:,}; "
            "use features of cliques or of pairs, or learn a sparser structure."
        )
    # A condition as one number: those of a feature increase.
    begins = np.cumsum(model.domain.n_levels) - model.domain.n_levels
    conditions = (begins[cliques.variable] + cliques.level).astype(np.int32)
    parts, larger = list[FeatureArrays](), np.zeros((0, 0), dtype=np.int32)
    for size in range(max(by_size, default=0), 0, -1):
        found = [np.delete(larger, left_out, axis=1) for left_out in range(larger.shape[1])]
        larger = row_set(np.concatenate([*found, conditions[by_size[size]]] if size in by_size else found))
        variables = np.searchsorted(begins, larger, side="right") - 1
        parts.append(FeatureArrays.of_equals(variables, larger - begins[variables]))
    return FeatureSet.from_arrays(model.domain, FeatureArrays.joined(parts))


def pair_features(model: "CanonicalModel") -> FeatureSet:
    """Return one indicator per linked pair of values, and one per value of an isolated variable."""
    n_nodes = len(model.domain)
    links = unpack(model.packed, n_nodes)
    first, second = pair_nodes(np.arange(n_pairs(n_nodes)), n_nodes)
    parts: list[FeatureArrays] = []
    for linked, a, b in zip(links.T, first, second, strict=True):
        parts += _seen_values(model, linked, [a, b])
    for node in range(n_nodes):
        touching: Links = links[:, (first == node) | (second == node)]
        parts += _seen_values(model, np.logical_not(touching.any(axis=1)), [node])
    return FeatureSet.from_arrays(model.domain, FeatureArrays.joined(parts))


def _all_assignments(scope: Positions, levels: Integers, size: int) -> FeatureArrays:
    strides = np.cumprod(np.r_[1, levels[:-1]])
    values = np.arange(size)[:, None] // strides % levels
    return FeatureArrays.of_equals(np.broadcast_to(scope, values.shape), values)


def _seen_in(cliques: Cliques, rows: Rows, graph_index: npt.NDArray[np.int32]) -> Iterator[FeatureArrays]:
    # One entry per (context, clique of its graph); entries of one size form a matrix.
    n_cliques = np.diff(cliques.start)[graph_index]
    context = np.repeat(np.arange(len(rows)), n_cliques)
    within = np.arange(len(context)) - np.repeat(np.cumsum(n_cliques) - n_cliques, n_cliques)
    scope = cliques.scope[cliques.start[graph_index][context] + within]
    sizes = cliques.members.sum(axis=1)
    for size in np.unique(sizes[scope]):
        chosen = sizes[scope] == size
        of_size = np.flatnonzero(sizes == size)
        variables = np.nonzero(cliques.members[of_size])[1].reshape(-1, size)
        local = np.searchsorted(of_size, scope[chosen])
        values = rows[context[chosen][:, None], variables[local]]
        seen = row_set(np.column_stack([local.astype(np.uint32), values]))
        yield FeatureArrays.of_equals(variables[seen[:, 0]], seen[:, 1:])


def _seen_values(model: "CanonicalModel", in_graph: Links, nodes: list[int]) -> Iterator[FeatureArrays]:
    if in_graph.any():
        values = row_set(model.rows[in_graph[model.graph_index]][:, nodes])
        yield FeatureArrays.of_equals(np.broadcast_to(nodes, values.shape), values)
