"""The tables of the suite as plain CSV files, which every package can read."""

import gzip
from pathlib import Path

from benchmarks.options import Options

BNLEARN = ("asia", "alarm")


def write_csv(options: Options, name: str, folder: Path) -> Path:
    """Unpack a table of the data folder; columns without names become x000, x001, ..."""
    packed = f"bnlearn_{name}/data.csv.gz" if name in BNLEARN else f"debd/{name}/{name}.train.data.gz"
    with gzip.open(options.need(packed), "rt", encoding="utf-8") as file:
        text = file.read()
    if name not in BNLEARN:
        n_columns = text.partition("\n")[0].count(",") + 1
        text = ",".join(f"x{place:03}" for place in range(n_columns)) + "\n" + text
    path = folder / f"{name}.csv"
    path.write_text(text, encoding="utf-8")
    return path
