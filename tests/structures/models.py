"""Hypothesis strategies for structures, and slow twins of what they can be asked."""

from itertools import combinations, product

import networkx
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from unless.data.domain import Domain, Variable
from unless.structures.canonical import CanonicalModel
from unless.structures.graph import Condition, Feature, Graph

# Compiling a kernel takes longer than any deadline; the same examples in every run.
steady = settings(deadline=None, derandomize=True)
# Names and labels a table may really have; both are only text to us.
ODD = ("B", "a", "", "é", "naïve & = !=", '"quoted"', "two\nlines", "10", "9", "日本", " ")


@st.composite
def domains(draw, *, min_variables=1, max_variables=6, max_levels=4):
    """Draw a domain, sometimes with a variable of one level."""
    names = draw(st.permutations(ODD))[: draw(st.integers(min_variables, max_variables))]
    return Domain(
        tuple(
            Variable(name, tuple(draw(st.permutations(ODD))[: draw(st.integers(1, max_levels))]))
            for name in names
        )
    )


@st.composite
def graphs(draw, domain):
    """Draw a graph over a domain."""
    pairs = list(combinations(domain.names, 2))
    return Graph(domain, [pair for pair in pairs if draw(st.booleans())])


@st.composite
def canonical_models(draw, *, min_variables=1, max_variables=6):
    """Draw a canonical model with few different graphs."""
    return CanonicalModel.from_edges(
        *draw(loose_models(min_variables=min_variables, max_variables=max_variables))
    )


@st.composite
def loose_models(draw, *, min_variables=1, max_variables=6):
    """Draw (domain, rows, counts, edges) in no particular order of rows."""
    domain = draw(domains(min_variables=min_variables, max_variables=max_variables))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = np.unique(rng.integers(0, domain.n_levels, (draw(st.integers(1, 12)), len(domain))), axis=0)
    rows = rng.permutation(rows).astype(np.uint16)
    n_pairs = len(domain) * (len(domain) - 1) // 2
    few = rng.random((draw(st.integers(1, 4)), n_pairs)) < draw(st.sampled_from((0.0, 0.3, 0.7, 1.0)))
    edges = np.packbits(few[rng.integers(0, len(few), len(rows))], axis=1, bitorder="little")
    return domain, rows, rng.integers(1, 50, len(rows)), edges


@st.composite
def contexts(draw, domain, *, complete=False):
    """Draw an assignment to some or all variables."""
    chosen = [variable for variable in domain if complete or draw(st.booleans())]
    return {variable.name: draw(st.sampled_from(variable.levels)) for variable in chosen}


@st.composite
def feature_lists(draw, domain, *, max_features=6):
    """Draw features that do not contradict themselves, with repetitions and roundabout wordings."""
    return [draw(_features(domain)) for _ in range(draw(st.integers(0, max_features)))]


@st.composite
def _features(draw, domain):
    witness = draw(contexts(domain, complete=True))
    scope = draw(st.lists(st.sampled_from(domain.variables), min_size=1, max_size=3, unique=True))
    conditions = []
    for variable in scope:
        others = [level for level in variable.levels if level != witness[variable.name]]
        excluded = draw(st.lists(st.sampled_from(others), unique=True)) if others else []
        conditions += [Condition(variable.name, level, equal=False) for level in excluded]
        if not excluded or draw(st.booleans()):
            conditions.append(Condition(variable.name, witness[variable.name]))
    return Feature(draw(st.permutations(conditions)))


def assignments(domain):
    """Give every complete assignment."""
    for labels in product(*(variable.levels for variable in domain)):
        yield dict(zip(domain.names, labels, strict=True))


def edges_of(domain, packed):
    """Name the edges of a packed graph, bit by bit."""
    pairs = combinations(domain.names, 2)
    return {tuple(sorted(pair)) for p, pair in enumerate(pairs) if packed[p // 8] >> (p % 8) & 1}


def is_separated(edges, nodes, a, b, given):
    """Remove the given nodes and look for paths."""
    graph = networkx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    graph.remove_nodes_from(given)
    return not any(networkx.has_path(graph, x, y) for x in a for y in b)
