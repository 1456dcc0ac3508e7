"""What a value is called: the one rule that turns scalars into labels, and the order of labels."""

import math
from collections.abc import Iterable
from numbers import Integral, Real


def to_label(value: object) -> str:
    """Write a scalar as a label: text as it is, integers without a point, other numbers at full precision.

    >>> to_label(2.0), to_label(True), to_label("2.0")
    ('2', 'True', '2.0')
    """
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "item"):
        # numpy scalars print their type; the Python scalar inside does not.
        value = value.item()
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def sort_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Order labels by value where all are numbers, else by code point; never by appearance."""
    distinct = set(labels)
    numbers = {label: _number(label) for label in distinct}
    if any(math.isnan(number) for number in numbers.values()):
        return tuple(sorted(distinct))
    return tuple(sorted(distinct, key=lambda label: (numbers[label], label)))


def _number(label: str) -> float:
    # float() also reads "1_000", "nan" and "inf", which are words to a person.
    if not label or "_" in label or not any(character.isdigit() for character in label):
        return math.nan
    try:
        return float(label)
    except ValueError:
        return math.nan
