"""Slow twin of EM for rows with missing values: every completion of every row, written out."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
from scipy.optimize import minimize

from twins.naive_objective import holds, stacked_tensor
from unless.data.dataset import Dataset, Detail


class Weighed:
    """Rows with counts that need not be whole, as much of a Dataset as the twins read."""

    def __init__(self, domain, rows):
        self.domain = domain
        self.rows = np.array(list(rows))
        self.counts = np.array(list(rows.values()), dtype=float)


def with_holes(data, holes, counts=None):
    """Take a table whose rows are told apart, and hide the values marked; None where a row is hidden."""
    counts = data.counts if counts is None else counts
    whole = ~holes.any(axis=1)
    complete = Dataset.from_codes(data.domain, data.rows[whole], counts[whole])
    shown = np.where(holes, 0, data.rows).astype(np.uint16)
    missing = {name: holes[:, place] for place, name in enumerate(data.names)}
    return replace(complete, detail=Detail.of(shown, counts, None, missing))


def rows_of(data):
    """List all rows of a table as (codes, with None for what is missing; count)."""
    for place, (codes, count) in enumerate(zip(data.detail.rows.tolist(), data.detail.counts, strict=True)):
        shown = [
            None if name in data.detail.missing and data.detail.missing[name][place] else code
            for name, code in zip(data.names, codes, strict=True)
        ]
        yield shown, int(count)


def completions(domain, shown, features, weights):
    """Return the completions of a row, each with its probability given what the row shows."""
    literals = list(features.arrays.literals())
    choices = [
        range(len(one.levels)) if code is None else [code] for one, code in zip(domain, shown, strict=True)
    ]
    logs = {
        row: math.fsum(w for w, said in zip(weights, literals, strict=True) if holds(said, row))
        for row in product(*choices)
    }
    top = max(logs.values())
    total = math.fsum(math.exp(value - top) for value in logs.values())
    return {row: math.exp(value - top) / total for row, value in logs.items()}


def naive_fit(features, weighed, sd, start):
    """Minimise the penalised pseudo-likelihood of weighed rows by another optimiser."""
    tensor, target, counts = stacked_tensor(features, weighed)

    def loss(weights):
        scores = np.where(np.isnan(tensor[:, :, 0]), -np.inf, np.nan_to_num(tensor) @ weights)
        logs = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
        chances = np.exp(logs)
        chances[np.arange(len(target)), target] -= 1
        value = -(counts * logs[np.arange(len(target)), target]).sum()
        gradient = np.einsum("rl,rlk->k", counts[:, None] * chances, np.nan_to_num(tensor))
        return value + weights @ weights / (2 * sd**2), gradient + weights / sd**2

    return minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-9}).x


def naive_em(features, data, sd, least_change):
    """Return the weights of EM and its number of rounds, from the fit to the complete rows."""
    rows = [(shown, count) for shown, count in rows_of(data) if any(code is not None for code in shown)]
    complete = {tuple(shown): 0 for shown, _ in rows if None not in shown}
    for shown, count in rows:
        if None not in shown:
            complete[tuple(shown)] += count
    weights = np.zeros(len(features))
    if complete:
        weights = naive_fit(features, Weighed(data.domain, complete), sd, weights)
    before, n_rounds = None, 0
    while True:
        found = [
            (completions(data.domain, shown, features, weights), count)
            for shown, count in rows
            if None in shown
        ]
        if before is not None:
            moved = sum(
                count * sum(abs(now[row] - then[row]) for row in now) / 2
                for (now, count), (then, _) in zip(found, before, strict=True)
            )
            if moved / sum(count for _, count in found) < least_change:
                return weights, n_rounds
        before = found
        weighed = dict(complete)
        for chances, count in found:
            for row, chance in chances.items():
                weighed[row] = weighed.get(row, 0.0) + count * chance
        weights = naive_fit(features, Weighed(data.domain, weighed), sd, weights)
        n_rounds += 1
