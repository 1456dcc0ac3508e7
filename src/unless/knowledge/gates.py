"""Gates: the smallest description, by levels of other variables, of where a link is and where it is not.

For each pair a shallow tree is grown over the rows, each worth its count, that tells rows with the link from
rows without it. The two variables of a pair are never asked, so that contexts that differ only in them are
averaged.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from unless.data.domain import Domain
from unless.knowledge.levels import Box, as_regions, merged, shortened
from unless.knowledge.presence import Bools, Floats, Presence
from unless.structures.pairs import pair_nodes
from unless.structures.regions import Region

# A variable of more levels is no gate: a list of them is no sentence.
MOST_LEVELS = 64
# Shares of the disorder of a pair's links (Gini's) that a gate, and each of its questions, must remove.
LEAST_GAIN = 0.1
GAIN_PER_SPLIT = 0.03
# What a longer list of levels must gain to be worth its length, for each level.
GAIN_PER_LEVEL = 0.01
# A part of the table smaller than this is no context to speak of.
LEAST_SHARE, LEAST_ROWS = 0.01, 20
# A part with the link in fewer rows than the first share is without it, in as many as the second with it;
# between the two the structure is of two minds, and the data decide.
SURELY_NOT, SURELY = 0.1, 0.5
# Sums held at once.
_SUMS = 2**22


@dataclass(frozen=True)
class Gate:
    """The contexts in which a pair is linked, and those in which it is not; every context is in one of them.

    Regions of one side may overlap, because that is shorter: Sex = Female, or Class = 3rd.
    """

    linked: tuple[Region, ...]
    unlinked: tuple[Region, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that decide, sorted."""
        return tuple(sorted({name for region in (*self.linked, *self.unlinked) for name in region.names}))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "linked": [region.to_dict() for region in self.linked],
            "not_linked": [region.to_dict() for region in self.unlinked],
        }


@dataclass(frozen=True)
class Leaf:
    """A part of the rows: what they weigh, and what those with the link weigh."""

    total: float
    linked: float

    @property
    def share(self) -> float:
        """The share of the rows with the link."""
        return self.linked / self.total if self.total else 0.0


@dataclass(frozen=True)
class Split:
    """A question: whether a variable has one of these levels (the first part) or not (the second)."""

    variable: int
    levels: frozenset[int]
    parts: "tuple[Tree, Tree]"


Tree = Leaf | Split


class GateFinder:
    """Grows the tree of each pair."""

    def __init__(self, presence: Presence, variables: Iterable[int], max_gate: int) -> None:
        self.presence = presence
        self.max_gate = max_gate
        self.weights = presence.counts.astype(np.float64)
        self.total = float(self.weights.sum())
        n_levels = presence.domain.n_levels
        self.variables = np.array([v for v in variables if n_levels[v] <= MOST_LEVELS], dtype=np.int64)
        self.width = int(n_levels[self.variables].max(initial=1))
        self.least = max(LEAST_SHARE * self.total, LEAST_ROWS)
        self._levels = self._indicators()

    def trees(self, pairs: Sequence[int]) -> Iterator[tuple[int, Tree]]:
        """Give each of these pairs with its tree, a mere leaf where no gate tells enough."""
        shares, idle = self.presence.shares, not len(self.variables) or not self.max_gate
        mixed = [] if idle or self.presence.is_constant else [pair for pair in pairs if 0 < shares[pair] < 1]
        for pair in sorted({*pairs} - {*mixed}):
            yield pair, Leaf(self.total, float(round(shares[pair] * self.total)))
        block = max(1, _SUMS // (len(self.weights) + len(self.variables) * self.width))
        totals = self._sums(self.weights[None], None)[0]
        for begin in range(0, len(mixed), block):
            part = mixed[begin : begin + block]
            sums = self._sums(np.stack([self.presence.linked(pair) for pair in part]) * self.weights, None)
            for pair, linked in zip(part, sums, strict=True):
                yield pair, self._tree(pair, totals, linked)

    def _tree(self, pair: int, totals: Floats, sums: Floats) -> Tree:
        own = [int(side[0]) for side in pair_nodes(np.array([pair]), len(self.presence.domain))]
        root = Leaf(self.total, float(round(self.presence.shares[pair] * self.total)))
        grower = _Grower(self, self.presence.linked(pair), np.isin(self.variables, own), _disorder(root))
        tree, gain, _ = grower.grow(root, None, (totals, sums), self.max_gate)
        return tree if gain >= LEAST_GAIN else root

    def _indicators(self) -> Any:
        """Return rows x (variable, level): which level each variable has."""
        n_rows, n_variables = len(self.weights), len(self.variables)
        columns = self.presence.rows[:, self.variables].astype(np.int64) + self.width * np.arange(n_variables)
        starts = np.arange(n_rows + 1) * n_variables
        shape = (n_rows, n_variables * self.width)
        return sparse.csr_array((np.ones(columns.size), columns.ravel(), starts), shape=shape)

    def _sums(self, weights: Floats, inside: npt.NDArray[np.intp] | None) -> Floats:
        """Sum each of several weights of the rows by variable and level; sums of whole numbers are exact."""
        levels = self._levels if inside is None else self._levels[inside]
        sums = np.asarray(levels.T @ weights.T).T
        return np.ascontiguousarray(sums).reshape(len(weights), len(self.variables), self.width)


@dataclass
class _Grower:
    finder: GateFinder
    linked: Bools
    is_own: Bools
    disorder: float

    def grow(
        self, leaf: Leaf, inside: npt.NDArray[np.intp] | None, sums: tuple[Floats, Floats], depth: int
    ) -> tuple[Tree, float, int]:
        """Return the best tree, the share of the disorder that it removes and its number of questions."""
        found = self._best(leaf, *sums)
        if found is None:
            return leaf, 0.0, 0
        variable, levels, gain, parts = found
        allowed = np.zeros(self.finder.width, dtype=np.bool_)
        allowed[levels] = True
        place = int(self.finder.variables[variable])
        column = self.finder.presence.rows[:, place]
        rows = np.arange(len(column)) if inside is None else inside
        first = allowed[column[rows]]
        grown = [
            self._deeper(part, rows[side], depth - 1)
            for part, side in zip(parts, (first, ~first), strict=True)
        ]
        gain += sum(one[1] for one in grown)
        n_splits = 1 + sum(one[2] for one in grown)
        # A deeper question may make up for a shallow one that tells little.
        if gain < GAIN_PER_SPLIT * n_splits:
            return leaf, 0.0, 0
        return Split(place, frozenset(levels), (grown[0][0], grown[1][0])), gain, n_splits

    def _deeper(self, leaf: Leaf, rows: npt.NDArray[np.intp], depth: int) -> tuple[Tree, float, int]:
        if not depth or not 0 < leaf.linked < leaf.total or leaf.total < 2 * self.finder.least:
            return leaf, 0.0, 0
        weights = self.finder.weights[rows]
        sums = self.finder._sums(np.stack([weights, weights * self.linked[rows]]), rows)
        return self.grow(leaf, rows, (sums[0], sums[1]), depth)

    def _best(
        self, leaf: Leaf, totals: Floats, sums: Floats
    ) -> tuple[int, list[int], float, tuple[Leaf, Leaf]] | None:
        """Find the question that removes most: of each variable, levels by their share of linked rows."""
        seen = totals > 0
        share = np.where(seen, sums / np.where(seen, totals, 1.0), np.inf)
        # Of two levels alike in share the first comes first, and unseen ones last.
        order = np.argsort(share, axis=1, kind="stable")
        first_total = np.cumsum(np.take_along_axis(totals, order, 1), axis=1)[:, :-1]
        first_linked = np.cumsum(np.take_along_axis(sums, order, 1), axis=1)[:, :-1]
        second_total, second_linked = leaf.total - first_total, leaf.linked - first_linked
        gain = _disorder(leaf) - _impurity(first_total, first_linked) - _impurity(second_total, second_linked)
        gain /= self.disorder
        n_seen = seen.sum(axis=1)[:, None]
        n_first = np.arange(1, totals.shape[1])[None]
        named = np.minimum(n_first, n_seen - n_first)
        score = np.round(gain - GAIN_PER_LEVEL * (named - 1), 9)
        fair = np.minimum(first_total, second_total) >= self.finder.least
        score[~fair | (n_first >= n_seen) | self.is_own[:, None]] = -np.inf
        best = score.max(initial=-np.inf)
        if best <= 0:
            return None
        # Ties: the variable of fewest levels, then the first by name, then the shortest list.
        variables, cuts = np.nonzero(score == best)
        chosen = np.lexsort((named[variables, cuts], variables, n_seen[variables, 0]))[0]
        variable, cut = int(variables[chosen]), int(cuts[chosen])
        parts = (
            Leaf(float(first_total[variable, cut]), float(first_linked[variable, cut])),
            Leaf(float(second_total[variable, cut]), float(second_linked[variable, cut])),
        )
        n_levels = int(self.finder.presence.domain.n_levels[self.finder.variables[variable]])
        ranked = [level for level in order[variable].tolist() if level < n_levels]
        first = ranked[: cut + 1]
        if parts[0].total > parts[1].total:
            # Levels that do not occur here go with the larger part, so that the smaller is named exactly.
            first = first + ranked[int(n_seen[variable, 0]) :]
        return variable, first, float(gain[variable, cut]), parts


def _impurity(total: Floats, linked: Floats) -> Floats:
    safe = np.where(total > 0, total, 1.0)
    return np.asarray(linked * (total - linked) / safe)


def _disorder(leaf: Leaf) -> float:
    return leaf.linked * (leaf.total - leaf.linked) / leaf.total if leaf.total else 0.0


def read_tree(tree: Tree, domain: Domain, is_linked: Callable[[Leaf, Box], bool]) -> Gate | bool:
    """Return the gate that a tree describes, or whether there is a link where that is the same everywhere."""
    sides: tuple[list[Box], list[Box]] = ([], [])
    for leaf, box in _leaves(tree, {}, domain):
        sides[not is_linked(leaf, box)].append(box)
    linked, unlinked = (merged(side) for side in sides)
    if not linked or not unlinked:
        return bool(linked)
    return Gate(
        as_regions(shortened(linked, unlinked, domain), domain),
        as_regions(shortened(unlinked, linked, domain), domain),
    )


def _leaves(tree: Tree, box: Box, domain: Domain) -> Iterator[tuple[Leaf, Box]]:
    if isinstance(tree, Leaf):
        yield tree, box
        return
    everything = frozenset(range(int(domain.n_levels[tree.variable])))
    left = box.get(tree.variable, everything)
    for part, levels in zip(tree.parts, (tree.levels, everything - tree.levels), strict=True):
        yield from _leaves(part, {**box, tree.variable: left & levels}, domain)
