"""Which single interpretation of the paper makes most of its claims hold at once.

An interpretation fixes all that the paper leaves open: a variant, a way to read CSPC, and what is meant by
the underlying structure. `RULE` says which is best; it was written before the study was run.
"""

from collections.abc import Iterator
from typing import NamedTuple

from studies.paper.claims import Finding, findings
from studies.paper.methods import CSPCS, REFERENCES
from studies.paper.results import Results
from studies.paper.variants import variant_named

RULE = (
    "A comparison that the paper makes is worth 1 where it holds, 1/2 where it holds from some size on, "
    "else 0; a sentence is worth the mean of its comparisons. The best interpretation has the largest sum "
    "over the sentences. Of equals the first is best: variants in their order, from the headline on; CSPC "
    "shared, independent, with sub-cliques; the generating features before the true graphs."
)


class Interpretation(NamedTuple):
    """A variant, a CSPC and a reference, and what became of the paper's comparisons under them."""

    variant: str
    cspc: str
    reference: str
    found: list[Finding]

    @property
    def worths(self) -> dict[str, float]:
        """What each sentence of the paper is worth, in the paper's order."""
        sentences: dict[str, list[float]] = {}
        for finding in self.found:
            sentences.setdefault(finding.claim.words, []).append(worth(finding))
        return {words: sum(worths) / len(worths) for words, worths in sentences.items()}

    @property
    def n_holding(self) -> int:
        """How many comparisons hold for all sizes."""
        return sum(finding.verdict == "holds" for finding in self.found)


def worth(finding: Finding) -> float:
    """Return what a comparison is worth."""
    if finding.verdict == "holds":
        return 1.0
    return 0.5 if finding.verdict.startswith("holds from") else 0.0


def interpretations(results: Results) -> list[Interpretation]:
    """Judge every interpretation that the study has numbers for, the best first."""
    # Python's sort leaves equals in their order.
    return sorted(_all(results), key=lambda one: -sum(one.worths.values()))


def _all(results: Results) -> Iterator[Interpretation]:
    study = results.plan.main
    for variant in study.variants:
        for cspc in CSPCS:
            # Variants that say which features get weights say it of CSPC, too.
            if cspc not in study.methods or (
                cspc == "CSPC-subcliques" and variant_named(variant).features != "cliques"
            ):
                continue
            found = [one for one in findings(results, variant, cspc) if not one.claim.is_ours]
            for reference in REFERENCES:
                if reference in study.methods:
                    counted = [one for one in found if one.claim.reference in (None, reference)]
                    yield Interpretation(variant, cspc, reference, counted)


def holding_nowhere(every: list[Interpretation]) -> list[str]:
    """List the comparisons that hold, from some size on at least, under no interpretation."""
    best: dict[str, float] = {}
    for one in every:
        for finding in one.found:
            compares = finding.claim.compares
            best[compares] = max(best.get(compares, 0.0), worth(finding))
    return [compares for compares, most in best.items() if most == 0]
