"""Graphs as GraphML, which networkx, igraph, Cytoscape and others read."""

import json
from collections.abc import Mapping
from xml.sax.saxutils import escape, quoteattr

from unless.data.domain import Domain
from unless.errors import SettingError
from unless.formats.graphml_reader import FoundGraph, parse_graphml
from unless.formats.text import PathLike, about, read_content, to_text, write_text, wrong
from unless.structures.graph import CanonicalGraph, Graph, InstantiatedGraph, ObservedGraph

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="name" for="node" attr.name="name" attr.type="string"/>
<key id="label" for="node" attr.name="label" attr.type="string"/>
<key id="levels" for="node" attr.name="levels" attr.type="string"/>
<key id="kind" for="node" attr.name="kind" attr.type="string"/>
<key id="share" for="edge" attr.name="share" attr.type="double"/>
<key id="role" for="graph" attr.name="role" attr.type="string"/>
<key id="context" for="graph" attr.name="context" attr.type="string"/>
<key id="n_rows" for="graph" attr.name="n_rows" attr.type="long"/>
<graph edgedefault="undirected">
"""
# Graphs in a context say so; a word from elsewhere means a graph and nothing more.
ROLES: dict[str, type[Graph]] = {
    "canonical": CanonicalGraph,
    "instantiated": InstantiatedGraph,
    "observed": ObservedGraph,
}


def read_graphml(path: PathLike, domain: Domain | None = None) -> Graph:
    """Read an undirected graph, with its context and shares if it has them.

    Names are the nodes' "name", else their ids. Levels are those of `domain` where it is given, else those in
    the file, else "0" and "1".
    """
    with about(path):
        found = parse_graphml(to_text(read_content(path)))
        variables = found.domain()
        if domain is not None:
            if {*domain.names} != {*variables.names}:
                raise wrong(1, "its nodes are not the variables of the domain given")
            variables = domain
        return _graph(found, variables)


def write_graphml(graph: Graph, path: PathLike) -> None:
    """Write a graph; names and levels are kept as attributes, and so are shares, context and rows."""
    write_text(path, graphml_text(graph))


def graphml_text(graph: Graph) -> str:
    """Return a graph as GraphML, nodes in column order and edges sorted.

    Ids are n0, n1, ... because a name may hold any character; programs such as Gephi show the label.
    """
    lines = [_data(key, value) for key, value in _attributes(graph).items()]
    for place, variable in enumerate(graph.domain):
        levels = json.dumps(variable.levels, ensure_ascii=False)
        said = {"name": variable.name, "label": variable.name, "levels": levels, "kind": variable.kind}
        data = "".join(_data(key, value) for key, value in said.items())
        lines.append(f"<node id={quoteattr(f'n{place}')}>{data}</node>")
    shares = graph.shares if isinstance(graph, ObservedGraph) else {}
    for a, b in sorted(tuple(sorted(map(graph.domain.index, edge))) for edge in graph.edges):
        names = graph.domain.names[a], graph.domain.names[b]
        share = shares.get(names, shares.get(names[::-1]))
        inside = "" if share is None else _data("share", repr(float(share)))
        lines.append(f'<edge source="n{a}" target="n{b}">{inside}</edge>')
    text = HEAD + "\n".join([*lines, "</graph>", "</graphml>", ""])
    if any(_is_forbidden(character) for character in {*text}):
        raise SettingError("A name or label holds a character that XML has no place for; rename it first.")
    return text


def _attributes(graph: Graph) -> Mapping[str, str]:
    role = next((name for name, kind in ROLES.items() if type(graph) is kind), None)
    if role is None or not isinstance(graph, InstantiatedGraph | CanonicalGraph):
        return {}
    said = {"role": role, "context": json.dumps(dict(graph.context), ensure_ascii=False)}
    if isinstance(graph, ObservedGraph | CanonicalGraph):
        said["n_rows"] = str(int(graph.n_rows))
    return said


def _data(key: str, value: str) -> str:
    # A reader would turn a lone carriage return into a line feed.
    return f'<data key="{key}">{escape(value, {chr(13): "&#13;"})}</data>'


def _is_forbidden(character: str) -> bool:
    return (character < " " and character not in "\t\n\r") or character in "\ufffe\uffff"


def _graph(found: FoundGraph, domain: Domain) -> Graph:
    graph = Graph(domain, found.shares)
    if found.role not in ROLES:
        return graph
    context = domain.decode(domain.encode(found.context or {}))
    if found.role == "instantiated":
        return graph._as(InstantiatedGraph, context=context)
    n_rows = found.n_rows or 0
    if found.role == "canonical":
        return graph._as(CanonicalGraph, context=context, n_rows=n_rows)
    shares = {edge: share for edge, share in found.shares.items() if share is not None}
    return graph._as(ObservedGraph, context=context, n_rows=n_rows, shares=shares)
