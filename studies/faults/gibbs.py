"""Gibbs sampling on laws with several modes, and on ordinary ones: `python -m studies.faults.gibbs`.

Every law is small enough to be answered exactly. A run asks for a joint table, for all marginals and for
rows; a cell of an answer is a violation if it is further from the exact one than five of its stated standard
errors (and 1e-6), and nobody was told. Laws, weights and random states follow from the base seed; the design
saw base seeds below 1,000 only.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import IO, Any

import numpy as np

from studies.truth.judge import wilson
from unless.data.domain import Domain, Variable
from unless.errors import UnlessError
from unless.inference.model import LogLinearModel
from unless.inference.results import Distribution, Marginals
from unless.structures.graph import FeatureSet
from unless.structures.structure import CodedCondition, FeatureArrays, tidy

SEED = 27_182
N_LAWS, N_SEEDS, N_ORDINARY = 40, 20, 200
# Standard errors that an answer may be away from the exact one, and what rounding may add.
FAR, ROUNDING = 5.0, 1e-6
N_ROWS = 400
INF = float("inf")

# Cost on ordinary models, measured by hand: the command is in the text.
COST = (
    "Cost on the ordinary models, CPU time of this version by that of commit 9555fe4, measured in turns in "
    "one run: {ratio} (`python -m studies.faults.gibbs --cost OTHER_VERSION/src`)."
)
MEASURED = "5.62 s / 4.61 s = 1.22 on 100 models"

Weighted = list[tuple[list[CodedCondition], float]]


@dataclass
class Law:
    """A model, what is known, and the variables whose joint table is asked for."""

    name: str
    model: LogLinearModel
    asked: list[str]
    evidence: dict[str, str] = field(default_factory=dict)


# ---------------------------------------------------------------------- laws with several modes


def equal_levels(a: int, b: int, n_levels: int, weight: float) -> Weighted:
    """Let two variables be equal: one feature for each level."""
    return [([(a, level, True), (b, level, True)], weight) for level in range(n_levels)]


def noise(rng: np.random.Generator, sizes: list[int], begin: int) -> Weighted:
    """Hang ordinary variables on the others, from a position on."""
    weighted: Weighted = []
    for variable in range(begin, len(sizes)):
        for _ in range(3):
            other = int(rng.integers(variable))
            literals = [(v, int(rng.integers(sizes[v])), True) for v in (variable, other)]
            weighted.append((literals, float(rng.normal(0, 0.7))))
    return weighted


def fields(sizes: list[int], n: int, shares: list[float]) -> Weighted:
    """Give the modes these shares, if all n variables have the same level in each: spread over them."""
    return [
        ([(variable, level, True)], math.log(share) / n)
        for variable in range(n)
        for level, share in enumerate(shares[: sizes[variable]])
    ]


def pair(rng: np.random.Generator, weight: float) -> tuple[list[int], Weighted]:
    """Make two variables that are equal."""
    sizes = [2, 2, *rng.integers(2, 4, 3).tolist()]
    return sizes, equal_levels(0, 1, 2, weight) + noise(rng, sizes, 2)


def copies(
    rng: np.random.Generator, weight: float, *, n_levels: int, shape: str
) -> tuple[list[int], Weighted]:
    """Make several copies of one hidden switch, linked as a chain, as a star or all with each other."""
    n = int(rng.integers(3, 9))
    links = {
        "chain": [(v, v + 1) for v in range(n - 1)],
        "star": [(0, v) for v in range(1, n)],
        "complete": [(a, b) for a in range(n) for b in range(a + 1, n)],
    }[shape]
    sizes = [n_levels] * n + [2, 3]
    weighted = [one for a, b in links for one in equal_levels(a, b, n_levels, weight)]
    return sizes, weighted + noise(rng, sizes, n)


def unequal(rng: np.random.Generator, weight: float, shares: list[float]) -> tuple[list[int], Weighted]:
    """Make copies of a switch whose modes have these shares."""
    n = int(rng.integers(2, 7))
    sizes = [len(shares)] * n + [2, 2]
    weighted = [one for v in range(n - 1) for one in equal_levels(v, v + 1, len(shares), weight)]
    return sizes, weighted + fields(sizes, n, shares) + noise(rng, sizes, n)


def gated(rng: np.random.Generator, weight: float) -> tuple[list[int], Weighted]:
    """Make features of three conditions: where the gate is on, two others are equal."""
    sizes = [2, 2, 2, 2, 2, 3]
    weighted: Weighted = [
        ([(0, 1, True), (a, level, True), (b, level, True)], weight)
        for a, b in ((1, 2), (2, 3))
        for level in range(2)
    ]
    return sizes, weighted + noise(rng, sizes, 4)


def frustrated(rng: np.random.Generator, weight: float) -> tuple[list[int], Weighted]:
    """Make a ring with an odd number of links that want their ends to differ, and a strong pair beside it."""
    n = 5
    sizes = [2] * n + [2, 2, 2]
    weighted: Weighted = []
    for v in range(n):
        weighted += [([(v, x, True), ((v + 1) % n, 1 - x, True)], weight / 4) for x in range(2)]
    weighted += equal_levels(n, n + 1, 2, weight) + equal_levels(0, n, 2, weight / 4)
    return sizes, weighted + noise(rng, sizes, n + 2)


def narrow(rng: np.random.Generator, weight: float) -> tuple[list[int], Weighted]:
    """Make a single state that holds much of the mass, among very many that hold the rest."""
    n = int(np.clip(round(weight / math.log(2)), 6, 14))
    share = float(rng.uniform(0.3, 0.9))
    depth = n * math.log(2) + math.log(share / (1 - share))
    return [2] * n, [([(v, 1, True) for v in range(n)], depth)]


def narrow_by_pairs(rng: np.random.Generator, weight: float) -> tuple[list[int], Weighted]:
    """Make a deep mode made by pairs, against fields that prefer the other level: narrow and broad."""
    n = int(rng.integers(6, 11))
    strength = weight / n
    share = float(rng.uniform(0.3, 0.9))
    weighted = [([(a, 1, True), (b, 1, True)], strength) for a in range(n) for b in range(a + 1, n)]
    # The mass of the deep state, about that of all states without pairs.
    push = (strength * n * (n - 1) / 2 - math.log(share / (1 - share))) / n
    weighted += [([(v, 1, True)], -push) for v in range(n)]
    return [2] * n, weighted


def islands(rng: np.random.Generator, weight: float) -> tuple[list[int], Weighted]:
    """Make copies that must be equal, by features of weight -inf, and a field."""
    n, n_levels = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    sizes = [n_levels] * n + [2, 2]
    weighted: Weighted = [
        ([(v, level, True), (v + 1, level, False)], -INF) for v in range(n - 1) for level in range(n_levels)
    ]
    weighted += equal_levels(n, n + 1, 2, weight)
    return sizes, weighted + fields(sizes, n, rng.dirichlet(np.ones(n_levels)).tolist())


def blocks(rng: np.random.Generator, weight: float) -> tuple[list[int], Weighted]:
    """Make three variables that are all one of three patterns, by features of their joint levels."""
    sizes = [3, 3, 3, 2, 2]
    patterns = [rng.permutation(3).tolist() for _ in range(3)]
    weighted: Weighted = [
        ([(v, patterns[v][mode], True) for v in range(3)], weight + float(rng.normal(0, 1)))
        for mode in range(3)
    ]
    return sizes, weighted + noise(rng, sizes, 3)


def two_switches(rng: np.random.Generator, weight: float) -> tuple[list[int], Weighted]:
    """Make two groups of copies, weakly linked, beside ordinary variables."""
    sizes = [2] * 6 + [3, 2, 2]
    weighted = [one for v in (0, 1, 3, 4) for one in equal_levels(v, v + 1, 2, weight)]
    weighted += equal_levels(2, 3, 2, 1.0)
    return sizes, weighted + noise(rng, sizes, 6)


FAMILIES: dict[str, Callable[[np.random.Generator, float], tuple[list[int], Weighted]]] = {
    "an equal pair": pair,
    "copies in a chain": lambda rng, w: copies(rng, w, n_levels=2, shape="chain"),
    "copies in a star, 3 levels": lambda rng, w: copies(rng, w, n_levels=3, shape="star"),
    "copies all linked": lambda rng, w: copies(rng, w, n_levels=2, shape="complete"),
    "copies all linked, 3 levels": lambda rng, w: copies(rng, w, n_levels=3, shape="complete"),
    "shares .9 and .1": lambda rng, w: unequal(rng, w, [0.9, 0.1]),
    "shares .9, .09 and .01": lambda rng, w: unequal(rng, w, [0.9, 0.09, 0.01]),
    "shares .995 and .005": lambda rng, w: unequal(rng, w, [0.995, 0.005]),
    "behind a gate": gated,
    "frustrated": frustrated,
    "one deep state": narrow,
    "a deep mode by pairs": narrow_by_pairs,
    "islands by -inf": islands,
    "patterns of three": blocks,
    "two switches": two_switches,
}


def law(number: int, seed: int) -> Law:
    """Make a law: its family by its number, the rest by the base seed."""
    rng = np.random.default_rng([seed, 1, number])
    name = list(FAMILIES)[number % len(FAMILIES)]
    weight = float(np.exp(rng.uniform(np.log(5), np.log(50))))
    sizes, weighted = FAMILIES[name](rng, weight)
    model = model_of(sizes, weighted)
    names = model.domain.names
    known: dict[str, str] = {}
    if number % 4 == 3 and "noise" not in name and len(names) > 4:
        known[names[-1]] = model.domain.variables[-1].levels[0]
    others = [one for one in names if one not in known]
    asked = [str(one) for one in rng.choice(others, int(rng.integers(1, 4)), replace=False)]
    return Law(f"{name}, weight {weight:.0f}", model, asked, known)


def ordinary(number: int, seed: int) -> Law:
    """Make an ordinary model of 8 to 25 variables."""
    rng = np.random.default_rng([seed, 2, number])
    n = int(rng.integers(8, 26))
    sizes = rng.integers(2, 5 if n < 14 else 4 if n < 20 else 3, n).tolist()
    scale = 1.0 if number % 2 else 0.5
    weighted: Weighted = []
    for _ in range(3 * n):
        length = int(rng.integers(1, 4))
        begin = int(rng.integers(0, n - 6))
        scope = begin + rng.choice(7, length, replace=False)
        literals = [(int(v), int(rng.integers(sizes[v])), bool(rng.random() < 0.8)) for v in scope]
        weighted.append((literals, float(rng.normal(0, scale))))
    model = model_of(sizes, weighted)
    asked = [str(one) for one in rng.choice(model.domain.names, 2, replace=False)]
    return Law(f"ordinary {number}", model, asked)


def model_of(sizes: list[int], weighted: Weighted) -> LogLinearModel:
    """Make a model; weights of the same feature add up."""
    variables = (Variable(f"v{i}", tuple("abcdefgh"[:size])) for i, size in enumerate(sizes))
    domain = Domain(tuple(variables))
    total: dict[tuple[CodedCondition, ...], float] = {}
    for literals, weight in weighted:
        key = tuple(tidy(literals, domain.n_levels))
        total[key] = total.get(key, 0.0) + weight
    features = FeatureSet.from_arrays(domain, FeatureArrays.of(total))
    return LogLinearModel(features, [total[key] for key in features.arrays.literals()])


# ---------------------------------------------------------------------- runs


def judge(answer: Distribution, exact: Distribution) -> float:
    """Return how far the worst cell is, in stated standard errors."""
    error = np.zeros(answer.probabilities.shape) if answer.error is None else answer.error
    distance = np.abs(answer.probabilities - exact.probabilities)
    far = np.maximum(distance - ROUNDING, 0) / np.maximum(error, 1e-300)
    return float(np.where(distance <= ROUNDING, 0.0, far).max())


def run_modes(number: int, seed: int, n_seeds: int) -> dict[str, Any]:
    """Ask one law with several random states, in the three ways there are."""
    one = law(number, seed)
    exact_table = one.model.query(one.asked, one.evidence, method="exact")
    exact_all = one.model.marginals(one.evidence, method="exact")
    runs: list[dict[str, Any]] = []
    begun = time.process_time()
    for state in range(n_seeds):
        rng_state = 1_000 * number + state
        told: dict[str, Any] = {"state": state}
        how: dict[str, Any] = {"evidence": one.evidence, "method": "gibbs", "random_state": rng_state}
        told["query"] = _asked(partial(_table_away, one, how, exact_table))
        told["marginals"] = _asked(partial(_marginals_away, one, how, exact_all))
        told["sample"] = _asked(partial(_rows_away, one, how, exact_all))
        runs.append(told)
    return {"law": one.name, "runs": runs, "seconds": time.process_time() - begun}


def _asked(ask: Callable[[], float]) -> dict[str, Any]:
    """Return how far an answer is, or what was said instead of it."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            far = ask()
        except UnlessError as error:
            return {"raised": f"{type(error).__name__}: {error}"}
    return {"far": far, "warned": [str(one.message) for one in said]}


def _table_away(one: Law, how: dict[str, Any], exact: Distribution) -> float:
    return judge(one.model.query(one.asked, **how), exact)


def _marginals_away(one: Law, how: dict[str, Any], exact: Marginals) -> float:
    return max(judge(answer, exact[name]) for name, answer in one.model.marginals(**how).items())


def _rows_away(one: Law, how: dict[str, Any], exact: Marginals) -> float:
    """Return how far the shares of levels in the rows are, as if a tenth of the rows were independent."""
    drawn = one.model.sample_codes(N_ROWS, **how)
    rows = np.repeat(drawn.rows, drawn.counts, axis=0)
    worst = 0.0
    for variable, name in enumerate(drawn.domain.names):
        truth = exact[name].probabilities
        shares = np.bincount(rows[:, variable], minlength=len(truth)) / len(rows)
        n = len(rows) / 10
        error = np.sqrt(np.maximum(truth * (1 - truth), 1 / n) / n)
        worst = max(worst, float((np.abs(shares - truth) / error).max()))
    return worst


def run_ordinary(number: int, seed: int) -> dict[str, Any]:
    """Ask an ordinary model and count the cells whose 95 % interval holds the exact answer."""
    one = ordinary(number, seed)
    exact_all = one.model.marginals(method="exact")
    exact_table = one.model.query(one.asked, method="exact")
    begun = time.process_time()
    try:
        every = one.model.marginals(method="gibbs", random_state=number)
        table = one.model.query(one.asked, method="gibbs", random_state=number)
    except UnlessError as error:
        return {"raised": f"{type(error).__name__}: {error}"}
    seconds = time.process_time() - begun
    held: list[bool] = []
    for name, answer in every.items():
        inside = _inside(answer, exact_all[name])
        # The two probabilities of a variable of two levels are one fact.
        held += inside[: 1 if len(inside) == 2 else None]
    inside = _inside(table, exact_table)
    tempered = sum(int(str(one.details["n_levels"])) > 1 for one in every.values())
    return {
        "held": sum(held),
        "cells": len(held),
        "joint_held": sum(inside),
        "joint_cells": len(inside),
        "tempered": tempered,
        "far": max(judge(table, exact_table), *(judge(every[n], exact_all[n]) for n in every)),
        "seconds": seconds,
    }


def _inside(answer: Distribution, exact: Distribution) -> list[bool]:
    distance = np.abs(answer.probabilities - exact.probabilities).ravel()
    error = np.zeros(len(distance)) if answer.error is None else answer.error.ravel()
    return [bool(one) for one in distance <= 1.96 * error + 1e-12]


# ---------------------------------------------------------------------- the study


def study(folder: Path, seed: int = SEED, quick: bool = False, minutes: float = 20.0) -> str:
    """Run the cells that are missing, and return a section of Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    ending = time.monotonic() + 60 * minutes
    n_laws, n_seeds, n_ordinary = (15, 2, 20) if quick else (N_LAWS, N_SEEDS, N_ORDINARY)
    jobs: list[tuple[Path, Callable[..., dict[str, Any]], tuple[int, ...]]] = []
    for number in range(n_laws):
        jobs.append((folder / f"modes-{seed}-{number}-{n_seeds}.json", run_modes, (number, seed, n_seeds)))
    for number in range(n_ordinary):
        jobs.append((folder / f"ordinary-{seed}-{number}.json", run_ordinary, (number, seed)))
    missing = [job for job in jobs if not job[0].exists()]
    if missing:
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            list(pool.map(_run_job, missing, [ending] * len(missing)))
    done = [json.loads(path.read_text()) for path, _, _ in jobs if path.exists()]
    text = [
        "## Gibbs sampling",
        "",
        *_modes_section([one for one in done if "law" in one], n_laws, n_seeds),
        "",
        *_ordinary_section([one for one in done if "law" not in one], n_ordinary),
        "",
        COST.format(ratio=MEASURED),
        "",
    ]
    return "\n".join(text)


def _run_job(job: tuple[Path, Callable[..., dict[str, Any]], tuple[int, ...]], ending: float) -> None:
    path, run, given = job
    if time.monotonic() > ending:
        return
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(run(*given), sort_keys=True))
    draft.replace(path)


def _share(k: int, n: int) -> str:
    if not n:
        return "0 of 0"
    low, high = wilson(k, n)
    return f"{k:,} of {n:,} ({100 * k / n:.1f} %; {100 * low:.1f} to {100 * high:.1f})"


def _modes_section(cells: list[dict[str, Any]], n_laws: int, n_seeds: int) -> Iterable[str]:
    yield (
        f"{len(cells)} of {n_laws} laws of two, three or four modes, weights from 5 to 50, {n_seeds} random "
        f"states each. Too far: some cell is further from the exact answer than {FAR:.0f} stated standard "
        "errors, and there was neither an error nor a warning. Of rows, the shares of levels count, with the "
        "error of a tenth of the rows. Shares with 95 % Wilson intervals."
    )
    yield ""
    yield "| asked for | answered | error | too far |"
    yield "|---|---|---|---|"
    for way, name in (
        ("query", "a joint table"),
        ("marginals", "all marginals"),
        ("sample", f"{N_ROWS} rows"),
    ):
        runs = [run[way] for cell in cells for run in cell["runs"]]
        answered = [run for run in runs if "far" in run]
        far = [run for run in answered if run["far"] > FAR and not run["warned"]]
        yield (
            f"| {name} | {_share(len(answered), len(runs))} | {len(runs) - len(answered)} | "
            f"{_share(len(far), len(runs))} |"
        )
    yield ""
    yield "| law | runs | answered | too far | CPU seconds a run |"
    yield "|---|---|---|---|---|"
    for cell in cells:
        runs = [run[way] for run in cell["runs"] for way in ("query", "marginals", "sample")]
        answered = [run for run in runs if "far" in run]
        far = sum(run["far"] > FAR and not run["warned"] for run in answered)
        cost = cell["seconds"] / max(1, len(runs))
        yield f"| {cell['law']} | {len(runs)} | {len(answered)} | {far} | {cost:.2f} |"


def _ordinary_section(cells: list[dict[str, Any]], n_models: int) -> Iterable[str]:
    answered = [cell for cell in cells if "held" in cell]
    yield (
        f"{len(cells)} of {n_models} ordinary models of 8 to 25 variables, features of one to three "
        f"conditions with weights N(0, 1) or N(0, .5): {len(cells) - len(answered)} errors, "
        f"{sum(cell['tempered'] > 0 for cell in answered)} models tempered, "
        f"{sum(cell['far'] > FAR for cell in answered)} with a cell further than {FAR:.0f} standard errors."
    )
    yield ""
    yield "| cells whose interval, estimate ± 1.96 errors, holds the exact answer | share |"
    yield "|---|---|"
    for name, held, n in (
        ("of marginals", "held", "cells"),
        ("of joint tables", "joint_held", "joint_cells"),
    ):
        yield f"| {name} | {_share(sum(c[held] for c in answered), sum(c[n] for c in answered))} |"
    shares = [cell["held"] / cell["cells"] for cell in answered]
    if shares:
        yield ""
        yield f"Mean over models of a model's share of marginals: {100 * float(np.mean(shares)):.1f} %."


TIMED = """
import sys, time
from studies.faults.gibbs import ordinary

def ask(number, seed):
    one = ordinary(number, seed)
    begun = time.process_time()
    one.model.marginals(method="gibbs", random_state=number)
    one.model.query(one.asked, method="gibbs", random_state=number)
    return time.process_time() - begun

ask(0, 1), ask(0, 1)
for line in sys.stdin:
    print(ask(*map(int, line.split())), flush=True)
"""


def compare_cost(other: str, seed: int, n_models: int = 100) -> str:
    """Time ordinary models in this version and in another one, in turns; returns the ratio of CPU times."""
    import unless

    here = str(Path(unless.__file__).parents[1])
    running = [_timer(source) for source in (other, here)]
    totals = [0.0, 0.0]
    for number in range(n_models):
        for place, (ask, answers) in enumerate(running):
            ask.write(f"{number} {seed}\n")
            ask.flush()
            totals[place] += float(answers.readline())
    for ask, _ in running:
        ask.close()
    return f"{totals[1]:.2f} s / {totals[0]:.2f} s = {totals[1] / totals[0]:.2f} on {n_models} models"


def _timer(source: str) -> tuple[IO[str], IO[str]]:
    """Start a process that times models with the version in a folder; returns its two ends."""
    paths = os.pathsep.join([source, str(Path(__file__).parents[2])])
    process = subprocess.Popen(  # noqa: S603 (the interpreter that runs this)
        [sys.executable, "-c", TIMED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("A process without its ends cannot be asked.")
    return process.stdin, process.stdout


def main(words: list[str] | None = None) -> int:
    """Run the study and print its section."""
    parser = argparse.ArgumentParser(prog="python -m studies.faults.gibbs", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="base seed (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="few laws and models, a minute")
    parser.add_argument("--minutes", type=float, default=20.0, help="no cell is started after (%(default)s)")
    parser.add_argument(
        "--cells", type=Path, default=Path("build/faults/gibbs"), help="folder of finished cells"
    )
    parser.add_argument("--cost", metavar="SRC", help="compare the cost with another version's src folder")
    options = parser.parse_args(words)
    if options.cost:
        sys.stdout.write(f"{compare_cost(options.cost, options.seed)}\n")
        return 0
    folder = options.cells / (f"{options.seed}-quick" if options.quick else str(options.seed))
    sys.stdout.write(study(folder, options.seed, options.quick, options.minutes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
