"""GSMN: one graph by Grow-Shrink with pooled tests (Bromberg, Margaritis and Honavar, JAIR 2009)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self

import numpy as np

from unless.counting.strata import bytes_to_count, bytes_to_join
from unless.data.dataset import Dataset
from unless.independence.oracle import Associations, PooledOracle
from unless.independence.tests import Answer
from unless.learners.base import Learner, Run
from unless.learners.grow_shrink.algorithm import Links, Oracle
from unless.learners.settings import EdgeNames, at_least, between, edge_limits, resolve_order, setting
from unless.runtime.checkpoints import Arrays, Checkpoint, iterate
from unless.runtime.interrupts import CancelToken
from unless.runtime.parallel import InMemory, OnDisk
from unless.structures.graph import Graph

# Whole counts put statistics just halfway between two roundings; multiples of this are not.
_GOLDEN = 1.6180339887


class GSMN(Learner):
    """Learn one graph: a blanket for every variable by Grow-Shrink, joined by a rule.

    Each question is a test of two variables given a blanket, pooled over the blanket's strata: statistics
    and degrees of freedom are summed.

    With `work_dir=` finished blankets are kept; "gsmn*", one visit upon the other, keeps them every two
    seconds at most.

    Parameters
    ----------
    alpha
        Two variables are dependent where the test's p is below this.
    test
        "pearson", "likelihood_ratio" or "bayesian", for which alpha has no part.
    variant
        "gsmn" learns every blanket alone. "gsmn*" visits the most strongly associated variables first,
        takes over what they found about a later one, never asks about pairs that are unconditionally
        independent, and shrinks in the reverse order of addition; it asks fewer questions.
    rule
        How blankets are joined: "or" needs one end of an edge, "and" both. The blankets of "gsmn*" agree.
    order
        In which order candidates are tried: "association" (by increasing p of the unconditional test),
        "columns", or a list of all names.
    max_blanket
        Grow stops at a blanket of this size.
    undecided
        How a test without enough data is read: "independent", or "keep", which neither adds an edge nor
        removes it.
    effect
        A test that finds nothing is undecided when its power against Cohen's w = effect is below 80 %.
    required_edges, forbidden_edges
        Pairs of names that are in the graph, or not.

    Examples
    --------
    >>> import unless
    >>> est = unless.GSMN().fit(unless.datasets.load_ucb_admissions())
    >>> sorted(est.structure_)
    [('Admit', 'Dept'), ('Admit', 'Gender'), ('Dept', 'Gender')]
    """

    kept_structure = Graph
    _work = "A graph over {n:,} variables and {m:,} distinct rows"

    alpha: float = setting(default=0.05, check=between(0, 1), kw_only=False)
    test: Literal["pearson", "likelihood_ratio", "bayesian"] = setting(default="pearson")
    variant: Literal["gsmn", "gsmn*"] = setting(default="gsmn")
    rule: Literal["or", "and"] = setting(default="or")
    order: str | Sequence[str] = setting(default="association")
    max_blanket: int | None = setting(default=None, check=at_least(0))
    undecided: Literal["independent", "keep"] = setting(default="independent")
    effect: float = setting(default=0.3, check=between(0, math.inf))
    required_edges: EdgeNames = setting(default=None)
    forbidden_edges: EdgeNames = setting(default=None)

    def _bytes_needed(self, data: Dataset, run: Run) -> int:
        sharing = min(run.n_sharing_memory, data.n_variables)
        # Per pair: associations as they are found and settled, and a few questions by name.
        return bytes_to_count(data, sharing) + bytes_to_join(data, sharing) + 1000 * data.n_variables**2

    def _learn(self, data: Dataset, run: Run, *_: Dataset) -> None:
        named = _by_name(data)
        settings = self.test, float(self.alpha), float(self.effect), self.undecided == "keep"
        oracle = _make_oracle(data, *settings)
        rules = self._rules(data, named)
        learned = learn_graph(oracle, rules, run, run.share(oracle, _make_oracle, data, *settings))
        self.structure_ = Graph(data.domain, ((named.names[a], named.names[b]) for a, b in learned.edges))
        self.n_tests_ = learned.n_tests
        self.n_distinct_tests_ = learned.n_distinct_tests

    def _rules(self, data: Dataset, named: Dataset) -> "GsmnRules":
        order = None
        if not (isinstance(self.order, str) and self.order == "association"):
            order = [named.domain.index(data.names[column]) for column in resolve_order(data, self.order)]
        must, never = edge_limits(named.domain, self.required_edges, self.forbidden_edges)
        return GsmnRules(
            must,
            never,
            order,
            collaborates=self.variant == "gsmn*",
            join_both=self.rule == "and",
            keep_undecided=self.undecided == "keep",
            max_blanket=self.max_blanket,
        )


def _by_name(data: Dataset) -> Dataset:
    # The order of the columns must not decide anything, not even the rounding.
    return data.select(sorted(data.names))


def _make_oracle(data: Dataset, test: str, alpha: float, effect: float, keep_undecided: bool) -> PooledOracle:
    return PooledOracle.of(_by_name(data), test, alpha, effect, weighs_power=keep_undecided)


def grow(
    a: int,
    candidates: Sequence[int],
    blanket: list[int],
    oracle: Oracle,
    max_blanket: int,
    copied: Sequence[int] = (),
) -> None:
    """Add candidates that depend on a given the blanket so far, until there is none.

    Passes over the candidates are repeated, but none is asked about twice given the same blanket. What is
    copied joins after the first pass.
    """
    asked_at: dict[int, int] = {}
    before, late = -1, list(copied)
    while before != len(blanket):
        before = len(blanket)
        for b in candidates:
            if len(blanket) >= max_blanket:
                break
            if b in blanket or asked_at.get(b) == len(blanket):
                continue
            asked_at[b] = len(blanket)
            if oracle.says_dependent(a, b, blanket):
                blanket.append(b)
        blanket.extend(late)
        late = []


def shrink(a: int, in_turn: Sequence[int], blanket: list[int], oracle: Oracle, fixed: Iterable[int]) -> None:
    """Remove what is independent of a given the rest of the blanket, until there is nothing."""
    asked_at: dict[int, int] = dict.fromkeys(fixed, -1)
    before = -1
    while before != len(blanket):
        before = len(blanket)
        for b in in_turn:
            if b not in blanket or asked_at.get(b) in (-1, len(blanket)):
                continue
            asked_at[b] = len(blanket)
            # A blanket is tested without b itself, else b would explain itself away.
            if oracle.says_independent(a, b, set(blanket) - {b}):
                blanket.remove(b)


class PairOracle(Protocol):
    """What answers questions of GSMN: a table, or in tests a known distribution."""

    @property
    def n_variables(self) -> int:
        """The number of variables."""

    def fresh(self) -> Self:
        """Return one that another thread can ask."""

    def ask(self, a: int, b: int, given: frozenset[int]) -> Answer:
        """Tell whether two variables are independent given some others."""

    def associations(self) -> Associations:
        """Ask about every two variables, given nothing."""


@dataclass(frozen=True)
class GsmnRules:
    """What may be linked, and how blankets are found; `order` is None where association decides."""

    required: Links
    forbidden: Links
    order: Sequence[int] | None = None
    collaborates: bool = False
    join_both: bool = False
    keep_undecided: bool = False
    max_blanket: int | None = None


@dataclass(frozen=True)
class LearnedGraph:
    """The edges found, and what they cost."""

    edges: list[tuple[int, int]]
    n_tests: int
    n_distinct_tests: int


@dataclass
class CountingOracle:
    """Passes questions on, and counts them: all, and the different ones."""

    source: PairOracle
    keep_undecided: bool
    token: CancelToken = field(default_factory=CancelToken)
    n_asked: int = 0
    asked: set[bytes] = field(default_factory=set)

    def says_dependent(self, a: int, b: int, given: Iterable[int]) -> bool:
        """Tell whether a and b are surely dependent."""
        return self._ask(a, b, given) == "dependent"

    def says_independent(self, a: int, b: int, given: Iterable[int]) -> bool:
        """Tell whether a and b read as independent."""
        answer = self._ask(a, b, given)
        return answer == "independent" or (answer == "undecided" and not self.keep_undecided)

    def _ask(self, a: int, b: int, given: Iterable[int]) -> Answer:
        conditions = frozenset(given)
        self.n_asked += 1
        self.asked.add(_name(a, b, conditions, self.source.n_variables))
        self.token.check()
        return self.source.ask(a, b, conditions)

    def arrays(self) -> Arrays:
        """Return what was asked, one name a row."""
        width = len(_name(0, 0, (), self.source.n_variables))
        names = np.frombuffer(b"".join(sorted(self.asked)), dtype=np.uint8).reshape(-1, width)
        return {"n_asked": np.array(self.n_asked), "asked": names}

    def restore(self, saved: Arrays) -> None:
        """Restore what was asked before the work was stopped."""
        self.n_asked = int(saved["n_asked"])
        self.asked.update(row.tobytes() for row in saved["asked"])


def _name(a: int, b: int, given: Iterable[int], n_variables: int) -> bytes:
    """Name a question in little room: there may be hundreds of thousands, given tens of variables each."""
    low, high = min(a, b), max(a, b)
    conditions = sum(1 << c for c in given)
    return b"".join(
        (low.to_bytes(4, "big"), high.to_bytes(4, "big"), conditions.to_bytes(-(-n_variables // 8), "big"))
    )


def learn_graph(
    source: PairOracle,
    rules: GsmnRules,
    run: Run | None = None,
    shared: InMemory[Any] | OnDisk[Any] | None = None,
) -> LearnedGraph:
    """Learn every blanket, a step of the run each, and join them.

    `shared` gives workers of other processes an oracle like this one.
    """
    n, run = source.n_variables, run or Run()
    token = run.steps(n)
    needs_associations = rules.order is None or rules.collaborates
    associations = source.associations() if needs_associations else None
    candidates = [_candidates(a, n, associations, rules) for a in range(n)]
    shared = InMemory(source) if shared is None else shared
    if rules.collaborates and associations is not None:
        sequence = visiting_order(associations) if rules.order is None else list(rules.order)
        parts = [range(n)]
        tasks: list[tuple[Any, ...]] = [(shared, rules, candidates, sequence, run.checkpoint("visits"))]
        done = run.shards(_learn_together, tasks, token=token, ticks=n)
    else:
        parts = run.cut(n, run.n_workers)
        tasks = [(shared, rules, part, [candidates[a] for a in part]) for part in parts]
        done = run.shards(_learn_apart, tasks, token=token, ticks=n // len(parts))
    blankets, n_tests, asked = _join(n, parts, done)
    if needs_associations:
        n_tests += n * (n - 1) // 2
        asked.update(_name(a, b, (), n) for a in range(n) for b in range(a + 1, n))
    joined = blankets & blankets.T if rules.join_both else blankets | blankets.T
    edges = [(int(a), int(b)) for a, b in np.argwhere(np.triu(joined))]
    return LearnedGraph(edges, n_tests, len(asked))


def _join(n: int, parts: Sequence[range], done: Sequence[Arrays]) -> tuple[Links, int, set[bytes]]:
    blankets, n_tests = np.zeros((n, n), dtype=np.bool_), 0
    asked: set[bytes] = set()
    for part, learned in zip(parts, done, strict=True):
        blankets[part.start : part.stop : part.step] = learned["blankets"]
        n_tests += int(learned["n_asked"])
        asked.update(row.tobytes() for row in learned["asked"])
    return blankets, n_tests, asked


def visiting_order(associations: Associations) -> list[int]:
    """Return the variables by increasing mean log p with all others, ties by position."""
    n = len(associations.log_p)
    means = [
        settled(math.fsum(settled(associations.log_p[a, b]) for b in range(n) if b != a) / max(n - 1, 1))
        for a in range(n)
    ]
    return sorted(range(n), key=lambda a: means[a])


def settled(value: float) -> float:
    """Drop the digits that rounding may have made: they must not break a tie."""
    return float(f"{round(_GOLDEN * float(value), 9):.9g}")


def _candidates(a: int, n: int, associations: Associations | None, rules: GsmnRules) -> list[int]:
    """Return the variables that may enter the blanket of a, in the order in which they are asked about."""
    order = range(n) if rules.order is None else rules.order
    others = [b for b in order if b != a and not rules.forbidden[a, b] and not rules.required[a, b]]
    if associations is None:
        return others
    if rules.collaborates:
        others = [b for b in others if associations.is_dependent[a, b]]
    if rules.order is None:
        others.sort(key=lambda b: (settled(associations.log_p[a, b]), -settled(associations.strength[a, b])))
    return others


def _learn_apart(
    shared: InMemory[Any] | OnDisk[Any],
    rules: GsmnRules,
    variables: range,
    candidates: list[list[int]],
    token: CancelToken,
) -> Arrays:
    """Learn the blankets of some variables, each alone (GSMN)."""
    oracle = CountingOracle(shared.load().fresh(), rules.keep_undecided, token)
    n = oracle.source.n_variables
    limit = n if rules.max_blanket is None else rules.max_blanket
    blankets = np.zeros((len(variables), n), dtype=np.bool_)
    for row, (a, others) in enumerate(zip(variables, candidates, strict=True)):
        required = np.flatnonzero(rules.required[a]).tolist()
        blanket = list(required)
        grow(a, others, blanket, oracle, limit)
        shrink(a, others, blanket, oracle, required)
        blankets[row, blanket] = True
        token.tick()
    return {"blankets": blankets, **oracle.arrays()}


def _learn_together(
    shared: InMemory[Any] | OnDisk[Any],
    rules: GsmnRules,
    candidates: list[list[int]],
    sequence: Sequence[int],
    checkpoint: Checkpoint,
    token: CancelToken,
) -> Arrays:
    oracle = CountingOracle(shared.load().fresh(), rules.keep_undecided, token)
    return iterate(BlanketsInTurn(oracle, rules, candidates, sequence), checkpoint)


class BlanketsInTurn:
    """Learn one blanket after the other (GSMN*): what one end of a pair found is not asked at the other."""

    def __init__(
        self,
        oracle: CountingOracle,
        rules: GsmnRules,
        candidates: list[list[int]],
        sequence: Sequence[int],
    ) -> None:
        n = oracle.source.n_variables
        self._oracle, self._rules, self._candidates, self._sequence = oracle, rules, candidates, sequence
        self._limit = n if rules.max_blanket is None else rules.max_blanket
        self._blankets: Links = np.zeros((n, n), dtype=np.bool_)
        self._n_done = 0

    def step(self) -> bool:
        """Learn the blanket of the next variable; False if there is none."""
        if self._n_done == len(self._sequence):
            return False
        a, examined = self._sequence[self._n_done], set(self._sequence[: self._n_done])
        required = np.flatnonzero(self._rules.required[a]).tolist()
        copied = [b for b in self._candidates[a] if b in examined and self._blankets[b, a]]
        blanket = list(required)
        unknown = [b for b in self._candidates[a] if b not in examined]
        grow(a, unknown, blanket, self._oracle, self._limit, copied)
        shrink(a, blanket[::-1], blanket, self._oracle, [*required, *copied])
        self._blankets[a, blanket] = True
        self._n_done += 1
        self._oracle.token.tick()
        return True

    def to_arrays(self) -> Arrays:
        """Return the blankets so far, and what was asked."""
        return {
            "blankets": self._blankets,
            "n_visits": np.array(self._n_done),
            **self._oracle.arrays(),
        }

    def from_arrays(self, saved: Arrays) -> None:
        """Go on from blankets that were saved."""
        self._blankets, self._n_done = saved["blankets"], int(saved["n_visits"])
        self._oracle.restore(saved)
        self._oracle.token.tick(self._n_done)
