"""From statements and a table to what the page holds: the only place that knows both sides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.data.domain import shorten
from unless.data.drawing import SURVEY
from unless.data.showing import visible
from unless.inference.model import LogLinearModel
from unless.knowledge.sentences import regions_text
from unless.knowledge.slices import Shares, shares_of, told_column
from unless.knowledge.statements import Statement, Statements
from unless.referee.verdicts import Kind
from unless.report import layout
from unless.report.contexts import hold, without_rows
from unless.report.disclosure import Disclosure
from unless.report.page import Bars, Chart, Link, Page, Variable, WhatIf
from unless.report.whatif import LEFT_OUT, what_if
from unless.report.words import count, listed, value
from unless.structures.labelled import Region

# Beyond these a page is no longer read; it says what it left out.
MOST_STATEMENTS = 2_000
MOST_CELLS = 60_000
# More levels of a variable than this are too many bars.
MOST_BARS = 8

# A setting may be a list of all columns.
MOST_LETTERS = 300

# The kinds in the order of the page: findings, then what is no finding.
FOUND: tuple[Kind, ...] = ("gated", "linked", "differs", "partly", "determined")
OTHERS: tuple[Kind, ...] = ("associated", "open", "unlinked")

TITLE = "What depends on what, and when"


@dataclass(frozen=True, kw_only=True)
class Source:
    """How the structure was learned, as far as it is known."""

    learner: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    n_tests: int | None = None
    # A number as text, or "at most" and a number.
    n_distinct_tests: str | None = None
    # What reading did to the table; None where that is not known.
    notes: tuple[str, ...] | None = None


def build(
    data: Dataset,
    statements: Statements,
    *,
    network: LogLinearModel | None = None,
    source: Source | None = None,
    title: str = TITLE,
    told: Disclosure | None = None,
) -> Page:
    """Gather all that one page shows of a table; no test is run, and nothing is counted but rows.

    `told` says what the page may tell of single rows and of small counts; by default all.
    """
    source, told = source or Source(), told or Disclosure()
    told.check(data)
    # Findings stand first, and every one of them is kept.
    kept = statements[: max(MOST_STATEMENTS, len(statements.findings))]
    links = _links(kept, data)
    charts, too_many = _charts(kept, data, told) if told.keeps_charts else ([[] for _ in kept], [])
    gates = sorted({switch for link in links for switch in link.switches})
    contexts = hold(data) if told.keeps_rows else without_rows(data)
    return Page(
        title=title,
        n_rows=told.shown(data.n_rows) or 0,
        n_columns=data.n_variables,
        about=_about(data, source, statements, told),
        notes=[told.text(note) for note in _notes(source.notes)],
        headline=headline(statements),
        counts=statements.counts(),
        variables=_variables(data, links),
        links=links,
        contexts=contexts,
        statement_note=statements.note,
        settings=dict(statements.settings),
        statements=[told.statement(one, data) | _aimed(statements, one, told) for one in kept],
        where=[_where(one, data) for one in kept],
        charts=charts,
        what_if=what_if(network, data.domain, gates) if told.keeps_rows else WhatIf("none", LEFT_OUT),
        left_out=[
            *([contexts.note] if contexts.note else []),
            *_left_out(statements, len(kept)),
            *too_many,
        ],
        reveals=told.says(contexts.n),
        min_cell=told.min_cell,
        survey=_survey(data, source, statements, told),
    )


def _aimed(statements: Statements, one: Statement, told: Disclosure) -> dict[str, Any]:
    """Return the direction and strength of what is said of a target; directions tell percentages."""
    aimed = statements.aimed(one)
    return {**aimed, "direction": None} if aimed and told.min_cell else aimed


def _links(statements: Sequence[Statement], data: Dataset) -> list[Link]:
    """Make a line of each finding, with the columns that switch it."""
    index = data.domain.index
    return [
        Link(
            index(one.pair[0]), index(one.pair[1]), place,
            [index(name) for name in one.gate.names] if one.gate else [],
        )
        for place, one in enumerate(statements)
        if one.is_finding
    ]  # fmt: skip


def _variables(data: Dataset, links: Sequence[Link]) -> list[Variable]:
    widths = [layout.box_width(visible(variable.name)) for variable in data.domain]
    places = layout.positions(len(widths), [(link.a, link.b) for link in links], widths)
    n_gated = np.bincount(
        [switch for link in links for switch in link.switches], minlength=len(widths)
    ).tolist()
    return [
        Variable(variable.name, list(variable.levels), x, y, width, n)
        for variable, (x, y), width, n in zip(data.domain, places.tolist(), widths, n_gated, strict=True)
    ]


def _charts(
    statements: Sequence[Statement], data: Dataset, told: Disclosure
) -> tuple[list[list[Chart]], list[str]]:
    """Make the pictures of the statements that keep their tables, as many as a page bears."""
    charts: list[list[Chart]] = []
    n_cells = n_without = 0
    for one in statements:
        if n_cells > MOST_CELLS:
            n_without += any(side.tables.size for side in one.evidence)
            charts.append([])
            continue
        charts.append(_chart(one, data, told))
        n_cells += sum(
            len(bars.a) * len(bars.b) for chart in charts[-1] for bars in (chart.whole, *chart.strata)
        )
    if not n_without:
        return charts, []
    return charts, [f"The pictures of {count(n_without, 'statement')} further down the list are left out."]


def _chart(statement: Statement, data: Dataset, told: Disclosure) -> list[Chart]:
    column = told_column(statement)
    charts = []
    for side in shares_of(statement):
        tables = statement.evidence[side.side].tables
        cells = (tables.transpose(0, 2, 1) if column else tables).sum(axis=0)
        # A stratum of so few rows that their number may not be told has no picture.
        strata = [part for part in side.strata if told.shown(part.n_rows) is not None]
        charts.append(
            Chart(
                side=side.side,
                column=column,
                whole=_bars(side.whole, data, told, cells),
                strata=[_bars(part, data, told, cells) for part in strata],
                n_left_out=side.n_left_out + len(side.strata) - len(strata),
            )
        )
    return charts


def _bars(part: Shares, data: Dataset, told: Disclosure, cells: npt.NDArray[np.int64]) -> Bars:
    """Make one picture; `cells` are the counts behind shares that come without."""
    of_levels = (np.nan_to_num(part.shares) * part.rows).sum(axis=1)
    a, b = _frequent(of_levels.tolist()), _frequent(part.rows.tolist())
    shown = np.ix_(a, b)
    where = Region.of(data.domain, {name: [label] for name, label in part.stratum})
    bars = Bars(
        where=regions_text((where,), data.domain) if where.conditions else "",
        given=list(part.given),
        n_rows=part.n_rows,
        a=a,
        b=b,
        shares=np.round(part.shares[shown], 6).tolist(),
        counts=None if part.counts is None else part.counts[shown].tolist(),
        rows=part.rows[b].tolist(),
        low=np.round(part.low[shown], 6).tolist(),
        high=np.round(part.high[shown], 6).tolist(),
    )
    return told.bars(bars, (cells if part.counts is None else part.counts)[shown])


def _frequent(totals: list[float]) -> list[int]:
    """Return the levels that occur, in their order; of too many the most frequent."""
    seen = [code for code, total in enumerate(totals) if total]
    return sorted(sorted(seen, key=lambda code: (-totals[code], code))[:MOST_BARS])


def _where(statement: Statement, data: Dataset) -> tuple[str, str]:
    if statement.gate is None:
        return "", ""
    return regions_text(statement.gate.linked, data.domain), regions_text(
        statement.gate.unlinked, data.domain
    )


def headline(statements: Statements) -> str:
    """Say how many findings there are, of which kinds, and what is said of the other pairs."""
    if not len(statements):
        return statements.note or "There is nothing to say."
    counts = statements.counts()
    found = [f"{counts[kind]:,} {kind}" for kind in FOUND if counts[kind]]
    others = [f"{counts[kind]:,} {kind}" for kind in OTHERS if counts[kind]]
    n_found = len(statements.findings)
    first = f"{count(n_found, 'finding')}: {listed(found)}." if n_found else "No findings."
    if not others:
        return first
    return f"{first} {'Other pairs' if n_found else 'Pairs'}: {listed(others)}."


def _survey(data: Dataset, source: Source, statements: Statements, told: Disclosure) -> str:
    """Say which rows the page counts, if the table is a survey; a model file keeps rows drawn alike."""
    if not any(note.startswith(SURVEY) for note in source.notes or ()):
        return ""
    n_rows = told.shown(statements[0].n_rows if statements else data.n_rows) or 0
    kept = told.shown(data.n_rows) or 0
    first = f"{count(n_rows, 'row')} of a survey and {count(data.n_variables, 'column')} were looked at"
    if kept == n_rows and not any(note.startswith(SURVEY[0]) for note in source.notes or ()):
        return f"{first}."
    if kept == n_rows:
        return f"{first}; numbers of rows are those of the table, and percentages are weighted."
    alike = f"{kept:,} rows drawn alike, which tell as much"
    return f"{first}; numbers of rows under a chosen context are of {alike}."


def _about(data: Dataset, source: Source, statements: Statements, told: Disclosure) -> list[tuple[str, str]]:
    size = f"{count(told.shown(data.n_rows) or 0, 'row')}, {count(data.n_variables, 'column')}"
    if statements and _survey(data, source, statements, told):
        n_rows, kept = told.shown(statements[0].n_rows) or 0, told.shown(data.n_rows) or 0
        alike = "" if kept == n_rows else f" (kept as {kept:,} drawn alike)"
        size = f"{count(n_rows, 'row')} of a survey{alike}, {count(data.n_variables, 'column')}"
    about = [("Table", size if told.min_cell else f"{size}, {count(data.n_distinct, 'different row')}")]
    if data.constant_names:
        about.append(("Columns that never vary", shorten(data.constant_names, data.n_variables)))
    if source.learner:
        about.append(("Learner", source.learner))
    if source.settings:
        about.append(("Its settings", _settings(source.settings)))
    if source.n_tests is not None:
        distinct = source.n_distinct_tests
        counted = "" if distinct is None else f", {distinct} of them different"
        about.append(("Questions asked of the table", f"{source.n_tests:,}{counted}"))
    about.append(("Settings of the statements", _settings(statements.settings)))
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
        f"The page lists the first {n_kept:,} of {len(statements):,} statements; the other "
        f"{n_left:,} are in est.statements_."
    ]
