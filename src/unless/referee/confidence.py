"""How likely a candidate is true: local false discovery rates, and the list they allow."""

from collections.abc import Sequence
from math import exp

import numpy as np

from unless.referee.regressions import Floats

# p below this makes no difference to a confidence, and its logarithm stays finite.
LEAST_P = 1e-60
# The law of p where there is a link is x p^(x - 1): one x for links that are easily seen, one for weak ones.
STRONG, WEAK = 0.005, 0.1
# Shares of pairs with a strong and with a weak link that are thought possible, by equal factors; a weak share
# counts by the inverse of its square (chosen on design seeds, so that confidences are kept).
_STRONG_SHARES = tuple(np.geomspace(0.005, 0.8, 16).tolist())
_WEAK_SHARES = tuple(np.geomspace(0.002, 0.3, 12).tolist())
# A finding may be wrong with at most so many times the rate aimed at, however sure the others are.
LOCAL = 8.0
# A gate that is no better than another reading of the same columns is right about half the time; each gain of
# so much on the scale of its score halves the odds of error, or more. Even the clearest are not always right.
# (Fitted on gated tables of 300 to 2,000 rows; docs/accuracy.md has other seeds.)
_GATE_SCALE, _GATE_MOST = 2.2, 0.985
# Sides that are said to differ do so about this often.
DIFFERENCE = 0.97


def link_confidences(p_values: Sequence[float]) -> Floats:
    """Return, for each pair, the probability that it is linked, from the p of all of them.

    The p of pairs without a link are uniform, those of links follow one of two laws. The shares of the two
    are not fitted but averaged over: a small table leaves them open, and a fitted share would follow chance.
    """
    if not len(p_values):
        return np.zeros(0)
    p = np.clip(np.asarray(p_values, dtype=np.float64), LEAST_P, 1.0)
    strong, weak = (shape * p ** (shape - 1) for shape in (STRONG, WEAK))
    likelihoods, linked = [], []
    for strong_share in _STRONG_SHARES:
        for weak_share in _WEAK_SHARES:
            absent = 1 - strong_share - weak_share
            if absent <= 0.02:
                continue
            density = absent + strong_share * strong + weak_share * weak
            likelihoods.append(float(np.log(density).sum()) - 2 * float(np.log(weak_share)))
            linked.append(1 - absent / density)
    weights = np.exp(np.array(likelihoods) - max(likelihoods))
    weights /= weights.sum()
    mean = np.zeros(len(p))
    for weight, one in zip(weights.tolist(), linked, strict=True):
        mean += weight * one
    return np.minimum(mean, 1.0)


def gate_confidence(margin: float) -> float:
    """Return how likely a gate is the right account of a pair that is linked, by its margin over others."""
    return _GATE_MOST / (1 + exp(-min(50.0, max(-50.0, margin)) / _GATE_SCALE))


def listed(confidences: Sequence[float], fdr: float) -> list[bool]:
    """Tell which candidates are findings: the surest, as long as at most `fdr` of them are expected false.

    None is listed that is itself false with more than `LOCAL` times that chance.
    """
    doubts = 1 - np.asarray(confidences, dtype=np.float64)
    order = np.argsort(doubts, kind="stable")
    means = np.cumsum(doubts[order]) / np.arange(1, len(order) + 1)
    kept = np.zeros(len(order), dtype=np.bool_)
    kept[order] = (means <= fdr) & (doubts[order] <= min(1.0, LOCAL * fdr))
    return [bool(one) for one in kept]
