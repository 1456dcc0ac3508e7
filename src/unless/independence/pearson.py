"""Pearson's chi-square test, without continuity correction."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from unless.independence.chi_square import ChiSquareTest
from unless.independence.evidence import Floats, Integers, pearson_terms, sides


def pearson_statistic(tables: npt.ArrayLike) -> tuple[Floats, Integers]:
    """Return Pearson's statistic and the degrees of freedom of each of a batch of tables (... x a x b)."""
    return np.asarray(pearson_terms(tables).sum(axis=(-2, -1))), sides(tables).df


@dataclass(frozen=True)
class PearsonTest(ChiSquareTest):
    """Pearson's chi-square test, on a slice or pooled over strata.

    >>> PearsonTest().on([[30, 10], [10, 30]]).answer
    'dependent'
    """

    name: ClassVar[str] = "pearson"
    statistic = staticmethod(pearson_statistic)
