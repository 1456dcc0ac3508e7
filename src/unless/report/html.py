"""From the values of a page to one HTML file: styles, scripts and data inside, and a policy against all else.

Each part of the page is a string made of the page's values; what they hold of the table is escaped.
"""

import re
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

import msgspec

from unless.data.showing import count, visible
from unless.knowledge.sentences import decimal, sure
from unless.knowledge.statements import FINDINGS
from unless.report.page import Page

# So many findings are shown at once, the others folded away.
FIRST_FINDINGS = 10
# A graph of more columns takes the room of the lists beside it.
LARGE = 12

# What each kind claims, for the legend and the glossary; findings first, in the order of the lists.
KINDS = {
    "gated": "linked where its gate says, absent elsewhere",
    "linked": "linked given all other columns",
    "differs": "linked on both sides of its gate, not equally",
    "partly": "linked where its gate says, elsewhere not settled",
    "determined": "one column is a copy or a function of the other",
    "associated": "they go together, but through other columns or for want of a test given them: no finding",
    "open": "not enough data",
    "unlinked": "absent, up to the bound on V",
}
# The mark in the middle of a line, as the script draws it.
MARKS = {
    "gated": '<path class="mark" d="M18 2l6 6-6 6-6-6z"/>',
    "differs": '<circle class="mark" cx="18" cy="8" r="5"/>',
    "partly": '<path class="mark hollow" d="M18 2l6 6-6 6-6-6z"/>',
    "determined": '<path class="mark" d="M13 3h10v10h-10z"/>',
}
# With more gated links than this the script draws only the arrows of the one chosen.
MOST_ARROWS = 14
# So many columns that a finding is given are named in its block; its evidence names all.
MOST_GIVEN = 8
# What could end a script element, or turn or hide what an editor shows of the file. Outside of strings JSON
# has none of these, and inside it knows their escapes.
_UNSAFE = re.compile("[<>&\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def render(page: Page) -> str:
    """Write the whole page; the same page gives the same bytes."""
    library, own, style = asset("cytoscape.min.js"), script(), asset("page.css")
    policy = (
        f"default-src 'none'; script-src {_digest(library)} {_digest(own)}; style-src {_digest(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    body = "\n".join(part(page) for part in (findings, explorer, what_if, table))
    # cytoscape looks for a style element of this name before it makes its own, which the policy forbids.
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{shown(page.title)}</title>
<style id="__________cytoscape_stylesheet">{style}</style>
</head>
<body>
<a class="skip" href="#found">To the findings</a>
{head(page)}
<main>
<noscript><p class="notice">The graph, the what-if and the tables of evidence need scripts; the sentences do not.</p></noscript>
{body}
</main>
{foot(page)}
<script type="application/json" id="page-data">{to_json(page).decode()}</script>
<script>{library}</script>
<script>{own}</script>
</body>
</html>
"""  # noqa: E501


def head(page: Page) -> str:
    """Say what was analysed, how, and in one sentence what came out."""
    about = "".join(f"<dt>{shown(term)}</dt><dd>{shown(text)}</dd>" for term, text in page.about)
    notes = "".join(f"<li>{shown(note)}</li>" for note in page.notes)
    columns = count(page.n_columns, "column")
    looked_at = page.survey or f"{count(page.n_rows, 'row')} and {columns} were looked at."
    return f"""<header>
<div class="row spread"><p class="brand">Unless</p>
<div class="row"><button type="button" id="theme">Dark colours</button>
<button type="button" id="print">Print</button></div></div>
<h1>{shown(page.title)}</h1>
<p class="lead">{shown(page.headline)}</p>
<p>{looked_at} \
A <em>link</em> joins two columns where one tells something about the other that no other column tells; \
a <em>gate</em> says at which levels of other columns a link holds.</p>
<details class="about"><summary>How this was made</summary><dl class="facts">{about}</dl>
<h2 class="small-title">Reading the table</h2><ul>{notes}</ul></details>
</header>"""


def findings(page: Page) -> str:
    """List what was found as sentences, then what is determined, then what is no finding."""
    said = list(enumerate(page.statements))
    found = [one for one in said if one[1]["is_finding"]]
    links = [one for one in found if one[1]["kind"] != "determined"]
    determined = [one for one in found if one[1]["kind"] == "determined"]
    associated = [one for one in said if one[1]["kind"] == "associated"]
    none = "" if found else f"<p>{shown(page.statement_note or 'There are no findings.')}</p>"
    note = f"<p>{shown(page.statement_note)}</p>" if found and page.statement_note else ""
    return (
        '<section id="found" aria-labelledby="found-title">'
        f'<h2 id="found-title">What was found{_number(len(found))}</h2>\n'
        f"{_listed(links, 'finding')}{none}"
        f"{_determined(determined)}"
        f"{_associated(associated, page.counts['associated'])}{_others(page)}{note}</section>"
    )


def _number(number: int) -> str:
    return f" ({number:,})" if number else ""


def _listed(statements: list[tuple[int, dict[str, Any]]], noun: str) -> str:
    """List statements; those after the first few are folded."""
    first = "".join(_finding(number, one) for number, one in statements[:FIRST_FINDINGS])
    rest = "".join(_finding(number, one) for number, one in statements[FIRST_FINDINGS:])
    folded = (
        f'<details class="more"><summary>{count(len(statements) - FIRST_FINDINGS, f"more {noun}")}</summary>'
        f'<ol start="{FIRST_FINDINGS + 1}">{rest}</ol></details>'
        if rest
        else ""
    )
    return (f"<ol>{first}</ol>" if first else "") + folded


def _determined(statements: list[tuple[int, dict[str, Any]]]) -> str:
    if not statements:
        return ""
    return (
        '<section id="determined" aria-labelledby="determined-title">'
        f'<h3 id="determined-title">Determined columns{_number(len(statements))}</h3>'
        f"{_listed(statements, 'column')}</section>"
    )


def _associated(statements: list[tuple[int, dict[str, Any]]], n_all: int) -> str:
    if not statements:
        return ""
    listed = "".join(_finding(number, one) for number, one in statements)
    left = len(statements) < n_all
    title = f"{count(n_all, 'pair')} associated, no finding{f' ({len(statements):,} listed)' if left else ''}"
    return f'<details id="associated" class="more"><summary>{title}</summary><ol>{listed}</ol></details>'


def _others(page: Page) -> str:
    """Count the pairs of which nothing is claimed; they are in the table."""
    words = {"open": "open for want of data", "unlinked": "unlinked"}
    parts = [
        f'<button type="button" class="plain" data-filter="{kind}">'
        f"{count(page.counts[kind], 'pair')} {text}</button>"
        for kind, text in words.items()
        if page.counts[kind]
    ]
    return f'<p id="others">In the table below: {" ".join(parts)}</p>' if parts else ""


def _finding(number: int, statement: dict[str, Any]) -> str:
    kind = statement["kind"]
    show = ""
    if statement["is_finding"]:
        show = f'<button type="button" data-show="{number}">Show in the graph</button>'
    return (
        f'<li class="finding {kind}"><details data-statement="{number}"><summary>'
        f'<span class="kind {kind}">{kind}</span> {_direction(statement)}'
        f"<bdi>{shown(statement['sentence'])}.</bdi>"
        f"{_given(statement)}</summary>"
        f'<div class="finding-body"></div>{show}</details></li>'
    )


def _direction(statement: dict[str, Any]) -> str:
    """Say, on a page about one column, which of its levels goes up with what."""
    direction = statement.get("direction")
    return f'<bdi class="direction">{shown(direction)}.</bdi> ' if direction else ""


def _given(statement: dict[str, Any]) -> str:
    """Name what the evidence holds fixed; of "determined" there is nothing of the kind."""
    if statement["kind"] == "determined":
        return ""
    given = statement["given"]
    if not given:
        beside = "column beside its gate" if statement["gate"] else "other column"
        return f' <span class="given">Given no {beside}.</span>'
    more = f" and {len(given) - MOST_GIVEN:,} more" if len(given) > MOST_GIVEN else ""
    return f' <span class="given">Given {", ".join(map(name, given[:MOST_GIVEN]))}{more}.</span>'


def explorer(page: Page) -> str:
    """Make room for the graph, its chips, the lists and the link view, which the script fills."""
    if not page.links:
        return (
            '<section aria-labelledby="when-title"><h2 id="when-title">When it holds</h2>'
            "<p>There are no findings, so there is no graph to show.</p></section>"
        )
    size = "large" if page.n_columns > LARGE else "compact"
    note = f'<p class="notice">{shown(page.contexts.note)}</p>' if page.contexts.note else ""
    return asset("explorer.html").format(size=size, note=note, kinds=_legend(page))


def _legend(page: Page) -> str:
    """Explain the line of each kind of finding there is, with their number."""
    items = [
        f'<li><svg class="key {kind}" aria-hidden="true"><line x1="2" y1="8" x2="34" y2="8"/>'
        f"{MARKS.get(kind, '')}</svg> {kind} ({page.counts[kind]:,}): {words}</li>"
        for kind, words in KINDS.items()
        if kind in FINDINGS and page.counts[kind]
    ]
    gated = sum(bool(link.switches) for link in page.links)
    if gated:
        when = " when its link is chosen" if gated > MOST_ARROWS else ""
        items.append(f"<li>A dotted arrow comes from each column of a gate{when}.</li>")
    return "\n".join(items)


def what_if(page: Page) -> str:
    """Make room for the probabilities under the chosen context, and say how they are found."""
    return f"""<section id="what-if" aria-labelledby="what-if-title"><h2 id="what-if-title">What if</h2>
<p>{shown(page.what_if.how)}</p><p id="what-if-context" aria-live="polite"></p>
<div id="what-if-answer" class="cards"></div></section>"""


def table(page: Page) -> str:
    """Write all statements as a table to sort, to search and to take away."""
    heads = "".join(
        f'<th scope="col"><button type="button">{title}</button></th>'
        for title in ("Pair", "Statement", "Kind", "In the context", "Rows", "V", "Confidence")
    )
    rows = "\n".join(_row(number, one) for number, one in enumerate(page.statements))
    options = "".join(
        f'<option value="{kind}">{kind} ({page.counts[kind]:,})</option>'
        for kind in KINDS
        if page.counts[kind]
    )
    return f"""<section id="all" aria-labelledby="all-title"><h2 id="all-title">All statements</h2>
<div class="row tools"><label>Search <input type="search" id="table-search"></label>
<label>Show <select id="table-kind"><option value="">all</option>{options}</select></label>
<button type="button" id="copy">Copy sentences</button><button type="button" id="save-csv">CSV</button>
<button type="button" id="save-json">JSON</button><span id="table-count" role="status"></span></div>
<p class="small" id="table-context"></p>
<div class="table-frame" role="region" aria-labelledby="all-title" tabindex="0"><table id="statements">
<thead><tr>{heads}</tr></thead>
<tbody>
{rows}
</tbody></table></div></section>"""


def _row(number: int, statement: dict[str, Any]) -> str:
    side = statement["evidence"][0] if statement["evidence"] else {}
    numbers = "".join(
        _number_cell(value, write)
        for value, write in (
            (side.get("n_rows", statement["n_rows"]), lambda rows: f"{rows:,}"),
            (side.get("cramers_v"), decimal),
            (statement["confidence"], lambda value: sure(value).removeprefix("confidence ")),
        )
    )
    a, b = statement["pair"]
    return (
        f'<tr data-statement="{number}" data-kind="{statement["kind"]}">'
        f'<th scope="row">{name(a)} – {name(b)}</th>'
        f"<td><bdi>{shown(statement['sentence'])}.</bdi> "
        f'<button type="button" class="plain" data-statement="{number}" aria-expanded="false">Evidence'
        f'<span class="visually-hidden"> for {shown(a)} and {shown(b)}</span></button></td>'
        f'<td>{statement["kind"]}</td><td class="state"></td>{numbers}</tr>'
    )


def _number_cell(value: float | None, write: Callable[[Any], str]) -> str:
    if value is None:
        return '<td class="number" data-value="-1">–</td>'
    return f'<td class="number" data-value="{value!r}">{write(value)}</td>'


def foot(page: Page) -> str:
    """Explain the words, and say what was left out."""
    left_out = "".join(f"<li>{shown(one)}</li>" for one in page.left_out)
    gaps = f'<h3>Left out</h3><ul id="left-out">{left_out}</ul>' if left_out else ""
    return (
        f"<footer><h2>How to read this</h2>{asset('glossary.html')}{gaps}"
        '<p class="small">Written by Unless. This file holds all it shows; it needs no network.</p>'
        f'<p class="small" id="reveals">{shown(page.reveals)}</p>'
        "</footer>"
    )


def to_json(page: Page) -> bytes:
    """Write a page as JSON that may stand inside a script element: no character of it can end one."""
    text = msgspec.json.encode(page).decode()
    return _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", text).encode()


def shown(text: str) -> str:
    r"""Escape a text of the table for HTML; what would not be seen, or would turn what follows, is spelt.

    >>> print(shown("</script>"), shown("a\u202eb"))
    &lt;/script&gt; a\u202eb
    """
    return escape(visible(text), quote=True)


def name(text: str) -> str:
    """Write a name or a label so that its direction does not turn what stands around it."""
    return f"<bdi>{shown(text)}</bdi>"


@cache
def asset(name: str) -> str:
    """Return the text of a file of the page."""
    return files("unless.report").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def script() -> str:
    """Return the page's own scripts as one, closed to the outside."""
    folder = files("unless.report").joinpath("assets", "js")
    parts = sorted(one.name for one in folder.iterdir() if one.name.endswith(".js"))
    body = "\n".join(asset(f"js/{part}") for part in parts)
    return f'"use strict";\n(() => {{\n{body}}})();\n'
