"""Two threads against one on ALARM, beside what two cores give to work that shares nothing."""

import hashlib
from collections.abc import Iterator
from functools import partial
from threading import Thread
from typing import Literal

from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import interleave, measured, median, ratios, spread, times

TITLE = "Threads: ALARM on two cores"
AT_LEAST = 1.7
BLANKETS: tuple[Literal["shared", "independent"], ...] = ("shared", "independent")
PROBE_BYTES, PROBE_TURNS = 1 << 24, 12


def run(options: Options) -> Iterator[Entry]:
    """Learn all canonical graphs with one thread and with two."""
    import unless

    data = unless.read(options.need("bnlearn_alarm/data.csv.gz"))
    ways = {
        (blankets, n_jobs): unless.CSGS(blankets=blankets, n_jobs=n_jobs, show_progress=False)
        for blankets in BLANKETS
        for n_jobs in (1, 2)
    }
    calls = {f"{blankets}, {n}": measured(partial(each.fit, data)) for (blankets, n), each in ways.items()}
    calls |= {f"probe, {n}": measured(partial(_probe, n)) for n in (1, 2)}
    samples = interleave(calls, options.repeats)
    for name in ("probe", "shared", "independent"):
        one, two = samples[f"{name}, 1"], samples[f"{name}, 2"]
        # The probe does twice the work with two threads; the learner the same work.
        work = 2.0 if name == "probe" else 1.0
        gains = [work * gain for gain in ratios(one, two, "wall")]
        gain = work * median(one, "wall") / median(two, "wall")
        target = None if name == "probe" else AT_LEAST
        what = "two threads that share nothing (the machine now)" if name == "probe" else f"{name} blankets"
        yield Line(f"{what}: gain by a second core", gain, "times", spread(gains), at_least=target)
        if name != "probe":
            yield Line(f"{what}: wall, 2 threads", median(two, "wall"), "s", spread(times(two, "wall")))
            yield Line(f"{what}: CPU of 2 threads to 1", median(two) / median(one), "times")
    yield Note(
        f"{options.repeats} turns. The first line says what two cores could give at that time; the targets "
        "are for two idle ones."
    )


def _probe(n_threads: int) -> None:
    """Hash as much in every thread: hashing leaves the interpreter alone and stays in its core."""
    block = bytes(PROBE_BYTES)

    def work() -> None:
        for _ in range(PROBE_TURNS):
            hashlib.sha256(block).digest()

    threads = [Thread(target=work) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
