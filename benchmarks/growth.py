"""Straight lines through logarithms: how fast a figure grows, and how surely."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Slope:
    """An exponent with its 95 % interval, and the line it belongs to."""

    value: float
    low: float
    high: float
    height: float

    def at(self, x: float) -> float:
        """Return the height of the line."""
        return float(np.exp(self.height + self.value * np.log(x)))

    def __str__(self) -> str:
        return f"{self.low:.2f} to {self.high:.2f}"


def fit_slope(xs: Sequence[float], ys: Sequence[float]) -> Slope:
    """Fit log y = height + value log x by least squares; three points or more."""
    from scipy.stats import linregress, t

    x, y = np.log(np.asarray(xs, dtype=float)), np.log(np.asarray(ys, dtype=float))
    line = linregress(x, y)
    half = float(t.ppf(0.975, len(x) - 2)) * line.stderr
    return Slope(float(line.slope), float(line.slope - half), float(line.slope + half), float(line.intercept))
