"""A slow twin of CSMPL, written to be obviously right: every neighbour of a labelled graph is scored in full.

A graph is a dict from pairs of positions to the levels (gate, level) at which the link is absent.
"""

import math
from itertools import combinations


def naive_score(graph, rows, counts, n_levels):
    """Return the log marginal pseudo-likelihood of a labelled graph, less the price of the levels named."""
    terms = []
    for a in range(len(n_levels)):
        neighbours = {next(iter(pair - {a})): absent for pair, absent in graph.items() if a in pair}
        lines = {}
        for row, count in zip(rows, counts, strict=True):
            seen = tuple(
                None if any(row[c] == level for c, level in absent) else int(row[b])
                for b, absent in sorted(neighbours.items())
            )
            line = lines.setdefault(seen, [0] * n_levels[a])
            line[row[a]] += int(count)
        for seen, line in lines.items():
            # A row in all, shared evenly by all combinations of levels: a line has as many as it stands for.
            prior = 1.0
            for b, value in zip(sorted(neighbours), seen, strict=True):
                prior /= 1 if value is None else n_levels[b]
            terms.append(math.lgamma(prior) - math.lgamma(prior + sum(line)))
            each = prior / n_levels[a]
            terms += [math.lgamma(each + count) - math.lgamma(each) for count in line]
    for pair, absent in graph.items():
        others = sum(n_levels[c] for c in range(len(n_levels)) if c not in pair)
        terms.append(-len(absent) * math.log(max(1, others)))
    return math.fsum(terms)


def naive_neighbours(graph, pairs, required, n_levels, limit):
    """Yield the graphs that one move leads to, in the order of moves."""

    def gates_at(a):
        return {c for pair, absent in graph.items() if a in pair for c, _ in absent}

    for pair in pairs:
        a, b = sorted(pair)
        if b in gates_at(a) or a in gates_at(b):
            continue
        absent = graph.get(pair)
        rest = {other: label for other, label in graph.items() if other != pair}
        if absent is None:
            if any(sum(end in other for other in graph) >= limit for end in pair):
                continue
            yield {**rest, pair: frozenset()}
        else:
            yield rest
            for gate in sorted({c for c, _ in absent}):
                yield {**rest, pair: frozenset(one for one in absent if one[0] != gate)}
        named = absent or frozenset()
        for c in range(len(n_levels)):
            sides = [frozenset([a, c]), frozenset([b, c])]
            if c in pair or not all(graph.get(side) == frozenset() for side in sides):
                continue
            left = [level for level in range(n_levels[c]) if (c, level) not in named]
            if len(left) > 1:
                for level in left:
                    yield {**rest, pair: named | {(c, level)}}


def naive_csmpl(rows, counts, n_levels, *, required=(), forbidden=(), max_blanket=None):
    """Search greedily from the required links; return the graph, its score and the scores on the way."""
    n = len(n_levels)
    constant = {a for a in range(n) if len({int(row[a]) for row in rows}) < 2}
    fixed = {frozenset(pair) for pair in (*required, *forbidden)}
    pairs = [frozenset(pair) for pair in combinations(range(n), 2)]
    pairs = [pair for pair in pairs if pair not in fixed and not pair & constant]
    graph = {frozenset(pair): frozenset() for pair in required}
    path = [naive_score(graph, rows, counts, n_levels)]
    limit = n if max_blanket is None else max_blanket
    while True:
        nearby = list(naive_neighbours(graph, pairs, required, n_levels, limit))
        gains = [naive_score(one, rows, counts, n_levels) - path[-1] for one in nearby]
        margin = 1e-9 + 1e-12 * abs(path[-1])
        if not gains or max(gains) <= margin:
            return graph, path
        graph = next(one for one, gain in zip(nearby, gains, strict=True) if gain >= max(gains) - margin)
        path.append(naive_score(graph, rows, counts, n_levels))
