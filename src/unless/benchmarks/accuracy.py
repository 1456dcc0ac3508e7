"""How often GGS is right: recovery, divergence, control of false claims, cost; next to the other learners."""

import time
from collections.abc import Iterator

import numpy as np

from unless.benchmarks.options import DataError, Options
from unless.benchmarks.result import Entry, Line, Note, Table

TITLE = "Structures: recovery, control, cost"
HEAD = """# How often it is right

Written by `unless bench --only accuracy --data DIR --write docs/accuracy.md`; `--draws N` takes fewer
draws (40) and 50 N simulations. Seeds are fixed. F1 is over pairs in observed contexts (by graphs).

Machine: {machine}.
"""
SIZES = ((6, 2_000), (6, 10_000), (9, 10_000))
OTHERS = ("CSGS", "CSPC", "GSMN", "DTSL")
# The other learners, and the other domains, are shown by fewer draws.
FEW = 10


def run(options: Options) -> Iterator[Entry]:
    """Measure all of it."""
    yield from recovery(options.draws)
    yield from relatives(min(FEW, options.draws))
    yield from divergence(min(FEW, options.draws))
    yield from control(options)
    yield from cost(options)


def recovery(draws: int) -> Iterator[Entry]:
    """Compare GGS with the test that is told the gate, and with other learners."""
    import unless
    from unless.benchmarks.accuracy_domains import named_gate, paper, told

    rows = []
    for n, n_rows in SIZES:
        found: dict[str, list] = {name: [] for name in ("told", "GGS", *OTHERS)}
        right = []
        for draw in range(draws):
            data, truth, _ = paper(n, n_rows, draw)
            found["told"].append(unless.compare_structures(truth, told(data)))
            learned = unless.GGS().fit(data).structure_
            found["GGS"].append(unless.compare_structures(truth, learned))
            right.append(named_gate(learned) == ("W", ("0",)))
            for name in OTHERS if draw < FEW else ():
                other = getattr(unless, name)().fit(data).structure_
                found[name].append(unless.compare_structures(truth, other))
        rows += [(f"n = {n}, N = {n_rows:,}", name, *_summary(scores)) for name, scores in found.items()]
        less = np.mean(
            [ours.f1 - theirs.f1 for ours, theirs in zip(found["GGS"], found["told"], strict=True)]
        )
        where = f"n = {n}, N = {n_rows:,}"
        yield Line(f"{where}: F1 of GGS less the told test's", float(less), at_least=-0.02)
        absent = [
            one.false_positive_rate for one, is_right in zip(found["GGS"], right, strict=True) if is_right
        ]
        yield Line(f"{where}: absent pairs drawn, right gate", float(np.mean(absent)), at_most=0.04)
        yield Line(f"{where}: draws with the right gate", float(np.mean(right)), at_least=0.95)
    yield Table(("domain", "learner", "F1", "absent pairs drawn", "draws"), tuple(rows))


def relatives(draws: int) -> Iterator[Entry]:
    """Show other shapes, more gates, more levels and a gate of two variables."""
    import unless
    from unless.benchmarks.accuracy_domains import double_gate, paper

    n_rows = 10_000
    domains = {
        "chain, n = 20": lambda draw: paper(20, n_rows, draw, shape="chain")[:2],
        "grid, n = 20": lambda draw: paper(20, n_rows, draw, shape="grid")[:2],
        "chain, two gates, n = 20": lambda draw: paper(20, n_rows, draw, shape="chain", n_gates=2)[:2],
        "two gates, n = 8": lambda draw: paper(8, n_rows, draw, n_gates=2)[:2],
        "three levels, n = 6": lambda draw: paper(6, n_rows, draw, n_levels=3)[:2],
        "gate of two variables, n = 7": lambda draw: double_gate(7, n_rows, draw),
    }
    rows = []
    for name, make in domains.items():
        found: dict[str, list] = {"GGS": [], "CSGS": [], "GSMN": []}
        for draw in range(draws):
            data, truth = make(draw)
            for learner, scores in found.items():
                learned = getattr(unless, learner)().fit(data).structure_
                scores.append(unless.compare_structures(truth, learned, contexts=data))
        rows += [(name, learner, *_summary(scores)) for learner, scores in found.items()]
    yield Table((f"domain, N = {n_rows:,}", "learner", "F1", "absent pairs drawn", "draws"), tuple(rows))


def divergence(draws: int) -> Iterator[Entry]:
    """Compare networks: GGS's own features, CSGS's cliques, the generating features."""
    import unless
    from unless.benchmarks.accuracy_domains import paper

    rows = []
    for n, n_rows in ((6, 500), (6, 2_000), (6, 10_000), (9, 2_000), (9, 10_000)):
        found: dict[str, list[float]] = {"GGS": [], "CSGS": [], "generating": []}
        for draw in range(draws):
            data, _, law = paper(n, n_rows, draw)
            for name in ("GGS", "CSGS"):
                net = getattr(unless, name)().fit(data).network(data)
                found[name].append(float(unless.kl_divergence(law, net)))
            net = unless.fit_weights(law.features, data, unless.Gaussian(1.0))
            found["generating"].append(float(unless.kl_divergence(law, net)))
        mean = {name: float(np.mean(values)) for name, values in found.items()}
        where = f"n = {n}, N = {n_rows:,}"
        rows.append((where, *(f"{mean[name]:.4f}" for name in found)))
        yield Line(f"{where}: KL of GGS to CSGS's", mean["GGS"] / mean["CSGS"], "times", at_most=1.0)
        if n_rows >= 10_000:
            share = mean["GGS"] / mean["generating"]
            yield Line(f"{where}: KL of GGS to the generating features'", share, "times", at_most=1.25)
    yield Table(("mean KL, nats", "GGS", "CSGS, cliques", "generating features"), tuple(rows))


def control(options: Options) -> Iterator[Entry]:
    """Count false claims where nothing depends, and where nothing is gated."""
    import unless
    from unless.benchmarks.accuracy_domains import false_shares, independent, network, pairwise

    makers = {"nothing depends": independent, "pairwise": pairwise}
    try:
        for name in ("cancer", "survey"):
            makers[name] = network(options.need(f"networks/{name}.bif.gz"))
    except DataError as missing:
        yield Note(f"No networks: {missing}.")
    n_simulations = 50 * options.draws
    for name, make in makers.items():
        for n_rows in (500, 5_000):
            # Not the seeds that the levels of the gate search were chosen with.
            rng = np.random.default_rng(2_024)
            found: dict[str, list[float]] = {"linked": [], "differs": []}
            for _ in range(n_simulations):
                data, links, triples = make(n_rows, rng)
                for kind, share in false_shares(unless.GGS().fit(data), links, triples).items():
                    found[kind].append(share)
            for kind, shares in found.items():
                what = f"{name}, N = {n_rows:,}: false share of '{kind}'"
                yield Line(what, float(np.mean(shares)), at_most=0.06)
    yield Note(f"{n_simulations:,} simulations each, fdr = 0.05; no claim counts as no false one.")
    yield _vanishing(options.draws)


def _vanishing(draws: int) -> Line:
    import unless
    from unless.benchmarks.accuracy_domains import paper, strengths

    wrong = present = 0
    for draw in range(draws):
        data, _, law = paper(6, 5_000, draw)
        strong = {pair for pair, v in strengths(law).items() if v >= 0.1}
        gone = {
            claim.pair
            for claim in unless.GGS().fit(data).claims_
            if claim.kind == "vanishes" and "0" in dict(claim.region.conditions).get("W", ("0",))
        }
        wrong, present = wrong + len(strong & gone), present + len(strong)
    return Line("links with V >= 0.1 said to vanish", wrong / max(1, present), at_most=0.05)


def cost(options: Options) -> Iterator[Entry]:
    """Time ALARM and a hundred variables."""
    import unless

    try:
        data = unless.read(str(options.need("bnlearn_alarm/data.csv.gz")))
    except DataError as missing:
        yield Note(f"No ALARM: {missing}.")
    else:
        unless.CSGS().fit(data)
        spent = {}
        for name in ("CSGS", "GGS"):
            begin = time.process_time()
            getattr(unless, name)().fit(data)
            spent[name] = time.process_time() - begin
        yield Line("ALARM: CPU of GGS to CSGS's", spent["GGS"] / spent["CSGS"], "times", at_most=10)
    data = unless.datasets.make_csi(100, shape="chain", n_gates=4, random_state=0)
    table = data.sample(15_000, random_state=1)
    begin = time.process_time()
    unless.GGS().fit(table)
    yield Line("100 variables x 15,000 rows: CPU", (time.process_time() - begin) / 60, "min", at_most=2)


def _summary(scores: list) -> tuple[str, str, str]:
    f1 = np.mean([score.f1 for score in scores])
    absent = np.mean([score.false_positive_rate for score in scores])
    return f"{f1:.3f}", f"{absent:.3f}", str(len(scores))
