"""Who learns from a table, and how each gets features and weights."""

from dataclasses import dataclass
from typing import Any

from studies.paper.readings import Reading
from studies.paper.tables import Table
from unless.data.dataset import Dataset, hold_out
from unless.learners.base import Estimator
from unless.learners.dtsl import DTSL
from unless.learners.gssl import GSSL
from unless.learners.registry import LEARNERS
from unless.structures.canonical import CanonicalModel
from unless.weights.priors import Gaussian, Laplace

# The share that GSSL and DTSL judge their settings by, and the seed of its draw.
VALIDATION, SPLIT_SEED = 0.3, 0
# Settings tried: six of GSSL, five of DTSL.
GSSL_PRUNE = (1, 10)
GSSL_PRIORS = tuple(Gaussian(1.0) + Laplace(l1) for l1 in (10.0, 5.0, 1.0))
KAPPAS = (1.0, 0.1, 0.01, 0.001, 0.0001)


@dataclass(frozen=True)
class Learned:
    """A structure, the rows its weights are learned from, and the number of questions asked."""

    structure: Any
    rows: Dataset
    n_tests: int = 0
    n_distinct_tests: int = 0


def learn(contestant: str, table: Table, reading: Reading) -> Learned:
    """Let one contestant learn; the two references are given their structures."""
    if contestant == "generating":
        return Learned(table.truth.features, table.data)
    if contestant == "canonical":
        return Learned(_true_graphs(table), table.data)
    learner = learner_of(contestant, reading).fit(table.data)
    return Learned(
        learner.structure_, _rows_of(learner, table.data), learner.n_tests_, learner.n_distinct_tests_ or 0
    )


def learner_of(contestant: str, reading: Reading) -> Estimator:
    """Make a learner as the paper describes it, and as the reading reads it."""
    alone: dict[str, Any] = {"n_jobs": 1, "show_progress": False}
    name, _, order = contestant.partition("-")
    canonical = {"order": order or "columns", **reading.learner, **alone}
    judged = {"validation": VALIDATION, "random_state": SPLIT_SEED, "refit": reading.refit, **alone}
    if name == "GSSL":
        return GSSL(prune=GSSL_PRUNE, prior=GSSL_PRIORS, **judged)
    if name == "DTSL":
        # As in the source of its features: a split needs no more than one row on each side.
        return DTSL(KAPPAS, min_rows=1, prior=Gaussian(reading.sd), **judged)
    if name in ("CSGS", "CSPC"):
        return LEARNERS[name](**{"alpha": 0.05, **canonical})
    return LEARNERS[name](**alone)


def _rows_of(learner: Estimator, data: Dataset) -> Dataset:
    """Return the rows a learner's weights may see: its own training rows, if it held some back."""
    if isinstance(learner, GSSL | DTSL) and not learner.refit:
        return hold_out(data, VALIDATION, SPLIT_SEED)[0]
    return data


def _true_graphs(table: Table) -> CanonicalModel:
    # A reading may have turned the columns; the true model is asked in its own order.
    return table.truth.truth(table.data.select(table.truth.domain.names))
