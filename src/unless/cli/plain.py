"""Structures that are the same in every context, a graph or a set of features, in words and as JSON."""

from collections.abc import Mapping
from typing import Any

import click

from unless.cli.display import say, say_table
from unless.cli.telling import context_text, edge_text, variables
from unless.cli.wording import count, of
from unless.inference.model import LogLinearModel
from unless.structures.features import FeatureSet
from unless.structures.graph import Graph
from unless.structures.pairs import Edge, n_pairs


def say_structure(
    structure: Graph | FeatureSet | LogLinearModel, context: Mapping[str, str], title: str = ""
) -> None:
    """Print the pairs a structure links, or refuse a context before anything is printed."""
    links = _links(structure, context)
    if title:
        say(title)
    columns = count(len(structure.domain), "column")
    pairs = of(len(links), n_pairs(len(structure.domain)), "pair")
    headers: tuple[str, ...] = ("Pair",)
    if isinstance(structure, Graph):
        say(f"A graph over {columns}: {pairs} linked, everywhere.")
        rows: list[tuple[str, ...]] = [(edge_text(edge),) for edge in sorted(links)]
    else:
        where = f" where {context_text(context)}" if context else ""
        features = count(_features(structure).n_compatible(context), "feature")
        say(f"{features} over {columns}{where}: {pairs} together in a feature.")
        headers = ("Pair", "Features with both")
        ranked = sorted(links, key=lambda edge: (-links[edge], edge))
        rows = [(edge_text(edge), f"{links[edge]:,}") for edge in ranked]
    if rows:
        say()
        say_table(headers, rows, numbers=(1,))


def structure_document(
    structure: Graph | FeatureSet | LogLinearModel,
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
        "results": dict(results),
        "variables": variables(structure.domain),
    }
    if isinstance(structure, Graph):
        return {"format": "unless-graph", **common, "links": [{"pair": list(edge)} for edge in sorted(links)]}
    return {
        "format": "unless-features",
        **common,
        "context": dict(context),
        "n_features": _features(structure).n_compatible(context),
        "links": [{"pair": list(edge), "n_features": links[edge]} for edge in sorted(links)],
    }


def _links(structure: Graph | FeatureSet | LogLinearModel, context: Mapping[str, str]) -> dict[Edge, int]:
    if isinstance(structure, Graph):
        if context:
            raise click.UsageError("a graph is the same in every context; leave out --context")
        return dict.fromkeys(structure.edges, 1)
    return _features(structure).pair_counts(context)


def _features(structure: FeatureSet | LogLinearModel) -> FeatureSet:
    return structure.features if isinstance(structure, LogLinearModel) else structure
