"""Tables that lie on a cluster in partitions (Dask): collapsed there, only distinct rows come back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.sources.session import nested
from unless.runtime.memory import check_rows

Integers = npt.NDArray[np.int64]
# Partitions that are joined by one task: a tree of joins keeps every task small.
_FAN_IN = 8


@dataclass(frozen=True)
class Collapsed:
    """Distinct rows in the order of their first appearance, how often each occurs, and where first."""

    frame: Any
    times: Integers
    places: Integers

    @property
    def n_rows(self) -> int:
        """The number of rows, repeated ones included."""
        return int(self.times.sum())


def collapse_partitions(frame: Any, max_bytes: int | None) -> Collapsed:
    """Collapse a Dask DataFrame where its partitions are; beyond `max_bytes` it is refused there."""
    import dask

    parts = [dask.delayed(_collapse_part)(part, max_bytes) for part in frame.to_delayed()]
    while len(parts) > 1:
        groups = [parts[start : start + _FAN_IN] for start in range(0, len(parts), _FAN_IN)]
        parts = [dask.delayed(_join)(group, max_bytes) for group in groups]
    (found,) = dask.compute(parts[0])
    return found  # type: ignore[no-any-return]


def _collapse_part(part: Any, max_bytes: int | None) -> Collapsed:
    n_rows = len(part)
    return _collapse(part, np.ones(n_rows, dtype=np.int64), np.arange(1, n_rows + 1), max_bytes)


def _join(parts: Sequence[Collapsed], max_bytes: int | None) -> Collapsed:
    """Join neighbours: rows of a later part come after all rows of those before it."""
    from dask.dataframe.dispatch import concat

    before = np.cumsum([0, *(part.n_rows for part in parts)])
    filled = [part for part in parts if len(part.times)]
    frame = concat([part.frame for part in filled or parts[:1]])
    times = np.concatenate([part.times for part in parts])
    places = np.concatenate([part.places + skip for part, skip in zip(parts, before[:-1], strict=True)])
    return _collapse(frame, times, places, max_bytes)


def _collapse(frame: Any, times: Integers, places: Integers, max_bytes: int | None) -> Collapsed:
    """Keep the first of equal rows as it is: types, categories and their order stay."""
    import narwhals as nw

    factorize = nw.get_native_namespace(nw.from_native(frame, eager_only=True)).factorize
    keys = np.zeros(len(frame), dtype=np.int64)
    for position, name in enumerate(frame.columns):
        codes = _codes(frame.iloc[:, position], str(name), factorize)
        # Numbered anew after each column, in order of appearance, so that no key outgrows its type.
        keys = factorize(keys * (codes.max(initial=0) + 2) + codes + 1)[0]
    n_distinct = int(keys.max(initial=-1)) + 1
    if max_bytes is not None:
        check_rows(n_distinct, len(frame.columns), max_bytes)
    first = np.zeros(n_distinct, dtype=np.int64)
    # Written from the end: what is written last is the first of its kind.
    first[keys[::-1]] = np.arange(len(keys))[::-1]
    totals = np.zeros(n_distinct, dtype=np.int64)
    np.add.at(totals, keys, times)
    return Collapsed(frame.iloc[first].reset_index(drop=True), totals, places[first])


def _codes(series: Any, name: str, factorize: Callable[[Any], tuple[Any, Any]]) -> Integers:
    """Give the values of a column numbers, -1 where there is none, as reading itself tells them apart."""
    if getattr(series.dtype, "categories", None) is not None:
        return np.asarray(series.cat.codes, dtype=np.int64)
    try:
        return np.asarray(factorize(series)[0], dtype=np.int64)
    except TypeError:
        raise nested(name) from None
