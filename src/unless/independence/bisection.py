"""Find where a claim about integers stops being true, for many claims at once."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Claim = Callable[[Integers], npt.NDArray[np.bool_]]


def last_true(claim: Claim, guess: Integers, margin: int, lowest: int, highest: int) -> Integers:
    """Return, per entry, the last integer for which a claim that turns from true to false is still true.

    The claim counts as true at `lowest` and as false at `highest`. The search starts within `margin` of the
    guess and falls back to the whole range where the guess was bad.
    """
    low = np.clip(guess - margin, lowest, highest - 1)
    high = np.clip(guess + margin, lowest + 1, highest)
    low = np.where(claim(low), low, lowest)
    high = np.where(claim(high), highest, high)
    while (high - low).max(initial=0) > 1:
        middle = low + (high - low) // 2
        holds = claim(middle)
        low, high = np.where(holds, middle, low), np.where(holds, high, middle)
    return low
