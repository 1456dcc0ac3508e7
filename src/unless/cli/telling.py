"""Links in words, in tables and as JSON."""

from collections.abc import Iterable, Mapping
from typing import Any

from unless.cli.display import say_table
from unless.cli.links import Extent, Gate, Link, View
from unless.cli.wording import count, either, of, percent, visible
from unless.data.domain import Domain
from unless.structures.pairs import Edge


def edge_text(edge: Edge) -> str:
    """Name a pair."""
    return " - ".join(map(visible, edge))


def pair_text(link: Link) -> str:
    """Name the pair of a link."""
    return edge_text(link.pair)


def context_text(context: Mapping[str, str]) -> str:
    """Write a context: "Dept = A, Gender = Male"."""
    return ", ".join(f"{visible(name)} = {visible(label)}" for name, label in context.items())


def where_text(link: Link, view: View) -> str:
    """Say where a pair is linked."""
    if link.gate:
        return _gate_text(link.gate)
    if link.here.n_contexts == view.here.n_contexts:
        return "everywhere" if not view.context else "everywhere here"
    return "in some contexts" if link.here.n_contexts else "not here"


def sentence(link: Link, view: View) -> str:
    """Say about one pair what the model says, and of how many rows."""
    rows = of(link.here.n_rows, view.here.n_rows, "row")
    if link.here.n_contexts == view.here.n_contexts:
        return f"{pair_text(link)}: linked everywhere (all {count(view.here.n_rows, 'row')})"
    if link.gate:
        return f"{pair_text(link)}: linked {_gate_text(link.gate)} ({rows})"
    share = percent(link.here.n_rows, view.here.n_rows)
    return f"{pair_text(link)}: linked in {share} of rows ({rows})"


def say_links(links: Iterable[Link], view: View) -> None:
    """Print a table of pairs, with the share of rows and contexts in which each is linked."""
    rows = [
        (
            pair_text(link),
            percent(link.here.n_rows, view.here.n_rows),
            f"{link.here.n_rows:,}",
            f"{link.here.n_contexts:,}",
            where_text(link, view),
        )
        for link in links
    ]
    n_rows, n_contexts = count(view.here.n_rows, "row"), count(view.here.n_contexts, "context")
    say_table(("Pair", "Linked in", f"of {n_rows}", f"of {n_contexts}", "Where"), rows, numbers=(1, 2, 3))


def by_share(links: Iterable[Link]) -> list[Link]:
    """Put the most widely linked first."""
    return sorted(links, key=lambda link: (-link.here.n_rows, link.pair))


def document(
    view: View, domain: Domain, learner: str | None, settings: Mapping[str, Any], results: Mapping[str, Any]
) -> dict[str, Any]:
    """Make the JSON that `unless show --help` describes."""
    return {
        "format": "unless-links",
        "version": 1,
        "learner": learner,
        "settings": dict(settings),
        "results": dict(results),
        "variables": variables(domain),
        "context": dict(view.context),
        "here": {**_extent(view.here), "n_graphs": view.n_graphs_here},
        "whole": {**_extent(view.whole), "n_graphs": view.n_graphs},
        "links": [
            {
                "pair": list(link.pair),
                "here": _extent(link.here, view.here),
                "whole": _extent(link.whole, view.whole),
                "gate": link.gate and _gate(link.gate),
            }
            for link in view.links
        ],
    }


def variables(domain: Domain) -> list[dict[str, Any]]:
    """List the variables and their levels, in their order."""
    return [{"name": variable.name, "levels": list(variable.levels)} for variable in domain]


def _gate_text(gate: Gate) -> str:
    few, word = (
        (gate.linked, "only where") if len(gate.linked) <= len(gate.unlinked) else (gate.unlinked, "unless")
    )
    return f"{word} {visible(gate.variable)} {'=' if len(few) == 1 else 'is'} {either([*map(visible, few)])}"


def _gate(gate: Gate) -> dict[str, Any]:
    return {"variable": gate.variable, "linked": list(gate.linked), "not_linked": list(gate.unlinked)}


def _extent(extent: Extent, whole: Extent | None = None) -> dict[str, Any]:
    share = {"share": extent.n_rows / whole.n_rows} if whole else {}
    return {"n_rows": extent.n_rows, "n_contexts": extent.n_contexts, **share}
