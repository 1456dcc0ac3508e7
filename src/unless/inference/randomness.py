"""What determines a sample: how many draws, and the state they start from."""

import numpy as np

from unless.errors import SettingError

RandomState = int | np.random.Generator | None


def make_rng(random_state: RandomState) -> np.random.Generator:
    """Return the generator that a seed stands for, a new one for None, and a generator as it is."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise SettingError(
            f"random_state={random_state!r} is no seed; give a whole number, 0 or more, or a Generator."
        ) from None


def check_size(n: int) -> int:
    """Refuse what is no number of samples."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise SettingError(f"n must be a whole number, 0 or more, not {n!r}.")
    return int(n)
