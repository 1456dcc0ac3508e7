"""What a canonical model says of each pair: in how many rows it is linked, and whether one variable decides.

This describes the learned graphs and no more: it weighs no evidence.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unless.data.domain import Context, Domain
from unless.structures.canonical import LINK_BLOCK, CanonicalModel
from unless.structures.distinct import Positions
from unless.structures.pairs import Edge, n_pairs, pair_names, unpack

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint16]
# A longer list of levels tells a person no more than a share does.
MOST_LEVELS_NAMED = 4
# Most variables are ruled out as deciding by these few contexts, without a look at all of them.
FEW_CONTEXTS = 128


@dataclass(frozen=True)
class Extent:
    """A number of rows of the table and of the contexts (distinct rows) they make up."""

    n_rows: int
    n_contexts: int


@dataclass(frozen=True)
class Gate:
    """A variable whose levels alone tell whether a pair is linked."""

    variable: str
    linked: tuple[str, ...]
    unlinked: tuple[str, ...]


@dataclass(frozen=True)
class Link:
    """A pair that is linked somewhere: how far in the context looked at, how far in the whole table."""

    pair: Edge
    here: Extent
    whole: Extent
    gate: Gate | None


@dataclass(frozen=True)
class View:
    """The links of a model as seen from a context; pairs that are linked nowhere are not listed."""

    context: Context
    here: Extent
    whole: Extent
    n_graphs_here: int
    n_graphs: int
    n_pairs: int
    links: tuple[Link, ...]


def look(model: CanonicalModel, context: Mapping[str, str] | None = None) -> View:
    """Count the links of a model in the contexts that agree with a partial one, pairs in sorted order."""
    # Refuses, in the library's words, names and contexts it does not know.
    seen_from = model.given(context).context
    agrees = np.ones(len(model), dtype=np.bool_)
    for position, code in model.domain.encode(seen_from).items():
        agrees &= model.rows[:, position] == code
    whole, here = _count(model, np.ones_like(agrees)), _count(model, agrees)
    everywhere = np.flatnonzero(whole[1])
    named = sorted(zip(pair_names(model.domain, everywhere), everywhere.tolist(), strict=True))
    extent = Extent(int(model.counts[agrees].sum()), int(agrees.sum()))
    # Variables one below the other: each is asked alone, and often.
    columns, index = np.ascontiguousarray(model.rows[agrees].T), model.graph_index[agrees]
    links = []
    for edge, place in named:
        inside = Extent(int(here[0][place]), int(here[1][place]))
        varies = 0 < inside.n_contexts < extent.n_contexts
        bits = (model.packed[:, place // 8] >> np.uint8(place % 8)) & 1
        gate = _gate(model.domain, columns, bits[index].astype(np.bool_), edge) if varies else None
        links.append(Link(edge, inside, Extent(int(whole[0][place]), int(whole[1][place])), gate))
    return View(
        context=seen_from,
        here=extent,
        whole=Extent(model.n_rows, len(model)),
        n_graphs_here=len(np.unique(model.graph_index[agrees])),
        n_graphs=model.n_graphs,
        n_pairs=n_pairs(len(model.domain)),
        links=tuple(links),
    )


def _count(model: CanonicalModel, agrees: Mask) -> npt.NDArray[np.int64]:
    """Return, for every pair, the rows and the contexts among these in which it is linked."""
    index = model.graph_index[agrees]
    weights = np.stack(
        [
            np.bincount(index, weights=model.counts[agrees], minlength=model.n_graphs),
            np.bincount(index, minlength=model.n_graphs).astype(np.float64),
        ]
    )
    totals = np.zeros((2, n_pairs(len(model.domain))))
    block = max(1, LINK_BLOCK // max(1, totals.shape[1]))
    for begin in range(0, model.n_graphs, block):
        part = slice(begin, begin + block)
        # Sums of whole numbers below 2^53: exact.
        totals += weights[:, part] @ unpack(model.packed[part], len(model.domain))
    return totals.astype(np.int64)


def _gate(domain: Domain, columns: Codes, linked: Mask, edge: Edge) -> Gate | None:
    """Find the variable, of the fewest levels, that alone decides a link."""
    on, off = np.flatnonzero(linked), np.flatnonzero(~linked)
    for variable in sorted(domain, key=lambda one: (len(one.levels), one.name)):
        if variable.name in edge:
            continue
        codes = columns[domain.index(variable.name)]
        if _overlap(codes[_few(on)], codes[_few(off)]) or _overlap(codes[on], codes[off]):
            continue
        sides = [
            tuple(variable.levels[code] for code in np.unique(codes[side]).tolist()) for side in (on, off)
        ]
        if min(map(len, sides)) <= MOST_LEVELS_NAMED:
            return Gate(variable.name, *sides)
    return None


def _few(places: Positions) -> Positions:
    return places[:: max(1, len(places) // FEW_CONTEXTS)]


def _overlap(codes: Codes, others: Codes) -> bool:
    return not set(codes.tolist()).isdisjoint(others.tolist())
