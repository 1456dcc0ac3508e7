"""CSGS: canonical graphs by Grow-Shrink in every context (Edera, Strappa and Bromberg, IBERAMIA 2014)."""

import math
from collections.abc import Sequence
from typing import Literal

from unless.data.dataset import Dataset
from unless.learners.base import Learner
from unless.learners.graphs import learn_graphs, memory_left
from unless.learners.settings import (
    EdgeNames,
    at_least,
    between,
    kernel_rules,
    resolve_order,
    setting,
)
from unless.learners.visits import Strategy
from unless.runtime.memory import parse_memory
from unless.runtime.progress import progress
from unless.structures.canonical import CanonicalModel


class CSGS(Learner):
    """Learn one graph for every distinct row of a table, all of them at once.

    `blankets="shared"` is the paper's Algorithm 2: an edge found at one variable is there when its other
    end is visited. `"independent"` learns every blanket alone and joins them by `rule`; it does not
    depend on the order.

    Parameters
    ----------
    alpha
        Two variables are dependent where the test's p is below this.
    test
        "pearson", "likelihood_ratio" or "bayesian".
    order
        "association" (most strongly associated variables first, whatever the order of the columns),
        "columns", or a list of all names. One order serves the nodes, the grow phase and the shrink
        phase.
    blankets
        "shared" or "independent", as above.
    rule
        How independent blankets are joined: "or" needs one end of an edge, "and" both.
    max_blanket
        Grow stops at a blanket of this size.
    undecided
        How a test without enough data is read: "independent" (the paper's reading) or "keep", which
        neither adds an edge nor removes it.
    effect
        A test that finds nothing is undecided when its power against Cohen's w = effect is below 80 %.
    required_edges, forbidden_edges
        Pairs of names that are in every graph, or in none.

    Examples
    --------
    >>> import unless
    >>> est = unless.CSGS().fit(unless.datasets.load_ucb_admissions())
    >>> est.structure_.given({"Dept": "C"}).has_edge("Admit", "Gender")
    False
    """

    kept_structure = CanonicalModel

    alpha: float = setting(default=0.05, check=between(0, 1), kw_only=False)
    test: Literal["pearson", "likelihood_ratio", "bayesian"] = setting(default="pearson")
    order: str | Sequence[str] = setting(default="association")
    blankets: Literal["shared", "independent"] = setting(default="shared")
    rule: Literal["or", "and"] = setting(default="or")
    max_blanket: int | None = setting(default=None, check=at_least(0))
    undecided: Literal["independent", "keep"] = setting(default="independent")
    effect: float = setting(default=0.3, check=between(0, math.inf))
    required_edges: EdgeNames = setting(default=None)
    forbidden_edges: EdgeNames = setting(default=None)

    def _learn(self, data: Dataset) -> None:
        max_bytes = parse_memory(self.max_memory)
        memory_left(data, max_bytes, self.n_jobs)
        order = resolve_order(data, self.order)
        rules = kernel_rules(
            data,
            order,
            alpha=self.alpha,
            effect=self.effect,
            test=self.test,
            undecided=self.undecided,
            max_blanket=self.max_blanket,
            required=self.required_edges,
            forbidden=self.forbidden_edges,
        )
        strategy = Strategy(rules, shared=self.blankets == "shared", join_both=self.rule == "and")
        store = self._checkpoint_store(data)
        with progress("CSGS", self.show_progress, data.n_variables) as step:
            learned = learn_graphs(data, order, strategy, max_bytes, self.n_jobs, step, store)
        self.structure_ = CanonicalModel.from_edges(data.domain, data.rows, data.counts, learned.edges)
        self.n_tests_ = learned.n_tests
        self.n_distinct_tests_ = learned.n_distinct_tests
        self.max_distinct_tests_ = learned.max_distinct_tests
