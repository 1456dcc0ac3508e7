"""Exact answers: gates are fixed level by level, and clique trees answer what is left.

Planned once per model and laid out once; a question under new evidence only passes messages.

1. The plan. Fixing a variable removes the features it contradicts and shortens the others; where that cuts
   links between other variables, the variable is a gate. What is left falls into components without a common
   feature, and each is planned by itself, once for all the levels of all the gates that leave the same one.
   A component is answered by a clique tree, made of an order of elimination.
2. The layout: the plan as the arrays that the kernels walk. Tables of cliques, places where they meet, gates
   above.
3. The engine: partition functions, marginals, joint tables, most probable states. Samples: gates first, then
   each clique given the variables it shares with the one above.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Rows
from unless.data.domain import Code
from unless.inference.randomness import RandomState, make_rng
from unless.inference.results import Distribution, Marginals, MostProbable, check_joint, impossible
from unless.kernels.clique_trees import (
    Forest,
    Wiring,
    collect,
    cumulate,
    draw,
    posteriors,
    rescale,
    write_meeting_cells,
    write_weights,
)
from unless.kernels.graphs import component_labels, eliminate, gate_costs
from unless.runtime.interrupts import interruptible_kernel
from unless.runtime.memory import LEAST, check_need, parse_memory
from unless.runtime.progress import Look, showing_share, unseen, within
from unless.structures.structure import FeatureArrays
from unless.typing import Bools, Floats, Integers

if TYPE_CHECKING:
    from unless.inference.model import LogLinearModel

# Trees cheaper than this are not worth a search for gates.
CHEAP = 2_048.0
# The share of a flat tree's cost that gates may cost to be worth it; tests raise it to see many gates.
MOST = 1.0
# Beyond this, gates are tried that pay only together with the next one or two.
PAINFUL = 2.0**16
MOST_TRIALS = 2
# No machine holds this; a gate that does not even halve it will not save it.
HOPELESS = 2.0**32
MAX_CANDIDATES = 32
# Bounds the search by its work, not by the clock: the same model gives the same plan.
MAX_EFFORT = 1_000_000_000
# Low places of a table: small enough to stay in the fastest cache.
LOW_CELLS = 256
# What passes over a table do with each cell, in about the time of so many steps of other loops.
STEPS_OF_A_CELL = 5
# A cell is held as a log, scaled, and as work of the query under way.
BYTES_PER_CELL = 24
# Evidence answered in one call: bounds the memory of the answers.
ROWS_AT_ONCE = 4_096
# Cells that one call passes over, for all its evidence: about a tenth of a second.
_CELLS_AT_ONCE = 2**23
# Random numbers drawn at once: bounds their memory, and the time until Ctrl-C takes effect.
NUMBERS_AT_ONCE = 2**20


class Conjunctions(NamedTuple):
    """Features laid out as in `FeatureArrays`; unlike there, some may have no condition left."""

    start: Integers
    variable: Integers
    level: Integers
    equal: Bools

    @classmethod
    def of(cls, arrays: FeatureArrays) -> "Conjunctions":
        """Take features, as arrays that can be written: numba would compile once more for others."""
        return cls(
            arrays.start.astype(np.int64),
            arrays.variable.astype(np.int64),
            arrays.level.astype(np.int64),
            np.array(arrays.equal),
        )


class Component(NamedTuple):
    """Variables (positions in the domain) and the features over them, in numbers of their own."""

    variables: Integers
    arrays: Conjunctions
    weights: Floats

    @property
    def key(self) -> bytes:
        """What makes two parts the same."""
        return b"|".join(array.tobytes() for array in (self.variables, *self.arrays, self.weights))


@dataclass(frozen=True)
class Tree:
    """A part to be answered by one clique tree: the order of elimination and its cliques."""

    part: Component
    order: Integers
    member: Bools
    host: Integers
    above: Integers
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

    n_levels: Integers
    conditioning: bool = True
    nodes: list[Tree | Split] = field(default_factory=list)
    known: dict[tuple[bytes, int], int] = field(default_factory=dict)
    effort: int = 0

    def branch(
        self, level: int, arrays: Conjunctions, weights: Floats, variables: Integers, n_trials: int
    ) -> Branch:
        """Plan what features say about variables; features without conditions are always true."""
        sizes = np.diff(arrays.start)
        always = tuple(weights[sizes == 0].tolist())
        parts = split_parts(arrays, weights, variables)
        return Branch(level, always, tuple(self.plan(part, n_trials) for part in parts))

    def plan(self, part: Component, n_trials: int) -> int:
        """Plan one part and return the number of its node."""
        key = (part.key, n_trials)
        if key not in self.known:
            node = self._decide(part, n_trials)
            self.known[key] = len(self.nodes)
            self.nodes.append(node)
        return self.known[key]

    def _decide(self, part: Component, n_trials: int) -> Tree | Split:
        sizes = self.n_levels[part.variables]
        tree = Tree(part, *eliminate(*part.arrays, np.log(sizes)))
        if not self.conditioning or tree.cost <= CHEAP or self.effort > MAX_EFFORT:
            return tree
        gate, cost = self._best_gate(part, sizes)
        pays = cost < (MOST if tree.cost < HOPELESS else MOST / 2) * tree.cost
        if not pays and not (n_trials and tree.cost > PAINFUL and cost < 16 * tree.cost):
            return tree
        split = self._split(part, gate, n_trials if pays else n_trials - 1)
        return split if split.cost < MOST * tree.cost else tree

    def _best_gate(self, part: Component, sizes: Integers) -> tuple[int, float]:
        candidates = _candidates(part)
        costs, effort = gate_costs(*part.arrays, sizes, np.log(sizes), candidates)
        self.effort += effort
        best = int(np.argmin(costs))
        return int(candidates[best]), float(costs[best])

    def _split(self, part: Component, gate: int, n_trials: int) -> Split:
        branches = []
        for level in range(int(self.n_levels[part.variables[gate]])):
            arrays, weights, variables = restrict(part, gate, level)
            branches.append(self.branch(level, arrays, weights, variables, n_trials))
        cost = sum(self.nodes[node].cost for branch in branches for node in branch.nodes)
        return Split(int(part.variables[gate]), tuple(branches), cost)


def restrict(part: Component, gate: int, level: int) -> tuple[Conjunctions, Floats, Integers]:
    """Fix a variable of a part: drop the features it contradicts and the conditions it satisfies."""
    start, variable, levels, equal = part.arrays
    feature = np.repeat(np.arange(len(start) - 1), np.diff(start))
    at_gate = variable == gate
    kept = np.ones(len(start) - 1, dtype=np.bool_)
    kept[feature[at_gate & ((levels == level) != equal)]] = False
    stays = kept[feature] & ~at_gate
    sizes = np.bincount(feature[stays], minlength=len(start) - 1)[kept]
    # Variables after the gate move down by one.
    moved = variable[stays] - (variable[stays] > gate)
    arrays = Conjunctions(_starts(sizes), moved, levels[stays], equal[stays])
    return arrays, part.weights[kept], np.delete(part.variables, gate)


def split_parts(arrays: Conjunctions, weights: Floats, variables: Integers) -> list[Component]:
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
        parts.append(Component(variables[inside], chosen, weights[told][features]))
    return parts


def _candidates(part: Component) -> Integers:
    """Return the variables that most links of other variables hang on, at most `MAX_CANDIDATES`."""
    n_variables = len(part.variables)
    sizes = np.diff(part.arrays.start)
    others = np.repeat((sizes - 1) * (sizes - 2), sizes)
    links = np.bincount(part.arrays.variable, weights=others, minlength=n_variables)
    return np.sort(np.argsort(-links, kind="stable")[:MAX_CANDIDATES])


def _ranges(starts: Integers, sizes: Integers) -> Integers:
    """Return the positions of several runs, one after another."""
    offsets = np.repeat(starts - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return np.asarray(np.arange(int(sizes.sum())) + offsets, dtype=np.int64)


@dataclass(frozen=True)
class Clique:
    """Variables of a part, first those shared with the parent, then those summed out here."""

    outer: tuple[int, ...]
    inner: tuple[int, ...]
    parent: int

    @cached_property
    def variables(self) -> tuple[int, ...]:
        """All variables, in the order of the table's axes."""
        return (*self.outer, *self.inner)


def cliques_of(tree: Tree) -> tuple[list[Clique], Integers]:
    """Return the cliques, children before parents, and the clique in which each step takes place."""
    n_steps = len(tree.order)
    chains: dict[int, list[int]] = {}
    for step, host in enumerate(tree.host.tolist()):
        chains.setdefault(host, []).append(step)
    # The last step of a chain is where its clique meets the next: by it, children come before parents.
    hosts = sorted(chains, key=lambda host: chains[host][-1])
    number = {host: position for position, host in enumerate(hosts)}
    clique_of_step = np.array([number[host] for host in tree.host.tolist()], dtype=np.int64)
    cliques: list[Clique] = []
    for host in reversed(hosts):
        steps = chains[host]
        above = int(tree.above[steps[-1]])
        inner = tuple(int(tree.order[step]) for step in steps)
        parent = int(clique_of_step[above]) if above < n_steps else -1
        # Axes in the parent's order make neighbouring cells meet neighbouring rows.
        order = cliques[len(hosts) - 1 - parent].variables if parent >= 0 else ()
        members = set(np.flatnonzero(tree.member[host]).tolist()) - set(inner)
        cliques.append(Clique(tuple(v for v in order if v in members), inner, parent))
    return cliques[::-1], clique_of_step


def homes(tree: Tree, clique_of_step: Integers) -> Integers:
    """Return the clique of each feature: that of its variable that is summed out first."""
    start, variable, _, _ = tree.part.arrays
    if len(start) == 1:
        return np.zeros(0, dtype=np.int64)
    step = np.empty(len(tree.order), dtype=np.int64)
    step[tree.order] = np.arange(len(tree.order))
    return np.asarray(clique_of_step[np.minimum.reduceat(step[variable], start[:-1])])


def low_cells(sizes: list[int]) -> int:
    """Return the number of states of the longest tail of axes that is small."""
    low = 1
    for size in reversed(sizes):
        if low > 1 and low * size > LOW_CELLS:
            break
        low *= size
    return low


class Laid(NamedTuple):
    """A plan as arrays: where its tables are, which features go into them, and the weights it was made with.

    `always` are the features that hold in all states of a branch, by the number of the branch.
    """

    forest: Forest
    wiring: Wiring
    weights: Floats
    always: tuple[Integers, Floats]


class Tables(NamedTuple):
    """Logs of the tables, and the tables themselves each scaled to a largest cell of 1.

    `scaled` is None where a cell would be too small for a product with another. `scales` are the logs that
    scaling took from each node.
    """

    logs: Floats
    scaled: Floats | None
    scales: Floats


@dataclass
class ForestBuilder:
    """Collects cliques, features and nodes one after another."""

    n_levels: Integers
    cliques: list[tuple[tuple[int, ...], Clique]] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    features: list[Conjunctions] = field(default_factory=list)
    axes: list[Integers] = field(default_factory=list)
    weights: list[Floats] = field(default_factory=list)
    homes: list[Integers] = field(default_factory=list)
    node_start: list[int] = field(default_factory=lambda: [0])
    gates: list[int] = field(default_factory=list)
    branches: list[list[Branch]] = field(default_factory=list)

    def add_tree(self, tree: Tree) -> None:
        """Append the cliques of a tree and send its features to them."""
        part, offset = tree.part, len(self.cliques)
        cliques, clique_of_step = cliques_of(tree)
        names = part.variables.tolist()
        self.cliques += [(tuple(names[v] for v in clique.variables), clique) for clique in cliques]
        self.offsets += [offset] * len(cliques)
        home = homes(tree, clique_of_step)
        self.features.append(part.arrays)
        self.axes.append(_axes(cliques, home, part.arrays, len(part.variables)))
        self.weights.append(part.weights)
        self.homes.append(home + offset)
        self._close(-1, [])

    def add_gate(self, variable: int, branches: list[Branch]) -> None:
        """Append a gate; its branches name nodes by their place in this layout."""
        self._close(variable, branches)

    def _close(self, gate: int, branches: list[Branch]) -> None:
        self.gates.append(gate)
        self.branches.append(branches)
        self.node_start.append(len(self.cliques))

    def finish(self) -> Laid:
        """Return the arrays of the plan."""
        shapes = [self.n_levels[list(variables)] for variables, _ in self.cliques]
        n_outer = _ints(len(clique.outer) for _, clique in self.cliques)
        cells = _ints(np.prod(shape) for shape in shapes)
        rows = _ints(np.prod(shape[:outer]) for shape, outer in zip(shapes, n_outer, strict=True))
        n_low = _ints(low_cells(shape.tolist()) for shape in shapes)
        parent = _ints(
            clique.parent + offset if clique.parent >= 0 else -1
            for (_, clique), offset in zip(self.cliques, self.offsets, strict=True)
        )
        high, low, meeting = self._meeting_cells(cells, n_low, n_outer, parent)
        named = [
            (variables, outer) for (variables, _), outer in zip(self.cliques, n_outer.tolist(), strict=True)
        ]
        inner = [variables[outer:] for variables, outer in named]
        outer = [variables[:outer] for variables, outer in named]
        inner_variable = _flat(inner)
        branches = [branch for group in self.branches for branch in group]
        forest = Forest(
            _starts(cells),
            _starts(rows),
            n_low,
            parent,
            high,
            low,
            meeting,
            _starts(map(len, inner)),
            inner_variable,
            self.n_levels[inner_variable],
            _starts(map(len, outer)),
            _flat(outer),
            _flat(_row_strides(self.n_levels[list(variables)]) for variables in outer),
            _ints(self.node_start),
            _ints(self.gates),
            _starts(map(len, self.branches)),
            _ints(branch.level for branch in branches),
            np.array([np.sum(branch.always) for branch in branches], dtype=np.float64),
            _starts(len(branch.nodes) for branch in branches),
            _flat(branch.nodes for branch in branches),
            _starts(self.n_levels),
        )
        holding = np.repeat(np.arange(len(branches)), [len(branch.always) for branch in branches])
        always = np.array([weight for branch in branches for weight in branch.always], dtype=np.float64)
        weights = np.concatenate([np.zeros(0), *self.weights])
        return Laid(forest, self._wiring(), weights, (holding, always))

    def _meeting_cells(
        self, cells: Integers, n_low: Integers, n_outer: Integers, parent: Integers
    ) -> tuple[Integers, Integers, Integers]:
        above = np.where(parent >= 0, parent, 0)
        high_sizes = np.where(parent >= 0, cells[above] // n_low[above], 0)
        low_sizes = np.where(parent >= 0, n_low[above], 0)
        starts = _starts(np.stack([high_sizes, low_sizes], axis=1).ravel())
        where = starts[:-1].reshape(-1, 2)
        meeting = np.zeros(starts[-1], dtype=np.int64)
        names = [variables for variables, _ in self.cliques]
        variable = _flat(names)
        write_meeting_cells(
            parent,
            _starts(map(len, names)),
            variable,
            self.n_levels[variable],
            n_low,
            n_outer,
            where,
            meeting,
        )
        return where[:, 0].copy(), where[:, 1].copy(), meeting

    def _wiring(self) -> Wiring:
        empty = np.zeros(0, dtype=np.int64)
        none = Conjunctions(np.zeros(1, dtype=np.int64), empty, empty, np.zeros(0, dtype=np.bool_))
        every = [none, *self.features]
        return Wiring(
            _starts(np.concatenate([np.diff(part.start) for part in every])),
            np.concatenate([part.level for part in every]),
            np.concatenate([part.equal for part in every]),
            np.concatenate([empty, *self.axes]),
            np.concatenate([empty, *self.homes]),
            _starts(len(variables) for variables, _ in self.cliques),
            self.n_levels[_flat(variables for variables, _ in self.cliques)],
        )


def fill(forest: Forest, wiring: Wiring, weights: Floats) -> Tables:
    """Make the tables of a plan for weights of its features."""
    logs = np.zeros(int(forest.cell_start[-1]))
    # At most: where a feature has conditions on all of its clique, it is in one cell.
    n_written = np.diff(forest.cell_start)[wiring.home].sum()
    interruptible_kernel(
        lambda: write_weights(wiring, weights, forest.cell_start, forest.n_low, logs), n_written
    )
    scaled, tops = np.empty_like(logs), np.zeros(len(forest.parent))
    least = interruptible_kernel(
        lambda: rescale(forest.cell_start, logs, scaled, tops), STEPS_OF_A_CELL * len(logs)
    )
    nodes = pairwise(forest.node_start.tolist())
    scales = np.array([tops[first:last].sum() for first, last in nodes])
    return Tables(logs, scaled if least >= 1e-100 else None, scales)


def lay_out(planner: Planner, top: Branch) -> Laid:
    """Lay out the nodes that the top branch leads to."""
    layout = ForestBuilder(planner.n_levels)
    number: dict[int, int] = {}
    for node in reachable(planner, top):
        plan = planner.nodes[node]
        if isinstance(plan, Tree):
            layout.add_tree(plan)
        else:
            layout.add_gate(plan.variable, [_renumbered(branch, number) for branch in plan.branches])
        number[node] = len(number)
    layout.add_gate(-1, [_renumbered(top, number)])
    return layout.finish()


def reachable(planner: Planner, top: Branch) -> list[int]:
    """Return the nodes a branch leads to, children before parents."""
    reached: set[int] = set()
    waiting = list(top.nodes)
    while waiting:
        node = waiting.pop()
        if node in reached:
            continue
        reached.add(node)
        plan = planner.nodes[node]
        if isinstance(plan, Split):
            waiting += [child for branch in plan.branches for child in branch.nodes]
    return sorted(reached)


def _axes(cliques: list[Clique], home: Integers, arrays: Conjunctions, n_variables: int) -> Integers:
    """Return, for each condition, the axis of its variable in the clique of its feature."""
    axis = np.zeros((len(cliques), n_variables), dtype=np.int64)
    for number, clique in enumerate(cliques):
        axis[number, list(clique.variables)] = np.arange(len(clique.variables))
    return np.asarray(axis[np.repeat(home, np.diff(arrays.start)), arrays.variable])


def _renumbered(branch: Branch, number: dict[int, int]) -> Branch:
    return Branch(branch.level, branch.always, tuple(number[node] for node in branch.nodes))


def _row_strides(sizes: Integers) -> Integers:
    return np.append(np.cumprod(sizes[::-1])[::-1][1:], 1)[: len(sizes)]


def _ints(values: object) -> Integers:
    return np.fromiter(values, dtype=np.int64)  # type: ignore[call-overload, no-any-return]


def _starts(sizes: object) -> Integers:
    return np.append(0, np.cumsum(sizes if isinstance(sizes, np.ndarray) else _ints(sizes)))


def _flat(groups: object) -> Integers:
    return _ints(value for group in groups for value in group)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Cost:
    """What exact answers cost: cells of all tables, and the bytes they take."""

    cells: float
    n_trees: int
    n_gates: int

    @property
    def n_bytes(self) -> float:
        """The memory a query needs."""
        return BYTES_PER_CELL * self.cells


class ExactSolver:
    """Answers for one set of weighted features; weights may be -inf, not +inf.

    Evidence is a mapping from positions to codes; rows of evidence hold codes, and -1 where unknown.
    """

    def __init__(
        self, arrays: FeatureArrays, weights: Floats, n_levels: Integers, *, conditioning: bool = True
    ) -> None:
        self.n_levels = np.array(n_levels)
        self._planner = Planner(self.n_levels, conditioning)
        everything = np.arange(len(self.n_levels))
        self._top: Branch = self._planner.branch(
            -1, Conjunctions.of(arrays), np.array(weights), everything, MOST_TRIALS
        )

    @cached_property
    def cost(self) -> Cost:
        """The estimate, known before any table is made."""
        nodes = [self._planner.nodes[node] for node in reachable(self._planner, self._top)]
        trees = [node for node in nodes if isinstance(node, Tree)]
        return Cost(sum(tree.cells for tree in trees), len(trees), len(nodes) - len(trees))

    def check(
        self, max_memory: int | str | None = None, way_out: str = "use fewer features or raise max_memory="
    ) -> None:
        """Refuse what would not fit, with the way out that the caller has."""
        work = f"Exact inference needs tables of {self.cost.cells:.3g} cells, about"
        check_need(self.cost.n_bytes, parse_memory(max_memory), work, way_out)

    def fits(self, max_memory: int | str | None = None) -> bool:
        """Tell whether the tables fit into memory."""
        if max_memory is None and self.cost.n_bytes <= LEAST:
            # So much is always allowed, and asking the machine takes as long as a small answer.
            return True
        return self.cost.n_bytes <= parse_memory(max_memory)

    @cached_property
    def plan(self) -> Laid:
        """The plan as arrays, for any weights."""
        return lay_out(self._planner, self._top)

    @cached_property
    def laid_out(self) -> tuple[Forest, Tables]:
        """The arrays the kernels walk."""
        forest, wiring, weights, _ = self.plan
        return forest, fill(forest, wiring, weights)

    @cached_property
    def n_inner(self) -> int:
        """The largest number of states that one clique sums out."""
        forest = self.plan.forest
        rows = np.diff(forest.row_start)
        return int((np.diff(forest.cell_start) // np.maximum(rows, 1)).max(initial=1))

    def codes(self, evidence: Mapping[int, int]) -> Integers:
        """Write evidence as one row of codes."""
        row = np.full(len(self.n_levels), -1, dtype=np.int64)
        for position, code in evidence.items():
            row[position] = code
        return row

    def posteriors(
        self, evidence: npt.ArrayLike, *, marginals: bool = True, look: Look = unseen
    ) -> tuple[Floats, Floats]:
        """Return, for each row of evidence, the log partition function and all marginals side by side.

        The levels of variable v are the columns from `slots[v]` to `slots[v + 1]`. Where evidence is
        impossible the first is -inf and the second means nothing.
        """
        rows = np.ascontiguousarray(np.atleast_2d(np.asarray(evidence, dtype=np.int64)))
        _, tables = self.laid_out
        sums = np.empty(len(rows))
        answers = np.zeros((len(rows), int(self.n_levels.sum()) if marginals else 0))
        trusted = np.zeros(len(rows), dtype=np.bool_)
        if tables.scaled is not None:
            trusted = self._posteriors(rows, tables.scaled, False, sums, answers, look)
        again = np.flatnonzero(~trusted)
        if len(again):
            sums_again, answers_again = np.empty(len(again)), answers[again]
            self._posteriors(rows[again], tables.logs, True, sums_again, answers_again, look)
            sums[again], answers[again] = sums_again, answers_again
        return sums, answers

    def _posteriors(
        self, rows: Integers, base: Floats, in_logs: bool, sums: Floats, answers: Floats, look: Look
    ) -> Bools:
        """Fill in some rows at a time, so that Ctrl-C can interrupt; return where they are exact enough."""
        forest, tables = self.laid_out
        at_once = max(1, _CELLS_AT_ONCE // max(1, len(base)))
        trusted, room = np.zeros(len(rows), dtype=np.bool_), np.empty(len(base))

        def fill_in(some: slice) -> Any:
            given = (forest, base, tables.scales, in_logs, self.n_inner, room)
            return posteriors(rows[some], *given, sums[some], answers[some])

        for begin in range(0, len(rows), at_once):
            some = slice(begin, begin + at_once)
            trusted[some] = interruptible_kernel(partial(fill_in, some), STEPS_OF_A_CELL * len(base))
            look(min(1.0, some.stop / len(rows)))
        return trusted

    @cached_property
    def slots(self) -> Integers:
        """Where the levels of each variable begin among all marginals."""
        return np.append(0, np.cumsum(self.n_levels))

    def joint(
        self, variables: list[int], evidence: Mapping[int, int], look: Look = unseen
    ) -> tuple[float, Floats]:
        """Return the log partition function and the joint probabilities of variables, one axis for each.

        All but one variable are fixed in turn, and the marginal of that one is read off.
        """
        read = max(variables, key=lambda v: int(self.n_levels[v]))
        fixed = [v for v in variables if v != read]
        shape = [int(self.n_levels[v]) for v in fixed]
        n_states = int(np.prod(shape))
        logs, table = np.full(n_states, -np.inf), np.zeros((n_states, int(self.n_levels[read])))
        begin, end = self.slots[read], self.slots[read + 1]
        for first in range(0, n_states, ROWS_AT_ONCE):
            numbers = np.arange(first, min(first + ROWS_AT_ONCE, n_states))
            states = np.stack(np.unravel_index(numbers, shape), axis=1) if fixed else np.zeros((1, 0), int)
            rows = np.tile(self.codes(evidence), (len(numbers), 1))
            agrees = ((rows[:, fixed] < 0) | (rows[:, fixed] == states)).all(axis=1)
            rows[:, fixed] = states
            part = within(look, first / n_states, (first + len(numbers)) / n_states)
            sums, answers = self.posteriors(rows[agrees], look=part)
            logs[numbers[agrees]], table[numbers[agrees]] = sums, answers[:, begin:end]
        top = float(logs.max(initial=-np.inf))
        log_partition = top
        if top > -np.inf:
            # The maximum is subtracted first: exp of large logs would overflow.
            shares = np.exp(logs - top)
            table = np.where(shares[:, None] > 0, table, 0.0) * (shares / shares.sum())[:, None]
            log_partition = top + float(np.log(shares.sum()))
        axes = [*fixed, read]
        return log_partition, np.transpose(
            table.reshape(*shape, -1), [axes.index(variable) for variable in variables]
        )

    def most_probable(self, evidence: npt.ArrayLike, look: Look = unseen) -> tuple[Floats, Integers]:
        """Return, for each row of evidence, the log potential and the codes of a most probable state.

        Where evidence is impossible the first is -inf and the second means nothing.
        """
        from unless.kernels.clique_trees import most_probable

        rows = np.ascontiguousarray(np.atleast_2d(np.asarray(evidence, dtype=np.int64)))
        forest, tables = self.laid_out
        states = np.zeros_like(rows)
        n_steps = STEPS_OF_A_CELL * len(tables.logs)
        values = np.empty(len(rows))
        for place, (row, state) in enumerate(zip(rows, states, strict=True)):
            values[place] = interruptible_kernel(
                partial(most_probable, row, forest, tables.logs, state), n_steps
            )
            look((place + 1) / len(rows))
        return values, states


def pass_up(
    forest: Forest, tables: Tables, seen: Integers, work: Floats
) -> tuple[Floats, Floats, Floats, Bools]:
    """Pass messages to the tops of the trees, in logs where scaled tables do not do.

    Returns the messages, the log sums of the nodes and of the branches, and which nodes are active; the cells
    of the cliques are left in `work`.
    """
    message, log_branch = np.empty(int(forest.row_start[-1])), np.empty(len(forest.branch_level))
    log_sums, active = np.empty(len(forest.gate)), np.empty(len(forest.gate), dtype=np.bool_)
    for base, in_logs in ((tables.scaled, False), (tables.logs, True)):
        if base is not None:
            given = (tables.scales, in_logs, work, message, log_sums, log_branch, active)
            passing = partial(collect, seen, forest, base, *given)
            if interruptible_kernel(passing, STEPS_OF_A_CELL * len(work)):
                break
    return message, log_sums, log_branch, active


def sample_exact(
    engine: ExactSolver,
    n: int,
    random_state: RandomState,
    evidence: Mapping[int, int],
    look: Look = unseen,
) -> Rows | None:
    """Draw n rows of codes given evidence; None if the evidence is impossible.

    A row uses one random number per variable, so the first rows of a longer sample are the shorter sample.
    """
    forest, tables = engine.laid_out
    work, seen = np.empty(int(forest.cell_start[-1])), engine.codes(evidence)
    _, log_sums, log_branch, active = pass_up(forest, tables, seen, work)
    if log_sums[-1] == -np.inf:
        return None
    interruptible_kernel(lambda: cumulate(forest, active, work), STEPS_OF_A_CELL * len(work))
    rng = make_rng(random_state)
    rows = np.empty((n, len(seen)), dtype=Code)
    at_once = max(1, NUMBERS_AT_ONCE // max(1, len(seen)))
    for first in range(0, n, at_once):
        some = rows[first : first + at_once]
        draw(rng.random(some.shape), forest, work, log_sums, log_branch, some)
        look((first + len(some)) / n)
    return rows


@dataclass(frozen=True)
class ExactEngine:
    """Answers a model exactly, by its `ExactSolver`."""

    model: "LogLinearModel"
    random_state: RandomState = None
    show_progress: bool | None = None

    def query(self, variables: list[int], evidence: Mapping[int, int]) -> Distribution:
        """Return the joint distribution of some variables given evidence."""
        domain = self.model.domain
        with showing_share("Answering", self.show_progress, "states") as look:
            log_partition, table = self.model.exact.joint(variables, evidence, look)
        if log_partition == -np.inf:
            raise impossible(domain, evidence)
        chosen = tuple(domain.variables[variable] for variable in variables)
        return Distribution(chosen, table / table.sum(), domain.decode(evidence))

    def marginals(self, evidence: Mapping[int, int]) -> Marginals:
        """Return the distributions of all single variables given evidence."""
        solver = self.model.exact
        sums, answers = solver.posteriors(solver.codes(evidence))
        log_partition = float(sums[0])
        if log_partition == -np.inf:
            raise impossible(self.model.domain, evidence)
        return Marginals(self.model.domain, answers[0], log_partition, evidence)

    def sample(self, n_rows: int, evidence: Mapping[int, int]) -> Rows:
        """Draw rows of codes given evidence."""
        with showing_share("Sampling", self.show_progress, "rows") as look:
            rows = sample_exact(self.model.exact, n_rows, self.random_state, evidence, look)
        if rows is None:
            raise impossible(self.model.domain, evidence)
        return rows

    def log_partition(self, evidence: Mapping[int, int]) -> float:
        """Return the log of the sum of potentials over the states that agree with the evidence."""
        solver = self.model.exact
        return float(solver.posteriors(solver.codes(evidence), marginals=False)[0][0])

    def probability(self, codes: Mapping[int, int], evidence: Mapping[int, int]) -> float:
        """Return the probability of codes given evidence."""
        given = self.log_partition(evidence)
        if given == -np.inf:
            raise impossible(self.model.domain, evidence)
        if any(evidence.get(position, code) != code for position, code in codes.items()):
            return 0.0
        return float(np.exp(min(0.0, self.log_partition({**evidence, **codes}) - given)))

    def most_probable(self, variables: list[int] | None, evidence: Mapping[int, int]) -> MostProbable:
        """Return the most probable assignment of some variables, or of all the evidence leaves open."""
        model = self.model
        free = [v for v in range(len(model.domain)) if v not in evidence]
        if variables is not None and set(variables) - set(evidence) != set(free):
            check_joint(model.domain, variables)
            answer = self.query(variables, evidence)
            return MostProbable(answer.most_probable(), float(np.log(answer.probabilities.max())))
        values, states = model.exact.most_probable(model.exact.codes(evidence))
        total = self.log_partition(evidence)
        if total == -np.inf:
            raise impossible(model.domain, evidence)
        best = {v: int(states[0, v]) for v in (free if variables is None else variables)}
        return MostProbable(model.domain.decode(best), min(0.0, float(values[0]) - total))
