"""Find where a claim about integers stops being true, for many claims at once."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Claim = Callable[[Integers], npt.NDArray[np.bool_]]


def last_true(claim: Claim, guess: Integers, margin: int, lowest: int, highest: int) -> Integers:
    """Return, per entry, the last integer for which a claim that turns from true to false is still true.

    The claim counts as true at `lowest` and as false at `highest`. The search starts within `margin` of the
    guess, and where the guess was bad widens around it, fourfold at a time.
    """
    low, high = guess, guess
    reach = margin
    rising, falling = np.ones(guess.shape, dtype=np.bool_), np.ones(guess.shape, dtype=np.bool_)
    while (rising | falling).any():
        low = np.where(falling, np.maximum(guess - reach, lowest), low)
        high = np.where(rising, np.where(guess < highest - reach, guess + reach, highest), high)
        falling = (low > lowest) & ~claim(low)
        rising = (high < highest) & claim(high)
        reach = min(4 * reach, highest)
    while (high - low).max(initial=0) > 1:
        middle = low + (high - low) // 2
        holds = claim(middle)
        low, high = np.where(holds, middle, low), np.where(holds, high, middle)
    return low
