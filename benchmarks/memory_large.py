"""A hundred million rows of Parquet under a limit of 2 GB."""

from collections.abc import Iterator

from benchmarks.memory import read_and_learn
from benchmarks.options import Options
from benchmarks.result import Entry

TITLE = "Memory: 100 million rows x 12 columns of Parquet"


def run(_options: Options) -> Iterator[Entry]:
    """Write them in pieces, below a gigabyte on disk, then read and learn them elsewhere."""
    yield from read_and_learn(100_000_000, "2 GB", at_most=2000)
