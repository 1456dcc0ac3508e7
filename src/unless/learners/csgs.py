"""CSGS: canonical graphs by Grow-Shrink in every context (Edera, Strappa and Bromberg, IBERAMIA 2014)."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from unless.counting.slices import build_cube, fits_cube
from unless.data.dataset import Dataset
from unless.kernels.bits import unpack_sets
from unless.kernels.cube import CubeWorkspace, grow_shrink_rows
from unless.learners.base import Learner, Run
from unless.learners.grow_shrink.cohorts import (
    ContextGraphs,
    Strategy,
    bytes_to_learn,
    learn_by_cohorts,
)
from unless.learners.settings import EdgeNames, at_least, between, kernel_rules, resolve_order, setting
from unless.runtime.checkpoints import Arrays
from unless.runtime.interrupts import CancelToken
from unless.structures.canonical import CanonicalModel
from unless.structures.structure import pack


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
    _work = "{m:,} graphs over {n:,} variables"

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

    def _bytes_needed(self, data: Dataset, run: Run) -> int:
        if fits_cube(data.domain.n_levels):
            return 0
        return bytes_to_learn(data, min(run.n_sharing_memory, data.n_distinct))

    def _learn(self, data: Dataset, run: Run, *_: Dataset) -> None:
        order = resolve_order(data, self.order)
        rules = kernel_rules(data, order, self.get_params())
        strategy = Strategy(rules, shared=self.blankets == "shared", join_both=self.rule == "and")
        learned = learn_graphs(data, order, strategy, run)
        self.structure_ = CanonicalModel.from_edges(data.domain, data.rows, data.counts, learned.edges)
        self.n_tests_ = learned.n_tests
        self.n_distinct_tests_ = learned.n_distinct_tests
        self.max_distinct_tests_ = learned.max_distinct_tests


def learn_graphs(
    data: Dataset, order: list[int], strategy: Strategy, run: Run | None = None
) -> ContextGraphs:
    """Learn the canonical graph of every distinct row.

    The search follows from the size of the table alone: by a cube of the counts of all partial assignments
    where it is small, else by cohorts. Both give what `grow_shrink.algorithm.csgs` gives.
    """
    run = run or Run()
    if not fits_cube(data.domain.n_levels):
        return learn_by_cohorts(data, order, strategy, run)
    steps = run.steps(data.n_variables)
    # Done in less time than workers need to begin.
    (part,) = run.shards(_learn_by_cube, [(data, order, strategy)])
    steps.tick(data.n_variables)
    return ContextGraphs(part["edges"], int(part["n_tests"]), int(part["n_distinct"]))


def _learn_by_cube(data: Dataset, order: list[int], strategy: Strategy, _: CancelToken) -> Arrays:
    """Learn one context after the other, with all counts in memory."""
    cube = build_cube(data, order)
    n, most = data.n_variables, int(cube.n_levels.max())
    graphs = np.repeat(unpack_sets(strategy.rules.required, n)[None], data.n_distinct, axis=0)
    work = CubeWorkspace(
        np.zeros(n * (n - 1) // 2 * len(cube.counts), dtype=np.uint8),
        np.empty(most * most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(most),
    )
    rows = np.ascontiguousarray(data.rows[:, order])
    n_asked, n_distinct = grow_shrink_rows(rows, graphs, cube, strategy.rules, strategy.shared, work)
    mirrored = graphs.transpose(0, 2, 1)
    joined = graphs & mirrored if strategy.join_both else graphs | mirrored
    # From the order of the learner back to the order of the columns.
    rank = np.argsort(order)
    first, second = np.triu_indices(n, 1)
    edges = pack(joined[:, rank[first], rank[second]])
    return {"edges": edges, "n_tests": np.array(n_asked), "n_distinct": np.array(n_distinct)}
