"""Probability trees, one for each variable, and the features they are read as."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Domain
from unless.kernels.feature_search import (
    N_NODES,
    STATE_SIZE,
    Nodes,
    Rows,
    SplitRules,
    TreeWorkspace,
    fill_logs,
    grow,
    plant,
)
from unless.learners.base import Run, table_digest
from unless.runtime.checkpoints import Arrays
from unless.runtime.interrupts import CancelToken
from unless.runtime.memory import check_need
from unless.runtime.parallel import InMemory, OnDisk
from unless.structures.graph import FeatureSet
from unless.structures.structure import FeatureArrays
from unless.typing import Bools, Floats, Integers

Chosen = Bools
TreeFeatures = Literal["leaves", "pruned", "nonzero"]
# Cells counted in one call of the kernel: some tens of milliseconds.
_BUDGET = 3 * 10**7
# Sums of gains in units stay where floating point is exact to the unit.
_BITS = 52
# Counts up to here are looked up: more would not fit the cache.
_MOST_LOGS = 2**16
_BYTES_OF_A_NODE = 40
_MOST_SPLITS = 2**31 - 1
_NODES = ("variable", "level", "gain", "where_true", "where_false", "parent", "depth")


@dataclass(frozen=True)
class GrowthRules:
    """When a node is split: by more than -log kappa nats, into sides of min_rows, down to max_depth."""

    kappa: float
    min_rows: int = 10
    max_depth: int | None = None


@dataclass(frozen=True, eq=False)
class ProbabilityTree:
    """What one variable depends on: nodes that test "variable = level", each after its parent.

    `gain` is what a node's split adds to the log-likelihood of the target, in nats; leaves have the
    variable -1.
    """

    target: int
    variable: Integers
    level: Integers
    gain: Floats
    where_true: Integers
    where_false: Integers
    parent: Integers
    depth: Integers

    def cut(self, kappa: float) -> tuple[Chosen, Chosen]:
        """Return the nodes of the tree that would have grown with this smaller kappa, and its leaves.

        A node that is not split has no descendants, so that tree is the top of this one.
        """
        is_split = (self.variable >= 0) & (self.gain > -math.log(kappa))
        inside = np.ones(len(self.variable), dtype=np.bool_)
        for depth in range(1, int(self.depth.max()) + 1):
            nodes = np.flatnonzero(self.depth == depth)
            inside[nodes] = (inside & is_split)[self.parent[nodes]]
        return inside, inside & ~is_split


def grow_trees(
    data: Dataset,
    rules: GrowthRules,
    run: Run | None = None,
) -> list[ProbabilityTree]:
    """Grow the tree of every variable; whatever the order of the columns and the threads, the same trees."""
    n, run = data.n_variables, run or Run()
    _check_memory(data, rules, run.max_bytes, min(run.n_workers, n))
    source = run.share(_TreeGrower(data, rules), _TreeGrower, data, rules)
    parts = run.cut(n, n)
    kind = f"trees-{table_digest(data)[:8]}-{rules.kappa:g}" if run.is_kept else "trees"
    done = run.shards(
        _grow_some,
        [(source, part) for part in parts],
        kind=kind,
        token=run.steps(n, "growing trees"),
        ticks=n // len(parts),
        in_memory=not run.is_kept,
    )
    trees = [tree for part, grown in zip(parts, done, strict=True) for tree in _trees(part, grown)]
    return sorted(trees, key=lambda tree: tree.target)


def _grow_some(
    source: "InMemory[_TreeGrower] | OnDisk[_TreeGrower]", targets: range, token: CancelToken
) -> Arrays:
    """Grow some trees, written one after the other."""
    grower = source.load()
    trees = []
    for target in targets:
        trees.append(grower.tree(target, token))
        token.tick()
    arrays = {name: np.concatenate([getattr(tree, name) for tree in trees]) for name in _NODES}
    return {**arrays, "sizes": np.array([len(tree.variable) for tree in trees])}


def _trees(targets: range, grown: Arrays) -> Iterator[ProbabilityTree]:
    arrays = {name: grown[name] for name in _NODES}
    ends = np.cumsum(grown["sizes"])
    for target, begin, end in zip(targets, ends - grown["sizes"], ends, strict=True):
        yield ProbabilityTree(target, **{name: array[begin:end] for name, array in arrays.items()})


def features_of_trees(
    domain: Domain, trees: list[ProbabilityTree], kappa: float, kind: TreeFeatures = "leaves"
) -> FeatureSet:
    """Read trees, cut back to a kappa, as features; the kinds are those of DTSL."""
    parts = [
        _paths(domain, tree, tree.cut(kappa)[0 if kind == "pruned" else 1])
        for tree in trees
        if domain.n_levels[tree.target] > 1
    ]
    features = FeatureSet.from_arrays(domain, FeatureArrays.joined(parts))
    return _without_zeros(features) if kind == "nonzero" else features


class _TreeGrower:
    """A table on which trees grow: its columns sorted by name, so that their order decides no tie."""

    def __init__(self, data: Dataset, rules: GrowthRules) -> None:
        self.rules = rules
        self.by_name = np.array(sorted(range(data.n_variables), key=lambda column: data.names[column]))
        self.levels = data.domain.n_levels[self.by_name]
        cells = np.append(0, np.cumsum(self.levels)).astype(np.int64)
        self.rows = Rows(np.ascontiguousarray(data.rows[:, self.by_name]), np.array(data.counts), cells)
        largest = data.n_rows * math.log(data.n_rows + int(self.levels.max())) + 1
        self.unit = 2.0 ** (_BITS - math.ceil(math.log2(largest)))
        self.n_rows = data.n_rows
        self.logs: dict[int, Integers] = {}
        for more in {1, *self.levels.tolist()}:
            self.logs[more] = np.empty(min(data.n_rows + 1, _MOST_LOGS), dtype=np.int64)
            fill_logs(self.logs[more], more, self.unit)

    def tree(self, target: int, token: CancelToken) -> ProbabilityTree:
        position = int(np.flatnonzero(self.by_name == target)[0])
        n_levels, n_distinct = int(self.levels[position]), len(self.rows.counts)
        rules = SplitRules(
            logs=self.logs[1],
            sums=self.logs[n_levels],
            unit=self.unit,
            threshold=int(-math.log(self.rules.kappa) * self.unit),
            # Two scores of 2 (levels + 1) terms each, each term within two units.
            noise=8 * (n_levels + 1),
            # No table has more rows, no path more splits.
            min_rows=min(int(self.rules.min_rows), 2**53),
            max_depth=_MOST_SPLITS
            if self.rules.max_depth is None
            else min(int(self.rules.max_depth), _MOST_SPLITS),
        )
        kinds = (np.int32, np.int32, np.int64, np.int32, np.int32, np.int32, np.int64, np.int64)
        most = _most_nodes(n_distinct, self.n_rows, self.rules)
        nodes = Nodes(*(np.empty(most, dtype=kind) for kind in kinds))
        n_stacked = _most_stacked(n_distinct)
        workspace = TreeWorkspace(
            order=np.empty(n_distinct, dtype=np.int32),
            spare=np.empty(n_distinct, dtype=np.int32),
            stack=np.empty(n_stacked, dtype=np.int32),
            tables=np.empty((n_stacked, n_levels, int(self.rows.cells[-1])), dtype=np.int64),
            state=np.zeros(STATE_SIZE, dtype=np.int64),
        )
        plant(nodes, workspace)
        # Between two calls the work can be stopped.
        while not grow(position, self.rows, rules, nodes, workspace, _BUDGET):
            token.check()
        size = int(workspace.state[N_NODES])
        variable, level, gain, where_true, where_false, depth = (
            array[:size].astype(np.int64) for array in nodes[:6]
        )
        parent = np.full(size, -1, dtype=np.int64)
        inner = np.flatnonzero(variable >= 0)
        parent[where_true[inner]] = parent[where_false[inner]] = inner
        variable[inner] = self.by_name[variable[inner]]
        # What rounding may add is not counted, so that a cut requires what growing required.
        nats = np.where(variable >= 0, gain - rules.noise, 0) / self.unit
        return ProbabilityTree(target, variable, level, nats, where_true, where_false, parent, depth)


def _most_nodes(n_distinct: int, n_rows: int, rules: GrowthRules) -> int:
    return 2 * max(1, min(n_distinct, n_rows // int(rules.min_rows))) - 1


def _most_stacked(n_distinct: int) -> int:
    return n_distinct.bit_length() + 1


def _check_memory(data: Dataset, rules: GrowthRules, max_bytes: int, n_workers: int) -> None:
    levels = data.domain.n_levels
    table = 8 * int(levels.max()) * int(levels.sum())
    nodes = _BYTES_OF_A_NODE * _most_nodes(data.n_distinct, data.n_rows, rules)
    logs = 8 * min(data.n_rows + 1, _MOST_LOGS) * (1 + len(np.unique(levels)))
    each = _most_stacked(data.n_distinct) * table + nodes + 8 * data.n_distinct
    need = n_workers * each + 2 * data.rows.nbytes + logs
    work = f"Trees over {data.n_variables:,} variables of up to {int(levels.max()):,} levels would need about"
    check_need(need, max_bytes, work, "merge levels, choose fewer columns or raise max_memory=")


def _paths(domain: Domain, tree: ProbabilityTree, chosen: Chosen) -> FeatureArrays:
    """Return one feature for each chosen node and level of the target: the path there, and the level."""
    nodes = np.flatnonzero(chosen)
    sizes = tree.depth[nodes] + 1
    ends = np.cumsum(sizes)
    # A path is written from its end, which is the target.
    variable, level = np.full(int(ends[-1]), tree.target), np.zeros(int(ends[-1]), dtype=np.int64)
    equal = np.ones(int(ends[-1]), dtype=np.bool_)
    at, below = ends - 1, nodes
    while True:
        climbs = tree.parent[below] >= 0
        at, below = at[climbs] - 1, below[climbs]
        if not len(at):
            break
        node = tree.parent[below]
        variable[at], level[at] = tree.variable[node], tree.level[node]
        equal[at] = tree.where_true[node] == below
        below = node
    # Of two levels, not the one is the other.
    turned = ~equal & (domain.n_levels[variable] == 2)
    level[turned], equal[turned] = 1 - level[turned], True
    # All of it for each level of the target, which is the last variable of each path.
    n_levels = int(domain.n_levels[tree.target])
    levels = np.tile(level, (n_levels, 1))
    levels[:, ends - 1] = np.arange(n_levels)[:, None]
    return FeatureArrays(
        start=np.append(0, np.cumsum(np.tile(sizes, n_levels))).astype(np.int64),
        variable=np.tile(variable, n_levels).astype(np.int32),
        level=levels.ravel().astype(np.uint16),
        equal=np.tile(equal, n_levels),
    )


def _without_zeros(features: FeatureSet) -> FeatureSet:
    """Drop, from every feature, all conditions but "= a level that is not the first"."""
    start, variable, level, equal = features.arrays
    stays = equal & (level > 0)
    _, sizes = np.unique(np.repeat(np.arange(len(features)), np.diff(start))[stays], return_counts=True)
    begins = np.append(0, np.cumsum(sizes)).astype(np.int64)
    shorter = FeatureArrays(begins, variable[stays], level[stays], equal[stays])
    return FeatureSet.from_arrays(features.domain, shorter)
