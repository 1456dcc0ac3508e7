"""A hundred thousand features over a hundred thousand rows, fitted in a process of its own."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.child import in_child
from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import timed

TITLE = "Weights: 100,000 features of 6 to 10 conditions, 100 variables, 100,000 rows"
N_VARIABLES, N_ROWS, N_FEATURES = 100, 100_000, 100_000
SIZES = range(6, 11)


def run(_options: Options) -> Iterator[Entry]:
    """Fit once; it takes minutes."""
    found = in_child(fit)
    yield Line("peak memory", found["peak"] / 1e9, "GB", at_most=4)
    yield Line("CPU", found["cpu"] / 60, "minutes", at_most=15)
    yield Line("wall, two threads", found["wall"] / 60, "minutes")
    yield Line("largest component of the gradient", found["norm"], at_most=1e-6)
    yield Line("passes over the data", found["passes"])
    yield Note(
        f"Rows of a random pairwise network, {found['n_distinct']:,} distinct; each feature says what a "
        "random row has in 6 to 10 random columns. Gaussian(1)."
    )


def fit() -> dict[str, Any]:
    """Fit, and tell what it took."""
    import unless

    features, data = large_case()
    net, taken = timed(lambda: unless.fit_weights(features, data, tolerance=1e-6, n_jobs=2))
    report = net.fit_report
    return {
        **asdict(taken),
        "norm": report.gradient_norm,
        "passes": report.n_evaluations,
        "n_distinct": data.n_distinct,
    }


def large_case():
    """Draw rows by Gibbs sampling, and features from random rows and columns."""
    from unless import Dataset, Domain, FeatureSet, Variable
    from unless.structures.structure import FeatureArrays

    rng = np.random.default_rng(0)
    couplings = np.zeros((N_VARIABLES, N_VARIABLES))
    first, second = np.triu_indices(N_VARIABLES, 1)
    linked = rng.choice(len(first), 2 * N_VARIABLES, replace=False)
    strengths = rng.choice([-1, 1], len(linked)) * rng.uniform(0.3, 0.7, len(linked))
    couplings[first[linked], second[linked]] = strengths
    couplings += couplings.T
    spins = rng.choice([-1.0, 1.0], size=(N_VARIABLES, N_ROWS))
    for _ in range(30):
        for variable in range(N_VARIABLES):
            chance = 1 / (1 + np.exp(-2 * (couplings[variable] @ spins)))
            spins[variable] = np.where(rng.random(N_ROWS) < chance, 1.0, -1.0)
    rows = (spins.T > 0).astype(np.uint16)
    domain = Domain(tuple(Variable(f"X{i:02}", ("0", "1")) for i in range(N_VARIABLES)))
    parts = []
    for size in SIZES:
        n_features = N_FEATURES // len(SIZES)
        scopes = np.sort(np.argsort(rng.random((n_features, N_VARIABLES)), axis=1)[:, :size], axis=1)
        values = rows[rng.integers(0, N_ROWS, n_features)[:, None], scopes]
        parts.append(FeatureArrays.of_equals(scopes, values))
    return FeatureSet.from_arrays(domain, FeatureArrays.joined(parts)), Dataset.from_codes(domain, rows)
