import json
import subprocess
import sys
import time

import numpy as np
import pytest

from data.tables import write
from unless import read
from unless.data.memory import parse_memory, show_memory
from unless.errors import TooLarge


@pytest.mark.parametrize(
    ("amount", "n_bytes"), [("100 MB", 100 * 2**20), ("1.5GiB", 3 * 2**29), (2**27, 2**27), ("2g", 2**31)]
)
def test_an_amount_of_memory_is_understood(amount, n_bytes):
    assert parse_memory(amount) == n_bytes


def test_the_default_is_bounded():
    assert 2**26 <= parse_memory(None) <= 2**32


def test_memory_is_written_for_a_person():
    assert [show_memory(n) for n in (5, 2048, 3 * 2**20, 2**30, 2**41)] == [
        "5 bytes",
        "2 KiB",
        "3.0 MiB",
        "1.0 GiB",
        "2.0 TiB",
    ]


def test_a_hundred_thousand_columns_are_refused_politely_and_quickly(tmp_path):
    names = ",".join(f"v{number}" for number in range(100_000))
    path = write(tmp_path / "t.csv", f"{names}\n{','.join('1' * 100_000)}\n")
    start = time.process_time()
    with pytest.raises(TooLarge, match=r"100,000 columns and reading it would need about 6.1 GiB"):
        read(path, max_memory="4 GB")
    with pytest.raises(
        TooLarge, match=r"100,000 columns, more than the 10,000 that can be counted together; .*columns="
    ):
        read(path, max_memory="100 GB")
    with pytest.raises(TooLarge, match="20,000 columns"):
        read(np.zeros((1, 20_000)), max_memory="100 GB")
    assert time.process_time() - start < 5


def test_more_distinct_rows_than_memory_are_refused_with_the_estimate():
    rng = np.random.default_rng(0)
    table = {f"x{place}": rng.integers(0, 200, 700_000) for place in range(6)}
    with pytest.raises(
        TooLarge, match=r"700,000 distinct rows of 6 columns and would need about .* MiB, .*max_memory="
    ):
        read(table, max_memory="64 MB")


def test_a_collapse_that_outgrows_its_memory_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "t.csv"
    table = rng.integers(0, 200, (400_000, 6))
    np.savetxt(path, table, fmt="%d", delimiter=",", header=",".join("abcdef"), comments="")
    with pytest.raises(TooLarge):
        read(path, max_memory="64 MB")


BIG = """
import resource, sys, json
import unless
data = unless.read(sys.argv[1])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps({"rows": data.n_rows, "distinct": data.n_distinct, "peak": peak}))
"""


@pytest.mark.slow
def test_ten_million_rows_collapse_below_one_gigabyte(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    n_rows, column, columns = 10_000_000, None, {}
    for place in range(12):
        size = (2, 3, 4)[place % 3]
        fresh = rng.integers(0, size, n_rows, dtype=np.int8)
        column = fresh if column is None else np.where(rng.random(n_rows) < 0.85, column % size, fresh)
        columns[f"v{place}"] = column.astype(np.int8)
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    done = subprocess.run(
        [sys.executable, "-c", BIG, str(tmp_path / "t.parquet")], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found["rows"] == n_rows
    assert found["distinct"] <= 100_000
    assert found["peak"] < 1000
