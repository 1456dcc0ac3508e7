"""Making the plan of a large table of all kinds of columns: CPU seconds and memory of a fresh process."""

import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.child import in_child
from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import spread

TITLE = "Preparing: the plan of a million rows x 60 mixed columns"
N_ROWS = 1_000_000
TURNS = 3
TARGETS = {"csv": 15, "parquet": 8}


def run(options: Options) -> Iterator[Entry]:
    """Prepare the same table from two kinds of files, in a process of its own each time."""
    with tempfile.TemporaryDirectory() as folder:
        paths = write_mixed(Path(folder), N_ROWS)
        found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in paths}
        for _ in range(min(TURNS, options.repeats)):
            for kind, path in paths.items():
                found[kind].append(in_child(prepare_once, str(path)))
    for kind, turns in found.items():
        seconds = sorted(one["cpu"] for one in turns)
        yield Line(f"{kind}: CPU", seconds[len(seconds) // 2], "s", spread(seconds), at_most=TARGETS[kind])
        yield Line(f"{kind}: peak of memory", max(one["peak"] for one in turns) / 1e9, "GB", at_most=2)
    yield Note(
        f"{turns[0]['n_columns']} columns: categories, scales, numbers, dates, identifiers, free text, "
        "columns with missing values, a copy and a function of others. Start-up of Python is included."
    )


def prepare_once(path: str) -> dict[str, Any]:
    """Prepare a table; return the CPU seconds of this process."""
    import unless

    plan = unless.prepare(path)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu": used.ru_utime + used.ru_stime, "n_columns": len(plan.lines)}


def write_mixed(folder: Path, n: int) -> dict[str, Path]:
    """Write a table of all kinds of columns as CSV and as Parquet."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv, parquet

    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(200)])
    columns: dict[str, Any] = {"id": np.arange(1, n + 1)}
    columns |= {f"category {i}": words[rng.integers(0, 3 + 2 * i, n)] for i in range(15)}
    columns |= {f"scale {i}": rng.integers(1, 6, n) for i in range(10)}
    columns |= {f"whole {i}": rng.integers(0, 100 * (i + 1), n) for i in range(10)}
    columns |= {f"number {i}": np.round(rng.normal(50, 20, n), 3) for i in range(15)}
    columns["copy"] = np.round(np.log(columns["whole 3"] + 1), 9)
    columns["is low"] = (columns["number 0"] < 40).astype(int)
    columns["date"] = (np.datetime64("2010-01-01") + rng.integers(0, 4000, n)).astype(str)
    cities = np.array([f"city {i}" for i in range(800)])
    columns["city"] = cities[(rng.pareto(1, n) * 10).astype(int) % 800]
    columns["key"] = np.array([f"u{one:08x}" for one in rng.permutation(n)])
    texts = np.array([" ".join(words[rng.integers(0, 200, 7)]) for _ in range(20_000)])
    columns["text"] = texts[rng.integers(0, 20_000, n)]
    few = columns["category 1"].astype(object)
    few[rng.random(n) < 0.03] = None
    many = np.where(rng.random(n) < 0.3, np.nan, columns["number 2"] * 2 + 1)
    table = pa.table(
        {
            **columns,
            "few missing": pa.array(few.tolist()),
            "many missing": pa.array(many, from_pandas=True),
            "yes or no": rng.random(n) < 0.5,
        }
    )
    paths = {kind: folder / f"mixed.{kind}" for kind in TARGETS}
    csv.write_csv(table, paths["csv"])
    parquet.write_table(table, paths["parquet"])
    return paths
