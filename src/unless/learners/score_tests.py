"""Score tests: what columns would add to a logistic regression that does not have them."""

import numpy as np
import numpy.typing as npt

from unless.independence.logistic import NOTHING, Statistic

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
# A column of which no more than this share is left unexplained has nothing of its own to say.
EXPLAINED = 1e-7


class Score:
    """What is left of a variable once a regression has spoken, row by row.

    `shown` and `chances` (row x level but the reference) are what happened and what was expected, `beside`
    (row x column) the columns of the regression and `covariance` the inverse of its information.
    """

    def __init__(
        self, shown: Bools, chances: Floats, counts: Floats, beside: Floats, covariance: Floats
    ) -> None:
        n_free = chances.shape[1]
        self.residuals = counts[:, None] * (shown - chances)
        self.spreads = [
            [counts * chances[:, i] * ((i == j) - chances[:, j]) for j in range(n_free)]
            for i in range(n_free)
        ]
        self.beside, self.covariance = beside, covariance

    def exclusive(self, indicators: Floats, begins: list[int]) -> list[Statistic]:
        """Test one variable after another: the indicators of its levels, of which a row has at most one."""
        slopes, crossed = indicators.T @ self.residuals, self._crossed(indicators)
        levels = range(len(self.spreads))
        own = np.array([[indicators.T @ self.spreads[i][j] for j in levels] for i in levels])
        tests = []
        for begin, end in zip(begins, begins[1:], strict=False):
            size = end - begin
            square = np.zeros((len(levels), size, len(levels), size))
            for place in range(size):
                square[:, place, :, place] = own[:, :, begin + place]
            tests.append(self._test(slopes[begin:end], square, crossed[:, begin:end]))
        return tests

    def together(self, columns: Floats) -> Statistic:
        """Test all columns at once."""
        levels, size = range(len(self.spreads)), columns.shape[1]
        square = np.empty((len(levels), size, len(levels), size))
        for i in levels:
            for j in levels:
                square[i, :, j] = columns.T @ (self.spreads[i][j][:, None] * columns)
        return self._test(columns.T @ self.residuals, square, self._crossed(columns))

    def _crossed(self, columns: Floats) -> Floats:
        levels = range(len(self.spreads))
        crossed = np.empty((len(levels), columns.shape[1], len(levels), self.beside.shape[1]))
        for i in levels:
            for j in levels:
                crossed[i, :, j] = columns.T @ (self.spreads[i][j][:, None] * self.beside)
        return crossed

    def _test(self, slopes: Floats, square: Floats, crossed: Floats) -> Statistic:
        slope = slopes.T.ravel()
        if not len(slope):
            return NOTHING
        own = square.reshape(len(slope), len(slope))
        shared = crossed.reshape(len(slope), -1)
        variance = own - shared @ self.covariance @ shared.T
        least = EXPLAINED * max(1.0, float(np.abs(own).max()))
        if len(slope) == 1:
            free = float(variance[0, 0])
            return Statistic(float(slope[0] ** 2 / free), 1) if free > least else NOTHING
        sizes, axes = np.linalg.eigh(variance)
        kept = sizes > least
        turned = axes.T @ slope
        return Statistic(float((turned[kept] ** 2 / sizes[kept]).sum()), int(kept.sum()))
