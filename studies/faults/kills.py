"""Commands that are killed at a random moment: no half file, and nothing left behind after the next command.

`python -m studies.faults.kills` runs it alone.
"""

import argparse
import json
import lzma
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from studies.faults.commands import Cell, Ended, alive, finish, wait_until_heard, wrong_with
from unless.runtime.files import replacing

# Raised whenever kept results would differ.
FORMAT = 2
N_KILLS, N_QUICK = 216, 36
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
NAMES = {signal.SIGKILL: "SIGKILL", signal.SIGTERM: "SIGTERM", signal.SIGINT: "Ctrl-C"}
# Commands side by side.
WORKERS = 2
LATEST = 1.4
# Seconds: how long after the beginning of a draft a command is killed at most, and between two looks.
WRITING, LOOK = 0.01, 0.0002
DRAFT = ".unless-part"
OLD = b"what was there before\n"
WORK = "work"
SMALL = ("datasets", "titanic", "-o", "small.csv")


@dataclass(frozen=True)
class Case:
    """A command that writes, and the files that it writes; `{inputs}` stands for the folder of inputs."""

    name: str
    words: Sequence[str]
    outputs: Sequence[str]
    keeps_work: bool = False


CASES = (
    Case("demo --report", ("demo", "--report", "r.html"), ("r.html",)),
    Case("learn", ("learn", "{inputs}/t.csv", "-o", "m.unless"), ("m.unless",)),
    Case("learn, packed (.xz)", ("learn", "{inputs}/t.csv.xz", "-o", "m.unless"), ("m.unless",)),
    Case(
        "learn --work-dir --resume",
        ("learn", "{inputs}/t.csv", "-o", "m.unless", "--work-dir", WORK, "--resume"),
        ("m.unless",),
        keeps_work=True,
    ),
    Case(
        "learn --learner CSGS --work-dir --resume --jobs 2",
        (
            *("learn", "{inputs}/t.csv", "-o", "m.unless", "--learner", "CSGS", "--jobs", "2"),
            *("--work-dir", WORK, "--resume"),
        ),
        ("m.unless",),
        keeps_work=True,
    ),
    Case("report", ("report", "{inputs}/m.unless", "-o", "r.html"), ("r.html",)),
    Case("fit", ("fit", "{inputs}/m.unless", "{inputs}/t.csv", "-o", "f.unless"), ("f.unless",)),
    Case("sample -o", ("sample", "{inputs}/f.unless", "-n", "100000", "-o", "s.csv"), ("s.csv",)),
    Case("convert to .mn", ("convert", "{inputs}/f.unless", "f.mn"), ("f.mn", "f.mn.names.json")),
    Case("convert to .graphml", ("convert", "{inputs}/m.unless", "g.graphml"), ("g.graphml",)),
    Case("convert to .unless", ("convert", "{inputs}/c.unless", "c.unless"), ("c.unless",)),
    Case("datasets -o", ("datasets", "csi", "--rows", "100000", "-o", "d.csv"), ("d.csv",)),
)


@dataclass(frozen=True)
class Kill:
    """One kill: of what, with which signal, when, and what was there before and is run afterwards."""

    number: int
    case: int
    signal: int
    # While it writes a file, or at any time.
    while_writing: bool
    # The share of the command's time; more than all of it, as commands are slower side by side.
    moment: float
    has_old: bool
    same_again: bool


@dataclass
class FoundAfterKill:
    """What came of it."""

    kill: dict[str, Any]
    format: int = FORMAT
    code: int = 0
    # absent, old or new
    outputs: list[str] = field(default_factory=list)
    # Drafts and temporary folders that were there until the next command.
    left: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Reference:
    """What a command writes if it is left alone, the seconds that it takes, and if it listens to signals."""

    contents: dict[str, bytes]
    seconds: float
    listens: bool = True


def study(folder: Path, seed: int, quick: bool, minutes: float) -> str:
    """Kill commands, going on from what `folder` holds, and return the section of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * minutes
    planned = plan(seed, N_QUICK if quick else N_KILLS)
    missing = [kill for kill in planned if _load(folder, seed, kill) is None]
    if missing:
        inputs = (folder / "inputs").absolute()
        references = _prepare(inputs, folder / "references", {CASES[kill.case] for kill in missing})

        def run(kill: Kill) -> None:
            if time.monotonic() < end:
                _keep(folder, seed, run_kill(kill, folder / "cells", inputs, references))

        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(run, missing))
    found = [one for kill in planned if (one := _load(folder, seed, kill)) is not None]
    return section(found, n_planned=len(planned))


def plan(seed: int, n_kills: int) -> list[Kill]:
    """Draw the moments; commands and signals come in turn, so that each pair comes as often as any other."""
    rng = random.Random(seed)  # noqa: S311 (no secret)
    return [
        Kill(
            number,
            number % len(CASES),
            SIGNALS[number // len(CASES) % len(SIGNALS)],
            while_writing=rng.random() < 1 / 3,
            moment=rng.uniform(0.0, LATEST),
            has_old=rng.random() < 0.5,
            same_again=rng.random() < 0.5,
        )
        for number in range(n_kills)
    ]


def run_kill(kill: Kill, folder: Path, inputs: Path, references: dict[str, Reference]) -> FoundAfterKill:
    """Kill one command and look at what it left, then at what the next one leaves."""
    case, found = CASES[kill.case], FoundAfterKill(asdict(kill))
    reference = references[case.name]
    # A run of this study may have been stopped in the middle of it.
    shutil.rmtree(folder / str(kill.number), ignore_errors=True)
    cell = Cell(folder / str(kill.number))
    if kill.has_old:
        for name in case.outputs:
            (cell.out / name).write_bytes(OLD)
    words = _words(case, inputs)
    running = cell.start(words)
    _wait(kill, running, cell, reference)
    running.send_signal(kill.signal)
    ended = finish(running)
    found.code = ended.code
    found.left = [*(name for name in cell.files() if name.endswith(DRAFT)), *cell.left()]
    found.outputs = [_state(cell.out / name, reference.contents[name]) for name in case.outputs]
    found.faults += _wrong_after_kill(kill, case, ended, found.outputs)
    if found.left and found.code == 128 + kill.signal:
        found.faults.append(f"it did not clean up: {', '.join(found.left[:3])} stayed")
    if left_alive := alive(running.pid):
        found.faults.append(f"processes {left_alive} live on")
        for process in left_alive:
            os.kill(process, signal.SIGKILL)
    found.faults += _run_next(kill, case, cell, words, reference)
    if not found.faults:
        shutil.rmtree(cell.folder)
    return found


def _wait(kill: Kill, running: subprocess.Popen[str], cell: Cell, reference: Reference) -> None:
    """Wait for the moment to kill a command."""
    begin = time.monotonic()
    if kill.signal != signal.SIGKILL and reference.listens:
        wait_until_heard(running)
    if kill.while_writing:
        while running.poll() is None and not _is_writing(cell):
            time.sleep(LOOK)
        time.sleep(WRITING * kill.moment / LATEST)
    else:
        time.sleep(kill.moment * max(0.0, reference.seconds - (time.monotonic() - begin)))


def _is_writing(cell: Cell) -> bool:
    """Tell whether there is a draft that holds something."""
    for folder in (cell.out, cell.out / WORK):
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(DRAFT) and entry.stat().st_size:
                    return True
    return False


def _wrong_after_kill(kill: Kill, case: Case, ended: Ended, outputs: Sequence[str]) -> list[str]:
    faults = wrong_with(ended)
    for name, state in zip(case.outputs, outputs, strict=True):
        if state == "other" or (state == "absent" and kill.has_old):
            faults.append(f"{name} is neither what was there before nor whole")
    is_whole = all(state == "new" for state in outputs)
    stopped = ended.code == (-kill.signal if kill.signal == signal.SIGKILL else 128 + kill.signal)
    # A signal may come when all is done and Python is about to end.
    if not stopped and not (is_whole and ended.code in (0, -kill.signal)):
        faults.append(f"its exit code is {ended.code}: {ended.sentence[-200:]}")
    if stopped and kill.signal != signal.SIGKILL and "Stopped" not in ended.stderr:
        faults.append(f"it did not say that it was stopped: {ended.sentence[-200:]}")
    return faults


def _run_next(kill: Kill, case: Case, cell: Cell, words: Sequence[str], reference: Reference) -> list[str]:
    """Run the same command again, or a small one, and say what is wrong afterwards."""
    same = kill.same_again or case.keeps_work
    before = {name for name in cell.files() if name in case.outputs}
    ended = cell.run(words if same else SMALL)
    faults = [f"after that, {fault}" for fault in wrong_with(ended)]
    if ended.code != 0:
        faults.append(f"the next command failed with {ended.code}: {ended.sentence[-200:]}")
    if same:
        faults += [
            f"the next command wrote another {name}"
            for name in case.outputs
            if _state(cell.out / name, reference.contents[name]) != "new"
        ]
    expected = set(case.outputs) if same else {*before, "small.csv"}
    left = [name for name in cell.files() if name not in expected and not _is_work(case, name)]
    if left:
        faults.append(f"{', '.join(left)} stayed")
    if cell.left():
        faults.append(f"{', '.join(cell.left()[:3])} stayed in the temporary folder")
    return faults


def _is_work(case: Case, name: str) -> bool:
    """Tell whether a file is one that a folder of finished work keeps by design."""
    is_kept = name.endswith((".shard", ".npz", ".lock"))
    return case.keeps_work and name.startswith(f"{WORK}/") and is_kept


def _state(path: Path, new: bytes) -> str:
    if not path.exists():
        return "absent"
    content = path.read_bytes()
    return "new" if content == new else "old" if content == OLD else "other"


def _words(case: Case, inputs: Path) -> list[str]:
    return [word.replace("{inputs}", str(inputs)) for word in case.words]


def _prepare(inputs: Path, folder: Path, cases: Iterable[Case]) -> dict[str, Reference]:
    """Make the inputs, and run each command twice: first to compile kernels, then to know its time."""
    inputs.mkdir(exist_ok=True)
    cell = Cell(folder / "inputs")
    made: dict[str, Sequence[str]] = {
        "t.csv": ("datasets", "csi", "--variables", "12", "--rows", "20000", "-o"),
        "m.unless": ("learn", str(inputs / "t.csv"), "-o"),
        "c.unless": ("learn", str(inputs / "t.csv"), "--learner", "CSGS", "-o"),
        "f.unless": ("fit", str(inputs / "m.unless"), str(inputs / "t.csv"), "-o"),
    }
    for name, words in made.items():
        _succeed(cell, [*words, str(inputs / name)])
    (inputs / "t.csv.xz").write_bytes(lzma.compress((inputs / "t.csv").read_bytes(), preset=0))
    return {case.name: _reference(case, inputs, folder) for case in cases}


def _reference(case: Case, inputs: Path, folder: Path) -> Reference:
    words = _words(case, inputs)
    place = folder / str(CASES.index(case))
    for _ in range(2):
        shutil.rmtree(place, ignore_errors=True)
        cell = Cell(place)
        begin = time.monotonic()
        listens = _succeed(cell, words)
        seconds = time.monotonic() - begin
    return Reference({name: (cell.out / name).read_bytes() for name in case.outputs}, seconds, listens)


def _succeed(cell: Cell, words: Sequence[str]) -> bool:
    """Run a command that must succeed, and tell whether it listens to signals."""
    running = cell.start(words)
    listens = wait_until_heard(running)
    ended = finish(running)
    if ended.code != 0:
        raise RuntimeError(f"unless {' '.join(words)} failed: {ended.sentence}")
    return listens


def _file(folder: Path, seed: int, number: int) -> Path:
    return folder / f"kill-{seed}-{number:03}.json"


def _keep(folder: Path, seed: int, found: FoundAfterKill) -> None:
    with replacing(_file(folder, seed, found.kill["number"])) as stream:
        stream.write(json.dumps(asdict(found), sort_keys=True, indent=1).encode())


def _load(folder: Path, seed: int, kill: Kill) -> FoundAfterKill | None:
    path = _file(folder, seed, kill.number)
    if not path.exists():
        return None
    found = json.loads(path.read_text())
    if found.get("format") != FORMAT or found["kill"] != asdict(kill):
        return None
    return FoundAfterKill(**found)


def section(found: Sequence[FoundAfterKill], n_planned: int) -> str:
    """Write the section: what was killed, and what came of it."""
    n_faults = sum(bool(one.faults) for one in found)
    n_half = sum("other" in one.outputs for one in found)
    lines = [
        "## Kills",
        "",
        f"{len(found)} commands were killed by SIGKILL, SIGTERM and Ctrl-C in turn, at random moments, a "
        "third of them while they wrote a file, half of them with an older file in the place of the output. "
        "Afterwards the same command was run again, or a small one that writes in the same folder.",
        "",
        f"Half files: {n_half}. Kills after which anything else was wrong (exit code, traceback, the bytes "
        "that the next command wrote, files or temporary folders left behind after it, processes that live "
        f"on): {n_faults}. After {sum(bool(one.left) for one in found)} kills a draft or a temporary folder "
        "was there until the next command.",
        "",
    ]
    if len(found) < n_planned:
        lines += [f"There was no time for {n_planned - len(found)} of {n_planned} kills.", ""]
    lines += _table(found)
    for one in found:
        case = CASES[one.kill["case"]]
        lines += [f"- Kill {one.kill['number']}, `unless {case.name}`: {fault}." for fault in one.faults]
    return "\n".join(lines).rstrip() + "\n"


def _table(found: Sequence[FoundAfterKill]) -> list[str]:
    signals = list(NAMES)
    heads = ["command", *(NAMES[one] for one in signals), "output absent or old", "output new"]
    heads += ["left until the next command", "wrong"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for number, case in enumerate(CASES):
        own = [one for one in found if one.kill["case"] == number]
        lines.append(f"| `unless {case.name}` | {' | '.join(map(str, _counts(own, signals)))} |")
    lines.append(f"| all | {' | '.join(map(str, _counts(found, signals)))} |")
    return [*lines, ""]


def _counts(found: Sequence[FoundAfterKill], signals: Sequence[int]) -> list[int]:
    def count(holds: Callable[[FoundAfterKill], bool]) -> int:
        return sum(map(holds, found))

    n_new = count(lambda one: all(state == "new" for state in one.outputs))
    by_signal = [sum(one.kill["signal"] == number for one in found) for number in signals]
    n_left, n_wrong = count(lambda one: bool(one.left)), count(lambda one: bool(one.faults))
    return [*by_signal, len(found) - n_new, n_new, n_left, n_wrong]


def main(words: list[str] | None = None) -> int:
    """Run the study alone and print its section; returns 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m studies.faults.kills", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("build/faults/kills"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help=f"{N_QUICK} kills")
    parser.add_argument("--minutes", type=float, default=15.0)
    options = parser.parse_args(words)
    text = study(options.folder, options.seed, options.quick, options.minutes)
    sys.stdout.write(text)
    return int("\n- Kill" in text or "There was no time" in text)


if __name__ == "__main__":
    sys.exit(main())
