"""GSSL with the whole grid of its authors, cut by successive halving, in a process of its own."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.child import ChildError, in_child
from benchmarks.learner_run import read_debd
from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import timed

TITLE = "GSSL: 108 settings by successive halving, NLTCS and Plants"
# Libra's DTSL on the same splits.
LIBRA = {"nltcs": -4.930, "plants": -8.829}
DRAWS = (500_000, 1_000_000, 2_000_000, 5_000_000)
PRUNES = (1, 5, 10)
DEVIATIONS = (0.1, 0.5, 1.0)
COSTS = (10.0, 5.0, 1.0)


def run(options: Options) -> Iterator[Entry]:
    """Learn both tables once; it takes tens of minutes."""
    for table, score in LIBRA.items():
        try:
            found = in_child(learn, str(options.need(f"debd/{table}")))
        except ChildError as failed:
            yield Note(f"{table} failed: {failed}")
            continue
        yield Line(f"{table}: test PLL as a share of Libra's DTSL", found["pll"] / score, at_most=1.02)
        yield Line(f"{table}: whole grid, CPU", found["cpu"] / 60, "min", at_most=30)
        yield Line(f"{table}: peak memory", found["peak"] / 1e6, "MB")
        yield Note(
            f"{table}: test PLL {found['pll']:.4f}, {found['features']:,} features, chosen {found['chosen']} "
            f"of {found['n_tried']}."
        )


def learn(folder: str) -> dict[str, object]:
    """Fit on the training part, choose by the validation part, score on the test part."""
    from unless.learners.gssl import GSSL
    from unless.weights.priors import Gaussian, Laplace

    tables = {part: read_debd(Path(folder), part) for part in ("train", "valid", "test")}
    priors = [Gaussian(sd) + Laplace(l1) for l1 in COSTS for sd in DEVIATIONS]
    est = GSSL(DRAWS, prune=PRUNES, prior=priors, n_jobs=1, max_memory="4 GB", show_progress=False)
    _, taken = timed(lambda: est.fit(tables["train"], validation=tables["valid"]))
    return {
        "cpu": taken.cpu,
        "pll": float(est.network_.pseudo_log_likelihood(tables["test"])),
        "features": len(est.structure_),
        "chosen": est.chosen_,
        "n_tried": len(est.tried_),
    }
