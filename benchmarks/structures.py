"""Structure learning: all canonical graphs of a table, against one graph by others."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.options import Options
from benchmarks.peers import Peer, PeerError
from benchmarks.result import Entry, Line, Note, Table
from benchmarks.tables import write_csv

TITLE = "Structures: all canonical graphs, against one graph"
TABLES = ("asia", "alarm", "nltcs", "plants", "accidents", "dna")
# A peer that takes longer is stopped; who takes longer than a slow turn is measured once.
TIME_LIMIT, SLOW_TURN = 60.0, 5.0
TURNS = 3
OURS: dict[str, dict[str, Any]] = {
    "shared": {"blankets": "shared", "n_jobs": 1},
    "independent": {"blankets": "independent", "n_jobs": 1},
    "shared, 2 threads": {"blankets": "shared", "n_jobs": 2},
}
PEERS = {
    "pybnesian PC": ("pybnesian", "pybnesian_pc.py"),
    "pyAgrum GHC": ("pyagrum", "pyagrum_graph.py", "GHC"),
    "pyAgrum MIIC": ("pyagrum", "pyagrum_graph.py", "MIIC"),
    "causal-learn PC": ("causal-learn", "causal_learn_pc.py"),
    "pgmpy PC": ("pgmpy", "pgmpy_pc.py"),
}
# Seconds of wall time and megabytes that all graphs may take, on two cores.
LIMITS: dict[str, tuple[float | None, float | None]] = {
    "nltcs": (2, None),
    "plants": (30, 2000),
    "accidents": (120, 2000),
    "dna": (None, 4000),
}
HEADERS = ("table", "who", "graphs", "CPU s", "wall s", "peak MB", "tests", "distinct")


@dataclass
class TimedPeer:
    """One process that learns the same table again and again, and what it said each time."""

    name: str
    peer: Peer
    answers: list[dict[str, Any]] = field(default_factory=list)
    failure: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether it is Unless."""
        return self.name in OURS

    def take_turn(self) -> None:
        """Learn once more, unless it failed or takes long."""
        if self.failure or (self.answers and self.of("wall") > SLOW_TURN):
            return
        try:
            self.answers.append(self.peer.ask(time_limit=None if self.is_ours else TIME_LIMIT))
        except PeerError as failure:
            self.failure = str(failure)

    def of(self, what: str) -> float:
        """Return the median of a figure; the first turn of several only warmed up."""
        return float(median(answer[what] for answer in self.answers[1:] or self.answers))

    def row(self, table: str) -> tuple[str, ...]:
        """Write it as a row of the table."""
        if not self.answers:
            return table, self.name, self.failure[:40], "", "", "", "", ""
        last = self.answers[-1]
        n_graphs = "1"
        tests: tuple[str, ...] = ("", "")
        if self.is_ours:
            n_contexts, n_distinct, *asked = last["result"]
            n_graphs = f"{n_contexts:,} ({n_distinct:,} different)"
            tests = tuple(f"{number:,}" for number in asked)
        memory = f"{last['peak'] / 1e6:,.0f}" if last["peak"] else ""
        return table, self.name, n_graphs, f"{self.of('cpu'):.3g}", f"{self.of('wall'):.3g}", memory, *tests


def run(options: Options) -> Iterator[Entry]:
    """Learn every table by everyone, in turn."""
    rows: list[tuple[str, ...]] = []
    for table in TABLES:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            path = write_csv(options, table, Path(folder))
            ready, missing = _start_peers(path, stack)
            for _ in range(1 + min(options.repeats, TURNS)):
                for one in ready:
                    one.take_turn()
        rows += [one.row(table) for one in ready]
        yield from _against_peers(table, ready)
        yield from _limits(table, {one.name: one for one in ready})
        if missing:
            yield Note(f"{table}: {'; '.join(missing)}.")
    yield Table(HEADERS, tuple(rows))
    yield Note(
        f"One graph each by the peers, on one thread; a peer is stopped after {TIME_LIMIT:.0f} s. Medians of "
        f"{TURNS} turns after one to warm up, once for who takes more than {SLOW_TURN:.0f} s; peaks are of "
        "processes of their own, with what they import and the table. pyAgrum reads its file in each turn."
    )


def _start_peers(path: Path, stack: ExitStack) -> tuple[list[TimedPeer], list[str]]:
    """Start everyone who can be started, each with the table read."""
    commands = {name: ("unless", "unless_csgs.py", json.dumps(settings)) for name, settings in OURS.items()}
    ready, missing = [], []
    for name, (package, script, *more) in {**commands, **PEERS}.items():
        try:
            peer = stack.enter_context(Peer(package, script, str(path.resolve()), *more))
        except PeerError as failure:
            missing.append(str(failure))
        else:
            ready.append(TimedPeer(name, peer))
    return ready, missing


def _against_peers(table: str, ready: list[TimedPeer]) -> Iterator[Entry]:
    finished = [one for one in ready if one.answers]
    theirs = [one for one in finished if not one.is_ours]
    if not theirs:
        yield Note(f"{table}: no peer finished within {TIME_LIMIT:.0f} s.")
        return
    fastest = min(theirs, key=lambda one: one.of("cpu"))
    for one in finished:
        if one.is_ours and OURS[one.name]["n_jobs"] == 1:
            ratio = one.of("cpu") / fastest.of("cpu")
            yield Line(f"{table}: {one.name}, all graphs to one by {fastest.name}, CPU", ratio, "times")


def _limits(table: str, ready: dict[str, TimedPeer]) -> Iterator[Entry]:
    seconds, megabytes = LIMITS.get(table, (None, None))
    one = ready["shared, 2 threads"]
    if seconds:
        yield Line(f"{table}: all graphs, 2 threads, wall", one.of("wall"), "s", at_most=seconds)
    if megabytes:
        yield Line(
            f"{table}: all graphs, 2 threads, peak", one.answers[-1]["peak"] / 1e6, "MB", at_most=megabytes
        )
