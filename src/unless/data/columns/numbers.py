"""Columns of numbers: where they are cut into groups, and what the groups are called."""

# ruff: noqa: S608 (every name in the SQL is our own, c0, c1, ...; every text goes through `quoted`)

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, inf, isfinite, isinf, isnan, log10, nextafter
from typing import Any

import numpy as np

from unless.data.settings import Bins
from unless.data.showing import to_label
from unless.data.sources.session import Source
from unless.errors import DataError, SettingError
from unless.typing import Floats

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
    for end in [*heavy, len(numbers.values)]:
        cuts |= _cuts_of_run(numbers, begin, end, share)
        if end < len(numbers.values):
            if end > 0:
                cuts.add(float(numbers.values[end]))
            if end + 1 < len(numbers.values):
                # Just above it, so that the next number begins another group.
                value = float(numbers.values[end])
                cuts.add(value + 1 if numbers.whole else nextafter(value, inf))
        begin = end + 1
    return merge_thin(numbers, tuple(sorted(cuts)))


def _cuts_of_run(numbers: Numbers, begin: int, end: int, share: float) -> set[float]:
    """Cut the numbers between two that have groups of their own into groups of about equal size."""
    mass = float(numbers.weights[begin:end].sum())
    groups = round(mass / share)
    below = numbers.below()
    cuts: set[float] = set()
    for step in range(1, groups):
        aim = below[begin] + mass * step / groups
        positions = np.arange(begin + 1, end)
        if not len(positions):
            break
        distance = np.abs(below[positions] - aim)
        best = int(positions[np.argmin(distance)])
        near = positions[distance <= READABLE_SHARE * mass / groups]
        if not len(near):
            near = np.array([best])
        low, high = float(numbers.values[near[0] - 1]), float(numbers.values[near[-1]])
        cuts.add(_readable(low, high, float(numbers.values[best]), numbers.whole))
    return cuts


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
        # The cut below the group, or the one above it, and the size of the group beyond.
        beyond = {thin - 1: thin - 1, thin: thin + 1}
        near = [cut for cut in beyond if 0 <= cut < len(kept)]
        kept.pop(min(near, key=lambda cut: (sizes[beyond[cut]], cut)))
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
    if is_above and end == inf:
        return f"over {to_label(at)}"
    return _named(at, to, "over " if is_above else "", "" if is_closed else "under ")


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


@dataclass(frozen=True)
class Cutting:
    """Where a column is cut, the names of its groups, and how the cuts were found.

    A value belongs to the group after the last cut that is not above it.
    """

    cuts: tuple[float, ...]
    labels: tuple[str, ...]
    method: str


def _cutting(low: float, cuts: Sequence[float], high: float, whole: bool, method: str) -> Cutting:
    """Name the groups: "18 to 34" for whole numbers, "1.5 to under 2.5" for others."""
    groups = list(pairwise([low, *cuts, high]))
    labels = [
        _between(*group, whole, last)
        for group, last in zip(groups, [False] * len(cuts) + [True], strict=True)
    ]
    return Cutting(tuple(cuts), tuple(labels), method)


def _between(start: float, end: float, whole: bool, is_last: bool) -> str:
    if isinf(start) or isinf(end):
        return _named(start, end, "", "under ")
    if whole:
        return _named(start, end if is_last else end - 1, "", "")
    return f"{to_label(start)} to {'' if is_last else 'under '}{to_label(end)}"


def group_sql(number: str, cuts: Sequence[float], groups: Sequence[str] | None = None) -> str:
    """Write the group of a number as a tree of comparisons, which takes few of them; `groups` are in SQL."""
    groups = [str(group) for group in range(len(cuts) + 1)] if groups is None else groups
    if not cuts:
        return groups[0]
    middle = len(cuts) // 2
    below = group_sql(number, cuts[:middle], groups[: middle + 1])
    above = group_sql(number, cuts[middle + 1 :], groups[middle + 1 :])
    return f"case when {number} < {cuts[middle]!r}::DOUBLE then {below} else {above} end"


def check_bins(name: str, spec: Bins) -> tuple[str, int, tuple[float, ...]]:
    """Return how to cut ("quantile", "width" or "edges"), into how many groups, and the edges given."""
    if isinstance(spec, int) and not isinstance(spec, bool):
        return "quantile", _number(name, spec), ()
    if isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[0], str):
        if spec[0] not in ("quantile", "width"):
            raise SettingError(
                f"bins={{{name!r}: {spec!r}}} is not known; write ('quantile', n) or ('width', n)."
            )
        return spec[0], _number(name, spec[1]), ()
    return "edges", 0, _edges(name, spec)


def _number(name: str, n_bins: object) -> int:
    if not isinstance(n_bins, int) or not 2 <= n_bins <= 1000:
        raise SettingError(f"bins={{{name!r}: {n_bins!r}}} is out of range; give 2 to 1,000 groups.")
    return n_bins


def _edges(name: str, spec: Any) -> tuple[float, ...]:
    try:
        edges = tuple(float(edge) for edge in spec)
    except (TypeError, ValueError):
        edges = ()
    rising = all(a < b for a, b in pairwise(edges))
    if len(edges) < 3 or not rising or any(map(isnan, edges)):
        raise SettingError(
            f"bins={{{name!r}: {spec!r}}} does not say where to cut; give a number of groups, "
            "('width', n), or three or more rising edges."
        )
    return edges


def find_cutting(name: str, spec: Bins, value: str, weight: str, source: Source) -> Cutting:
    """Find the cuts of a column, given SQL for its value and its count."""
    method, n_bins, edges = check_bins(name, spec)
    low, high, whole = source.row(f"min({value}), max({value}), bool_and({value} = floor({value}))")
    if low is None:
        raise DataError(f"Column {name!r} has no numbers to cut; leave it out with exclude=.")
    if method == "edges":
        return _at_edges(name, edges, low, high, whole)
    if method == "width":
        cuts = _equal_widths(low, high, n_bins, whole)
    else:
        cuts = _quantiles(n_bins, value, weight, source)
    label = "at quantiles" if method == "quantile" else "at equal widths"
    return _cutting(low, sorted({cut for cut in cuts if low < cut <= high}), high, whole, label)


def _at_edges(name: str, edges: Sequence[float], low: float, high: float, whole: bool) -> Cutting:
    if low < edges[0] or high > edges[-1]:
        stray = low if low < edges[0] else high
        raise DataError(
            f"Column {name!r} holds {to_label(stray)}, outside its bins from {to_label(edges[0])} to "
            f"{to_label(edges[-1])}; widen them, up to float('inf') if need be."
        )
    whole = whole and all(edge.is_integer() for edge in edges if isfinite(edge))
    return _cutting(edges[0], edges[1:-1], edges[-1], whole, "at the given edges")


def _equal_widths(low: float, high: float, n_bins: int, whole: bool) -> list[float]:
    step = (high - low) / n_bins
    exact = [low + step * place for place in range(1, n_bins)]
    if whole:
        return [float(ceil(cut)) for cut in exact]
    # Six digits are enough to cut at, and a label can then tell the whole truth.
    rounded = [float(f"{cut:.6g}") for cut in exact]
    return rounded if len(set(rounded)) == len(exact) else exact


def _quantiles(n_bins: int, value: str, weight: str, source: Source) -> list[float]:
    """Return the smallest values with at least 1/n, 2/n, ... of the rows below them."""
    wanted = ", ".join(f"min(v) filter (where below * {n_bins} >= total * {i})" for i in range(1, n_bins))
    found = source.session.row(
        f"with g as (select {value} as v, sum({weight}) as w from {source.relation} group by all "
        "having v is not null), r as (select v, sum(w) over () as total, coalesce(sum(w) over "
        "(order by v rows between unbounded preceding and 1 preceding), 0) as below from g) "
        f"select {wanted} from r"
    )
    return [cut for cut in found if cut is not None and cut != -inf]
