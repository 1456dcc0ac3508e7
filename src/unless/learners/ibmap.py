"""IBMAP-HC: the graph whose independences are most probable (Schlueter, Bromberg and Edera, AMAI 2014)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from unless.counting.strata import StrataTable, bytes_to_count
from unless.data.dataset import Dataset
from unless.data.showing import html_table
from unless.errors import SettingError, TooLarge
from unless.independence.oracle import terms_at
from unless.learners.base import Learner
from unless.learners.climbing import Limits, Links, Scorer
from unless.learners.expeditions import Expedition
from unless.learners.settings import EdgeNames, at_least, edge_limits, learned, setting
from unless.runtime.checkpoints import Checkpoint
from unless.runtime.memory import parse_memory, show_memory
from unless.runtime.progress import progress
from unless.structures.graph import Graph
from unless.structures.pairs import Edge


@dataclass(frozen=True, slots=True)
class Assertion:
    """What the blanket of one variable says of another one, and how probable that is given the data."""

    claim: str
    given: tuple[str, ...]
    log_probability: float

    @property
    def probability(self) -> float:
        """The posterior probability of the claim."""
        return math.exp(self.log_probability)

    def _repr_html_(self) -> str:
        given = ", ".join(self.given) or "nothing"
        return html_table(f"{self.claim}, probability {self.probability:.3g}", ("given",), [(given,)])


class IBMAPHC(Learner):
    """Learn one graph by hill climbing on the probability of what it asserts.

    For every ordered pair a graph asserts that b depends on a given the rest of a's blanket, if b is in it,
    else that b is independent of a given the blanket. The score is the sum of the logs of the posterior
    probabilities of these assertions by the Bayesian test. From the graph of the required edges, the edge
    whose flip gains most is flipped until none gains.

    `score_` is the score reached; `assertions_` gives, for each ordered pair of names, the assertion, what
    it is conditioned on, and its probability. An edge has two: one from each of its ends.

    With `work_dir=` every score known and the way climbed so far are kept every two seconds; `resume=True`
    goes on to the same graph, score and counts.

    Parameters
    ----------
    n_restarts
        How often to climb again from the best graph so far with some of its edges flipped at random.
    random_state
        The seed the restarts are drawn from; None draws others every time.
    max_blanket
        No variable gets more neighbours than this, unless more are required.
    required_edges, forbidden_edges
        Pairs of names that are in the graph, or not.

    Examples
    --------
    >>> import unless
    >>> est = unless.IBMAPHC().fit(unless.datasets.load_ucb_admissions())
    >>> sorted(est.structure_)
    [('Admit', 'Dept'), ('Admit', 'Gender'), ('Dept', 'Gender')]
    >>> assertion = est.assertions_["Admit", "Gender"]
    >>> assertion.claim, assertion.given
    ('dependent', ('Dept',))
    """

    kept_structure = Graph
    n_restarts: int = setting(default=0, check=at_least(0, optional=False))
    random_state: int | None = setting(default=0, check=at_least(0))
    max_blanket: int | None = setting(default=None, check=at_least(0))
    required_edges: EdgeNames = setting(default=None)
    forbidden_edges: EdgeNames = setting(default=None)
    score_: float = learned()
    assertions_: dict[Edge, Assertion] = learned()

    def _learn(self, data: Dataset) -> None:
        n_workers = self._check_memory(data)
        store = self._checkpoint_store(data)
        if self._restore(store):
            return
        # By name: the order of the columns must not decide anything, not even the rounding.
        named = data.select(sorted(data.names))
        must, never = edge_limits(named.domain, self.required_edges, self.forbidden_edges)
        table = StrataTable.of(named)
        scorer = Scorer(table, n_workers)
        limits = Limits(
            _flippable(table, must, never), len(must) if self.max_blanket is None else self.max_blanket
        )
        rng = np.random.default_rng(self.random_state)
        expedition = Expedition(scorer, must, limits, rng, Checkpoint(store, "climb"))
        with progress("IBMAPHC", self.show_progress) as scorer.bar:
            best = expedition.run(self.n_restarts, scorer.bar)
        edges = ((named.names[a], named.names[b]) for a, b in np.argwhere(np.triu(best.links)))
        graph = Graph(data.domain, edges)
        # Asks tests too: nothing is set before all is known.
        self.assertions_ = _assertions(table, graph, named.names)
        self.structure_, self.score_ = graph, best.score
        self.n_tests_ = scorer.n_asked
        self.n_distinct_tests_ = scorer.tally.n_distinct
        self._checkpoint(store)

    def _to_record(self) -> tuple[Graph, dict[str, Any]]:
        # Claims and what they are conditioned on follow from the graph.
        listed = [
            {"variable": a, "other": b, "log_probability": assertion.log_probability}
            for (a, b), assertion in self.assertions_.items()
        ]
        return self.structure_, {"score": self.score_, "assertions": listed}

    def _from_record(self, structure: Any, results: Mapping[str, Any]) -> None:
        super()._from_record(structure, results)
        if not isinstance(results["score"], float):
            raise SettingError("its score is no number")
        self.score_ = results["score"]
        self.assertions_ = {
            (one["variable"], one["other"]): _assertion(
                structure, one["variable"], one["other"], one["log_probability"]
            )
            for one in results["assertions"]
        }

    def _check_memory(self, data: Dataset) -> int:
        """Return the number of workers, or refuse with the estimate before any work."""
        from joblib import effective_n_jobs

        n = data.n_variables
        n_workers = max(1, int(effective_n_jobs(self.n_jobs)))
        # The first step asks n - 1 questions for each ordered pair; half of them are different, and their
        # names are sorted beside a copy. Scores are kept by blanket, terms until they are added up.
        need = bytes_to_count(data, n_workers + 1) + 3 * 16 * n**3 // 2 + 32 * n**3 + 400 * n**2
        limit = parse_memory(self.max_memory)
        if need > limit:
            raise TooLarge(
                f"Climbing over graphs of {n:,} variables and {data.n_distinct:,} distinct rows would need "
                f"about {show_memory(need)}, more than the {show_memory(limit)} allowed; choose fewer "
                "columns or raise max_memory=."
            )
        return n_workers


def _flippable(table: StrataTable, must: Links, never: Links) -> Links:
    """Tell which edges a climb may touch: a variable that shows a single level has nothing to say."""
    varies = table.columns.n_used > 1
    allowed: Links = ~(must | never) & varies[:, None] & varies[None, :]
    np.fill_diagonal(allowed, False)
    return allowed


def _assertions(table: StrataTable, graph: Graph, names: tuple[str, ...]) -> dict[Edge, Assertion]:
    desk, assertions = table.workspace(), {}
    for a, name in enumerate(names):
        blanket = sorted(names.index(other) for other in graph.neighbours(name))
        terms = terms_at(table, a, blanket, desk)
        for b, other in enumerate(names):
            if b != a:
                assertions[name, other] = _assertion(graph, name, other, float(terms[b]))
    return assertions


def _assertion(graph: Graph, name: str, other: str, log_probability: float) -> Assertion:
    given = tuple(sorted(set(graph.neighbours(name)) - {other}))
    claim = "dependent" if graph.has_edge(name, other) else "independent"
    return Assertion(claim, given, log_probability)
