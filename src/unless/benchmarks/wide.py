"""A thousand variables: every canonical graph within 4 GB, in a process of its own."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import numpy as np

from unless.benchmarks.learner_run import peak
from unless.benchmarks.options import Options
from unless.benchmarks.result import Entry, Line, Note

TITLE = "A wide table: 5,000 rows x 1,000 columns"
N_COLUMNS, N_ROWS = 1000, 5000


def run(_options: Options) -> Iterator[Entry]:
    """Make the table and learn it elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.run(
            [sys.executable, "-m", "unless.benchmarks.wide"],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
        )
    if child.returncode:
        yield Note(f"Failed: {child.stderr.strip().splitlines()[-1]}")
        return
    found = json.loads(child.stdout)
    yield Line("peak memory", found["peak"] / 1e6, "MB", at_most=4000)
    yield Line("wall", found["wall"], "s")
    yield Line("CPU", found["cpu"], "s")
    yield Line("questions asked", found["n_tests"])
    yield Line("tables counted", found["n_distinct_tests"])
    yield Note(
        "Binary; each column follows one of the five before it in four rows of five. CSGS with max_memory="
        '"4 GB"; answers that do not fit wait in nameless files of some gigabytes.'
    )


def make_table(n_columns: int = N_COLUMNS, n_rows: int = N_ROWS, seed: int = 0) -> np.ndarray:
    """Make a table in which each column mostly follows one that is near."""
    rng = np.random.default_rng(seed)
    table = np.zeros((n_rows, n_columns), dtype=np.int8)
    table[:, 0] = rng.random(n_rows) < 0.5
    for column in range(1, n_columns):
        near = rng.integers(max(0, column - 5), column)
        table[:, column] = np.where(rng.random(n_rows) < 0.8, table[:, near], rng.random(n_rows) < 0.5)
    return table


def main() -> None:
    """Learn, and tell what it took."""
    import time

    import unless

    data = unless.read(make_table())
    wall, cpu = time.perf_counter(), time.process_time()
    learner = unless.CSGS(max_memory="4 GB").fit(data)
    told = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "peak": peak()}
    told.update(n_tests=learner.n_tests_, n_distinct_tests=learner.n_distinct_tests_)
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
