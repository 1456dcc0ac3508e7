"""A slow twin of the probability of a link, written to be obviously right."""

import math

import numpy as np

PRIOR = 0.57


def naive_link_probability(rows, counts, n_levels, a, b, given, context):
    """Return how probable a link of a and b is, given some variables, where these have a context's levels."""
    tables = naive_tables(rows, counts, a, b, given)
    readings = []
    for gate in (None, *given):
        levels = [None] if gate is None else range(n_levels[gate])
        log_evidence, log_there = 0.0, None
        for level in levels:
            some = [
                table for stratum, table in tables if level is None or stratum[given.index(gate)] == level
            ]
            linked = math.log(PRIOR) + naive_log_factor(some)
            either = float(np.logaddexp(linked, math.log(1 - PRIOR)))
            log_evidence += either
            if level is None or level == context[gate]:
                log_there = linked - either
        readings.append((log_evidence, log_there))
    top = max(evidence for evidence, _ in readings)
    total = math.fsum(math.exp(evidence - top) for evidence, _ in readings)
    return math.fsum(math.exp(evidence - top + there) for evidence, there in readings) / total


def naive_tables(rows, counts, a, b, given):
    """Count a against b in every stratum; all but the six most frequent of more than seven levels are one."""
    order = {}
    for column in (a, b):
        seen = {}
        for row, count in zip(rows, counts, strict=True):
            seen[int(row[column])] = seen.get(int(row[column]), 0) + int(count)
        ranked = sorted(seen, key=lambda level: (-seen[level], level))
        order[column] = {level: min(rank, 6) for rank, level in enumerate(ranked)}
    shape = [max(order[column].values()) + 1 for column in (a, b)]
    tables = {}
    for row, count in zip(rows, counts, strict=True):
        table = tables.setdefault(tuple(int(row[c]) for c in given), np.zeros(shape))
        table[order[a][int(row[a])], order[b][int(row[b])]] += count
    return list(tables.items())


def naive_log_factor(tables):
    """Return the log Bayes factor of a link in some strata: the same in all, or another in each."""
    scored = [naive_score(table) for table in tables if table.sum() > 1]
    if not scored:
        return 0.0
    alike = log_factor(sum(score for score, _ in scored), sum(variance for _, variance in scored))
    apart = math.fsum(log_factor(score, variance) for score, variance in scored)
    return float(np.logaddexp(alike, apart)) - math.log(2)


def naive_score(table):
    """Return observed minus expected counts, and their covariance where margins are fixed, cell by cell."""
    total = table.sum()
    p, q = table.sum(axis=1) / total, table.sum(axis=0) / total
    score = (table - total * np.outer(p, q)).ravel()
    variance = np.empty((table.size, table.size))
    cells = [(i, j) for i in range(len(p)) for j in range(len(q))]
    for one, (i, j) in enumerate(cells):
        for other, (k, m) in enumerate(cells):
            by_row, by_column = p[i] * (i == k) - p[i] * p[k], q[j] * (j == m) - q[j] * q[m]
            variance[one, other] = total**2 / (total - 1) * by_row * by_column
    return score, variance


def log_factor(score, variance):
    """Integrate a normal score over weights of cells that are N(0, 1) a priori, over none."""
    spread = np.eye(len(score)) + variance
    return float(score @ np.linalg.inv(spread) @ score - np.linalg.slogdet(spread)[1]) / 2
