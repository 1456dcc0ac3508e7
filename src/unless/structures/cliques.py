"""Indicators read off graphs: of maximal cliques, and of single links."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Rows
from unless.errors import TooLarge
from unless.structures.conditions import FeatureArrays
from unless.structures.distinct import Positions, distinct_rows, row_set
from unless.structures.features import FeatureSet
from unless.structures.pairs import Links, Packed, n_pairs, pair_nodes, unpack

if TYPE_CHECKING:
    from unless.structures.canonical import CanonicalModel
    from unless.structures.graph import Graph

# Enough for any graph a person would draw; a search that finds more is lost in a graph without structure.
MAX_CLIQUES = 20_000_000
# Contexts are taken in blocks, so that memory holds the cliques of a block and not of a million contexts.
BLOCK = 1 << 16


@dataclass(frozen=True)
class Cliques:
    """The maximal cliques of several graphs: graph g has the scopes scope[start[g]:start[g + 1]].

    A scope is a row of `members`, shared by all graphs in which it is a maximal clique.
    """

    start: npt.NDArray[np.int64]
    scope: Positions
    members: npt.NDArray[np.bool_]


def find_cliques(packed: Packed, n_nodes: int, at_most: int = MAX_CLIQUES) -> Cliques:
    """Find the maximal cliques of every graph; an isolated node is one."""
    from unless.kernels.cliques import maximal_cliques

    # A read-only array is another type to the compiler, which would compile everything once more.
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


def _all_assignments(scope: Positions, levels: npt.NDArray[np.int64], size: int) -> FeatureArrays:
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
