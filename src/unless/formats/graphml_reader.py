"""The reading of GraphML: an event at a time, believing nothing."""

from dataclasses import dataclass, field
from typing import Any, get_args
from xml.parsers import expat

import msgspec

from unless.data.domain import Domain, Kind, Variable
from unless.errors import FileFormatError, UnlessError
from unless.formats.text import quote, to_count, to_number, wrong
from unless.structures.pairs import Edge

# A graph holds a bit for every pair of nodes, so nodes that cost ten letters each must not be many.
MOST_NODES = 10_000
UNKNOWN_LEVELS = ("0", "1")


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
    reader = _Reader()
    try:
        reader.parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        trouble = expat.ErrorString(error.code)
        raise wrong(error.lineno, f"it is not XML ({trouble})") from None
    if not reader.is_seen:
        raise wrong(reader.parser.CurrentLineNumber, "there is no graph in it")
    return reader.finish()


class _Reader:
    def __init__(self) -> None:
        # Whatever encoding the file claims, it was decoded already.
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.found = FoundGraph()
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
        self.found.role = self.data.get("role")
        if "context" in self.data:
            self.found.context = self._json(self.data["context"], dict[str, str])
        if "n_rows" in self.data:
            self.found.n_rows = to_count(self.data["n_rows"].strip(), self.line, "a number of rows")

    def _close_node(self) -> None:
        self.owner = ""
        key = self._said("id")
        name = self.data.get("name", key)
        if key in self.names or name in self.found.variables:
            raise wrong(self.line, f"node {quote(name)} appears twice")
        if len(self.names) == MOST_NODES:
            raise wrong(self.line, f"there are more than {MOST_NODES:,} nodes")
        kind: Any = self.data.get("kind", "text")
        if kind not in get_args(Kind):
            raise wrong(self.line, f"{quote(kind)} is not a kind of variable")
        levels = (
            tuple(self._json(self.data["levels"], list[str])) if "levels" in self.data else UNKNOWN_LEVELS
        )
        try:
            self.found.variables[name] = Variable(name, levels, kind)
        except UnlessError as error:
            raise wrong(self.line, str(error).rstrip(".")) from None
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
            if a == b or (a, b) in self.found.shares:
                raise wrong(line, f"the edge {quote(a)} - {quote(b)} is a loop or appears twice")
            self.found.shares[a, b] = share
        return self.found

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
