"""Learn canonical graphs of a small domain from the dense cube of all its partial assignments.

Each variable is a digit of a mixed radix: its level, or one more for "any". Every table is then a few loads, and a
question is named exactly by its pair and the position of its conditions.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.answers import DEPENDENT, INDEPENDENT, UNDECIDED, decide
from unless.kernels.compiling import compiled, inlined

_ONE = np.uint64(1)


class Cube(NamedTuple):
    """Counts of all partial assignments."""

    counts: Any  # int64 (cells,)
    strides: Any  # int64 (variables,)
    n_levels: Any  # int64 (variables,)


class _Desk(NamedTuple):
    answers: Any  # uint8 (pairs * cells,): what was asked already
    cells: Any
    totals: Any
    columns: Any


@inlined
def read_table(cube, base, a, b, cells, totals):
    """Load the table of a against b at the position `base`, where both are "any"; returns the rows used."""
    n_a, n_b = cube.n_levels[a], cube.n_levels[b]
    corner = base - n_a * cube.strides[a] - n_b * cube.strides[b]
    total = 0
    for i in range(n_a):
        row = 0
        for j in range(n_b):
            value = cube.counts[corner + i * cube.strides[a] + j * cube.strides[b]]
            cells[i * n_b + j] = value
            row += value
        totals[i] = row
        total += row
    return total


@inlined
def _ask(a, b, base, cube, rules, desk):
    """Answer a question and tell whether it is new."""
    n = cube.strides.shape[0]
    low, high = min(a, b), max(a, b)
    place = (low * (2 * n - low - 1) // 2 + high - low - 1) * cube.counts.shape[0] + base
    answer = np.int64(desk.answers[place])
    if answer:
        return answer, 0
    total = read_table(cube, base, low, high, desk.cells, desk.totals)
    answer = decide(desk.cells, cube.n_levels[low], cube.n_levels[high], desk.totals, desk.columns, total, rules)
    desk.answers[place] = answer
    return answer, 1


@inlined
def _step(cube, row, variable):
    """How far the position moves when "any" becomes the context's own level."""
    return (np.int64(row[variable]) - cube.n_levels[variable]) * cube.strides[variable]


@compiled
def grow_shrink_rows(rows, graphs, cube, rules, shared, answers):
    """Run Algorithm 2 in one context after the other, or blanket by blanket if they are not shared.

    `graphs` (contexts, variables, variables) holds the initial blankets and receives the learned ones; returns the
    number of questions asked and of distinct ones.
    """
    n = cube.strides.shape[0]
    most = cube.n_levels.max()
    desk = _Desk(
        answers,
        np.empty(most * most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
    )
    anywhere = 0
    for variable in range(n):
        anywhere += cube.n_levels[variable] * cube.strides[variable]
    n_asked, n_new = 0, 0
    for context in range(rows.shape[0]):
        row = rows[context]
        graph = graphs[context]
        for node in range(n):
            blanket = graph[node]
            base, size = anywhere, 0
            for other in range(n):
                if blanket[other]:
                    base += _step(cube, row, other)
                    size += 1
            for other in range(n):
                if size >= rules.max_blanket:
                    break
                # A variable added in this loop lies behind it, so what is held now was held before.
                if other == node or blanket[other] or _forbids(rules, node, other):
                    continue
                answer, new = _ask(node, other, base, cube, rules, desk)
                n_asked += 1
                n_new += new
                if answer == DEPENDENT:
                    blanket[other] = True
                    if shared:
                        graph[other, node] = True
                    base += _step(cube, row, other)
                    size += 1
            for other in range(n):
                if not blanket[other] or _requires(rules, node, other):
                    continue
                rest = base - _step(cube, row, other)
                answer, new = _ask(node, other, rest, cube, rules, desk)
                n_asked += 1
                n_new += new
                if answer == INDEPENDENT or (answer == UNDECIDED and not rules.keep_undecided):
                    blanket[other] = False
                    if shared:
                        graph[other, node] = False
                    base = rest
    return n_asked, n_new


@inlined
def _forbids(rules, node, other):
    return (rules.forbidden[node, other >> 6] >> np.uint64(other & 63)) & _ONE != np.uint64(0)


@inlined
def _requires(rules, node, other):
    return (rules.required[node, other >> 6] >> np.uint64(other & 63)) & _ONE != np.uint64(0)
