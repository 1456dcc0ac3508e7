"""A clique tree from an order of elimination: which variables each clique sums out, and where features go."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unless.inference.conditioning import Ints, Tree

# Low places of a table: small enough to stay in the fastest cache.
LOW_CELLS = 256


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


def cliques_of(tree: Tree) -> tuple[list[Clique], Ints]:
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


def homes(tree: Tree, clique_of_step: Ints) -> Ints:
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
