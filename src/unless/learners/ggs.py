"""GGS, Gated Grow-Shrink: links, and the gates that switch them, by evidence pooled over strata."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Domain
from unless.data.memory import parse_memory, show_memory
from unless.data.progress import progress
from unless.errors import SettingError, TooLarge
from unless.learners.claiming import Claim, Notary, labelled, plain_claims, read_claims
from unless.learners.estimator import Estimator
from unless.learners.gating import (
    FEW_GATES,
    MAX_GATE_LEVELS,
    GateSearch,
    GateTree,
    even_shares,
    gate_shares,
    part_rivals,
)
from unless.learners.ggs_memory import bytes_needed
from unless.learners.linking import Linker
from unless.learners.neighbourhoods import Asker
from unless.learners.parts import Bools, Table
from unless.learners.settings import (
    EdgeNames,
    check_at_least,
    check_between,
    check_n_jobs,
    edge_limits,
)
from unless.learners.shards import Pulse
from unless.structures.labelled import LabelledGraph

GateNames = Collection[str] | None
# Blankets larger than this cost more than they tell.
MAX_BLANKET = 24
# How often trees are grown again because two variables were each other's gates.
MAX_REVISIONS = 3


class GGS(Estimator):
    """Learn which pairs are linked, and where: a link holds everywhere, or only at some levels of its gates.

    Each variable is regressed on the others (logistic regression on pairs of levels). Its blanket is grown
    and shrunk; a variable becomes a gate where the regression is better learned anew at each of its levels,
    and there the blanket is grown and shrunk again. The gate trees of the two ends of a pair then say
    together where it is linked. Three-way interactions are found as gates; a pair whose link needs four
    variables to be seen at all is not found.

    Parameters
    ----------
    alpha
        The level at which blankets grow and shrink and gates are looked for; what passes is a candidate.
    fdr
        The share of false claims that is aimed at, for links (in each region) and for gates each; how well it
        is kept is measured in docs/accuracy.md.
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
    claims_: list[Claim]

    def __init__(  # noqa: PLR0913 (scikit-learn's way: one argument a setting)
        self,
        alpha: float = 0.05,
        *,
        fdr: float = 0.05,
        max_gate: int = 3,
        max_blanket: int | None = None,
        negligible: float = 0.1,
        gates: GateNames = None,
        forbidden_gates: GateNames = None,
        required_edges: EdgeNames = None,
        forbidden_edges: EdgeNames = None,
        max_memory: int | str | None = None,
        n_jobs: int | None = None,
        work_dir: str | os.PathLike[str] | None = None,
        resume: bool = False,
        show_progress: bool | None = None,
    ) -> None:
        self.alpha = alpha
        self.fdr = fdr
        self.max_gate = max_gate
        self.max_blanket = max_blanket
        self.negligible = negligible
        self.gates = gates
        self.forbidden_gates = forbidden_gates
        self.required_edges = required_edges
        self.forbidden_edges = forbidden_edges
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.work_dir = work_dir
        self.resume = resume
        self.show_progress = show_progress

    def check_settings(self) -> None:
        """Refuse settings that are wrong whatever the table."""
        check_between("alpha", self.alpha, 0, 1)
        check_between("fdr", self.fdr, 0, 1)
        check_between("negligible", self.negligible, 0, float("inf"))
        check_at_least("max_gate", self.max_gate, 0, optional=False)
        check_at_least("max_blanket", self.max_blanket, 0)
        check_n_jobs(self.n_jobs)

    def _learn(self, data: Dataset) -> None:
        self._check_memory(data)
        place = self._workplace(data)
        if self._take_up(place):
            return
        # By name: the order of the columns must not decide anything, not even the rounding.
        named = data.select(sorted(data.names))
        must, never = edge_limits(named.domain, self.required_edges, self.forbidden_edges)
        required = {(named.names[a], named.names[b]) for a, b in np.argwhere(np.triu(must)).tolist()}
        table = Table(named)
        askers = self._askers(table, named.n_rows, must, never)
        gates = _gate_mask(named.domain, self.gates, self.forbidden_gates)
        trees = self._trees(askers, gates & ~never)
        # The ends of a pair are no gates of it.
        n_gates = max(1, min(int(gates.sum()), len(askers) - 2))
        linker = Linker(askers, trees, float(self.alpha), n_gates)
        pairs = {
            (a, b): linker.pair(a, b)
            for a, b in combinations(range(len(askers)), 2)
            if askers[a].allowed[b] and not must[a, b]
        }
        notary = Notary(named.domain, float(self.fdr), float(self.negligible), required)
        self.claims_ = notary.claims(pairs, linker.n_searched)
        weighed = notary.weighed(pairs, self.claims_)
        self.structure_ = labelled(data.domain, self.claims_, required, weighed)
        self.n_tests_ = linker.n_asked + sum(asker.n_asked for asker in askers)
        self.n_distinct_tests_ = min(
            self.n_tests_, linker.n_asked + sum(asker.n_distinct for asker in askers)
        )
        self._lay_down(place)

    def _askers(self, table: Table, n_rows: int, must: Bools, never: Bools) -> list[Asker]:
        free = np.array([len(levels) - 1 for levels in table.used])
        varies, df = free > 0, np.outer(free, free)
        # A pair with more degrees of freedom than rows cannot be told from noise.
        allowed = ~never & varies[:, None] & varies[None, :] & (df <= n_rows)
        np.fill_diagonal(allowed, False)
        most = MAX_BLANKET if self.max_blanket is None else int(self.max_blanket)
        alpha = float(self.alpha)
        return [
            Asker(table, target, allowed[target], (must & allowed)[target], alpha, most)
            for target in range(len(varies))
        ]

    def _trees(self, askers: Sequence[Asker], gates: Bools) -> list[GateTree]:
        """Grow the trees alone, then again knowing what the others found."""
        searches = [
            GateSearch(asker, gates[target] & asker.allowed, int(self.max_gate))
            for target, asker in enumerate(askers)
        ]
        shares = even_shares(len(askers))
        with progress("GGS", self.show_progress, 2 * len(askers)) as step:
            alone = self._each(lambda search: search.tree(shares), searches, step)
            found = gate_shares(alone)
            trees = self._each(lambda search: search.tree(found), searches, step)
            for _ in range(MAX_REVISIONS):
                rivals = part_rivals(searches, trees)
                trees = [
                    searches[place].tree(found) if place in rivals else tree
                    for place, tree in enumerate(trees)
                ]
        return trees

    def _each(
        self, work: Callable[[GateSearch], GateTree], items: Sequence[GateSearch], step: Callable[[], object]
    ) -> list[GateTree]:
        from joblib import Parallel, delayed

        pulse = Pulse(step, len(items), len(items))

        def one(item: GateSearch) -> GateTree:
            pulse.check()
            tree = work(item)
            pulse.tick()
            return tree

        try:
            calls = (delayed(one)(item) for item in items)
            return list(Parallel(n_jobs=self.n_jobs, require="sharedmem")(calls))
        finally:
            # Threads that are still at work after Ctrl-C would go on to the end.
            pulse.stop()

    def _check_memory(self, data: Dataset) -> None:
        """Refuse work that would not fit, with the estimate, before any of it."""
        from joblib import effective_n_jobs

        n, m = data.n_variables, data.n_distinct
        n_threads = effective_n_jobs(self.n_jobs)
        need = bytes_needed(data, int(self.max_gate), MAX_GATE_LEVELS, FEW_GATES, n_threads)
        limit = parse_memory(self.max_memory)
        if need > limit:
            raise TooLarge(
                f"Regressions among {n:,} variables in {m:,} distinct rows would need about "
                f"{show_memory(need)}, more than the {show_memory(limit)} allowed; choose fewer columns or "
                "raise max_memory=."
            )

    def _kept(self) -> tuple[LabelledGraph, dict[str, Any]]:
        return self.structure_, {"claims": plain_claims(self.claims_)}

    def _bring_back(self, structure: Any, results: Mapping[str, Any]) -> None:
        super()._bring_back(structure, results)
        self.claims_ = read_claims(results["claims"], structure.domain)


def _gate_mask(domain: Domain, only: GateNames, never: GateNames) -> Bools:
    """Return, for each variable, whether it may be a gate."""
    allowed = np.full(len(domain), only is None)
    for setting, names, value in (("gates", only, True), ("forbidden_gates", never, False)):
        if names is None:
            continue
        if isinstance(names, str) or not isinstance(names, Collection):
            raise SettingError(f"{setting}= must be a list of names.")
        for name in names:
            allowed[domain.index(name)] = value
    return allowed
