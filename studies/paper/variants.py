"""What the paper leaves open, read one way in the headline and other ways beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from studies.paper.methods import ASKING, CANONICAL, METHODS, REFERENCES, RIVALS
from unless.errors import UnknownName
from unless.structures.structure import Indicators

# Those that the paper compares; the others are in the headline only.
_PAPER = (*CANONICAL, *RIVALS, *REFERENCES)


@dataclass(frozen=True)
class Variant:
    """One way to fill in what the paper leaves open: what differs from the headline, and whom it changes.

    A method that a variant does not change has the headline's results in it.
    """

    name: str
    says: str
    changes: tuple[str, ...] = tuple(METHODS)
    domain: Mapping[str, Any] = field(default_factory=dict)
    learner: Mapping[str, Any] = field(default_factory=dict)
    first: str | None = None
    sd: float = 1.0
    relative_tolerance: float | None = None
    features: Indicators = "cliques"
    refit: bool = False


HEADLINE = Variant(
    "headline", "Normal weights, W balanced and last; columns in their order; sd 1; clique features."
)
VARIANTS = (
    HEADLINE,
    Variant("raw", "The raw law: W as normal weights leave it.", _PAPER, {"balance": False}),
    Variant("uniform", "Weights from U(0, 1), W balanced.", _PAPER, {"law": "uniform"}),
    Variant(
        "uniform-raw",
        "Weights from U(0, 1), W as they leave it.",
        _PAPER,
        {"law": "uniform", "balance": False},
    ),
    Variant(
        "raw-association",
        "The raw law, and variables visited by association.",
        _PAPER,
        {"balance": False},
        {"order": "association"},
    ),
    Variant(
        "association",
        "Variables are visited by association, the strongest first.",
        CANONICAL,
        learner={"order": "association"},
    ),
    Variant("w-first", "W is the first column, and visited first.", CANONICAL, first="W"),
    Variant(
        "undecided",
        "A table without enough data, or without a degree of freedom, neither adds a link nor removes one.",
        CANONICAL,
        learner={"undecided": "keep"},
    ),
    Variant("sd-0.5", "Weights with a prior of sd 0.5.", _PAPER, sd=0.5),
    Variant("sd-10", "Weights with a prior of sd 10.", _PAPER, sd=10.0),
    Variant(
        "early",
        "The search for weights stops as Libra's does, at a relative change of 1e-3.",
        _PAPER,
        relative_tolerance=1e-3,
    ),
    Variant(
        "pairs",
        "Features of pairs in their contexts, in place of cliques.",
        (*ASKING, "canonical"),
        features="pairs",
    ),
    # Of complete graphs there are too many: the true graphs keep the features of their cliques.
    Variant(
        "subcliques",
        "Features of all parts of cliques, in place of cliques.",
        ASKING,
        features="subcliques",
    ),
    Variant(
        "refit",
        "GSSL and DTSL learn from all rows once their setting is chosen.",
        ("GSSL", "DTSL"),
        refit=True,
    ),
)


def variant_named(name: str) -> Variant:
    """Return a variant by its name."""
    for variant in VARIANTS:
        if variant.name == name:
            return variant
    known = ", ".join(variant.name for variant in VARIANTS)
    raise UnknownName(f"There is no variant {name!r}; there are {known}.")
