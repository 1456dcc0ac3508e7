"""What the paper leaves open, read one way in the headline and other ways beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from unless.errors import UnknownName

REFERENCES = ("generating", "canonical")
CANONICAL = ("CSGS", "CSPC")
RIVALS = ("GSMN", "IBMAPHC", "GSSL", "DTSL")
# As the headline has them; the two canonical learners also visit variables by association.
CONTESTANTS = (*CANONICAL, "CSGS-association", "CSPC-association", *RIVALS, *REFERENCES)
# Those whose structures are canonical models: only they have a node order and cliques in contexts.
_ALL_CANONICAL = (*CANONICAL, "canonical")


@dataclass(frozen=True)
class Reading:
    """One way to read the paper: what differs from the headline, and whom it changes.

    A contestant that a reading does not change has the headline's results in it.
    """

    name: str
    says: str
    changes: tuple[str, ...] = CONTESTANTS
    domain: Mapping[str, Any] = field(default_factory=dict)
    learner: Mapping[str, Any] = field(default_factory=dict)
    first: str | None = None
    sd: float = 1.0
    relative_tolerance: float | None = None
    features: Literal["cliques", "pairs"] = "cliques"
    refit: bool = False


HEADLINE = Reading(
    "headline", "Normal weights, W balanced and last; columns in their order; sd 1; clique features."
)
_WITHOUT_ORDERS = (*CANONICAL, *RIVALS, *REFERENCES)
READINGS = (
    HEADLINE,
    Reading("raw", "The raw law: W as normal weights leave it.", _WITHOUT_ORDERS, {"balance": False}),
    Reading("uniform", "Weights from U(0, 1), W balanced.", _WITHOUT_ORDERS, {"law": "uniform"}),
    Reading(
        "uniform-raw",
        "Weights from U(0, 1), W as they leave it.",
        _WITHOUT_ORDERS,
        {"law": "uniform", "balance": False},
    ),
    Reading(
        "raw-association",
        "The raw law, and variables visited by association.",
        _WITHOUT_ORDERS,
        {"balance": False},
        {"order": "association"},
    ),
    Reading(
        "association",
        "Variables are visited by association, the strongest first.",
        CANONICAL,
        learner={"order": "association"},
    ),
    Reading("w-first", "W is the first column, and visited first.", CANONICAL, first="W"),
    Reading(
        "undecided",
        "A table without enough data, or without a degree of freedom, neither adds a link nor removes one.",
        CANONICAL,
        learner={"undecided": "keep"},
    ),
    Reading("sd-0.5", "Weights with a prior of sd 0.5.", _WITHOUT_ORDERS, sd=0.5),
    Reading("sd-10", "Weights with a prior of sd 10.", _WITHOUT_ORDERS, sd=10.0),
    Reading(
        "early",
        "The search for weights stops as Libra's does, at a relative change of 1e-3.",
        _WITHOUT_ORDERS,
        relative_tolerance=1e-3,
    ),
    Reading(
        "pairs", "Features of pairs in their contexts, in place of cliques.", _ALL_CANONICAL, features="pairs"
    ),
    Reading(
        "refit",
        "GSSL and DTSL learn from all rows once their setting is chosen.",
        ("GSSL", "DTSL"),
        refit=True,
    ),
)


def reading_named(name: str) -> Reading:
    """Return a reading by its name."""
    for reading in READINGS:
        if reading.name == name:
            return reading
    known = ", ".join(reading.name for reading in READINGS)
    raise UnknownName(f"There is no reading {name!r}; there are {known}.")
