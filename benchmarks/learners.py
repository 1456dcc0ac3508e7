"""All learners on the same tables: how well what they learn predicts, and what it costs."""

from collections.abc import Iterator

from benchmarks.child import ChildError, in_child
from benchmarks.learner_run import learn_warm
from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note, Table

TITLE = "Learners: NLTCS and Plants"
# Libra's trees with Libra's weights on the same splits, its best setting by validation.
LIBRA = {"nltcs": (-4.930, 1.9), "plants": (-8.829, 8.0)}
RUNS: dict[str, tuple[str, dict]] = {
    "CSGS": ("CSGS", {}),
    "CSPC": ("CSPC", {}),
    "GSMN": ("GSMN", {}),
    "GSMN, Bayesian test": ("GSMN", {"test": "bayesian"}),
    "IBMAPHC": ("IBMAPHC", {}),
    "GSSL": ("GSSL", {}),
    "DTSL": ("DTSL", {}),
}
HEADERS = (
    "table", "learner", "test PLL", "features", "tests", "distinct", "learn, CPU s", "weigh, CPU s", "MB",
)  # fmt: skip


def run(options: Options) -> Iterator[Entry]:
    """Learn every table with every learner."""
    rows, found = [], {}
    for table in LIBRA:
        folder = str(options.need(f"debd/{table}"))
        for learner, (name, settings) in RUNS.items():
            try:
                answer = in_child(learn_warm, folder, name, settings)
            except ChildError as failed:
                yield Note(f"{learner} on {table} failed: {failed}")
                continue
            found[table, learner] = answer
            rows.append(_row(table, learner, answer))
            if "refused" in answer:
                yield Note(f"{learner} on {table} has no weights: {answer['refused']}")
            if "chosen" in answer:
                yield Note(f"{learner} on {table} chose {answer['chosen']} of {answer['n_tried']} settings.")
    yield Table(HEADERS, tuple(rows))
    yield from _targets(options, found)
    yield Note(
        "PLL: pseudo-log-likelihood in nats a row of the test part; weights under Gaussian(1) where the "
        "learner has none of its own. DTSL and GSSL choose their settings by the validation part, and their "
        "time to learn includes all settings tried. One thread; each in a fresh process; MB is its peak."
    )


def _targets(options: Options, found: dict) -> Iterator[Line]:
    for table, (score, seconds) in LIBRA.items():
        trees = found.get((table, "DTSL"))
        if trees:
            yield Line(
                f"{table}: DTSL's test PLL less Libra's", trees["pll"] - score, "nats", at_least=-0.0005
            )
            chosen = trees.get("chosen", {})
            kept = {"kappa": chosen.get("kappa"), "prior": chosen.get("prior")}
            alone = in_child(learn_warm, str(options.need(f"debd/{table}")), "DTSL", kept)
            yield Line(f"{table}: DTSL with the chosen setting, CPU", alone["learn"], "s", at_most=seconds)
        draws = found.get((table, "GSSL"))
        if trees and draws:
            share = draws["pll"] / trees["pll"]
            yield Line(f"{table}: GSSL's test PLL as a share of DTSL's", share, "times", at_most=1.02)
            yield Line(f"{table}: GSSL, default settings, CPU", draws["learn"] / 60, "min", at_most=30)
    if ("plants", "CSGS") in found:
        yield Line("plants: CSGS, peak", found["plants", "CSGS"]["peak"] / 1e6, "MB", at_most=2000)


def _row(table: str, learner: str, answer: dict) -> tuple[str, ...]:
    def cell(name: str, form: str) -> str:
        return format(answer[name], form) if name in answer else ""

    return (
        table,
        learner,
        cell("pll", ".4f"),
        cell("features", ",d"),
        cell("tests", ",d"),
        cell("distinct", ",d"),
        cell("learn", ".2f"),
        cell("weigh", ".2f"),
        f"{answer['peak'] / 1e6:,.0f}",
    )
