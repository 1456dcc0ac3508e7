"""Models written as BIF files: a directed network with the same joint distribution.

A log-linear model has no arrows. It gets them by eliminating one variable after the other: the tables that
name the variable are multiplied, and their product is P(variable | its remaining neighbours) times a table of
those neighbours, which stays. Each variable has the neighbours it was eliminated before as its parents. The
product of all these conditional tables is the distribution of the model, exactly.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import product
from math import prod
from typing import NamedTuple
from urllib.parse import quote as percent_encoded

import numpy as np

from unless.data.domain import Domain, Variable
from unless.errors import SettingError, TooLarge
from unless.formats.factors import MOST_CELLS
from unless.formats.gather import Floats, Scope
from unless.formats.text import PathLike, write_text
from unless.inference.model import LogLinearModel
from unless.inference.potentials import LEAST, by_scope, log_table
from unless.inference.results import impossible
from unless.runtime.memory import show_memory

# What pgmpy, pyAgrum and bnlearn all read as one word.
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PLAIN_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
KEYWORDS = frozenset(
    ("network", "variable", "probability", "property", "type", "discrete", "table", "default")
)
# A number takes about this many letters, and as much again while the text is put together.
BYTES_PER_CELL = 80


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
    names = _distinct(
        (variable.name if _is_plain_name(variable.name) else None, variable.name, "v")
        for variable in model.domain
    )
    labels = [_labels(variable) for variable in model.domain]
    lines = ["network unless {", "}"]
    for variable, name, words in zip(model.domain, names, labels, strict=True):
        lines += _variable_lines(variable, name, words)
    conditionals = {one.child: one for one in factorised(model, at_most)}
    for place in range(len(model.domain)):
        lines += _table_lines(conditionals[place], names, labels)
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
    waiting: dict[int, list[tuple[Scope, Floats]]] = {place: [] for place in range(len(sizes))}
    when = {variable: step for step, (variable, _) in enumerate(steps)}
    for scope, features in grouped.items():
        first = min(scope, key=when.__getitem__)
        waiting[first].append((scope, log_table(scope, features, domain.n_levels)))
    for variable, parents in steps:
        axes = (*parents, variable)
        logs = np.zeros([sizes[axis] for axis in axes])
        for scope, table in waiting.pop(variable):
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
            waiting[min(parents, key=when.__getitem__)].append((parents, message))
        elif np.isneginf(message):
            raise impossible(model.domain, {})
        yield Conditional(variable, parents, shares)


def _steps(model: LogLinearModel, scopes: Iterable[Scope]) -> list[tuple[int, Scope]]:
    """Return the variables in the order of their elimination, each with the neighbours it then has."""
    from unless.inference.exact import Conjunctions
    from unless.kernels.elimination import eliminate

    levels = model.domain.n_levels
    near: list[set[int]] = [set() for _ in range(len(levels))]
    for scope in scopes:
        for variable in scope:
            near[variable].update(scope)
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


def _labels(variable: Variable) -> list[str]:
    return _distinct(
        (label if PLAIN_LABEL.fullmatch(label) and label not in KEYWORDS else None, label, "l")
        for label in variable.levels
    )


def _is_plain_name(name: str) -> bool:
    return PLAIN_NAME.fullmatch(name) is not None and name not in KEYWORDS


def _distinct(words: Iterable[tuple[str | None, str, str]]) -> list[str]:
    """Return words that are plain and differ: those that are plain already stay as they are."""
    asked = list(words)
    taken = {plain for plain, _, _ in asked if plain is not None}
    made: list[str] = []
    for plain, word, letter in asked:
        if plain is None:
            stem = re.sub(r"[^A-Za-z0-9]+", "_", word).strip("_")
            stem = (
                stem if re.match("[A-Za-z]", stem) and stem not in KEYWORDS else f"{letter}_{stem}".strip("_")
            )
            plain, number = stem, 2
            while plain in taken:
                plain, number = f"{stem}_{number}", number + 1
            taken.add(plain)
        made.append(plain)
    return made


def _encoded(word: str) -> str:
    try:
        return percent_encoded(word, safe="")
    except UnicodeEncodeError:
        raise SettingError("A name or label is not valid Unicode text; rename it before saving.") from None
