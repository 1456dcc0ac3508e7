"""GGS, Gated Grow-Shrink: links, and the gates that switch them, by evidence pooled over strata."""

import math
from collections.abc import Collection, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Domain
from unless.errors import SettingError
from unless.learners.base import Learner, Run
from unless.learners.ggs.claims import (
    Claim,
    claim_wide_pairs,
    claims_from_records,
    claims_to_records,
    labelled,
    link_pairs,
    select_claims,
    select_weighed,
)
from unless.learners.ggs.gates import FEW_GATES, MAX_GATE_LEVELS, grow_gate_trees
from unless.learners.settings import EdgeNames, at_least, between, edge_limits, learned, setting
from unless.referee.counted import MOST_REGULAR
from unless.structures.graph import Graph
from unless.structures.labelled import LabelledGraph

GateNames = Collection[str] | None
# Larger blankets cost more than they add.
MAX_BLANKET = 24
_BASE = 8 * 2**20
# Regressions that are remembered for each variable, at most and for each other one; what each takes beside
# its covariance; and the blanket that most of them have.
_REGRESSIONS, _REGRESSIONS_EACH, _BYTES_EACH, _USUAL_BLANKET = 100, 2, 3_000, 3
# The blanket that the test of a gate is made ready for.
_BLANKET_OF_GATES = 4
# Columns of numbers beside those that follow from the levels: patterns, their columns, what rows have them.
_COLUMNS = 32


def _check_fdr(name: str, value: Any) -> None:
    if isinstance(value, bool) or value != 1:
        between(0, 1)(name, value)


class GGS(Learner):
    """Learn which pairs are linked, and where: a link holds everywhere, or only at some levels of its gates.

    Each variable is regressed on the others (logistic regression on pairs of levels). Its blanket is grown
    and shrunk; a variable becomes a gate where the regression is better learned anew at each of its levels,
    and there the blanket is grown and shrunk again. The gate trees of the two ends of a pair then say
    together where it is linked. Three-way interactions are found as gates; a pair whose link needs four
    variables to be seen at all is not found. Pairs with a column of more than 12 levels are tested within
    strata instead, and have no gates.

    Parameters
    ----------
    alpha
        The level at which blankets grow and shrink and gates are looked for; what passes is a candidate.
    fdr
        The share of false claims that is aimed at, for links (in each region) and for gates each; how well it
        is kept is measured in docs/recovery.md.
    max_gate
        A link depends on at most so many gates.
    max_blanket
        Grow stops at a blanket of this size; None means 24.
    negligible
        A link is said to vanish in a region only if its Cramer's V there is surely below this.
    gates, forbidden_gates
        Names of the only variables that may be gates, or of those that may not.
    required_edges, forbidden_edges
        Pairs of names that are linked everywhere, or nowhere.

    The claims behind the links are in `claims_`. `network` weighs, beside the links that are claimed, those
    candidates (`structure_.weighed`) of which about one in five at most is expected to be false, and the rest
    of the pairs of a region in which two thirds are such: links too weak to be claimed matter together for
    probabilities.

    Examples
    --------
    >>> import unless
    >>> est = unless.GGS().fit(unless.datasets.load_ucb_admissions())
    >>> print(*est.structure_, sep="; ")
    Admit - Dept; Admit - Gender where Dept = A; Dept - Gender
    """

    kept_structure = LabelledGraph
    _work = "Regressions among {n:,} variables in {m:,} distinct rows"
    _relative_cost = 20.0
    saves_answer = True
    alpha: float = setting(default=0.05, check=between(0, 1), kw_only=False)
    # 1 proposes every candidate.
    fdr: float = setting(default=0.05, check=_check_fdr)
    max_gate: int = setting(default=3, check=at_least(0, optional=False))
    max_blanket: int | None = setting(default=None, check=at_least(0))
    negligible: float = setting(default=0.1, check=between(0, math.inf))
    gates: GateNames = setting(default=None)
    forbidden_gates: GateNames = setting(default=None)
    required_edges: EdgeNames = setting(default=None)
    forbidden_edges: EdgeNames = setting(default=None)
    claims_: list[Claim] = learned()

    def _bytes_needed(self, data: Dataset, run: Run) -> int:
        few = [one.name for one in data.domain if len(one.levels) <= MOST_REGULAR]
        data = data.select(few) if len(few) > 1 else data.select(data.names[:1])
        return bytes_needed(data, int(self.max_gate), run.n_workers)

    def _learn(self, data: Dataset, run: Run, *_: Dataset) -> None:
        settings = self._problem_settings(data.domain)
        problem, searches, trees = grow_gate_trees(data, settings, run)
        linker, pairs = link_pairs(problem, searches, trees, run)
        domain, names = problem.domain, problem.domain.names
        required = {(names[a], names[b]) for a, b in np.argwhere(np.triu(problem.required)).tolist()}
        fdr, negligible = float(self.fdr), float(self.negligible)
        claims = select_claims(
            domain, pairs, linker.n_searched, fdr=fdr, negligible=negligible, required=required
        )
        claims += claim_wide_pairs(data.select(names), problem.wide_pairs, fdr)
        self.claims_ = sorted(claims, key=lambda claim: (claim.pair, claim.kind))
        weighed = select_weighed(domain, pairs, self.claims_)
        self.structure_ = labelled(data.domain, self.claims_, required, weighed)
        self.n_tests_ = linker.n_tests + sum(search.tests.n_tests for search in searches)
        self.n_distinct_tests_ = min(
            self.n_tests_, linker.n_tests + sum(search.tests.n_distinct for search in searches)
        )

    def _problem_settings(self, domain: Domain) -> tuple[Any, ...]:
        """Return the settings of a GateProblem, in their order."""
        # Refuses what is both required and forbidden, or no list of pairs.
        edge_limits(domain, self.required_edges, self.forbidden_edges)
        return (
            float(self.alpha),
            int(self.max_gate),
            MAX_BLANKET if self.max_blanket is None else int(self.max_blanket),
            tuple((a, b) for a, b in self.required_edges or ()),
            tuple((a, b) for a, b in self.forbidden_edges or ()),
            None if self.gates is None else _names("gates", self.gates),
            () if self.forbidden_gates is None else _names("forbidden_gates", self.forbidden_gates),
        )

    @classmethod
    def _proposing(cls, structure: Any) -> Graph:
        # Its regressions look at every pair, as those behind sentences do: none is left out beforehand.
        return Graph(structure.domain, combinations(structure.domain.names, 2))

    def _to_record(self) -> tuple[LabelledGraph, dict[str, Any]]:
        return self.structure_, {"claims": claims_to_records(self.claims_)}

    def _from_record(self, structure: Any, results: Mapping[str, Any]) -> None:
        super()._from_record(structure, results)
        self.claims_ = claims_from_records(results["claims"], structure.domain)


def _names(setting: str, names: object) -> tuple[str, ...]:
    """Read a list of names."""
    if isinstance(names, str) or not isinstance(names, Collection):
        raise SettingError(f"{setting}= must be a list of names.")
    return tuple(names)


def bytes_needed(data: Dataset, max_gate: int, n_threads: int) -> int:
    """Return how many bytes will be needed about, in a bad case; few gates are not tested by score.

    From the shape of the table alone; measured on tables of 12 to 300 variables.
    """
    n, m = data.n_variables, data.n_distinct
    # A level that no row shows has no column, and there are no more patterns than rows.
    sizes = np.minimum(data.domain.n_levels, m)
    most, usual = int(sizes.max()), float(sizes.mean())
    # Codes by row and by column, the rows at each level; the rows of the parts of trees, which grow twice.
    kept = n * m * (18 + 16 * max_gate)
    n_remembered = n * min(_REGRESSIONS, _REGRESSIONS_EACH * n)
    covariance = 8 * _n_weights(usual, min(_USUAL_BLANKET, n - 1), m) ** 2
    # Patterns, as many as rows at the worst, with what is seen with them; the variance of a gate's weights.
    at_work = 8 * m * (_COLUMNS + 4 * most + 1.5 * float(sizes.sum()))
    gates = sizes[(sizes > 1) & (sizes <= MAX_GATE_LEVELS)]
    if max_gate and len(gates) > FEW_GATES:
        at_work += 4 * 8 * ((gates.mean() - 1) * _n_weights(usual, _BLANKET_OF_GATES, m)) ** 2
    return int(_BASE + kept + n_remembered * (_BYTES_EACH + covariance) + n_threads * at_work)


def _n_weights(levels: float, n_variables: int, n_patterns: int) -> float:
    """Return the number of weights of a regression on variables that have as many levels as the target."""
    return (levels - 1) * min(1 + n_variables * (levels - 1), n_patterns)
