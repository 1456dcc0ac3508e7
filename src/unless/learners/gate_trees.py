"""The gate trees of all variables: grown alone, in parts that a folder can keep, then again."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Domain
from unless.errors import SettingError
from unless.learners.gate_records import bring_back, written
from unless.learners.gating import GateSearch, GateTree, even_shares, gate_shares, part_rivals
from unless.learners.neighbourhoods import Asker
from unless.learners.parts import Bools, Floats, Table
from unless.learners.settings import edge_limits
from unless.referee.counted import MOST_REGULAR
from unless.runtime.checkpoints import Arrays, CheckpointStore
from unless.runtime.interrupts import CancelToken, cancellable, cancellable_map
from unless.runtime.parallel import InMemory, OnDisk, run_shards, share_input
from unless.runtime.progress import Bar
from unless.structures.pairs import Edge

# How often trees are grown again because two variables were each other's gates.
MAX_REVISIONS = 3
# Trees grow in so many parts where each is kept.
MOST_PARTS = 64


@dataclass(frozen=True)
class GateRules:
    """What may be linked and what may be a gate, and how far to look."""

    alpha: float
    max_gate: int
    max_blanket: int
    required: tuple[Edge, ...] = ()
    forbidden: tuple[Edge, ...] = ()
    gates: tuple[str, ...] | None = None
    forbidden_gates: tuple[str, ...] = ()


class Ground:
    """A table, and what the rules say about its variables, in the order of their names."""

    def __init__(self, data: Dataset, rules: GateRules) -> None:
        # By name: the order of the columns must not decide anything, not even the rounding.
        named = data.select(sorted(data.names))
        self.rules, self.domain, self.table = rules, named.domain, Table(named)
        self.required, never = edge_limits(named.domain, rules.required, rules.forbidden)
        self.gates = _gate_mask(named.domain, rules.gates, rules.forbidden_gates)
        self.may_gate = self.gates & ~never
        free = np.array([len(levels) - 1 for levels in self.table.used])
        varies, df = free > 0, np.outer(free, free)
        may_link: Bools = ~never & varies[:, None] & varies[None, :]
        np.fill_diagonal(may_link, False)
        # Regressions on columns of many levels have too many weights: such pairs are tested in another way.
        is_wide = free >= MOST_REGULAR
        wide = is_wide[:, None] | is_wide[None, :]
        self.wide_pairs: Bools = may_link & wide & ~self.required
        # A pair with more degrees of freedom than rows cannot be told from noise.
        self.allowed: Bools = may_link & ~wide & (df <= named.n_rows)

    def search(self, target: int) -> GateSearch:
        """Begin the search for one variable's gates."""
        rules, allowed = self.rules, self.allowed[target]
        required = (self.required & self.allowed)[target]
        asker = Asker(self.table, target, allowed, required, rules.alpha, rules.max_blanket)
        return GateSearch(asker, self.may_gate[target] & allowed, rules.max_gate)

    def searches(self) -> list[GateSearch]:
        """Begin the search for every variable's gates."""
        return [self.search(target) for target in range(len(self.allowed))]


def grow_gate_trees(
    data: Dataset, rules: GateRules, n_jobs: int | None, store: CheckpointStore | None, bar: Bar
) -> tuple[Ground, list[GateSearch], list[GateTree]]:
    """Grow the trees alone, then again knowing what the others found."""
    source = share_input(data, store, Ground, rules)
    ground = source.load()
    searches = ground.searches()
    bar.begin("gates of each", len(searches))
    token = _token(searches, bar)
    if store is None:
        shares = even_shares(len(searches))
        alone = cancellable_map(lambda search: search.tree(shares), searches, n_jobs, token)
    else:
        alone = _grow_kept(source, searches, n_jobs, store, token)
    found = gate_shares(alone)
    bar.begin("gates of all", len(searches))
    token = _token(searches, bar)
    trees = cancellable_map(lambda search: search.tree(found), searches, n_jobs, token)
    token = _token(searches)
    return ground, searches, cancellable(lambda: _without_rivals(searches, trees, found), token)


def _token(searches: Sequence[GateSearch], bar: Bar | None = None) -> CancelToken:
    """Let all searches hear of a stop, and the bar make a step for each."""
    token = CancelToken() if bar is None else CancelToken(bar, len(searches), len(searches))
    for search in searches:
        search.asker.token = token
    return token


def _without_rivals(
    searches: Sequence[GateSearch], trees: Sequence[GateTree], shares: Floats
) -> list[GateTree]:
    for _ in range(MAX_REVISIONS):
        rivals = part_rivals(searches, trees)
        trees = [
            searches[place].tree(shares) if place in rivals else tree for place, tree in enumerate(trees)
        ]
    return list(trees)


def _grow_kept(
    source: InMemory[Ground] | OnDisk[Ground],
    searches: Sequence[GateSearch],
    n_jobs: int | None,
    store: CheckpointStore,
    token: CancelToken,
) -> list[GateTree]:
    n = len(searches)
    n_parts = min(n, MOST_PARTS)
    parts = [range(begin, n, n_parts) for begin in range(n_parts)]
    tasks = [(source, part) for part in parts]
    done = run_shards(
        _grow_some, tasks, n_jobs=n_jobs, store=store, kind="gates", token=token, ticks=n // n_parts
    )
    trees: dict[int, GateTree] = {}
    for part, kept in zip(parts, done, strict=True):
        trees.update(zip(part, bring_back([searches[target] for target in part], kept), strict=True))
    return [trees[target] for target in range(n)]


def _grow_some(source: InMemory[Ground] | OnDisk[Ground], targets: range, token: CancelToken) -> Arrays:
    """Grow the trees of some variables, each alone."""
    ground = source.load()
    shares = even_shares(len(ground.allowed))

    def grow() -> Any:
        found = []
        for target in targets:
            search = ground.search(target)
            search.asker.token = token
            found.append((search, search.tree(shares)))
            token.tick()
        return written(found)

    return cancellable(grow, token)


def _gate_mask(domain: Domain, only: Collection[str] | None, never: Collection[str]) -> Bools:
    """Return, for each variable, whether it may be a gate."""
    allowed = np.full(len(domain), only is None)
    for names, value in ((only or (), True), (never, False)):
        for name in names:
            allowed[domain.index(name)] = value
    return allowed


def listed_names(setting: str, names: object) -> tuple[str, ...]:
    """Read a list of names."""
    if isinstance(names, str) or not isinstance(names, Collection):
        raise SettingError(f"{setting}= must be a list of names.")
    return tuple(names)
