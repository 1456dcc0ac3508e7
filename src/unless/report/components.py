"""The parts of the page, each a string made of the page's data; what they hold of the table is escaped."""

from collections.abc import Callable
from typing import Any

from unless.knowledge.sentences import chance, decimal
from unless.report.assets import asset
from unless.report.page import Page
from unless.report.words import count, name, shown

# So many findings are open to the eye, the others folded away.
FIRST_FINDINGS = 10
# A graph of more columns takes the room of the lists beside it.
LARGE = 12

KINDS = {
    "gated": "only in some contexts",
    "partly": "elsewhere undecided",
    "linked": "everywhere",
    "undecided": "undecided",
    "contradicted": "data and structure disagree",
    "never": "never linked",
}
# With more gated links than this the script draws only the arrows of the one chosen.
MOST_ARROWS = 14
# In what share of its rows a context must have a link.
AT_LEAST = {0: "any", 0.1: "10 %", 0.5: "half", 0.9: "90 %"}
ANSWERS = {"dependent": "depends", "independent": "no dependence seen", "undecided": "not enough data"}


def kind(statement: dict[str, Any]) -> str:
    """Say under which heading a statement falls."""
    sides = [side for side in (statement["linked"], statement["not_linked"]) if side]
    if not statement["agrees"]:
        return "contradicted"
    answers = [side["answer"] for side in sides]
    if "dependent" not in answers and statement["verdict"] == "undecided":
        return "undecided"
    return "partly" if answers == ["dependent", "undecided"] else str(statement["claim"])


def head(page: Page) -> str:
    """Say what was analysed, how, and in one sentence what came out."""
    about = "".join(f"<dt>{shown(term)}</dt><dd>{shown(text)}</dd>" for term, text in page.about)
    notes = "".join(f"<li>{shown(note)}</li>" for note in page.notes)
    return f"""<header>
<div class="row spread"><p class="brand">Unless</p>
<div class="row"><button type="button" id="theme">Dark colours</button>
<button type="button" id="print">Print</button></div></div>
<h1>{shown(page.title)}</h1>
<p class="lead">{shown(page.headline)}</p>
<p>{count(page.n_rows, "row")} and {count(page.n_columns, "column")} were looked at. \
A <em>link</em> joins two columns where one tells something about the other that no other column tells; \
a <em>gate</em> is a column that switches a link on and off.</p>
<details class="about"><summary>How this was made</summary><dl class="facts">{about}</dl>
<h2 class="small-title">Reading the table</h2><ul>{notes}</ul></details>
</header>"""


def findings(page: Page) -> str:
    """List what was found as sentences, the most telling first; each opens to its evidence."""
    told = [
        (place, statement)
        for place, statement in enumerate(page.statements)
        if statement["claim"] != "never" or not statement["agrees"]
    ]
    first = "".join(_finding(place, one) for place, one in told[:FIRST_FINDINGS])
    rest = "".join(_finding(place, one) for place, one in told[FIRST_FINDINGS:])
    more = len(told) - FIRST_FINDINGS
    folded = (
        f'<details class="more"><summary>{count(more, "more finding")}</summary>'
        f'<ol start="{FIRST_FINDINGS + 1}">{rest}</ol></details>'
        if rest
        else ""
    )
    none = "" if told else f"<p>{shown(page.statement_note or 'No pair is linked.')}</p>"
    listed = f"<ol>{first}</ol>" if first else ""
    return f'<section id="found" aria-labelledby="found-title"><h2 id="found-title">What was found</h2>\n{listed}{folded}{none}</section>'  # noqa: E501


def _finding(place: int, statement: dict[str, Any]) -> str:
    kept = kind(statement)
    return (
        f'<li class="finding {kept}"><details data-statement="{place}"><summary>'
        f'<span class="kind {kept}">{KINDS[kept]}</span> <bdi>{shown(statement["sentence"])}.</bdi></summary>'
        f'<div class="finding-body"></div>'
        f'<button type="button" data-show="{place}">Show in the graph</button></details></li>'
    )


def explorer(page: Page) -> str:
    """Make room for the graph, its chips, the lists and the link view, which the script fills."""
    if not page.links:
        return (
            '<section aria-labelledby="when-title"><h2 id="when-title">When it holds</h2>'
            "<p>The structure links no pair, so there is no graph to show.</p></section>"
        )
    unsure = sum(not link.drawn for link in page.links)
    draw_all = (
        f'<label><input type="checkbox" id="draw-all"> Draw {count(unsure, "more link")} '
        "that the data do not bear out</label>"
        if unsure
        else ""
    )
    levels = "".join(
        f'<option value="{level}"{" selected" * (level == page.at_least)}>{words}</option>'
        for level, words in AT_LEAST.items()
    )
    size = "large" if page.n_columns > LARGE else "compact"
    gated = sum(link.drawn and bool(link.switches) for link in page.links)
    arrow = (
        "choose one to see dotted arrows from its gates"
        if gated > MOST_ARROWS
        else "dotted arrows come from its gates"
    )
    note = f'<p class="notice">{shown(page.contexts.note)}</p>' if page.contexts.note else ""
    return asset("explorer.html").format(arrow=arrow, size=size, draw_all=draw_all, levels=levels, note=note)


def what_if(page: Page) -> str:
    """Make room for the probabilities under the chosen context, and say how they are found."""
    return f"""<section id="what-if" aria-labelledby="what-if-title"><h2 id="what-if-title">What if</h2>
<p>{shown(page.what_if.how)}</p><p id="what-if-context" aria-live="polite"></p>
<div id="what-if-answer" class="cards"></div></section>"""


_COLUMNS: tuple[tuple[str, str, Callable[[dict[str, Any]], str | None]], ...] = (
    ("Rows", "n_rows", lambda side: f"{side['n_rows']:,}"),
    ("V", "cramers_v", lambda side: decimal(side["cramers_v"])),
    ("p", "p", lambda side: chance("", side["p"]).lstrip(" =")),
    ("q", "q", lambda side: chance("", side["q"]).lstrip(" =")),
)


def table(page: Page) -> str:
    """Write all statements as a table to sort, to search and to take away."""
    heads = "".join(
        f'<th scope="col"><button type="button">{title}</button></th>'
        for title in ("Pair", "Statement", "Kind", "Answer", *(title for title, _, _ in _COLUMNS))
    )
    rows = "\n".join(_row(place, one) for place, one in enumerate(page.statements))
    options = "".join(f'<option value="{one}">{words}</option>' for one, words in KINDS.items())
    return f"""<section id="all" aria-labelledby="all-title"><h2 id="all-title">All statements</h2>
<div class="row tools"><label>Search <input type="search" id="table-search"></label>
<label>Show <select id="table-kind"><option value="">all</option>{options}</select></label>
<button type="button" id="copy">Copy sentences</button><button type="button" id="save-csv">CSV</button>
<button type="button" id="save-json">JSON</button><span id="table-count" role="status"></span></div>
<div class="table-frame" role="region" aria-labelledby="all-title" tabindex="0"><table id="statements">
<thead><tr>{heads}</tr></thead>
<tbody>
{rows}
</tbody></table></div></section>"""


def _row(place: int, statement: dict[str, Any]) -> str:
    side = statement["linked"] or statement["not_linked"]
    kept = kind(statement)
    numbers = "".join(
        f'<td class="number" data-value="{side[key]!r}">{write(side)}</td>' for _, key, write in _COLUMNS
    )
    a, b = statement["pair"]
    return (
        f'<tr data-statement="{place}" data-kind="{kept}"><th scope="row">{name(a)} – {name(b)}</th>'
        f"<td><bdi>{shown(statement['sentence'])}.</bdi> "
        f'<button type="button" class="plain" data-statement="{place}" aria-expanded="false">Evidence'
        f'<span class="visually-hidden"> for {shown(a)} and {shown(b)}</span></button></td>'
        f"<td>{KINDS[kept]}</td><td>{ANSWERS[side['answer']]}</td>{numbers}</tr>"
    )


def foot(page: Page) -> str:
    """Explain the words, and say what was left out."""
    left_out = "".join(f"<li>{shown(one)}</li>" for one in page.left_out)
    gaps = f'<h3>Left out</h3><ul id="left-out">{left_out}</ul>' if left_out else ""
    return (
        f"<footer><h2>How to read this</h2>{asset('glossary.html')}{gaps}"
        '<p class="small">Written by Unless. This file holds all it shows; it needs no network.</p>'
        "</footer>"
    )
