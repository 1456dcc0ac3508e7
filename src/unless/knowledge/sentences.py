"""Statements in English, with names and levels as the table writes them (in quotes if they mislead)."""

from collections.abc import Sequence

from unless.data.domain import Domain
from unless.knowledge.evidence import Evidence
from unless.knowledge.gates import Gate
from unless.structures.pairs import Edge
from unless.structures.regions import Region, spoken


def sentence(
    pair: Edge,
    gate: Gate | bool,
    linked: Evidence | None,
    unlinked: Evidence | None,
    domain: Domain,
    n_rows: int,
) -> str:
    """Say what the data bear out of what a structure says; the first of the pair is what depends."""
    pair = spoken(pair[0]), spoken(pair[1])
    if isinstance(gate, bool):
        side = linked or unlinked
        return _plain(pair, gate, side, n_rows) if side else f"{pair[0]} and {pair[1]}: nothing is known"
    assert linked is not None  # noqa: S101 (a gate has two sides)
    assert unlinked is not None  # noqa: S101
    return _gated(pair, gate, linked, unlinked, domain, n_rows)


def regions_text(regions: Sequence[Region], domain: Domain) -> str:
    """Write regions: "Class = 2nd and Sex = Male", or several of them joined by "or"."""
    return ", or ".join(_region_text(region, domain) for region in regions)


def rows_text(n_rows: int, whole: int) -> str:
    """Write a part of the table: "933 of 4,526 rows", or all of it."""
    return f"{n_rows:,} rows" if n_rows == whole else f"{n_rows:,} of {whole:,} rows"


def more_rows_text(n_rows: int, where: str) -> str:
    """Write what is missing: "about 98 more rows where Age = Child would settle it"."""
    return f"about {n_rows:,} more row{'' if n_rows == 1 else 's'}{where} would settle it"


def decimal(value: float) -> str:
    """Write a number between 0 and 1 as .14."""
    return "1" if value >= 0.995 else f"{value:.2f}".removeprefix("0")


def chance(name: str, value: float) -> str:
    """Write a p or q: one digit where it is small."""
    if value < 1e-300:
        return f"{name} < 1e-300"
    if value >= 0.001:
        return f"{name} = {f'{value:.2g}'.removeprefix('0')}"
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{name} = {mantissa}e-{int(exponent.removeprefix('-'))}"


def _plain(pair: Edge, is_linked: bool, side: Evidence, n_rows: int) -> str:
    a, b = pair
    if side.answer == "dependent":
        doubt = "" if is_linked else ", though the structure does not link them"
        return f"{a} depends on {b}{_seen(side, n_rows)}{doubt}"
    if side.answer == "independent":
        if is_linked:
            return (
                f"{a} and {b} are linked in the structure, but no dependence is seen{_unseen(side, n_rows)}"
            )
        return f"{a} and {b} are never linked{_unseen(side, n_rows)}"
    said = "are linked in the structure, but" if is_linked else "are not linked in the structure;"
    return f"{a} and {b} {said} {_undecided(side, n_rows, '')}"


def _gated(pair: Edge, gate: Gate, linked: Evidence, unlinked: Evidence, domain: Domain, n_rows: int) -> str:
    a, b = pair
    on, off = (regions_text(side, domain) for side in (gate.linked, gate.unlinked))
    is_short = length(gate.linked, domain) <= length(gate.unlinked, domain)
    word, where = ("only when", on) if is_short else ("unless", off)
    if linked.answer == "dependent":
        if unlinked.answer == "independent":
            return f"{a} depends on {b} {word} {where}{_seen(linked, n_rows)}"
        if unlinked.answer == "dependent":
            return (
                f"{a} depends on {b} both when {on}{_seen(linked, n_rows)} and elsewhere"
                f"{_seen(unlinked, n_rows)}, where the structure does not link them"
            )
        elsewhere = _undecided(unlinked, n_rows, off)
        return f"{a} depends on {b} when {on}{_seen(linked, n_rows)}; elsewhere {elsewhere}"
    claim = f"{a} and {b} are linked in the structure {word} {where}, but"
    # Seen from the contexts just named, which are those without the link after "unless".
    at_link, away = ("there", "elsewhere") if is_short else ("elsewhere", "there")
    if unlinked.answer == "dependent":
        return f"{claim} they depend {away}{_seen(unlinked, n_rows)}"
    if linked.answer == "independent":
        return f"{claim} no dependence is seen {at_link}{_unseen(linked, n_rows)}"
    return f"{claim} {_undecided(linked, n_rows, on)}"


def _seen(side: Evidence, n_rows: int) -> str:
    return f" ({rows_text(side.n_rows, n_rows)}, V = {decimal(side.cramers_v)}, {chance('q', side.q)})"


def _unseen(side: Evidence, n_rows: int) -> str:
    limit = f"V at most {decimal(side.cramers_v_limit)}"
    return f" ({rows_text(side.n_rows, n_rows)}, {chance('p', side.p)}, {limit})"


def _undecided(side: Evidence, n_rows: int, where: str) -> str:
    there = f" where {where}" if where else ""
    if not side.df:
        given = f" given {', '.join(map(spoken, side.given))}" if side.given else ""
        return f"undecided: nothing varies{given} ({rows_text(side.n_rows, n_rows)})"
    more = more_rows_text(side.more_rows or 1, there)
    return f"undecided ({rows_text(side.n_rows, n_rows)}, {chance('p', side.p)}): {more}"


def length(regions: Sequence[Region], domain: Domain) -> tuple[int, int, int]:
    """Measure a description: regions, conditions, levels named."""
    conditions = [condition for region in regions for condition in region.conditions]
    return len(regions), len(conditions), sum(_n_named(name, labels, domain) for name, labels in conditions)


def _n_named(name: str, labels: tuple[str, ...], domain: Domain) -> int:
    return min(len(labels), len(domain[name].levels) - len(labels) + 1)


def _region_text(region: Region, domain: Domain) -> str:
    return " and ".join(_condition_text(name, labels, domain) for name, labels in region.conditions)


def _condition_text(name: str, labels: tuple[str, ...], domain: Domain) -> str:
    others = [label for label in domain[name].levels if label not in labels]
    name, told, rest = spoken(name), [*map(spoken, labels)], [*map(spoken, others)]
    if len(told) == 1:
        return f"{name} = {told[0]}"
    if len(rest) == 1 and len(told) > 2:
        return f"{name} is not {rest[0]}"
    if len(rest) * 2 < len(told):
        return f"{name} is not in {{{', '.join(rest)}}}"
    return f"{name} in {{{', '.join(told)}}}"
