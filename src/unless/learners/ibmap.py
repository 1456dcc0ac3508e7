"""IBMAP-HC: the graph whose independences are most probable (Schlueter, Bromberg and Edera, AMAI 2014)."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, permutations
from typing import Any, Protocol

import numpy as np

from unless.counting.strata import StrataTable, bytes_to_count
from unless.data.dataset import Dataset
from unless.data.showing import html_table
from unless.errors import SettingError
from unless.independence.oracle import DistinctCounter, add_up, scores_beside, scores_of_additions, terms_at
from unless.learners.base import Learner, Run
from unless.learners.grow_shrink.algorithm import Links
from unless.learners.settings import EdgeNames, at_least, edge_limits, learned, setting
from unless.runtime.checkpoints import Arrays, Checkpoint
from unless.runtime.interrupts import CancelToken
from unless.runtime.parallel import shares_memory
from unless.structures.graph import Graph
from unless.structures.structure import Edge
from unless.typing import Bools, Floats, Integers

Gains = Floats
Flip = tuple[int, int]
Task = tuple[int, tuple[int, ...], int | None, list[int]]
# Tasks that each worker does before what they found is taken note of, and fewer where they are large: rows
# read for all of them, about a second's work.
_AT_ONCE = 8
_ROWS_AT_ONCE = 2**27


@dataclass(frozen=True, slots=True)
class Assertion:
    """What the blanket of one variable says of another one, and how probable that is given the data."""

    claim: str
    given: tuple[str, ...]
    log_probability: float

    @property
    def probability(self) -> float:
        """The posterior probability of the claim."""
        return math.exp(self.log_probability)

    def _repr_html_(self) -> str:
        given = ", ".join(self.given) or "nothing"
        return html_table(f"{self.claim}, probability {self.probability:.3g}", ("given",), [(given,)])


class IBMAPHC(Learner):
    """Learn one graph by hill climbing on the probability of what it asserts.

    For every ordered pair a graph asserts that b depends on a given the rest of a's blanket, if b is in it,
    else that b is independent of a given the blanket. The score is the sum of the logs of the posterior
    probabilities of these assertions by the Bayesian test. From the graph of the required edges, the edge
    whose flip gains most is flipped until none gains.

    `score_` is the score reached; `assertions_` gives, for each ordered pair of names, the assertion, what
    it is conditioned on, and its probability. An edge has two: one from each of its ends.

    With `work_dir=` every score known and the way climbed so far are kept every two seconds at most, less
    often where they are many; `resume=True` goes on to the same graph, score and counts.

    Parameters
    ----------
    n_restarts
        How often to climb again from the best graph so far with some of its edges flipped at random.
    random_state
        The seed the restarts are drawn from; None draws others every time.
    max_blanket
        No variable gets more neighbours than this, unless more are required.
    required_edges, forbidden_edges
        Pairs of names that are in the graph, or not.

    Examples
    --------
    >>> import unless
    >>> est = unless.IBMAPHC().fit(unless.datasets.load_ucb_admissions())
    >>> sorted(est.structure_)
    [('Admit', 'Dept'), ('Admit', 'Gender'), ('Dept', 'Gender')]
    >>> assertion = est.assertions_["Admit", "Gender"]
    >>> assertion.claim, assertion.given
    ('dependent', ('Dept',))
    """

    kept_structure = Graph
    _work = "Climbing over graphs of {n:,} variables and {m:,} distinct rows"
    _relative_cost = 10.0
    saves_answer = True
    n_restarts: int = setting(default=0, check=at_least(0, optional=False))
    random_state: int | None = setting(default=0, check=at_least(0))
    max_blanket: int | None = setting(default=None, check=at_least(0))
    required_edges: EdgeNames = setting(default=None)
    forbidden_edges: EdgeNames = setting(default=None)
    score_: float = learned()
    assertions_: dict[Edge, Assertion] = learned()

    def _bytes_needed(self, data: Dataset, run: Run) -> int:
        n = data.n_variables
        # The first step asks n - 1 questions for each ordered pair; half of them are different, and their
        # names are sorted beside a copy. Scores are kept by blanket, terms until they are added up.
        return bytes_to_count(data, run.n_workers + 1) + 3 * 16 * n**3 // 2 + 32 * n**3 + 400 * n**2

    def _learn(self, data: Dataset, run: Run, *_: Dataset) -> None:
        # By name: the order of the columns must not decide anything, not even the rounding.
        named = data.select(sorted(data.names))
        must, never = edge_limits(named.domain, self.required_edges, self.forbidden_edges)
        table = StrataTable.of(named)
        scorer = Scorer(table, run)
        limits = FlipLimits(
            flippable(table.columns.n_used > 1, must, never),
            len(must) if self.max_blanket is None else self.max_blanket,
        )
        rng = np.random.default_rng(self.random_state)
        restarts = Restarts(scorer, must, limits, rng, run.checkpoint("climb"))
        best = restarts.best_of(self.n_restarts, run)
        edges = ((named.names[a], named.names[b]) for a, b in np.argwhere(np.triu(best.links)))
        graph = Graph(data.domain, edges)
        # Asks tests too: nothing is set before all is known.
        self.assertions_ = _assertions(table, graph, named.names)
        self.structure_, self.score_ = graph, best.score
        self.n_tests_ = scorer.n_asked
        self.n_distinct_tests_ = scorer.counter.n_distinct

    def _to_record(self) -> tuple[Graph, dict[str, Any]]:
        # Claims and what they are conditioned on follow from the graph.
        listed = [
            {"variable": a, "other": b, "log_probability": assertion.log_probability}
            for (a, b), assertion in self.assertions_.items()
        ]
        return self.structure_, {"score": self.score_, "assertions": listed}

    def _from_record(self, structure: Any, results: Mapping[str, Any]) -> None:
        super()._from_record(structure, results)
        if not isinstance(results["score"], float):
            raise SettingError("its score is no number")
        self.score_ = results["score"]
        self.assertions_ = {
            (one["variable"], one["other"]): _assertion(
                structure, one["variable"], one["other"], one["log_probability"]
            )
            for one in results["assertions"]
        }


def flippable(varies: Bools, must: Links, never: Links) -> Links:
    """Tell which edges a climb may touch: a variable that shows a single level has nothing to say."""
    allowed: Links = ~(must | never) & varies[:, None] & varies[None, :]
    np.fill_diagonal(allowed, False)
    return allowed


def _assertions(table: StrataTable, graph: Graph, names: tuple[str, ...]) -> dict[Edge, Assertion]:
    work, assertions = table.workspace(), {}
    for a, name in enumerate(names):
        blanket = sorted(names.index(other) for other in graph.neighbours(name))
        terms = terms_at(table, a, blanket, work)
        for b, other in enumerate(names):
            if b != a:
                assertions[name, other] = _assertion(graph, name, other, float(terms[b]))
    return assertions


def _assertion(graph: Graph, name: str, other: str, log_probability: float) -> Assertion:
    given = tuple(sorted(set(graph.neighbours(name)) - {other}))
    claim = "dependent" if graph.has_edge(name, other) else "independent"
    return Assertion(claim, given, log_probability)


@dataclass(frozen=True)
class FlipLimits:
    """Which edges may be flipped, and how many a variable may have."""

    flippable: Links
    max_blanket: int

    def flips(self, links: Links) -> Links:
        """Return the flips this graph allows, as a symmetric matrix."""
        full = links.sum(axis=1) >= self.max_blanket
        return np.asarray(self.flippable & (links | ~(full[:, None] | full[None, :])))


@dataclass(frozen=True)
class LocalOptimum:
    """The graph at which a climb ended, its score, and every flip with the score it led to."""

    links: Links
    score: float
    path: tuple[tuple[Flip, float], ...]


@dataclass
class SearchState:
    """A climb that has not ended: its graph, and every flip so far with the score it led to."""

    links: Links
    path: list[tuple[Flip, float]] = field(default_factory=list)


def tolerance(score: float) -> float:
    """Return by how much scores must differ to count as different: less may be rounding."""
    return 1e-9 + 1e-12 * abs(score)


class GraphScorer(Protocol):
    """What hill climbing needs to know of graphs."""

    def score(self, links: Links) -> float:
        """Return the score of a graph."""

    def gains(self, links: Links, allowed: Links) -> Gains:
        """Return what each allowed flip would add to the score; minus infinity for all others."""


@dataclass
class PlainScorer:
    """The reference score: each assertion of a graph is asked for, and each neighbour scored in full.

    `log_probability(a, b, given, dependent)` is the log of the probability that a and b are dependent given
    some variables, or that they are independent.
    """

    log_probability: Callable[[int, int, frozenset[int], bool], float]

    def score(self, links: Links) -> float:
        """Return the IB-score: the sum, over ordered pairs, of what the blanket of a says about b."""
        terms = []
        for a, b in permutations(range(len(links)), 2):
            blanket = frozenset(neighbours(links, a))
            terms.append(self.log_probability(a, b, blanket - {b}, b in blanket))
        return math.fsum(terms)

    def gains(self, links: Links, allowed: Links) -> Gains:
        """Return what each allowed flip would add to the score; minus infinity for all others."""
        here, gains = self.score(links), np.full(links.shape, -np.inf)
        for a, b in np.argwhere(np.triu(allowed, 1)).tolist():
            flipped = links.copy()
            flip(flipped, a, b)
            gains[a, b] = gains[b, a] = self.score(flipped) - here
        return gains


@dataclass
class Scorer:
    """The fast score: the scores of variables by their blankets, each computed once.

    The score of a variable is the sum of the log probabilities of what its blanket asserts; that of a graph
    is the sum of those. So a flip changes the scores of two variables, and after it only flips of those two
    are unknown.
    """

    table: StrataTable
    run: Run = field(default_factory=Run)
    n_asked: int = 0
    known: dict[tuple[int, tuple[int, ...]], float] = field(default_factory=dict)
    # Called whenever more scores are known, if that is wanted before all flips are.
    on_progress: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        self.counter = DistinctCounter(self.table.n_variables)
        self.work = self.table.workspace()
        # The scores around the blankets of the graph that was asked about last.
        self._near: dict[int, tuple[tuple[int, ...], Gains]] = {}

    def score(self, links: Links) -> float:
        """Return the score of a graph."""
        return math.fsum(self.of_variables(links))

    def of_variables(self, links: Links) -> list[float]:
        """Return the score of each variable."""
        for a in range(len(links)):
            blanket = neighbours(links, a)
            if (a, blanket) not in self.known:
                self.learn(a, blanket, math.fsum(terms_at(self.table, a, blanket, self.work)))
        return [self.known[a, neighbours(links, a)] for a in range(len(links))]

    def learn(self, a: int, blanket: tuple[int, ...], score: float) -> None:
        """Remember the score of a variable under a blanket, and what it took to know it."""
        self.known[a, blanket] = score
        self.counter.add(a, blanket)

    def gains(self, links: Links, allowed: Links) -> Gains:
        """Return what each allowed flip would add to the score; minus infinity for all others."""
        scores = np.array([self._around(a, neighbours(links, a)) for a in range(len(links))])
        wanted = {}
        for a in np.flatnonzero((allowed & np.isnan(scores)).any(axis=1)).tolist():
            wanted[a] = np.flatnonzero(allowed[a] & np.isnan(scores[a])).tolist()
        for batch in self._compute(links, wanted):
            for a, found in batch.items():
                blanket = neighbours(links, a)
                for c, score in found.items():
                    self.learn(a, toggled(blanket, c), score)
                    self._near[a][1][c] = scores[a, c] = score
            if self.on_progress is not None:
                self.on_progress()
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
        tasks = {a: list(_tasks(a, neighbours(links, a), flips)) for a, flips in wanted.items()}
        n_tasks = sum(map(len, tasks.values()))
        # The first look is at all flips and by far the longest: it has a time left of its own.
        token = self.run.steps(n_tasks, "looking at all flips") if len(wanted) > 2 else CancelToken()
        # Workers that do not share this memory get the table with every batch.
        in_batches = self.on_progress is not None and shares_memory()
        n_rows = self.table.n_distinct * self.table.n_variables**2
        at_once = self.run.n_workers * max(1, min(_AT_ONCE, _ROWS_AT_ONCE // max(1, n_rows)))
        try:
            for batch in _batches(tasks, at_once if in_batches else n_tasks):
                yield self._spread(batch, token)
        finally:
            # Threads that are still at work after Ctrl-C would go on to the end.
            token.cancel()

    def _spread(self, tasks: list[Task], token: CancelToken) -> dict[int, dict[int, float]]:
        from joblib import Parallel, delayed

        n_workers = self.run.n_workers
        parts = [tasks[number::n_workers] for number in range(n_workers)]
        # Threads share the table, kernels release the interpreter; the backend stays the user's choice.
        done = Parallel(n_jobs=n_workers, prefer="threads")(
            delayed(_run)(self.table, part, token) for part in parts if part
        )
        terms: dict[int, list[dict[int, list[float]]]] = {}
        for part in done:
            for a, scores in part:
                terms.setdefault(a, []).append(scores)
        return {a: add_up(scores) for a, scores in terms.items()}


def ascend(
    scorer: GraphScorer, state: SearchState, limits: FlipLimits, run: Run | None = None
) -> LocalOptimum:
    """Flip the edge that gains most, again and again, until none gains; ties go to the first by position."""
    run = run or Run()
    steps: CancelToken | None = None
    links, path, n_before = state.links, state.path, len(state.path)
    score = scorer.score(links)
    while True:
        gains = np.triu(scorer.gains(links, limits.flips(links)), 1)
        # Below the diagonal there is nothing to flip.
        gains[np.tril_indices(len(links))] = -np.inf
        best, margin = gains.max(initial=-np.inf), tolerance(score)
        # After the first look, which has steps of its own.
        steps = steps or run.steps(None, "flipping edges")
        run.bar.set_total(len(path) - n_before + n_joins(links, gains > margin))
        if best <= margin:
            return LocalOptimum(links, score, tuple(path))
        a, b = (int(end) for end in np.argwhere(gains >= best - margin)[0])
        flip(links, a, b)
        score = scorer.score(links)
        path.append(((a, b), score))
        steps.tick()


def n_joins(links: Links, gaining: Links) -> int:
    """Return how many flips it takes at least to connect all that edges which gain would connect.

    How many flips there will be in all is not known; of those that gain now, most will not once a few of
    them have been made. Graphs grow like trees, so these are most of them.
    """
    from scipy.sparse.csgraph import connected_components

    apart, _ = connected_components(links, directed=False)
    joined, _ = connected_components(links | gaining, directed=False)
    return int(apart - joined)


def perturbed(links: Links, limits: FlipLimits, rng: np.random.Generator) -> Links:
    """Flip as many random edges as there are variables, or as many as there are to flip."""
    return flip_in_turn(links, limits, rng.permutation(np.argwhere(np.triu(limits.flippable, 1))))


def flip_in_turn(links: Links, limits: FlipLimits, pairs: Integers) -> Links:
    """Flip one pair after the other, where the limits allow it, until as many are flipped as variables."""
    changed, n_left = links.copy(), len(links)
    for a, b in pairs:
        if n_left and limits.flips(changed)[a, b]:
            flip(changed, a, b)
            n_left -= 1
    return changed


def flip(links: Links, a: int, b: int) -> None:
    """Link two variables, or take their link away."""
    links[a, b] = links[b, a] = not links[a, b]


def neighbours(links: Links, a: int) -> tuple[int, ...]:
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
    work, done = table.workspace(), []
    for a, blanket, member, flips in tasks:
        if member is None:
            terms = scores_of_additions(table, a, blanket, flips, work)
        else:
            terms = scores_beside(table, a, blanket, member, flips, work)
        done.append((a, terms))
        token.tick()
    return done


class Restarts:
    """Hill climbing from a start, and again from the best graph so far with some of its edges flipped."""

    def __init__(
        self,
        scorer: Scorer,
        start: Links,
        limits: FlipLimits,
        rng: np.random.Generator,
        checkpoint: Checkpoint,
    ) -> None:
        self._scorer, self._limits, self._rng, self._checkpoint = scorer, limits, rng, checkpoint
        self._n_ended = 0
        self._best: LocalOptimum | None = None
        saved = checkpoint.read()
        if saved is None:
            self._state = self._start(start)
        else:
            self._state = self._restore(saved)
        if checkpoint.is_saved:
            # Between two looks all is as it would be had the work never been stopped.
            scorer.on_progress = lambda: checkpoint.save(self._to_arrays)

    def best_of(self, n_restarts: int, run: Run) -> LocalOptimum:
        """Ascend, and so many times again; return the best."""
        while True:
            done = ascend(self._scorer, self._state, self._limits, run)
            if self._best is None or done.score > self._best.score + tolerance(self._best.score):
                self._best = done
            if self._n_ended == n_restarts:
                return self._best
            self._n_ended += 1
            self._state = self._start(perturbed(self._best.links, self._limits, self._rng))

    def _start(self, links: Links) -> SearchState:
        self._scorer.n_asked += len(links) * (len(links) - 1)
        return SearchState(links.copy())

    def _to_arrays(self) -> Arrays:
        known = self._scorer.known
        facts = {
            "n_asked": self._scorer.n_asked,
            "n_ended": self._n_ended,
            "rng": self._rng.bit_generator.state,
            "best_score": None if self._best is None else self._best.score,
        }
        best = () if self._best is None else _path_arrays("best", self._best.links, self._best.path).items()
        return {
            "told": np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8),
            **_path_arrays("here", self._state.links, self._state.path),
            **dict(best),
            "variables": np.fromiter((a for a, _ in known), dtype=np.int32),
            "sizes": np.fromiter((len(blanket) for _, blanket in known), dtype=np.int32),
            "members": np.fromiter(chain.from_iterable(blanket for _, blanket in known), dtype=np.int32),
            "scores": np.fromiter(known.values(), dtype=np.float64),
        }

    def _restore(self, saved: Arrays) -> SearchState:
        facts: Mapping[str, Any] = json.loads(saved["told"].tobytes())
        members, sizes = iter(saved["members"].tolist()), saved["sizes"].tolist()
        for a, size, score in zip(saved["variables"].tolist(), sizes, saved["scores"].tolist(), strict=True):
            # What was asked follows from what is known.
            self._scorer.learn(a, tuple(islice(members, size)), score)
        self._scorer.n_asked, self._n_ended = facts["n_asked"], facts["n_ended"]
        self._rng.bit_generator.state = facts["rng"]
        if facts["best_score"] is not None:
            links, path = _read_path("best", saved)
            self._best = LocalOptimum(links, facts["best_score"], tuple(path))
        return SearchState(*_read_path("here", saved))


def _path_arrays(name: str, links: Links, path: Sequence[tuple[Flip, float]]) -> Arrays:
    return {
        f"{name}_links": links,
        f"{name}_flips": np.array([flip for flip, _ in path], dtype=np.int32).reshape(-1, 2),
        f"{name}_scores": np.array([score for _, score in path], dtype=np.float64),
    }


def _read_path(name: str, saved: Arrays) -> tuple[Links, list[tuple[Flip, float]]]:
    flips = ((int(a), int(b)) for a, b in saved[f"{name}_flips"].tolist())
    return saved[f"{name}_links"], list(zip(flips, saved[f"{name}_scores"].tolist(), strict=True))
