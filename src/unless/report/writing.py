"""A report to a file: gather the values of the page, render them, write.

All that must be counted, laid out or asked of a network is computed by `gather` into a `Page` of plain
values; what makes the file of them (`unless.report.html`) computes nothing. No test is run here: the
statements bring theirs.

The pictures of a statement's evidence are shares with their limits, from tables that were counted before. A
side of a statement has one picture of all its rows and one for each stratum. In the first, the columns given
are mixed alike at each level of the other column; in the others shares are plain.
"""

import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.data.domain import Domain, Region, shorten
from unless.data.showing import count, visible
from unless.data.survey import SURVEY
from unless.errors import ImpossibleEvidence, SettingError
from unless.inference.tables import read_rows
from unless.knowledge.evidence import PairEvidence, smaller_axis, standardised_shares
from unless.knowledge.explaining import explain
from unless.knowledge.sentences import joined, regions_text
from unless.knowledge.statements import FINDINGS, Statement, Statements
from unless.report import layout
from unless.report.disclosure import Disclosure
from unless.report.html import KINDS, render
from unless.report.page import Bars, Box, Chart, Contexts, Given, Line, Page, WhatIf
from unless.runtime.files import replacing
from unless.structures.structure import as_structure, features_of
from unless.typing import Floats, Integers

if TYPE_CHECKING:
    from unless.inference.model import LogLinearModel


# More are not read on one page; it says how many are left out.
MOST_STATEMENTS = 2_000
# Bytes of contexts a page may hold, before they are written as text.
MOST_BYTES = 3_600_000
# More strata than this are not shown one by one: those with the most rows are.
MOST_STRATA = 8
# More levels of a variable than this are too many bars.
MOST_BARS = 8
# More cells than this are too many for one page.
MOST_CELLS = 60_000
# A setting may be a list of all columns.
MOST_LETTERS = 300

TITLE = "What depends on what, and when"

# The joint table of so many states goes into the page, 8 bytes each.
MOST_STATES = 2**15
# Of a larger model, so many single levels are asked about.
MOST_LEVELS = 250

NO_NETWORK = (
    "There are no probabilities on this page: they are worked out where they are asked for. "
    "Write it with est.report(path, network=True), or with unless report --what-if."
)

LEFT_OUT = "There are no probabilities on this page: small counts could be computed from them."


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """How the structure was learned, as far as it is known."""

    learner: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    n_tests: int | None = None
    # A number as text, or "at most" and a number.
    n_distinct_tests: str | None = None
    # What reading did to the table; None where that is not known.
    notes: tuple[str, ...] | None = None


def write_report(  # noqa: PLR0913 (each says one thing about the page; they are independent)
    structure: Any,
    data: object,
    path: str | os.PathLike[str],
    *,
    statements: Statements | None = None,
    network: "LogLinearModel | bool | None" = None,
    source: Provenance | None = None,
    target: str | None = None,
    title: str | None = None,
    rows: bool = True,
    min_cell: int | None = None,
) -> None:
    """Write what a structure and a table say as one HTML file that needs no network.

    The page holds the distinct rows of the table with their counts: a new file may be read by its owner
    alone, one that replaces another keeps who may read it.

    Parameters
    ----------
    structure, data
        A structure or a LogLinearModel, and the table it is explained by.
    statements
        What is said, if it is not to be made here by `unless.explain`.
    network
        A model with weights, for the part of the page that gives probabilities, or True to fit one here; a
        structure that is one serves as well. Without it, and with False, the page says how to have them.
    source
        How the structure was learned; without it only what reading did to the table is known.
    target
        Keep to what matters for this column, most first.
    rows
        False keeps the rows of the table out of the file, and all that could be them: tables of counts, and
        the probabilities of a network.
    min_cell
        Counts below this are not in the file, and others are rounded to multiples of it; no rows are kept.
        docs/limits.md states the rule.
    """
    if title is not None and not isinstance(title, str):
        raise SettingError(f"title={title!r} is no text; give a string.")
    disclosure = Disclosure.of(rows, min_cell)
    if network and not disclosure.keeps_rows:
        raise SettingError(
            "Small counts could be computed from the probabilities of network=; leave it out where min_cell= "
            "or rows=False is given."
        )
    domain = as_structure(structure).domain
    table = data if isinstance(data, Dataset) and data.domain == domain else read_rows(domain, data)
    if structure.kind == "model":
        network = structure if network is None or network is True else network
    elif network is True:
        from unless.weights.fit import fit_weights

        network = fit_weights(features_of(structure), table)
    source = source or Provenance(notes=table.notes)
    said = explain(structure, table) if statements is None else statements
    if target is not None:
        said = said.about_column(target)
    if title is None:
        title = TITLE if said.target is None else f"What matters for {said.target}"
    try:
        page = gather(table, said, network=network or None, source=source, title=title, disclosure=disclosure)
        text = render(page).encode()
    except UnicodeEncodeError:
        raise SettingError("A name or label is not valid Unicode text; rename it before reporting.") from None
    with replacing(path, private=True) as stream:
        stream.write(text)


def gather(
    data: Dataset,
    statements: Statements,
    *,
    network: "LogLinearModel | None" = None,
    source: Provenance | None = None,
    title: str = TITLE,
    disclosure: Disclosure | None = None,
) -> Page:
    """Compute all that one page shows of a table; `disclosure` says what it may show of few rows."""
    source, disclosure = source or Provenance(), disclosure or Disclosure()
    disclosure.check(data)
    # Findings stand first, and every one of them is listed.
    listed = statements[: max(MOST_STATEMENTS, len(statements.findings))]
    lines = _lines(listed, data.domain)
    charts, too_many = charts_of_all(listed, data.domain, disclosure)
    if disclosure.keeps_rows:
        gates = sorted({switch for line in lines for switch in line.switches})
        contexts, probabilities = pack_rows(data), what_if(network, data.domain, gates)
    else:
        n = data.n_variables
        contexts, probabilities = Contexts(0, [""] * n, [1] * n, []), WhatIf("none", LEFT_OUT)
    return Page(
        title=title,
        n_rows=disclosure.shown(data.n_rows) or 0,
        n_columns=data.n_variables,
        about=_about(data, source, statements, disclosure),
        notes=[disclosure.text(note) for note in _notes(source.notes)],
        headline=headline(statements),
        counts=statements.counts(),
        variables=_boxes(data, lines),
        links=lines,
        contexts=contexts,
        statement_note=statements.note,
        settings=dict(statements.settings),
        statements=[disclosure.statement(one, data) | _aimed(statements, one, disclosure) for one in listed],
        where=[_where(one, data) for one in listed],
        charts=charts,
        what_if=probabilities,
        left_out=[
            *([contexts.note] if contexts.note else []),
            *_left_out(statements, len(listed)),
            *too_many,
        ],
        reveals=disclosure.summary(contexts.n),
        min_cell=disclosure.min_cell,
        survey=_survey(data, source, statements, disclosure),
    )


def _aimed(statements: Statements, one: Statement, disclosure: Disclosure) -> dict[str, Any]:
    """Return the direction and strength of what is said of a target; directions show percentages."""
    aimed = statements.aimed(one)
    return {**aimed, "direction": None} if aimed and disclosure.min_cell else aimed


def _lines(statements: Sequence[Statement], domain: Domain) -> list[Line]:
    """Make a line of each finding, with the columns that switch it."""
    lines = []
    for number, one in enumerate(statements):
        if one.is_finding:
            a, b = map(domain.index, one.pair)
            lines.append(Line(a, b, number, list(map(domain.index, one.gate.names)) if one.gate else []))
    return lines


def _boxes(data: Dataset, lines: Sequence[Line]) -> list[Box]:
    widths = [layout.box_width(visible(variable.name)) for variable in data.domain]
    middles = layout.positions(len(widths), [(line.a, line.b) for line in lines], widths)
    switches = [switch for line in lines for switch in line.switches]
    n_gated = np.bincount(switches, minlength=len(widths)).tolist()
    return [
        Box(variable.name, list(variable.levels), x, y, width, n)
        for variable, (x, y), width, n in zip(data.domain, middles.tolist(), widths, n_gated, strict=True)
    ]


def _where(statement: Statement, data: Dataset) -> tuple[str, str]:
    gate = statement.gate
    if gate is None:
        return "", ""
    return regions_text(gate.linked, data.domain), regions_text(gate.unlinked, data.domain)


def headline(statements: Statements) -> str:
    """Say how many findings there are, of which kinds, and what is said of the other pairs."""
    if not len(statements):
        return statements.note or "There is nothing to say."
    counts = statements.counts()
    found, others = (
        [f"{n:,} {kind}" for kind in KINDS if (n := counts[kind]) and (kind in FINDINGS) is is_finding]
        for is_finding in (True, False)
    )
    n_found = len(statements.findings)
    first = f"{count(n_found, 'finding')}: {joined(found)}." if n_found else "No findings."
    if not others:
        return first
    return f"{first} {'Other pairs' if n_found else 'Pairs'}: {joined(others)}."


def _survey(data: Dataset, source: Provenance, statements: Statements, disclosure: Disclosure) -> str:
    """Say which rows the page counts, if the table is a survey; a model file keeps rows drawn alike."""
    if not any(note.startswith(SURVEY) for note in source.notes or ()):
        return ""
    n_rows = disclosure.shown(statements[0].n_rows if statements else data.n_rows) or 0
    n_saved = disclosure.shown(data.n_rows) or 0
    first = f"{count(n_rows, 'row')} of a survey and {count(data.n_variables, 'column')} were looked at"
    if n_saved == n_rows and not any(note.startswith(SURVEY[0]) for note in source.notes or ()):
        return f"{first}."
    if n_saved == n_rows:
        return f"{first}; numbers of rows are those of the table, and percentages are weighted."
    alike = f"{n_saved:,} rows drawn alike, which tell as much"
    return f"{first}; numbers of rows under a chosen context are of {alike}."


def _about(
    data: Dataset, source: Provenance, statements: Statements, disclosure: Disclosure
) -> list[tuple[str, str]]:
    size = f"{count(disclosure.shown(data.n_rows) or 0, 'row')}, {count(data.n_variables, 'column')}"
    if statements and _survey(data, source, statements, disclosure):
        n_rows, n_saved = disclosure.shown(statements[0].n_rows) or 0, disclosure.shown(data.n_rows) or 0
        alike = "" if n_saved == n_rows else f" (kept as {n_saved:,} drawn alike)"
        size = f"{count(n_rows, 'row')} of a survey{alike}, {count(data.n_variables, 'column')}"
    about = [("Table", size if disclosure.min_cell else f"{size}, {count(data.n_distinct, 'different row')}")]
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
    words = {True: "yes", False: "no", None: "none"}
    return ", ".join(
        f"{name} = {words[value] if value is None or isinstance(value, bool) else str(value)[:MOST_LETTERS]}"
        for name, value in settings.items()
    )


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


def pack_rows(data: Dataset, most_bytes: int = MOST_BYTES) -> Contexts:
    """Pack the distinct rows of a table, by which the page counts; of too many the most frequent."""
    widths = [1 if n <= 256 else 2 for n in data.domain.n_levels]
    most = most_bytes // (sum(widths) + 4)
    chosen, note = np.arange(len(data.counts)), ""
    if len(data.counts) > most:
        chosen = np.sort(np.argsort(-data.counts, kind="stable")[:most])
        share = 100 * float(data.counts[chosen].sum()) / float(data.counts.sum())
        note = (
            f"The page holds the {most:,} most frequent of {len(data.counts):,} contexts, {share:.0f} % of "
            "the rows; numbers of rows under a chosen context are of these. The statements are of all rows."
        )
    codes = [
        b64encode(data.rows[chosen, column].astype(f"<u{width}").tobytes()).decode()
        for column, width in enumerate(widths)
    ]
    return Contexts(len(chosen), codes, widths, data.counts[chosen].tolist(), note)


def what_if(network: "LogLinearModel | None", domain: Domain, gates: Sequence[int]) -> WhatIf:
    """Ask a network all that the page may be asked: all states, or single levels of the columns of gates."""
    if network is None:
        return WhatIf("none", NO_NETWORK)
    if getattr(network, "kind", None) != "model":
        raise SettingError(
            f"network={network!r} is no model with weights; give what est.network(data) returns, or True."
        )
    if {one.name: one.levels for one in network.domain} != {one.name: one.levels for one in domain}:
        raise SettingError(
            "The network has other variables or levels than the structure; fit it to the same table."
        )
    # As a float, because there may be very many.
    if np.prod(domain.n_levels, dtype=np.float64) <= MOST_STATES:
        joint = network.query(domain.names, method="exact").probabilities
        return WhatIf(
            "joint",
            f"Exact: the page holds the probabilities of all {joint.size:,} combinations and adds them up.",
            joint=b64encode(np.ascontiguousarray(joint, dtype="<f8").tobytes()).decode(),
            before=_flat(network, domain, {}),
        )
    if not network.exact.fits(None):
        return WhatIf("none", "The network is too large for exact probabilities; ask it by sampling.")
    levels = [(column, code) for column in gates for code in range(int(domain.n_levels[column]))]
    how = (
        "Exact, with nothing given: there are too many combinations for this page, and no column decides "
        "about links."
    )
    if levels:
        which = "the columns that decide about links" if len(levels) <= MOST_LEVELS else "the first of them"
        how = f"Exact, worked out beforehand for one level of one column at a time: {which}."
    given = []
    for column, code in levels[:MOST_LEVELS]:
        variable = domain.variables[column]
        with suppress(ImpossibleEvidence):
            marginals = _flat(network, domain, {variable.name: variable.levels[code]})
            given.append(Given(column, code, marginals))
    return WhatIf("gates", how, before=_flat(network, domain, {}), given=given)


def _flat(network: "LogLinearModel", domain: Domain, evidence: dict[str, str]) -> list[float]:
    marginals = network.marginals(evidence, method="exact")
    # The network may have the same columns in another order.
    return [float(p) for name in domain.names for p in marginals[name].probabilities]


def charts_of_all(
    statements: Sequence[Statement], domain: Domain, disclosure: Disclosure
) -> tuple[list[list[Chart]], list[str]]:
    """Make the pictures of statements until a page has enough, and say how many are left out."""
    if not disclosure.keeps_charts:
        return [[] for _ in statements], []
    charts: list[list[Chart]] = []
    n_cells = n_without = 0
    for one in statements:
        if n_cells > MOST_CELLS:
            n_without += any(evidence.tables.size for evidence in one.evidence)
            charts.append([])
            continue
        charts.append(charts_of(one, domain, disclosure))
        n_cells += sum(
            len(bars.a) * len(bars.b) for chart in charts[-1] for bars in (chart.whole, *chart.strata)
        )
    if not n_without:
        return charts, []
    return charts, [f"The pictures of {count(n_without, 'statement')} further down the list are left out."]


def charts_of(statement: Statement, domain: Domain, disclosure: Disclosure) -> list[Chart]:
    """Return a picture of each side whose tables are kept, the linked side first."""
    column = column_in_shares(statement)
    charts = []
    for number, evidence in enumerate(statement.evidence):
        tables = evidence.tables.transpose(0, 2, 1) if column else evidence.tables
        shares = standardised_shares(tables) if tables.size else None
        if shares is None:
            continue
        if len(tables) == 1:
            # One stratum needs no mixing: the columns given have one level each.
            whole = _plain_bars(evidence, 0, tables[0], domain, disclosure)
            charts.append(Chart(number, column, whole, [], 0))
            continue
        useful = np.flatnonzero((tables.sum(axis=1) > 0).sum(axis=1) >= 2)
        sizes = tables.sum(axis=(1, 2)).tolist()
        largest = sorted(sorted(useful.tolist(), key=lambda one: (-sizes[one], one))[:MOST_STRATA])
        # A stratum of so few rows that their number may not be shown has no picture.
        strata = [
            _plain_bars(evidence, one, tables[one], domain, disclosure)
            for one in largest
            if disclosure.shown(sizes[one]) is not None
        ]
        whole = _mixed_bars(evidence, tables, useful, shares, disclosure)
        charts.append(Chart(number, column, whole, strata, len(tables) - len(strata)))
    return charts


def column_in_shares(statement: Statement) -> int:
    """Return which column of the pair, 0 or 1, has its shares shown: that of the sentence, or the smaller."""
    for side in statement.evidence:
        if side.contrast is not None:
            return statement.pair.index(side.contrast.column)
    return next((smaller_axis(side.tables) for side in statement.evidence if side.tables.size), 0)


def _plain_bars(
    evidence: PairEvidence, stratum: int, table: Integers, domain: Domain, disclosure: Disclosure
) -> Bars:
    """Make the picture of one stratum."""
    rows = table.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = table / rows[None, :]
    levels = zip(evidence.table_given, evidence.strata[stratum], strict=True)
    where = Region.of(domain, {name: [label] for name, label in levels})
    words = regions_text((where,), domain) if where.conditions else ""
    bars, shown = _bars(shares, rows, wilson(table, rows[None, :]), where=words, n_rows=int(table.sum()))
    counts = table[shown]
    return without_small(msgspec.structs.replace(bars, counts=counts.tolist()), counts, disclosure)


def _mixed_bars(
    evidence: PairEvidence, tables: Integers, useful: Integers, shares: Floats, disclosure: Disclosure
) -> Bars:
    """Make the picture of several strata, mixed alike; limits as of the plain shares of the same variance."""
    by_other = tables[useful].sum(axis=1)
    weights = by_other.sum(axis=1, keepdims=True).astype(np.float64)
    there = np.where(by_other > 0, weights, 0.0)
    spread = np.where(by_other > 0, weights**2 / np.maximum(by_other, 1), 0.0).sum(axis=0)
    rows = by_other.sum(axis=0)
    # The rows that would give plain shares the variance of the mix.
    worth = np.where(rows > 0, there.sum(axis=0) ** 2 / np.where(spread > 0, spread, 1.0), 0.0)
    limits = wilson(np.where(rows > 0, shares, 0.0) * worth, np.broadcast_to(worth, shares.shape))
    bars, shown = _bars(shares, rows, limits, given=evidence.table_given, n_rows=int(by_other.sum()))
    return without_small(bars, tables.sum(axis=0)[shown], disclosure)


def _bars(
    shares: Floats,
    rows: Integers,
    limits: tuple[Floats, Floats],
    *,
    where: str = "",
    given: Sequence[str] = (),
    n_rows: int,
) -> tuple[Bars, tuple[npt.NDArray[np.intp], ...]]:
    """Make one picture of the levels that are frequent enough; return it with their positions."""
    a = _frequent((np.nan_to_num(shares) * rows).sum(axis=1).tolist())
    b = _frequent(rows.tolist())
    shown = np.ix_(a, b)
    low, high = (np.round(limit[shown], 6).tolist() for limit in limits)
    rounded = np.round(shares[shown], 6).tolist()
    return Bars(where, list(given), n_rows, a, b, rounded, None, rows[b].tolist(), low, high), shown


def _frequent(totals: list[float]) -> list[int]:
    """Return the levels that occur, in their order; of too many the most frequent."""
    seen = [code for code, total in enumerate(totals) if total]
    return sorted(sorted(seen, key=lambda code: (-totals[code], code))[:MOST_BARS])


def without_small(bars: Bars, cells: Integers, disclosure: Disclosure) -> Bars:
    """Return a picture without small counts; `cells` are the counts behind each of its shares."""
    if not disclosure.min_cell:
        return bars
    rounded = np.array([[disclosure.shown(cell) or 0 for cell in row] for row in cells.tolist()])
    rows = [disclosure.shown(total) for total in bars.rows if total is not None]
    totals = np.array([total or 0 for total in rows])
    is_shown = (rounded > 0) & (totals > 0)
    if bars.counts is None:
        # Standardised shares are not quotients of counts; the others of a column follow from one.
        is_shown = np.broadcast_to(is_shown.all(axis=0), rounded.shape)
        values = [np.array(one, dtype=float) for one in (bars.shares, bars.low, bars.high)]
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            values = [np.minimum(rounded / totals, 1.0), *wilson(np.minimum(rounded, totals), totals)]
    shares, low, high = (
        [
            [round(float(value), 2) if shown else None for value, shown in zip(*line, strict=True)]
            for line in zip(table, is_shown, strict=True)
        ]
        for table in values
    )
    counts = None if bars.counts is None else [[cell or None for cell in row] for row in rounded.tolist()]
    n_rows = disclosure.shown(bars.n_rows or 0)
    return msgspec.structs.replace(
        bars, n_rows=n_rows, shares=shares, counts=counts, rows=rows, low=low, high=high
    )


def wilson(counts: Integers | Floats, totals: Integers | Floats) -> tuple[Floats, Floats]:
    """Return the 95 % limits of shares after Wilson; 0 to 1 where nothing was counted.

    >>> low, high = wilson(np.array([0, 5]), np.array([10, 10]))
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.237], [0.278, 0.763])
    """
    z = NormalDist().inv_cdf(0.975)
    n = np.where(totals > 0, totals, 1).astype(np.float64)
    share = counts / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(np.maximum(share * (1 - share), 0.0) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    low = np.where(totals > 0, np.clip(centre - half, 0, 1), 0.0)
    high = np.where(totals > 0, np.clip(centre + half, 0, 1), 1.0)
    return np.where(counts > 0, low, 0.0), np.where(counts < totals, high, 1.0)
