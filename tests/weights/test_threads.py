"""What is fitted does not depend on how many threads the linear algebra library has."""

import os
import subprocess
import sys

# Beyond 10,000 elements a product of vectors is shared among threads, beyond 100 equations a system of them.
SAME = """
from hashlib import sha256
from itertools import combinations, islice

import numpy as np

import unless
from unless.independence.logistic import Effect, common, size_of
from unless.referee.regressions import known_part
from unless.structures.structure import FeatureArrays
from unless.weights.intervals import weight_intervals

rng = np.random.default_rng(0)
domain = unless.Domain(tuple(unless.Variable(f"X{number}", ("0", "1")) for number in range(40)))
data = unless.Dataset.from_codes(domain, rng.integers(0, 2, (60, 40)))


def features(n_features):
    scopes = islice(combinations(range(40), 4), n_features)
    literals = [[(v, v * scope[0] % 2, True) for v in scope] for scope in scopes]
    return unless.FeatureSet.from_arrays(domain, FeatureArrays.of(literals))


def tell(name, *numbers):
    print(name, sha256(np.concatenate([np.ravel(one) for one in numbers]).tobytes()).hexdigest())


many, few = features(20_500), features(300)
for prior in (unless.Gaussian(1.0), unless.Laplace(1.0)):
    tell("weights", unless.fit_weights(many, data, prior, max_iterations=3).weights)
tell("intervals", weight_intervals(unless.fit_weights(few, data), data).standard_errors)
parts = rng.normal(size=(2, 150, 200))
first, second = (part @ part.T for part in np.round(8 * parts))
effects = [Effect(tuple((k, k) for k in range(150)), rng.normal(size=150), one) for one in (first, second)]
tell("effects", size_of(effects[0]).value, common(effects).value)
tell("scores", known_part(rng.normal(size=150), first, 1e-3).value)
"""


def printed(n_threads):
    threads = {"OPENBLAS_NUM_THREADS": n_threads, "OMP_NUM_THREADS": n_threads, "MKL_NUM_THREADS": n_threads}
    run = subprocess.run(
        [sys.executable, "-c", SAME], capture_output=True, text=True, check=True,
        env={**os.environ, **threads, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    return run.stdout.split("\n")


def test_threads_of_the_linear_algebra_library_change_no_bit():
    alone, shared = printed("1"), printed("2")
    assert alone == shared
    assert len(alone) == 6
