"""The likelihood-ratio test, also called G."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import special

from unless.independence.chi_square import ChiSquareTest
from unless.independence.evidence import Floats, Integers, expected_counts, sides


def likelihood_ratio_statistic(tables: npt.ArrayLike) -> tuple[Floats, Integers]:
    """Return 2 sum O log(O / E) and the degrees of freedom of each of a batch of tables (... x a x b)."""
    observed, expected = np.asarray(tables, dtype=np.float64), expected_counts(tables)
    ratio = np.divide(observed, expected, out=np.ones_like(expected), where=expected > 0)
    statistic = 2 * special.xlogy(observed, ratio).sum(axis=(-2, -1))
    # Rounding may leave a perfectly independent table slightly below zero.
    return np.asarray(np.maximum(statistic, 0.0)), sides(tables).df


@dataclass(frozen=True)
class LikelihoodRatioTest(ChiSquareTest):
    """The likelihood-ratio test, on a slice or pooled over strata.

    >>> LikelihoodRatioTest().on([[30, 10], [10, 30]]).answer
    'dependent'
    """

    name: ClassVar[str] = "likelihood_ratio"
    statistic = staticmethod(likelihood_ratio_statistic)
