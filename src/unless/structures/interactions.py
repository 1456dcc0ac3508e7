"""Which pairs interact in which contexts: one question for every kind of structure, in one coding of rows.

Each kind has `links(rows)`: for each pair, numbered as in `unless.structures.pairs`, and each row of codes,
whether the two interact. Those that answer for all contexts have `boxes()`: for each pair the partial
contexts in which it interacts.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Rows
from unless.data.domain import Code, Domain, shorten
from unless.errors import SettingError
from unless.structures.canonical import CanonicalModel
from unless.structures.conditions import Box, FeatureArrays, box_of
from unless.structures.conditions import Literal as Spoken
from unless.structures.graph import FeatureSet, Graph
from unless.structures.labelled import LabelledGraph, Region
from unless.structures.pairs import n_pairs, unpack

By = Literal["graphs", "features"]
Bools = npt.NDArray[np.bool_]
Bits = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]


class Recoding:
    """Where the variables and levels of one domain are in another one that has the same."""

    def __init__(self, origin: Domain, domain: Domain, what: str = "structures") -> None:
        check_same(domain, origin, what)
        self.domain = domain
        self.place = np.array([domain.index(name) for name in origin.names], dtype=np.int64)
        self.codes = [_codes(variable.levels, domain[variable.name].levels) for variable in origin]
        self._start = np.append(0, np.cumsum(origin.n_levels))
        self._flat = np.concatenate([*self.codes, np.zeros(0, dtype=np.int64)])

    def rows(self, rows: Rows) -> Rows:
        """Say rows of codes in the other domain."""
        recoded = np.empty(rows.shape, dtype=Code)
        for column, (place, codes) in enumerate(zip(self.place, self.codes, strict=True)):
            recoded[:, place] = codes[rows[:, column]]
        return recoded

    def arrays(self, arrays: FeatureArrays) -> FeatureArrays:
        """Say features in the other domain, in the order they had."""
        level = self._flat[self._start[arrays.variable] + arrays.level]
        variable = self.place[arrays.variable]
        return arrays._replace(variable=variable.astype(np.int32), level=level.astype(np.uint16))

    def pairs(self) -> Integers:
        """Return, for each pair of the other domain, its number in the domain of origin."""
        n_variables = len(self.domain)
        there = np.empty(n_variables, dtype=np.int64)
        there[self.place] = np.arange(n_variables)
        first, second = np.triu_indices(n_variables, 1)
        return np.asarray(pair_numbers(n_variables)[there[first], there[second]])


class ByGraph:
    """A graph: the same pairs in every context."""

    def __init__(self, graph: Graph, domain: Domain) -> None:
        order = Recoding(graph.domain, domain).pairs()
        self.edges = unpack(graph.packed, len(domain))[order]

    def links(self, rows: Rows) -> Bools:
        """Give the edges for each row."""
        return np.broadcast_to(self.edges[:, None], (len(self.edges), len(rows)))

    def boxes(self) -> dict[int, list[Box]]:
        """Give one partial context without conditions for each edge."""
        return {pair: [()] for pair in np.flatnonzero(self.edges).tolist()}


class ByContexts:
    """A canonical model: a graph for each of its own contexts, and no answer for others."""

    def __init__(self, model: CanonicalModel, domain: Domain) -> None:
        recoding = Recoding(model.domain, domain)
        self.contexts = recoding.rows(model.rows)
        self._order = recoding.pairs()
        self._packed = model.packed
        self._graph = dict(zip(row_keys(self.contexts), model.graph_index.tolist(), strict=True))
        self._n_variables = len(domain)

    def links(self, rows: Rows) -> Bools:
        """Unpack the graph of each row, which must be one of `contexts`."""
        graphs = np.array([self._graph[key] for key in row_keys(rows)], dtype=np.intp)
        return unpack(self._packed[graphs], self._n_variables)[:, self._order].T


class ByLabels:
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
        found: dict[int, list[Box]] = {}
        for link in self._graph.links:
            a, b = (domain.index(name) for name in link.pair)
            found[int(number[a, b])] = [
                box_of(_excluded(domain, region), domain.n_levels) for region in link.regions
            ]
        return found


class ByFeatures:
    """Features: a pair interacts where some feature that speaks of both holds."""

    def __init__(self, features: FeatureSet, domain: Domain, kept: Bools | None = None) -> None:
        arrays = features.arrays if kept is None else features.arrays.take(kept)
        spoken = Recoding(features.domain, domain).arrays(arrays).literals()
        scoped = ((tuple(dict.fromkeys(v for v, _, _ in literals)), literals) for literals in spoken)
        self._features = [(scope, literals) for scope, literals in scoped if len(scope) > 1]
        self._n_levels = domain.n_levels
        self._number = pair_numbers(len(domain))

    def links(self, rows: Rows) -> Bools:
        """Hold a bit for each row: features that begin alike share the bits of their beginning."""
        width = (len(rows) + 7) // 8
        drawn = np.zeros((n_pairs(rows.shape[1]), width), dtype=np.uint8)
        union = np.zeros(width, dtype=np.uint8)
        current: tuple[int, ...] = ()
        for scope, bits in self._bits(rows):
            if scope != current:
                self._draw(drawn, current, union)
                union, current = np.zeros(width, dtype=np.uint8), scope
            union |= bits
        self._draw(drawn, current, union)
        return np.unpackbits(drawn, axis=1, count=len(rows)).view(np.bool_)

    def _bits(self, rows: Rows) -> Iterator[tuple[tuple[int, ...], Bits]]:
        """Give the scope of each feature and the rows in which it holds."""
        columns = np.ascontiguousarray(rows.T)
        known: dict[Spoken, Bits] = {}
        said: tuple[Spoken, ...] = ()
        prefixes: list[Bits] = []
        for scope, literals in self._features:
            del prefixes[_n_shared(said, literals) :]
            for literal in literals[len(prefixes) :]:
                bits = known.get(literal)
                if bits is None:
                    variable, level, equal = literal
                    bits = known[literal] = np.packbits((columns[variable] == level) == equal)
                prefixes.append(prefixes[-1] & bits if prefixes else bits)
            said = literals
            yield scope, prefixes[-1]

    def _draw(self, drawn: Bits, scope: tuple[int, ...], bits: Bits) -> None:
        for a, b in combinations(scope, 2):
            drawn[self._number[a, b]] |= bits

    def boxes(self) -> dict[int, list[Box]]:
        """Give the conditions of the features of each pair."""
        found: dict[int, list[Box]] = {}
        for scope, literals in self._features:
            box = box_of(literals, self._n_levels)
            for a, b in combinations(scope, 2):
                found.setdefault(int(self._number[a, b]), []).append(box)
        return found


Side = ByGraph | ByContexts | ByFeatures | ByLabels


def side_of(structure: Any, by: By, domain: Domain) -> Side:
    """Make a structure answer in the coding of a domain."""
    if isinstance(structure, Graph):
        return ByGraph(structure, domain)
    if isinstance(structure, CanonicalModel):
        return ByContexts(structure, domain) if by == "graphs" else ByFeatures(structure.features(), domain)
    if isinstance(structure, LabelledGraph):
        return ByLabels(structure, domain) if by == "graphs" else ByFeatures(structure.features(), domain)
    return ByFeatures(structure, domain)


def _codes(labels: tuple[str, ...], levels: tuple[str, ...]) -> Integers:
    """Return the place of each label among the levels."""
    place = {label: code for code, label in enumerate(levels)}
    return np.array([place[label] for label in labels], dtype=np.int64)


def _excluded(domain: Domain, region: Region) -> list[Spoken]:
    """Say a region by the levels it leaves out."""
    return [
        (domain.index(name), code, False)
        for name, labels in region.conditions
        for code, label in enumerate(domain[name].levels)
        if label not in labels
    ]


def check_same(first: Domain, second: Domain, what: str) -> None:
    """Refuse domains that differ in more than order."""
    for name in (*first.names, *second.names):
        if (name in first) != (name in second):
            raise SettingError(
                f"Only one of the two {what} has a variable {name!r}; compare {what} of the same variables."
            )
        here, there = first[name].levels, second[name].levels
        if set(here) != set(there):
            raise SettingError(
                f"The two {what} disagree on the levels of {name!r}: {shorten(here)} and {shorten(there)}; "
                f"compare {what} of the same levels."
            )


def pair_numbers(n_variables: int) -> Integers:
    """Return the number of each pair, whichever of the two comes first."""
    numbers = np.zeros((n_variables, n_variables), dtype=np.int64)
    first, second = np.triu_indices(n_variables, 1)
    numbers[first, second] = numbers[second, first] = np.arange(len(first))
    return numbers


def row_keys(rows: Rows) -> list[bytes]:
    """Return something hashable for each row."""
    width = rows.shape[1] * rows.dtype.itemsize
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, width))).ravel().tolist()
    return cast(list[bytes], keys)


def _n_shared(one: tuple[Spoken, ...], other: tuple[Spoken, ...]) -> int:
    n_shared = 0
    for mine, yours in zip(one, other, strict=False):
        if mine != yours:
            break
        n_shared += 1
    return n_shared
