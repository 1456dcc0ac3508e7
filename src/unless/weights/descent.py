"""How far a fit is, for those who wait for it."""

import math
from collections.abc import Callable

from unless.runtime.progress import Bar


class Descent:
    """Counts iterations, and tells a bar of them and of the slope that is left.

    How many there will be shows only at the end. What is known is how far the slope has fallen, in orders of
    magnitude, of what it has to. The first of them are quick: of the fits that were measured, half of the way
    took a quarter of the time, so that the share of the time is guessed as the square of that of the way.
    """

    def __init__(self, step: Callable[[], object], tolerance: float, is_guessed: bool = True) -> None:
        self._step, self._tolerance, self._is_guessed = step, tolerance, is_guessed
        self._first = self._least = math.nan
        self._n_iterations = 0

    def moved(self, norm: float) -> None:
        """Count an iteration that began where this was the largest component of the subgradient."""
        self._n_iterations += 1
        if self._n_iterations == 1:
            self._first = self._least = norm
        self._least = min(self._least, norm)
        if not isinstance(self._step, Bar):
            self._step()
        self.look()

    def look(self) -> None:
        """Tell how far it is, between two iterations too: some take long."""
        if isinstance(self._step, Bar) and not self._step.is_silent and self._n_iterations:
            told = f"iteration {self._n_iterations:,}, slope {self._least:.1e}"
            if self._is_guessed:
                told += f", to be {self._tolerance:.1e}"
            self._step.share(self.share, told)

    @property
    def share(self) -> float:
        """The share of the time that has passed, at a guess; below 0 where there is nothing to guess from."""
        if not self._is_guessed or not self._least < self._first or self._first <= self._tolerance:
            return -1.0
        way = math.log(self._first / max(self._least, self._tolerance)) / math.log(
            self._first / self._tolerance
        )
        return way**2
