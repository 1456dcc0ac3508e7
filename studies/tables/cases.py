"""Cases of the study, and words for what was found in them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from studies.truth.judge import wilson
from studies.truth.writing import share, table

Record = dict[str, Any]
# A line that must be shown: what, the aim, what was reached, and whether it is met.
Line = tuple[str, str, str, bool | None]

__all__ = ["Case", "Line", "Record", "grouped", "is_below", "share", "table", "wilson"]


@dataclass(frozen=True)
class Case:
    """Some tables of one kind and size."""

    part: str
    name: str
    n: int
    tables: int
    # How many tables are one cell.
    block: int = 10


def grouped(
    records: Iterable[Record], key: Callable[[Record], tuple[Any, ...]]
) -> list[tuple[tuple[Any, ...], list[Record]]]:
    """Group records, in the order in which keys come first; numbers of rows rise."""
    groups: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for one in records:
        groups[key(one)].append(one)
    return sorted(groups.items(), key=lambda item: tuple((isinstance(part, str), part) for part in item[0]))


def is_below(k: int, n: int, aim: float) -> bool | None:
    """Tell whether a share is at most what is aimed at; None where there is nothing to judge."""
    return k <= aim * n if n else None


def total(records: Sequence[Record], *keys: str) -> list[int]:
    """Add up counts of records."""
    return [sum(int(one[key]) for one in records) for key in keys]
