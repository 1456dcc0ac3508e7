"""Statements in English, with names and levels as the table writes them (in quotes if they mislead)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unless.data.domain import Domain, Region, Variable, quote_label
from unless.data.showing import count, html_table, to_label
from unless.knowledge.evidence import Contrast, PairEvidence, Trend, rank_ends
from unless.structures.structure import Edge

# More columns than this that evidence is given are counted, not named.
MOST_NAMED = 3
# A side is linked more strongly where its V is larger by this factor.
STRONGER = 1.2
# Rows outside a gate with a p below this show something, if less than those inside.
WEAK_P = 0.01
# Longer names and levels are cut in sentences.
MOST_LETTERS = 60
# Findings less sure than the first are "probably" so, candidates less sure than the second "may" be: of those
# with a confidence from .5 to .8 two in three are true (docs/accuracy.md).
FLAT, PROBABLE = 0.8, 0.5


@dataclass(frozen=True)
class Gate:
    """The contexts in which a pair is linked, and the others; every context is in one of them.

    Regions of one side may overlap, because that is shorter: Sex = Female, or Class = 3rd.
    """

    linked: tuple[Region, ...]
    unlinked: tuple[Region, ...]

    @classmethod
    def of(cls, domain: Domain, clauses: Sequence[tuple[int, Sequence[int]]]) -> "Gate":
        """Open a gate where columns (positions) have some levels (codes), all of them."""
        inside, outside = {}, []
        for column, codes in clauses:
            variable = domain.variables[column]
            inside[variable.name] = [variable.levels[code] for code in codes]
            others = [label for code, label in enumerate(variable.levels) if code not in codes]
            outside.append(Region.of(domain, {variable.name: others}))
        outside.sort(key=lambda region: region.conditions)
        return cls((Region.of(domain, inside),), tuple(outside))

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that decide, sorted."""
        return tuple(sorted({name for region in (*self.linked, *self.unlinked) for name in region.names}))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "linked": [region.to_dict() for region in self.linked],
            "not_linked": [region.to_dict() for region in self.unlinked],
        }

    def _repr_html_(self) -> str:
        rows = [
            (side, str(region))
            for side, regions in (("linked", self.linked), ("elsewhere", self.unlinked))
            for region in regions
        ]
        return html_table(f"Gate: {', '.join(map(quote_label, self.names))}", ("side", "where"), rows)


def linked_sentence(
    pair: Edge, evidence: PairEvidence, given: Sequence[str], confidence: float, n_rows: int, once: bool
) -> str:
    """Say that a pair is linked; `once` where it shows only when the columns given are known."""
    figures = _figures(evidence, n_rows, confidence)
    return f"{_linked(pair, confidence)}{_given(given, once)}{figures}"


def missing_sentence(pair: Edge, n_both: int, n_rows: int, limit: float, confidence: float) -> str:
    """Say that the missing values of two columns go together, and that nothing else of them does."""
    return (
        f"{_both(pair)} are missing together: both missing in {n_both:,} of {n_rows:,} rows; where both are "
        f"known no link is seen (V at most {decimal(limit)}; {sure(confidence)})"
    )


def cut_text(cut: Sequence[tuple[str, int]]) -> str:
    """Name the cut columns that are held fixed by their groups alone, behind a sentence on others."""
    by_number: dict[int, list[str]] = {}
    for name, n_groups in cut:
        by_number.setdefault(n_groups, []).append(name_text(name))
    said = [f"{joined(names)} cut in {n_groups}" for n_groups, names in sorted(by_number.items())]
    return f"; rests on {', '.join(said)}" if said else ""


def gated_sentence(
    kind: str,
    pair: Edge,
    gate: Gate,
    sides: tuple[PairEvidence, PairEvidence],
    given: Sequence[str],
    confidence: float,
    domain: Domain,
    n_rows: int,
) -> str:
    """Say where a pair is linked, and what is known of the other rows.

    Of kind "gated" it is absent there: "only when" or, where that is shorter, an exception; "differs" says
    that both sides are linked, not equally, and "partly" that the rest is not settled.
    """
    inside, outside = sides
    on, limit = regions_text(gate.linked, domain), f"V at most {decimal(outside.cramers_v_limit)}"
    where, elsewhere = f" only when {on}", f"elsewhere {limit}"
    if kind == "differs":
        how = "more strongly" if inside.cramers_v >= STRONGER * outside.cramers_v else "in another way"
        where, elsewhere = f", {how} when {on} than elsewhere", f"elsewhere V = {decimal(outside.cramers_v)}"
    elif kind == "partly":
        settled = "less, if at all" if outside.p < WEAK_P else "not settled"
        where, elsewhere = f" when {on}", f"elsewhere {settled}: {limit}"
    elif length(gate.linked, domain) > length(gate.unlinked, domain):
        where = f" everywhere but where {regions_text(gate.unlinked, domain)}"
        elsewhere = f"there {limit}"
    figures = _figures(inside, n_rows, confidence, elsewhere)
    return f"{_linked(pair, confidence)}{where}{_given(given)}{figures}"


def determined_sentence(column: str, source: str, is_copy: bool, n_broken: int, n_rows: int) -> str:
    """Say that one column determines another."""
    broken = f" ({n_broken:,} of {n_rows:,} rows break it)" if n_broken else ""
    nearly = "nearly " if n_broken else ""
    if is_copy:
        first, second = sorted((column, source))
        return f"{_both((first, second))} say {nearly}the same in other words{broken}"
    return f"{name_text(column)} is {nearly}determined by {name_text(source)}{broken}"


def associated_sentence(
    pair: Edge, v: float, given: Sequence[str], is_settled: bool, limit: float, *, is_alone: bool = False
) -> str:
    """Say that a pair goes together, but not directly as far as is known; `is_alone`: no other columns."""
    go = f"{_both(pair)} go together (V = {decimal(v)})"
    if is_settled and given:
        return f"{go}, but not once {_known(given)} known (V at most {decimal(limit)})"
    if is_alone:
        return f"{go}, but chance is not ruled out as surely as a finding needs"
    return f"{go}; whether beyond what other columns account for is not settled"


def unlinked_sentence(pair: Edge, evidence: PairEvidence, given: Sequence[str]) -> str:
    """Say that a pair is not linked, with the bound."""
    return f"{_both(pair)} are not linked{_given(given)} (V at most {decimal(evidence.cramers_v_limit)})"


def open_sentence(pair: Edge, evidence: PairEvidence, given: Sequence[str]) -> str:
    """Say that there is not enough data, and how much would be."""
    more = f"; {more_rows_text(evidence.more_rows, '')}" if evidence.more_rows else ""
    limit = f"V up to {decimal(evidence.cramers_v_limit)} is not ruled out"
    return f"{_both(pair)}: not enough data{_given(given)} ({limit}, {chance('p', evidence.p)}){more}"


def unproposed_sentence(pair: Edge, evidence: PairEvidence, given: Sequence[str]) -> str:
    """Say that nothing is claimed of a pair that the structure does not link."""
    limit = f"V up to {decimal(evidence.cramers_v_limit)} is not ruled out"
    return (
        f"{_both(pair)}: nothing is claimed, for the structure does not propose them{_given(given)} ({limit})"
    )


def change_sentence(
    kind: str,
    pair: Edge,
    where: tuple[str, str],
    sides: tuple[PairEvidence, PairEvidence],
    given: Sequence[str],
    q: float,
) -> str:
    """Say how a link differs between two sides; `where` names the first and the second."""
    v = [f"V = {decimal(one.cramers_v)}" for one in sides]
    limit = [f"at most {decimal(one.cramers_v_limit)}" for one in sides]
    # The side that has the link, or more of it, is named first.
    here, there = (0, 1) if kind in ("lost", "weaker") else (1, 0)
    linked, known = f"{_both(pair)} are linked", f"{chance('q', q)}){_given(given)}"
    if kind in ("gained", "lost"):
        return f"{linked} {where[here]} ({v[here]}) but not {where[there]} (V {limit[there]}; {known}"
    if kind in ("stronger", "weaker"):
        return f"{linked} more strongly {where[here]} ({v[here]}) than {where[there]} ({v[there]}; {known}"
    ends = [f"{where[one]} ({v[one]}, {limit[one]}" for one in (1, 0)]
    return f"{_both(pair)} are not linked alike {ends[0]}) and {ends[1]}; {known}"


def differing_sentence(pair: Edge, group: str, given: Sequence[str], q: float) -> str:
    """Say that a link is not the same in all groups of a column, where it is not known in which."""
    alike = f"not linked alike at all levels of {name_text(group)}"
    return f"{_both(pair)} are {alike} ({chance('q', q)}){_given(given)}"


def not_shown_sentence(
    pair: Edge, given: Sequence[str], limit: float, more_rows: int | None, is_tested: bool
) -> str:
    """Say that no difference is shown, what is ruled out, and how many rows it would take."""
    if not is_tested:
        return f"{_both(pair)}: no difference shown, for one of them does not vary on both sides"
    more = f"; {more_rows_text(more_rows, '')}" if more_rows else ""
    return f"{_both(pair)}: no difference shown{_given(given)} (of V, at most {decimal(limit)}){more}"


def regions_text(regions: Sequence[Region], domain: Domain) -> str:
    """Write regions: "Class = 2nd and Sex = Male", or several of them joined by "or"."""
    return ", or ".join(
        " and ".join(_condition_text(domain[name], labels) for name, labels in region.conditions)
        for region in regions
    )


def rows_text(n_rows: int, whole: int) -> str:
    """Write a part of the table: "933 of 4,526 rows", or all of it."""
    return f"{n_rows:,} rows" if n_rows == whole else f"{n_rows:,} of {whole:,} rows"


def more_rows_text(n_rows: int, where: str) -> str:
    """Write what is missing: "about 98 more rows where Age = Child would settle it"."""
    return f"about {count(n_rows, 'more row')}{where} would settle it"


def decimal(value: float) -> str:
    """Write a number between 0 and 1 as .14."""
    return "1" if value >= 0.995 else f"{value:.2f}".removeprefix("0")


def percent(share: float) -> str:
    """Write a share as people read it: 62 %, but 0.4 % where it is small."""
    value = 100 * share
    return f"{value:.0f} %" if value >= 1 or value < 0.05 else f"{value:.1f} %"


def sure(confidence: float) -> str:
    """Write how sure a sentence is: never as certain."""
    if confidence >= 0.9995:
        return "confidence over .999"
    digits = 3 if confidence >= 0.995 else 2
    return f"confidence {confidence:.{digits}f}".replace(" 0.", " .")


def chance(name: str, value: float) -> str:
    """Write a p or q: one digit where it is small."""
    if value < 1e-300:
        return f"{name} < 1e-300"
    if value >= 0.001:
        return f"{name} = {f'{value:.2g}'.removeprefix('0')}"
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{name} = {mantissa}e-{int(exponent.removeprefix('-'))}"


def _linked(pair: Edge, confidence: float) -> str:
    """Say that a pair is linked, as surely as that is; by the digits that are shown."""
    shown = round(confidence, 2)
    verb = "are linked" if shown >= FLAT else "are probably linked" if shown >= PROBABLE else "may be linked"
    return f"{_both(pair)} {verb}"


def _both(pair: Edge) -> str:
    return f"{name_text(pair[0])} and {name_text(pair[1])}"


def name_text(text: str) -> str:
    """Write a name or a level, in quotes where it misleads, and cut where it is long."""
    # Cut before it is put in quotes, so that they stay whole.
    return quote_label(text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 3]}...")


def _given(given: Sequence[str], once: bool = False) -> str:
    """Name what is held fixed; columns that a link needs to be seen at all are "once known"."""
    if not given:
        return ""
    return f" once {_known(given)} known" if once else f", given {_named(given)}"


def _known(given: Sequence[str]) -> str:
    return f"{_named(given)} {'is' if len(given) == 1 else 'are'}"


def _named(names: Sequence[str]) -> str:
    said = [name_text(name) for name in names]
    if len(said) > MOST_NAMED + 1:
        return f"{', '.join(said[:MOST_NAMED])} and {len(said) - MOST_NAMED} more"
    return joined(said)


def joined(said: Sequence[str]) -> str:
    """Join parts of a sentence: "a", "a and b", "a, b and c"."""
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"


def _figures(evidence: PairEvidence, n_rows: int, confidence: float, elsewhere: str = "") -> str:
    shown = contrast_text(evidence.contrast) if evidence.contrast else ""
    if evidence.trend is not None and evidence.trend.is_clear and not (shown and evidence.trend.level):
        shown = _trend(evidence.trend)
    strength, rows = f"V = {decimal(evidence.cramers_v)}", rows_text(evidence.n_rows, n_rows)
    return f" ({'; '.join(filter(None, (shown, strength, elsewhere, rows, sure(confidence))))})"


def _trend(trend: Trend) -> str:
    tau = f"{'-' if trend.tau < 0 else ''}{decimal(abs(trend.tau))}"
    end = _towards(trend.second, trend.second_ends, trend.tau > 0)
    if trend.level:
        end = f"{name_text(trend.second)} = {name_text(trend.level)}"
    return f"{_towards(trend.first, trend.first_ends, True)} goes with {end}, tau = {tau}"


def _towards(name: str, ends: tuple[str, ...], rises: bool) -> str:
    """Write which way a column goes: of ranks by the last one or the first, as the first is the highest."""
    if ends:
        return f"{name_text(name)} nearer {name_text(ends[1 if rises else 0])}"
    return f"{'higher' if rises else 'lower'} {name_text(name)}"


def contrast_text(contrast: Contrast) -> str:
    """Write two shares side by side: "Admit = yes: 82 % where Gender = F against 62 % where M"."""
    low = contrast.at_low if contrast.other in contrast.cut else name_text(contrast.at_low)
    return (
        f"{level_text(contrast, contrast.column, contrast.level)}: {percent(contrast.high)} where "
        f"{level_text(contrast, contrast.other, contrast.at_high)} against {percent(contrast.low)} where "
        f"{low}"
    )


def level_text(contrast: Contrast, name: str, level: str) -> str:
    """Write a level of a column: "Gender = F", or "age is 45 or more" of numbers that were cut."""
    return f"{name_text(name)} {f'is {level}' if name in contrast.cut else f'= {name_text(level)}'}"


def length(regions: Sequence[Region], domain: Domain) -> tuple[int, int, int]:
    """Measure a description: regions, conditions, levels named."""
    conditions = [condition for region in regions for condition in region.conditions]
    n_named = sum(min(len(labels), len(domain[name].levels) - len(labels) + 1) for name, labels in conditions)
    return len(regions), len(conditions), n_named


def _condition_text(variable: Variable, labels: tuple[str, ...]) -> str:
    name, named = name_text(variable.name), list(map(name_text, labels))
    rest = [name_text(label) for label in variable.levels if label not in labels]
    if len(named) == 1:
        return f"{name} is {labels[0]}" if variable.cuts else f"{name} = {named[0]}"
    if variable.is_ordered and (span := _range(variable, labels)):
        return f"{name} is {span}"
    if len(rest) == 1 and len(named) > 2:
        return f"{name} is not {rest[0]}"
    if len(rest) * 2 < len(named):
        return f"{name} is not in {{{', '.join(rest)}}}"
    return f"{name} in {{{', '.join(named)}}}"


def _range(variable: Variable, labels: tuple[str, ...]) -> str:
    """Write neighbouring levels of an ordered column as a range, if they are that."""
    first = variable.levels.index(labels[0])
    if variable.levels[first : first + len(labels)] != labels:
        return ""
    if variable.cuts:
        return _number_range(variable.cuts, first, first + len(labels) - 1)
    if first + len(labels) == len(variable.levels) and not rank_ends(variable):
        return f"{name_text(labels[0])} or more"
    if first == 0 and not rank_ends(variable):
        return f"{name_text(labels[-1])} or less"
    return f"{name_text(labels[0])} to {name_text(labels[-1])}"


def _number_range(cuts: Sequence[float], first: int, last: int) -> str:
    """Write groups of numbers by their edges: "45 or more", "under 30", "30 to under 60"."""
    if last > len(cuts) or (first == 0 and last == len(cuts)):
        # A level that stands for no number is among them, or all that do.
        return ""
    low = to_label(cuts[first - 1]) if first else ""
    high = to_label(cuts[last]) if last < len(cuts) else ""
    if not low:
        return f"under {high}"
    return f"{low} to under {high}" if high else f"{low} or more"
