"""Score tests: what a variable would add to a logistic regression that does not have it."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from unless.independence.logistic import NOTHING, Statistic

Floats = npt.NDArray[np.float64]
# A column of which no more than this share is left unexplained has nothing of its own to say.
EXPLAINED = 1e-7


class Score:
    """What is left of a target once a regression on a blanket has spoken, pattern by pattern of the blanket.

    `chances` (pattern x level but the reference) are what the regression expects, `design` (pattern x column)
    are its columns and `covariance` is the inverse of its information.
    """

    def __init__(self, chances: Floats, design: Floats, covariance: Floats) -> None:
        self.chances, self.design, self.covariance = chances, design, covariance
        levels = range(chances.shape[1])
        self.spreads = np.array(
            [[chances[:, i] * ((i == j) - chances[:, j]) for j in levels] for i in levels]
        )

    def variables(self, seen: Floats, shown: Floats, begins: list[int]) -> list[Statistic]:
        """Test one variable after another by the indicators of its levels, of which a row has at most one.

        `seen` (pattern x indicator) counts the rows of each pattern that have an indicator, `shown`
        (indicator x level) those that have it together with each level of the target but the reference.
        """
        n_free, n_columns = self.chances.shape[1], seen.shape[1]
        slopes = shown - seen.T @ self.chances
        own = np.einsum("pc,ijp->ijc", seen, self.spreads)
        crossed = np.empty((n_free, n_columns, n_free, self.design.shape[1]))
        for i in range(n_free):
            for j in range(n_free):
                crossed[i, :, j] = seen.T @ (self.spreads[i, j][:, None] * self.design)
        if n_columns == len(begins) - 1 and n_free == 1:
            return self._all_binary(slopes[:, 0], own[0, 0], crossed[0, :, 0])
        tests = []
        for begin, end in pairwise(begins):
            square = np.zeros((n_free, end - begin, n_free, end - begin))
            for place in range(end - begin):
                square[:, place, :, place] = own[:, :, begin + place]
            tests.append(self._test(slopes[begin:end], square, crossed[:, begin:end]))
        return tests

    def gate(self, seen: Floats, shown: Floats, kept: npt.NDArray[np.bool_]) -> Statistic:
        """Test that some columns have the same weights at all levels of a gate.

        `seen` (pattern x gate level but one) counts rows, `shown` (pattern x gate level x target level) those
        with each level of the target.
        """
        columns = self.design[:, kept]
        n_free, n_levels, size = self.chances.shape[1], seen.shape[1], columns.shape[1]
        left = shown - seen[:, :, None] * self.chances[:, None, :]
        slopes = np.einsum("pc,plk->lck", columns, left).reshape(n_levels * size, n_free)
        square = np.zeros((n_free, n_levels, size, n_free, n_levels, size))
        crossed = np.empty((n_free, n_levels, size, n_free, self.design.shape[1]))
        for i in range(n_free):
            for j in range(n_free):
                for level in range(n_levels):
                    weighted = (seen[:, level] * self.spreads[i, j])[:, None] * columns
                    square[i, level, :, j, level] = weighted.T @ columns
                    crossed[i, level, :, j] = weighted.T @ self.design
        return self._test(slopes, square, crossed)

    def _all_binary(self, slopes: Floats, own: Floats, crossed: Floats) -> list[Statistic]:
        free = own - np.einsum("cp,pq,cq->c", crossed, self.covariance, crossed)
        known = free > EXPLAINED * np.maximum(1.0, own)
        values = np.divide(slopes**2, free, out=np.zeros_like(free), where=known)
        return [
            Statistic(value, 1) if is_known else NOTHING
            for value, is_known in zip(values.tolist(), known.tolist(), strict=True)
        ]

    def _test(self, slopes: Floats, square: Floats, crossed: Floats) -> Statistic:
        slope = slopes.T.ravel()
        if not len(slope):
            return NOTHING
        own = square.reshape(len(slope), len(slope))
        shared = crossed.reshape(len(slope), -1)
        variance = own - shared @ self.covariance @ shared.T
        sizes, axes = np.linalg.eigh(variance)
        kept = sizes > EXPLAINED * max(1.0, float(own.diagonal().max()))
        turned = axes.T @ slope
        return Statistic(float((turned[kept] ** 2 / sizes[kept]).sum()), int(kept.sum()))
