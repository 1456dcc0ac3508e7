"""Go through a plan: tables side by side, finished runs left alone."""

from dataclasses import replace
from pathlib import Path

from studies.paper.measuring import measure
from studies.paper.plan import Plan, Run, Table
from studies.paper.store import Store
from unless.runtime.progress import progress


def measure_missing(plan: Plan, folder: Path, n_jobs: int = -1, show_progress: bool | None = None) -> int:
    """Measure the runs that have no file yet and return how many there were.

    A study that was stopped, however, goes on where it was when it is started again.
    """
    from joblib import Parallel, delayed

    store = Store(folder)
    store.clear_drafts()
    missing = [run for run in plan.runs() if not store.has(run)]
    if not missing:
        return 0
    by_method = {run.method: run for run in reversed(missing)}
    # The variants of a table in one process: they share samples, and structures that they learn alike.
    by_table: dict[Table, list[Run]] = {}
    for run in missing:
        by_table.setdefault(replace(run.table, variant=""), []).append(run)
    # The long ones last a while: begun first, they do not hold up the end.
    tables = sorted(by_table.values(), key=lambda runs: -runs[0].table.size * runs[0].table.n_variables)
    with progress("Measuring", show_progress) as step:
        step.begin("first runs", len(by_method))
        # Kernels are compiled once, by the first runs, before several processes would all compile them.
        for run in by_method.values():
            measure_runs([run], folder)
            step()
        step.begin("tables", len(tables))
        side_by_side = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
        for _ in side_by_side(delayed(measure_runs)(runs, folder) for runs in tables):
            step()
    return len(missing)


def measure_runs(runs: list[Run], folder: Path) -> None:
    """Measure those runs that are still missing, and keep each as soon as it is done."""
    store = Store(folder)
    for run in runs:
        if not store.has(run):
            store.write(run, *measure(run))
