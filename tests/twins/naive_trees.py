"""The greedy builder of probability trees, written as it is told: one node after another, in many digits."""

from decimal import Context, Decimal, localcontext
from functools import cache

import numpy as np

# Mathematically equal gains differ by less, different ones by far more.
ROUNDING = Decimal(10) ** -20
DIGITS = Context(prec=40)


def naive_tree(data, target, kappa, min_rows, max_depth=None):
    """Return nested tuples: (name, label, gain, where true, where false), or None at a leaf."""
    with localcontext(DIGITS):
        threshold = -Decimal(kappa).ln()
        return _node(data, target, data.rows, data.counts, threshold, min_rows, max_depth)


def naive_features(data, kappa, min_rows, max_depth=None, kind="leaves"):
    """Return the features of all trees as sets of (name, label, equal), said as the paths say them."""
    found = set()
    for variable in data.domain:
        if len(variable.levels) == 1:
            continue
        tree = naive_tree(data, variable.name, kappa, min_rows, max_depth)
        for path in _paths(tree, (), kind == "pruned"):
            for label in variable.levels:
                found.add(frozenset((*path, (variable.name, label, True))))
    return found


def _node(data, target, rows, counts, threshold, min_rows, depth_left):
    if depth_left == 0:
        return None
    before = _log_likelihood(data, target, rows, counts)
    best = None
    for name in sorted(data.names):
        if name == target:
            continue
        for code, label in enumerate(data.domain[name].levels):
            holds = rows[:, data.domain.index(name)] == code
            if min(counts[holds].sum(), counts[~holds].sum()) < min_rows:
                continue
            after = sum(_log_likelihood(data, target, rows[side], counts[side]) for side in (holds, ~holds))
            if best is None or after - before > best[2] + ROUNDING:
                best = (name, label, after - before, holds)
    if best is None or not best[2] > threshold + ROUNDING:
        return None
    name, label, gain, holds = best
    below = None if depth_left is None else depth_left - 1
    sides = [
        _node(data, target, rows[side], counts[side], threshold, min_rows, below) for side in (holds, ~holds)
    ]
    return (name, label, float(gain), *sides)


def _log_likelihood(data, target, rows, counts):
    n_levels = len(data.domain[target].levels)
    column = rows[:, data.domain.index(target)]
    total = int(counts.sum())
    tallies = (int(counts[column == code].sum()) for code in range(n_levels))
    return sum((n * _log(n + 1) for n in tallies), Decimal(0)) - total * _log(total + n_levels)


@cache
def _log(n):
    return Decimal(n).ln(DIGITS)


def _paths(tree, path, inner):
    if tree is None:
        return [path]
    name, label, _, where_true, where_false = tree
    found = [path] if inner else []
    found += _paths(where_true, (*path, (name, label, True)), inner)
    return found + _paths(where_false, (*path, (name, label, False)), inner)


def as_tuples(data, tree, node=0):
    """Write a grown tree as `naive_tree` does."""
    if tree.variable[node] < 0:
        return None
    variable = data.domain.variables[tree.variable[node]]
    sides = [as_tuples(data, tree, int(side[node])) for side in (tree.where_true, tree.where_false)]
    return (variable.name, variable.levels[tree.level[node]], float(tree.gain[node]), *sides)


def without_gains(tree):
    """Drop the gains, which are rounded."""
    return None if tree is None else (*tree[:2], *map(without_gains, tree[3:]))


def reordered(data, seed):
    """Return the same table with its columns in another order."""
    rng = np.random.default_rng(seed)
    return data.select([data.names[place] for place in rng.permutation(data.n_variables)])
