"""Grow-Shrink with questions pooled over strata: blankets learned alone (GSMN) or together (GSMN*)."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from unless.independence.oracle import Associations
from unless.independence.tests import Answer
from unless.runtime.checkpoints import Arrays, Checkpoint, CheckpointStore
from unless.runtime.interrupts import CancelToken
from unless.runtime.parallel import InMemory, OnDisk, run_shards

Links = npt.NDArray[np.bool_]
# Variables are learned in so many parts where each is kept.
MOST_PARTS = 64


class Asker(Protocol):
    """Whoever knows what is independent of what: a table, or in tests a known distribution."""

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
class Strategy:
    """What may be linked, and how blankets are found; `order` is None where association decides."""

    required: Links
    forbidden: Links
    order: Sequence[int] | None = None
    collaborates: bool = False
    join_both: bool = False
    keeps_undecided: bool = False
    max_blanket: int | None = None


@dataclass(frozen=True)
class Learned:
    """The edges found, and what they cost."""

    edges: list[tuple[int, int]]
    n_tests: int
    n_distinct_tests: int


@dataclass
class Notebook:
    """Asks, and keeps a record of what was asked."""

    asker: Asker
    keeps_undecided: bool
    token: CancelToken = field(default_factory=CancelToken)
    n_asked: int = 0
    asked: set[bytes] = field(default_factory=set)

    def says_dependent(self, a: int, b: int, given: Iterable[int]) -> bool:
        """Tell whether a and b are surely dependent."""
        return self._ask(a, b, given) == "dependent"

    def says_independent(self, a: int, b: int, given: Iterable[int]) -> bool:
        """Tell whether a and b read as independent."""
        answer = self._ask(a, b, given)
        return answer == "independent" or (answer == "undecided" and not self.keeps_undecided)

    def _ask(self, a: int, b: int, given: Iterable[int]) -> Answer:
        conditions = frozenset(given)
        self.n_asked += 1
        self.asked.add(_name(a, b, conditions, self.asker.n_variables))
        self.token.check()
        return self.asker.ask(a, b, conditions)

    def arrays(self) -> Arrays:
        """Return what was asked, one name a row."""
        width = len(_name(0, 0, (), self.asker.n_variables))
        names = np.frombuffer(b"".join(sorted(self.asked)), dtype=np.uint8).reshape(-1, width)
        return {"n_asked": np.array(self.n_asked), "asked": names}

    def bring_back(self, kept: Arrays) -> None:
        """Remember what was asked before the work was stopped."""
        self.n_asked = int(kept["n_asked"])
        self.asked.update(row.tobytes() for row in kept["asked"])


def _name(a: int, b: int, given: Iterable[int], n_variables: int) -> bytes:
    """Name a question in little room: there may be hundreds of thousands, given tens of variables each."""
    low, high = min(a, b), max(a, b)
    conditions = sum(1 << c for c in given)
    return b"".join(
        (low.to_bytes(4, "big"), high.to_bytes(4, "big"), conditions.to_bytes(-(-n_variables // 8), "big"))
    )


def learn_graph(
    asker: Asker,
    strategy: Strategy,
    n_jobs: int = 1,
    step: Callable[[], object] = lambda: None,
    store: CheckpointStore | None = None,
    source: InMemory[Any] | OnDisk[Any] | None = None,
) -> Learned:
    """Learn every blanket and join them; `step` is called once for each variable.

    `source` gives workers of other processes an asker like this one.
    """
    n = asker.n_variables
    needs_associations = strategy.order is None or strategy.collaborates
    found = asker.associations() if needs_associations else None
    candidates = [_candidates(a, n, found, strategy) for a in range(n)]
    asks = InMemory(asker) if source is None else source
    token = CancelToken(step, n, n)
    if strategy.collaborates and found is not None:
        visits = visiting_order(found) if strategy.order is None else list(strategy.order)
        parts = [range(n)]
        tasks: list[tuple[Any, ...]] = [(asks, strategy, candidates, visits, Checkpoint(store, "visits"))]
        done = run_shards(_learn_together, tasks, n_jobs=1, store=store, token=token, ticks=n)
    else:
        n_parts = min(n, n_jobs if store is None else n_kept_parts(asker))
        parts = [range(begin, n, n_parts) for begin in range(n_parts)]
        tasks = [(asks, strategy, part, [candidates[a] for a in part]) for part in parts]
        done = run_shards(_learn_apart, tasks, n_jobs=n_jobs, store=store, token=token, ticks=n // n_parts)
    blankets, n_tests, asked = _join(n, parts, done)
    if needs_associations:
        n_tests += n * (n - 1) // 2
        asked.update(_name(a, b, (), n) for a in range(n) for b in range(a + 1, n))
    joined = blankets & blankets.T if strategy.join_both else blankets | blankets.T
    edges = [(int(a), int(b)) for a, b in np.argwhere(np.triu(joined))]
    return Learned(edges, n_tests, len(asked))


def n_kept_parts(asker: Asker) -> int:
    """Return into how many parts work is cut that is kept; it follows from the table, whoever works on it."""
    return min(asker.n_variables, MOST_PARTS)


def _join(n: int, parts: Sequence[range], done: Sequence[Arrays]) -> tuple[Links, int, set[bytes]]:
    blankets, n_tests = np.zeros((n, n), dtype=np.bool_), 0
    asked: set[bytes] = set()
    for part, learned in zip(parts, done, strict=True):
        blankets[part.start : part.stop : part.step] = learned["blankets"]
        n_tests += int(learned["n_asked"])
        asked.update(row.tobytes() for row in learned["asked"])
    return blankets, n_tests, asked


def grow(
    a: int,
    candidates: Sequence[int],
    blanket: list[int],
    notebook: Notebook,
    max_blanket: int,
    copied: Sequence[int] = (),
) -> None:
    """Add candidates that depend on a given the blanket so far, until there is none.

    Passes over the candidates are repeated, but none is asked about twice given the same blanket. What is
    copied joins after the first pass.
    """
    asked_at: dict[int, int] = {}
    before, waiting = -1, list(copied)
    while before != len(blanket):
        before = len(blanket)
        for b in candidates:
            if len(blanket) >= max_blanket:
                break
            if b in blanket or asked_at.get(b) == len(blanket):
                continue
            asked_at[b] = len(blanket)
            if notebook.says_dependent(a, b, blanket):
                blanket.append(b)
        blanket.extend(waiting)
        waiting = []


def shrink(
    a: int, in_turn: Sequence[int], blanket: list[int], notebook: Notebook, fixed: Iterable[int]
) -> None:
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
            if notebook.says_independent(a, b, set(blanket) - {b}):
                blanket.remove(b)


def visiting_order(found: Associations) -> list[int]:
    """Return the variables by increasing mean log p with all others, ties by position."""
    n = len(found.log_p)
    means = [
        settled(math.fsum(settled(found.log_p[a, b]) for b in range(n) if b != a) / max(n - 1, 1))
        for a in range(n)
    ]
    return sorted(range(n), key=lambda a: means[a])


_ODD = 1.6180339887


def settled(value: float) -> float:
    """Drop the digits that rounding may have made: they must not break a tie."""
    # Whole counts put statistics just halfway between two roundings; scaled by an odd number they are not.
    return float(f"{round(_ODD * float(value), 9):.9g}")


def _candidates(a: int, n: int, found: Associations | None, strategy: Strategy) -> list[int]:
    """Return the variables that may enter the blanket of a, in the order in which they are asked about."""
    order = range(n) if strategy.order is None else strategy.order
    others = [b for b in order if b != a and not strategy.forbidden[a, b] and not strategy.required[a, b]]
    if found is None:
        return others
    if strategy.collaborates:
        others = [b for b in others if found.is_dependent[a, b]]
    if strategy.order is None:
        others.sort(key=lambda b: (settled(found.log_p[a, b]), -settled(found.strength[a, b])))
    return others


def _learn_apart(
    source: InMemory[Any] | OnDisk[Any],
    strategy: Strategy,
    variables: range,
    candidates: list[list[int]],
    token: CancelToken,
) -> Arrays:
    """Learn the blankets of some variables, each alone (GSMN)."""
    notebook = Notebook(source.load().fresh(), strategy.keeps_undecided, token)
    n = notebook.asker.n_variables
    limit = n if strategy.max_blanket is None else strategy.max_blanket
    blankets = np.zeros((len(variables), n), dtype=np.bool_)
    for place, (a, others) in enumerate(zip(variables, candidates, strict=True)):
        required = np.flatnonzero(strategy.required[a]).tolist()
        blanket = list(required)
        grow(a, others, blanket, notebook, limit)
        shrink(a, others, blanket, notebook, required)
        blankets[place, blanket] = True
        token.tick()
    return {"blankets": blankets, **notebook.arrays()}


def _learn_together(
    source: InMemory[Any] | OnDisk[Any],
    strategy: Strategy,
    candidates: list[list[int]],
    visits: Sequence[int],
    checkpoint: Checkpoint,
    token: CancelToken,
) -> Arrays:
    """Learn blankets that tell each other (GSMN*): what one end of a pair found is not asked at the other."""
    notebook = Notebook(source.load().fresh(), strategy.keeps_undecided, token)
    n = notebook.asker.n_variables
    limit = n if strategy.max_blanket is None else strategy.max_blanket
    blankets = np.zeros((n, n), dtype=np.bool_)
    examined: set[int] = set()
    kept = checkpoint.read()
    if kept is not None:
        blankets = kept["blankets"]
        examined.update(visits[: int(kept["n_visits"])])
        notebook.bring_back(kept)
        token.tick(len(examined))
    for a in visits[len(examined) :]:
        required = np.flatnonzero(strategy.required[a]).tolist()
        copied = [b for b in candidates[a] if b in examined and blankets[b, a]]
        blanket = list(required)
        unknown = [b for b in candidates[a] if b not in examined]
        grow(a, unknown, blanket, notebook, limit, copied)
        shrink(a, blanket[::-1], blanket, notebook, [*required, *copied])
        blankets[a, blanket] = True
        examined.add(a)
        token.tick()
        checkpoint.save(
            lambda: {"blankets": blankets, "n_visits": np.array(len(examined)), **notebook.arrays()}
        )
    return {"blankets": blankets, **notebook.arrays()}
