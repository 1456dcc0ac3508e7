"""Ten million rows of Parquet, read and learned in a process of its own, and the memory it took."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from unless.benchmarks.big_tables import write_chain
from unless.benchmarks.options import Options
from unless.benchmarks.result import Entry, Line, Note

TITLE = "Memory: 10 million rows x 12 columns of Parquet"
LEVELS = (2, 3, 4, 2, 3, 2, 4, 2, 3, 2, 2, 2)
# Its own view of its peak: getrusage would count the memory of the process that started it.
CHILD = """
import json, sys, time
import unless
from unless.benchmarks.learner_run import peak
start = time.perf_counter(), time.process_time()
data = unless.read(sys.argv[1], max_memory=sys.argv[2])
read = time.perf_counter(), time.process_time()
learner = unless.CSGS(max_memory=sys.argv[2]).fit(data)
done = time.perf_counter(), time.process_time()
print(json.dumps({
    "peak": peak(), "n_rows": data.n_rows, "n_distinct": data.n_distinct,
    "n_graphs": learner.structure_.n_graphs,
    "read": [b - a for a, b in zip(start, read)], "fit": [b - a for a, b in zip(read, done)],
}))
"""


def run(_options: Options) -> Iterator[Entry]:
    """Write the table, then read and learn it elsewhere."""
    yield from read_and_learn(10_000_000, "1 GB", at_most=1000)


def read_and_learn(n_rows: int, max_memory: str, at_most: float) -> Iterator[Entry]:
    """Read and learn so many rows under a limit; the peak should be below `at_most` megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        size = sum(path.stat().st_size for path in write_chain(Path(folder) / "rows", n_rows, LEVELS))
        child = subprocess.run(
            [sys.executable, "-c", CHILD, str(Path(folder) / "rows" / "*.parquet"), max_memory],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
        )
    if child.returncode:
        yield Note(f"Failed: {child.stderr.strip().splitlines()[-1]}")
        return
    *chatter, answer = child.stdout.strip().splitlines()
    if chatter:
        yield Note("Reading wrote to standard output, which it should leave to its caller.")
    found = json.loads(answer)
    yield Line("peak memory of reading and learning", found["peak"] / 1e6, "MB", at_most=at_most)
    for name in ("read", "fit"):
        yield Line(f"{name}: wall", found[name][0], "s")
        yield Line(f"{name}: CPU", found[name][1], "s")
    yield Note(
        f"Files of {size / 1e6:,.0f} MB, {found['n_rows']:,} rows, {found['n_distinct']:,} distinct; "
        f'{found["n_graphs"]:,} distinct graphs; max_memory="{max_memory}"; once, in a fresh process.'
    )
