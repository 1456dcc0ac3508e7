"""Who is separated from whom in an undirected graph."""

from collections.abc import Iterable, Mapping

from unless.data.domain import Domain
from unless.errors import SettingError

Names = str | Iterable[str]


def separated(
    neighbours: Mapping[str, Iterable[str]], a: Iterable[str], b: Iterable[str], given: Iterable[str]
) -> bool:
    """Tell whether every path from a to b is intercepted by the given nodes."""
    seen = {*a, *given}
    targets = set(b)
    frontier = list(a)
    while frontier:
        for node in neighbours[frontier.pop()]:
            if node in targets:
                return False
            if node not in seen:
                seen.add(node)
                frontier.append(node)
    return True


def check_question(
    domain: Domain, a: Names, b: Names, given: Names, fixed: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return a, b and given (with what is fixed) as names that exist and do not overlap."""
    sides = [_names(domain, side) for side in (a, b, given)]
    if not sides[0] or not sides[1]:
        raise SettingError("Independence is between two sides; name at least one variable on each.")
    _refuse_overlap({*sides[0]} & {*sides[1]}, "is on both sides of the question")
    _refuse_overlap({*sides[0], *sides[1]} & {*sides[2]}, "is both asked about and given")
    _refuse_overlap({*sides[0], *sides[1]} & {*fixed}, "is asked about but fixed by the context")
    return sides[0], sides[1], (*sides[2], *fixed)


def _names(domain: Domain, side: Names) -> tuple[str, ...]:
    names = (side,) if isinstance(side, str) else tuple(side)
    for name in names:
        domain.index(name)
    return names


def _refuse_overlap(overlap: set[str], trouble: str) -> None:
    if overlap:
        raise SettingError(f"Variable {min(overlap)!r} {trouble}; name it once.")
