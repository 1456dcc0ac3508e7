"""Where to fix a gate: a plan of gates and clique trees that together cost less than one flat tree.

Fixing a variable removes the features it contradicts and shortens the others; where that cuts links between
other variables, the variable is a gate. What is left falls into parts without a common feature, and each is
planned by itself, once for all the levels of all the gates that leave the same part.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.kernels.elimination import component_labels, eliminate, gate_costs
from unless.structures.conditions import FeatureArrays

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
# Trees cheaper than this are not worth a search for gates.
CHEAP = 2_048.0
# The share of a flat tree's cost that gates may cost to be worth it; tests raise it to see many gates.
MOST = 1.0
# Beyond this, gates are tried that pay only together with the next one or two.
PAINFUL = 2.0**16
PATIENCE = 2
# No machine holds this; a gate that does not even halve it will not save it.
HOPELESS = 2.0**32
MAX_CANDIDATES = 32
# Bounds the search by its work, not by the clock: the same model gives the same plan.
MAX_EFFORT = 1_000_000_000


class Conjunctions(NamedTuple):
    """Features laid out as in `FeatureArrays`; unlike there, some may have no condition left."""

    start: Ints
    variable: Ints
    level: Ints
    equal: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, arrays: FeatureArrays) -> "Conjunctions":
        """Take features, as arrays that can be written: numba would compile once more for others."""
        return cls(
            arrays.start.astype(np.int64),
            arrays.variable.astype(np.int64),
            arrays.level.astype(np.int64),
            np.array(arrays.equal),
        )


class Part(NamedTuple):
    """Variables (positions in the domain) and the features over them, in numbers of their own."""

    variables: Ints
    arrays: Conjunctions
    weights: Floats

    @property
    def key(self) -> bytes:
        """What makes two parts the same."""
        return b"|".join(array.tobytes() for array in (self.variables, *self.arrays, self.weights))


@dataclass(frozen=True)
class Tree:
    """A part to be answered by one clique tree: the order of elimination and its cliques."""

    part: Part
    order: Ints
    member: npt.NDArray[np.bool_]
    host: Ints
    above: Ints
    cells: float
    cost: float


@dataclass(frozen=True)
class Branch:
    """What is left at one level of a gate: parts without a common feature, and what holds in all states."""

    level: int
    always: tuple[float, ...]  # the weights of the features without a condition left
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class Split:
    """A gate (position in the domain) and its branches."""

    variable: int
    branches: tuple[Branch, ...]
    cost: float


@dataclass
class Planner:
    """Plans parts, each once; `nodes` holds children before their parents."""

    n_levels: Ints
    conditioning: bool = True
    nodes: list[Tree | Split] = field(default_factory=list)
    known: dict[tuple[bytes, int], int] = field(default_factory=dict)
    effort: int = 0

    def branch(
        self, level: int, arrays: Conjunctions, weights: Floats, variables: Ints, patience: int
    ) -> Branch:
        """Plan what features say about variables; features without conditions are always true."""
        sizes = np.diff(arrays.start)
        always = tuple(weights[sizes == 0].tolist())
        parts = split_parts(arrays, weights, variables)
        return Branch(level, always, tuple(self.plan(part, patience) for part in parts))

    def plan(self, part: Part, patience: int) -> int:
        """Plan one part and return the number of its node."""
        key = (part.key, patience)
        if key not in self.known:
            node = self._decide(part, patience)
            self.known[key] = len(self.nodes)
            self.nodes.append(node)
        return self.known[key]

    def _decide(self, part: Part, patience: int) -> Tree | Split:
        sizes = self.n_levels[part.variables]
        tree = Tree(part, *eliminate(*part.arrays, np.log(sizes)))
        if not self.conditioning or tree.cost <= CHEAP or self.effort > MAX_EFFORT:
            return tree
        gate, cost = self._best_gate(part, sizes)
        pays = cost < (MOST if tree.cost < HOPELESS else MOST / 2) * tree.cost
        if not pays and not (patience and tree.cost > PAINFUL and cost < 16 * tree.cost):
            return tree
        split = self._split(part, gate, patience if pays else patience - 1)
        return split if split.cost < MOST * tree.cost else tree

    def _best_gate(self, part: Part, sizes: Ints) -> tuple[int, float]:
        candidates = _candidates(part)
        costs, effort = gate_costs(*part.arrays, sizes, np.log(sizes), candidates)
        self.effort += effort
        best = int(np.argmin(costs))
        return int(candidates[best]), float(costs[best])

    def _split(self, part: Part, gate: int, patience: int) -> Split:
        branches = []
        for level in range(int(self.n_levels[part.variables[gate]])):
            arrays, weights, variables = restrict(part, gate, level)
            branches.append(self.branch(level, arrays, weights, variables, patience))
        cost = sum(self.nodes[node].cost for branch in branches for node in branch.nodes)
        return Split(int(part.variables[gate]), tuple(branches), cost)


def restrict(part: Part, gate: int, level: int) -> tuple[Conjunctions, Floats, Ints]:
    """Fix a variable of a part: drop the features it contradicts and the conditions it satisfies."""
    start, variable, levels, equal = part.arrays
    feature = np.repeat(np.arange(len(start) - 1), np.diff(start))
    spoken = variable == gate
    kept = np.ones(len(start) - 1, dtype=np.bool_)
    kept[feature[spoken & ((levels == level) != equal)]] = False
    stays = kept[feature] & ~spoken
    sizes = np.bincount(feature[stays], minlength=len(start) - 1)[kept]
    # Variables after the gate move down by one.
    moved = variable[stays] - (variable[stays] > gate)
    arrays = Conjunctions(_starts(sizes), moved, levels[stays], equal[stays])
    return arrays, part.weights[kept], np.delete(part.variables, gate)


def split_parts(arrays: Conjunctions, weights: Floats, variables: Ints) -> list[Part]:
    """Divide features with conditions, and all variables, into parts that share nothing."""
    sizes = np.diff(arrays.start)
    told = sizes > 0
    first = arrays.variable[arrays.start[:-1][told]]
    starts = np.append(arrays.start[:-1][told], len(arrays.variable))
    label = component_labels(starts, arrays.variable, len(variables))
    parts = []
    of_feature = label[first]
    order = np.argsort(of_feature, kind="stable")
    bounds = np.searchsorted(of_feature[order], np.arange(len(variables) + 1))
    members = np.argsort(label, kind="stable")
    limits = np.searchsorted(label[members], np.arange(len(variables) + 1))
    position = np.empty(len(variables), dtype=np.int64)
    for root in np.unique(label).tolist():
        inside = members[limits[root] : limits[root + 1]]
        position[inside] = np.arange(len(inside))
        features = order[bounds[root] : bounds[root + 1]]
        where = _ranges(starts[:-1][features], sizes[told][features])
        chosen = Conjunctions(
            _starts(sizes[told][features]),
            position[arrays.variable[where]],
            arrays.level[where],
            arrays.equal[where],
        )
        parts.append(Part(variables[inside], chosen, weights[told][features]))
    return parts


def _candidates(part: Part) -> Ints:
    """Return the variables that most links of other variables hang on, at most `MAX_CANDIDATES`."""
    n_variables = len(part.variables)
    sizes = np.diff(part.arrays.start)
    others = np.repeat((sizes - 1) * (sizes - 2), sizes)
    links = np.bincount(part.arrays.variable, weights=others, minlength=n_variables)
    return np.sort(np.argsort(-links, kind="stable")[:MAX_CANDIDATES])


def _starts(sizes: Ints) -> Ints:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)])


def _ranges(starts: Ints, sizes: Ints) -> Ints:
    """Return the positions of several runs, one after another."""
    offsets = np.repeat(starts - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return np.asarray(np.arange(int(sizes.sum())) + offsets, dtype=np.int64)
