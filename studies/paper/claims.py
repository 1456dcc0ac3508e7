"""The paper's claims in its own words, held against what was measured."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from studies.paper.methods import CSPCS, REFERENCES, RIVALS
from studies.paper.plan import Study
from studies.paper.results import Floats, Results, curve
from studies.paper.variants import HEADLINE

LEVEL = 0.05
# Two divergences are similar where neither is more than a quarter above the other.
SIMILAR = 1.25

# For each size (rows) and network (columns): above 0 speaks for the claim, below against it, NaN of nothing.
Margins = Callable[[Results, Study, str, int], Floats]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, one comparison it makes, and how a cell speaks for or against it.

    A cell is one number of variables and one number of rows. `reference` is what nearness is judged by;
    `is_ours` marks comparisons that the paper's words do not make.
    """

    key: str
    words: str
    compares: str
    margins: Margins
    speaks_of: frozenset[str]
    reference: str | None = None
    is_ours: bool = False

    @property
    def is_of_cspc(self) -> bool:
        """Whether it depends on how CSPC is read."""
        return not self.speaks_of.isdisjoint(CSPCS)


class SignCounts(NamedTuple):
    """Cells for and against a claim by their means, the sign test, and the cells that ten networks settle."""

    n_for: int
    n_against: int
    p: float
    settled_for: int
    settled_against: int


@dataclass(frozen=True)
class Finding:
    """What became of a claim under one variant and one CSPC."""

    claim: Claim
    variant: str
    cspc: str
    signs: SignCounts
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        claim = {"key": self.claim.key, "words": self.claim.words, "compared": self.claim.compares}
        return {
            **claim,
            "variant": self.variant,
            "cspc": self.cspc,
            **self.signs._asdict(),
            "verdict": self.verdict,
        }


SIMILAR_WORDS = "the structures learned by CSGS reach similar divergences in most cases to CSPC"
BETTER_WORDS = (
    "in most cases, the divergences obtained by CSGS and CSPC are better than those obtained by the other "
    "structure learners"
)
CLOSER_WORDS = (
    "the divergences of CSGS and CSPC are closer to the divergences obtained by the underlying structure"
)
FEWER_WORDS = "the number of tests performed by CSGS is smaller than those performed by CSPC"
GROWING_WORDS = "The difference between both dramatically increases as data increases"


def all_claims(cspc: str = CSPCS[0]) -> list[Claim]:
    """List the claims of the paper's section 4.3, one comparison each, with one way to read CSPC."""
    both = frozenset(("CSGS", cspc))
    similar, no_worse, overlap, growing = (
        partial(margins, cspc) for margins in (_similar, _no_worse, _overlap, _growing)
    )
    claims = [
        Claim("similar", SIMILAR_WORDS, f"CSGS within {SIMILAR} times CSPC, either way", similar, both),
        Claim(
            "overlap", SIMILAR_WORDS, "bars of one sd of CSGS and CSPC overlap, linear axis", overlap, both
        ),
        Claim("no-worse", SIMILAR_WORDS, f"CSGS at most {SIMILAR} times CSPC", no_worse, both, is_ours=True),
    ]
    pairs = [(ours, rival) for ours in (("CSGS", "CSGS"), ("CSPC", cspc)) for rival in RIVALS]
    for (ours, method), rival in pairs:
        lower = _lower("kl", method, rival)
        spoken = frozenset((method, rival))
        claims.append(Claim(f"{ours}-{rival}", BETTER_WORDS, f"{ours} below {rival}", lower, spoken))
    for reference, ((ours, method), rival) in product(REFERENCES, pairs):
        words = f"{ours} nearer than {rival} to the {REFERENCE_WORDS[reference]}"
        spoken = frozenset((method, rival, reference))
        nearer = _nearer(method, rival, reference)
        claims.append(Claim(f"{ours}-{rival}-{reference}", CLOSER_WORDS, words, nearer, spoken, reference))
    for key, field, what in (("fewer", "n_tests", "questions"), ("fewer-distinct", *_DISTINCT)):
        lower, is_ours = _lower(field, "CSGS", cspc), key == "fewer-distinct"
        compares = f"{what} of CSGS below CSPC"
        claims.append(Claim(key, FEWER_WORDS, compares, lower, both, is_ours=is_ours))
    words = "CSPC - CSGS questions, above the size before"
    return [*claims, Claim("growing", GROWING_WORDS, words, growing, both)]


_DISTINCT = ("n_distinct_tests", "distinct tables")
REFERENCE_WORDS = {"generating": "generating features", "canonical": "true canonical graphs"}


def headline_findings(results: Results) -> dict[str, list[Finding]]:
    """Judge the claims under the headline, for each CSPC that was compared; those about CSGS alone once."""
    # Without any CSPC there are the claims about CSGS.
    first, *others = [one for one in CSPCS if one in results.plan.main.methods] or CSPCS[:1]
    found = {cspc: findings(results, cspc=cspc) for cspc in others}
    return {
        first: findings(results, cspc=first),
        **{cspc: [one for one in some if one.claim.is_of_cspc] for cspc, some in found.items()},
    }


def findings(results: Results, variant: str = HEADLINE.name, cspc: str = CSPCS[0]) -> list[Finding]:
    """Judge every claim whose methods were all compared, under a variant and with one CSPC."""
    study = results.plan.main
    claims = [claim for claim in all_claims(cspc) if claim.speaks_of <= set(study.methods)]
    return [find(claim, results, study, variant, cspc) for claim in claims]


def find(
    claim: Claim, results: Results, study: Study, variant: str = HEADLINE.name, cspc: str = CSPCS[0]
) -> Finding:
    """Count the cells for and against a claim, and pass the verdict."""
    margins = np.stack([claim.margins(results, study, variant, n) for n in study.n_variables])
    signs = _count_signs(margins)
    return Finding(claim, variant, cspc, signs, _verdict(margins, study, signs))


@cache
def sign_test(n_for: int, n_against: int) -> float:
    """Return the two-sided p of this many signs each way, were both as likely."""
    from scipy.stats import binomtest

    return float(binomtest(n_for, n_for + n_against).pvalue) if n_for + n_against else 1.0


def _count_signs(margins: Floats) -> SignCounts:
    """Count cells (n_variables x sizes), each with a margin for every network."""
    means = margins.mean(axis=-1)
    n_for, n_against = _signs(means)
    settled = [0, 0]
    for cell in margins.reshape(-1, margins.shape[-1]):
        signs = _signs(cell)
        if sign_test(*signs) < LEVEL:
            settled[signs[0] < signs[1]] += 1
    return SignCounts(n_for, n_against, sign_test(n_for, n_against), *settled)


def _signs(margins: Floats) -> tuple[int, int]:
    return int((margins > 0).sum()), int((margins < 0).sum())


def _verdict(margins: Floats, study: Study, signs: SignCounts) -> str:
    """Say: holds, holds from a size (one of several looked at, and paying for it), or does not hold."""
    means = margins.mean(axis=-1)
    if sign_test(int(np.isfinite(means).sum()), 0) >= LEVEL:
        return "too few cells"
    if signs.n_for > signs.n_against and signs.p < LEVEL:
        return "holds"
    for first, size in enumerate(study.sizes):
        n_for, n_against = _signs(means[:, first:])
        begins = np.greater(*_signs(means[:, first]))
        if begins and n_for > n_against and sign_test(n_for, n_against) < LEVEL / len(study.sizes):
            return f"holds from N = {size:,}"
    return "does not hold"


def _of(results: Results, study: Study, variant: str, n: int, method: str, field: str) -> Floats:
    return curve(results, study, variant, "complete", n, method, field)


def _lower(field: str, ours: str, other: str) -> Margins:
    def margins(results: Results, study: Study, variant: str, n: int) -> Floats:
        mine, theirs = (_of(results, study, variant, n, one, field) for one in (ours, other))
        return theirs - mine

    return margins


def _nearer(ours: str, rival: str, reference: str) -> Margins:
    def margins(results: Results, study: Study, variant: str, n: int) -> Floats:
        mine, theirs, best = (_of(results, study, variant, n, one, "kl") for one in (ours, rival, reference))
        return np.abs(theirs - best) - np.abs(mine - best)

    return margins


def _similar(cspc: str, results: Results, study: Study, variant: str, n: int) -> Floats:
    mine, theirs = (_of(results, study, variant, n, one, "kl") for one in ("CSGS", cspc))
    ratio = np.log(mine) - np.log(theirs)
    # How far the networks of a cell are off in the direction in which their mean is.
    return np.asarray(np.log(SIMILAR) - np.sign(ratio.mean(axis=1, keepdims=True)) * ratio)


def _no_worse(cspc: str, results: Results, study: Study, variant: str, n: int) -> Floats:
    mine, theirs = (_of(results, study, variant, n, one, "kl") for one in ("CSGS", cspc))
    return np.asarray(np.log(SIMILAR) - (np.log(mine) - np.log(theirs)))


def _overlap(cspc: str, results: Results, study: Study, variant: str, n: int) -> Floats:
    """Say by how much the bars overlap that the figure draws: one margin for all networks of a cell."""
    mine, theirs = (_of(results, study, variant, n, one, "kl") for one in ("CSGS", cspc))
    reach = sum(one.std(axis=1, ddof=1) for one in (mine, theirs)) if study.n_networks > 1 else 0
    return np.asarray(reach - np.abs(mine.mean(axis=1) - theirs.mean(axis=1)))[:, None]


def _growing(cspc: str, results: Results, study: Study, variant: str, n: int) -> Floats:
    mine, theirs = (_of(results, study, variant, n, one, "n_tests") for one in ("CSGS", cspc))
    gap = theirs - mine
    # The first size has none before it and says nothing.
    return np.concatenate([np.full_like(gap[:1], np.nan), np.diff(gap, axis=0)])
