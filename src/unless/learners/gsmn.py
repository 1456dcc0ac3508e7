"""GSMN: one graph by Grow-Shrink with pooled tests (Bromberg, Margaritis and Honavar, JAIR 2009)."""

import math
from collections.abc import Sequence
from typing import Literal

from unless.counting.strata import bytes_to_count, bytes_to_join
from unless.data.dataset import Dataset
from unless.errors import TooLarge
from unless.independence.oracle import PooledOracle
from unless.learners.base import Learner
from unless.learners.grow_shrink import Strategy, learn_graph
from unless.learners.settings import (
    EdgeNames,
    at_least,
    between,
    edge_limits,
    resolve_order,
    setting,
)
from unless.runtime.memory import parse_memory, show_memory
from unless.runtime.parallel import n_workers, share_input, shares_memory
from unless.runtime.progress import progress
from unless.structures.graph import Graph


class GSMN(Learner):
    """Learn one graph: a blanket for every variable by Grow-Shrink, joined by a rule.

    Each question is a test of two variables given a blanket, pooled over the blanket's strata: statistics
    and degrees of freedom are summed.

    With `work_dir=` finished blankets are kept; "gsmn*", one visit upon the other, keeps them every two
    seconds.

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

    def _learn(self, data: Dataset) -> None:
        workers = self._check_memory(data)
        named = _by_name(data)
        keeps = self.undecided == "keep"
        store = self._checkpoint_store(data)
        settings = self.test, float(self.alpha), float(self.effect), keeps
        source = share_input(data, store, _asker, *settings)
        with progress("GSMN", self.show_progress, data.n_variables) as step:
            learned = learn_graph(source.load(), self._strategy(data, named), workers, step, store, source)
        self.structure_ = Graph(data.domain, ((named.names[a], named.names[b]) for a, b in learned.edges))
        self.n_tests_ = learned.n_tests
        self.n_distinct_tests_ = learned.n_distinct_tests

    def _strategy(self, data: Dataset, named: Dataset) -> Strategy:
        order = None
        if not (isinstance(self.order, str) and self.order == "association"):
            order = [named.domain.index(data.names[column]) for column in resolve_order(data, self.order)]
        must, never = edge_limits(named.domain, self.required_edges, self.forbidden_edges)
        return Strategy(
            must,
            never,
            order,
            collaborates=self.variant == "gsmn*",
            join_both=self.rule == "and",
            keeps_undecided=self.undecided == "keep",
            max_blanket=self.max_blanket,
        )

    def _check_memory(self, data: Dataset) -> int:
        """Return the number of workers, or refuse with the estimate before any work."""
        workers = min(n_workers(self.n_jobs), data.n_variables)
        # Per pair: associations as they are found and settled, and a few questions by name.
        sharing = workers if shares_memory() else 1
        need = bytes_to_count(data, sharing) + bytes_to_join(data, sharing) + 1000 * data.n_variables**2
        limit = parse_memory(self.max_memory)
        if need > limit:
            raise TooLarge(
                f"A graph over {data.n_variables:,} variables and {data.n_distinct:,} distinct rows would "
                f"need about {show_memory(need)}, more than the {show_memory(limit)} allowed; choose fewer "
                "columns or raise max_memory=."
            )
        return workers


def _by_name(data: Dataset) -> Dataset:
    # The order of the columns must not decide anything, not even the rounding.
    return data.select(sorted(data.names))


def _asker(data: Dataset, test: str, alpha: float, effect: float, keeps_undecided: bool) -> PooledOracle:
    return PooledOracle.of(_by_name(data), test, alpha, effect, weighs_power=keeps_undecided)
