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

from unless.data.domain import Domain
from unless.knowledge.levels import Box, as_regions, merged, shortened
from unless.knowledge.presence import Bools, Floats, Presence
from unless.structures.distinct import Positions
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
# Of many variables, only those that tell most when asked first are asked.
MOST_CANDIDATES = 16
# Numbers held at once.
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
        self.least = max(LEAST_SHARE * self.total, LEAST_ROWS)
        n_levels = presence.domain.n_levels
        self.variables = np.array([v for v in variables if n_levels[v] <= MOST_LEVELS], dtype=np.int64)
        self.width = int(n_levels[self.variables].max(initial=1))
        # One below the other: each is asked alone, and often.
        self.columns = np.ascontiguousarray(presence.rows[:, self.variables].T)

    def trees(self, pairs: Sequence[int]) -> Iterator[tuple[int, Tree]]:
        """Give each of these pairs with its tree, a mere leaf where no gate tells enough."""
        roots = {
            pair: Leaf(self.total, float(round(self.presence.shares[pair] * self.total))) for pair in pairs
        }
        mixed = [pair for pair in pairs if self._may_have_gate(roots[pair])]
        for pair in sorted({*pairs} - {*mixed}):
            yield pair, roots[pair]
        totals = self.sums(np.arange(len(self.variables)), np.arange(len(self.weights)), self.weights)
        block = max(1, _SUMS // max(1, totals.size))
        for begin in range(0, len(mixed), block):
            part = mixed[begin : begin + block]
            for pair, linked in zip(part, self._linked_sums(part), strict=True):
                yield pair, self._tree(pair, roots[pair], totals, linked)

    def _may_have_gate(self, root: Leaf) -> bool:
        """Tell whether rows with the link, and those without, could fill a part large enough to speak of."""
        if self.presence.is_constant or not len(self.variables) or not self.max_gate:
            return False
        return (
            root.linked >= SURELY_NOT * self.least and root.total - root.linked >= (1 - SURELY) * self.least
        )

    def _tree(self, pair: int, root: Leaf, totals: Floats, sums: Floats) -> Tree:
        own = [int(side[0]) for side in pair_nodes(np.array([pair]), len(self.presence.domain))]
        candidates = np.flatnonzero(~np.isin(self.variables, own))
        grower = _Grower(self, self.presence.linked(pair), _disorder(root), candidates)
        grower.keep_the_best(root, totals[candidates], sums[candidates])
        kept = grower.candidates
        rows = np.arange(len(self.weights))
        tree, gain, _ = grower.grow(root, rows, (totals[kept], sums[kept]), self.max_gate)
        return tree if gain >= LEAST_GAIN else root

    def sums(self, candidates: Positions, rows: Positions, weights: Floats) -> Floats:
        """Sum weights of some rows by level, for each of some variables; sums of whole numbers are exact."""
        found = np.empty((len(candidates), self.width))
        for place, candidate in enumerate(candidates.tolist()):
            found[place] = np.bincount(self.columns[candidate][rows], weights=weights, minlength=self.width)
        return found

    def _linked_sums(self, pairs: Sequence[int]) -> Floats:
        """Sum the weights of linked rows by variable and level for many pairs at once."""
        n_variables, n_rows = self.columns.shape
        found = np.zeros((len(pairs), n_variables * self.width))
        offsets = self.width * np.arange(n_variables)[:, None]
        # Whole bytes of the packed presence.
        block = max(8, _SUMS // max(1, n_variables * self.width + len(pairs)) // 8 * 8)
        for begin in range(0, n_rows, block):
            rows = slice(begin, min(begin + block, n_rows))
            size = rows.stop - begin
            levels = np.zeros((size, n_variables * self.width))
            levels[np.arange(size)[None], self.columns[:, rows] + offsets] = self.weights[rows]
            bits = self.presence.bits[:, begin // 8 : (rows.stop + 7) // 8][pairs]
            found += np.unpackbits(bits, axis=1, count=size).astype(np.float64) @ levels
        return found.reshape(len(pairs), n_variables, self.width)


@dataclass
class _Grower:
    """Grows one tree; `candidates` are the variables to ask, as positions among those of the finder."""

    finder: GateFinder
    linked: Bools
    disorder: float
    candidates: Positions

    def keep_the_best(self, root: Leaf, totals: Floats, sums: Floats) -> None:
        """Ask only those variables that tell most when asked first."""
        if len(self.candidates) > MOST_CANDIDATES:
            best = _Cuts.of(self, root, totals, sums).score.max(axis=1, initial=-np.inf)
            self.candidates = np.sort(self.candidates[np.argsort(-best, kind="stable")[:MOST_CANDIDATES]])

    def grow(
        self, leaf: Leaf, rows: Positions, sums: tuple[Floats, Floats], depth: int
    ) -> tuple[Tree, float, int]:
        """Return the best tree, the share of the disorder that it removes and its number of questions."""
        found = _Cuts.of(self, leaf, *sums).best()
        if found is None:
            return leaf, 0.0, 0
        place, levels, gain, parts = found
        allowed = np.zeros(self.finder.width, dtype=np.bool_)
        allowed[levels] = True
        first = allowed[self.finder.columns[self.candidates[place]][rows]]
        grown = [
            self._deeper(part, rows[side], depth - 1)
            for part, side in zip(parts, (first, ~first), strict=True)
        ]
        gain += sum(one[1] for one in grown)
        n_splits = 1 + sum(one[2] for one in grown)
        # A deeper question may make up for a shallow one that tells little.
        if gain < GAIN_PER_SPLIT * n_splits:
            return leaf, 0.0, 0
        variable = int(self.finder.variables[self.candidates[place]])
        return Split(variable, frozenset(levels), (grown[0][0], grown[1][0])), gain, n_splits

    def _deeper(self, leaf: Leaf, rows: Positions, depth: int) -> tuple[Tree, float, int]:
        # What is left of the disorder here is all that more questions could gain.
        worth = _disorder(leaf) / self.disorder >= GAIN_PER_SPLIT
        if not depth or not worth or leaf.total < 2 * self.finder.least:
            return leaf, 0.0, 0
        weights = self.finder.weights[rows]
        sums = [
            self.finder.sums(self.candidates, rows, part) for part in (weights, weights * self.linked[rows])
        ]
        return self.grow(leaf, rows, (sums[0], sums[1]), depth)


@dataclass(frozen=True)
class _Cuts:
    """All questions to some variables: of each, its levels by their share of linked rows, cut in two."""

    grower: _Grower
    leaf: Leaf
    order: npt.NDArray[np.intp]
    first_total: Floats
    first_linked: Floats
    n_seen: npt.NDArray[np.int64]
    named: npt.NDArray[np.int64]
    gain: Floats
    score: Floats

    @classmethod
    def of(cls, grower: _Grower, leaf: Leaf, totals: Floats, sums: Floats) -> "_Cuts":
        """Weigh them."""
        seen = totals > 0
        share = np.where(seen, sums / np.where(seen, totals, 1.0), np.inf)
        # Of two levels alike in share the first comes first, and unseen ones last.
        order = np.argsort(share, axis=1, kind="stable")
        first_total = np.cumsum(np.take_along_axis(totals, order, 1), axis=1)[:, :-1]
        first_linked = np.cumsum(np.take_along_axis(sums, order, 1), axis=1)[:, :-1]
        second_total = leaf.total - first_total
        left = _impurity(first_total, first_linked) + _impurity(second_total, leaf.linked - first_linked)
        gain = (_disorder(leaf) - left) / grower.disorder
        n_seen = seen.sum(axis=1)[:, None]
        n_first = np.arange(1, totals.shape[1])[None]
        named = np.minimum(n_first, n_seen - n_first)
        score = np.round(gain - GAIN_PER_LEVEL * (named - 1), 9)
        unfair = np.minimum(first_total, second_total) < grower.finder.least
        score[unfair | (n_first >= n_seen)] = -np.inf
        return cls(grower, leaf, order, first_total, first_linked, n_seen[:, 0], named, gain, score)

    def best(self) -> tuple[int, list[int], float, tuple[Leaf, Leaf]] | None:
        """Return the best question: place of the variable, levels of the first part, gain and both parts."""
        best = self.score.max(initial=-np.inf)
        if best <= 0:
            return None
        # Ties: the variable of fewest levels, then the first by name, then the shortest list.
        places, cuts = np.nonzero(self.score == best)
        chosen = np.lexsort((self.named[places, cuts], places, self.n_seen[places]))[0]
        place, cut = int(places[chosen]), int(cuts[chosen])
        first = Leaf(float(self.first_total[place, cut]), float(self.first_linked[place, cut]))
        second = Leaf(self.leaf.total - first.total, self.leaf.linked - first.linked)
        finder = self.grower.finder
        n_levels = int(finder.presence.domain.n_levels[finder.variables[self.grower.candidates[place]]])
        ranked = [level for level in self.order[place].tolist() if level < n_levels]
        levels = ranked[: cut + 1]
        if first.total > second.total:
            # Levels that do not occur here go with the larger part, so that the smaller is named exactly.
            levels = levels + ranked[int(self.n_seen[place]) :]
        return place, levels, float(self.gain[place, cut]), (first, second)


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
