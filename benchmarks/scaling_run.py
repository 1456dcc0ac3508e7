"""One point of a growth law, a table made or read and learned: the child of `scaling`."""

import time
from pathlib import Path
from typing import Any

import numpy as np

import unless
from benchmarks.child import peak

# A point that took so many seconds in all is not measured again.
ENOUGH = 20.0


def tree_rows(n_rows: int, n_columns: int, n_levels: int, keep: float, seed: int) -> np.ndarray:
    """Draw rows of a random tree: a column copies one of the five before it, or is drawn anew."""
    rng = np.random.default_rng(seed)
    codes = np.empty((n_columns, n_rows), dtype=np.uint16)
    codes[0] = rng.integers(0, n_levels, n_rows)
    for column in range(1, n_columns):
        parent = int(rng.integers(max(0, column - 5), column))
        fresh = rng.integers(0, n_levels, n_rows, dtype=np.uint16)
        codes[column] = np.where(rng.random(n_rows) < keep, codes[parent], fresh)
    return codes.T


def tree(n_rows: int, n_columns: int, n_levels: int, keep: float, seed: int) -> unless.Dataset:
    """Collapse such rows."""
    labels = tuple(str(level) for level in range(n_levels))
    domain = unless.Domain(tuple(unless.Variable(f"x{place:03}", labels) for place in range(n_columns)))
    return unless.Dataset.from_codes(domain, tree_rows(n_rows, n_columns, n_levels, keep, seed))


def measure_point(source: str | dict[str, Any], settings: dict[str, Any], turns: int) -> dict[str, float]:
    """Learn a file or a tree so many times, after a warm-up on little, and give the median times."""
    learner = unless.CSGS(show_progress=False, n_jobs=1, **settings)
    data = unless.read(source) if isinstance(source, str) else tree(**source)
    learner.fit(unless.Dataset.from_codes(data.domain, data.rows[:50]))
    _forget_peak()
    before = peak()
    costs: list[tuple[float, float]] = []
    while len(costs) < turns and sum(map(sum, costs)) < ENOUGH:
        start = time.process_time()
        read = unless.read(source) if isinstance(source, str) else data
        middle = time.process_time()
        learner.fit(read)
        costs.append((middle - start, time.process_time() - middle))
    model = learner.structure_
    reading, learning = np.median(np.array(costs), axis=0)
    return {
        "read": float(reading),
        "learn": float(learning),
        "total": float(np.median([sum(cost) for cost in costs])),
        "rows": model.n_rows,
        "contexts": len(model),
        "graphs": model.n_graphs,
        "tests": learner.n_tests_,
        "distinct": learner.n_distinct_tests_,
        "before": before,
        "model": model.rows.nbytes + model.counts.nbytes + model.packed.nbytes + model.graph_index.nbytes,
    }


def _forget_peak() -> None:
    """Let the peak begin at what is held now, where the system can: the table was made before."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return
