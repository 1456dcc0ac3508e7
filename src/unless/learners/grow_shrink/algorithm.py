"""CSGS as the paper has it: Algorithms 1 and 2 over an independence oracle.

This is the reference, written to be read; nothing here is compiled. `csgs` is Algorithm 1, `gs` with
`learn_blanket` Algorithm 2. Tables are learned by one of two fast forms, which give the same graphs:
`cohorts.py` beside this file, or `kernels/cube.py` where the table is small (`learn_graphs` in
`learners/csgs.py`). A graph is a symmetric matrix of links, variables are numbers, a context gives each
variable a level.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from unless.counting.reference import CountSource
from unless.independence.tests import Answer, IndependenceTest
from unless.typing import Bools

Links = Bools
Context = Sequence[int] | npt.NDArray[np.integer]


class Oracle(Protocol):
    """Answers whether two variables are independent given some others, from whatever it knows."""

    def says_dependent(self, a: int, b: int, given: Iterable[int]) -> bool:
        """Tell whether a and b are surely dependent."""

    def says_independent(self, a: int, b: int, given: Iterable[int]) -> bool:
        """Tell whether a and b read as independent."""


@dataclass(frozen=True)
class EdgeLimits:
    """Which links are in every graph, which in none, and the size of a blanket at which it stops growing."""

    required: Links
    forbidden: Links
    max_blanket: int

    @classmethod
    def none(cls, n: int) -> "EdgeLimits":
        """Allow everything."""
        return cls(np.zeros((n, n), dtype=np.bool_), np.zeros((n, n), dtype=np.bool_), n)


def csgs(
    slices: "SliceOracle",
    contexts: Iterable[Context],
    order: Sequence[int],
    limits: EdgeLimits,
    *,
    shared: bool = True,
    join_both: bool = False,
) -> list[Links]:
    """Learn the graph of every context (Algorithm 1); its line 5, the features, is `CanonicalModel.features`.

    With `shared` the blankets of a context are learned by Algorithm 2, else each alone, and joined.
    """
    graphs = []  # lines 1 and 2: the contexts are the distinct rows, their graphs begin with what is required
    for context in contexts:  # line 3
        oracle = slices.in_context(context)
        if shared:
            graphs.append(gs(limits.required.copy(), order, oracle, limits))  # line 4
        else:
            graphs.append(gs_apart(order, oracle, limits, join_both=join_both))
    return graphs


def gs(graph: Links, order: Sequence[int], oracle: Oracle, limits: EdgeLimits) -> Links:
    """Learn the graph of one context (Algorithm 2): links are symmetric throughout."""
    for a in order:  # line 1
        learn_blanket(a, graph, order, oracle, limits)
    return graph  # line 8


def learn_blanket(a: int, graph: Links, order: Sequence[int], oracle: Oracle, limits: EdgeLimits) -> None:
    """Grow the blanket of a from the links it has, then shrink it (Algorithm 2, lines 2 to 7)."""
    for b in [b for b in order if b != a and not graph[a, b] and not limits.forbidden[a, b]]:  # line 2
        blanket = blanket_of(a, graph)
        if len(blanket) >= limits.max_blanket:
            break
        if oracle.says_dependent(a, b, blanket):  # line 3
            graph[a, b] = graph[b, a] = True  # line 4
    for b in [b for b in order if graph[a, b] and not limits.required[a, b]]:  # line 5
        # The blanket without b itself, else b would explain itself away.
        if oracle.says_independent(a, b, blanket_of(a, graph) - {b}):  # line 6
            graph[a, b] = graph[b, a] = False  # line 7


def gs_apart(order: Sequence[int], oracle: Oracle, limits: EdgeLimits, *, join_both: bool) -> Links:
    """Learn every blanket alone; a link needs the blanket of one of its ends, or of both."""
    blankets = np.zeros_like(limits.required)
    for a in order:
        alone = limits.required.copy()
        learn_blanket(a, alone, order, oracle, limits)
        blankets[a] = alone[a]
    return blankets & blankets.T if join_both else blankets | blankets.T


def blanket_of(a: int, graph: Links) -> set[int]:
    """Return the variables that a is linked to."""
    return set(np.flatnonzero(graph[a]).tolist())


@dataclass
class SliceOracle:
    """Answers I(X_a, X_b | x_U) by an unconditional test on the rows where X_U = x_U; keeps the answers."""

    counts: CountSource
    test: IndependenceTest
    keep_undecided: bool = False
    n_tests: int = 0
    answers: dict[tuple[frozenset[int], frozenset[tuple[int, int]]], Answer] = field(default_factory=dict)

    @property
    def n_distinct_tests(self) -> int:
        """The number of different questions so far."""
        return len(self.answers)

    def in_context(self, context: Context) -> "ContextOracle":
        """Return the oracle of one context, whose values are what is held fixed."""
        return ContextOracle(self, context)

    def ask(self, a: int, b: int, assignment: frozenset[tuple[int, int]]) -> Answer:
        """Test two variables on the rows that agree with an assignment of (variable, level)."""
        self.n_tests += 1
        question = frozenset((a, b)), assignment
        if question not in self.answers:
            table = self.counts.count(min(a, b), max(a, b), dict(assignment))
            self.answers[question] = self.test.on(table).answer
        return self.answers[question]


@dataclass(frozen=True)
class ContextOracle:
    """Answers questions of one context."""

    slices: SliceOracle
    context: Context

    def says_dependent(self, a: int, b: int, given: Iterable[int]) -> bool:
        """Tell whether a and b are surely dependent where the given variables have the context's levels."""
        return self._ask(a, b, given) == "dependent"

    def says_independent(self, a: int, b: int, given: Iterable[int]) -> bool:
        """Tell whether a and b read as independent there."""
        answer = self._ask(a, b, given)
        return answer == "independent" or (answer == "undecided" and not self.slices.keep_undecided)

    def _ask(self, a: int, b: int, given: Iterable[int]) -> Answer:
        return self.slices.ask(a, b, frozenset((c, int(self.context[c])) for c in given))
