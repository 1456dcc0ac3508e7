"""What the settings of a test may be."""

import math

from unless.errors import SettingError


def check_rate(name: str, value: float) -> None:
    """Refuse a rate outside (0, 1)."""
    if not 0 < value < 1:
        raise SettingError(f"{name} must lie between 0 and 1, not {value!r}.")


def check_effect(value: float) -> None:
    """Refuse an effect that is not a positive number."""
    if not (value > 0 and math.isfinite(value)):
        raise SettingError(f"effect must be a positive number, not {value!r}.")
