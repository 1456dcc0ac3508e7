"""Markov networks as Libra's .mn files keep them."""

import re
from collections.abc import Iterator

from unless.data.domain import MAX_LEVELS, Domain
from unless.errors import SettingError
from unless.formats.gather import Piece, model_of_pieces
from unless.formats.names import domain_beside, write_with_names
from unless.formats.text import (
    COUNT,
    MOST_NAMELESS_LEVELS,
    PathLike,
    about,
    is_weight,
    quote,
    read_text,
    to_count,
    to_weight,
    wrong,
)
from unless.formats.tokens import Tokens
from unless.inference.model import LogLinearModel
from unless.structures.conditions import Literal

TOKEN = re.compile(r"[ \t]+|(?:#|//)[^\n]*|(\n|[{}()]|[^ \t\n{}()]+)")
CONDITION = re.compile(r"([+-])v([0-9]{1,9})_([0-9]{1,9})")
SPLIT = re.compile(r"v([0-9]{1,9})_([0-9]{1,9})")
# The leaves of a tree repeat the conditions above them: a deep enough tree would fill any memory.
CONDITIONS_PER_CHARACTER = 8
FEW_CONDITIONS = 100_000


def read_mn(path: PathLike) -> LogLinearModel:
    """Read a .mn file, with the names that lie beside it."""
    with about(path):
        sizes, pieces = parse_mn(read_text(path))
    domain = domain_beside(path, sizes)
    with about(path):
        return model_of_pieces(domain, pieces)


def write_mn(model: LogLinearModel, path: PathLike) -> None:
    """Write a .mn file, and its names beside it."""
    write_with_names(path, mn_text(model), model.domain)


def mn_text(model: LogLinearModel) -> str:
    """Return a .mn file of feature lines, in the order of the model."""
    if not len(model.domain):
        raise SettingError("A model without variables has no .mn file; keep it as .unless or .json.")
    lines = [schema_text(model.domain), "MN {"]
    for literals, weight in zip(model.features.arrays.literals(), model.weights.tolist(), strict=True):
        conditions = (f"{'-+'[equal]}v{variable}_{level}" for variable, level, equal in literals)
        lines.append(" ".join((repr(weight), *conditions)))
    return "\n".join([*lines, "}", ""])


def schema_text(domain: Domain) -> str:
    """Return the line of numbers of levels that begins a .mn file and is a .schema file."""
    return ",".join(map(str, domain.n_levels.tolist()))


def parse_schema(line: str, number: int) -> list[int]:
    """Read a line of numbers of levels."""
    sizes = [to_count(word.strip(), number, "a number of levels") for word in line.split(",")]
    if 0 in sizes:
        raise wrong(number, f"variable v{sizes.index(0)} has no levels")
    if max(sizes) > MAX_LEVELS:
        raise wrong(number, f"variable v{sizes.index(max(sizes))} has more than {MAX_LEVELS:,} levels")
    if sum(sizes) > MOST_NAMELESS_LEVELS:
        raise wrong(number, f"the variables have more than {MOST_NAMELESS_LEVELS:,} levels together")
    return sizes


def parse_mn(text: str) -> tuple[list[int], list[Piece]]:
    """Read the numbers of levels and the features, trees and tables turned into features.

    Weights are logs of potentials everywhere. A feature may be preceded by the number of the weight it
    shares, and lines such as "w 3 0.5" may list those; Libra reads no meaning into either, nor is it done
    here. "#" and "//" begin comments.
    """
    tokens = Tokens(TOKEN, text)
    _skip_lines(tokens)
    line, words = tokens.line, []
    while tokens.word not in ("\n", ""):
        words.append(tokens.take())
    sizes = parse_schema(" ".join(words), line)
    _skip_lines(tokens)
    if tokens.word.lower() != "mn":
        raise tokens.unexpected("'MN {'")
    tokens.take()
    _skip_lines(tokens)
    tokens.expect("{")
    pieces = list(_contents(tokens, sizes))
    _skip_lines(tokens)
    if tokens.word:
        raise tokens.unexpected("the end of the file")
    return sizes, pieces


def _contents(tokens: Tokens, sizes: list[int]) -> Iterator[Piece]:
    budget = FEW_CONDITIONS + CONDITIONS_PER_CHARACTER * len(tokens.text)
    while True:
        _skip_lines(tokens)
        word = tokens.word.lower()
        if word == "}":
            tokens.take()
            return
        if word in ("features", "table", "tree"):
            tokens.take()
            tokens.expect("{")
        if word == "features":
            yield from _features(tokens, sizes)
        elif word == "table":
            yield from _table(tokens, sizes)
        elif word == "tree":
            for piece in _tree(tokens, sizes):
                budget -= len(piece[0])
                if budget < 0:
                    raise wrong(piece[2], "the trees are too deep for a file of this size")
                yield piece
        elif word == "w":
            _shared_weight(tokens)
        else:
            yield _feature(tokens, sizes)


def _shared_weight(tokens: Tokens) -> None:
    tokens.take()
    line, what = tokens.line, "the number of a shared weight"
    to_count(tokens.take(), line, what)
    line = tokens.line
    to_weight(tokens.take(), line)
    if tokens.word not in ("\n", "}"):
        raise tokens.unexpected("the end of the line")


def _skip_lines(tokens: Tokens) -> None:
    while tokens.word == "\n":
        tokens.take()


def _features(tokens: Tokens, sizes: list[int]) -> Iterator[Piece]:
    while True:
        _skip_lines(tokens)
        if tokens.word == "}":
            tokens.take()
            return
        yield _feature(tokens, sizes)


def _table(tokens: Tokens, sizes: list[int]) -> Iterator[Piece]:
    rows: set[frozenset[Literal]] = set()
    for piece in _features(tokens, sizes):
        row = frozenset(piece[0])
        if row in rows:
            # Whether the second value replaces the first or is added to it, nobody has said.
            raise wrong(piece[2], "a row of the table appears twice")
        rows.add(row)
        yield piece


def _feature(tokens: Tokens, sizes: list[int]) -> Piece:
    line = tokens.line
    if tokens.word in ("", "{", "(", ")"):
        raise tokens.unexpected("a feature or '}'")
    words = [tokens.take()]
    while tokens.word not in ("\n", "", "{", "}", "(", ")"):
        words.append(tokens.take())
    # A whole number before a weight is the number of a shared one; before anything else it is the weight.
    if COUNT.fullmatch(words[0]) and len(words) > 1 and is_weight(words[1]):
        del words[0]
    weight = to_weight(words[0], line)
    return tuple(_condition(word, sizes, line) for word in words[1:]), weight, line


def _condition(word: str, sizes: list[int], line: int) -> Literal:
    match = CONDITION.fullmatch(word)
    if not match:
        raise wrong(line, f"{quote(word)} is not a condition such as +v0_1 or -v0_1")
    return (*_level(match[2], match[3], sizes, line), match[1] == "+")


def _level(variable: str, level: str, sizes: list[int], line: int) -> tuple[int, int]:
    if int(variable) >= len(sizes):
        raise wrong(line, f"there is no variable v{variable}; the last is v{len(sizes) - 1}")
    if int(level) >= sizes[int(variable)]:
        raise wrong(line, f"v{variable} has no level {level}; the last is {sizes[int(variable)] - 1}")
    return int(variable), int(level)


def _tree(tokens: Tokens, sizes: list[int]) -> Iterator[Piece]:
    # Questions that lead to the leaf, the last element telling whether the answer is yes.
    path: list[Literal] = []
    while True:
        _skip_lines(tokens)
        line = tokens.line
        if tokens.word == "(":
            tokens.take()
            path.append((*_split(tokens, sizes), True))
            continue
        if tokens.word in ("", ")", "{", "}"):
            raise tokens.unexpected("a weight or '('")
        yield tuple(path), to_weight(tokens.take(), line), line
        if not _turn(tokens, path):
            break
    _skip_lines(tokens)
    tokens.expect("}")


def _split(tokens: Tokens, sizes: list[int]) -> tuple[int, int]:
    _skip_lines(tokens)
    match = SPLIT.fullmatch(tokens.word)
    if not match:
        raise tokens.unexpected("a split such as v0_1")
    level = _level(match[1], match[2], sizes, tokens.line)
    tokens.take()
    return level


def _turn(tokens: Tokens, path: list[Literal]) -> bool:
    """Go from a leaf to the next branch, closing what is complete; tells whether there is one."""
    while path:
        variable, level, is_first = path.pop()
        if is_first:
            path.append((variable, level, False))
            return True
        _skip_lines(tokens)
        tokens.expect(")")
    return False
