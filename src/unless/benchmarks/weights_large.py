"""A hundred thousand features over a hundred thousand rows, fitted in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator

import numpy as np

from unless.benchmarks.options import Options
from unless.benchmarks.result import Entry, Line, Note

TITLE = "Weights: 100,000 features of 6 to 10 conditions, 100 variables, 100,000 rows"
N_VARIABLES, N_ROWS, N_FEATURES = 100, 100_000, 100_000
SIZES = range(6, 11)
CHILD = """
import json, time
from unless.benchmarks.weights_large import large_case
import unless
features, data = large_case()
start = time.perf_counter(), time.process_time()
net = unless.fit_weights(features, data, n_jobs=2)
taken = time.perf_counter() - start[0], time.process_time() - start[1]
peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024
report = net.fit_report
print(json.dumps({
    "peak": peak, "wall": taken[0], "cpu": taken[1], "converged": report.converged,
    "norm": report.gradient_norm, "passes": report.n_evaluations, "n_distinct": data.n_distinct,
}))
"""


def run(_options: Options) -> Iterator[Entry]:
    """Fit once; it takes minutes."""
    child = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=False)
    if child.returncode:
        yield Note(f"Failed: {child.stderr.strip().splitlines()[-1]}")
        return
    found = json.loads(child.stdout.strip().splitlines()[-1])
    yield Line("peak memory", found["peak"] / 1e9, "GB", at_most=4)
    yield Line("CPU", found["cpu"] / 60, "minutes", at_most=15)
    yield Line("wall, two threads", found["wall"] / 60, "minutes")
    yield Line("largest component of the gradient", found["norm"], at_most=1e-6)
    yield Line("passes over the data", found["passes"])
    yield Note(
        f"Rows of a random pairwise network, {found['n_distinct']:,} distinct; each feature says what a "
        "random row has in 6 to 10 random columns. Gaussian(1)."
    )


def large_case():
    """Draw rows by Gibbs sampling, and features from random rows and columns."""
    from unless import Dataset, Domain, FeatureSet, Variable
    from unless.structures.conditions import FeatureArrays

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
