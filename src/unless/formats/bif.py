"""Known Bayesian networks from BIF files; `bif_writing.py` writes them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, get_args
from urllib.parse import unquote

import numpy as np

from unless.data.domain import MAX_LEVELS, Domain, Kind, Variable
from unless.errors import UnlessError
from unless.formats.bif_tables import Block, log_table, read_block
from unless.formats.gather import model_of_tables
from unless.formats.text import PathLike, about, quote, read_text, to_count, to_number, wrong
from unless.formats.tokens import Tokens
from unless.inference.model import LogLinearModel
from unless.structures.graph import Graph

# A comment that never ends is one up to the end, or looking for its end would take the square of the text.
# Tokens are text in quotes, punctuation, words such as <5 or Asy/Patch.
TOKEN = re.compile(r'[ \t\n]+|//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)|("[^"]*"|[{}\[\]();,|]|[^ \t\n{}\[\]();,|"]+|")')
# Names and labels that BIF has no letters for, as `write_bif` keeps them: percent-encoded.
OWN_PROPERTY = re.compile(
    r"property[ \t\n]+unless_(name|levels|kind|ordered|cuts)[ \t\n]*=[ \t\n]*([^ \t\n;]*)[ \t\n]*;"
)
PUNCTUATION = frozenset("{}[]();,|")
# Rows left to a default are written out; a file must not ask for many more than it could list.
CELLS_PER_CHARACTER = 8
FEW_CELLS = 1_000_000


@dataclass(frozen=True)
class BayesianNetwork:
    """A distribution, and for each variable the parents it was written with."""

    model: LogLinearModel
    parents: Mapping[str, tuple[str, ...]]

    @property
    def domain(self) -> Domain:
        """The variables, in the order of the file."""
        return self.model.domain

    def arcs(self) -> tuple[tuple[str, str], ...]:
        """Return (parent, child) for every arrow of the directed graph."""
        return tuple((parent, child) for child, parents in self.parents.items() for parent in parents)

    def moral_graph(self) -> Graph:
        """Link every variable with its parents, and parents with each other."""
        families = [(child, *parents) for child, parents in self.parents.items()]
        return Graph(self.domain, [pair for family in families for pair in combinations(family, 2)])


def read_bif(path: PathLike) -> BayesianNetwork:
    """Read a BIF file; rows find their place by the labels they name, and each must sum to one."""
    with about(path):
        return parse_bif(read_text(path))


def parse_bif(text: str) -> BayesianNetwork:
    """Read variables and their conditional tables, each row of which becomes indicators of weight log p."""
    tokens = Tokens(TOKEN, text)
    variables: dict[str, Variable] = {}
    named: dict[str, Variable] = {}
    blocks: dict[str, Block] = {}
    while tokens.word:
        line = tokens.line
        keyword = tokens.expect("network", "variable", "probability")
        if keyword == "network":
            _skip_network(tokens)
        elif keyword == "variable":
            variable, properties = _variable(tokens)
            if variable.name in variables:
                raise wrong(line, f"variable {quote(variable.name)} appears twice")
            variables[variable.name] = variable
            named[variable.name] = _named(variable, properties, line)
        else:
            block = read_block(tokens, word, skip_property)
            if block.names[0] in blocks:
                raise wrong(line, f"{quote(block.names[0])} has two tables")
            blocks[block.names[0]] = block
    if not variables:
        raise tokens.unexpected("a variable")
    return _network(variables, blocks, tokens, named)


def word(tokens: Tokens, what: str) -> str:
    """Take a name, a label or a number, with quotes or without."""
    if not tokens.word or tokens.word in PUNCTUATION or tokens.word == '"':
        raise tokens.unexpected(what)
    taken = tokens.take()
    return taken[1:-1] if taken.startswith('"') else taken


def skip_property(tokens: Tokens) -> None:
    """Pass over a remark of some program, up to its semicolon."""
    while tokens.word not in (";", "", "{", "}"):
        tokens.take()
    tokens.expect(";")


def _skip_network(tokens: Tokens) -> None:
    word(tokens, "the name of the network")
    tokens.expect("{")
    while tokens.word != "}":
        if tokens.word != "property":
            raise tokens.unexpected("a property or '}'")
        skip_property(tokens)
    tokens.take()


def _variable(tokens: Tokens) -> tuple[Variable, dict[str, str]]:
    name = word(tokens, "the name of a variable")
    tokens.expect("{")
    levels: tuple[str, ...] | None = None
    properties: dict[str, str] = {}
    while tokens.word != "}":
        if tokens.word == "property":
            begin = tokens.offset
            skip_property(tokens)
            if own := OWN_PROPERTY.match(tokens.text, begin):
                properties[own[1]] = own[2]
        elif levels is None:
            tokens.expect("type")
            levels = _levels(tokens)
        else:
            raise tokens.unexpected("a property or '}'")
    if levels is None:
        raise tokens.unexpected("the type of the variable")
    tokens.take()
    return Variable(name, levels), properties


def _named(variable: Variable, properties: dict[str, str], line: int) -> Variable:
    """Return the variable with what `write_bif` kept in its properties: its name, its labels and more."""
    name = unquote(properties["name"]) if "name" in properties else variable.name
    levels = variable.levels
    if "levels" in properties:
        levels = tuple(unquote(label) for label in properties["levels"].split(","))
    kind: Any = properties.get("kind", variable.kind)
    if kind not in get_args(Kind):
        raise wrong(line, f"{quote(kind)} is not a kind of variable")
    if len(levels) != len(variable.levels):
        raise wrong(line, f"unless_levels has {len(levels):,} labels, not {len(variable.levels):,}")
    cuts = tuple(to_number(cut, line, "a cut") for cut in properties.get("cuts", "").split(",") if cut)
    try:
        return Variable(name, levels, kind, properties.get("ordered") == "true", cuts)
    except UnlessError as error:
        raise wrong(line, str(error).rstrip(".")) from None


def _levels(tokens: Tokens) -> tuple[str, ...]:
    tokens.expect("discrete")
    tokens.expect("[")
    line = tokens.line
    size = to_count(word(tokens, "a number of levels"), line, "a number of levels")
    tokens.expect("]")
    tokens.expect("{")
    line, levels = tokens.line, [word(tokens, "a level")]
    while tokens.word != "}":
        if tokens.word == ",":
            tokens.take()
        levels.append(word(tokens, "a level"))
    tokens.take()
    tokens.expect(";")
    if len(levels) != size:
        raise wrong(line, f"there should be {size:,} levels, not {len(levels):,}")
    if len({*levels}) != size or size > MAX_LEVELS:
        raise wrong(line, "a level appears twice, or there are too many")
    return tuple(levels)


def _network(
    variables: dict[str, Variable], blocks: dict[str, Block], tokens: Tokens, named: dict[str, Variable]
) -> BayesianNetwork:
    place = {name: position for position, name in enumerate(variables)}
    for name in variables:
        if name not in blocks:
            raise wrong(tokens.line, f"there is no table for variable {quote(name)}")
    budget = FEW_CELLS + CELLS_PER_CHARACTER * len(tokens.text)
    tables = []
    for block in blocks.values():
        table = log_table(block, variables, budget)
        budget -= table.size
        scope = [place[name] for name in block.names if len(variables[name].levels) > 1]
        tables.append((tuple(sorted(scope)), table.transpose(np.argsort(scope))))
    parents = {name: blocks[name].names[1:] for name in variables}
    _check_no_cycle(parents, blocks)
    above = {named[name].name: tuple(named[one].name for one in names) for name, names in parents.items()}
    return BayesianNetwork(model_of_tables(Domain(tuple(named.values())), tables), above)


def _check_no_cycle(parents: dict[str, tuple[str, ...]], blocks: dict[str, Block]) -> None:
    children: dict[str, list[str]] = {name: [] for name in parents}
    waiting = {name: len(above) for name, above in parents.items()}
    for name, above in parents.items():
        for parent in above:
            children[parent].append(name)
    ready = [name for name, n_above in waiting.items() if not n_above]
    while ready:
        name = ready.pop()
        del waiting[name]
        for child in children[name]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    if waiting:
        name = min(waiting, key=lambda one: blocks[one].line)
        raise wrong(blocks[name].line, f"{quote(name)} is among its own ancestors or their descendants")
