"""Learn canonical graphs of a small domain from the dense cube of all its partial assignments.

Each variable is a digit of a mixed radix: its level, or one more for "any". Every table is then a few
loads, and a question is named exactly by its pair and the position of its conditions.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.answers import DEPENDENT, INDEPENDENT, UNDECIDED, decide
from unless.kernels.bits import has_bit
from unless.kernels.compiling import compiled, inlined, without_refcount


class Cube(NamedTuple):
    """Counts of all partial assignments."""

    counts: Any  # int64 (cells,)
    strides: Any  # int64 (variables,)
    n_levels: Any  # int64 (variables,)


class CubeWorkspace(NamedTuple):
    """The answers so far, and room for a table."""

    answers: Any  # uint8 (pairs * cells,): what was asked already
    cells: Any  # int64 (largest table,)
    totals: Any  # int64 (most levels,)
    columns: Any  # int64 (most levels,)
    inverses: Any  # float64 (most levels,)


@compiled
def fill(rows, counts, cube):
    """Count every partial assignment of distinct rows into a cube of zeros."""
    n = cube.strides.shape[0]
    for row in range(rows.shape[0]):
        at = 0
        for variable in range(n):
            at += np.int64(rows[row, variable]) * cube.strides[variable]
        cube.counts[at] += counts[row]
    for variable in range(n):
        stride, n_levels = cube.strides[variable], cube.n_levels[variable]
        for block in range(0, cube.counts.shape[0], stride * (n_levels + 1)):
            for at in range(block, block + stride):
                total = 0
                for level in range(n_levels):
                    total += cube.counts[at + level * stride]
                cube.counts[at + n_levels * stride] = total


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
def _ask(a, b, base, cube, rules, work):
    """Answer a question and tell whether it is new."""
    n = cube.strides.shape[0]
    low, high = min(a, b), max(a, b)
    at = (low * (2 * n - low - 1) // 2 + high - low - 1) * cube.counts.shape[0] + base
    answer = np.int64(work.answers[at])
    if answer:
        return answer, 0
    total = read_table(cube, base, low, high, work.cells, work.totals)
    n_low, n_high = cube.n_levels[low], cube.n_levels[high]
    answer = decide(work, n_low, n_high, total, rules, False)
    work.answers[at] = answer
    return answer, 1


@inlined
def _step(cube, rows, context, variable):
    """How far the position moves when "any" becomes the context's own level."""
    return (np.int64(rows[context, variable]) - cube.n_levels[variable]) * cube.strides[variable]


@inlined
def _grow_shrink_row(context, rows, graphs, cube, rules, shared, work, anywhere):
    """Run Algorithm 2 in one context; returns the number of questions asked and of those that are new."""
    n = cube.strides.shape[0]
    n_asked, n_new = 0, 0
    for node in range(n):
        base, size = anywhere, 0
        for other in range(n):
            if graphs[context, node, other]:
                base += _step(cube, rows, context, other)
                size += 1
        for other in range(n):
            if size >= rules.max_blanket:
                break
            # A variable added in this loop lies behind it, so what is held now was held before.
            if other == node or graphs[context, node, other] or has_bit(rules.forbidden, node, other):
                continue
            answer, new = _ask(node, other, base, cube, rules, work)
            n_asked += 1
            n_new += new
            if answer == DEPENDENT:
                graphs[context, node, other] = True
                if shared:
                    graphs[context, other, node] = True
                base += _step(cube, rows, context, other)
                size += 1
        for other in range(n):
            if not graphs[context, node, other] or has_bit(rules.required, node, other):
                continue
            rest = base - _step(cube, rows, context, other)
            answer, new = _ask(node, other, rest, cube, rules, work)
            n_asked += 1
            n_new += new
            if answer == INDEPENDENT or (answer == UNDECIDED and not rules.keep_undecided):
                graphs[context, node, other] = False
                if shared:
                    graphs[context, other, node] = False
                base = rest
    return n_asked, n_new


@compiled
def grow_shrink_rows(rows, graphs, cube, rules, shared, work):
    """Run Algorithm 2 in one context after the other, or blanket by blanket if they are not shared.

    `graphs` (contexts, variables, variables) holds the initial blankets and receives the learned ones;
    returns the number of questions asked and of distinct ones.
    """
    rows, graphs = without_refcount((rows, graphs))
    cube, rules, work = without_refcount((cube, rules, work))
    anywhere = 0
    for variable in range(cube.strides.shape[0]):
        anywhere += cube.n_levels[variable] * cube.strides[variable]
    n_asked, n_new = 0, 0
    for context in range(rows.shape[0]):
        asked, new = _grow_shrink_row(context, rows, graphs, cube, rules, shared, work, anywhere)
        n_asked += asked
        n_new += new
    return n_asked, n_new
