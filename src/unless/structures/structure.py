"""What every structure answers for itself, and how it answers in the coding of another domain.

`Structure` is the base of graphs, canonical models, labelled graphs, sets of features and models with
weights: no other module needs to know which it has. `view` makes a structure answer which pairs interact
in which rows: for each pair and each row of codes, whether the two interact. Views that answer for all
contexts have `boxes`: for each pair the partial contexts in which it interacts.

Two kinds of arrays hold structures. Features are conjunctions of conditions, each in the one form that it has
(`FeatureArrays`). Sets of pairs are packed bits: pair (a, b) in the order of itertools.combinations, lowest
bit first.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, cast, get_args

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Counts, Dataset, Positions, Rows, row_set
from unless.data.domain import Code, Domain, shorten
from unless.data.showing import html_table
from unless.errors import SettingError, UnknownContext
from unless.typing import Bools, Floats, Integers

if TYPE_CHECKING:
    from unless.structures.graph import FeatureSet, Graph


By = Literal["graphs", "features"]
Indicators = Literal["cliques", "pairs", "subcliques"]
Context = Mapping[str, Any]
Bits = npt.NDArray[np.uint8]
# Answers of a structure that are held at once, a byte each: less than any limit of memory that may be set.
_ANSWERS = 2**22
# A pair of columns, and sets of pairs: one bit or one boolean a pair.
Edge = tuple[str, str]
Packed = npt.NDArray[np.uint8]
Links = Bools
# Position of the variable, code of the level, equal or not equal.
CodedCondition = tuple[int, int, bool]
# Conditions that are handled at once.
_BLOCK = 2**18
# Variable and the levels it may have, as the bits of a number, by variable; what may be anything is left out.
Box = tuple[tuple[int, int], ...]


class FeatureArrays(NamedTuple):
    """Features as arrays: feature k holds the conditions from start[k] to start[k + 1]."""

    start: Integers
    variable: npt.NDArray[np.int32]
    level: npt.NDArray[np.uint16]
    equal: Bools

    @classmethod
    def of(cls, features: Iterable[Iterable[CodedCondition]]) -> "FeatureArrays":
        """Lay out features one after another."""
        lists = [list(feature) for feature in features]
        start = np.append(0, np.cumsum([len(literals) for literals in lists])).astype(np.int64)
        flat = np.array([literal for literals in lists for literal in literals], dtype=np.int64)
        variable, level, equal = flat.reshape(-1, 3).T
        return cls(start, variable.astype(np.int32), level.astype(np.uint16), equal.astype(np.bool_))

    @classmethod
    def joined(cls, parts: Iterable["FeatureArrays"]) -> "FeatureArrays":
        """Lay out several sets of features one after another."""
        everything = [cls.of(()), *parts]
        sizes = np.concatenate([np.diff(part.start) for part in everything])
        start = np.append(0, np.cumsum(sizes)).astype(np.int64)
        _, *columns = zip(*everything, strict=True)
        return cls(start, *map(np.concatenate, columns))

    @classmethod
    def of_equals(cls, variables: npt.ArrayLike, levels: npt.ArrayLike) -> "FeatureArrays":
        """Lay out indicators of one size: two matrices, one feature a row, all conditions "equal"."""
        scope = np.asarray(variables, dtype=np.int32)
        n_features, size = scope.shape
        start = np.arange(n_features + 1, dtype=np.int64) * size
        values = np.asarray(levels, dtype=np.uint16).ravel()
        return cls(start, scope.ravel(), values, np.ones(scope.size, dtype=np.bool_))

    @property
    def owner(self) -> Positions:
        """The feature of each condition."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def with_any(self, chosen: Bools) -> Bools:
        """Tell, for each feature, whether some of its conditions are among the chosen ones."""
        return np.bincount(self.owner, chosen, len(self.start) - 1) > 0

    def by_size(self) -> Iterator[tuple[Positions, Positions]]:
        """Give, for each number of conditions, its features and the matrix of their conditions' positions."""
        sizes = np.diff(self.start)
        for size in np.unique(sizes):
            features = np.flatnonzero(sizes == size)
            yield features, self.start[features][:, None] + np.arange(size)

    def blocks(self) -> Iterator["FeatureArrays"]:
        """Give the features in blocks of about as many conditions, so that no call takes long."""
        cuts = np.flatnonzero(np.diff(self.start[:-1] // _BLOCK)) + 1
        for begin, end in pairwise([0, *cuts.tolist(), len(self.start) - 1]):
            some = slice(int(self.start[begin]), int(self.start[end]))
            start = self.start[begin : end + 1] - self.start[begin]
            yield FeatureArrays(start, self.variable[some], self.level[some], self.equal[some])

    def take(self, chosen: Bools) -> "FeatureArrays":
        """Return the features that are chosen, in their order."""
        sizes = np.diff(self.start)
        start = np.concatenate([[0], np.cumsum(sizes[chosen])]).astype(np.int64)
        where = np.repeat(chosen, sizes)
        return FeatureArrays(start, self.variable[where], self.level[where], self.equal[where])

    def same_as(self, other: "FeatureArrays") -> bool:
        """Tell whether two layouts are the same, number by number."""
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in self._fields)

    def literals(self) -> Iterator[tuple[CodedCondition, ...]]:
        """Give the conditions of one feature after another."""
        for block in self.blocks():
            flat = list(zip(block.variable.tolist(), block.level.tolist(), block.equal.tolist(), strict=True))
            for begin, end in pairwise(block.start.tolist()):
                yield tuple(flat[begin:end])


def normalised(arrays: FeatureArrays, n_levels: Integers) -> FeatureArrays:
    """Return the same features, each once, sorted by size, scope and values, each said in the one normal way.

    Two conjunctions that are true together are one feature: a second copy would be a second weight and so
    weaken the prior. The normal way to speak of a variable is "= v" where one level is left, else all its
    "!=".
    """
    tidied = [_tidied(_ordered(block), n_levels) for block in arrays.blocks()]
    return _sorted_set(tidied[0] if len(tidied) == 1 else FeatureArrays.joined(tidied))


def tidy(literals: Iterable[CodedCondition], n_levels: Integers) -> list[CodedCondition]:
    """Say a conjunction in the normal way."""
    required: dict[int, set[int]] = {}
    excluded: dict[int, set[int]] = {}
    for variable, level, equal in literals:
        (required if equal else excluded).setdefault(variable, set()).add(level)
    variables = sorted({*required, *excluded})
    return [
        literal
        for variable in variables
        for literal in _tidy_variable(
            variable, required.get(variable, set()), excluded.get(variable, set()), int(n_levels[variable])
        )
    ]


def _tidy_variable(
    variable: int, required: set[int], excluded: set[int], n_levels: int
) -> list[CodedCondition]:
    if len(required) > 1 or required & excluded or len(excluded) == n_levels:
        raise SettingError("A feature contradicts itself: its conditions leave no level of a variable.")
    if required:
        return [(variable, min(required), True)]
    if len(excluded) == n_levels - 1:
        return [(variable, next(level for level in range(n_levels) if level not in excluded), True)]
    return [(variable, level, False) for level in sorted(excluded)]


def _ordered(arrays: FeatureArrays) -> FeatureArrays:
    order = np.lexsort((arrays.level, arrays.variable, arrays.owner))
    return FeatureArrays(arrays.start, arrays.variable[order], arrays.level[order], arrays.equal[order])


def _tidied(arrays: FeatureArrays, n_levels: Integers) -> FeatureArrays:
    sizes = np.diff(arrays.start)
    if not sizes.all():
        raise SettingError("A feature without conditions is always true; give each at least one.")
    feature = arrays.owner
    again = (arrays.variable[1:] == arrays.variable[:-1]) & (feature[1:] == feature[:-1])
    untidy = np.zeros(len(sizes), dtype=np.bool_)
    untidy[feature[~arrays.equal]] = True
    untidy[feature[1:][again]] = True
    if not untidy.any():
        return arrays
    tidied = (
        tidy(literals, n_levels) if is_untidy else literals
        for literals, is_untidy in zip(arrays.literals(), untidy.tolist(), strict=True)
    )
    return FeatureArrays.of(tidied)


def _sorted_set(arrays: FeatureArrays) -> FeatureArrays:
    parts = []
    for _, where in arrays.by_size():
        size = where.shape[1]
        values = arrays.level[where].astype(np.uint32) * 2 + ~arrays.equal[where]
        rows = row_set(np.concatenate([arrays.variable[where].astype(np.uint32), values], axis=1))
        part = FeatureArrays.of_equals(rows[:, :size], rows[:, size:] >> 1)
        parts.append(part._replace(equal=(rows[:, size:] & 1 == 0).ravel()))
    return FeatureArrays.joined(parts)


def box_of(literals: Iterable[CodedCondition], n_levels: Integers) -> Box:
    """Turn the conditions of a feature into the levels they leave."""
    left: dict[int, int] = {}
    for variable, level, equal in literals:
        everything = (1 << int(n_levels[variable])) - 1
        allowed = 1 << level if equal else everything & ~(1 << level)
        left[variable] = left.get(variable, everything) & allowed
    return tuple(
        (variable, levels)
        for variable, levels in sorted(left.items())
        if levels != (1 << int(n_levels[variable])) - 1
    )


def n_pairs(n_nodes: int) -> int:
    """Return the number of pairs of nodes."""
    return n_nodes * (n_nodes - 1) // 2


def packed_width(n_nodes: int) -> int:
    """Return the number of bytes that hold one bit per pair."""
    return (n_pairs(n_nodes) + 7) // 8


def pair_nodes(pairs: Positions, n_nodes: int) -> tuple[Positions, Positions]:
    """Return the first and the second node of each of these pairs."""
    begins = _first_pairs(n_nodes)
    # The last node begins no pair, so its (empty) run must not be found.
    first = np.searchsorted(begins[:-1], pairs, side="right") - 1
    return first, pairs - begins[first] + first + 1


def pair_names(domain: Domain, pairs: Positions) -> list[Edge]:
    """Name these pairs, names sorted, so that an edge looks the same under any column order."""
    names = domain.names
    first, second = pair_nodes(pairs, len(names))
    named = ((names[a], names[b]) for a, b in zip(first.tolist(), second.tolist(), strict=True))
    return [(a, b) if a < b else (b, a) for a, b in named]


def pack_edges(domain: Domain, edges: Iterable[Edge]) -> Packed:
    """Pack the edges of one graph."""
    begins = _first_pairs(len(domain))
    links = np.zeros(n_pairs(len(domain)), dtype=np.bool_)
    for edge in edges:
        a, b = sorted(map(domain.index, edge))
        links[begins[a] + b - a - 1] = True
    return pack(links)


def pack(links: Links) -> Packed:
    """Pack one graph a row."""
    return np.packbits(links, axis=-1, bitorder="little")


def unpack(packed: Packed, n_nodes: int) -> Links:
    """Return one graph a row, one boolean a pair."""
    if not packed.shape[-1]:
        return np.zeros((*packed.shape[:-1], n_pairs(n_nodes)), dtype=np.bool_)
    bits = np.unpackbits(packed, axis=-1, count=n_pairs(n_nodes), bitorder="little")
    return bits.view(np.bool_)


def is_padded_with_zeros(packed: Packed, n_nodes: int) -> bool:
    """Tell whether the bits beyond the last pair are zero, as equality by bytes needs."""
    used = n_pairs(n_nodes) % 8
    return not used or not len(packed) or not (packed[:, -1] >> used).any()


def _first_pairs(n_nodes: int) -> Positions:
    # Where the pairs of each node with later ones begin.
    nodes = np.arange(n_nodes)
    return nodes * (2 * n_nodes - nodes - 1) // 2


class Structure:
    """What was learned: the base of everything that says which variables interact, and where.

    `kind` names the sort of structure. What only the library uses is left out of what completion shows.
    """

    domain: Domain
    kind: ClassVar[Literal["graph", "contexts", "links", "features", "model"]]
    _noun: ClassVar[str] = "A structure"
    _inner: ClassVar[tuple[str, ...]] = ()

    def indicators(self, kind: Indicators = "cliques") -> "FeatureSet":
        """Return the features that the structure stands for; `kind` is that of `CanonicalModel.features`."""
        raise NotImplementedError

    def graph_given(self, context: Context | None = None) -> "Graph":
        """Return the graph of the pairs that interact in some context that agrees with a partial one."""
        raise NotImplementedError

    def view(self, domain: Domain, by: By = "graphs") -> "StructureView":
        """Return what answers which pairs interact in which rows, in the coding of a domain."""
        raise NotImplementedError

    def scopes_with(self, target: str) -> list[set[str]]:
        """Return sets of variables that act together on a target: in a gate, a clique or a feature."""
        graph = self.graph_given()
        near = {name for pair in graph.edges if target in pair for name in pair} - {target}
        return [{*pair, target} for pair in graph.edges if set(pair) <= near]

    @property
    def size(self) -> tuple[str, int]:
        """What the structure is made of, as "n_edges", and how many there are."""
        raise NotImplementedError

    @property
    def observed(self) -> Dataset | None:
        """The distinct rows that the structure is filed under, if it is."""
        return None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self._noun} does not change; make another one.")

    def _repr_html_(self) -> str:
        return html_table(repr(self)[1:-1], (), ())

    def __dir__(self) -> list[str]:
        # Users need not see what other parts of the library call.
        inner = {*_OF_ALL, *self._inner}
        return [name for name in super().__dir__() if not name.startswith("_") and name not in inner]


_OF_ALL = ("graph_given", "indicators", "kind", "observed", "scopes_with", "size", "view")


def as_structure(structure: Any, *, or_model: bool = True) -> Structure:
    """Return a structure as it is; refuse what is none."""
    if isinstance(structure, Structure) and (or_model or structure.kind != "model"):
        return structure
    names = "a CanonicalModel, LabelledGraph, Graph, FeatureSet or LogLinearModel"
    if not or_model:
        names = "a CanonicalModel, LabelledGraph, Graph or FeatureSet"
    hint = " (of a learner, its structure_)" if or_model and hasattr(structure, "fit") else ""
    raise SettingError(f"A {type(structure).__name__} is no structure; give {names}{hint}.")


def features_of(structure: Any, kind: Indicators = "cliques") -> "FeatureSet":
    """Return the features of a canonical model, a labelled graph, a graph or a set of features.

    `kind` is that of `CanonicalModel.features`; a graph has those of its cliques, a labelled graph those of
    its links, a set of features its own.
    """
    check_kind("features", kind)
    return as_structure(structure, or_model=False).indicators(kind)


def check_kind(setting: str, kind: str) -> None:
    """Refuse a kind of features that is not known."""
    if kind not in get_args(Indicators):
        raise SettingError(f"{setting}={kind!r} is not known; use 'cliques', 'pairs' or 'subcliques'.")


class StructureView:
    """A structure that answers in the coding of one domain.

    `contexts` and `counts` are the rows that it has an answer for, and how often each was seen; None where it
    answers for all. `is_constant` says that the answer is the same for all rows.
    """

    contexts: Rows | None = None
    counts: Counts | None = None
    is_constant = False

    def links(self, rows: Rows) -> Bools:
        """Tell, for each pair and row, whether the pair interacts."""
        raise NotImplementedError

    def boxes(self) -> dict[int, list[Box]]:
        """Give, for each pair that interacts somewhere, the partial contexts in which it does."""
        raise NotImplementedError


class Recoding:
    """Where the variables and levels of one domain are in another one that has the same."""

    def __init__(self, origin: Domain, domain: Domain, what: str = "structures") -> None:
        check_same(domain, origin, what)
        self.domain = domain
        self.position = np.array([domain.index(name) for name in origin.names], dtype=np.int64)
        self.codes = [_codes(variable.levels, domain[variable.name].levels) for variable in origin]
        self._start = np.append(0, np.cumsum(origin.n_levels))
        self._flat = np.concatenate([*self.codes, np.zeros(0, dtype=np.int64)])

    def rows(self, rows: Rows) -> Rows:
        """Say rows of codes in the other domain."""
        recoded = np.empty(rows.shape, dtype=Code)
        for column, (position, codes) in enumerate(zip(self.position, self.codes, strict=True)):
            recoded[:, position] = codes[rows[:, column]]
        return recoded

    def arrays(self, arrays: FeatureArrays) -> FeatureArrays:
        """Say features in the other domain, in the order they had."""
        level = self._flat[self._start[arrays.variable] + arrays.level]
        variable = self.position[arrays.variable]
        return arrays._replace(variable=variable.astype(np.int32), level=level.astype(np.uint16))

    def pairs(self) -> Integers:
        """Return, for each pair of the other domain, its number in the domain of origin."""
        n_variables = len(self.domain)
        there = np.empty(n_variables, dtype=np.int64)
        there[self.position] = np.arange(n_variables)
        first, second = np.triu_indices(n_variables, 1)
        return np.asarray(pair_numbers(n_variables)[there[first], there[second]])


class ByGraph(StructureView):
    """A graph: the same pairs in every context."""

    is_constant = True

    def __init__(self, packed: Packed, origin: Domain, domain: Domain) -> None:
        self.edges = unpack(packed, len(domain))[Recoding(origin, domain).pairs()]

    def links(self, rows: Rows) -> Bools:
        """Give the edges for each row."""
        return np.broadcast_to(self.edges[:, None], (len(self.edges), len(rows)))

    def boxes(self) -> dict[int, list[Box]]:
        """Give one partial context without conditions for each edge."""
        return {pair: [()] for pair in np.flatnonzero(self.edges).tolist()}


class ByContexts(StructureView):
    """A graph for each of some contexts, and no answer for others."""

    def __init__(
        self, data: Dataset, packed: Packed, graph_index: npt.NDArray[np.int32], domain: Domain
    ) -> None:
        recoding = Recoding(data.domain, domain)
        self.contexts, self.counts = recoding.rows(data.rows), data.counts
        self._order = recoding.pairs()
        self._packed = packed
        self._graph = dict(zip(row_keys(self.contexts), graph_index.tolist(), strict=True))
        self._n_variables = len(domain)

    def links(self, rows: Rows) -> Bools:
        """Unpack the graph of each row, which must be one of `contexts`."""
        graphs = np.array([self._graph[key] for key in row_keys(rows)], dtype=np.intp)
        return unpack(self._packed[graphs], self._n_variables)[:, self._order].T


class ByFeatures(StructureView):
    """Features: a pair interacts where some feature that speaks of both holds."""

    def __init__(self, arrays: FeatureArrays, origin: Domain, domain: Domain) -> None:
        conditions = Recoding(origin, domain).arrays(arrays).literals()
        scoped = ((tuple(dict.fromkeys(v for v, _, _ in literals)), literals) for literals in conditions)
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
        known: dict[CodedCondition, Bits] = {}
        before: tuple[CodedCondition, ...] = ()
        prefixes: list[Bits] = []
        for scope, literals in self._features:
            del prefixes[_n_shared(before, literals) :]
            for literal in literals[len(prefixes) :]:
                bits = known.get(literal)
                if bits is None:
                    variable, level, equal = literal
                    bits = known[literal] = np.packbits((columns[variable] == level) == equal)
                prefixes.append(prefixes[-1] & bits if prefixes else bits)
            before = literals
            yield scope, prefixes[-1]

    def _draw(self, drawn: Bits, scope: tuple[int, ...], bits: Bits) -> None:
        for a, b in combinations(scope, 2):
            drawn[self._number[a, b]] |= bits

    def boxes(self) -> dict[int, list[Box]]:
        """Give the conditions of the features of each pair."""
        boxes: dict[int, list[Box]] = {}
        for scope, literals in self._features:
            box = box_of(literals, self._n_levels)
            for a, b in combinations(scope, 2):
                boxes.setdefault(int(self._number[a, b]), []).append(box)
        return boxes


def link_shares(structure: Structure, data: Dataset, known: Mapping[int, int] | None = None) -> Floats:
    """Return, for each pair, the share of the rows in a context in which a structure links it.

    A structure that is filed under rows is asked about its own, each with its own count: it has no answer for
    others. Any other structure is asked about the distinct rows of the table, whose coding is used.
    Where no row is in the context, there are no shares.
    """
    view = structure.view(data.domain)
    rows = data.rows if view.contexts is None else view.contexts
    counts = data.counts if view.counts is None else view.counts
    if known:
        inside = agreeing(rows, known)
        if not inside.any():
            return np.zeros(0)
        rows, counts = rows[inside], counts[inside]
    if view.is_constant:
        return view.links(np.zeros((1, len(data.domain)), dtype=Code))[:, 0].astype(np.float64)
    block = max(1, _ANSWERS // max(1, n_pairs(len(data.domain))))
    sums = np.zeros(n_pairs(len(data.domain)), dtype=np.int64)
    for begin in range(0, len(rows), block):
        sums += (view.links(rows[begin : begin + block]) * counts[begin : begin + block]).sum(axis=1)
    return np.asarray(sums / max(1, int(counts.sum())))


def agreeing(rows: Rows, known: Mapping[int, int]) -> Bools:
    """Tell, for each row of codes, whether it has these codes at these positions."""
    agrees = np.ones(len(rows), dtype=np.bool_)
    for position, code in known.items():
        agrees &= rows[:, position] == code
    return agrees


def observed(data: Dataset, known: Mapping[int, int]) -> Bools:
    """Tell which rows of a table are in a context; refuse one that no row shows."""
    inside = agreeing(data.rows, known)
    if not inside.any():
        raise UnknownContext(f"No row has {data.domain.decode(known)}; ask about a context the data shows.")
    return inside


def _codes(labels: tuple[str, ...], levels: tuple[str, ...]) -> Integers:
    """Return the position of each label among the levels."""
    code_of = {label: code for code, label in enumerate(levels)}
    return np.array([code_of[label] for label in labels], dtype=np.int64)


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


def _n_shared(one: tuple[CodedCondition, ...], other: tuple[CodedCondition, ...]) -> int:
    n_shared = 0
    for mine, yours in zip(one, other, strict=False):
        if mine != yours:
            break
        n_shared += 1
    return n_shared
