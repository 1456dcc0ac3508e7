"""GGS, Gated Grow-Shrink: links, and the gates that switch them, by evidence pooled over strata."""

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Domain
from unless.errors import TooLarge
from unless.independence.statistics import adjusted
from unless.learners.base import Learner
from unless.learners.claiming import Claim, Notary, labelled, plain_claims, read_claims
from unless.learners.gate_trees import GateRules, Ground, grow_gate_trees, listed_names
from unless.learners.gating import FEW_GATES, MAX_GATE_LEVELS, GateSearch, GateTree
from unless.learners.ggs_memory import bytes_needed
from unless.learners.linking import Linker, Pair
from unless.learners.settings import EdgeNames, at_least, between, edge_limits, learned, setting
from unless.referee.counted import MOST_REGULAR, WideTester
from unless.referee.regressions import Bools, RegressionTable
from unless.runtime.interrupts import CancelToken, cancellable
from unless.runtime.memory import parse_memory, show_memory
from unless.runtime.progress import Bar, progress
from unless.structures.graph import Graph
from unless.structures.labelled import LabelledGraph, Region

GateNames = Collection[str] | None
# Blankets larger than this cost more than they tell.
MAX_BLANKET = 24


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

    def _learn(self, data: Dataset) -> None:
        self._check_memory(data)
        rules = self._rules(data.domain)
        store = self._checkpoint_store(data)
        if self._restore(store):
            return
        with progress("GGS", self.show_progress) as bar:
            ground, searches, trees = grow_gate_trees(data, rules, self.n_jobs, store, bar)
            linker, pairs = _linked(ground, searches, trees, bar)
        names = ground.domain.names
        required = {(names[a], names[b]) for a, b in np.argwhere(np.triu(ground.required)).tolist()}
        notary = Notary(ground.domain, float(self.fdr), float(self.negligible), required)
        wide = _wide_claims(data.select(names), ground.wide_pairs, float(self.fdr))
        self.claims_ = notary.claims(pairs, linker.n_searched)
        self.claims_ = sorted([*self.claims_, *wide], key=lambda claim: (claim.pair, claim.kind))
        weighed = notary.weighed(pairs, self.claims_)
        self.structure_ = labelled(data.domain, self.claims_, required, weighed)
        self.n_tests_ = linker.n_asked + sum(search.asker.n_asked for search in searches)
        self.n_distinct_tests_ = min(
            self.n_tests_, linker.n_asked + sum(search.asker.n_distinct for search in searches)
        )
        self._checkpoint(store)

    def _rules(self, domain: Domain) -> GateRules:
        # Refuses what is both required and forbidden, or no list of pairs.
        edge_limits(domain, self.required_edges, self.forbidden_edges)
        only = None if self.gates is None else listed_names("gates", self.gates)
        never = () if self.forbidden_gates is None else listed_names("forbidden_gates", self.forbidden_gates)
        return GateRules(
            float(self.alpha),
            int(self.max_gate),
            MAX_BLANKET if self.max_blanket is None else int(self.max_blanket),
            tuple((a, b) for a, b in self.required_edges or ()),
            tuple((a, b) for a, b in self.forbidden_edges or ()),
            only,
            never,
        )

    def _check_memory(self, data: Dataset) -> None:
        """Refuse work that would not fit, with the estimate, before any of it."""
        from joblib import effective_n_jobs

        n, m = data.n_variables, data.n_distinct
        few = [one.name for one in data.domain if len(one.levels) <= MOST_REGULAR]
        data = data.select(few) if len(few) > 1 else data.select(data.names[:1])
        n_threads = effective_n_jobs(self.n_jobs)
        need = bytes_needed(data, int(self.max_gate), MAX_GATE_LEVELS, FEW_GATES, n_threads)
        limit = parse_memory(self.max_memory)
        if need > limit:
            raise TooLarge(
                f"Regressions among {n:,} variables in {m:,} distinct rows would need about "
                f"{show_memory(need)}, more than the {show_memory(limit)} allowed; choose fewer columns or "
                "raise max_memory=."
            )

    def _proposing(self) -> Graph:
        # Its regressions look at every pair, as those behind sentences do: none is left out beforehand.
        domain = self.structure_.domain
        return Graph(domain, combinations(domain.names, 2))

    def _to_record(self) -> tuple[LabelledGraph, dict[str, Any]]:
        return self.structure_, {"claims": plain_claims(self.claims_)}

    def _from_record(self, structure: Any, results: Mapping[str, Any]) -> None:
        super()._from_record(structure, results)
        self.claims_ = read_claims(results["claims"], structure.domain)


def _wide_claims(data: Dataset, pairs: Bools, fdr: float) -> list[Claim]:
    """Claim links of columns of many levels, tested within the strata of what goes together with an end."""
    if not pairs.any():
        return []
    tester, names = WideTester(RegressionTable(data)), data.names
    found = []
    for a, b in np.argwhere(np.triu(pairs)).tolist():
        rest = [c for c in range(len(names)) if c not in (a, b)]
        test, _, is_complete = tester.given_others(a, b, rest)
        found.append((a, b, test, test.p if is_complete else 1.0))
    rates = adjusted([p for *_, p in found]).tolist()
    return [
        Claim(
            kind="linked", pair=(names[a], names[b]), region=Region(), gate=None, statistic=test.statistic,
            df=test.df, n_rows=data.n_rows, p=p, q=q, effect=tester.estimate(a, b, test).v,
        )
        for (a, b, test, p), q in zip(found, rates, strict=True)
        if q <= fdr
    ]  # fmt: skip


def _linked(
    ground: Ground, searches: Sequence[GateSearch], trees: Sequence[GateTree], bar: Bar
) -> tuple[Linker, dict[tuple[int, int], Pair]]:
    """Say of every pair that may be linked and need not be where it is."""
    askers = [search.asker for search in searches]
    # The ends of a pair are no gates of it.
    n_gates = max(1, min(int(ground.gates.sum()), len(askers) - 2))
    linker = Linker(askers, trees, ground.rules.alpha, n_gates)
    open_pairs = np.argwhere(np.triu(ground.allowed & ~ground.required, 1)).tolist()
    bar.begin("pairs", len(open_pairs))
    token = CancelToken(bar, len(open_pairs), len(open_pairs))

    def link() -> dict[tuple[int, int], Pair]:
        pairs = {}
        for a, b in open_pairs:
            pairs[a, b] = linker.pair(a, b)
            token.tick()
        return pairs

    return linker, cancellable(link, token)
