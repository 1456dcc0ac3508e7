"""All learners on the same tables: how well what they learn predicts, and what it costs."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

from benchmarks.child import ROOT, ChildError, in_child
from benchmarks.learner_run import ALONE, learn_warm
from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note, Table

TITLE = "Learners: test pseudo-likelihood on NLTCS, Plants and DNA"
HEAD = """# How well what each learner finds predicts

Written by `python -m benchmarks --only learners --data DIR --write docs/learners.md`. Three tables of the
density estimation benchmark, with their own parts: NLTCS (16 columns, 16,181 rows to learn from), Plants (69
and 17,412) and DNA (180 and 1,600), all binary. PLL is the mean pseudo-log-likelihood of the rows of the test
part, in nats: larger is better. The weights of structures are fitted under Gaussian(1) to the training part;
DTSL and GSSL bring weights of their own, under the prior that the validation part chose. Settings are the
defaults but for those named: max_condition=2 keeps CSPC from asking of hardly any rows, and one setting of
GSSL is its strongest prune and prior. Where the cliques of all contexts would be too many weights, linked
pairs have them instead. Rows are sorted by PLL; "columns by themselves" are the lower reference.

Each learner has a process of its own, one thread and two minutes of CPU to learn and to weigh; what did not
finish has no PLL, and the last column says why. MB is the peak of memory. The machine is shared, so that
seconds are rough.

Machine: {machine}.
"""
# Libra's trees with Libra's weights on the same splits, its best setting by validation.
LIBRA = {"nltcs": (-4.930, 1.9), "plants": (-8.829, 8.0)}
TABLES = ("nltcs", "plants", "dna")
SECONDS = 120
# What is within this share of the best is not clearly worse.
NEAR = 0.01
# Finished runs: a run that was stopped goes on where it was, if the library is the same.
KEPT = ROOT / ".benchmarks" / "learners"
# On shared cores the threads of linear algebra wait for each other, which counts as CPU time.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Method:
    """A learner with its settings, those it needs on wide tables, and the tables where it is hopeless."""

    learner: str
    settings: dict[str, Any] = field(default_factory=dict)
    wide: dict[str, Any] = field(default_factory=dict)
    hopeless: dict[str, str] = field(default_factory=dict)


# Already the first step of a climb weighs n^3 assertions in each context, about a million a second.
CLIMBS = {
    "plants": "not tried: 69^3 assertions in each of 8,258 contexts",
    "dna": "not tried: 180^3 assertions in each of 1,545 contexts",
}
# Unbounded, CSPC conditions on sets that leave no rows to test: it then removes what is left.
BOUNDED = {"max_condition": 2}
RUNS = {
    ALONE: Method(ALONE),
    "ChowLiu": Method("ChowLiu"),
    "CSGS": Method("CSGS"),
    "CSPC, shared": Method("CSPC", {"adjacency": "shared"}, BOUNDED),
    "CSPC, independent": Method("CSPC", {"adjacency": "independent"}, BOUNDED),
    "CSIBMAP": Method("CSIBMAP", hopeless=CLIMBS),
    "CSGSSL": Method("CSGSSL"),
    "CSMPL": Method("CSMPL"),
    "GGS": Method("GGS"),
    "GSMN": Method("GSMN"),
    "GSMN, Bayesian test": Method("GSMN", {"test": "bayesian"}),
    "IBMAPHC": Method("IBMAPHC"),
    "DTSL": Method("DTSL"),
    "GSSL": Method("GSSL"),
    "GSSL, one setting": Method("GSSL", {"prune": 10, "prior": "Gaussian(1) + Laplace(10)"}),
}
CANONICAL = ("CSGS", "CSPC, shared", "CSPC, independent", "CSIBMAP", "CSGSSL")
HEADERS = (
    "learner", "PLL", "features", "of", "tests", "distinct", "learn, CPU s", "weigh, CPU s", "MB", "remark",
)  # fmt: skip


def run(options: Options) -> Iterator[Entry]:
    """Learn every table with every learner."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for table in TABLES:
        for name in RUNS:
            found[table, name] = _learned(str(options.need(f"debd/{table}")), table, name)
    for table in TABLES:
        here = {name: found[table, name] for name in RUNS}
        order = sorted(here, key=lambda name: (-here[name].get("pll", -inf), name))
        headers = (table, *HEADERS[1:])
        yield Table(headers, tuple(_row(table, name, here[name]) for name in order))
        yield _summary(table, order, here)
    for (table, name), answer in found.items():
        if "chosen" in answer:
            yield Note(f"{name} on {table} chose {answer['chosen']} of {answer['n_tried']} settings.")
    yield from _targets(options, found)


def _learned(folder: str, table: str, name: str) -> dict[str, Any]:
    """Let one learner learn one table, in a process of its own, or take what an earlier run found."""
    method = RUNS[name]
    if table in method.hopeless:
        return {"refused": method.hopeless[table]}
    settings = method.settings | (method.wide if table != "nltcs" else {})
    key = json.dumps([table, method.learner, settings, SECONDS, _stamp()])
    kept = KEPT / f"{sha256(key.encode()).hexdigest()[:16]}.json"
    if kept.exists():
        found: dict[str, Any] = json.loads(kept.read_text())
        return found
    try:
        found = in_child(learn_warm, folder, method.learner, settings, SECONDS, environment=ONE_THREAD)
    except ChildError as failed:
        return {"refused": f"failed: {failed}"}
    KEPT.mkdir(parents=True, exist_ok=True)
    part = kept.with_suffix(".part")
    part.write_text(json.dumps(found))
    part.replace(kept)
    return found


def _stamp() -> str:
    """Name the sources of the library and of what is done here."""
    files = sorted(Path(ROOT, "src", "unless").rglob("*.py"))
    return sha256(b"".join(path.read_bytes() for path in [*files, Path(__file__)])).hexdigest()


def _summary(table: str, order: list[str], here: dict[str, dict[str, Any]]) -> Note:
    """Say which learner is best, and which of those that learn graphs in contexts."""
    done = [name for name in order if "pll" in here[name]]
    if not done:
        return Note(f"{table}: nothing finished.")
    score = here[done[0]]["pll"]
    near = [name for name in done[1:] if here[name]["pll"] >= (1 + NEAR) * score]
    says = f"{table}: of the {len(done)} that finished, `{done[0]}` is best ({score:.4f})"
    if near:
        says += f"; within {NEAR:.0%} of it: {', '.join(f'`{name}`' for name in near)}"
    canonical = next((name for name in done if name in CANONICAL), None)
    if canonical and canonical != done[0]:
        says += f"; of those with a graph for every context, `{canonical}` ({here[canonical]['pll']:.4f})"
    return Note(says + ".")


def _targets(options: Options, found: dict) -> Iterator[Line]:
    for table, (score, seconds) in LIBRA.items():
        trees, draws = ({"pll": None, **found.get((table, name), {})} for name in ("DTSL", "GSSL"))
        if trees["pll"]:
            yield Line(
                f"{table}: DTSL's test PLL less Libra's", trees["pll"] - score, "nats", at_least=-0.0005
            )
            chosen = trees.get("chosen", {})
            kept = {"kappa": chosen.get("kappa"), "prior": chosen.get("prior")}
            alone = in_child(learn_warm, str(options.need(f"debd/{table}")), "DTSL", kept)
            yield Line(f"{table}: DTSL with the chosen setting, CPU", alone["learn"], "s", at_most=seconds)
        if trees["pll"] and draws["pll"]:
            share = draws["pll"] / trees["pll"]
            yield Line(f"{table}: GSSL's test PLL as a share of DTSL's", share, "times", at_most=1.02)
            yield Line(f"{table}: GSSL, default settings, CPU", draws["learn"] / 60, "min", at_most=30)
    if "peak" in found.get(("plants", "CSGS"), {}):
        yield Line("plants: CSGS, peak", found["plants", "CSGS"]["peak"] / 1e6, "MB", at_most=2000)


def _row(table: str, name: str, answer: dict) -> tuple[str, ...]:
    def cell(key: str, form: str) -> str:
        return "" if answer.get(key) is None else format(answer[key], form)

    wide = "".join(f", {key}={value}" for key, value in RUNS[name].wide.items() if table != "nltcs")
    return (
        name + wide,
        cell("pll", ".4f"),
        cell("features", ",d"),
        answer.get("kind", "") if "features" in answer else "",
        cell("tests", ",d"),
        cell("distinct", ",d"),
        cell("learn", ".2f"),
        cell("weigh", ".2f"),
        f"{answer['peak'] / 1e6:,.0f}" if "peak" in answer else "",
        answer.get("refused", ""),
    )
