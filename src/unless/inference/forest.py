"""A plan laid out as the arrays the kernels walk: tables of cliques, places where they meet, gates above."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from unless.inference.clique_tree import Clique, cliques_of, homes, low_cells
from unless.inference.conditioning import Branch, Conjunctions, Floats, Ints, Planner, Split, Tree
from unless.kernels.tables import Wiring, rescale, write_places, write_weights
from unless.kernels.trees import Forest
from unless.runtime.interrupts import interruptible_kernel

# What passes over a table do with each cell, in about the time of so many steps of other loops.
STEPS_OF_A_CELL = 5


class Laid(NamedTuple):
    """A plan as arrays: where its tables are, which features go into them, and the weights it was made with.

    `always` are the features that hold in all states of a branch, by the number of the branch.
    """

    forest: Forest
    wiring: Wiring
    weights: Floats
    always: tuple[Ints, Floats]


class Tables(NamedTuple):
    """Logs of the tables, and the tables themselves each scaled to a largest cell of 1.

    `scaled` is None where a cell would be too small for a product with another. `scales` are the logs that
    scaling took from each node.
    """

    logs: Floats
    scaled: Floats | None
    scales: Floats


@dataclass
class Layout:
    """Collects cliques, features and nodes one after another."""

    n_levels: Ints
    cliques: list[tuple[tuple[int, ...], Clique]] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    features: list[Conjunctions] = field(default_factory=list)
    axes: list[Ints] = field(default_factory=list)
    weights: list[Floats] = field(default_factory=list)
    homes: list[Ints] = field(default_factory=list)
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
        high, low, places = self._places(cells, n_low, n_outer, parent)
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
            places,
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

    def _places(self, cells: Ints, n_low: Ints, n_outer: Ints, parent: Ints) -> tuple[Ints, Ints, Ints]:
        above = np.where(parent >= 0, parent, 0)
        high_sizes = np.where(parent >= 0, cells[above] // n_low[above], 0)
        low_sizes = np.where(parent >= 0, n_low[above], 0)
        starts = _starts(np.stack([high_sizes, low_sizes], axis=1).ravel())
        where = starts[:-1].reshape(-1, 2)
        places = np.zeros(starts[-1], dtype=np.int64)
        names = [variables for variables, _ in self.cliques]
        variable = _flat(names)
        write_places(
            parent, _starts(map(len, names)), variable, self.n_levels[variable], n_low, n_outer, where, places
        )
        return where[:, 0].copy(), where[:, 1].copy(), places

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
    layout = Layout(planner.n_levels)
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
    found: set[int] = set()
    waiting = list(top.nodes)
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        found.add(node)
        plan = planner.nodes[node]
        if isinstance(plan, Split):
            waiting += [child for branch in plan.branches for child in branch.nodes]
    return sorted(found)


def _axes(cliques: list[Clique], home: Ints, arrays: Conjunctions, n_variables: int) -> Ints:
    """Return, for each condition, the axis of its variable in the clique of its feature."""
    axis = np.zeros((len(cliques), n_variables), dtype=np.int64)
    for number, clique in enumerate(cliques):
        axis[number, list(clique.variables)] = np.arange(len(clique.variables))
    return np.asarray(axis[np.repeat(home, np.diff(arrays.start)), arrays.variable])


def _renumbered(branch: Branch, number: dict[int, int]) -> Branch:
    return Branch(branch.level, branch.always, tuple(number[node] for node in branch.nodes))


def _row_strides(sizes: Ints) -> Ints:
    return np.append(np.cumprod(sizes[::-1])[::-1][1:], 1)[: len(sizes)]


def _ints(values: object) -> Ints:
    return np.fromiter(values, dtype=np.int64)  # type: ignore[call-overload, no-any-return]


def _starts(sizes: object) -> Ints:
    return np.append(0, np.cumsum(_ints(sizes)))


def _flat(groups: object) -> Ints:
    return _ints(value for group in groups for value in group)  # type: ignore[attr-defined]
