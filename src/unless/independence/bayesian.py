"""Margaritis's Bayesian test (2005): the probability of independence under uniform Dirichlet priors."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import special

from unless.data.showing import html_table
from unless.independence.evidence import Floats, as_strata, show
from unless.independence.pearson import pearson_statistic
from unless.independence.settings import check_rate
from unless.independence.verdict import Answer, Verdict

PRIOR = 0.5
# Some tables are exact ties (one stratum [[1, 0, 0, 1], [1, 0, 0, 0]]), which rounding must not decide:
# "at least the threshold" includes what lies below it by rounding only.
TIE = 1e-9


def log1mexp(x: float) -> float:
    """Return log(1 - exp(x)) for x <= 0 without losing digits at either end."""
    if x >= 0:
        return -math.inf
    return math.log(-math.expm1(x)) if x > -math.log(2) else math.log1p(-math.exp(x))


def log_bayes_factors(tables: npt.ArrayLike) -> Floats:
    """Return log(h / g), the evidence for dependence over that for independence, for a batch of tables.

    All levels of the variables count, those absent from a slice too: the prior knows of them.
    """
    counts = np.asarray(tables, dtype=np.float64)
    by_cell = counts.reshape(*counts.shape[:-2], counts.shape[-2] * counts.shape[-1])
    return _log_evidence(by_cell) - _log_evidence(counts.sum(axis=-1)) - _log_evidence(counts.sum(axis=-2))


def log_probabilities(strata: npt.ArrayLike) -> tuple[float, float]:
    """Return log Pr(independent) and log Pr(dependent) given strata (z x a x b), none of them empty."""
    log_ratios = log_bayes_factors(strata)
    if not len(log_ratios):
        return math.log(PRIOR), math.log1p(-PRIOR)
    # Each of K strata is independent with prior p^(1/K), so that all of them are with prior p.
    log_prior = math.log(PRIOR) / len(log_ratios)
    log_odds = log_ratios + log1mexp(log_prior) - log_prior
    deficit = float(np.logaddexp(0.0, log_odds).sum())
    # Where the probability of independence rounds to one, that of dependence is the sum of the odds.
    log_dependent = log1mexp(-deficit) if deficit > 1e-300 else float(special.logsumexp(log_odds))
    return -deficit, log_dependent


@dataclass(frozen=True)
class BayesianTest:
    """Independent when that has at least the probability `threshold`; undecided only where nothing varies.

    >>> BayesianTest().on([[30, 10], [10, 30]]).answer
    'dependent'
    """

    threshold: float = 0.5

    name: ClassVar[str] = "bayesian"

    def __post_init__(self) -> None:
        check_rate("threshold", self.threshold)

    def on(self, table: npt.ArrayLike) -> Verdict:
        """Judge one table (a x b), or strata (z x a x b) pooled."""
        strata = as_strata(table)
        shown = show(strata)
        log_independent, _ = log_probabilities(strata)
        answer: Answer = "independent" if log_independent >= math.log(self.threshold) - TIE else "dependent"
        return Verdict(
            answer=answer if shown["df"] else "undecided",
            statistic=float(pearson_statistic(strata)[0].sum()),
            log_probability=log_independent,
            **shown,
        )

    def _repr_html_(self) -> str:
        return html_table(repr(self), (), ())


def _log_evidence(counts: Floats) -> Floats:
    n_cells = counts.shape[-1]
    total = counts.sum(axis=-1)
    return np.asarray(
        special.gammaln(n_cells) - special.gammaln(n_cells + total) + special.gammaln(1 + counts).sum(axis=-1)
    )
