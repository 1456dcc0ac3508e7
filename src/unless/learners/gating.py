"""Gate trees: for one variable, which others switch its links, and its neighbours at each of their levels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import log
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

from unless.independence.statistics import Statistic
from unless.learners.neighbourhoods import Asker, Blanket, Regression, differences
from unless.learners.parts import Bools, Conditions, Floats, Part

# A gate of more levels would be searched among too many sets of them.
MAX_GATE_LEVELS = 8
# So few are all looked at closely; of more, those whose scores say most clearly that they might be gates.
FEW_GATES = 8
MAX_CANDIDATES = 3
# Gates that others found are looked at too, whatever the score.
MAX_SHARED = 3
_ROUNDS = 50
# What Newton's method leaves open must not choose between a gate and its copy: their names do.
_DIGITS = 5


class Candidate(NamedTuple):
    """A variable that might be a gate: what is gained by it, and the chance of it if it is none."""

    gate: int
    gain: float
    p: float
    union: Blanket


@dataclass(frozen=True, eq=False)
class GateTree:
    """The neighbours of a variable in a part of the table, and below it the parts that a gate makes of it."""

    part: Part
    blanket: Blanket
    candidates: tuple[Candidate, ...] = ()
    gate: int | None = None
    union: Blanket = ()
    children: tuple["GateTree", ...] = field(default=())

    def gates(self) -> Iterator[int]:
        """Give the gates of this node and of those below."""
        if self.gate is not None:
            yield self.gate
        for child in self.children:
            yield from child.gates()

    def stops(self, other: int) -> Iterator["GateTree"]:
        """Give the leaves, and in their place the nodes whose gate is the other variable."""
        if self.gate is None or self.gate == other:
            yield self
            return
        for child in self.children:
            yield from child.stops(other)


class GateSearch:
    """Grows the gate tree of one variable; what it has looked at once it remembers."""

    def __init__(self, asker: Asker, gates: Bools, max_gate: int) -> None:
        self.asker, self.table, self.max_gate = asker, asker.table, max_gate
        self.gates = [g for g in np.flatnonzero(gates).tolist() if self._may_gate(g)]
        # A weight is worth having where a test at alpha would keep it.
        self.price = float(chdtri(1, asker.alpha)) / 2
        self.known: dict[tuple[Conditions, int], Candidate | None] = {}
        self.listed: dict[Conditions, list[int]] = {}

    def _may_gate(self, gate: int) -> bool:
        return gate != self.asker.target and 1 < len(self.table.used[gate]) <= MAX_GATE_LEVELS

    def tree(self, shares: Floats) -> GateTree:
        """Split while a gate is worth it; `shares` says how often each variable is a gate, and last none."""
        return self._grow(self.table.whole, self.asker.blanket(self.table.whole), shares, 0)

    def _grow(self, part: Part, blanket: Blanket, shares: Floats, depth: int) -> GateTree:
        leaf = GateTree(part, blanket)
        if depth >= self.max_gate or not blanket:
            return leaf
        candidates = tuple(self._candidates(part, blanket, shares))
        leaf = GateTree(part, blanket, candidates)
        ranked = [(round(one.gain + log(shares[one.gate]), _DIGITS), -one.gate, one) for one in candidates]
        worth, _, best = max(ranked, default=(-np.inf, 0, None))
        # A share of alpha for each gate that might be one, and for each variable that it might be one at.
        if best is None or worth <= log(shares[-1]) or best.p >= self.asker.alpha * shares[best.gate] ** 2:
            return leaf
        start = tuple(b for b in blanket if b != best.gate)
        children = tuple(
            self._grow(below, self.asker.blanket(below, start), shares, depth + 1)
            for below in self._groups(part, best)
        )
        if len(children) == 1:
            return leaf
        return GateTree(part, blanket, candidates, best.gate, best.union, children)

    def _candidates(self, part: Part, blanket: Blanket, shares: Floats) -> Iterator[Candidate]:
        if part.conditions not in self.listed:
            self.listed[part.conditions] = self._screened(part, blanket)
        screened = self.listed[part.conditions]
        often = sorted((g for g in self.gates if shares[g] > 1 / len(shares)), key=lambda g: (-shares[g], g))
        for gate in sorted({*screened, *often[:MAX_SHARED]} & {*self.gates}):
            key = part.conditions, gate
            if key not in self.known:
                self.known[key] = self._look(part, blanket, gate)
            candidate = self.known[key]
            if candidate is not None:
                yield candidate

    def _screened(self, part: Part, blanket: Blanket) -> list[int]:
        if len(self.gates) <= FEW_GATES:
            return self.gates
        near = [gate for gate in self.gates if gate in self.asker.near]
        tests = self.asker.split_scores(part, blanket, near)
        likely = [
            (test.p, -test.value, gate)
            for test, gate in zip(tests, near, strict=True)
            if test.p < self.asker.alpha
        ]
        return [gate for _, _, gate in sorted(likely)[:MAX_CANDIDATES]]

    def _look(self, part: Part, blanket: Blanket, gate: int) -> Candidate | None:
        """Learn the neighbours at each level of a gate; compare with one set of neighbours for all."""
        ask = self.asker
        parts = [self.table.narrowed(part, gate, (level,)) for level in self.table.levels_in(part, gate)]
        if len(parts) < 2:
            return None
        start = tuple(b for b in blanket if b != gate)
        # Where gates are few, neighbours that only show at a level are looked for at every one of them.
        thorough = len(self.gates) <= FEW_GATES
        own = [ask.blanket(below, start) if thorough else start for below in parts]
        gain = sum(self._worth(ask.regression(b, s)) for b, s in zip(parts, own, strict=True))
        gain -= self._worth(ask.regression(part, blanket))
        union = tuple(sorted({*start}.union(*own)))
        if not union:
            return None
        apart = [ask.regression(below, union) for below in parts]
        together = ask.regression(part, tuple(sorted((*union, gate))))
        ask.n_asked += 1 + len(union)
        df = sum(one.n_weights for one in apart) - together.n_weights
        if df <= 0:
            return None
        ratio = 2 * (sum(one.log_likelihood for one in apart) - together.log_likelihood)
        every = Statistic(max(0.0, ratio), df).p
        # One link that differs drowns among many that do not: the strongest is looked at alone, too.
        alone = min(test.p for test in differences(apart, union)) * len(union)
        return Candidate(gate, gain, min(1.0, 2 * min(every, alone)), union)

    def _worth(self, found: Regression) -> float:
        """Return the log-likelihood less the price of the weights, without those that are not worth it."""
        worth = found.log_likelihood - self.price * found.n_weights
        for size in found.sizes.values():
            worth += max(0.0, self.price * size.df - size.value / 2)
        return worth

    def _groups(self, part: Part, best: Candidate) -> list[Part]:
        """Join the levels of a gate between which no link differs enough."""
        groups: list[tuple[int, ...]] = [(level,) for level in self.table.levels_in(part, best.gate)]
        if len(groups) == 2:
            return [self.table.narrowed(part, best.gate, group) for group in groups]
        worth = {group: self._worth_of(part, best, group) for group in groups}
        while len(groups) > 1:
            joined = []
            for one, other in combinations(groups, 2):
                both = tuple(sorted((*one, *other)))
                if both not in worth:
                    worth[both] = self._worth_of(part, best, both)
                joined.append((worth[both] - worth[one] - worth[other], both, one, other))
            gain, both, one, other = max(joined, key=lambda found: (found[0], [-v for v in found[1]]))
            if gain <= 0:
                break
            groups = sorted([both, *(group for group in groups if group not in (one, other))])
        return [self.table.narrowed(part, best.gate, group) for group in groups]

    def _worth_of(self, part: Part, best: Candidate, group: tuple[int, ...]) -> float:
        below = self.table.narrowed(part, best.gate, group)
        union = best.union if len(group) == 1 else tuple(sorted((*best.union, best.gate)))
        found = self.asker.regression(below, union)
        # All weights are paid for, so that levels with the same weights are better joined.
        return found.log_likelihood - self.price * found.n_weights


def gate_shares(trees: Sequence[GateTree]) -> Floats:
    """Estimate how often each variable is the gate at another one, and last how often there is none.

    Where evidence at one variable is weak, what the others found decides. A variable that is itself a gate
    sees all that it gates as gates of its own, so it counts for less.
    """
    n = len(trees)
    gains = np.full((n, n + 1), -np.inf)
    gains[:, -1] = 0.0
    for target, tree in enumerate(trees):
        for candidate in tree.candidates:
            gains[target, candidate.gate] = candidate.gain
    shares = even_shares(n)
    for _ in range(_ROUNDS):
        likely = gains + np.log(shares)
        votes = np.exp(likely - likely.max(axis=1, keepdims=True))
        votes /= votes.sum(axis=1, keepdims=True)
        votes *= (1 - shares[:-1])[:, None]
        # Half a vote, spread over all, keeps every gate possible.
        pooled = votes.sum(axis=0) + 0.5 / n
        shares = pooled / pooled.sum()
    return np.asarray(shares)


def even_shares(n_variables: int) -> Floats:
    """Return the shares before anything is known."""
    return np.full(n_variables + 1, 1 / (n_variables + 1))


def gate_ranks(trees: Sequence[GateTree]) -> list[int]:
    """Count, for every variable, at how many it is a gate; what gates say of lesser ones is left out."""
    used = [set(tree.gates()) for tree in trees]
    votes = [sum(gate in one for one in used) for gate in range(len(trees))]
    return [
        sum(gate in used[other] and votes[other] <= votes[gate] for other in range(len(trees)))
        for gate in range(len(trees))
    ]


def part_rivals(searches: Sequence[GateSearch], trees: Sequence[GateTree]) -> set[int]:
    """Forbid two variables to be each other's gate, unless one is a gate at more; return those concerned.

    A link that two others switch looks from either end as if its other end switched the links to them.
    """
    ranks, used = gate_ranks(trees), [set(tree.gates()) for tree in trees]
    rivals = set()
    for a, b in combinations(range(len(trees)), 2):
        if b in used[a] and a in used[b] and ranks[a] == ranks[b]:
            for search, other in ((searches[a], b), (searches[b], a)):
                search.gates = [gate for gate in search.gates if gate != other]
            rivals |= {a, b}
    return rivals
