"""Graphs as GraphML, which networkx, igraph, Cytoscape and others read.

Files are read an event at a time, believing nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, get_args
from xml.parsers import expat

import msgspec

from unless.data.domain import Domain, Kind, Variable
from unless.errors import FileFormatError, SettingError
from unless.formats.text import (
    PathLike,
    about,
    quote,
    read_content,
    refused_in,
    to_count,
    to_number,
    to_text,
    write_text,
    wrong,
)
from unless.structures.graph import CanonicalGraph, Graph, InstantiatedGraph, ObservedGraph
from unless.structures.structure import Edge

# A graph holds a bit for every pair of nodes, so nodes that cost ten letters each must not be many.
MOST_NODES = 10_000
UNKNOWN_LEVELS = ("0", "1")
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


@dataclass
class FoundGraph:
    """What a file says: nodes with their data, edges with their shares, and the data of the whole."""

    variables: dict[str, Variable] = field(default_factory=dict)
    shares: dict[Edge, float | None] = field(default_factory=dict)
    role: str | None = None
    context: dict[str, str] | None = None
    n_rows: int | None = None

    def domain(self) -> Domain:
        """Return the nodes as variables, in the order of the file."""
        return Domain(tuple(self.variables.values()))


def parse_graphml(text: str) -> FoundGraph:
    """Read one undirected graph."""
    reader = _GraphParser()
    try:
        reader.parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        trouble = expat.ErrorString(error.code)
        raise wrong(error.lineno, f"it is not XML ({trouble})") from None
    if not reader.is_seen:
        raise wrong(reader.parser.CurrentLineNumber, "there is no graph in it")
    return reader.finish()


class _GraphParser:
    def __init__(self) -> None:
        # Whatever encoding the file claims, it was decoded already.
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parsed = FoundGraph()
        self.is_seen = False
        self.depth = 0
        self.keys: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.edges: list[tuple[str, str, float | None, int]] = []
        # The element whose data is being read, its attributes and what was said about it so far.
        self.owner = ""
        self.said: dict[str, Any] = {}
        self.data: dict[str, str] = {}
        self.key: str | None = None
        self.pieces: list[str] = []
        self.line = 1

    def _doctype(self, *_: object) -> None:
        # Definitions of entities are how small files unfold into large ones.
        raise self._wrong("a document type is not allowed")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        self.depth += 1
        if self.depth == 1 and tag != "graphml":
            raise self._wrong("the file is XML, but not GraphML")
        if tag == "key":
            self.keys[attributes.get("id", "")] = attributes.get("attr.name", "")
        elif tag == "graph":
            if self.is_seen:
                raise self._wrong("there is a second graph in it")
            self.is_seen = True
            if attributes.get("edgedefault") != "undirected":
                raise self._wrong("its edges are directed")
            self._own("graph", attributes)
        elif tag in ("node", "edge"):
            if self.owner == "graph":
                self._close_graph()
            self._own(tag, attributes)
        elif tag == "data":
            name = attributes.get("key", "")
            self.key = self.keys.get(name) or name
            self.pieces = []
        elif tag == "hyperedge":
            raise self._wrong("an edge has more than two ends")

    def _own(self, tag: str, attributes: dict[str, str]) -> None:
        if self.owner in ("node", "edge"):
            raise self._wrong(f"a {tag} is inside a {self.owner}")
        self.owner, self.said, self.data, self.line = tag, attributes, {}, self.parser.CurrentLineNumber

    def _text(self, text: str) -> None:
        if self.key is not None:
            self.pieces.append(text)

    def _end(self, tag: str) -> None:
        tag = tag.rpartition(":")[2]
        self.depth -= 1
        if tag == "data" and self.key is not None:
            self.data[self.key] = "".join(self.pieces)
            self.key = None
        elif tag == self.owner == "node":
            self._close_node()
        elif tag == self.owner == "edge":
            self._close_edge()
        elif tag == self.owner == "graph":
            self._close_graph()

    def _close_graph(self) -> None:
        self.owner = ""
        self.parsed.role = self.data.get("role")
        if "context" in self.data:
            self.parsed.context = self._json(self.data["context"], dict[str, str])
        if "n_rows" in self.data:
            self.parsed.n_rows = to_count(self.data["n_rows"].strip(), self.line, "a number of rows")

    def _close_node(self) -> None:
        self.owner = ""
        key = self._said("id")
        name = self.data.get("name", key)
        if key in self.names or name in self.parsed.variables:
            raise wrong(self.line, f"node {quote(name)} appears twice")
        if len(self.names) == MOST_NODES:
            raise wrong(self.line, f"there are more than {MOST_NODES:,} nodes")
        kind: Any = self.data.get("kind", "text")
        if kind not in get_args(Kind):
            raise wrong(self.line, f"{quote(kind)} is not a kind of variable")
        levels = (
            tuple(self._json(self.data["levels"], list[str])) if "levels" in self.data else UNKNOWN_LEVELS
        )
        with refused_in(self.line):
            self.parsed.variables[name] = Variable(name, levels, kind)
        self.names[key] = name

    def _close_edge(self) -> None:
        self.owner = ""
        if self.said.get("directed", "false") != "false":
            raise wrong(self.line, "an edge is directed")
        share = self.data.get("share")
        number = None if share is None else to_number(share.strip(), self.line, "a share")
        self.edges.append((self._said("source"), self._said("target"), number, self.line))

    def finish(self) -> FoundGraph:
        """Name the ends of the edges, which may come before their nodes."""
        for source, target, share, line in self.edges:
            if source not in self.names or target not in self.names:
                raise wrong(line, "an edge ends at a node that is not there")
            a, b = sorted((self.names[source], self.names[target]))
            if a == b or (a, b) in self.parsed.shares:
                raise wrong(line, f"the edge {quote(a)} - {quote(b)} is a loop or appears twice")
            self.parsed.shares[a, b] = share
        return self.parsed

    def _said(self, attribute: str) -> str:
        if attribute not in self.said:
            raise wrong(self.line, f"{attribute!r} is missing")
        return str(self.said[attribute])

    def _json(self, text: str, kind: Any) -> Any:
        try:
            return msgspec.json.decode(text, type=kind)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise wrong(self.line, f"{quote(text)} cannot be read ({error})") from None

    def _wrong(self, trouble: str) -> FileFormatError:
        return wrong(self.parser.CurrentLineNumber, trouble)


def read_graphml(path: PathLike, domain: Domain | None = None) -> Graph:
    """Read an undirected graph, with its context and shares if it has them.

    Names are the nodes' "name", else their ids. Levels are those of `domain` where it is given, else those in
    the file, else "0" and "1".
    """
    with about(path):
        parsed = parse_graphml(to_text(read_content(path)))
        variables = parsed.domain()
        if domain is not None:
            if {*domain.names} != {*variables.names}:
                raise wrong(1, "its nodes are not the variables of the domain given")
            variables = domain
        return _graph(parsed, variables)


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
        lines.append(f'<node id="n{place}">{data}</node>')
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
    return f'<data key="{key}">{escape(value, quote=False).replace(chr(13), "&#13;")}</data>'


def _is_forbidden(character: str) -> bool:
    return (character < " " and character not in "\t\n\r") or character in "\ufffe\uffff"


def _graph(parsed: FoundGraph, domain: Domain) -> Graph:
    graph = Graph(domain, parsed.shares)
    if parsed.role not in ROLES:
        return graph
    context = domain.decode(domain.encode(parsed.context or {}))
    if parsed.role == "instantiated":
        return graph._as(InstantiatedGraph, context=context)
    n_rows = parsed.n_rows or 0
    if parsed.role == "canonical":
        return graph._as(CanonicalGraph, context=context, n_rows=n_rows)
    shares = {edge: share for edge, share in parsed.shares.items() if share is not None}
    return graph._as(ObservedGraph, context=context, n_rows=n_rows, shares=shares)
