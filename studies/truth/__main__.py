"""`python -m studies.truth`: how much of what is said is true, on tables whose law is known.

The whole run takes at most three hours on two cores, `--quick` ten minutes. A run that was stopped goes on
when the same command is given again. Figures go to docs/accuracy.md, those of a quick run to build/truth.
"""

import argparse
import sys
from pathlib import Path

from studies.truth import run, writing
from studies.truth.laws import DATA


def main(words: list[str] | None = None) -> int:
    """Run the cells that are missing, then write the page; returns 0, or 1 if some had no time or broke."""
    options = _options().parse_args(words)
    seed_folder = f"{options.seed}-quick" if options.quick else str(options.seed)
    folder = options.cells or Path("build/truth/cells") / seed_folder
    cells = run.plan(quick=options.quick)
    if options.cell:
        (cell,) = [one for one in run.plan() if one.key == options.cell]
        run.run_cell(cell, folder, options.seed, str(options.data))
        return 0
    if options.only:
        cells = [one for one in cells if any(word in one.key for word in options.only.split(","))]
    if not Path(options.data).is_dir():
        sys.stderr.write(
            f"There is no folder {options.data}: networks and tables are left out; give --data DIR.\n"
        )
        cells = [one for one in cells if one.domain in run.DOMAINS or one.task in ("twice", "one group")]
    budget = options.budget or (600 if options.quick else 10_500)
    n_left = run.run(
        cells, folder, seed=options.seed, data=str(options.data), workers=options.workers, budget=budget
    )
    out = options.out or Path("build/truth" if options.quick else "docs")
    records = run.load(folder)
    page = writing.write(records, out, seed=options.seed, quick=options.quick, n_left=n_left)
    sys.stdout.write(f"{page}\n")
    broken = run.broken(records)
    if broken:
        sys.stderr.write(f"{len(broken)} cells broke; the first: {broken[0]}\n")
    return int(n_left > 0 or bool(broken))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m studies.truth", description=__doc__)
    parser.add_argument("--seed", type=int, default=run.SEED, help="base seed of all tables (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="few tables: ten minutes, into build/truth")
    parser.add_argument("--budget", type=float, help="seconds after which no cell is started")
    parser.add_argument("--workers", type=int, default=2, help="processes side by side (%(default)s)")
    parser.add_argument("--only", help="cells whose key has one of these words: gated,alarm")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of networks and tables (%(default)s)")
    parser.add_argument("--cells", type=Path, help="folder of the cells (build/truth/cells/SEED)")
    parser.add_argument("--out", type=Path, help="folder of the page (docs)")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
