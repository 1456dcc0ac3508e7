"""What the settings of a test may be."""

import math
import numbers

from unless.errors import SettingError


def check_rate(name: str, value: float) -> None:
    """Refuse a rate outside (0, 1)."""
    if not (_is_number(value) and 0 < value < 1):
        raise SettingError(f"{name} must lie between 0 and 1, not {value!r}.")


def check_effect(value: float) -> None:
    """Refuse an effect that is not a positive number."""
    if not (_is_number(value) and value > 0 and math.isfinite(value)):
        raise SettingError(f"effect must be a positive number, not {value!r}.")


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
