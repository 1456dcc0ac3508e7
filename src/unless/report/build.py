"""From statements, a structure and a table to what the page holds: the only place that knows both sides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import shorten
from unless.data.showing import visible
from unless.inference.model import LogLinearModel
from unless.knowledge.asking import DRAWN
from unless.knowledge.sentences import regions_text
from unless.knowledge.slices import Slice, Slicer
from unless.knowledge.statements import Statement, Statements
from unless.report import layout
from unless.report.contexts import Held, hold
from unless.report.page import Bars, Link, Page, Variable
from unless.report.whatif import what_if
from unless.report.words import count, listed, value

# Beyond these a page is no longer read; it says what it left out.
MOST_STATEMENTS = 500
MOST_CELLS = 30_000
# More levels of a variable than this are too many bars.
MOST_BARS = 8

# A setting may be a list of all columns.
MOST_LETTERS = 300

TITLE = "What depends on what, and when"


@dataclass(frozen=True, kw_only=True)
class Source:
    """How the structure was learned, as far as it is known."""

    learner: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    n_tests: int | None = None
    n_distinct_tests: int | None = None
    # What reading did to the table; None where that is not known.
    notes: tuple[str, ...] | None = None


def build(
    structure: Any,
    data: Dataset,
    statements: Statements,
    *,
    network: LogLinearModel | None = None,
    source: Source | None = None,
    title: str = TITLE,
) -> Page:
    """Gather all that one page shows; `data` has the variables of the structure, in its order."""
    source = source or Source()
    kept = statements[:MOST_STATEMENTS]
    # What the structure links in too few rows for a claim is noise, and no line in the picture.
    held = hold(structure, data, [one.pair for one in kept if one.claim != "never"])
    links = _links(kept, held, data)
    bars, too_many = _bars(kept, data, statements.settings)
    gates = sorted({switch for link in links for switch in link.switches})
    return Page(
        title=title,
        n_rows=data.n_rows,
        n_columns=data.n_variables,
        about=_about(data, source, statements.settings),
        notes=_notes(source.notes),
        headline=_headline(statements),
        variables=_variables(data, links),
        links=links,
        at_least=DRAWN,
        contexts=held.contexts,
        statement_note=statements.note,
        settings=dict(statements.settings),
        statements=[one.to_dict(tables=False) for one in kept],
        where=[_where(one, data) for one in kept],
        bars=bars,
        what_if=what_if(network, data.domain, gates),
        left_out=[*held.left_out, *_left_out(statements, len(kept)), *too_many],
    )


def _links(statements: Sequence[Statement], held: Held, data: Dataset) -> list[Link]:
    """Say of each pair that is linked anywhere what its statement is, and who switches it."""
    index = data.domain.index
    said = {one.pair: place for place, one in enumerate(statements)}
    links = []
    for (a, b), share in zip(held.nodes(data.n_variables), held.shares.tolist(), strict=True):
        first, second = sorted((data.names[a], data.names[b]))
        place = said[first, second]
        one = statements[place]
        gate = one.gate.names if one.gate else ()
        links.append(Link(a, b, place, one.is_dependent, share, [index(switch) for switch in gate]))
    return links


def _variables(data: Dataset, links: Sequence[Link]) -> list[Variable]:
    widths = [layout.box_width(visible(variable.name)) for variable in data.domain]
    drawn = [link for link in links if link.drawn]
    places = layout.positions(len(widths), [(link.a, link.b) for link in drawn], widths)
    n_gated = np.bincount(
        [switch for link in drawn for switch in link.switches], minlength=len(widths)
    ).tolist()
    return [
        Variable(variable.name, list(variable.levels), x, y, width, n)
        for variable, (x, y), width, n in zip(data.domain, places.tolist(), widths, n_gated, strict=True)
    ]


def _bars(
    statements: Sequence[Statement], data: Dataset, settings: Mapping[str, Any]
) -> tuple[list[list[Bars]], list[str]]:
    slicer = Slicer(data, settings.get("alpha", 0.05), settings.get("effect", 0.3))
    bars: list[list[Bars]] = []
    n_cells = n_without = 0
    for one in statements:
        if one.claim == "never" and one.agrees:
            bars.append([])
            continue
        n_without += n_cells > MOST_CELLS
        bars.append([] if n_cells > MOST_CELLS else [_bar(part, data) for part in slicer.slices(one)])
        n_cells += sum(len(part.a) * len(part.b) for part in bars[-1])
    if not n_without:
        return bars, []
    return bars, [f"The tables of {count(n_without, 'statement')} further down the list are left out."]


def _bar(part: Slice, data: Dataset) -> Bars:
    a, b = (_frequent(part.table.sum(axis=axis).tolist()) for axis in (1, 0))
    shown = np.ix_(a, b)
    return Bars(
        where=regions_text(part.where, data.domain) if part.where else "",
        is_linked=part.is_linked,
        answer=part.evidence.answer,
        n_rows=part.evidence.n_rows,
        p=part.evidence.p,
        cramers_v=part.evidence.cramers_v,
        more_rows=part.evidence.more_rows,
        a=a,
        b=b,
        counts=part.table[shown].tolist(),
        totals=part.table.sum(axis=0)[b].tolist(),
        low=part.low[shown].tolist(),
        high=part.high[shown].tolist(),
    )


def _frequent(totals: list[int]) -> list[int]:
    """Return the levels that occur, in their order; of too many the most frequent."""
    seen = [code for code, total in enumerate(totals) if total]
    return sorted(sorted(seen, key=lambda code: (-totals[code], code))[:MOST_BARS])


def _where(statement: Statement, data: Dataset) -> tuple[str, str]:
    if statement.gate is None:
        return "", ""
    return regions_text(statement.gate.linked, data.domain), regions_text(
        statement.gate.unlinked, data.domain
    )


def _headline(statements: Statements) -> str:
    """Say in one sentence how many pairs depend, and when."""
    if not len(statements):
        return statements.note or "There is nothing to say."
    gated = sum(_is_borne_out(one) for one in statements)
    somewhere = sum(one.is_dependent for one in statements) - gated
    open_ones = sum(not one.is_dependent and one.verdict == "undecided" for one in statements)
    rest = len(statements) - gated - somewhere - open_ones
    parts = [
        f"{number:,} {one if number == 1 else several}"
        for number, one, several in (
            (gated, "depends only in some contexts", "depend only in some contexts"),
            (somewhere, "depends", "depend"),
            (open_ones, "is undecided", "are undecided"),
            (rest, "shows no dependence", "show no dependence"),
        )
        if number
    ]
    return f"Of {count(len(statements), 'pair')} of columns, {listed(parts)}."


def _is_borne_out(one: Statement) -> bool:
    answers = one.linked and one.linked.answer, one.unlinked and one.unlinked.answer
    return answers == ("dependent", "independent")


def _about(data: Dataset, source: Source, settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    about = [
        ("Table", f"{count(data.n_rows, 'row')}, {count(data.n_variables, 'column')}, "
                  f"{count(data.n_distinct, 'different row')}"),
    ]  # fmt: skip
    if data.constant_names:
        about.append(("Columns that never vary", shorten(data.constant_names)))
    if source.learner:
        about.append(("Learner", source.learner))
    if source.settings:
        about.append(("Its settings", _settings(source.settings)))
    if source.n_tests is not None:
        distinct = source.n_distinct_tests
        counted = "" if distinct is None else f", {distinct:,} of them different"
        about.append(("Questions asked of the table", f"{source.n_tests:,}{counted}"))
    about.append(("Settings of the statements", _settings(settings)))
    return about


def _settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value(setting)[:MOST_LETTERS]}" for name, setting in settings.items())


def _notes(notes: tuple[str, ...] | None) -> list[str]:
    if notes is None:
        return ["What reading did to the table, missing values included, is not kept in a model file."]
    if any("missing" in note for note in notes):
        return list(notes)
    return [*notes, "No value was missing, or rows with missing values would have been refused."]


def _left_out(statements: Statements, n_kept: int) -> list[str]:
    n_left = len(statements) - n_kept
    if not n_left:
        return []
    return [
        f"The page lists the {n_kept:,} most telling of {len(statements):,} statements; the other "
        f"{n_left:,} are in est.statements_."
    ]
