"""CSPC: canonical graphs by PC in every context (Edera, Schlueter and Bromberg, ICTAI 2013)."""

import math
from collections.abc import Sequence
from typing import Literal

from unless.data.dataset import Dataset
from unless.learners.base import Learner
from unless.learners.graphs import learn_pc_graphs, pc_memory_left
from unless.learners.settings import (
    EdgeNames,
    at_least,
    between,
    kernel_rules,
    resolve_order,
    setting,
)
from unless.runtime.memory import parse_memory
from unless.runtime.progress import progress
from unless.structures.canonical import CanonicalModel


class CSPC(Learner):
    """Learn one graph for every distinct row of a table by taking links away, all of them at once.

    In every context PC starts with all links and takes a - b away as soon as a and b are independent where
    k of a's other neighbours have the context's values: k = 0 for all pairs, then k = 1, and so on. Of a
    large table it asks more questions than CSGS, on larger slices, and finds fewer links that are not there.

    Parameters
    ----------
    alpha
        Two variables are dependent where the test's p is below this.
    test
        "pearson", "likelihood_ratio" or "bayesian".
    order
        "association" (most strongly associated variables first, whatever the order of the columns),
        "columns", or a list of all names. One order serves a, b and the sets of neighbours.
    max_condition
        The largest k; None goes on while some variable has enough neighbours.
    undecided
        How a test without enough data is read: "independent" (the link goes) or "keep" (it stays).
    effect
        A test that finds nothing is undecided when its power against Cohen's w = effect is below 80 %.
    required_edges, forbidden_edges
        Pairs of names that are in every graph, or in none; neither are asked about.

    Examples
    --------
    >>> import unless
    >>> est = unless.CSPC().fit(unless.datasets.load_ucb_admissions())
    >>> est.structure_.given({"Dept": "C"}).has_edge("Admit", "Gender")
    False
    """

    kept_structure = CanonicalModel

    alpha: float = setting(default=0.05, check=between(0, 1), kw_only=False)
    test: Literal["pearson", "likelihood_ratio", "bayesian"] = setting(default="pearson")
    order: str | Sequence[str] = setting(default="association")
    max_condition: int | None = setting(default=None, check=at_least(0))
    undecided: Literal["independent", "keep"] = setting(default="independent")
    effect: float = setting(default=0.3, check=between(0, math.inf))
    required_edges: EdgeNames = setting(default=None)
    forbidden_edges: EdgeNames = setting(default=None)

    def _learn(self, data: Dataset) -> None:
        max_bytes = parse_memory(self.max_memory)
        pc_memory_left(data, max_bytes, self.n_jobs)
        order = resolve_order(data, self.order)
        rules = kernel_rules(
            data,
            order,
            alpha=self.alpha,
            effect=self.effect,
            test=self.test,
            undecided=self.undecided,
            max_blanket=None,
            required=self.required_edges,
            forbidden=self.forbidden_edges,
        )
        most = data.n_variables if self.max_condition is None else int(self.max_condition)
        store = self._checkpoint_store(data)
        with progress("CSPC", self.show_progress) as bar:
            learned = learn_pc_graphs(data, order, rules, most, max_bytes, self.n_jobs, bar, store)
        self.structure_ = CanonicalModel.from_edges(data.domain, data.rows, data.counts, learned.edges)
        self.n_tests_ = learned.n_tests
        self.n_distinct_tests_ = learned.n_distinct_tests
        self.max_distinct_tests_ = learned.max_distinct_tests
