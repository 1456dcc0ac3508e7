"""Loopy belief propagation: exact where the factors form no loop, else fast and of unknown error."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from unless.data.dataset import Rows
from unless.data.showing import html_table
from unless.errors import ImpossibleEvidence, NotConverged, SettingError, TooLarge
from unless.inference.potentials import holding_cells
from unless.inference.results import Distribution, Marginals, impossible
from unless.kernels.belief import Factors, propagate
from unless.runtime.interrupts import interruptible_kernel
from unless.runtime.memory import show_memory
from unless.runtime.progress import Look, showing_share, unseen, within
from unless.structures.structure import CodedCondition, FeatureArrays
from unless.typing import Floats, Integers

if TYPE_CHECKING:
    from unless.inference.model import LogLinearModel

Scope = tuple[int, ...]
MAX_CELLS = 2**26
# What an iteration does with a cell of a factor, in steps, and the steps of one call: a tenth of a second.
_STEPS_OF_A_CELL = 10
_AT_ONCE = 2e7
# A joint table is put together from one run for each state of all its variables but the last.
MAX_RUNS = 4_096


@dataclass(frozen=True)
class BeliefReport:
    """How message passing ended: after how many iterations, and by how much a message last changed."""

    n_iterations: int
    change: float
    is_converged: bool
    is_tree: bool

    def __str__(self) -> str:
        if not self.is_converged:
            return (
                f"Belief propagation did not converge: after {self.n_iterations:,} iterations a message "
                f"still changes by {self.change:.1g}; try more damping or Gibbs sampling"
            )
        worth = "exact, as there are no loops" if self.is_tree else "approximate, as there are loops"
        return f"Belief propagation converged after {self.n_iterations:,} iterations: {worth}"

    def _repr_html_(self) -> str:
        return html_table("Belief propagation", (), (), [str(self)])


@dataclass(frozen=True)
class BeliefEngine:
    """Answers by messages between the factors of a model.

    `damping` is the share of the old message that is kept, by default half of it where there are loops.
    """

    model: "LogLinearModel"
    damping: float | None = None
    tolerance: float = 1e-10
    max_iterations: int = 2_000
    show_progress: bool | None = None

    def query(self, variables: Sequence[int], evidence: Mapping[int, int]) -> Distribution:
        """Return the joint distribution of some variables given evidence.

        A joint table is P(a) P(b | a) ..., with one run for each value that is conditioned on.
        """
        shape = tuple(int(self.model.domain.n_levels[variable]) for variable in variables)
        sizes = [size for variable, size in zip(variables, shape, strict=True) if variable not in evidence]
        n_runs = math.prod(sizes[:-1])
        if n_runs > MAX_RUNS:
            raise TooLarge(
                f"A joint table of these variables needs {n_runs:.3g} runs of belief propagation, more than "
                f"{MAX_RUNS:,}; ask for fewer variables at once or take method='gibbs'."
            )
        run = _BeliefRun(self)
        table = np.zeros(shape)
        with showing_share("Passing messages", self.show_progress, "states") as look:
            run.fill(table, list(variables), dict(evidence), look)
        return self._answer(variables, evidence, table, run.report)

    def marginals(self, evidence: Mapping[int, int]) -> Marginals:
        """Return the marginal of every variable given evidence, from one run."""
        run = _BeliefRun(self)
        with showing_share("Passing messages", self.show_progress, "iterations") as look:
            tables = run.marginals(dict(evidence), look)
        answers = [self._answer([v], evidence, table, run.report) for v, table in enumerate(tables)]
        return Marginals.of(self.model.domain, answers, evidence)

    def sample(self, n_rows: int, evidence: Mapping[int, int]) -> Rows:  # noqa: ARG002 (the same for all engines)
        """Refuse: messages give no rows."""
        raise SettingError("Belief propagation draws no samples; use method='exact' or method='gibbs'.")

    def _answer(
        self, variables: Sequence[int], evidence: Mapping[int, int], table: Floats, report: BeliefReport
    ) -> Distribution:
        domain = self.model.domain
        chosen = tuple(domain.variables[variable] for variable in variables)
        details = {**asdict(report), "report": str(report)}
        return Distribution(chosen, table, domain.decode(evidence), "belief", details=details)


class _BeliefRun:
    """Runs over one model under several evidences; the report is of the worst of them."""

    def __init__(self, engine: BeliefEngine) -> None:
        self.damping, self.tolerance = engine.damping, engine.tolerance
        self.max_iterations = engine.max_iterations
        if self.damping is not None and not 0 <= self.damping < 1:
            raise SettingError(f"damping must be from 0 to below 1, not {self.damping!r}.")
        if self.max_iterations < 1:
            raise SettingError(f"max_iterations must be 1 or more, not {self.max_iterations!r}.")
        self.domain = engine.model.domain
        self.arrays, self.weights = engine.model.plain
        self.report = BeliefReport(0, 0.0, is_converged=True, is_tree=True)

    def fill(self, table: Floats, variables: list[int], evidence: dict[int, int], look: Look) -> None:
        """Fill a joint table, axis by axis."""
        first, rest = variables[0], variables[1:]
        shares = self.marginals(evidence, look if not rest else unseen)[first]
        if not rest:
            table[...] = shares
            look(1.0)
            return
        levels = np.flatnonzero(shares).tolist()
        for place, level in enumerate(levels):
            part = within(look, place / len(levels), (place + 1) / len(levels))
            self.fill(table[level], rest, {**evidence, first: level}, part)
            table[level] *= shares[level]

    def marginals(self, evidence: dict[int, int], look: Look = unseen) -> list[Floats]:
        """Return the belief about every variable."""
        try:
            graph = factor_graph(self.arrays, self.weights, self.domain.n_levels, evidence)
        except ImpossibleEvidence:
            raise impossible(self.domain, evidence) from None
        factors = graph.factors
        lengths = factors.n_levels[factors.variable]
        messages = -np.log(np.repeat(lengths, lengths).astype(np.float64))
        damping = (0.0 if graph.is_tree else 0.5) if self.damping is None else self.damping
        beliefs = np.zeros(len(graph.unary))
        n_iterations, change = self._propagate(graph, messages, damping, beliefs, look)
        if change < 0:
            raise impossible(self.domain, evidence)
        self._note(n_iterations, change, graph.is_tree)
        if not self.report.is_converged:
            raise NotConverged(
                f"Belief propagation did not converge: after {n_iterations:,} iterations a message still "
                f"changes by {change:.1g}; ask with method='gibbs' or method='exact'."
            )
        return np.split(np.exp(beliefs), factors.offset[1:])

    def _propagate(
        self, graph: "FactorGraph", messages: Floats, damping: float, beliefs: Floats, look: Look
    ) -> tuple[int, float]:
        """Pass messages in calls that Ctrl-C can interrupt; return the iterations and the last change."""
        n_steps = _STEPS_OF_A_CELL * max(1, len(graph.factors.values))
        # An even number: every other iteration goes through the factors backwards.
        at_once = 2 * max(1, int(_AT_ONCE // (2 * n_steps)))
        n_done, change, begun = 0, np.inf, 0.0
        while n_done < self.max_iterations and not change <= self.tolerance:
            n_more = min(at_once, self.max_iterations - n_done)
            given = (graph.factors, messages, damping, self.tolerance, n_more, beliefs)
            n_taken, change = interruptible_kernel(partial(propagate, graph.unary, *given), n_more * n_steps)
            n_done += n_taken
            begun = begun or change
            # Changes fall about geometrically.
            look(_share_of_fall(begun, change, self.tolerance))
        return n_done, change

    def _note(self, n_iterations: int, change: float, is_tree: bool) -> None:
        before = self.report
        self.report = BeliefReport(
            max(before.n_iterations, n_iterations),
            max(before.change, change),
            is_converged=before.is_converged and change <= self.tolerance,
            is_tree=before.is_tree and is_tree,
        )


def _share_of_fall(begun: float, change: float, tolerance: float) -> float:
    if not 0 < tolerance < change < begun:
        return -1.0
    return math.log(begun / change) / math.log(begun / tolerance)


@dataclass(frozen=True)
class FactorGraph:
    """Log potentials of single variables and of factors, and whether the factors form no loop."""

    unary: Floats
    factors: Factors
    is_tree: bool


def factor_graph(
    arrays: FeatureArrays, weights: Floats, n_levels: Integers, evidence: Mapping[int, int]
) -> FactorGraph:
    """Group features by what the evidence leaves of their scopes, smaller scopes into larger ones.

    Features one by one would be loops: two factors over the same variables count each other twice.
    """
    grouped: dict[Scope, list[tuple[list[CodedCondition], float]]] = {}
    for literals, weight in zip(arrays.literals(), weights.tolist(), strict=True):
        left = [literal for literal in literals if literal[0] not in evidence]
        if all((evidence[v] == level) == equal for v, level, equal in literals if v in evidence):
            scope = tuple(sorted({variable for variable, _, _ in left}))
            grouped.setdefault(scope, []).append((left, weight))
    if any(weight == -np.inf for _, weight in grouped.pop((), [])):
        raise ImpossibleEvidence("The model gives the evidence probability zero.")
    hosts = _hosts(grouped)
    scopes = sorted({host for host in hosts.values() if len(host) > 1})
    _check_size(scopes, n_levels)
    tables = {scope: np.zeros([int(n_levels[v]) for v in scope]) for scope in scopes}
    unary = [np.zeros(int(size)) for size in n_levels]
    for variable, level in evidence.items():
        unary[variable][np.arange(len(unary[variable])) != level] = -np.inf
    for scope, weighted in grouped.items():
        host = hosts[scope]
        table = tables[host] if len(host) > 1 else unary[host[0]]
        for feature, weight in weighted:
            table[holding_cells(feature, host, n_levels)] += weight
    return FactorGraph(np.concatenate(unary), _lay_out(tables, n_levels), _is_forest(scopes))


def _hosts(scopes: Iterable[Scope]) -> dict[Scope, Scope]:
    """Find, for each scope, the first of the largest ones that hold all of it; single variables stay."""
    hosts: dict[Scope, Scope] = {}
    around: dict[int, list[Scope]] = {}
    for scope in sorted(scopes, key=lambda scope: (-len(scope), scope)):
        members = set(scope)
        nearby = min((around.get(variable, []) for variable in scope), key=len)
        larger = [other for other in nearby if members <= set(other)] if len(scope) > 1 else []
        hosts[scope] = larger[0] if larger else scope
        if not larger:
            for variable in scope:
                around.setdefault(variable, []).append(scope)
    return hosts


def _check_size(scopes: Iterable[Scope], n_levels: Integers) -> None:
    sizes = {scope: float(np.prod(n_levels[list(scope)].astype(np.float64))) for scope in scopes}
    total = sum(sizes.values())
    if total > MAX_CELLS:
        widest = max(sizes, key=lambda scope: sizes[scope])
        raise TooLarge(
            f"Belief propagation would need tables of {total:,.0f} cells ({show_memory(int(8 * total))}), "
            f"one of them over {len(widest)} variables, more than {MAX_CELLS:,}; take method='gibbs'."
        )


def _lay_out(tables: Mapping[Scope, Floats], n_levels: Integers) -> Factors:
    variable = np.array([v for scope in tables for v in scope], dtype=np.int64)
    n_edges = np.array([0, *(len(scope) for scope in tables)], dtype=np.int64)
    n_cells = np.array([table.size for table in tables.values()], dtype=np.int64)
    lengths = n_levels[variable]
    values = np.concatenate([np.empty(0), *(table.ravel() for table in tables.values())])
    return Factors(
        np.cumsum(n_edges),
        variable,
        np.cumsum(lengths) - lengths,
        np.cumsum(n_cells) - n_cells,
        values,
        np.array(n_levels),
        np.cumsum(n_levels) - n_levels,
    )


def _is_forest(scopes: Sequence[Scope]) -> bool:
    """Tell whether the graph of factors and variables has no loop, by joining sets."""
    parent: dict[int, int] = {}

    def root(node: int) -> int:
        while parent.setdefault(node, node) != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for scope in scopes:
        roots = [root(variable) for variable in scope]
        if len(set(roots)) < len(roots):
            return False
        parent.update(dict.fromkeys(roots, roots[0]))
    return True
