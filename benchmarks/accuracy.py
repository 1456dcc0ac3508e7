"""How often GGS is right: recovery, divergence, control of false claims, cost; next to the other learners."""

from collections.abc import Callable, Iterable, Iterator
from math import sqrt
from typing import Any

import numpy as np

from benchmarks.child import in_child
from benchmarks.cost_run import against_csgs, of_many_variables
from benchmarks.options import DataError, Options
from benchmarks.result import Entry, Line, Note, Table
from benchmarks.timing import spread

TITLE = "Structures: recovery, control, cost"
HEAD = """# How often it is right

Written by `python -m benchmarks --only accuracy --data DIR --write docs/recovery.md`; `--draws N` takes fewer
draws (40) and 50 N simulations. Seeds are fixed. F1 is over pairs in observed contexts (by graphs).

Machine: {machine}.
"""
SIZES = ((6, 2_000), (6, 10_000), (9, 10_000))
OTHERS = ("CSGS", "CSPC", "GSMN", "DTSL")
# The other learners, and the other domains, are shown by fewer draws.
FEW = 10
# Simulations that one process does in a row.
BATCH = 50
# On shared cores the threads of linear algebra wait for each other, which counts as CPU time.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def run(options: Options) -> Iterator[Entry]:
    """Measure all of it."""
    yield from recovery(options.draws)
    yield from relatives(min(FEW, options.draws))
    yield from divergence(options.draws)
    yield from consistency(min(FEW, options.draws))
    yield from control(options)
    yield from cost(options)


def each(work: Callable, items: Iterable[tuple]) -> list:
    """Do the same work for all items, in as many processes as there are cores."""
    from joblib import Parallel, delayed

    return list(Parallel(n_jobs=-1)(delayed(work)(*item) for item in items))


def recovery(draws: int) -> Iterator[Entry]:
    """Compare GGS with the test that is told the gate, and with other learners."""
    rows = []
    for n, n_rows in SIZES:
        drawn = each(_recovered, ((n, n_rows, draw) for draw in range(draws)))
        found = {name: [one[name] for one, _ in drawn if name in one] for name in ("told", "GGS", *OTHERS)}
        where = f"n = {n}, N = {n_rows:,}"
        rows += [(where, name, *_summary(scores)) for name, scores in found.items()]
        less = np.mean(
            [ours.f1 - theirs.f1 for ours, theirs in zip(found["GGS"], found["told"], strict=True)]
        )
        yield Line(f"{where}: F1 of GGS less the told test's", float(less), at_least=-0.02)
        absent = [one["GGS"].false_positive_rate for one, is_right in drawn if is_right]
        yield Line(f"{where}: absent pairs drawn, right gate", float(np.mean(absent)), at_most=0.04)
        right = np.mean([is_right for _, is_right in drawn])
        yield Line(f"{where}: draws with the right gate", float(right), at_least=0.95)
    yield Table(("domain", "learner", "F1", "absent pairs drawn", "draws"), tuple(rows))


def _recovered(n: int, n_rows: int, draw: int):
    """Score each learner on one draw, and tell whether GGS found the gate."""
    import unless
    from benchmarks.accuracy_domains import GATE, named_gate, paper, tested_at_gate

    data, truth, _ = paper(n, n_rows, draw)
    learned = {"told": tested_at_gate(data)}
    for name in ("GGS", *(OTHERS if draw < FEW else ())):
        learned[name] = getattr(unless, name)().fit(data).structure_
    scores = {name: unless.compare_structures(truth, one) for name, one in learned.items()}
    return scores, named_gate(learned["GGS"]) == GATE


def relatives(draws: int) -> Iterator[Entry]:
    """Show other shapes, more gates, more levels and a gate of two variables."""
    from benchmarks.accuracy_domains import RELATIVES

    rows = []
    for name in RELATIVES:
        drawn = each(_recovered_relative, ((name, draw) for draw in range(draws)))
        rows += [(name, learner, *_summary([one[learner] for one in drawn])) for learner in drawn[0]]
    yield Table(("domain, N = 10,000", "learner", "F1", "absent pairs drawn", "draws"), tuple(rows))


def _recovered_relative(name: str, draw: int):
    import unless
    from benchmarks.accuracy_domains import RELATIVES

    data, truth = RELATIVES[name](10_000, draw)
    learned = {
        learner: getattr(unless, learner)().fit(data).structure_ for learner in ("GGS", "CSGS", "GSMN")
    }
    return {learner: unless.compare_structures(truth, one, contexts=data) for learner, one in learned.items()}


def divergence(draws: int) -> Iterator[Entry]:
    """Compare networks: GGS's own features, CSGS's cliques, the generating features."""
    rows = []
    for n in (6, 7, 8, 9):
        for n_rows in (500, 2_000, 10_000, 20_000, 40_000):
            drawn = np.array(each(_divergences, ((n, n_rows, draw) for draw in range(draws))))
            ggs, csgs, generating = drawn.mean(axis=0).tolist()
            where = f"n = {n}, N = {n_rows:,}"
            rows.append((where, f"{ggs:.5f}", f"{csgs:.5f}", f"{generating:.5f}", str(draws)))
            yield Line(f"{where}: KL of GGS to CSGS's", ggs / csgs, "times", at_most=1.0)
            if n_rows >= 10_000:
                what = f"{where}: KL of GGS to the generating features'"
                yield Line(what, ggs / generating, "times", at_most=1.25)
    yield Table(("mean KL, nats", "GGS", "CSGS, cliques", "generating features", "draws"), tuple(rows))


def _divergences(n: int, n_rows: int, draw: int) -> list[float]:
    import unless
    from benchmarks.accuracy_domains import paper

    data, _, law = paper(n, n_rows, draw)
    networks = [
        unless.GGS().fit(data).network(data),
        unless.CSGS().fit(data).network(data),
        unless.fit_weights(law.features, data, unless.Gaussian(1.0)),
    ]
    return [float(unless.kl_divergence(law, one)) for one in networks]


def consistency(draws: int) -> Iterator[Entry]:
    """Show that the truth is found as tables grow: at the usual levels, and at levels that fall with N."""
    rows = []
    for shape, n in (("complete", 6), ("chain", 10)):
        for n_rows in (500, 2_000, 10_000, 100_000):
            level = min(0.05, 1 / sqrt(n_rows))
            items = [(shape, n, n_rows, draw, alpha) for alpha in (0.05, level) for draw in range(draws)]
            found = np.array(each(_found, items)).reshape(2, draws, 3).mean(axis=1)
            told = (f"{value:.3f}" for way in found for value in way)
            rows.append((f"{shape}, n = {n}, N = {n_rows:,}", *told, str(draws)))
    headers = ("F1", "absent pairs drawn", "right gate")
    falling = (f"{header}, levels 1 / sqrt N" for header in headers)
    yield Table(("domain", *headers, *falling, "draws"), tuple(rows))


def _found(shape: str, n: int, n_rows: int, draw: int, alpha: float) -> tuple[float, float, bool]:
    import unless
    from benchmarks.accuracy_domains import GATE, named_gate, paper

    data, truth, _ = paper(n, n_rows, draw, shape=shape)
    learned = unless.GGS(alpha=alpha, fdr=alpha).fit(data).structure_
    score = unless.compare_structures(truth, learned, contexts=data)
    return score.f1, score.false_positive_rate, named_gate(learned) == GATE


def control(options: Options) -> Iterator[Entry]:
    """Count false claims where nothing depends, and where nothing is gated."""
    from benchmarks.accuracy_domains import independent, network, pairwise

    makers: dict[str, Any] = {"nothing depends": independent, "pairwise": pairwise}
    try:
        for name in ("cancer", "survey"):
            makers[name] = network(options.need(f"networks/{name}.bif.gz"))
    except DataError as missing:
        yield Note(f"No networks: {missing}.")
    n_simulations = 50 * options.draws
    for name, make in makers.items():
        for n_rows in (500, 5_000):
            items = ((make, n_rows, begin, BATCH) for begin in range(0, n_simulations, BATCH))
            shares = np.concatenate(each(_false_shares, items)).mean(axis=0).tolist()
            for kind, share in zip(("linked", "differs"), shares, strict=True):
                yield Line(f"{name}, N = {n_rows:,}: false share of '{kind}'", share, at_most=0.06)
    yield Note(f"{n_simulations:,} simulations each, fdr = 0.05; no claim counts as no false one.")
    vanished = np.sum(each(_vanished, ((draw,) for draw in range(options.draws))), axis=0)
    share = float(vanished[0] / max(1, vanished[1]))
    yield Line("links with V >= 0.1 said to vanish", share, at_most=0.05)


def _false_shares(make: Callable, n_rows: int, begin: int, n_simulations: int) -> list[tuple[float, float]]:
    import unless
    from benchmarks.accuracy_domains import false_shares

    found = []
    for simulation in range(begin, begin + n_simulations):
        # Not the seeds that the levels of the gate search were chosen with.
        data, links, triples = make(n_rows, np.random.default_rng((2_024, simulation)))
        shares = false_shares(unless.GGS().fit(data), links, triples)
        found.append((shares["linked"], shares["differs"]))
    return found


def _vanished(draw: int) -> tuple[int, int]:
    """Count the links with V >= 0.1 that are said to vanish, and all of them."""
    import unless
    from benchmarks.accuracy_domains import paper, strengths

    data, _, law = paper(6, 5_000, draw)
    strong = {pair for pair, v in strengths(law).items() if v >= 0.1}
    gone = {
        claim.pair
        for claim in unless.GGS().fit(data).claims_
        if claim.kind == "vanishes" and "0" in dict(claim.region.conditions).get("W", ("0",))
    }
    return len(strong & gone), len(strong)


def cost(options: Options) -> Iterator[Entry]:
    """Time ALARM and a hundred variables."""
    try:
        path = options.need("bnlearn_alarm/data.csv.gz")
    except DataError as missing:
        yield Note(f"No ALARM: {missing}.")
    else:
        found = in_child(against_csgs, str(path), environment=ONE_THREAD)
        ratio, turns = found["GGS"] / found["CSGS"], spread(found["ratios"])
        yield Line("ALARM: CPU of GGS to CSGS's", ratio, "times", turns, at_most=10)
    found = in_child(of_many_variables, environment=ONE_THREAD)
    yield Line("100 variables x 15,000 rows, 2 workers: wall", found["minutes"], "min", at_most=2)
    yield Line("100 variables x 15,000 rows, 2 workers: peak", found["peak"] / 2**30, "GiB", at_most=2)


def _summary(scores: list) -> tuple[str, str, str]:
    f1 = np.mean([score.f1 for score in scores])
    absent = np.mean([score.false_positive_rate for score in scores])
    return f"{f1:.3f}", f"{absent:.3f}", str(len(scores))
