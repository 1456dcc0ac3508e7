"""Names, counts and shares as a person reads them."""

from unless.data import showing

# Names look the same on a terminal, in a notebook and on a page.
visible = showing.visible


def count(number: int, noun: str) -> str:
    """Write a number with what it counts: "1 row", "4,526 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def of(part: int, whole: int, noun: str) -> str:
    """Write a part of a whole: "933 of 4,526 rows"."""
    return f"{part:,} of {count(whole, noun)}"


def percent(part: int, whole: int) -> str:
    """Write a share; only all is 100 %, and only nothing is 0 %."""
    if part in (0, whole):
        return "100 %" if part else "0 %"
    if 100 * part < whole:
        return "<1 %"
    return ">99 %" if 100 * part > 99 * whole else f"{round(100 * part / whole)} %"


def either(words: list[str]) -> str:
    """Join alternatives: "A", "A or B", "A, B or C"."""
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def chance(probability: float) -> str:
    """Write a probability; only what is certain is 1, and only what is impossible is 0."""
    if probability in (0, 1):
        return "1" if probability else "0"
    if probability < 0.0001:
        return "<0.0001"
    return ">0.9999" if probability > 0.9999 else f"{probability:.4f}"
