"""The features of Libra's model of NLTCS: scored as they stand, and their weights found anew."""

import gzip
from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import interleave, measured, median, spread, times

TITLE = "Weights: the features of Libra's model of NLTCS"
# What Libra says of its own model, and the CPU time its mnlearnw took.
LIBRA = {"train": -4.846605, "test": -4.930399}
LIBRA_SECONDS = 1.6


def run(options: Options) -> Iterator[Entry]:
    """Score, fit with several priors, score again."""
    import unless
    from unless.formats.libra import read_mn

    theirs = read_mn(options.need("debd/nltcs/libra.mn"))
    tables = {part: _table(options, theirs.domain, part) for part in LIBRA}
    for part, told in LIBRA.items():
        score = float(theirs.pseudo_log_likelihood(tables[part]))
        yield Line(
            f"file as it stands, {part}: off Libra's figure by", abs(score - told), "nats", at_most=1e-5
        )
    priors = {
        "Gaussian(1)": unless.Gaussian(1.0),
        "Gaussian(1) + Laplace(5)": unless.Gaussian(1.0) + unless.Laplace(5.0),
        "Laplace(5)": unless.Laplace(5.0),
    }
    nets = {}

    def fit(name: str) -> None:
        nets[name] = unless.fit_weights(
            theirs.features, tables["train"], priors[name], tolerance=1e-6, n_jobs=1
        )

    samples = interleave({name: measured(partial(fit, name)) for name in priors}, options.repeats)
    for name, taken in samples.items():
        target = LIBRA_SECONDS if name == "Gaussian(1)" else None
        yield Line(f"{name}: CPU", median(taken), "s", spread(times(taken)), at_most=target)
        yield Line(
            f"{name}: largest component of the gradient", nets[name].fit_report.gradient_norm, at_most=1e-6
        )
    ours = nets["Gaussian(1)"]
    before = _objective(theirs, tables["train"])
    yield Line(
        "objective of Libra's weights less ours", before - ours.fit_report.objective, "nats", at_least=0
    )
    gained = float(ours.pseudo_log_likelihood(tables["test"])) - LIBRA["test"]
    yield Line("test figure, ours less Libra's", gained, "nats a row", at_least=-0.01)
    yield Note(
        f"{len(theirs.features)} different features, {tables['train'].n_rows:,} rows "
        f"({tables['train'].n_distinct:,} distinct); {options.repeats} turns. Libra's mnlearnw took "
        f"{LIBRA_SECONDS} CPU seconds elsewhere, and stops at a relative change of 1e-3."
    )


def _objective(net, data) -> float:
    return -data.n_rows * float(net.pseudo_log_likelihood(data)) + float(net.weights @ net.weights) / 2


def _table(options: Options, domain, part: str):
    from unless import Dataset

    with gzip.open(options.need(f"debd/nltcs/nltcs.{part}.data.gz"), "rt") as file:
        return Dataset.from_codes(domain, np.loadtxt(file, delimiter=",", dtype=np.int64))
