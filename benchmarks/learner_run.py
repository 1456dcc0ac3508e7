"""Learn one table with one learner, and say what it took: the child of `learners`."""

import gzip
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import unless
from unless.errors import UnlessError

# Weights are not worth the wait where features times distinct rows are more.
MOST_WORK = 1e8
# No learner: every column by itself, under the same prior.
ALONE = "columns by themselves"


class OutOfTime(BaseException):
    """The work took more CPU time than it may: no error of the work, so that nothing there handles it."""


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


@contextmanager
def at_most(seconds: float | None) -> Iterator[None]:
    """Raise `OutOfTime` when the process has used so much CPU time more; None sets no limit."""

    def stop(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds or 0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def learn(
    name: str, settings: dict[str, Any], tables: dict[str, unless.Dataset], seconds: float | None = None
) -> dict[str, Any]:
    """Learn, weigh, score; each step with its CPU time. What is not done in time is refused."""
    found: dict[str, Any] = {}
    try:
        with at_most(seconds):
            _learn(name, settings, tables, found)
    except OutOfTime:
        found["refused"] = f"stopped after {seconds:,.0f} s of CPU"
    except UnlessError as error:
        found["refused"] = str(error)
    return found


def _learn(
    name: str, settings: dict[str, Any], tables: dict[str, unless.Dataset], found: dict[str, Any]
) -> None:
    from unless.learners.feature_search import TOLERANCE, FeatureLearner
    from unless.learners.registry import learner_named
    from unless.structures.structure import features_of
    from unless.weights.fit import fit_weights
    from unless.weights.priors import Gaussian, parse_prior

    train = tables["train"]
    # To the tolerance at which the learners of features stop.
    effort: dict[str, Any] = {"tolerance": TOLERANCE * train.n_rows, "show_progress": False}
    start = time.process_time()
    if name == ALONE:
        structure: Any = unless.Graph(train.domain, ())
    else:
        if "prior" in settings:
            settings = {**settings, "prior": parse_prior(settings["prior"])}
        learner: Any = learner_named(name)
        est = learner(show_progress=False, n_jobs=1, **settings)
        judged = isinstance(est, FeatureLearner)
        est.fit(train, **({"validation": tables["valid"]} if judged else {}))
        found |= {"tests": est.n_tests_, "distinct": est.n_distinct_tests_}
        structure = est.structure_
        if judged:
            found |= {"learn": time.process_time() - start, "features": len(structure), "weigh": 0.0}
            found["pll"] = float(est.network_.pseudo_log_likelihood(tables["test"]))
            if est.tried_:
                found |= {"chosen": est.chosen_, "n_tried": len(est.tried_)}
            return
    found["learn"] = time.process_time() - start
    learned = time.process_time()
    features = features_of(structure)
    found |= {"features": len(features), "kind": "links" if structure.kind == "links" else "cliques"}
    if len(features) * train.n_distinct > MOST_WORK and isinstance(structure, unless.CanonicalModel):
        features = features_of(structure, "pairs")
        found |= {"features": len(features), "kind": f"pairs, not {found['features']:,} cliques"}
    if len(features) * train.n_distinct > MOST_WORK:
        found["refused"] = f"weights of {len(features):,} features would take too long"
        return
    net = fit_weights(features, train, Gaussian(1.0), n_jobs=1, **effort)
    found["weigh"] = time.process_time() - learned
    found["pll"] = float(net.pseudo_log_likelihood(tables["test"]))


def learn_warm(
    folder: str, name: str, settings: dict[str, Any], seconds: float | None = None
) -> dict[str, Any]:
    """Warm up on a small part of a table, then learn the whole."""
    tables = {part: read_debd(Path(folder), part) for part in ("train", "valid", "test")}
    few = tables["train"].names[:16]
    small = {
        part: unless.Dataset.from_codes(table.domain, table.rows[:60]).select(few)
        for part, table in tables.items()
    }
    # Loads the compiled kernels, so that their compilation is not counted.
    learn(name, settings, small, seconds)
    return learn(name, settings, tables, seconds)
