"""Numbers are cut into a few groups, at quantiles, at equal widths or at given edges."""

# ruff: noqa: S608 (every name in the SQL is our own, c0, c1, ...; every text goes through `quoted`)

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf, isfinite, isinf, isnan
from typing import Any

from unless.data.labels import to_label
from unless.data.settings import Bins
from unless.data.sources.session import DuckDBSession
from unless.errors import DataError, SettingError


@dataclass(frozen=True)
class Cutting:
    """Where a column is cut: a value belongs to the group after the last cut that is not above it."""

    low: float
    cuts: tuple[float, ...]
    high: float
    whole: bool
    method: str

    def labels(self) -> tuple[str, ...]:
        """Name the groups: "18 to 34" for whole numbers, "1.5 to under 2.5" for others."""
        bounds = [self.low, *self.cuts, self.high]
        last = len(bounds) - 2
        return tuple(self._label(bounds[i], bounds[i + 1], last=i == last) for i in range(last + 1))

    def _label(self, start: float, end: float, *, last: bool) -> str:
        if isinf(start):
            return f"under {to_label(end)}"
        if isinf(end):
            return f"{to_label(start)} or more"
        if self.whole:
            end = end if last else end - 1
            return to_label(start) if start == end else f"{to_label(start)} to {to_label(end)}"
        return f"{to_label(start)} to {'' if last else 'under '}{to_label(end)}"

    def expression(self, value: str) -> str:
        """Write the number of the group in SQL."""
        steps = " ".join(
            f"when {value} < {cut!r}::DOUBLE then {place}" for place, cut in enumerate(self.cuts)
        )
        return f"case when {value} is null then null {steps} else {len(self.cuts)} end"

    def note(self, name: str) -> str:
        """Say what was done to the column."""
        groups = ", ".join(map(repr, self.labels()))
        return f"Cut {name!r} {self.method} into {len(self.cuts) + 1} groups: {groups}."


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


def find_cutting(
    name: str, spec: Bins, value: str, weight: str, relation: str, session: DuckDBSession
) -> Cutting:
    """Find the cuts of a column, given SQL for its value and its count."""
    method, n_bins, edges = check_bins(name, spec)
    low, high, whole = session.row(
        f"select min({value}), max({value}), bool_and({value} = floor({value})) from {relation}"
    )
    if low is None:
        raise DataError(f"Column {name!r} has no numbers to cut; leave it out with exclude=.")
    if method == "edges":
        return _at_edges(name, edges, low, high, whole)
    if method == "width":
        cuts = _equal_widths(low, high, n_bins, whole)
    else:
        cuts = _quantiles(n_bins, value, weight, relation, session)
    label = "at quantiles" if method == "quantile" else "at equal widths"
    return Cutting(low, tuple(sorted({cut for cut in cuts if low < cut <= high})), high, whole, label)


def _at_edges(name: str, edges: Sequence[float], low: float, high: float, whole: bool) -> Cutting:
    if low < edges[0] or high > edges[-1]:
        stray = low if low < edges[0] else high
        raise DataError(
            f"Column {name!r} holds {to_label(stray)}, outside its bins from {to_label(edges[0])} to "
            f"{to_label(edges[-1])}; widen them, up to float('inf') if need be."
        )
    whole = whole and all(edge.is_integer() for edge in edges if isfinite(edge))
    return Cutting(edges[0], tuple(edges[1:-1]), edges[-1], whole, "at the given edges")


def _equal_widths(low: float, high: float, n_bins: int, whole: bool) -> list[float]:
    step = (high - low) / n_bins
    exact = [low + step * place for place in range(1, n_bins)]
    if whole:
        return [float(ceil(cut)) for cut in exact]
    # Six digits are enough to cut at, and a label can then tell the whole truth.
    rounded = [float(f"{cut:.6g}") for cut in exact]
    return rounded if len(set(rounded)) == len(exact) else exact


def _quantiles(n_bins: int, value: str, weight: str, relation: str, session: DuckDBSession) -> list[float]:
    """Return the smallest values with at least 1/n, 2/n, ... of the rows below them."""
    wanted = ", ".join(f"min(v) filter (where below * {n_bins} >= total * {i})" for i in range(1, n_bins))
    found = session.row(
        f"with g as (select {value} as v, sum({weight}) as w from {relation} group by all "
        "having v is not null), r as (select v, sum(w) over () as total, coalesce(sum(w) over "
        "(order by v rows between unbounded preceding and 1 preceding), 0) as below from g) "
        f"select {wanted} from r"
    )
    return [cut for cut in found if cut is not None and cut != -inf]
