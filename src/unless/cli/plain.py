"""Structures that list no contexts (graphs, labelled graphs, sets of features), in words and as JSON."""

from collections.abc import Mapping
from typing import Any

import click

from unless.cli.display import say, say_table
from unless.cli.telling import context_text, edge_text, results_told, variables
from unless.cli.wording import count, of, visible
from unless.structures.labelled import LabelledGraph
from unless.structures.pairs import Edge, n_pairs


def say_structure(structure: Any, context: Mapping[str, str], title: str = "") -> None:
    """Print the pairs a structure links, or refuse a context before anything is printed."""
    links = _links(structure, context)
    if title:
        say(title)
    columns = count(len(structure.domain), "column")
    pairs = of(len(links), n_pairs(len(structure.domain)), "pair")
    headers: tuple[str, ...] = ("Pair",)
    where = f" where {context_text(context)}" if context else ""
    if structure.kind == "graph":
        say(f"A graph over {columns}: {pairs} linked, everywhere.")
        rows: list[tuple[str, ...]] = [(edge_text(edge),) for edge in sorted(links)]
    elif structure.kind == "links":
        say(f"A graph with gates over {columns}{where}: {pairs} linked.")
        headers = ("Pair", "Linked")
        rows = [(edge_text(edge), visible(_region_text(structure, edge))) for edge in sorted(links)]
    else:
        features = count(structure.indicators().n_compatible(context), "feature")
        say(f"{features} over {columns}{where}: {pairs} together in a feature.")
        headers = ("Pair", "Features with both")
        ranked = sorted(links, key=lambda edge: (-links[edge], edge))
        rows = [(edge_text(edge), f"{links[edge]:,}") for edge in ranked]
    if rows:
        say()
        say_table(headers, rows, numbers=() if structure.kind == "links" else (1,))


def structure_document(
    structure: Any,
    context: Mapping[str, str],
    learner: str | None,
    settings: Mapping[str, Any],
    results: Mapping[str, Any],
) -> dict[str, Any]:
    """Make the JSON that `unless show --help` describes for structures without contexts."""
    links = _links(structure, context)
    common = {
        "version": 1,
        "learner": learner,
        "settings": dict(settings),
        "results": results_told(results),
        "variables": variables(structure.domain),
    }
    if structure.kind == "graph":
        return {"format": "unless-graph", **common, "links": [{"pair": list(edge)} for edge in sorted(links)]}
    if structure.kind == "links":
        told = [
            {"pair": list(edge), "regions": [region.to_dict() for region in structure.regions(*edge)]}
            for edge in sorted(links)
        ]
        return {"format": "unless-labelled-graph", **common, "context": dict(context), "links": told}
    return {
        "format": "unless-features",
        **common,
        "context": dict(context),
        "n_features": structure.indicators().n_compatible(context),
        "links": [{"pair": list(edge), "n_features": links[edge]} for edge in sorted(links)],
    }


def _links(structure: Any, context: Mapping[str, str]) -> dict[Edge, int]:
    if structure.kind == "links":
        return dict.fromkeys(structure.given(context).edges, 1)
    if structure.kind == "graph":
        if context:
            raise click.UsageError("a graph is the same in every context; leave out --context")
        return dict.fromkeys(structure.edges, 1)
    counts: dict[Edge, int] = structure.indicators().pair_counts(context)
    return counts


def _region_text(graph: LabelledGraph, edge: Edge) -> str:
    if graph.has_edge(*edge):
        return "everywhere"
    return " or ".join(f"where {region}" for region in graph.regions(*edge))
