"""Bayesian networks in BIF files, read and written.

Reading: a row of a conditional table finds its place by the labels it names.

Writing: a log-linear model has no arrows. It gets them by eliminating one variable after the other: the
tables that name the variable are multiplied, and their product is P(variable | its remaining neighbours)
times a table of those neighbours, which stays. Each variable has the neighbours it was eliminated before as
its parents. The product of all these conditional tables is the distribution of the model, exactly.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, product
from math import fsum, prod
from typing import Any, NamedTuple, get_args
from urllib.parse import quote as percent_encoded
from urllib.parse import unquote

import numpy as np

from unless.data.domain import MAX_LEVELS, Domain, Kind, Variable
from unless.errors import SettingError, TooLarge
from unless.formats.gather import MOST_CELLS, Scope, model_of_tables
from unless.formats.text import (
    PathLike,
    Tokens,
    about,
    quote,
    read_text,
    refused_in,
    to_count,
    to_number,
    to_potential,
    valid_unicode,
    write_text,
    wrong,
)
from unless.inference.model import LogLinearModel
from unless.inference.potentials import LEAST, by_scope, log_table
from unless.inference.results import impossible
from unless.kernels.compiling import plain_if_small
from unless.runtime.memory import show_memory
from unless.structures.graph import Graph
from unless.typing import Floats

# Published tables are rounded, some to three digits.
TOLERANCE = 2e-3
Numbers = tuple[list[float], int]
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
# What pgmpy, pyAgrum and bnlearn all read as one word.
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PLAIN_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
KEYWORDS = frozenset(
    ("network", "variable", "probability", "property", "type", "discrete", "table", "default")
)
# A number takes about this many letters, and as much again while the text is put together.
BYTES_PER_CELL = 80


@dataclass
class Block:
    """One `probability` block as written: the child, its parents, and rows with their lines."""

    names: tuple[str, ...]
    line: int
    rows: dict[tuple[str, ...], Numbers] = field(default_factory=dict)
    default: Numbers | None = None
    table: Numbers | None = None


def read_block(tokens: Tokens) -> Block:
    """Read what follows the word `probability`."""
    line = tokens.line
    tokens.require("(")
    names = [word(tokens, "the name of a variable")]
    while tokens.word != ")":
        # Older files have no bar: the first variable is the child there too.
        if tokens.word == "," or (tokens.word == "|" and len(names) == 1):
            tokens.take()
        names.append(word(tokens, "the name of a parent"))
    tokens.take()
    if len({*names}) != len(names):
        raise wrong(line, "a table names a variable twice")
    block = Block(tuple(names), line)
    tokens.require("{")
    while tokens.word != "}":
        if tokens.word == "property":
            skip_property(tokens)
        else:
            _read_entry(tokens, block)
    tokens.take()
    return block


def _read_entry(tokens: Tokens, block: Block) -> None:
    line = tokens.line
    if tokens.word == "(":
        tokens.take()
        labels = _listed(tokens, ")", "a label")
        if labels in block.rows:
            raise wrong(line, f"the row ({', '.join(labels)}) appears twice")
        block.rows[labels] = (_numbers(tokens), line)
    elif tokens.word == "default" and block.default is None:
        tokens.take()
        block.default = (_numbers(tokens), line)
    elif tokens.word == "table" and block.table is None:
        tokens.take()
        block.table = (_numbers(tokens), line)
    else:
        raise tokens.unexpected("a row such as (a, b) 0.3, 0.7; or '}'")


def _listed(tokens: Tokens, end: str, what: str) -> tuple[str, ...]:
    """Read one word or more up to the bracket that ends their list, with commas or without."""
    listed = [word(tokens, what)]
    while tokens.word != end:
        if tokens.word == ",":
            tokens.take()
        listed.append(word(tokens, what))
    tokens.take()
    return tuple(listed)


def _numbers(tokens: Tokens) -> list[float]:
    numbers: list[float] = []
    while tokens.word != ";":
        if numbers and tokens.word == ",":
            tokens.take()
        line = tokens.line
        numbers.append(to_potential(word(tokens, "a probability"), line, "a probability"))
    tokens.take()
    return numbers


def _table_of(block: Block, variables: Mapping[str, Variable], budget: int) -> Floats:
    """Return log p(child | parents): the child's axis first, axes of one level left out."""
    for name in block.names:
        if name not in variables:
            raise wrong(block.line, f"there is no variable {quote(name)}")
    child, *parents = (variables[name] for name in block.names)
    n_cells = len(child.levels)
    for parent in parents:
        n_cells *= len(parent.levels)
        if n_cells > budget:
            raise wrong(block.line, f"the table of {quote(child.name)} is too large for a file of this size")
    if block.table is None:
        table = _given_rows(block, child, parents)
    elif block.rows or block.default:
        raise wrong(block.table[1], "there are rows beside a whole table")
    else:
        table = _given_table(block.table, child, n_cells)
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    return logs.reshape([len(one.levels) for one in (child, *parents) if len(one.levels) > 1])


def _given_table(given: Numbers, child: Variable, n_cells: int) -> Floats:
    numbers, line = given
    if len(numbers) != n_cells:
        raise wrong(line, f"there should be {n_cells:,} probabilities, not {len(numbers):,}")
    size = len(child.levels)
    # The format counts the last variable fastest, and the child is the first.
    table = np.array(numbers).reshape(size, -1)
    for_child_last = np.array(numbers).reshape(-1, size).T
    if not _sums_to_one(table):
        raise wrong(line, f"the probabilities of {quote(child.name)} do not sum to 1 for each of its parents")
    if _sums_to_one(for_child_last) and not np.array_equal(table, for_child_last):
        # Programs disagree about the order, and here the sums do not tell which was meant.
        raise wrong(line, "the order of the table is ambiguous; give rows by labels")
    shares: Floats = table / table.sum(axis=0)
    return shares


def _sums_to_one(table: Floats) -> bool:
    return bool((np.abs(table.sum(axis=0) - 1) <= TOLERANCE).all())


def _given_rows(block: Block, child: Variable, parents: list[Variable]) -> Floats:
    sizes = [len(parent.levels) for parent in parents]
    wide = [size for size in sizes if size > 1]
    table = np.full((len(child.levels), *wide), np.nan)
    if block.default is not None:
        table[:] = np.reshape(_checked(block.default, child), (-1, *(1 for _ in wide)))
    by_parents = np.moveaxis(table, 0, -1)
    codes = [{label: code for code, label in enumerate(parent.levels)} for parent in parents]
    for labels, row in block.rows.items():
        if len(labels) != len(parents):
            raise wrong(row[1], f"the row names {len(labels)} labels for {len(parents)} parents")
        for label, known, parent in zip(labels, codes, parents, strict=True):
            if label not in known:
                raise wrong(row[1], f"{quote(label)} is not a level of {quote(parent.name)}")
        levels: list[int] = [
            known[label] for label, known, size in zip(labels, codes, sizes, strict=True) if size > 1
        ]
        by_parents[tuple(levels)] = _checked(row, child)
    if np.isnan(table).any():
        raise wrong(block.line, f"the table of {quote(child.name)} has no row for some labels of its parents")
    return table


def _checked(row: Numbers, child: Variable) -> Floats:
    numbers, line = row
    if len(numbers) != len(child.levels):
        raise wrong(line, f"there should be {len(child.levels):,} probabilities, not {len(numbers):,}")
    total = fsum(numbers)
    if abs(total - 1) > TOLERANCE:
        raise wrong(line, f"the probabilities sum to {total:.6g}, not to 1")
    return np.array(numbers) / total


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
        keyword = tokens.require("network", "variable", "probability")
        if keyword == "network":
            _skip_network(tokens)
        elif keyword == "variable":
            variable, properties = _variable(tokens)
            if variable.name in variables:
                raise wrong(line, f"variable {quote(variable.name)} appears twice")
            variables[variable.name] = variable
            named[variable.name] = _named(variable, properties, line)
        else:
            block = read_block(tokens)
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
    tokens.require(";")


def _skip_network(tokens: Tokens) -> None:
    word(tokens, "the name of the network")
    tokens.require("{")
    while tokens.word != "}":
        if tokens.word != "property":
            raise tokens.unexpected("a property or '}'")
        skip_property(tokens)
    tokens.take()


def _variable(tokens: Tokens) -> tuple[Variable, dict[str, str]]:
    name = word(tokens, "the name of a variable")
    tokens.require("{")
    levels: tuple[str, ...] | None = None
    properties: dict[str, str] = {}
    while tokens.word != "}":
        if tokens.word == "property":
            begin = tokens.offset
            skip_property(tokens)
            if own := OWN_PROPERTY.match(tokens.text, begin):
                properties[own[1]] = own[2]
        elif levels is None:
            tokens.require("type")
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
    with refused_in(line):
        return Variable(name, levels, kind, properties.get("ordered") == "true", cuts)


def _levels(tokens: Tokens) -> tuple[str, ...]:
    tokens.require("discrete")
    tokens.require("[")
    line = tokens.line
    size = to_count(word(tokens, "a number of levels"), line, "a number of levels")
    tokens.require("]")
    tokens.require("{")
    line = tokens.line
    levels = _listed(tokens, "}", "a level")
    tokens.require(";")
    if len(levels) != size:
        raise wrong(line, f"there should be {size:,} levels, not {len(levels):,}")
    if len({*levels}) != size or size > MAX_LEVELS:
        raise wrong(line, "a level appears twice, or there are too many")
    return levels


def _network(
    variables: dict[str, Variable], blocks: dict[str, Block], tokens: Tokens, named: dict[str, Variable]
) -> BayesianNetwork:
    position_of = {name: position for position, name in enumerate(variables)}
    for name in variables:
        if name not in blocks:
            raise wrong(tokens.line, f"there is no table for variable {quote(name)}")
    budget = FEW_CELLS + CELLS_PER_CHARACTER * len(tokens.text)
    tables = []
    for block in blocks.values():
        table = _table_of(block, variables, budget)
        budget -= table.size
        scope = [position_of[name] for name in block.names if len(variables[name].levels) > 1]
        tables.append((tuple(sorted(scope)), table.transpose(np.argsort(scope))))
    parents = {name: blocks[name].names[1:] for name in variables}
    _check_no_cycle(parents, blocks)
    above = {named[name].name: tuple(named[one].name for one in names) for name, names in parents.items()}
    return BayesianNetwork(model_of_tables(Domain(tuple(named.values())), tables), above)


def _check_no_cycle(parents: dict[str, tuple[str, ...]], blocks: dict[str, Block]) -> None:
    sorter, waiting = TopologicalSorter(parents), set(parents)
    with suppress(CycleError):
        sorter.prepare()
    # What comes before the cycles is found nevertheless.
    while ready := sorter.get_ready():
        waiting.difference_update(ready)
        sorter.done(*ready)
    if waiting:
        name = min(waiting, key=lambda one: blocks[one].line)
        raise wrong(blocks[name].line, f"{quote(name)} is among its own ancestors or their descendants")


class Conditional(NamedTuple):
    """P(child | parents): positions of variables, and a table whose last axis is the child's."""

    child: int
    parents: Scope
    table: Floats


def write_bif(model: LogLinearModel, path: PathLike, at_most: int = MOST_CELLS) -> None:
    """Write a .bif file with the same joint distribution; more than `at_most` probabilities are refused."""
    write_text(path, bif_text(model, at_most))


def bif_text(model: LogLinearModel, at_most: int = MOST_CELLS) -> str:
    """Return a BIF file: variables in the order of the model, then one conditional table for each.

    Names and labels that other programs could not read are replaced, and properties of the variable keep the
    true ones: `read_bif` takes them from there. What is possible stays so: a probability below the smallest
    double is written as that.
    """
    if not len(model.domain):
        raise SettingError("A model without variables has no .bif file; keep it as .unless or .json.")
    names = _distinct(model.domain.names, PLAIN_NAME, "v")
    labels = [_distinct(variable.levels, PLAIN_LABEL, "l") for variable in model.domain]
    lines = ["network unless {", "}"]
    for variable, name, words in zip(model.domain, names, labels, strict=True):
        lines += _variable_lines(variable, name, words)
    conditionals = {one.child: one for one in factorised(model, at_most)}
    for position in range(len(model.domain)):
        lines += _table_lines(conditionals[position], names, labels)
    return "\n".join([*lines, ""])


def factorised(model: LogLinearModel, at_most: int = MOST_CELLS) -> Iterator[Conditional]:
    """Give P(child | parents) for every variable, children before their parents.

    The size of all tables is found before the first is made.
    """
    domain = model.domain
    sizes = domain.n_levels.tolist()
    grouped = by_scope(model)
    steps = _steps(model, grouped)
    _check_size(domain, steps, at_most)
    pending: dict[int, list[tuple[Scope, Floats]]] = {position: [] for position in range(len(sizes))}
    when = {variable: step for step, (variable, _) in enumerate(steps)}
    for scope, features in grouped.items():
        first = min(scope, key=when.__getitem__)
        pending[first].append((scope, log_table(scope, features, domain.n_levels)))
    for variable, parents in steps:
        axes = (*parents, variable)
        logs = np.zeros([sizes[axis] for axis in axes])
        for scope, table in pending.pop(variable):
            logs += _spread(table, scope, axes)
        highest = logs.max(axis=-1, keepdims=True)
        scaled = np.exp(logs - np.where(np.isneginf(highest), 0.0, highest))
        total = scaled.sum(axis=-1, keepdims=True)
        # Parents that are impossible together may have any child.
        never = total == 0
        shares = np.where(never, 1.0 / sizes[variable], scaled / np.where(never, 1.0, total))
        shares[~np.isneginf(logs) & (shares < LEAST)] = LEAST
        with np.errstate(divide="ignore"):
            message = (highest + np.log(total))[..., 0]
        if parents:
            pending[min(parents, key=when.__getitem__)].append((parents, message))
        elif np.isneginf(message):
            raise impossible(model.domain, {})
        yield Conditional(variable, parents, shares)


def _steps(model: LogLinearModel, scopes: Iterable[Scope]) -> list[tuple[int, Scope]]:
    """Return the variables in the order of their elimination, each with the neighbours it then has."""
    from unless.inference.exact import Conjunctions
    from unless.kernels.graphs import eliminate

    levels = model.domain.n_levels
    near: list[set[int]] = [set() for _ in range(len(levels))]
    for scope in scopes:
        for variable in scope:
            near[variable].update(scope)
    with plain_if_small(float(len(levels)) ** 3 + model.n_steps):
        order = eliminate(*Conjunctions.of(model.plain[0]), np.log(levels))[0]
    steps: list[tuple[int, Scope]] = []
    for variable in order.tolist():
        left = near[variable] - {variable}
        for other in left:
            near[other] |= left
            near[other].discard(variable)
        steps.append((variable, tuple(sorted(left))))
    return steps


def _check_size(domain: Domain, steps: list[tuple[int, Scope]], at_most: int) -> None:
    sizes = domain.n_levels.tolist()
    n_cells = [prod(sizes[axis] for axis in (variable, *parents)) for variable, parents in steps]
    total = sum(n_cells)
    if total <= at_most:
        return
    widest, parents = steps[n_cells.index(max(n_cells))]
    shown = f"{total:,}" if total < 10**15 else f"about 10^{total.bit_length() * 0.30103:.0f}"
    memory = f", about {show_memory(float(BYTES_PER_CELL * total))}" if total < 10**15 else ""
    raise TooLarge(
        f"As a directed network the model has {shown} probabilities{memory}, more than {at_most:,} "
        f"({domain.names[widest]!r} would have {len(parents)} parents); keep the model in a format of "
        "features: .unless, .mn or .json."
    )


def _spread(table: Floats, scope: Scope, axes: Scope) -> Floats:
    """Give a table the axes of a larger one, of length 1 where it has none."""
    ordered = sorted(scope, key=axes.index)
    moved = table.transpose([scope.index(variable) for variable in ordered])
    lengths = dict(zip(ordered, moved.shape, strict=True))
    return moved.reshape([lengths.get(axis, 1) for axis in axes])


def _variable_lines(variable: Variable, name: str, words: list[str]) -> list[str]:
    lines = [f"variable {name} {{", f"  type discrete [ {len(words)} ] {{ {', '.join(words)} }};"]
    if name != variable.name:
        lines.append(f"  property unless_name = {_encoded(variable.name)} ;")
    if words != list(variable.levels):
        lines.append(f"  property unless_levels = {','.join(map(_encoded, variable.levels))} ;")
    if variable.kind != "text":
        lines.append(f"  property unless_kind = {variable.kind} ;")
    if variable.ordered:
        lines.append("  property unless_ordered = true ;")
    if variable.cuts:
        lines.append(f"  property unless_cuts = {','.join(map(repr, map(float, variable.cuts)))} ;")
    return [*lines, "}"]


def _table_lines(one: Conditional, names: list[str], labels: list[list[str]]) -> list[str]:
    rows = [", ".join(map(repr, row)) for row in one.table.reshape(-1, one.table.shape[-1]).tolist()]
    if not one.parents:
        return [f"probability ( {names[one.child]} ) {{", f"  table {rows[0]};", "}"]
    above = ", ".join(names[parent] for parent in one.parents)
    states = product(*(labels[parent] for parent in one.parents))
    written = [f"  ({', '.join(state)}) {row};" for state, row in zip(states, rows, strict=True)]
    return [f"probability ( {names[one.child]} | {above} ) {{", *written, "}"]


def _distinct(words: Iterable[str], pattern: re.Pattern[str], letter: str) -> list[str]:
    """Return words that are plain and differ: those that are plain already stay as they are."""
    taken = {word for word in words if pattern.fullmatch(word) and word not in KEYWORDS}
    made: list[str] = []
    for word in words:
        plain = word
        if word not in taken:
            stem = re.sub(r"[^A-Za-z0-9]+", "_", word).strip("_")
            if stem in KEYWORDS or not re.match("[A-Za-z]", stem):
                stem = f"{letter}_{stem}".strip("_")
            plain, number = stem, 2
            while plain in taken:
                plain, number = f"{stem}_{number}", number + 1
            taken.add(plain)
        made.append(plain)
    return made


def _encoded(word: str) -> str:
    with valid_unicode():
        return percent_encoded(word, safe="")
