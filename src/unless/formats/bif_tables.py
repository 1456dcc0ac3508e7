"""The conditional tables of a BIF file: which number belongs to which labels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import fsum

import numpy as np

from unless.data.domain import Variable
from unless.formats.gather import Floats
from unless.formats.text import quote, to_potential, wrong
from unless.formats.tokens import Tokens

# Published tables are rounded, some to three digits.
TOLERANCE = 2e-3
Numbers = tuple[list[float], int]


@dataclass
class Block:
    """One `probability` block as written: the child, its parents, and rows with their lines."""

    names: tuple[str, ...]
    line: int
    rows: dict[tuple[str, ...], Numbers] = field(default_factory=dict)
    default: Numbers | None = None
    table: Numbers | None = None


def read_block(
    tokens: Tokens, word: Callable[[Tokens, str], str], skip_property: Callable[[Tokens], None]
) -> Block:
    """Read what follows the word `probability`."""
    line = tokens.line
    tokens.expect("(")
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
    tokens.expect("{")
    while tokens.word != "}":
        if tokens.word == "property":
            skip_property(tokens)
        else:
            _read_entry(tokens, block, word)
    tokens.take()
    return block


def _read_entry(tokens: Tokens, block: Block, word: Callable[[Tokens, str], str]) -> None:
    line = tokens.line
    if tokens.word == "(":
        labels = _labels(tokens, word)
        if labels in block.rows:
            raise wrong(line, f"the row ({', '.join(labels)}) appears twice")
        block.rows[labels] = (_numbers(tokens, word), line)
    elif tokens.word == "default" and block.default is None:
        tokens.take()
        block.default = (_numbers(tokens, word), line)
    elif tokens.word == "table" and block.table is None:
        tokens.take()
        block.table = (_numbers(tokens, word), line)
    else:
        raise tokens.unexpected("a row such as (a, b) 0.3, 0.7; or '}'")


def _labels(tokens: Tokens, word: Callable[[Tokens, str], str]) -> tuple[str, ...]:
    tokens.expect("(")
    labels = [word(tokens, "a label")]
    while tokens.word != ")":
        if tokens.word == ",":
            tokens.take()
        labels.append(word(tokens, "a label"))
    tokens.take()
    return tuple(labels)


def _numbers(tokens: Tokens, word: Callable[[Tokens, str], str]) -> list[float]:
    numbers: list[float] = []
    while tokens.word != ";":
        if numbers and tokens.word == ",":
            tokens.take()
        line = tokens.line
        numbers.append(to_potential(word(tokens, "a probability"), line, "a probability"))
    tokens.take()
    return numbers


def log_table(block: Block, variables: Mapping[str, Variable], budget: int) -> Floats:
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
        place: list[int] = [
            known[label] for label, known, size in zip(labels, codes, sizes, strict=True) if size > 1
        ]
        by_parents[tuple(place)] = _checked(row, child)
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
