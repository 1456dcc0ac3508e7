"""Weights of what CSGS learns from ALARM: by default, and to the optimum."""

from collections.abc import Iterator

import numpy as np

from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import timed

TITLE = "Weights: the cliques that CSGS learns from ALARM"
# The share of the rows that is set aside to judge by, and how they are drawn.
SHARE, SEED = 0.2, 1


def run(options: Options) -> Iterator[Entry]:
    """Fit all rows by default; fit four fifths by default and to the optimum, and score the others."""
    import unless

    table = unless.read(options.need("bnlearn_alarm/data.csv.gz"))
    unseen = np.random.default_rng(SEED).binomial(table.counts, SHARE)
    training, judge = (
        unless.Dataset.from_codes(table.domain, table.rows, counts)
        for counts in (table.counts - unseen, unseen)
    )
    whole, seen = (unless.CSGS(n_jobs=1).fit(rows) for rows in (table, training))
    net, taken = timed(lambda: whole.network(table))
    yield Line("all rows, by default: CPU", taken.cpu, "s", at_most=15)
    yield Line("all rows, by default: passes", net.fit_report.n_evaluations)
    near, taken = timed(lambda: seen.network(training))
    best, taken_for_best = timed(lambda: seen.network(training, tolerance=1e-6))
    yield Line("training rows, by default: CPU", taken.cpu, "s")
    yield Line("training rows, tolerance=1e-6: CPU", taken_for_best.cpu, "s")
    left = (near.fit_report.objective - best.fit_report.objective) / training.n_rows
    yield Line("training rows: left to gain by default", left, "nats a row", at_most=0.005)
    scores = [float(one.pseudo_log_likelihood(judge)) for one in (near, best)]
    yield Line("unseen rows, tolerance=1e-6: pseudo-log-likelihood", scores[1], "nats a row")
    worse = scores[1] - scores[0]
    yield Line("unseen rows, by default: worse by", worse, "nats a row", at_most=0.01)
    yield Note(
        f"{len(net.features):,} features of {table.n_rows:,} rows, {len(near.features):,} of "
        f"{training.n_rows:,} for training; {judge.n_rows:,} set aside. Gaussian(1); one fit, one thread."
    )
