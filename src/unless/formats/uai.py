"""Networks of tables as the UAI competitions keep them."""

import re
from math import exp, inf, log

import numpy as np

from unless.data.domain import MAX_LEVELS
from unless.errors import SettingError
from unless.formats.gather import MOST_CELLS, Scope, factors_of, model_of_tables
from unless.formats.json_model import read_with_names, write_with_names
from unless.formats.text import MOST_NAMELESS_LEVELS, PathLike, Tokens, to_count, to_potential, wrong
from unless.inference.model import LogLinearModel
from unless.inference.potentials import FAR, LEAST
from unless.typing import Floats

TOKEN = re.compile(r"[ \t\n]+|([^ \t\n]+)")


def read_uai(path: PathLike) -> LogLinearModel:
    """Read a .uai file, MARKOV or BAYES, with the names that lie beside it.

    Each cell of a table becomes an indicator whose weight is the log of its potential.
    """
    return read_with_names(path, parse_uai, model_of_tables)


def write_uai(model: LogLinearModel, path: PathLike, at_most: int = MOST_CELLS) -> None:
    """Write a .uai file of one table a scope, and its names beside it."""
    write_with_names(path, uai_text(model, at_most), model.domain)


def uai_text(model: LogLinearModel, at_most: int = MOST_CELLS) -> str:
    """Return a .uai file; more than `at_most` cells are refused.

    What is possible stays so: a cell below the smallest double is written as that.
    """
    if not len(model.domain):
        raise SettingError("A model without variables has no .uai file; keep it as .unless or .json.")
    factors = factors_of(model, at_most)
    sizes = model.domain.n_levels.tolist()
    lines = ["MARKOV", str(len(sizes)), " ".join(map(str, sizes)), str(len(factors))]
    # Some readers take scopes for sorted from the last variable to the first, so they are.
    lines += [" ".join(map(str, (len(scope), *reversed(scope)))) for scope in factors]
    for table in factors.values():
        lines += ["", str(table.size), " ".join(map(repr, potentials(table.T)))]
    return "\n".join([*lines, ""])


def potentials(log_table: Floats) -> list[float]:
    """Return the potentials of a table, row by row, such that reading and writing them changes nothing."""
    weights = log_table.ravel().tolist()
    largest = max(weights, default=0.0)
    if largest > -inf and abs(log(_potential(min(largest, FAR + 1)))) > FAR:
        weights = [weight - largest for weight in weights]
    return [_potential(weight) for weight in weights]


def _potential(weight: float) -> float:
    if weight == -inf:
        return 0.0
    # The log of exp(w) is not always w, but soon it settles.
    value = max(exp(weight), LEAST)
    for _ in range(64):
        again = max(exp(log(value)), LEAST)
        if again == value:
            break
        value = again
    return value


def parse_uai(text: str) -> tuple[list[int], list[tuple[Scope, Floats]]]:
    """Read the numbers of levels and the tables of log potentials, axes in the order of the variables."""
    tokens = Tokens(TOKEN, text)
    tokens.require("MARKOV", "BAYES")
    n_variables = _count(tokens, "a number of variables")
    sizes: list[int] = []
    n_levels = 0
    for _ in range(n_variables):
        line = tokens.line
        sizes.append(_count(tokens, "a number of levels"))
        n_levels += sizes[-1]
        if sizes[-1] > MAX_LEVELS:
            raise wrong(line, f"a variable has more than {MAX_LEVELS:,} levels")
        if not sizes[-1] or n_levels > MOST_NAMELESS_LEVELS:
            raise wrong(line, f"a variable has no levels, or all more than {MOST_NAMELESS_LEVELS:,} together")
    n_tables = _count(tokens, "a number of tables")
    scopes: list[list[int]] = []
    for _ in range(n_tables):
        scopes.append(_scope(tokens, n_variables))
    tables = [_table(tokens, scope, sizes) for scope in scopes]
    if tokens.word:
        raise tokens.unexpected("the end of the file")
    return sizes, tables


def _count(tokens: Tokens, what: str) -> int:
    if not tokens.word:
        raise tokens.unexpected(what)
    line = tokens.line
    return to_count(tokens.take(), line, what)


def _scope(tokens: Tokens, n_variables: int) -> list[int]:
    line = tokens.line
    scope: list[int] = []
    for _ in range(_count(tokens, "a number of variables in a table")):
        line = tokens.line
        scope.append(_count(tokens, "the number of a variable"))
        if scope[-1] >= n_variables:
            raise wrong(line, f"there is no variable {scope[-1]}; the last is {n_variables - 1}")
    if len({*scope}) != len(scope):
        raise wrong(line, "a table names a variable twice")
    return scope


def _table(tokens: Tokens, scope: list[int], sizes: list[int]) -> tuple[Scope, Floats]:
    line = tokens.line
    n_cells = _count(tokens, "the size of a table")
    expected = 1
    for variable in scope:
        expected *= sizes[variable]
        if expected > len(tokens.text):
            raise wrong(line, "the table is larger than the file")
    if n_cells != expected:
        raise wrong(line, f"the table should have {expected:,} cells, not {n_cells:,}")
    logs = np.empty(n_cells)
    for cell in range(n_cells):
        if not tokens.word:
            raise tokens.unexpected("a potential")
        line = tokens.line
        value = to_potential(tokens.take(), line, "a potential")
        logs[cell] = log(value) if value else -inf
    # An axis of one level says nothing, and numpy counts no more than 64 of them.
    shown = [variable for variable in scope if sizes[variable] > 1]
    if not shown and logs[0] == -inf:
        raise wrong(line, "a table of one cell is zero, so nothing is possible")
    table = logs.reshape([sizes[variable] for variable in shown])
    return tuple(sorted(shown)), table.transpose(np.argsort(shown))
