"""`python -m studies.calibration`: how often links in contexts are true that CSIBMAP says are probable.

Tables of the paper's domain: n = 6 to 9, N = 100 to 10,000, one of each for every seed, the law and its rows
drawn by the seed. Each link in each observed context, counted once, is put into one of ten bins by its
probability; a bin is calibrated if the mean of these is within .05 of the share that is true. Each table is
one JSON file, so that a run that was stopped goes on where it was. The page goes to build/calibration; what
decision 36 reports is the run of the seeds 1,000 to 1,049.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.datasets.synthetic import make_csi
from unless.learners.csibmap import CSIBMAP, probabilities_in
from unless.structures.structure import unpack

VARIABLES, SIZES = (6, 7, 8, 9), (100, 500, 2_000, 10_000)
# Seeds below this one were used while the prior of a link was chosen; what is reported uses others.
DESIGN_SEEDS = 1_000
SEEDS, QUICK_SEEDS = 50, 2
N_BINS, LEAST, MOST_OFF = 10, 300, 0.05
RESAMPLES = 2_000
# Links in contexts, the sum of their probabilities, and how many are true: by bin.
Bins = npt.NDArray[np.float64]


class Table(NamedTuple):
    """One table: a law of so many variables, and so many of its rows."""

    n_variables: int
    n_rows: int
    seed: int

    @property
    def file(self) -> str:
        """The name of the file of its bins."""
        return f"{self.n_variables}-{self.n_rows}-{self.seed}.json"


def plan(seeds: Iterable[int], *, quick: bool = False) -> list[Table]:
    """List the tables, all of one seed before the next: a run cut short stays balanced."""
    return [
        Table(n, n_rows, seed)
        for seed in seeds
        for n, n_rows in product(VARIABLES[:2] if quick else VARIABLES, SIZES[:2] if quick else SIZES)
    ]


def binned(probabilities: npt.NDArray[np.float64], is_true: npt.NDArray[np.bool_]) -> Bins:
    """Count links by bin of their probability."""
    place = np.minimum((probabilities * N_BINS).astype(np.int64), N_BINS - 1).ravel()
    sums = (None, probabilities.ravel(), is_true.ravel().astype(np.float64))
    return np.array([np.bincount(place, weights, N_BINS) for weights in sums], dtype=np.float64)


def measure(table: Table) -> Bins:
    """Learn from a table, and compare what is said of each link in each observed context with its law."""
    law = make_csi(table.n_variables, random_state=table.seed)
    data = law.sample(table.n_rows, random_state=table.seed)
    learned = CSIBMAP(show_progress=False, n_jobs=1).fit(data).structure_
    truth = law.truth(data)
    links = unpack(truth.packed[truth.graph_index], table.n_variables)
    return binned(probabilities_in(learned, np.arange(len(learned))), links)


def run(tables: Iterable[Table], folder: Path, *, budget: float | None = None) -> int:
    """Measure the tables that have no file yet; returns how many are left when time is up."""
    folder.mkdir(parents=True, exist_ok=True)
    end = None if budget is None else time.monotonic() + budget
    waiting = [table for table in tables if not (folder / table.file).exists()]
    for number, table in enumerate(waiting):
        if end is not None and time.monotonic() > end:
            return len(waiting) - number
        # Whole or not at all.
        draft = folder / f".{table.file}.{os.getpid()}"
        draft.write_text(json.dumps(measure(table).tolist()))
        draft.replace(folder / table.file)
        sys.stderr.write(f"{table.file}; {len(waiting) - number - 1} left\n")
    return 0


def load(tables: Iterable[Table], folder: Path) -> dict[Table, Bins]:
    """Read the bins of the tables that were measured."""
    return {
        table: np.array(json.loads((folder / table.file).read_text()))
        for table in tables
        if (folder / table.file).exists()
    }


def page(found: dict[Table, Bins]) -> str:
    """Write the bins over all tables, with intervals by resampling seeds, and say how each size is alone."""
    whole = np.sum(list(found.values()), axis=0)
    seeds = sorted({table.seed for table in found})
    by_seed = np.array(
        [np.sum([bins for table, bins in found.items() if table.seed == seed], axis=0) for seed in seeds]
    )
    drawn = np.random.default_rng(0).integers(0, len(seeds), (RESAMPLES, len(seeds)))
    resampled = by_seed[drawn].sum(axis=1)
    lines = [
        f"{len(found)} tables, seeds {seeds[0]} to {seeds[-1]}, n = {_listed(found, 0)}, "
        f"N = {_listed(found, 1)}.",
        "",
        "| bin | links x contexts | mean | share true | difference (95 %) |",
        "|---|---|---|---|---|",
    ]
    off = _off(whole)
    for k in range(N_BINS):
        if whole[0, k]:
            low, high = np.nanquantile(_off(resampled[:, :, k].T), (0.025, 0.975))
            mean, true = whole[1:, k] / whole[0, k]
            lines.append(
                f"| {k / N_BINS:.1f} to {(k + 1) / N_BINS:.1f} | {whole[0, k]:,.0f} | {mean:.3f} "
                f"| {true:.3f} | {off[k]:.3f} ({low:.3f} to {high:.3f}) |"
            )
    cells = {(table.n_variables, table.n_rows) for table in found}
    alone = [np.sum([bins for table, bins in found.items() if table[:2] == cell], axis=0) for cell in cells]
    each = np.concatenate([np.abs(_off(bins))[bins[0] >= LEAST] for bins in alone])
    counted = np.abs(off)[whole[0] >= LEAST]
    lines += [
        "",
        f"Of bins with {LEAST} or more, {np.sum(counted <= MOST_OFF)} of {len(counted)} are within "
        f"{MOST_OFF}, the worst is off by {counted.max(initial=0):.3f}; at one n and N by itself, "
        f"{np.sum(each <= MOST_OFF)} of {len(each)}, the worst by {each.max(initial=0):.3f}.",
    ]
    return "\n".join(lines) + "\n"


def _off(bins: Bins) -> Bins:
    """Return the share that is true less the mean of the probabilities, of each bin."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((bins[2] - bins[1]) / bins[0])


def _listed(found: Iterable[Table], field: int) -> str:
    return ", ".join(f"{value:,}" for value in sorted({table[field] for table in found}))


def main(words: list[str] | None = None) -> int:
    """Measure the tables that are missing, then write the page; returns 1 if there was no time for all."""
    parser = argparse.ArgumentParser(prog="python -m studies.calibration", description=__doc__)
    parser.add_argument("--seed", type=int, default=DESIGN_SEEDS, help="the first seed (%(default)s)")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many seeds (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="two seeds, small tables")
    parser.add_argument("--budget", type=float, help="seconds after which no table is begun")
    parser.add_argument("--out", type=Path, default=Path("build/calibration"), help="folder (%(default)s)")
    options = parser.parse_args(words)
    n_seeds = QUICK_SEEDS if options.quick else options.seeds
    tables = plan(range(options.seed, options.seed + n_seeds), quick=options.quick)
    n_left = run(tables, options.out / "tables", budget=options.budget)
    found = load(tables, options.out / "tables")
    if not found:
        sys.stderr.write("There was no time for any table; give a larger --budget.\n")
        return 1
    text = page(found)
    (options.out / f"{options.seed}{'-quick' if options.quick else ''}.md").write_text(text)
    sys.stdout.write(text)
    return int(n_left > 0)


if __name__ == "__main__":
    sys.exit(main())
