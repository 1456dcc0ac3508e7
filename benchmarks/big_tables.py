"""Tables of any number of rows, written by the database in pieces: none is ever held in memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

PIECE = 10_000_000
# Of a thousand rows, so many take the value of the column before.
FOLLOW = 600


def write_chain(
    folder: Path,
    n_rows: int,
    levels: Sequence[int],
    follow: int = FOLLOW,
    seed: int = 12,
    form: Literal["parquet", "csv"] = "parquet",
) -> list[Path]:
    """Write files whose columns mostly follow the one before them; the same for the same seed."""
    import duckdb

    folder.mkdir(parents=True, exist_ok=True)
    label, how = ("", "header") if form == "csv" else ("'level ' || ", "compression zstd")
    named = ", ".join(f"{label}x{place} as X{place:02}" for place in range(len(levels)))
    paths: list[Path] = []
    with duckdb.connect(config={"memory_limit": "1GB", "temp_directory": str(folder / "spill")}) as database:
        database.execute("set enable_progress_bar = false")
        for start in range(0, n_rows, PIECE):
            paths.append(folder / f"part-{len(paths):03}.{form}")
            rows = _rows(start, min(n_rows, start + PIECE), levels, follow, seed)
            database.execute(f"copy (select {named} from ({rows})) to '{paths[-1]}' (format {form}, {how})")
    return paths


def _rows(start: int, end: int, levels: Sequence[int], follow: int, seed: int) -> str:
    """Write the query for the codes of some rows: column by column, each around the one before."""
    query = f"select i, (hash(i, {seed}) % {levels[0]})::UTINYINT as x0 from range({start}, {end}) as r(i)"
    for place, n_levels in enumerate(levels[1:], start=1):
        drawn = f"hash(i, {seed + place})"
        # Two independent numbers from one: its last three digits, and what stands before them.
        fresh, kept = f"({drawn} // 1000)", f"{drawn} % 1000 < {follow}"
        value = f"(case when {kept} then x{place - 1} else {fresh} end % {n_levels})::UTINYINT"
        query = f"select *, {value} as x{place} from ({query})"
    return query
