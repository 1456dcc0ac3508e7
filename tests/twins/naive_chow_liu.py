"""Chow-Liu by trying every tree, for a few columns."""

from functools import cache
from itertools import combinations
from math import log


def naive_tree(columns, rows, counts):
    """Return the tree under which the rows are most likely, and its log-likelihood."""
    trees = [tree for tree in combinations(combinations(columns, 2), len(columns) - 1) if is_tree(tree)]
    share = shares(rows, counts)
    weighted = [(log_likelihood(tree, columns, rows, counts, share), tree) for tree in trees]
    best = max(weighted, key=lambda pair: pair[0])
    return set(best[1]), best[0]


def is_tree(edges):
    """Tell whether so many edges reach every column: none closes a cycle."""
    reached = {edges[0][0]}
    for _ in edges:
        reached |= {end for edge in edges if reached & set(edge) for end in edge}
    return reached == {end for edge in edges for end in edge} and len(reached) == len(edges) + 1


def shares(rows, counts):
    """Return what tells the share of rows with some values, which many trees ask for."""
    total = sum(counts)

    @cache
    def share(*fixed):
        counted = zip(rows, counts, strict=True)
        return sum(n for row, n in counted if all(row[c] == v for c, v in fixed)) / total

    return share


def log_likelihood(edges, columns, rows, counts, share=None):
    """Add up log P(row): the product over edges of P(a, b) / P(a) P(b), times that of all P(a)."""
    share = share or shares(rows, counts)

    def of_row(row):
        alone = sum(log(share((c, row[c]))) for c in columns)
        joined = sum(
            log(share((a, row[a]), (b, row[b])) / share((a, row[a])) / share((b, row[b]))) for a, b in edges
        )
        return alone + joined

    return sum(n * of_row(row) for row, n in zip(rows, counts, strict=True))
