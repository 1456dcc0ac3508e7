"""Tests of independence per second, against pybnesian, causal-learn, pgmpy and pyAgrum."""

import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.options import Options
from benchmarks.peers import Peer, PeerError
from benchmarks.result import Entry, Line, Note, Table
from benchmarks.timing import spread

TITLE = "Tests of independence per second"
PEERS = ("pybnesian", "causal-learn", "pgmpy", "pyagrum")
LEVELS, ROWS, GIVEN = (2, 4), (10_000, 100_000, 1_000_000), range(6)
# Enough columns that nearly all rows are distinct: collapsing gains nothing here.
N_COLUMNS, COPIED = 24, 0.3
N_QUESTIONS, TURNS = 12, 5
# Seconds of CPU a turn of each way should take, so that the clock's grain does not matter; a slow peer is
# asked a few questions only.
SPAN = 0.02
# By levels and given variables: how many times as fast as the fastest peer; as a learner asks, everywhere 3.
AT_LEAST = {2: (2.5,) * 6, 4: (3.0, 3.0, 1.0, 1.0, 1.0, 1.0)}
AT_LEAST_ALL = 3.0

Question = tuple[str, str, list[str]]


@dataclass
class Asking:
    """One way of asking: so many tests in a request, repeated; and the speeds found."""

    request: Any
    n_tests: int
    n_failed: int = 0
    speeds: list[float] = field(default_factory=list)

    def note(self, cpu: float) -> None:
        """Note what one request cost."""
        self.speeds.append(self.n_tests / cpu)

    @property
    def speed(self) -> float:
        """Tests per second: the median over the turns."""
        return statistics.median(self.speeds)


@dataclass
class Findings:
    """What is told about a peer after all cells: how often its p is ours, and what it failed with."""

    n_asked: int = 0
    n_same: int = 0
    n_failed: int = 0
    failure: str = ""


def run(options: Options) -> Iterator[Entry]:
    """Ask twelve questions a cell, one at a time and all others of a pair's first variable at once."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        peers, versions = {}, []
        for package in PEERS:
            try:
                peers[package] = stack.enter_context(Peer(package, "independence.py", package))
                versions.append(f"{package} {peers[package].about['version']}")
            except PeerError as missing:
                yield Note(f"Left out: {missing}.")
        findings = {package: Findings() for package in peers}
        rows: list[tuple[str, ...]] = []
        for n_levels in LEVELS:
            for n_rows in ROWS:
                codes = make_table(n_levels, n_rows)
                path = Path(folder) / "codes.npy"
                np.save(path, codes)
                for peer in peers.values():
                    peer.ask(json.dumps({"load": str(path)}))
                tester = make_tester(codes, n_levels)
                for n_given in GIVEN:
                    cell = f"{n_levels} levels, {n_rows:,} rows, {n_given} given"
                    ways = measure(tester, peers, findings, n_given, min(options.repeats, TURNS))
                    rows.append((cell, *(_shown(ways.get(name)) for name in ("one", "all", *peers))))
                    yield from compare(cell, ways, AT_LEAST[n_levels][n_given])
        yield Table(("tests per CPU second", "one at a time", "all others at once", *peers), tuple(rows))
    yield Note(
        f"Built once, then asked; {N_COLUMNS} columns, nearly all rows distinct; up to {TURNS} turns of all "
        "ways, each in its own process, CPU time. Ratios are against the fastest peer that answers. Peers: "
        f"{', '.join(versions) or 'none'}; their memories of answers are off."
    )
    for package, found in findings.items():
        yield Note(_about(package, found))


def make_table(n_levels: int, n_rows: int) -> np.ndarray:
    """Draw columns of codes, each of which copies the one before now and then."""
    rng = np.random.default_rng([n_levels, n_rows])
    codes = rng.integers(0, n_levels, (N_COLUMNS, n_rows), dtype=np.uint8)
    for column in range(1, N_COLUMNS):
        is_copied = rng.random(n_rows) < COPIED
        codes[column, is_copied] = codes[column - 1, is_copied]
    return codes


def make_tester(codes: np.ndarray, n_levels: int) -> Any:
    """Return our tester of the same table."""
    from unless.data.dataset import Dataset
    from unless.data.domain import Domain, Variable
    from unless.independence.oracle import IndependenceTester

    levels = tuple(str(level) for level in range(n_levels))
    domain = Domain(tuple(Variable(f"v{column:02}", levels) for column in range(len(codes))))
    return IndependenceTester(Dataset.from_codes(domain, codes.T))


def make_questions(n_given: int) -> list[Question]:
    """Draw the questions of a cell: the same whatever the table."""
    rng = np.random.default_rng([n_given, 8])
    drawn = [rng.permutation(N_COLUMNS)[: n_given + 2] for _ in range(N_QUESTIONS)]
    names = [[f"v{column:02}" for column in columns] for columns in drawn]
    return [(a, b, given) for a, b, *given in names]


def measure(
    tester: Any, peers: dict[str, Peer], findings: dict[str, Findings], n_given: int, turns: int
) -> dict[str, Asking]:
    """Let everybody answer in turns; a peer that fails on every question is left out."""
    questions = make_questions(n_given)
    ways = _our_ways(tester, questions, N_COLUMNS - 1 - n_given)
    ours = [tester.ask(*question).p for question in questions]
    for package, peer in peers.items():
        way = _calibrated(peer, questions, ours, findings[package])
        if way is not None:
            ways[package] = way
    for _ in range(turns):
        for name, way in ways.items():
            way.note(peers[name].ask(way.request)["cpu"] if name in peers else _cpu_of(*way.request))
    return ways


def _our_ways(tester: Any, questions: list[Question], n_others: int) -> dict[str, Asking]:
    def one(loops: int) -> None:
        for _ in range(loops):
            for question in questions:
                tester.ask(*question)

    def every(loops: int) -> None:
        for _ in range(loops):
            for a, _, given in questions:
                tester.ask_all(a, given)

    ways = {}
    for name, call, n_tests in (("one", one, len(questions)), ("all", every, len(questions) * n_others)):
        # The first call may compile.
        call(1)
        loops = max(1, round(SPAN / _cpu_of(call, 1)))
        ways[name] = Asking((call, loops), loops * n_tests)
    return ways


def _calibrated(peer: Peer, questions: list[Question], ours: list[float], found: Findings) -> Asking | None:
    """Ask everything once, compare the answers, and choose how much to ask in a turn."""
    reply = peer.ask(json.dumps({"questions": questions, "loops": 1}))
    answered = []
    for question, expected, p in zip(questions, ours, reply["result"], strict=True):
        found.n_asked += 1
        if isinstance(p, str) or not np.isfinite(p):
            found.n_failed += 1
            found.failure = str(p)
        else:
            answered.append(question)
            found.n_same += bool(np.isclose(p, expected, rtol=1e-5, atol=1e-9))
    if not answered:
        return None
    each = reply["cpu"] / len(questions)
    kept = answered[: max(2, round(SPAN / each))]
    loops = max(1, round(SPAN / (each * len(kept))))
    return Asking(
        json.dumps({"questions": kept, "loops": loops}), loops * len(kept), len(questions) - len(answered)
    )


def _cpu_of(call, loops: int) -> float:
    start = time.process_time()
    call(loops)
    return max(time.process_time() - start, 1e-6)


def compare(cell: str, ways: dict[str, Asking], at_least: float) -> Iterator[Line]:
    """Yield how many times as fast as the fastest peer we are."""
    peers = [name for name in ways if name in PEERS]
    if not peers:
        return
    best = ways[max(peers, key=lambda name: ways[name].speed)]
    for name, what, target in (
        ("one", "one at a time", at_least),
        ("all", "all others at once", AT_LEAST_ALL),
    ):
        in_turns = [a / b for a, b in zip(ways[name].speeds, best.speeds, strict=True)]
        yield Line(
            f"{cell}: {what}", ways[name].speed / best.speed, "times", spread(in_turns), at_least=target
        )


def _shown(way: Asking | None) -> str:
    if way is None:
        return "fails"
    return f"{way.speed:,.0f}" + (f" ({way.n_failed} of {N_QUESTIONS} fail)" if way.n_failed else "")


def _about(package: str, found: Findings) -> str:
    said = f"{package}: the same p as ours in {found.n_same} of {found.n_asked - found.n_failed} answers"
    if found.n_failed:
        said += (
            f"; {found.n_failed} of {found.n_asked} questions failed ({found.failure.splitlines()[0][:90]})"
        )
    return f"{said}.{_REASONS.get(package, '')}"


_REASONS = {
    "pgmpy": " It corrects tables of two by two for continuity, which we do not.",
    "pybnesian": (
        " It counts degrees of freedom of empty rows, columns and strata too; with many rows and few given "
        "variables its statistic is wrong, and where it is negative, it fails."
    ),
    "pyagrum": " It counts degrees of freedom in its own way where strata are sparse, and rounds small p.",
}
