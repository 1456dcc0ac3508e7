"""Runs the study: samples tables of known law, learns from them, and judges what is said.

The unit of work is a cell: a domain, a number of rows, a learner, and the number of the table. Each cell is
one JSON file, so that a run that was stopped goes on where it was. Tables depend on the seed, the domain and
the number of the table only: learners see the same tables, and no cell depends on another.
"""

import json
import os
import re
import resource
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from studies.truth import judge, laws
from studies.truth.laws import Law
from unless import errors
from unless.data.dataset import Dataset

FDR = 0.05
# Base seeds below this one were used while the referee was designed, and these were looked at before its last
# change; what is reported uses others.
DESIGN_SEEDS, SEEN_SEEDS = 1_000, (20_261, 31_415)
SEED = 27_182
THRESHOLDS = (0.001, 0.003, 0.01)
# Rules of two well-known tables: a pair, and where it is linked.
KNOWN_RULES: dict[str, tuple[tuple[str, str], dict[str, set[str]]]] = {
    "monk3": (("a4", "class"), {"a2": {"3"}, "a5": {"3"}}),
    "car": (("class", "maint"), {"persons": {"4", "more"}, "safety": {"med", "high"}}),
}


# ---------------------------------------------------------------------- what is asked of Unless, in one place


def fitted(learner: str, data: object) -> Any:
    """Learn from a table, by the default learner or by the one of this name."""
    import unless

    known: Any = unless
    return known.learn(data) if learner == "default" else getattr(known, learner)().fit(data)


def statements_of(learner: str, data: Dataset, fdr: float = FDR) -> Iterable[Any]:
    """Return what is said of a table if this share of the findings may be false; 1 lists all candidates."""
    return said_by(fitted(learner, data), data, fdr)


def said_by(estimator: Any, data: Dataset, fdr: float = FDR) -> Iterable[Any]:
    """Return what a fitted learner says: one fit serves the findings and the list of all candidates."""
    import unless

    if fdr == FDR:
        statements: Iterable[Any] = estimator.statements_
        return statements
    return unless.explain(estimator._proposing(estimator.structure_), data, fdr=fdr)


def differences_of(first: Dataset, second: Dataset) -> dict[tuple[str, str], str]:
    """Return the pairs that are said to differ between two tables, and how."""
    import unless

    return {laws.named(*one.pair): one.kind for one in unless.compare_tables(first, second).differences}


# ---------------------------------------------------------------------- the plan


@dataclass(frozen=True)
class Cell:
    """One table and one learner; `task` says what is done with them."""

    domain: str
    n: int
    learner: str
    index: int
    task: str = "judge"

    @property
    def key(self) -> str:
        """The name of the cell's file."""
        words = re.sub("[^0-9A-Za-z]+", "_", f"{self.task} {self.domain}")
        return f"{words}-{self.n}-{self.learner}-{self.index:03d}"


Make = Callable[[np.random.Generator], Law]
DOMAINS: dict[str, Make] = {
    "independent few": lambda rng: laws.independent(8, (2, 3, 4), rng),
    "independent many": lambda rng: laws.independent(5, (20, 30, 50), rng),
    "pairwise": laws.pairwise,
    "gated 2-4": laws.gated,
    "gated 3-8": lambda rng: laws.gated(rng, (3, 8)),
    "gated by two": laws.gated_by_two,
    "rules": laws.rules,
    "rules, 5 % noise": lambda rng: laws.rules(rng, 0.05),
    "chain of 20": laws.chain,
    "chain of 20, 3 levels": lambda rng: laws.chain(rng, levels=3),
    "grid of 20": laws.grid,
    "grid of 20, 3 levels": lambda rng: laws.grid(rng, levels=3),
    "determined": laws.with_determined,
    "missing together": laws.missing_together,
    "confounder in 2 bins": lambda rng: laws.cut_confounder(rng, 2),
    "confounder in 4 bins": lambda rng: laws.cut_confounder(rng, 4),
}
NETWORKS = ("alarm", "child", "asia", "survey", "cancer")
TABLES = (
    "ucb_admissions",
    "titanic",
    "reinis",
    "stagedtrees_Asym",
    "stagedtrees_trajectories",
    "bnlearn_alarm",
)
LEARNERS = ("CSGS", "GGS", "GSMN", "CSPC", "IBMAPHC", "DTSL", "GSSL")
K2, K10, K20, K50 = 2_000, 10_000, 20_000, 50_000
# domain: {rows: tables} by the default learner, and by each of the others.
_WHOLE: dict[str, dict[int, int]] = {
    "pairwise": {200: 20, 500: 70, K2: 70, K10: 60, K50: 4},
    "gated 2-4": {200: 20, 500: 40, K2: 40, K10: 40, K50: 6},
    "gated 3-8": {500: 40, K2: 40, K10: 40, K50: 6},
    "gated by two": {500: 20, K2: 30, K10: 30, K50: 4},
    "independent many": {200: 140, 1_000: 130, 5_000: 130},
    "independent few": {200: 100, K2: 100},
    "rules": {200: 10, 500: 20, K2: 20},
    "rules, 5 % noise": {500: 20, K2: 20},
    "chain of 20": {500: 10, K2: 10, K10: 6},
    "chain of 20, 3 levels": {500: 6, K2: 6, K10: 4},
    "grid of 20": {500: 10, K2: 10, K10: 6},
    "grid of 20, 3 levels": {500: 6, K2: 6, K10: 4},
    "determined": {500: 20, K2: 20, K10: 10},
    "missing together": {500: 20, K2: 20},
    "confounder in 2 bins": {K2: 20, K10: 10},
    "confounder in 4 bins": {K2: 20, K10: 10},
    "alarm": {500: 4, K2: 10, K20: 4},
    "child": {500: 6, K2: 10, K20: 6},
    "asia": {500: 10, K2: 10, K20: 10},
    "survey": {500: 10, K2: 10, K20: 10},
    "cancer": {500: 10, K2: 10, K20: 10},
}
_OTHERS: dict[str, dict[str, dict[int, int]]] = {
    "CSGS": {
        "pairwise": {500: 20, K2: 20, K10: 20}, "gated 2-4": {500: 20, K2: 20, K10: 20},
        "gated 3-8": {K2: 10}, "gated by two": {K2: 10, K10: 10}, "independent many": {200: 20},
        "alarm": {K2: 4, K20: 1}, "child": {K2: 4, K20: 2}, "determined": {K2: 6},
    },
    "GGS": {
        "pairwise": {500: 20, K2: 20, K10: 20}, "gated 2-4": {500: 20, K2: 20, K10: 20},
        "gated 3-8": {K2: 10}, "gated by two": {K2: 10, K10: 10}, "alarm": {K2: 4, K20: 1},
        "child": {K2: 4, K20: 2}, "determined": {K2: 6},
    },
}  # fmt: skip
_EACH_OTHER = {"pairwise": {K2: 6}, "gated 2-4": {K2: 6}, "child": {K2: 1}}
TWICE, ONE_GROUP = 200, 200


def plan(*, quick: bool = False, learners: Iterable[str] = ("default", *LEARNERS)) -> list[Cell]:
    """List the cells, the first tables of all domains before the second: a run cut short stays balanced."""
    wanted = set(learners)
    counts: list[tuple[str, int, str, int, str]] = []
    for domain, sizes in _WHOLE.items():
        counts += [(domain, n, "default", number, "judge") for n, number in sizes.items()]
    for learner in LEARNERS:
        for domain, sizes in _OTHERS.get(learner, _EACH_OTHER).items():
            counts += [(domain, n, learner, number, "judge") for n, number in sizes.items()]
    # Comparing tests rows: it is the same whatever learner is used.
    counts.append(("one law twice", 1_500, "default", TWICE, "twice"))
    counts.append(("one group", K2, "default", ONE_GROUP, "one group"))
    for learner in ("default", "CSGS"):
        counts += [(name, 0, learner, 1, "rule") for name in KNOWN_RULES]
        counts += [(name, 0, learner, 1, "published") for name in TABLES]
    counts += [("alarm", K20, "default", 1, "cost"), ("100 columns", K20, "default", 1, "cost")]
    cells = [
        Cell(domain, n, learner, index, task)
        for domain, n, learner, number, task in counts
        if learner in wanted and not (quick and _is_slow(domain, n, learner))
        for index in range(max(1, number // 12) if quick else number)
    ]
    most = {(one.domain, one.n, one.learner, one.task): one.index + 1 for one in cells}
    return sorted(
        cells, key=lambda one: (one.index / most[one.domain, one.n, one.learner, one.task], one.index, one.n)
    )


def _is_slow(domain: str, n: int, learner: str) -> bool:
    slow_table = domain == "alarm" or "20" in domain or domain in ("bnlearn_alarm", "100 columns")
    return (
        n > K10
        or (n > K2 and domain not in ("gated by two", "gated 2-4"))
        or (slow_table and learner != "default")
    )


# ---------------------------------------------------------------------- one cell


def rng_of(seed: int, *parts: object) -> np.random.Generator:
    """Return the randomness that belongs to some words and numbers, whatever else is run."""
    return np.random.default_rng([seed, *(zlib.crc32(str(part).encode()) for part in parts)])


@lru_cache(maxsize=8)
def law_of(domain: str, index: int, seed: int, data: str) -> Law:
    """Return the law of a table: a published network, or one drawn for this table."""
    if domain in NETWORKS:
        return laws.networks([domain], data)[domain] if index == 0 else law_of(domain, 0, seed, data)
    return DOMAINS[domain](rng_of(seed, domain, index))


def measure(cell: Cell, seed: int, data: str) -> dict[str, Any]:
    """Do what a cell asks for, and return plain values."""
    if cell.task in ("twice", "one group"):
        return _compared(cell, seed)
    if cell.task == "rule":
        return _known_rule(cell, data)
    if cell.task == "published":
        return _published(cell, data)
    if cell.task == "cost":
        return _cost(cell, seed, data)
    law = law_of(cell.domain, cell.index, seed, data)
    rng = rng_of(seed, cell.domain, cell.index, "rows", cell.n)
    if cell.domain.startswith("confounder"):
        return _said_of_confounded(cell, law, laws.read_cut(law, cell.n, rng))
    if cell.domain == "missing together":
        return _judged(cell, law, laws.read_missing(law, cell.n, rng))
    return _judged(cell, law, law.sample(cell.n, rng))


def _judged(cell: Cell, law: Law, table: Dataset) -> dict[str, Any]:
    start = time.process_time()
    estimator = fitted(cell.learner, table)
    statements = list(said_by(estimator, table))
    seconds = time.process_time() - start
    candidates = (
        judge.records(law, said_by(estimator, table, 1.0)) if cell.learner in ("default", "CSGS") else []
    )
    missing = law.notes.get("missing", ())
    return {
        "seconds": seconds,
        "findings": [
            [one["kind"], one["confidence"], one["true"], one["rule"], len(one["gate"])]
            for one in judge.records(law, statements)
        ],
        "candidates": [[one["kind"], one["confidence"], one["true"], one["rule"]] for one in candidates],
        "gates": [
            [len(gate.where), max(gate.n_levels), how] for gate, how in judge.exact_gates(law, statements)
        ],
        "recall": [
            [least, *found] for least, found in judge.link_recall(law, statements, THRESHOLDS).items()
        ],
        "functions": judge.function_recall(law, statements),
        "bounds": _bounds(law, statements),
        "special": [[one.kind, "missing" in str(one)] for one in statements if tuple(one.pair) in missing],
    }


def _bounds(law: Law, statements: Iterable[Any]) -> list[int]:
    """Count the statements of absence with a bound, and those whose bound holds: everywhere, and pooled."""
    verdicts = [judge.judge(law, one) for one in statements if one.kind == "unlinked"]
    return [len(verdicts), sum(bool(one.strict) for one in verdicts), sum(bool(one.rule) for one in verdicts)]


def _said_of_confounded(cell: Cell, law: Law, table: Dataset) -> dict[str, Any]:
    """Record whether the pair that only the confounder joins is among the findings, and with a warning."""
    (pair,) = law.notes["spurious"]
    said = [one for one in judge.findings_of(statements_of(cell.learner, table)) if tuple(one.pair) == pair]
    return {"special": [[one.kind, "cut" in str(one)] for one in said]}


def _compared(cell: Cell, seed: int) -> dict[str, Any]:
    rng = rng_of(seed, cell.domain, cell.index)
    pair: tuple[str, str] | None = None
    if cell.task == "twice":
        law = laws.csi(int(rng.integers(2**31)))
        first, second = laws.one_law_twice(law, cell.n, rng)
    else:
        without, with_it, pair = laws.link_in_one_group(rng)
        first, second = without.sample(cell.n, rng), with_it.sample(cell.n, rng)
    differing = differences_of(first, second)
    return {
        "said": len(differing),
        "right": pair in differing,
        "exact": pair is not None and differing == {pair: "gained"},
    }


def _known_rule(cell: Cell, data: str) -> dict[str, Any]:
    import unless

    pair, where = KNOWN_RULES[cell.domain]
    table = unless.read(Path(data) / "tables" / f"{cell.domain}.csv")
    statements = list(statements_of(cell.learner, table))
    about = [one for one in judge.findings_of(statements) if tuple(one.pair) == pair]
    exact = [
        one.kind
        for one in about
        if one.kind in ("gated", "partly")
        and [{name: set(levels) for name, levels in region.conditions} for region in one.gate.linked]
        == [where]
    ]
    return {"exact": exact[0] if exact else None, "said": [str(one) for one in about]}


def _published(cell: Cell, data: str) -> dict[str, Any]:
    """Ask what others published of a table, and look for findings that contradict it."""
    import unless

    stated = json.loads((Path(data) / "published_statements.json").read_text())["statements"]
    stated = [one for one in stated if one["dataset"] == cell.domain]
    table = unless.read(Path(data) / cell.domain / "data.csv.gz")
    estimator = fitted(cell.learner, table)
    findings = judge.findings_of(said_by(estimator, table))
    agreed, against = 0, []
    for one in stated:
        asked = estimator.ask(one["a"], one["b"], given=one["given"], context=one["context"])
        agreed += asked.answer == (one["expected"] if one["df"] else "undecided")
        against += [str(said) for said in findings if one["df"] and _contradicts(said, one)]
    return {
        "agreed": agreed,
        "of": len(stated),
        "against": against,
        "first": [str(one) for one in findings[:2]],
    }


def _contradicts(said: Any, stated: dict[str, Any]) -> bool:
    """Tell whether a gate puts the whole context of a published statement on the other side.

    A plain link claims no more than a link in some rows, so that it contradicts nothing said of a context.
    """
    if tuple(said.pair) != laws.named(stated["a"], stated["b"]) or said.kind != "gated":
        return False
    context = stated["context"]
    side = said.gate.linked if stated["expected"] == "independent" else said.gate.unlinked
    return any(
        all(context.get(name) in levels for name, levels in region.conditions)
        for region in side
        if region.conditions
    )


def _cost(cell: Cell, seed: int, data: str) -> dict[str, Any]:
    rng = rng_of(seed, "cost", cell.domain)
    law = laws.band(rng) if cell.domain == "100 columns" else law_of(cell.domain, 0, seed, data)
    # A small table first: what is compiled when first used is no cost of learning.
    list(statements_of(cell.learner, laws.gated(rng).sample(500, rng)))
    table = law.sample(cell.n, rng)
    start = time.process_time()
    list(statements_of(cell.learner, table))
    seconds = time.process_time() - start
    return {"seconds": seconds, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


# ---------------------------------------------------------------------- all cells


def done(cell: Cell, folder: Path) -> dict[str, Any] | None:
    """Return what a cell found, if it has been run; one that failed is tried again by the next run."""
    path = folder / f"{cell.key}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"error": "not run"}
    return None if "error" in found else found


def run_cell(cell: Cell, folder: Path, seed: int, data: str) -> str:
    """Run one cell and write its file, whole or not at all; what went wrong is recorded, too."""
    start = time.perf_counter()
    try:
        found = measure(cell, seed, data)
    except Exception as error:
        # A cell that fails is a result (a learner that refuses a table): it must not end the run.
        found = {"error": f"{type(error).__name__}: {error}"}
    found |= {"cell": asdict(cell), "seed": seed, "wall": time.perf_counter() - start}
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{cell.key}.{os.getpid()}"
    draft.write_text(json.dumps(found))
    draft.replace(folder / f"{cell.key}.json")
    return cell.key


def run(
    cells: list[Cell], folder: Path, *, seed: int, data: str, workers: int = 2, budget: float | None = None
) -> int:
    """Run the cells that have no file yet, side by side; returns how many are left when time is up."""
    folder.mkdir(parents=True, exist_ok=True)
    end = None if budget is None else time.monotonic() + budget
    waiting = [cell for cell in cells if done(cell, folder) is None]
    costly = [cell for cell in waiting if cell.task == "cost"]
    n_left = len(waiting)
    todo = iter([cell for cell in waiting if cell.task != "cost"])
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(run_cell, cell, folder, seed, data) for cell in _next(todo, 2 * workers, end)}
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                n_left -= 1
                _tell(f"{future.result()}; {n_left} left")
            running |= {
                pool.submit(run_cell, cell, folder, seed, data) for cell in _next(todo, len(finished), end)
            }
    for cell in _next(iter(costly), len(costly), end):
        # Alone, and in a process of its own: its memory is measured.
        options = ["--cell", cell.key, "--cells", str(folder), "--seed", str(seed), "--data", data]
        subprocess.run([sys.executable, "-m", "studies.truth", *options], check=True)  # noqa: S603
        n_left -= 1
        _tell(f"{cell.key}; {n_left} left")
    return n_left


def _next(cells: Iterator[Cell], n: int, end: float | None) -> list[Cell]:
    if end is not None and time.monotonic() > end:
        return []
    return [cell for _, cell in zip(range(n), cells, strict=False)]


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def broken(records: list[dict[str, Any]]) -> list[str]:
    """Return the errors of cells that are no refusals of a learner, nor want of memory."""
    told = [str(one["error"]) for one in records if "error" in one]
    return [one for one in told if not hasattr(errors, one.split(":")[0]) and "MemoryError" not in one]


def load(folder: Path) -> list[dict[str, Any]]:
    """Read what all cells of a folder found, in the order of their names."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("[!.]*.json"))]
