"""Gate trees: for one variable, which others switch its links, and its neighbours at each of their levels.

`GateSearch` grows the tree of one variable; `grow_gate_trees` grows those of all, each alone and then again
knowing what the others found. What a search has found can be written to arrays, so that work that was stopped
goes on to the same bits: regressions too, because each is where later ones start from.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log
from typing import Any, NamedTuple

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Domain
from unless.independence.logistic import Fit
from unless.independence.statistics import Statistic, critical_value
from unless.learners.base import Run
from unless.learners.ggs.regressions import (
    Blanket,
    Conditions,
    NeighbourTests,
    Regression,
    StratifiedTable,
    Stratum,
    differences,
)
from unless.learners.settings import edge_limits
from unless.referee.counted import MOST_REGULAR
from unless.runtime.checkpoints import Arrays
from unless.runtime.interrupts import CancelToken, cancellable, cancellable_map
from unless.runtime.parallel import InMemory, OnDisk
from unless.structures.structure import Edge
from unless.typing import Bools, Floats

# A gate of more levels would be searched among too many sets of them.
MAX_GATE_LEVELS = 8
# So few are all tested closely; of more, those that are gates most clearly by their scores.
FEW_GATES = 8
MAX_CANDIDATES = 3
# Gates that others found are tested too, whatever the score.
MAX_SHARED = 3
_ROUNDS = 50
# What Newton's method leaves open must not choose between a gate and its copy: their names do.
_DIGITS = 5
# How often trees are grown again because two variables were each other's gates.
MAX_REVISIONS = 3


class GateCandidate(NamedTuple):
    """A variable that might be a gate: what is gained by it, and the probability of that if it is none."""

    gate: int
    gain: float
    p: float
    union: Blanket


@dataclass(frozen=True, eq=False)
class GateTree:
    """The neighbours of a variable in a stratum, and below it the strata that a gate makes of it."""

    stratum: Stratum
    blanket: Blanket
    candidates: tuple[GateCandidate, ...] = ()
    gate: int | None = None
    union: Blanket = ()
    children: tuple["GateTree", ...] = ()

    def gates(self) -> Iterator[int]:
        """Give the gates of this node and of those below."""
        if self.gate is not None:
            yield self.gate
        for child in self.children:
            yield from child.gates()

    def stops(self, other: int) -> Iterator["GateTree"]:
        """Give the leaves, and instead of those below it each node whose gate is the other variable."""
        if self.gate is None or self.gate == other:
            yield self
            return
        for child in self.children:
            yield from child.stops(other)


class GateSearch:
    """Grows the gate tree of one variable; each candidate is tested once."""

    def __init__(self, tests: NeighbourTests, gates: Bools, max_gate: int) -> None:
        self.tests, self.table, self.max_gate = tests, tests.table, max_gate
        self.gates = [
            gate
            for gate in np.flatnonzero(gates).tolist()
            if gate != tests.target and 1 < len(self.table.used[gate]) <= MAX_GATE_LEVELS
        ]
        # A weight is worth having where a test at alpha would keep it.
        self.price = critical_value(1, tests.alpha) / 2
        self.known: dict[tuple[Conditions, int], GateCandidate | None] = {}
        self.screened: dict[Conditions, list[int]] = {}

    def tree(self, shares: Floats) -> GateTree:
        """Split while a gate is worth it; `shares` are those of each variable as a gate, and last of none."""
        return self._grow(self.table.whole, self.tests.blanket(self.table.whole), shares, 0)

    def _grow(self, stratum: Stratum, blanket: Blanket, shares: Floats, depth: int) -> GateTree:
        if depth >= self.max_gate or not blanket:
            return GateTree(stratum, blanket)
        candidates = tuple(self._candidates(stratum, blanket, shares))
        leaf = GateTree(stratum, blanket, candidates)
        ranked = [(round(one.gain + log(shares[one.gate]), _DIGITS), -one.gate, one) for one in candidates]
        worth, _, best = max(ranked, default=(-np.inf, 0, None))
        # A share of alpha for each gate that might be one, and for each variable that it might be one at.
        if best is None or worth <= log(shares[-1]) or best.p >= self.tests.alpha * shares[best.gate] ** 2:
            return leaf
        start = tuple(b for b in blanket if b != best.gate)
        children = tuple(
            self._grow(below, self.tests.blanket(below, start), shares, depth + 1)
            for below in self._groups(stratum, best)
        )
        if len(children) == 1:
            return leaf
        return GateTree(stratum, blanket, candidates, best.gate, best.union, children)

    def _candidates(self, stratum: Stratum, blanket: Blanket, shares: Floats) -> Iterator[GateCandidate]:
        if stratum.conditions not in self.screened:
            self.screened[stratum.conditions] = self._screen(stratum, blanket)
        often = sorted((g for g in self.gates if shares[g] > 1 / len(shares)), key=lambda g: (-shares[g], g))
        chosen = {*self.screened[stratum.conditions], *often[:MAX_SHARED]}
        for gate in sorted(chosen & {*self.gates}):
            key = stratum.conditions, gate
            if key not in self.known:
                self.known[key] = self._test(stratum, blanket, gate)
            candidate = self.known[key]
            if candidate is not None:
                yield candidate

    def _screen(self, stratum: Stratum, blanket: Blanket) -> list[int]:
        if len(self.gates) <= FEW_GATES:
            return self.gates
        near = [gate for gate in self.gates if gate in self.tests.near]
        scores = self.tests.split_scores(stratum, blanket, near)
        likely = [
            (score.p, -score.value, gate)
            for score, gate in zip(scores, near, strict=True)
            if score.p < self.tests.alpha
        ]
        return [gate for _, _, gate in sorted(likely)[:MAX_CANDIDATES]]

    def _test(self, stratum: Stratum, blanket: Blanket, gate: int) -> GateCandidate | None:
        """Learn the neighbours at each level of a gate; compare with one set of neighbours for all."""
        tests = self.tests
        strata = [
            self.table.restrict(stratum, gate, (level,)) for level in self.table.levels_in(stratum, gate)
        ]
        if len(strata) < 2:
            return None
        start = tuple(b for b in blanket if b != gate)
        # Where gates are few, neighbours that only show at a level are looked for at every one of them.
        thorough = len(self.gates) <= FEW_GATES
        own = [tests.blanket(below, start) if thorough else start for below in strata]
        gain = sum(self._worth(tests.regression(b, s)) for b, s in zip(strata, own, strict=True))
        gain -= self._worth(tests.regression(stratum, blanket))
        union = tuple(sorted({*start}.union(*own)))
        if not union:
            return None
        apart = [tests.regression(below, union) for below in strata]
        together = tests.regression(stratum, tuple(sorted((*union, gate))))
        tests.n_tests += 1 + len(union)
        df = sum(one.n_weights for one in apart) - together.n_weights
        if df <= 0:
            return None
        ratio = 2 * (sum(one.log_likelihood for one in apart) - together.log_likelihood)
        every = Statistic(max(0.0, ratio), df).p
        # One link that differs is hard to detect among many that do not: the strongest is tested alone, too.
        alone = min(test.p for test in differences(apart, union)) * len(union)
        return GateCandidate(gate, gain, min(1.0, 2 * min(every, alone)), union)

    def _worth(self, regression: Regression) -> float:
        """Return the log-likelihood less the price of the weights, without those that are not worth it."""
        worth = regression.log_likelihood - self.price * regression.n_weights
        for size in regression.sizes.values():
            worth += max(0.0, self.price * size.df - size.value / 2)
        return worth

    def _groups(self, stratum: Stratum, best: GateCandidate) -> list[Stratum]:
        """Join the levels of a gate between which no link differs enough."""
        groups: list[tuple[int, ...]] = [(level,) for level in self.table.levels_in(stratum, best.gate)]
        if len(groups) > 2:
            worth = {group: self._worth_of(stratum, best, group) for group in groups}
            while len(groups) > 1:
                joined = []
                for one, other in combinations(groups, 2):
                    both = tuple(sorted((*one, *other)))
                    if both not in worth:
                        worth[both] = self._worth_of(stratum, best, both)
                    joined.append((worth[both] - worth[one] - worth[other], both, one, other))
                gain, both, one, other = max(joined, key=lambda pair: (pair[0], [-v for v in pair[1]]))
                if gain <= 0:
                    break
                groups = sorted([both, *(group for group in groups if group not in (one, other))])
        return [self.table.restrict(stratum, best.gate, group) for group in groups]

    def _worth_of(self, stratum: Stratum, best: GateCandidate, group: tuple[int, ...]) -> float:
        below = self.table.restrict(stratum, best.gate, group)
        union = best.union if len(group) == 1 else tuple(sorted((*best.union, best.gate)))
        regression = self.tests.regression(below, union)
        # All weights are paid for, so that levels with the same weights are better joined.
        return regression.log_likelihood - self.price * regression.n_weights


class GateProblem:
    """A table, and what may be linked and what may be a gate in it, in the order of its names."""

    def __init__(
        self,
        data: Dataset,
        alpha: float,
        max_gate: int,
        max_blanket: int,
        required: tuple[Edge, ...] = (),
        forbidden: tuple[Edge, ...] = (),
        gates: tuple[str, ...] | None = None,
        forbidden_gates: tuple[str, ...] = (),
    ) -> None:
        # By name: the order of the columns must not decide anything, not even the rounding.
        named = data.select(sorted(data.names))
        self.domain, self.table = named.domain, StratifiedTable(named)
        self.alpha, self.max_gate, self.max_blanket = alpha, max_gate, max_blanket
        self.required, never = edge_limits(named.domain, required, forbidden)
        self.gates = _gate_mask(named.domain, gates, forbidden_gates)
        self.may_gate = self.gates & ~never
        free = np.array([len(levels) - 1 for levels in self.table.used])
        varies, df = free > 0, np.outer(free, free)
        may_link: Bools = ~never & varies[:, None] & varies[None, :]
        np.fill_diagonal(may_link, False)
        # Regressions on columns of many levels have too many weights: such pairs are tested in another way.
        is_wide = free >= MOST_REGULAR
        wide = is_wide[:, None] | is_wide[None, :]
        self.wide_pairs: Bools = may_link & wide & ~self.required
        # A pair with more degrees of freedom than rows cannot be distinguished from noise.
        self.allowed: Bools = may_link & ~wide & (df <= named.n_rows)

    def search(self, target: int) -> GateSearch:
        """Begin the search for one variable's gates."""
        allowed, required = self.allowed[target], (self.required & self.allowed)[target]
        tests = NeighbourTests(self.table, target, allowed, required, self.alpha, self.max_blanket)
        return GateSearch(tests, self.may_gate[target] & allowed, self.max_gate)


def _gate_mask(domain: Domain, only: Collection[str] | None, never: Collection[str]) -> Bools:
    """Return, for each variable, whether it may be a gate."""
    allowed = np.full(len(domain), only is None)
    for names, value in ((only or (), True), (never, False)):
        for name in names:
            allowed[domain.index(name)] = value
    return allowed


def grow_gate_trees(
    data: Dataset, settings: tuple[Any, ...], run: Run
) -> tuple[GateProblem, list[GateSearch], list[GateTree]]:
    """Grow the tree of each variable alone, then again knowing what the others found.

    `settings` are those of a GateProblem.
    """
    problem = GateProblem(data, *settings)
    n = len(problem.domain)
    searches = [problem.search(target) for target in range(n)]
    token = _watched(searches, run.steps(n, "gates of each"))
    if run.is_kept:
        shared = run.share(problem, GateProblem, data, *settings)
        alone = _grow_in_parts(shared, searches, run, token)
    else:
        shares = even_shares(n)
        alone = cancellable_map(lambda search: search.tree(shares), searches, run.n_jobs, token)
    pooled = gate_shares(alone)
    token = _watched(searches, run.steps(n, "gates of all"))
    trees = cancellable_map(lambda search: search.tree(pooled), searches, run.n_jobs, token)
    token = _watched(searches, CancelToken())
    return problem, searches, cancellable(lambda: _without_rivals(searches, trees, pooled), token)


def _watched(searches: Sequence[GateSearch], token: CancelToken) -> CancelToken:
    """Stop all searches when the token is cancelled."""
    for search in searches:
        search.tests.token = token
    return token


def _grow_in_parts(
    shared: InMemory[GateProblem] | OnDisk[GateProblem],
    searches: Sequence[GateSearch],
    run: Run,
    token: CancelToken,
) -> list[GateTree]:
    """Grow each tree alone, in parts that a folder keeps."""
    n = len(searches)
    parts = run.cut(n, n)
    tasks = [(shared, part) for part in parts]
    done = run.shards(_grow_some, tasks, kind="gates", token=token, ticks=n // len(parts))
    for part, arrays in zip(parts, done, strict=True):
        restore([searches[target] for target in part], arrays)
    # All that the trees need has been tested by now.
    return [search.tree(even_shares(n)) for search in searches]


def _grow_some(
    shared: InMemory[GateProblem] | OnDisk[GateProblem], targets: range, token: CancelToken
) -> Arrays:
    """Grow the trees of some variables, each alone."""
    problem = shared.load()
    shares = even_shares(len(problem.domain))

    def grow() -> Arrays:
        searches = [problem.search(target) for target in targets]
        for search in searches:
            search.tests.token = token
            search.tree(shares)
            token.tick()
        return to_arrays(searches)

    return cancellable(grow, token)


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
    """Count, for every variable, at how many it is a gate; the gates of greater gates are left out."""
    used = [set(tree.gates()) for tree in trees]
    votes = [sum(gate in one for one in used) for gate in range(len(trees))]
    return [
        sum(gate in used[other] and votes[other] <= votes[gate] for other in range(len(trees)))
        for gate in range(len(trees))
    ]


def _without_rivals(
    searches: Sequence[GateSearch], trees: Sequence[GateTree], shares: Floats
) -> list[GateTree]:
    for _ in range(MAX_REVISIONS):
        rivals = part_rivals(searches, trees)
        trees = [
            searches[target].tree(shares) if target in rivals else tree for target, tree in enumerate(trees)
        ]
    return list(trees)


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


def to_arrays(searches: Sequence[GateSearch]) -> Arrays:
    """Write what searches have found as arrays that a file can keep."""
    records = [_record(search) for search in searches]
    fits = [one.fitted for search in searches for one in search.tests.known_fits.values()]
    numbers = [array.ravel() for one in fits for array in (one.weights, one.covariance)]
    names = [array for one in fits for array in (one.owners, one.levels, one.shown)]
    return {
        "told": np.frombuffer(json.dumps(records).encode(), dtype=np.uint8),
        "numbers": np.concatenate([np.empty(0), *numbers]),
        "names": np.concatenate([np.empty(0, dtype=np.int64), *names]),
    }


def _record(search: GateSearch) -> dict[str, Any]:
    tests = search.tests
    return {
        "near": tests.near,
        "n_asked": tests.n_tests,
        "n_scored": tests.n_scored,
        "blankets": list(tests.known_blankets.items()),
        "drops": [[*key, *test] for key, test in tests.known_drops.items()],
        # In the order in which they were made: the last of a stratum is where the next one starts.
        "fits": [
            [*key, len(one.owners), len(one.fitted.shown), one.log_likelihood]
            for key, one in tests.known_fits.items()
        ],
        "candidates": [[*key, one] for key, one in search.known.items()],
        "listed": list(search.screened.items()),
    }


def restore(searches: Sequence[GateSearch], arrays: Arrays) -> None:
    """Fill searches that have tested nothing yet with what was written."""
    numbers, names = np.array(arrays["numbers"]), np.array(arrays["names"])
    for search, record in zip(searches, json.loads(arrays["told"].tobytes()), strict=True):
        tests = search.tests
        tests.near, tests.n_tests, tests.n_scored = record["near"], record["n_asked"], record["n_scored"]
        for conditions, blanket in record["blankets"]:
            tests.known_blankets[_conditions(conditions)] = tuple(blanket)
        for conditions, blanket, variable, value, df in record["drops"]:
            tests.known_drops[_conditions(conditions), tuple(blanket), variable] = Statistic(value, df)
        for conditions, blanket, n_columns, n_shown, log_likelihood in record["fits"]:
            n_free = max(0, n_shown - 1)
            size = n_columns * n_free
            weights, covariance, numbers = np.split(numbers, [size, size + size**2])
            owners, levels, shown, names = np.split(names, np.cumsum([n_columns, n_columns, n_shown]))
            weights, covariance = weights.reshape(n_columns, n_free), covariance.reshape(size, size)
            fitted = Fit(weights, owners, levels, shown, log_likelihood, covariance)
            tests.remember(_conditions(conditions), tuple(blanket), Regression(fitted))
        for conditions, gate, candidate in record["candidates"]:
            known = None if candidate is None else GateCandidate(*candidate)
            search.known[_conditions(conditions), gate] = known and known._replace(union=tuple(known.union))
        for conditions, gates in record["listed"]:
            search.screened[_conditions(conditions)] = gates


def _conditions(record: Any) -> Conditions:
    return tuple((variable, tuple(levels)) for variable, levels in record)
