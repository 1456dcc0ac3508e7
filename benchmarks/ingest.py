"""Reading a table to distinct rows with counts, against what data frame libraries do with the same table."""

import gzip
import shutil
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.big_tables import write_chain
from benchmarks.memory import LEVELS
from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note, Table
from benchmarks.timing import interleave, measured, median, ratios, spread

TITLE = "Ingest: a million rows x 12 columns to distinct rows with counts"
N_ROWS = 1_000_000
TURNS = 5
FORMS = ("CSV", "CSV, packed", "Parquet", "DataFrame")
Ways = dict[str, Callable[[], object]]


def run(options: Options) -> Iterator[Entry]:
    """Do the same work by everyone who is installed, form by form."""
    here = [name for name in ("pandas", "polars", "pyarrow") if find_spec(name)]
    turns = min(TURNS, options.repeats)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        paths = _files(Path(folder))
        for form in FORMS:
            ways = _ways(form, paths, here)
            samples = interleave({name: measured(call) for name, call in ways.items()}, turns)
            for name, taken in samples.items():
                rows.append((form, name, f"{median(taken):.3g}", f"{median(taken, 'wall'):.3g}"))
            others = {name: taken for name, taken in samples.items() if name != "unless"}
            if not others:
                continue
            for clock in ("cpu", "wall"):
                fastest = min(others, key=lambda name: median(others[name], clock))
                ratio = median(samples["unless"], clock) / median(others[fastest], clock)
                spreads = spread(ratios(samples["unless"], others[fastest], clock))
                what = f"{form}: unless to {fastest}, {clock.replace('cpu', 'CPU')}"
                yield Line(what, ratio, "times", spreads)
    yield Table(("form", "who", "CPU s", "wall s"), tuple(rows))
    yield Note(
        f"{turns} turns after one to warm up; everyone with the threads it takes by default. The others read "
        "and group all columns; Unless also looks for missing values, refuses columns with too many, and "
        "gives levels an order that no shuffle of the rows changes."
    )


def _files(folder: Path) -> dict[str, Path]:
    import duckdb

    (parquet,) = write_chain(folder / "rows", N_ROWS, LEVELS)
    text, packed = folder / "rows.csv", folder / "rows.csv.gz"
    with duckdb.connect() as database:
        database.execute(f"copy (select * from '{parquet}') to '{text}' (header)")
    with text.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target)
    return {"CSV": text, "CSV, packed": packed, "Parquet": parquet}


def _ways(form: str, paths: dict[str, Path], here: list[str]) -> Ways:
    import unless

    makers: dict[str, Callable[[str, dict[str, Path]], Callable[[], object]]] = {
        "pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow,
    }  # fmt: skip
    ways: Ways = {name: makers[name](form, paths) for name in here}
    if form != "DataFrame":
        path = paths[form]
        return {"unless": lambda: unless.read(path), **ways}
    if "pandas" not in here:
        return {}
    import pandas

    frame = pandas.read_parquet(paths["Parquet"])
    return {"unless": lambda: unless.read(frame), **ways}


def _pandas(form: str, paths: dict[str, Path]) -> Callable[[], object]:
    import pandas

    def count(frame: Any) -> object:
        return frame.groupby(list(frame.columns), dropna=False, sort=False).size()

    if form == "DataFrame":
        held = pandas.read_parquet(paths["Parquet"])
        return lambda: count(held)
    if form == "Parquet":
        return lambda: count(pandas.read_parquet(paths[form]))
    return lambda: count(pandas.read_csv(paths[form]))


def _polars(form: str, paths: dict[str, Path]) -> Callable[[], object]:
    import polars

    def count(frame: Any) -> Any:
        return frame.group_by(polars.all()).len()

    if form == "DataFrame":
        held = polars.read_parquet(paths["Parquet"])
        return lambda: count(held)
    if form == "Parquet":
        return lambda: count(polars.scan_parquet(paths[form])).collect()
    if form == "CSV":
        return lambda: count(polars.scan_csv(paths[form])).collect()
    return lambda: count(polars.read_csv(paths[form]))


def _pyarrow(form: str, paths: dict[str, Path]) -> Callable[[], object]:
    from pyarrow import csv, parquet

    def count(table: Any) -> object:
        return table.group_by(table.column_names).aggregate([([], "count_all")])

    if form == "DataFrame":
        held = parquet.read_table(paths["Parquet"])
        return lambda: count(held)
    if form == "Parquet":
        return lambda: count(parquet.read_table(paths[form]))
    return lambda: count(csv.read_csv(paths[form]))
