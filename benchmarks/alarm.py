"""ALARM: all canonical graphs by Unless against one graph by pybnesian's PC."""

from collections.abc import Iterator
from functools import partial
from typing import Literal

from benchmarks.options import Options
from benchmarks.peers import Peer, PeerError
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import Measured, Sample, interleave, measured, median, ratios, spread, times

TITLE = "ALARM: all canonical graphs, against one graph"
TARGETS: dict[Literal["shared", "independent"], float] = {"independent": 0.5, "shared": 1.0}


def run(options: Options) -> Iterator[Entry]:
    """Learn all canonical graphs of 20,000 rows x 37 columns on one thread."""
    import unless

    path = options.need("bnlearn_alarm/data.csv.gz")
    data = unless.read(path)
    learners = {blankets: unless.CSGS(blankets=blankets, n_jobs=1) for blankets in TARGETS}
    ways: dict[str, Measured] = {
        blankets: measured(partial(each.fit, data)) for blankets, each in learners.items()
    }
    try:
        with Peer("pybnesian", "pybnesian_pc.py", str(path.resolve())) as peer:
            samples = interleave({**ways, "peer": peer.sample}, options.repeats)
            yield Note(
                f"One thread; {options.repeats} turns; the peer is pybnesian {peer.about['version']}, PC "
                f"with its ChiSquare. {data.n_rows:,} rows, {data.n_distinct:,} contexts."
            )
    except PeerError as missing:
        yield Note(f"No ratios: {missing}.")
        samples = interleave(ways, options.repeats)
    yield from _against_peer(samples)
    for name, learned in samples.items():
        what = "pybnesian's PC, one graph" if name == "peer" else f'CSGS(blankets="{name}"), all graphs'
        yield Line(f"{what}: CPU", median(learned), "s", spread(times(learned)))
        yield Line(f"{what}: wall", median(learned, "wall"), "s", spread(times(learned, "wall")))
    for name, learner in learners.items():
        yield Line(f"{name}: questions asked", learner.n_tests_)
        yield Line(f"{name}: tables counted", learner.n_distinct_tests_ or 0)
        yield Line(f"{name}: distinct graphs", learner.structure_.n_graphs)


def _against_peer(samples: dict[str, list[Sample]]) -> Iterator[Line]:
    if "peer" not in samples:
        return
    for name, target in TARGETS.items():
        for clock in ("cpu", "wall"):
            ratio = median(samples[name], clock) / median(samples["peer"], clock)
            spreads = spread(ratios(samples[name], samples["peer"], clock))
            what = f"{name} against one graph by PC, {clock.replace('cpu', 'CPU')} time"
            yield Line(what, ratio, "times", spreads, at_most=target if clock == "cpu" else None)
