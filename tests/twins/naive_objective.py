"""Slow twin of the objective, and models to hold it against, written to be obviously right."""

import math

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.structures.graph import FeatureSet
from unless.structures.structure import FeatureArrays


def holds(literals, row):
    return all((row[variable] == level) == equal for variable, level, equal in literals)


def naive_losses(features, data, weights):
    """Return, for each variable, minus the sum over rows of log P(x_v | the others)."""
    literals = list(features.arrays.literals())
    losses = [0.0] * len(data.domain)
    for row, count in zip(data.rows.tolist(), data.counts.tolist(), strict=True):
        for v, n_levels in enumerate(data.domain.n_levels):
            scores = [
                math.fsum(w for w, said in zip(weights, literals, strict=True) if holds(said, changed))
                for changed in ([*row[:v], level, *row[v + 1 :]] for level in range(n_levels))
            ]
            top = max(scores)
            log_total = top + math.log(math.fsum(math.exp(score - top) for score in scores))
            losses[v] += count * (log_total - scores[row[v]])
    return np.array(losses)


def naive_objective(features, data, weights, sd=math.inf, l1=0.0):
    """Return the penalised negative pseudo-log-likelihood."""
    penalty = sum(w * w / (2 * sd * sd) + l1 * abs(w) for w in weights)
    return float(naive_losses(features, data, weights).sum()) + penalty


def stacked_design(features, data):
    """Return (X, y, counts): for binary variables, the objective is that of a logistic regression.

    One row for each row of the table and variable v: the change of every feature as v goes from 0 to 1.
    """
    literals = list(features.arrays.literals())
    design, target, counts = [], [], []
    for row, count in zip(data.rows.tolist(), data.counts.tolist(), strict=True):
        for v in range(len(row)):
            off, on = [*row[:v], 0, *row[v + 1 :]], [*row[:v], 1, *row[v + 1 :]]
            design.append([holds(said, on) - holds(said, off) for said in literals])
            target.append(row[v])
            counts.append(count)
    return np.array(design, dtype=float), np.array(target), np.array(counts, dtype=float)


def stacked_tensor(features, data):
    """Return (X, y, counts) for variables of any levels: X[case, level] says which features hold there."""
    literals = list(features.arrays.literals())
    tensor, target, counts = [], [], []
    most = int(data.domain.n_levels.max())
    for row, count in zip(data.rows.tolist(), data.counts.tolist(), strict=True):
        for v, n_levels in enumerate(data.domain.n_levels):
            levels = [[*row[:v], level, *row[v + 1 :]] for level in range(n_levels)]
            said = [[holds(one, changed) for one in literals] for changed in levels]
            # A level that does not exist repeats nothing: its score is minus infinity.
            tensor.append(said + [[math.nan] * len(literals)] * (most - n_levels))
            target.append(row[v])
            counts.append(count)
    return np.array(tensor, dtype=float), np.array(target), np.array(counts, dtype=float)


def random_features(domain, n_features, rng, max_size=4, negative=True):
    """Draw features, some with "!=" conditions, several of them on one variable where it has the levels."""
    listed = []
    for _ in range(n_features):
        size = rng.integers(1, min(max_size, len(domain)) + 1)
        scope = rng.choice(len(domain), size, replace=False)
        literals = []
        for v in scope.tolist():
            n_levels = int(domain.n_levels[v])
            if negative and n_levels > 2 and rng.random() < 0.5:
                excluded = rng.choice(n_levels, rng.integers(1, n_levels - 1), replace=False)
                literals += [(v, int(level), False) for level in excluded]
            else:
                literals.append((v, int(rng.integers(n_levels)), True))
        listed.append(literals)
    return FeatureSet.from_arrays(domain, FeatureArrays.of(listed))


def random_case(seed, n_levels, n_rows, n_features, *, max_size=4, max_count=4):
    """Draw a table in which columns depend on one another, and features over it."""
    rng = np.random.default_rng(seed)
    domain = Domain(
        tuple(Variable(f"X{i}", tuple(f"l{code}" for code in range(n))) for i, n in enumerate(n_levels))
    )
    codes = rng.integers(0, domain.n_levels, (n_rows, len(domain)))
    for column in range(1, len(domain)):
        copied = rng.random(n_rows) < 0.4
        codes[copied, column] = codes[copied, column - 1] % domain.n_levels[column]
    data = Dataset.from_codes(domain, codes, rng.integers(1, max_count + 1, n_rows))
    return random_features(domain, n_features, rng, max_size), data, rng
