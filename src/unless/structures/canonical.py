"""The canonical model: one graph for every context the data showed."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Counts, Dataset, Rows, distinct_bytes, row_order, rows_increase
from unless.data.domain import Code, Context, Domain
from unless.data.showing import html_table
from unless.errors import SettingError, UnknownContext
from unless.structures.graph import (
    CanonicalGraph,
    FeatureSet,
    Graph,
    GraphPerContext,
    ObservedGraph,
    clique_features,
    pair_features,
    subclique_features,
)
from unless.structures.structure import (
    By,
    ByContexts,
    Edge,
    Indicators,
    Packed,
    StructureView,
    agreeing,
    check_kind,
    is_padded_with_zeros,
    n_pairs,
    pack,
    packed_width,
    pair_names,
    unpack,
)
from unless.typing import Floats, Integers

Assignment = Mapping[str, Any]
# Contexts are turned into labels, and graphs into numbers, a block at a time, so that memory stays flat.
CONTEXT_BLOCK = 4096
LINK_BLOCK = 1 << 22
# Named graphs are large beside packed ones: only the latest are kept.
GRAPHS_KEPT = 1024


@dataclass(frozen=True, eq=False, repr=False)
class CanonicalModel(GraphPerContext):
    """A graph for every observed context, equal graphs stored once. Learners make it by `from_edges`.

    `rows` and `counts` are the contexts in lexicographic order and how often each was seen; the graph of
    context i is row `graph_index[i]` of `packed` (see `structure.py`), graphs as contexts come to
    them. Iterating gives (context, graph).
    """

    kind = "contexts"
    _inner = ("graph_index", "packed")
    domain: Domain
    rows: Rows
    counts: Counts
    packed: Packed
    graph_index: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        for name in ("rows", "counts", "packed", "graph_index"):
            # A view, so that the array it came from stays as its owner left it.
            array = getattr(self, name).view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def from_edges(cls, domain: Domain, rows: Rows, counts: Counts, edges: Packed) -> "CanonicalModel":
        """Take distinct rows, their counts, and the packed edges of each row's graph."""
        n_contexts, width = len(rows), packed_width(len(domain))
        if (rows.shape, counts.shape, edges.shape) != (
            (n_contexts, len(domain)),
            (n_contexts,),
            (n_contexts, width),
        ):
            raise SettingError(f"Give {n_contexts} rows, counts and graphs of {width} bytes.")
        if not is_padded_with_zeros(edges, len(domain)):
            raise SettingError("The bits after the last pair must be zero.")
        if not rows_increase(rows):
            order = row_order(rows)
            rows, counts, edges = rows[order], counts[order], edges[order]
            if not rows_increase(rows):
                raise SettingError("A context appears twice; give distinct rows.")
        packed, index = distinct_bytes(edges)
        return cls(
            domain, rows.astype(Code, copy=False), counts.astype(np.int64), packed, index.astype(np.int32)
        )

    @cached_property
    def n_rows(self) -> int:
        """The number of rows of the table, repeated ones included."""
        return int(self.counts.sum())

    @property
    def n_graphs(self) -> int:
        """The number of different graphs."""
        return len(self.packed)

    def contexts(self) -> Iterator[Context]:
        """Give the observed contexts in the order of their levels."""
        names = self.domain.names
        labels = [np.array(variable.levels, dtype=object) for variable in self.domain]
        for begin in range(0, len(self), CONTEXT_BLOCK):
            block = self.rows[begin : begin + CONTEXT_BLOCK]
            columns = [label[codes].tolist() for label, codes in zip(labels, block.T, strict=True)]
            for values in zip(*columns, strict=True):
                yield Context(zip(names, values, strict=True))

    def graph(self, context: Assignment) -> CanonicalGraph:
        """Return the graph of an observed context, which gives every variable a value."""
        codes = self._complete_codes(context)
        row = list(codes.values())
        found = bisect_left(range(len(self)), row, key=lambda position: self.rows[position].tolist())
        if found == len(self) or self.rows[found].tolist() != row:
            raise self._unknown(codes)
        return self._canonical(found, self.domain.decode(codes))

    def given(self, context: Assignment | None = None, at_least: float = 0.0) -> ObservedGraph:
        """Unite the graphs of the observed contexts that agree with a partial one.

        Parameters
        ----------
        at_least
            Keep only the edges whose share of the agreeing contexts' rows is at least this.
        """
        if not 0 <= at_least <= 1:
            raise SettingError(f"at_least={at_least!r} is not a share; give a number from 0 to 1.")
        codes = self.domain.encode(context)
        shares, n_rows = self._link_shares(codes)
        kept = (shares > 0) & (shares >= at_least)
        named = dict(zip(pair_names(self.domain, np.flatnonzero(kept)), shares[kept].tolist(), strict=True))
        graph = Graph.from_packed(self.domain, pack(kept))
        return graph._as(ObservedGraph, context=self.domain.decode(codes), shares=named, n_rows=n_rows)

    def link_shares(self, context: Assignment | None = None) -> dict[Edge, float]:
        """Return, for every pair, the share of the agreeing contexts' rows in whose graph it is linked."""
        shares, _ = self._link_shares(self.domain.encode(context))
        return dict(zip(self._pair_names, shares.tolist(), strict=True))

    def features(self, kind: Indicators = "cliques") -> FeatureSet:
        """Return the indicators of the graphs, each once.

        "cliques", as in the paper: the values of each maximal clique in the contexts that have it.
        "pairs": the values of each linked pair, and of each isolated variable.
        "subcliques": the values of each set of variables that are all linked, single ones too; refused where
        cliques have too many such sets.
        """
        check_kind("kind", kind)
        if kind == "pairs":
            return pair_features(self)
        return clique_features(self) if kind == "cliques" else subclique_features(self)

    indicators = features

    def view(self, domain: Domain, by: By = "graphs") -> StructureView:
        """Answer for its own contexts; by features for all."""
        if by == "features":
            return self.features().view(domain)
        return ByContexts(self.observed, self.packed, self.graph_index, domain)

    @property
    def observed(self) -> Dataset:
        """The contexts and how often each was seen."""
        return Dataset(self.domain, self.rows, self.counts)

    @property
    def size(self) -> tuple[str, int]:
        """The number of contexts."""
        return "n_contexts", len(self)

    def _link_shares(self, codes: Mapping[int, int]) -> tuple[Floats, int]:
        agrees = agreeing(self.rows, codes)
        if not agrees.any():
            raise self._unknown(codes)
        weights = np.bincount(self.graph_index[agrees], weights=self.counts[agrees], minlength=self.n_graphs)
        used = np.flatnonzero(weights)
        totals = np.zeros(n_pairs(len(self.domain)))
        block = max(1, LINK_BLOCK // max(1, len(totals)))
        for begin in range(0, len(used), block):
            graphs = used[begin : begin + block]
            totals += weights[graphs] @ unpack(self.packed[graphs], len(self.domain))
        n_rows = int(self.counts[agrees].sum())
        return totals / n_rows, n_rows

    def _agreement(self, codes: Mapping[int, int]) -> Integers:
        agreement = np.zeros(len(self), dtype=np.int64)
        for position, code in codes.items():
            agreement += self.rows[:, position] == code
        return agreement

    def _unknown(self, codes: Mapping[int, int]) -> UnknownContext:
        if not len(self):
            return UnknownContext("The model holds no context; learn it from a table with rows.")
        agreement = self._agreement(codes)
        # Of the nearest, the most frequent; of those, the first: the same answer every time.
        nearest = np.lexsort((-self.counts, -agreement))[0]
        wanted = self.domain.decode(codes)
        seen = self.domain.decode({position: int(self.rows[nearest, position]) for position in codes})
        changes = [
            f"{name} = {seen[name]} instead of {wanted[name]}"
            for name in wanted
            if seen[name] != wanted[name]
        ]
        more = f" and {len(changes) - 8:,} more changes" if len(changes) > 8 else ""
        listed = ", ".join(islice(changes, 8))
        return UnknownContext(
            f"The data never showed this context; the nearest it showed has {listed}{more}."
        )

    def _canonical(self, position: int, context: Context) -> CanonicalGraph:
        graph = self._plain(int(self.graph_index[position]))
        return graph._as(CanonicalGraph, context=context, n_rows=int(self.counts[position]))

    def _plain(self, graph: int) -> Graph:
        known = self._graphs.get(graph)
        if known is None:
            pairs = np.flatnonzero(unpack(self.packed[graph], len(self.domain)))
            # Named here, once, for all contexts that share the graph.
            edges = frozenset([self._pair_names[pair] for pair in pairs.tolist()])
            known = Graph.from_packed(self.domain, self.packed[graph])._as(Graph, edges=edges)
            if len(self._graphs) >= GRAPHS_KEPT:
                self._graphs.clear()
            self._graphs[graph] = known
        return known

    @cached_property
    def _pair_names(self) -> list[Edge]:
        return pair_names(self.domain, np.arange(n_pairs(len(self.domain))))

    @cached_property
    def _graphs(self) -> dict[int, Graph]:
        return {}

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Context, CanonicalGraph]]:
        for position, context in enumerate(self.contexts()):
            yield context, self._canonical(position, context)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CanonicalModel):
            return NotImplemented
        fields = ("rows", "counts", "packed", "graph_index")
        return self.domain == other.domain and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in fields
        )

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        shares = sorted(self.given().shares.items(), key=lambda one: (-one[1], one[0])) if len(self) else []
        rows = [(*pair, f"{100 * share:.0f} %") for pair, share in shares]
        return html_table(repr(self)[1:-1], ("linked", "", "in so many of the rows"), rows)

    def __repr__(self) -> str:
        contexts = f"{len(self):,} contexts of {len(self.domain)} variables"
        return f"<CanonicalModel: {contexts}, {self.n_graphs:,} different graphs>"
