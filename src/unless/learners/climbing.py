"""Best-improvement hill climbing over graphs by the IB-score, one edge flipped at a time."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from unless.counting.strata import StrataTable
from unless.independence.oracle import DistinctCounter, add_up, scores_beside, scores_of_additions, terms_at
from unless.runtime.interrupts import CancelToken
from unless.runtime.parallel import shares_memory
from unless.runtime.progress import Bar

Links = npt.NDArray[np.bool_]
Gains = npt.NDArray[np.float64]
Flip = tuple[int, int]
Task = tuple[int, tuple[int, ...], int | None, list[int]]
# Tasks that each worker does before what they found is taken note of, and fewer where they are large: rows
# read for all of them, about a second's work.
_AT_ONCE = 8
_ROWS_AT_ONCE = 2**27


@dataclass(frozen=True)
class Limits:
    """Which edges may be flipped, and how many a variable may have."""

    flippable: Links
    max_blanket: int

    def flips(self, links: Links) -> Links:
        """Return the flips this graph allows, as a symmetric matrix."""
        full = links.sum(axis=1) >= self.max_blanket
        return np.asarray(self.flippable & (links | ~(full[:, None] | full[None, :])))


@dataclass(frozen=True)
class Climb:
    """Where a climb ended, and every flip on its way with the score it led to."""

    links: Links
    score: float
    path: tuple[tuple[Flip, float], ...]


@dataclass
class Way:
    """A climb that has not ended: where it is, and every flip so far with the score it led to."""

    links: Links
    path: list[tuple[Flip, float]] = field(default_factory=list)


def tolerance(score: float) -> float:
    """Return by how much scores must differ to count as different: less may be rounding."""
    return 1e-9 + 1e-12 * abs(score)


@dataclass
class Scorer:
    """The scores of variables by their blankets, each computed once.

    The score of a variable is the sum of the log probabilities of what its blanket asserts; that of a graph
    is the sum of those. So a flip changes the scores of two variables, and after it only flips of those two
    are unknown.
    """

    table: StrataTable
    n_workers: int = 1
    n_asked: int = 0
    bar: Bar = field(default_factory=Bar)
    known: dict[tuple[int, tuple[int, ...]], float] = field(default_factory=dict)
    # Called whenever more is known, if somebody wants to hear of it before all flips are.
    note: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        self.tally = DistinctCounter(self.table.n_variables)
        self.desk = self.table.workspace()
        # The scores around the blankets of the graph that was asked about last.
        self._near: dict[int, tuple[tuple[int, ...], Gains]] = {}

    def score(self, links: Links) -> float:
        """Return the score of a graph."""
        return math.fsum(self.of_variables(links))

    def of_variables(self, links: Links) -> list[float]:
        """Return the score of each variable."""
        for a in range(len(links)):
            blanket = blanket_of(links, a)
            if (a, blanket) not in self.known:
                self.learn(a, blanket, math.fsum(terms_at(self.table, a, blanket, self.desk)))
        return [self.known[a, blanket_of(links, a)] for a in range(len(links))]

    def learn(self, a: int, blanket: tuple[int, ...], score: float) -> None:
        """Remember the score of a variable under a blanket, and what it took to know it."""
        self.known[a, blanket] = score
        self.tally.add(a, blanket)

    def gains(self, links: Links, allowed: Links) -> Gains:
        """Return what each allowed flip would add to the score; minus infinity for all others."""
        scores = np.array([self._around(a, blanket_of(links, a)) for a in range(len(links))])
        wanted = {}
        for a in np.flatnonzero((allowed & np.isnan(scores)).any(axis=1)).tolist():
            wanted[a] = np.flatnonzero(allowed[a] & np.isnan(scores[a])).tolist()
        for batch in self._compute(links, wanted):
            for a, found in batch.items():
                blanket = blanket_of(links, a)
                for c, score in found.items():
                    self.learn(a, toggled(blanket, c), score)
                    self._near[a][1][c] = scores[a, c] = score
            if self.note is not None:
                self.note()
        self.n_asked += int(allowed.sum()) * (len(links) - 1)
        change = np.where(allowed, scores - np.array(self.of_variables(links))[:, None], -np.inf)
        return np.asarray(change + change.T)

    def _around(self, a: int, blanket: tuple[int, ...]) -> Gains:
        """Return the scores of a after each flip of its blanket, those not known yet as nan."""
        if a not in self._near or self._near[a][0] != blanket:
            flipped = (
                self.known.get((a, toggled(blanket, c)), math.nan) for c in range(self.table.n_variables)
            )
            self._near[a] = (blanket, np.fromiter(flipped, dtype=np.float64))
        return self._near[a][1]

    def _compute(self, links: Links, wanted: dict[int, list[int]]) -> Iterator[dict[int, dict[int, float]]]:
        tasks = {a: list(_tasks(a, blanket_of(links, a), flips)) for a, flips in wanted.items()}
        n_tasks = sum(map(len, tasks.values()))
        # The first look is at all flips and by far the longest: it has a time left of its own.
        token = CancelToken(self.bar, n_tasks, n_tasks) if len(wanted) > 2 else CancelToken()
        if len(wanted) > 2:
            self.bar.begin("looking at all flips", n_tasks)
        # Workers that do not share this memory get the table with every batch.
        in_batches = self.note is not None and shares_memory()
        n_rows = self.table.n_distinct * self.table.n_variables**2
        at_once = self.n_workers * max(1, min(_AT_ONCE, _ROWS_AT_ONCE // max(1, n_rows)))
        try:
            for batch in _batches(tasks, at_once if in_batches else n_tasks):
                yield self._spread(batch, token)
        finally:
            # Threads that are still at work after Ctrl-C would go on to the end.
            token.cancel()

    def _spread(self, tasks: list[Task], token: CancelToken) -> dict[int, dict[int, float]]:
        from joblib import Parallel, delayed

        parts = [tasks[place :: self.n_workers] for place in range(self.n_workers)]
        # Threads share the table, kernels release the interpreter; the backend stays the user's choice.
        done = Parallel(n_jobs=self.n_workers, prefer="threads")(
            delayed(_run)(self.table, part, token) for part in parts if part
        )
        terms: dict[int, list[dict[int, list[float]]]] = {}
        for part in done:
            for a, scores in part:
                terms.setdefault(a, []).append(scores)
        return {a: add_up(scores) for a, scores in terms.items()}


def climb(scorer: Scorer, links: Links, limits: Limits, bar: Bar | None = None) -> Climb:
    """Flip the edge that gains most, again and again, until none gains; ties go to the first by position."""
    return climb_on(scorer, Way(links.copy()), limits, Bar() if bar is None else bar)


def climb_on(scorer: Scorer, way: Way, limits: Limits, bar: Bar) -> Climb:
    """Go on with a climb to its end."""
    links, path, n_before = way.links, way.path, len(way.path)
    score, has_begun = scorer.score(links), False
    while True:
        gains = np.triu(scorer.gains(links, limits.flips(links)), 1)
        # Below the diagonal there is nothing to flip.
        gains[np.tril_indices(len(links))] = -np.inf
        best, margin = gains.max(initial=-np.inf), tolerance(score)
        n_flips = len(path) - n_before + n_joins(links, gains > margin)
        if has_begun:
            bar.set_total(n_flips)
        else:
            bar.begin("flipping edges", n_flips)
            has_begun = True
        if best <= margin:
            return Climb(links, score, tuple(path))
        a, b = (int(end) for end in np.argwhere(gains >= best - margin)[0])
        flip(links, a, b)
        score = scorer.score(links)
        path.append(((a, b), score))
        bar()


def n_joins(links: Links, gaining: Links) -> int:
    """Return how many flips it takes at least to connect all that edges which gain would connect.

    How many flips there will be in all nobody knows; of those that gain now, most will not once a few of
    them have been made. Graphs grow like trees, so these are most of them.
    """
    apart, _ = connected_components(links, directed=False)
    joined, _ = connected_components(links | gaining, directed=False)
    return int(apart - joined)


def perturbed(links: Links, limits: Limits, rng: np.random.Generator) -> Links:
    """Flip as many random edges as there are variables, or as many as there are to flip."""
    changed = links.copy()
    pairs = np.argwhere(np.triu(limits.flippable, 1))
    n_left = len(links)
    for a, b in rng.permutation(pairs):
        if n_left and limits.flips(changed)[a, b]:
            flip(changed, a, b)
            n_left -= 1
    return changed


def flip(links: Links, a: int, b: int) -> None:
    """Link two variables, or take their link away."""
    links[a, b] = links[b, a] = not links[a, b]


def blanket_of(links: Links, a: int) -> tuple[int, ...]:
    """Return the neighbours of a variable."""
    return tuple(np.flatnonzero(links[a]).tolist())


def toggled(blanket: Iterable[int], c: int) -> tuple[int, ...]:
    """Return the blanket with c in it if it was out, and out if it was in."""
    return tuple(sorted(set(blanket) ^ {c}))


def _tasks(a: int, blanket: tuple[int, ...], flips: list[int]) -> Iterator[Task]:
    """Cut the work for one variable: for everyone outside its blanket, and for each member."""
    added = [c for c in flips if c not in blanket]
    # Small enough to spread over workers, large enough that grouping the rows first is worth it.
    for begin in range(0, len(added), 16):
        yield a, blanket, None, added[begin : begin + 16]
    for member in blanket:
        yield a, blanket, member, flips


def _batches(tasks: dict[int, list[Task]], size: int) -> Iterator[list[Task]]:
    """Put tasks together, those of a variable never apart, until there are enough."""
    batch: list[Task] = []
    for some in tasks.values():
        batch += some
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


def _run(
    table: StrataTable, tasks: list[Task], token: CancelToken
) -> list[tuple[int, dict[int, list[float]]]]:
    desk, done = table.workspace(), []
    for a, blanket, member, flips in tasks:
        if member is None:
            terms = scores_of_additions(table, a, blanket, flips, desk)
        else:
            terms = scores_beside(table, a, blanket, member, flips, desk)
        done.append((a, terms))
        token.tick()
    return done
