"""DTSL on two density-estimation benchmarks, against Libra's dnlearn and mnlearnw on the same rows."""

import gzip
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import interleave, measured, median, spread, times

TITLE = "DTSL: trees and weights on NLTCS and Plants, against Libra"


class Rival(NamedTuple):
    """What Libra's best setting by validation reaches, and the CPU seconds of its trees and weights."""

    score: float
    seconds: float


LIBRA = {"nltcs": Rival(-4.930, 0.3 + 1.6), "plants": Rival(-8.829, 2.3 + 5.7)}


def run(options: Options) -> Iterator[Entry]:
    """Choose kappa and prior by the validation rows; time the chosen setting alone, by one thread."""
    from unless.learners.dtsl import DTSL, KAPPAS, PRIORS

    for name, libra in LIBRA.items():
        training, unseen, test = (_table(options, name, part) for part in ("train", "valid", "test"))
        est = DTSL(KAPPAS, prior=PRIORS).fit(training, validation=unseen)
        best = max(est.tried_, key=lambda tried: tried["pseudo_log_likelihood"])
        score = float(est.network_.pseudo_log_likelihood(test))
        yield Line(
            f"{name}: test pseudo-log-likelihood of a row, less Libra's", score - libra.score, at_least=0
        )
        prior = next(prior for prior in PRIORS if repr(prior) == best["prior"])
        alone = DTSL(best["kappa"], prior=prior, n_jobs=1)
        taken = interleave(
            {name: measured(lambda alone=alone, rows=training: alone.fit(rows))}, options.repeats
        )
        yield Line(
            f"{name}: CPU of the chosen setting",
            median(taken[name]),
            "s",
            spread(times(taken[name])),
            at_most=libra.seconds,
        )
        yield Line(f"{name}: features", len(est.structure_))
        yield Note(
            f"{name}: {score:.4f} with kappa {best['kappa']:g}, {best['prior']}, the best of "
            f"{len(est.tried_)} settings by the validation rows; Libra {libra.score:.3f} in "
            f"{libra.seconds:.1f} CPU seconds elsewhere."
        )


def _table(options: Options, name: str, part: str):
    from unless import Dataset, Domain, Variable

    with gzip.open(options.need(f"debd/{name}/{name}.{part}.data.gz"), "rt") as file:
        codes = np.loadtxt(file, delimiter=",", dtype=np.int64)
    domain = Domain(tuple(Variable(f"v{place:03}", ("0", "1")) for place in range(codes.shape[1])))
    return Dataset.from_codes(domain, codes)
