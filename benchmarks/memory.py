"""Ten million rows of Parquet, read and learned in a process of its own, and the memory it took."""

import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.big_tables import write_chain
from benchmarks.child import in_child
from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import timed

TITLE = "Memory: 10 million rows x 12 columns of Parquet"
LEVELS = (2, 3, 4, 2, 3, 2, 4, 2, 3, 2, 2, 2)


def run(_options: Options) -> Iterator[Entry]:
    """Write the table, then read and learn it elsewhere."""
    yield from read_and_learn(10_000_000, "1 GB", at_most=1000)


def read_and_learn(n_rows: int, max_memory: str, at_most: float) -> Iterator[Entry]:
    """Read and learn so many rows under a limit; the peak should be below `at_most` megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        size = sum(path.stat().st_size for path in write_chain(Path(folder) / "rows", n_rows, LEVELS))
        found = in_child(learn, str(Path(folder) / "rows" / "*.parquet"), max_memory)
    yield Line("peak memory of reading and learning", found["peak"] / 1e6, "MB", at_most=at_most)
    for name in ("read", "fit"):
        yield Line(f"{name}: wall", found[name]["wall"], "s")
        yield Line(f"{name}: CPU", found[name]["cpu"], "s")
    yield Note(
        f"Files of {size / 1e6:,.0f} MB, {found['n_rows']:,} rows, {found['n_distinct']:,} distinct; "
        f'{found["n_graphs"]:,} distinct graphs; max_memory="{max_memory}"; once, in a fresh process.'
    )


def learn(files: str, max_memory: str) -> dict[str, Any]:
    """Read and learn, and tell what each took."""
    import unless

    data, reading = timed(lambda: unless.read(files, max_memory=max_memory))
    learner, fitting = timed(lambda: unless.CSGS(max_memory=max_memory).fit(data))
    return {
        "read": asdict(reading),
        "fit": asdict(fitting),
        "n_rows": data.n_rows,
        "n_distinct": data.n_distinct,
        "n_graphs": learner.structure_.n_graphs,
    }
