"""Design effects: how much more the statistic of a pair varies in a survey than in rows drawn alike.

Weights that differ, and rows of one cluster that are alike, make the counts of a table vary more than chance
alone would. A test statistic is divided by the mean of these factors over the cells of the pair's table (Rao
and Scott 1984). The F distribution takes the place of chi-square where the factor is estimated from few
clusters (Thomas and Rao 1987), or where a few rows with large weights make it.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import inf, isinf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset, Design
from unless.independence.statistics import Statistic
from unless.typing import Bools, Floats, Integers

Codes = npt.NDArray[np.int32]
# Quantiles of smaller probabilities cannot be distinguished.
_LEAST_P = 1e-290
# Pairs of columns whose design effects are averaged, at most.
_MOST_PAIRS = 40
# Tables with more cells are corrected by the mean of their factors alone.
_MOST_CELLS = 144


class Correction(NamedTuple):
    """What a design does to the statistic of a pair.

    `factor` divides it; `unevenness` is the squared coefficient of variation of the factors of its parts;
    `freedom` is about the number of rows or clusters that the factor is estimated from.
    """

    factor: float = 1.0
    unevenness: float = 0.0
    freedom: float = inf


class DesignEffects:
    """Corrections for pairs of columns, against counts that add up to the effective size by weights.

    A design is never taken to tell more than as many rows drawn alike.
    """

    def __init__(self, design: Design, counts: Integers) -> None:
        self.design = design
        self.share = design.n_effective / float(design.weights.sum())
        # Rows that each row of the table stands for, and strata without a name are one.
        self._n_rows = counts.astype(np.float64)
        self._strata = np.zeros(len(counts), dtype=np.int64) if design.strata is None else design.strata
        # Clusters, less one for each stratum.
        self._n_clusters = 0.0
        if design.clusters is not None:
            self._n_clusters = float(max(1, len(np.unique(design.clusters)) - len(np.unique(self._strata))))
            stratum_of = np.zeros(int(design.clusters.max()) + 1, dtype=np.int64)
            stratum_of[design.clusters] = self._strata
            self._stratum_of_cluster = stratum_of

    def of(self, a: Codes, b: Codes, complete: Bools) -> Correction:
        """Return the correction for two columns, from their codes and the rows that have a value in both."""
        weights = np.where(complete, self.design.weights, 0.0) * self.share
        n_a, n_b = int(a.max()) + 1, int(b.max()) + 1
        cells = a.astype(np.int64) * n_b + b
        counted: Floats = np.bincount(cells, weights=weights, minlength=n_a * n_b).astype(np.float64)
        total = float(counted.sum())
        rows, columns = (np.flatnonzero(counted.reshape(n_a, n_b).sum(axis=axis)) for axis in (1, 0))
        df = (len(rows) - 1) * (len(columns) - 1)
        if df < 1 or not total:
            return Correction()
        shares = counted.reshape(n_a, n_b) / total
        p, q = shares.sum(axis=1), shares.sum(axis=0)
        shown = [(k, m) for k in rows.tolist() for m in columns.tolist()]
        # What each cell adds to the difference of one from what is expected of it, in standard units.
        adds = np.stack(
            [np.outer((np.arange(n_a) == k) - p[k], (np.arange(n_b) == m) - q[m]).ravel() for k, m in shown],
            axis=1,
        )
        adds -= (shares.ravel()[:, None] * adds).sum(axis=0)
        adds /= np.sqrt([p[k] * q[m] for k, m in shown])
        factors = [self._variance(one[cells], weights, complete) / total for one in adds.T]
        uneven = 0.0
        if df > 1 and len(shown) <= _MOST_CELLS:
            uneven = self._unevenness(adds, df, self._covariance(cells, n_a * n_b, weights, complete))
        freedom = self._freedom((adds**2).sum(axis=1)[cells], complete)
        # The design effect by weights is in the counts already.
        return Correction(max(sum(factors) / df, self.share), uneven, freedom)

    def of_trend(self, a: Floats, b: Floats, complete: Bools) -> Correction:
        """Return the correction for a trend, from the number that stands for the level of each row.

        What lies far out on both columns weighs most in a trend, and may vary more than cells do on average.
        """
        weights = np.where(complete, self.design.weights, 0.0) * self.share
        total = float(weights.sum())
        if not total:
            return Correction()
        first, second = (one - float((weights * one).sum()) / total for one in (a, b))
        spread = float((weights * first**2).sum()) * float((weights * second**2).sum()) / total
        if not spread:
            return Correction()
        adds = first * second
        adds = adds - float((weights * adds).sum()) / total
        factor = self._variance(adds, weights, complete) / spread
        return Correction(max(factor, self.share), 0.0, self._freedom(adds**2, complete))

    def _freedom(self, adds: Floats, complete: Bools) -> float:
        """Return how many rows a variance rests on, by what each adds to it; of clusters, their number.

        Where a few rows with large weights make the variance, it is as uncertain as one of so few rows.
        """
        if self.design.clusters is not None:
            return self._n_clusters
        total = float((np.where(complete, self.design.squares, 0.0) * adds).sum())
        squared = float((np.where(complete, self.design.fourths, 0.0) * adds**2).sum())
        return max(1.0, total**2 / squared) if squared else inf

    @staticmethod
    def _unevenness(adds: Floats, df: int, covariance: Floats) -> float:
        """Return the squared coefficient of variation of the factors over directions of a table.

        Where some cells vary much more than others, as rows with large weights make them do, the mean factor
        is too small for what deviates most (the second order of Rao and Scott 1984).
        """
        half = np.stack([(covariance * one).sum(axis=1) for one in adds.T], axis=1)
        varied = np.stack([(half * one[:, None]).sum(axis=0) for one in adds.T])
        mean = float(np.trace(varied))
        return max(0.0, df * float((varied**2).sum()) / mean**2 - 1) if mean > 0 else 0.0

    def _covariance(self, cells: Integers, n_cells: int, weights: Floats, complete: Bools) -> Floats:
        """Return the covariance of the weighted counts of cells over the design, as `_variance` does."""
        n_strata = int(self._strata.max()) + 1
        covariance = np.zeros((n_cells, n_cells))
        if self.design.clusters is None:
            at = self._strata * n_cells + cells
            squares = np.where(complete, self.design.squares, 0.0) * self.share**2
            by_cell, totals = (
                np.bincount(at, weights=one, minlength=n_strata * n_cells).reshape(n_strata, n_cells)
                for one in (squares, weights)
            )
            units = np.bincount(
                self._strata, weights=np.where(complete, self._n_rows, 0.0), minlength=n_strata
            )
            for n, square, total in zip(units.tolist(), by_cell, totals, strict=True):
                if n > 1:
                    covariance += n / (n - 1) * (np.diag(square) - np.outer(total, total) / n)
            return covariance
        n_clusters = int(self.design.clusters.max()) + 1
        at = self.design.clusters * n_cells + cells
        counted = np.bincount(at, weights=weights, minlength=n_clusters * n_cells).reshape(
            n_clusters, n_cells
        )
        for stratum in range(n_strata):
            some = counted[(self._stratum_of_cluster == stratum) & (counted.sum(axis=1) > 0)]
            if len(some) > 1:
                some = some - some.mean(axis=0)
                for cell in range(n_cells):
                    covariance[cell] += len(some) / (len(some) - 1) * (some * some[:, cell, None]).sum(axis=0)
        return covariance

    def _variance(self, adds: Floats, weights: Floats, complete: Bools) -> float:
        """Return the variance of a weighted sum over the design: between clusters, or rows, of a stratum."""
        if self.design.clusters is None:
            units, strata = np.where(complete, self._n_rows, 0.0), self._strata
            squared = np.where(complete, self.design.squares, 0.0) * self.share**2 * adds**2
            sums = weights * adds
        else:
            sums = np.bincount(self.design.clusters, weights=weights * adds).astype(np.float64)
            squared, strata = sums**2, self._stratum_of_cluster
            units = (np.bincount(self.design.clusters, weights=weights) > 0).astype(np.float64)
        n, square, total = (np.bincount(strata, weights=one) for one in (units, squared, sums))
        # A stratum of one unit shows no difference between units; it is left out.
        several = n > 1
        n, square, total = n[several], square[several], total[several]
        return float((n / (n - 1) * (square - total**2 / n)).sum())

    def corrected(self, statistic: Statistic, by: Correction) -> Statistic:
        """Divide a statistic by its factor, and give it the value of chi-square that is as unlikely.

        Uneven factors leave it fewer degrees of freedom, and an uncertain factor makes it an F statistic.
        """
        from scipy.special import chdtrc, chdtri, fdtrc

        if not statistic.df:
            return statistic
        value, (df, freedom) = statistic.value / by.factor, self._freedoms(statistic.df, by)
        if isinf(freedom):
            p = chdtrc(df, value * df / statistic.df)
        else:
            p = fdtrc(df, freedom, value / statistic.df)
        return Statistic(min(value, float(chdtri(statistic.df, max(float(p), _LEAST_P)))), statistic.df)

    def divided(self, statistic: Statistic, by: Correction) -> float:
        """Return the value of a corrected statistic before it became one of chi-square.

        How strong a pair is follows from it: how uncertain the factor is matters for p alone.
        """
        from scipy.special import betaincinv, chdtri

        if not _LEAST_P < statistic.p < 1:
            return statistic.value
        df, freedom = self._freedoms(statistic.df, by)
        if isinf(freedom):
            return max(statistic.value, float(chdtri(df, statistic.p)) * statistic.df / df)
        part = float(betaincinv(freedom / 2, df / 2, statistic.p))
        if not part:
            return statistic.value
        return max(statistic.value, statistic.df * freedom * (1 - part) / (df * part))

    def _freedoms(self, df: int, by: Correction) -> tuple[float, float]:
        """Return the degrees of freedom of a statistic and of its factor.

        Of a test of few degrees of freedom, factors are uneven by less.
        """
        fewer = df / (1 + min(by.unevenness, df - 1.0))
        return fewer, by.freedom * (fewer if self._n_clusters else 1.0)


def drawn_alike(data: Dataset, pair: Sequence[int] | None = None) -> Dataset:
    """Return a sample of the rows of a survey that may be taken as drawn alike; other tables are themselves.

    Its size is the effective one: by weights, and by the design effect of a pair of columns, or the mean of
    some pairs.
    """
    if data.design is None or data.detail is None:
        return data
    effects = DesignEffects(data.design, data.detail.counts)
    pairs = [tuple(pair)] if pair is not None else list(pairwise(range(data.n_variables)))[:_MOST_PAIRS]
    factors = []
    for a, b in pairs:
        complete = np.ones(len(data.detail.rows), dtype=np.bool_)
        for end in (a, b):
            if data.names[end] in data.detail.missing:
                complete &= ~data.detail.missing[data.names[end]]
        first, second = (data.detail.rows[:, end].astype(np.int32) for end in (a, b))
        factors.append(effects.of(first, second, complete).factor)
    return data.self_weighting(float(np.mean(factors)) if factors else 1.0)
