"""Learn one table with one learner, and say what it took: the child of `learners`."""

import gzip
import time
from pathlib import Path
from typing import Any

import numpy as np

import unless
from unless.errors import UnlessError

# Weights of more are not worth the wait here.
MOST_FEATURES = 20_000


def read_debd(folder: Path, *parts: str) -> unless.Dataset:
    """Read some parts of a table of the density estimation benchmark: 0 and 1, no names."""
    blocks = []
    for part in parts:
        with gzip.open(folder / f"{folder.name}.{part}.data.gz", "rt") as file:
            blocks.append(np.loadtxt(file, delimiter=",", dtype=np.int64))
    codes = np.concatenate(blocks)
    names = [f"x{place:03}" for place in range(codes.shape[1])]
    domain = unless.Domain(tuple(unless.Variable(name, ("0", "1")) for name in names))
    return unless.Dataset.from_codes(domain, codes)


def learn(name: str, settings: dict[str, Any], tables: dict[str, unless.Dataset]) -> dict[str, Any]:
    """Learn, weigh, score; each step with its CPU time."""
    from unless.learners.feature_search import TOLERANCE, FeatureLearner
    from unless.learners.registry import learner_named
    from unless.structures.structure import features_of
    from unless.weights.priors import parse_prior

    if "prior" in settings:
        settings = {**settings, "prior": parse_prior(settings["prior"])}
    learner: Any = learner_named(name)
    est = learner(show_progress=False, **settings)
    judged = isinstance(est, FeatureLearner)
    start = time.process_time()
    est.fit(tables["train"], **({"validation": tables["valid"]} if judged else {}))
    learned = time.process_time()
    found: dict[str, Any] = {
        "learn": learned - start,
        "tests": est.n_tests_,
        "distinct": est.n_distinct_tests_,
    }
    try:
        # To the tolerance at which the learners of features stop.
        effort = {"tolerance": TOLERANCE * tables["train"].n_rows, "show_progress": False}
        features = len(est.structure_ if judged else features_of(est.structure_))
        found["features"] = features
        if not judged and features > MOST_FEATURES:
            return {**found, "refused": f"{features:,} features would take hours"}
        net = est.network_ if judged else est.network(tables["train"], **effort)
        found["weigh"] = time.process_time() - learned
        found["pll"] = float(net.pseudo_log_likelihood(tables["test"]))
    except UnlessError as error:
        found["refused"] = str(error)
    if judged and est.tried_:
        found |= {"chosen": est.chosen_, "n_tried": len(est.tried_)}
    return found


def learn_warm(folder: str, name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Warm up on a small part of a table, then learn the whole."""
    tables = {part: read_debd(Path(folder), part) for part in ("train", "valid", "test")}
    small = {part: unless.Dataset.from_codes(table.domain, table.rows[:60]) for part, table in tables.items()}
    # Loads the compiled kernels, so that their compilation is not counted.
    learn(name, settings, small)
    return learn(name, settings, tables)
