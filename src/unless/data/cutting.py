"""Where numbers are cut when nobody said where: how many groups, at which numbers, by which names."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf, log10, nextafter

import numpy as np
import numpy.typing as npt

from unless.data.labels import to_label

Floats = npt.NDArray[np.float64]
# With fewer groups a U-shaped effect cannot be seen; with more the cells of a pair of columns are thin.
FEWEST_GROUPS, MOST_GROUPS = 3, 8
# Numbers of 100 rows are cut into so many groups; ten times the rows bear one more.
GROUPS_OF_HUNDRED = 4
# A group of fewer rows says nothing, and makes tests doubtful.
LEAST_ROWS = 10
# Whole numbers in this range may be years, which are written without a separator.
_YEARS = range(1500, 2101)
# A cut may move by this share of a group to reach a readable number.
READABLE_SHARE = 0.25


def n_groups(n_rows: float) -> int:
    """Return into how many groups numbers are cut, by the number of rows that have one.

    >>> [n_groups(n) for n in (50, 344, 2_700, 1_000_000)]
    [4, 5, 5, 8]
    """
    wanted = round(GROUPS_OF_HUNDRED + log10(max(n_rows, 1) / 100))
    return min(MOST_GROUPS, max(FEWEST_GROUPS, wanted))


@dataclass(frozen=True)
class Numbers:
    """The numbers of a column in rising order, and how many rows stand behind each.

    Of a column with very many numbers these are a few hundred of its quantiles, each worth an equal share.
    """

    values: Floats
    weights: Floats
    whole: bool

    @property
    def total(self) -> float:
        """How many rows have a number."""
        return float(self.weights.sum())

    def below(self) -> Floats:
        """Return how many rows are below each number."""
        return np.concatenate([[0.0], np.cumsum(self.weights)[:-1]])


def find_cuts(numbers: Numbers, groups: int | None = None) -> tuple[float, ...]:
    """Find rising cuts: at quantiles, with a group of its own for a number that fills one.

    A number belongs to the group after the last cut that is not above it.
    """
    groups = n_groups(numbers.total) if groups is None else groups
    share = numbers.total / groups
    cuts: set[float] = set()
    begin = 0
    heavy = np.flatnonzero(numbers.weights >= share).tolist()
    for place in [*heavy, len(numbers.values)]:
        cuts |= _cuts_of_run(numbers, begin, place, share)
        if place < len(numbers.values):
            if place > 0:
                cuts.add(float(numbers.values[place]))
            if place + 1 < len(numbers.values):
                cuts.add(_just_above(float(numbers.values[place]), numbers.whole))
        begin = place + 1
    return merge_thin(numbers, tuple(sorted(cuts)))


def _just_above(value: float, whole: bool) -> float:
    return value + 1 if whole else nextafter(value, inf)


def _cuts_of_run(numbers: Numbers, begin: int, end: int, share: float) -> set[float]:
    """Cut the numbers between two that have groups of their own into groups of about equal size."""
    mass = float(numbers.weights[begin:end].sum())
    groups = round(mass / share)
    below = numbers.below()
    found: set[float] = set()
    for step in range(1, groups):
        aim = below[begin] + mass * step / groups
        places = np.arange(begin + 1, end)
        if not len(places):
            break
        distance = np.abs(below[places] - aim)
        best = int(places[np.argmin(distance)])
        near = places[distance <= READABLE_SHARE * mass / groups]
        if not len(near):
            near = np.array([best])
        low, high = float(numbers.values[near[0] - 1]), float(numbers.values[near[-1]])
        found.add(_readable(low, high, float(numbers.values[best]), numbers.whole))
    return found


def roundest(low: float, high: float, whole: bool) -> float:
    """Return the roundest number above `low` and not above `high`."""
    return _readable(low, high, high, whole)


def _readable(low: float, high: float, wanted: float, whole: bool) -> float:
    """Return the roundest number above `low`, at most `high`; of several, the one nearest to `wanted`."""
    largest = max(abs(low), abs(high))
    if largest == 0 or not low < high:
        return high
    # Down to twelve digits, where a float still tells two numbers apart.
    for exponent in range(floor(log10(largest)) + 1, floor(log10(largest)) - 12, -1):
        for factor in (10, 5, 2.5, 2):
            step = factor * 10.0 ** (exponent - 1)
            if whole and step != floor(step):
                continue
            nearest = round(wanted / step)
            first, last = floor(low / step), floor(high / step) + 1
            multiples = {nearest, first, first + 1, last, last - 1}
            fits = [
                number
                for number in (float(f"{one * step:.12g}") for one in multiples)
                if low < number <= high
            ]
            if fits:
                return min(fits, key=lambda number: (abs(number - wanted), number))
    return high


def merge_thin(numbers: Numbers, cuts: tuple[float, ...], least: float = LEAST_ROWS) -> tuple[float, ...]:
    """Take cuts away until every group has enough rows; the thinnest joins its smaller neighbour first."""
    kept = list(cuts)
    while kept:
        sizes = group_sizes(numbers, kept)
        thin = int(np.argmin(sizes))
        if sizes[thin] >= least:
            break
        # The cut below the group, or the one above it.
        sides = [side for side in (thin - 1, thin) if 0 <= side < len(kept)]
        beside = {thin - 1: thin - 1, thin: thin + 1}
        kept.pop(min(sides, key=lambda side: (sizes[beside[side]], side)))
    return tuple(kept)


def group_sizes(numbers: Numbers, cuts: Sequence[float]) -> Floats:
    """Return how many rows each group has."""
    groups = np.searchsorted(np.asarray(cuts, dtype=np.float64), numbers.values, side="right")
    sizes = np.zeros(len(cuts) + 1)
    np.add.at(sizes, groups, numbers.weights)
    return sizes


def cuts_between(numbers: Numbers) -> tuple[float, ...]:
    """Return the cuts that give each number a group of its own, thin ones joined to a neighbour."""
    return merge_thin(numbers, tuple(float(value) for value in numbers.values[1:]))


def group_labels(cuts: Sequence[float], whole: bool, low: float, high: float) -> tuple[str, ...]:
    """Name the groups as people do: "under 30", "30 to 44", "45 or more"; `low` and `high` were seen.

    >>> group_labels((30, 45), True, 18, 90), group_labels((1.5, 2.5), False, 0.3, 9)
    (('under 30', '30 to 44', '45 or more'), ('under 1.5', '1.5 to under 2.5', '2.5 or more'))
    """
    bounds = [-inf, *cuts, inf]
    return tuple(_label(bounds[i], bounds[i + 1], whole, low, high) for i in range(len(bounds) - 1))


def _label(start: float, end: float, whole: bool, low: float, high: float) -> str:
    if whole:
        # A single number needs no words around it.
        first = low if start == -inf and low == end - 1 else start
        last = high if end == inf and high == start else end - 1
        return _named(first, last, "", "")
    at, is_above = _edge(start)
    to, is_closed = _edge(end)
    if is_closed and low == to and start == -inf:
        at = to
    if end == inf and high == at and not is_above:
        to, is_closed = at, True
    if at == to:
        return to_label(to)
    if start == -inf and is_closed:
        return f"{to_label(to)} or less"
    return (
        f"over {to_label(at)}"
        if is_above and end == inf
        else _named(at, to, "over " if is_above else "", "" if is_closed else "under ")
    )


def _named(first: float, last: float, before: str, until: str) -> str:
    if first == -inf:
        # The last whole number of a group is not where the next one begins.
        return f"under {to_label(last if until else last + 1)}"
    if last == inf:
        return f"{to_label(first)} or more"
    if first == last:
        return to_label(first)
    return f"{before}{to_label(first)} to {until}{to_label(last)}"


def _edge(cut: float) -> tuple[float, bool]:
    """Return the number people would write for a cut, and whether the cut is just above it."""
    before = nextafter(cut, -inf)
    if before == 0 or (abs(cut) != inf and len(repr(before)) + 4 < len(repr(cut))):
        return before, True
    return cut, False


def format_cuts(cuts: Sequence[float]) -> list[str]:
    """Write cuts for people: "2,500", "0.5", "above 0"; what may be years is written as years are.

    >>> format_cuts([2500.0]), format_cuts([1950.0, 1970.0]), format_cuts([5e-324])
    (['2,500'], ['1950', '1970'], ['above 0'])
    """
    as_years = all(cut in _YEARS for cut in cuts)
    return [_format_cut(cut, "" if as_years else ",") for cut in cuts]


def _format_cut(cut: float, separator: str) -> str:
    number, above = _edge(cut)
    is_whole = number == int(number) and abs(number) < 1e15
    text = f"{int(number):{separator}}" if is_whole else to_label(number)
    return f"above {text}" if above else text
