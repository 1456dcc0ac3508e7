"""`python -m studies.tables`: what is said of tables as people have them, when the truth is known.

The whole run takes less than an hour on one core, `--quick` three minutes. A run that was stopped goes on
when the same command is given again. Figures go to docs/accuracy/tables.md, the lines that must hold also to
docs/accuracy.md; those of a quick run go to build/tables.
"""

import argparse
import sys
from pathlib import Path

from studies.tables import run, writing


def main(words: list[str] | None = None) -> int:
    """Run the cells that are missing, then write the pages; returns 0, or 1 if there was no time for all."""
    options = _options().parse_args(words)
    only = None if options.only is None else options.only.split(",")
    if unknown := [name for name in only or () if name not in run.PARTS]:
        sys.stderr.write(f"There is no part {unknown[0]!r}; parts are {', '.join(run.PARTS)}.\n")
        return 2
    folder = (
        options.cells or Path("build/tables/cells") / f"{options.seed}{'-quick' if options.quick else ''}"
    )
    cells = run.plan(quick=options.quick, only=only)
    n_left = run.run(cells, folder, seed=options.seed, budget=options.budget)
    # Of other parts what earlier runs have found.
    whole = run.plan(quick=options.quick)
    records, seconds = run.load(whole, folder)
    n_missing = sum(not (folder / f"{cell.key}.json").exists() for cell in whole)
    is_report = not options.quick and options.seed == run.SEED
    out = options.out or Path("docs" if is_report else "build/tables")
    page = writing.write(
        records, out, seed=options.seed, quick=options.quick, n_left=n_missing, seconds=seconds
    )
    sys.stdout.write(f"{page}\n")
    return int(n_left > 0)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m studies.tables", description=__doc__)
    parser.add_argument("--seed", type=int, default=run.SEED, help="base seed of all tables (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="few tables, into build/tables")
    parser.add_argument("--only", help="parts of the study: numbers,missing")
    parser.add_argument("--budget", type=float, help="seconds after which no cell is started")
    parser.add_argument("--cells", type=Path, help="folder of the cells (build/tables/cells/SEED)")
    parser.add_argument("--out", type=Path, help="folder of the pages (docs)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
