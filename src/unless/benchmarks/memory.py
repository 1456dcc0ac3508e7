"""Ten million rows of Parquet, read and learned in a process of its own, and the memory it took."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from unless.benchmarks.options import Options
from unless.benchmarks.result import Entry, Line, Note

TITLE = "Memory: 10 million rows x 12 columns of Parquet"
LEVELS = (2, 3, 4, 2, 3, 2, 4, 2, 3, 2, 2, 2)
N_ROWS, CHUNK = 10_000_000, 1_000_000
# Its own view of its peak: getrusage would count the memory of the process that started it.
CHILD = """
import json, sys, time
import unless
start = time.perf_counter(), time.process_time()
data = unless.read(sys.argv[1])
read = time.perf_counter(), time.process_time()
learner = unless.CSGS().fit(data)
done = time.perf_counter(), time.process_time()
try:
    status = open("/proc/self/status").read()
    peak = int(status.split("VmHWM:")[1].split()[0]) * 1024
except OSError:
    import resource
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps({
    "peak": peak, "n_rows": data.n_rows, "n_distinct": data.n_distinct,
    "n_graphs": learner.structure_.n_graphs,
    "read": [b - a for a, b in zip(start, read)], "fit": [b - a for a, b in zip(read, done)],
}))
"""


def run(_options: Options) -> Iterator[Entry]:
    """Write the table, then read and learn it elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.parquet"
        write_chain(path)
        size = path.stat().st_size
        child = subprocess.run(
            [sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=False, cwd=folder
        )
    if child.returncode:
        yield Note(f"Failed: {child.stderr.strip().splitlines()[-1]}")
        return
    *chatter, answer = child.stdout.strip().splitlines()
    if chatter:
        yield Note("Reading wrote to standard output, which it should leave to its caller.")
    found = json.loads(answer)
    yield Line("peak memory of reading and learning", found["peak"] / 1e6, "MB", at_most=1000)
    for name in ("read", "fit"):
        yield Line(f"{name}: wall", found[name][0], "s")
        yield Line(f"{name}: CPU", found[name][1], "s")
    yield Note(
        f"A file of {size / 1e6:,.0f} MB, {found['n_rows']:,} rows, {found['n_distinct']:,} distinct; "
        f"{found['n_graphs']:,} distinct graphs; once, in a fresh process with compiled kernels."
    )


def write_chain(path: Path) -> None:
    """Write rows in which each column mostly follows the one before it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(12)
    labels = [pa.array([f"level {level}" for level in range(size)]) for size in LEVELS]
    names = [f"X{i:02}" for i in range(len(LEVELS))]
    writer = None
    for _ in range(0, N_ROWS, CHUNK):
        columns, codes = [], np.zeros(CHUNK, dtype=np.int8)
        for size, words in zip(LEVELS, labels, strict=True):
            fresh = rng.integers(0, size, CHUNK, dtype=np.int8)
            codes = np.where(rng.random(CHUNK) < 0.6, codes % size, fresh)
            columns.append(pa.DictionaryArray.from_arrays(codes, words))
        table = pa.table(columns, names=names)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()
