"""Design effects: how much more the statistic of a pair varies in a survey than in rows drawn alike.

Weights that differ, and rows of one cluster that are alike, make the counts of a table vary more than chance
alone would. A test statistic is divided by the mean of these factors over the cells of the pair's table (Rao
and Scott 1984); where clusters are few, the F distribution takes the place of chi-square, as how far rows of
one cluster are alike is itself estimated (Thomas and Rao 1987).
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, chdtri, fdtrc

from unless.data.dataset import Dataset
from unless.data.design import Design
from unless.independence.logistic import Statistic

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
# A smaller chance has no quantile that can be told from others.
_LEAST_P = 1e-290
# Pairs of columns whose design effects are averaged, at most.
_MOST_PAIRS = 40
# Tables with more cells are corrected by the mean of their factors alone.
_MOST_CELLS = 144


class DesignEffects:
    """Factors of pairs of columns, against counts that add up to the effective size by weights.

    A design is never taken to tell more than as many rows drawn alike.
    """

    def __init__(self, design: Design, counts: npt.NDArray[np.int64]) -> None:
        self.design = design
        self.share = design.n_effective / float(design.weights.sum())
        # Rows that each row of the table stands for, and strata without a name are one.
        self._n_rows = counts.astype(np.float64)
        self._strata = np.zeros(len(counts), dtype=np.int64) if design.strata is None else design.strata
        # What is drawn alike, less one for each stratum; without clusters it is no limit.
        self.freedom: float | None = None
        if design.clusters is not None:
            self.freedom = float(max(1, len(np.unique(design.clusters)) - len(np.unique(self._strata))))
            stratum_of = np.zeros(int(design.clusters.max()) + 1, dtype=np.int64)
            stratum_of[design.clusters] = self._strata
            self._stratum_of_cluster = stratum_of

    def of(self, a: Codes, b: Codes, kept: npt.NDArray[np.bool_]) -> float:
        """Return the factor of two columns, from their codes and the rows that have a value in both."""
        weights = np.where(kept, self.design.weights, 0.0) * self.share
        n_a, n_b = int(a.max()) + 1, int(b.max()) + 1
        cells = a.astype(np.int64) * n_b + b
        shares: Floats = np.bincount(cells, weights=weights, minlength=n_a * n_b).astype(np.float64)
        shares = shares.reshape(n_a, n_b)
        total = float(shares.sum())
        df = (int((shares.sum(axis=1) > 0).sum()) - 1) * (int((shares.sum(axis=0) > 0).sum()) - 1)
        if df < 1 or not total:
            return 1.0
        shares /= total
        p, q = shares.sum(axis=1), shares.sum(axis=0)
        factor = 0.0
        for k in np.flatnonzero(p).tolist():
            for m in np.flatnonzero(q).tolist():
                # What each cell adds to the difference of one from what is expected of it.
                adds = np.outer((np.arange(n_a) == k) - p[k], (np.arange(n_b) == m) - q[m])
                adds -= float((adds * shares).sum())
                factor += self._variance(adds.ravel()[cells], weights, kept) / (total * p[k] * q[m])
        # The design effect by weights is in the counts already.
        return max(float(factor) / df, self.share)

    def unevenness(self, a: Codes, b: Codes, kept: npt.NDArray[np.bool_]) -> float:
        """Return the squared coefficient of variation of the factors over the cells of two columns.

        Where some cells vary much more than others, as rows with large weights make them do, the mean factor
        is too small for what deviates most (the second order of Rao and Scott 1984).
        """
        weights = np.where(kept, self.design.weights, 0.0) * self.share
        n_a, n_b = int(a.max()) + 1, int(b.max()) + 1
        cells = a.astype(np.int64) * n_b + b
        counted: Floats = np.bincount(cells, weights=weights, minlength=n_a * n_b).astype(np.float64)
        total = float(counted.sum())
        if not total:
            return 0.0
        shares = counted.reshape(n_a, n_b) / total
        p, q = shares.sum(axis=1), shares.sum(axis=0)
        shown = [(k, m) for k in np.flatnonzero(p).tolist() for m in np.flatnonzero(q).tolist()]
        df = (len(np.flatnonzero(p)) - 1) * (len(np.flatnonzero(q)) - 1)
        if df < 2 or len(shown) > _MOST_CELLS:
            return 0.0
        adds = np.stack(
            [np.outer((np.arange(n_a) == k) - p[k], (np.arange(n_b) == m) - q[m]).ravel() for k, m in shown],
            axis=1,
        )
        adds -= (shares.ravel()[:, None] * adds).sum(axis=0)
        adds /= np.sqrt([p[k] * q[m] for k, m in shown])
        cells_vary = self._covariance(cells, n_a * n_b, weights, kept)
        half = np.stack([(cells_vary * one).sum(axis=1) for one in adds.T], axis=1)
        varied = np.stack([(half * one[:, None]).sum(axis=0) for one in adds.T])
        mean = float(np.trace(varied))
        return max(0.0, df * float((varied**2).sum()) / mean**2 - 1) if mean > 0 else 0.0

    def _covariance(
        self, cells: npt.NDArray[np.int64], n_cells: int, weights: Floats, kept: npt.NDArray[np.bool_]
    ) -> Floats:
        """Return the covariance of the weighted counts of cells over the design, as `_variance` does."""
        n_strata = int(self._strata.max()) + 1
        found = np.zeros((n_cells, n_cells))
        if self.design.clusters is None:
            at = self._strata * n_cells + cells
            squares = np.where(kept, self.design.squares, 0.0) * self.share**2
            by_cell, totals = (
                np.bincount(at, weights=one, minlength=n_strata * n_cells).reshape(n_strata, n_cells)
                for one in (squares, weights)
            )
            units = np.bincount(self._strata, weights=np.where(kept, self._n_rows, 0.0), minlength=n_strata)
            for n, square, total in zip(units.tolist(), by_cell, totals, strict=True):
                if n > 1:
                    found += n / (n - 1) * (np.diag(square) - np.outer(total, total) / n)
            return found
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
                    found[cell] += len(some) / (len(some) - 1) * (some * some[:, cell, None]).sum(axis=0)
        return found

    def _variance(self, adds: Floats, weights: Floats, kept: npt.NDArray[np.bool_]) -> float:
        """Return the variance of a weighted sum over the design: between clusters, or rows, of a stratum."""
        if self.design.clusters is None:
            units, strata = np.where(kept, self._n_rows, 0.0), self._strata
            squared = np.where(kept, self.design.squares, 0.0) * self.share**2 * adds**2
            sums = weights * adds
        else:
            sums = np.bincount(self.design.clusters, weights=weights * adds).astype(np.float64)
            squared, strata = sums**2, self._stratum_of_cluster
            units = (np.bincount(self.design.clusters, weights=weights) > 0).astype(np.float64)
        n, square, total = (np.bincount(strata, weights=one) for one in (units, squared, sums))
        # A stratum of one unit tells nothing of how units differ; it is left out.
        several = n > 1
        n, square, total = n[several], square[several], total[several]
        return float((n / (n - 1) * (square - total**2 / n)).sum())

    def corrected(self, found: Statistic, factor: float, unevenness: float = 0.0) -> Statistic:
        """Divide a statistic by its factor, and give it the value of chi-square that is as unlikely.

        Uneven factors leave it fewer degrees of freedom.
        """
        value = found.value / factor
        if not found.df or (self.freedom is None and not unevenness):
            return Statistic(value, found.df)
        # Of a test of few degrees of freedom, factors are uneven by less.
        uneven = 1 + min(unevenness, found.df - 1.0)
        df = found.df / uneven
        if self.freedom is None:
            p = max(float(chdtrc(df, value / uneven)), _LEAST_P)
        else:
            p = max(float(fdtrc(df, self.freedom * df, value / found.df)), _LEAST_P)
        return Statistic(min(value, float(chdtri(found.df, p))), found.df)


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
        kept = np.ones(len(data.detail.rows), dtype=np.bool_)
        for end in (a, b):
            if data.names[end] in data.detail.missing:
                kept &= ~data.detail.missing[data.names[end]]
        first, second = (data.detail.rows[:, end].astype(np.int32) for end in (a, b))
        factors.append(effects.of(first, second, kept))
    return data.self_weighting(float(np.mean(factors)) if factors else 1.0)
