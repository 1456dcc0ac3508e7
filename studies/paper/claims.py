"""The paper's claims in its own words, held against what was measured."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from studies.paper.plan import Study
from studies.paper.readings import CANONICAL, HEADLINE, REFERENCES, RIVALS
from studies.paper.results import Floats, Results, curve

LEVEL = 0.05
# Two divergences are similar where neither is more than a quarter above the other.
SIMILAR = 1.25

# For each size (rows) and network (columns): above 0 speaks for the claim, below against it, NaN of nothing.
Margins = Callable[[Results, Study, str, int], Floats]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, one comparison it makes, and how a cell speaks for or against it."""

    key: str
    words: str
    compares: str
    margins: Margins
    speaks_of: frozenset[str]


class Tally(NamedTuple):
    """Cells for and against a claim by their means, the sign test, and the cells that ten networks settle."""

    n_for: int
    n_against: int
    p: float
    settled_for: int
    settled_against: int


@dataclass(frozen=True)
class Finding:
    """What became of a claim under one reading."""

    claim: Claim
    reading: str
    tally: Tally
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        claim = {"key": self.claim.key, "words": self.claim.words, "compared": self.claim.compares}
        return {**claim, "reading": self.reading, **self.tally._asdict(), "verdict": self.verdict}


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


def all_claims() -> list[Claim]:
    """List the claims of the paper's section 4.3, one comparison each."""
    both = frozenset(CANONICAL)
    claims = [
        Claim("similar", SIMILAR_WORDS, f"CSGS within {SIMILAR} times CSPC, either way", _similar, both),
        Claim("no-worse", SIMILAR_WORDS, f"CSGS at most {SIMILAR} times CSPC", _no_worse, both),
    ]
    pairs = [(ours, rival) for ours in CANONICAL for rival in RIVALS]
    for ours, rival in pairs:
        lower = _lower("kl", ours, rival)
        spoken = frozenset((ours, rival))
        claims.append(Claim(f"{ours}-{rival}", BETTER_WORDS, f"{ours} below {rival}", lower, spoken))
    for reference, (ours, rival) in product(REFERENCES, pairs):
        words = f"{ours} nearer than {rival} to the {_REFERENCE_WORDS[reference]}"
        spoken = frozenset((ours, rival, reference))
        nearer = _nearer(ours, rival, reference)
        claims.append(Claim(f"{ours}-{rival}-{reference}", CLOSER_WORDS, words, nearer, spoken))
    for key, field, what in (("fewer", "n_tests", "questions"), ("fewer-distinct", *_DISTINCT)):
        lower = _lower(field, "CSGS", "CSPC")
        claims.append(Claim(key, FEWER_WORDS, f"{what} of CSGS below CSPC", lower, both))
    words = "CSPC - CSGS questions, above the size before"
    return [*claims, Claim("growing", GROWING_WORDS, words, _growing, both)]


_DISTINCT = ("n_distinct_tests", "distinct tables")
_REFERENCE_WORDS = {"generating": "generating features", "canonical": "true canonical graphs"}


def findings(results: Results) -> list[Finding]:
    """Judge every claim whose contestants were all in the run, under the headline's reading."""
    study = results.plan.main
    return [
        find(claim, results, study) for claim in all_claims() if claim.speaks_of <= set(study.contestants)
    ]


def find(claim: Claim, results: Results, study: Study, reading: str = HEADLINE.name) -> Finding:
    """Count the cells for and against a claim, and pass the verdict."""
    margins = np.stack([claim.margins(results, study, reading, n) for n in study.n_variables])
    tally = _tally(margins)
    return Finding(claim, reading, tally, _verdict(margins, study, tally))


def readings_of(claim: Claim, results: Results, study: Study) -> Iterator[Finding]:
    """Try a claim under every other reading."""
    for reading in study.readings:
        if reading != HEADLINE.name:
            yield find(claim, results, study, reading)


def sign_test(n_for: int, n_against: int) -> float:
    """Return the two-sided p of this many signs each way, were both as likely."""
    from scipy.stats import binomtest

    return float(binomtest(n_for, n_for + n_against).pvalue) if n_for + n_against else 1.0


def _tally(margins: Floats) -> Tally:
    """Count cells (n_variables x sizes), each with a margin for every network."""
    means = margins.mean(axis=-1)
    n_for, n_against = _signs(means)
    settled = [0, 0]
    for cell in margins.reshape(-1, margins.shape[-1]):
        signs = _signs(cell)
        if sign_test(*signs) < LEVEL:
            settled[signs[0] < signs[1]] += 1
    return Tally(n_for, n_against, sign_test(n_for, n_against), *settled)


def _signs(margins: Floats) -> tuple[int, int]:
    return int((margins > 0).sum()), int((margins < 0).sum())


def _verdict(margins: Floats, study: Study, tally: Tally) -> str:
    """Say: holds, holds from a size (one of several looked at, and paying for it), or does not hold."""
    means = margins.mean(axis=-1)
    if sign_test(int(np.isfinite(means).sum()), 0) >= LEVEL:
        return "too few cells"
    if tally.n_for > tally.n_against and tally.p < LEVEL:
        return "holds"
    for first, size in enumerate(study.sizes):
        n_for, n_against = _signs(means[:, first:])
        begins = np.greater(*_signs(means[:, first]))
        if begins and n_for > n_against and sign_test(n_for, n_against) < LEVEL / len(study.sizes):
            return f"holds from N = {size:,}"
    return "does not hold"


def _of(results: Results, study: Study, reading: str, n: int, contestant: str, field: str) -> Floats:
    return curve(results, study, reading, "complete", n, contestant, field)


def _lower(field: str, ours: str, other: str) -> Margins:
    def margins(results: Results, study: Study, reading: str, n: int) -> Floats:
        mine, theirs = (_of(results, study, reading, n, one, field) for one in (ours, other))
        return theirs - mine

    return margins


def _nearer(ours: str, rival: str, reference: str) -> Margins:
    def margins(results: Results, study: Study, reading: str, n: int) -> Floats:
        mine, theirs, best = (_of(results, study, reading, n, one, "kl") for one in (ours, rival, reference))
        return np.abs(theirs - best) - np.abs(mine - best)

    return margins


def _similar(results: Results, study: Study, reading: str, n: int) -> Floats:
    mine, theirs = (_of(results, study, reading, n, one, "kl") for one in CANONICAL)
    ratio = np.log(mine) - np.log(theirs)
    # How far the networks of a cell are off in the direction in which their mean is.
    return np.asarray(np.log(SIMILAR) - np.sign(ratio.mean(axis=1, keepdims=True)) * ratio)


def _no_worse(results: Results, study: Study, reading: str, n: int) -> Floats:
    mine, theirs = (_of(results, study, reading, n, one, "kl") for one in CANONICAL)
    return np.asarray(np.log(SIMILAR) - (np.log(mine) - np.log(theirs)))


def _growing(results: Results, study: Study, reading: str, n: int) -> Floats:
    mine, theirs = (_of(results, study, reading, n, one, "n_tests") for one in CANONICAL)
    gap = theirs - mine
    # The first size has none before it and says nothing.
    return np.concatenate([np.full_like(gap[:1], np.nan), np.diff(gap, axis=0)])
