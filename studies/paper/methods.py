"""The methods that are compared: how each learns, which features get weights, and how it is drawn.

A new method is one entry of METHODS and one of GROUPS; its name in ASKING counts its questions, too. The
claims of the paper speak of CSGS, CSPC and RIVALS; CSPCS are the ways to read CSPC.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from unless.data.dataset import Dataset, hold_out
from unless.learners.base import Estimator
from unless.learners.csgs import CSGS
from unless.learners.csibmap import CSIBMAP
from unless.learners.csmpl import CSMPL
from unless.learners.cspc import CSPC
from unless.learners.dtsl import DTSL
from unless.learners.ggs import GGS
from unless.learners.gsmn import GSMN
from unless.learners.gssl import CSGSSL, GSSL
from unless.learners.ibmap import IBMAPHC
from unless.structures.structure import Indicators
from unless.weights.priors import Gaussian, Laplace

if TYPE_CHECKING:
    from studies.paper.samples import Sample
    from studies.paper.variants import Variant

CSPCS = ("CSPC", "CSPC-independent", "CSPC-subcliques")
CANONICAL = ("CSGS", *CSPCS)
RIVALS = ("GSMN", "IBMAPHC", "GSSL", "DTSL")
REFERENCES = ("generating", "canonical")
# Those that ask questions context by context; sub-cliques change the weights alone.
ASKING = ("CSGS", "CSPC", "CSPC-independent")
# The searches that the paper announces: what they ask stands beside it, in a table of its own.
SEARCHES = ("CSIBMAP", "CSGSSL", "CSMPL")
# Each has figures of its own, after its name: what the paper compares, and what came later. CSGS and the
# generating features are in both.
GROUPS = {
    "": ("CSGS", "CSPC", "CSPC-independent", *RIVALS, *REFERENCES),
    "-later": (
        "CSGS", "CSGS-association", "CSPC-association", "CSPC-subcliques",
        *SEARCHES, "GGS", "generating",
    ),
}  # fmt: skip
# The share that GSSL and DTSL judge their settings by, and the seed of its draw.
VALIDATION, SPLIT_SEED = 0.3, 0
# Settings tried: six of GSSL, five of DTSL.
GSSL_PRUNE = (1, 10)
GSSL_PRIORS = tuple(Gaussian(1.0) + Laplace(l1) for l1 in (10.0, 5.0, 1.0))
KAPPAS = (1.0, 0.1, 0.01, 0.001, 0.0001)
_ALONE: dict[str, Any] = {"n_jobs": 1, "show_progress": False}

Make = Callable[["Variant"], Estimator]


class Style(NamedTuple):
    """How a method is drawn."""

    label: str
    colour: str
    marker: str
    dashes: Any


@dataclass(frozen=True)
class Method:
    """One curve: a learner as a variant reads it, or a reference, which is given its structure."""

    style: Style
    make: Make | None = None
    # Of a canonical model, whatever the variant says.
    features: Indicators | None = None
    # The largest n^3 N that it learns from.
    most_work: float = math.inf


def _canonical(learner: type[Estimator], **settings: Any) -> Make:
    return lambda variant: learner(
        **{"alpha": 0.05, "order": "columns", **settings, **variant.learner, **_ALONE}
    )


def _judged(variant: "Variant") -> dict[str, Any]:
    return {"validation": VALIDATION, "random_state": SPLIT_SEED, "refit": variant.refit, **_ALONE}


def _gssl(variant: "Variant") -> Estimator:
    return GSSL(prune=GSSL_PRUNE, prior=GSSL_PRIORS, **_judged(variant))


def _dtsl(variant: "Variant") -> Estimator:
    # As in the source of its features: a split needs no more than one row on each side.
    return DTSL(KAPPAS, min_rows=1, prior=Gaussian(variant.sd), **_judged(variant))


# Okabe and Ito's colours, which most eyes tell apart; markers and dashes carry the same without colour.
METHODS = {
    "CSGS": Method(Style("CSGS", "#0072B2", "o", "-"), _canonical(CSGS)),
    "CSPC": Method(Style("CSPC, shared", "#D55E00", "s", "-"), _canonical(CSPC, adjacency="shared")),
    "CSPC-independent": Method(
        Style("CSPC, independent", "#D55E00", "P", "--"), _canonical(CSPC, adjacency="independent")
    ),
    "CSPC-subcliques": Method(
        Style("CSPC, independent, sub-cliques", "#D55E00", "*", ":"),
        _canonical(CSPC, adjacency="independent"),
        "subcliques",
    ),
    "CSGS-association": Method(
        Style("CSGS, by association", "#56B4E9", "o", (0, (1, 1))), _canonical(CSGS, order="association")
    ),
    "CSPC-association": Method(
        Style("CSPC, shared, by association", "#E69F00", "s", (0, (1, 1))),
        _canonical(CSPC, adjacency="shared", order="association"),
    ),
    "GSMN": Method(Style("GSMN", "#009E73", "^", "--"), lambda _: GSMN(**_ALONE)),
    "IBMAPHC": Method(Style("IBMAP-HC", "#CC79A7", "v", "--"), lambda _: IBMAPHC(**_ALONE)),
    "GSSL": Method(Style("GSSL", "#7F7F7F", "D", "-."), _gssl),
    "DTSL": Method(Style("DTSL", "#8C6D1F", "X", "-."), _dtsl),
    "CSIBMAP": Method(
        Style("CSIBMAP", "#AA4499", "<", (0, (3, 1, 1, 1))),
        lambda _: CSIBMAP(**_ALONE),
        # Beyond, one table takes more than ten minutes.
        most_work=1e8,
    ),
    "CSGSSL": Method(Style("CSGSSL", "#999933", ">", (0, (3, 1, 1, 1))), lambda _: CSGSSL(**_ALONE)),
    "CSMPL": Method(Style("CSMPL", "#117733", "d", (0, (3, 1, 1, 1))), lambda _: CSMPL(**_ALONE)),
    "GGS": Method(Style("GGS", "#332288", "h", "-"), lambda _: GGS(**_ALONE)),
    "generating": Method(Style("generating features", "#000000", "", ":")),
    "canonical": Method(Style("true graphs, cliques", "#000000", "", (0, (5, 1, 1, 1, 1, 1)))),
}


@dataclass(frozen=True)
class Learned:
    """A structure, the rows its weights are learned from, and the number of questions asked."""

    structure: Any
    rows: Dataset
    n_tests: int = 0
    n_distinct_tests: int = 0


def learn(method: str, sample: "Sample", variant: "Variant") -> Learned:
    """Let one method learn; the two references are given their structures."""
    make = METHODS[method].make
    if make is None:
        # A variant may have turned the columns; the true model is asked in its own order.
        turned = sample.data.select(sample.truth.domain.names)
        return Learned(
            sample.truth.features if method == "generating" else sample.truth.truth(turned), sample.data
        )
    learner = make(variant).fit(sample.data)
    return Learned(
        learner.structure_, _rows_of(learner, sample.data), learner.n_tests_, learner.n_distinct_tests_ or 0
    )


def _rows_of(learner: Estimator, data: Dataset) -> Dataset:
    """Return the rows a learner's weights may see: its own training rows, if it held some back."""
    if isinstance(learner, GSSL | DTSL) and not learner.refit:
        return hold_out(data, VALIDATION, SPLIT_SEED)[0]
    return data
