"""Go through a plan: tables side by side, finished cells left alone."""

from itertools import groupby
from pathlib import Path

from studies.paper.measuring import measure
from studies.paper.plan import Cell, Plan
from studies.paper.store import Store
from unless.runtime.progress import progress


def run_cells(plan: Plan, folder: Path, n_jobs: int = -1, show_progress: bool | None = None) -> int:
    """Measure the cells that have no file yet and return how many there were.

    A run that was stopped, however, goes on where it was when it is started again.
    """
    from joblib import Parallel, delayed

    store = Store(folder)
    store.clear_drafts()
    missing = [cell for cell in plan.cells() if not store.has(cell)]
    if not missing:
        return 0
    by_contestant = {cell.contestant: cell for cell in reversed(missing)}
    tables = [list(cells) for _, cells in groupby(missing, key=lambda cell: cell.site)]
    # The long ones last a while: begun first, they do not hold up the end.
    tables.sort(key=lambda cells: -cells[0].site.size * cells[0].site.n_variables)
    with progress("Measuring", show_progress) as step:
        step.begin("first cells", len(by_contestant))
        # Kernels are compiled once, by the first cells, before several processes would all compile them.
        for cell in by_contestant.values():
            measure_cells([cell], folder)
            step()
        step.begin("tables", len(tables))
        run = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
        for _ in run(delayed(measure_cells)(cells, folder) for cells in tables):
            step()
    return len(missing)


def measure_cells(cells: list[Cell], folder: Path) -> None:
    """Measure those cells that are still missing, and keep each as soon as it is done."""
    store = Store(folder)
    for cell in cells:
        if not store.has(cell):
            store.write(cell, *measure(cell))
