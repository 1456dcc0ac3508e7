"""What a value is called: the one rule that turns scalars into labels, and the order of labels."""

import math
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import Any


def to_label(value: object) -> str:
    """Write a scalar as a label: text as it is, integers without a point, other numbers at full precision.

    >>> to_label(2.0), to_label(True), to_label("2.0")
    ('2', 'True', '2.0')
    """
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "item"):
        value = _scalar(value)
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        return str(int(value))
    # A day is often stored as the midnight it begins with.
    return str(value).removesuffix(" 00:00:00") if isinstance(value, datetime) else str(value)


def _scalar(value: Any) -> object:
    """Return the Python scalar inside a numpy one, at the precision a person would write it with."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind == "f" and value.dtype.itemsize < 8:
        # 0.1 in single precision is 0.10000000149 in double.
        return float(str(value))
    if kind == "M":
        # Nanoseconds have no Python scalar and would come out as a number.
        return value.astype("datetime64[us]").item()
    return value.item()


def sort_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Order labels by value where all are numbers, else by code point; never by appearance."""
    distinct = set(labels)
    # Infinities of a column of floats are ordered among its numbers.
    numbers = {label: float(label) if label in ("inf", "-inf") else _number(label) for label in distinct}
    if any(math.isnan(number) for number in numbers.values()):
        return tuple(sorted(distinct))
    return tuple(sorted(distinct, key=lambda label: (numbers[label], label)))


def is_number(label: str) -> bool:
    """Tell whether a person would read this label as a number."""
    return not math.isnan(_number(label))


def _number(label: str) -> float:
    # float() also reads "1_000", "nan" and "inf", which are words to a person.
    if not label or "_" in label or not any(character.isdigit() for character in label):
        return math.nan
    try:
        return float(label)
    except ValueError:
        return math.nan
