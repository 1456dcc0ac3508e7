import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.big_tables import write_chain
from data.tables import write
from unless import read
from unless.data.sources.session import DuckDBSession
from unless.errors import TooLarge
from unless.runtime.memory import _of_control_groups, parse_memory, show_memory


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


def test_a_hundred_thousand_columns_are_refused_politely_and_before_any_is_read(tmp_path, monkeypatch):
    def refuse(_, query, _fetch):
        raise AssertionError(f"the database was asked: {query}")

    # Every query goes through it.
    monkeypatch.setattr(DuckDBSession, "_ask", refuse)
    names = ",".join(f"v{number}" for number in range(100_000))
    path = write(tmp_path / "t.csv", f"{names}\n{','.join('1' * 100_000)}\n")
    with pytest.raises(TooLarge, match=r"100,000 columns and reading it would need about 6.1 GiB"):
        read(path, max_memory="4 GB")
    with pytest.raises(
        TooLarge, match=r"100,000 columns, more than the 10,000 that can be counted together; .*exclude="
    ):
        read(path, max_memory="100 GB")
    with pytest.raises(TooLarge, match="20,000 columns"):
        read(np.zeros((1, 20_000)), max_memory="100 GB")


def test_more_distinct_rows_than_memory_are_refused_with_the_estimate():
    rng = np.random.default_rng(0)
    table = {f"x{place}": rng.integers(0, 200, 700_000) for place in range(6)}
    with pytest.raises(
        TooLarge, match=r"700,000 distinct rows of 6 columns and would need about .* MiB, .*max_memory="
    ):
        read(table, max_memory="64 MB", strict=True)


def test_a_collapse_that_outgrows_its_memory_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "t.csv"
    table = rng.integers(0, 200, (400_000, 6))
    np.savetxt(path, table, fmt="%d", delimiter=",", header=",".join("abcdef"), comments="")
    with pytest.raises(TooLarge):
        read(path, max_memory="64 MB", strict=True)


# --- past memory: what is too large to hold is collapsed within the limit, in a process of its own --------

LEVELS = (2, 3, 4, 2, 3, 2, 4, 2, 3, 2, 2, 2)
# What Python and its packages take before the first row is read.
OVERHEAD = 150
CHILD = """
import json, os, sys, threading, time
import unless

spilled = 0

def look():
    global spilled
    while True:
        for folder, _, files in os.walk(os.environ["TMPDIR"]):
            spilled += folder.endswith("spill") and bool(files)
        time.sleep(0.005)

threading.Thread(target=look, daemon=True).start()
data = unless.read(sys.argv[1], max_memory=sys.argv[2])
n_graphs = 0
if len(sys.argv) > 3:
    n_graphs = unless.CSGS(max_memory=sys.argv[2]).fit(data).structure_.n_graphs
peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) // 1024
print(json.dumps({
    "rows": data.n_rows, "distinct": data.n_distinct, "graphs": n_graphs, "peak": peak, "spilled": spilled,
}))
"""


def child(folder, pattern, max_memory, *more):
    """Start reading elsewhere, with a folder of its own for what does not fit."""
    (folder / "tmp").mkdir()
    (folder / "here").mkdir()
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(pattern), max_memory, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder / "here",
        env={**os.environ, "TMPDIR": str(folder / "tmp"), "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def leftovers(folder):
    return [*(folder / "tmp").iterdir(), *(folder / "here").iterdir()]


needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no view of its own memory")


@pytest.mark.slow
@needs_proc
def test_ten_million_rows_collapse_and_are_learned_within_their_limit(tmp_path):
    write_chain(tmp_path / "rows", 10_000_000, LEVELS)
    process = child(tmp_path, tmp_path / "rows" / "*.parquet", "512 MB", "learn")
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    found = json.loads(out)
    assert found["rows"] == 10_000_000
    assert 10_000 < found["distinct"] < 60_000
    assert found["graphs"] > 0
    assert found["peak"] < 512 + OVERHEAD


@pytest.fixture(scope="module")
def many_distinct(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    write_chain(folder, 4_000_000, (4,) * 12)
    return folder / "*.parquet"


@pytest.mark.slow
@needs_proc
def test_what_does_not_fit_is_spilled_where_temporary_files_go_and_removed(tmp_path, many_distinct):
    process = child(tmp_path, many_distinct, "128 MB")
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    found = json.loads(out)
    assert found["rows"] == 4_000_000
    assert found["distinct"] > 500_000
    assert found["spilled"] > 0
    assert found["peak"] < 128 + OVERHEAD
    assert leftovers(tmp_path) == []


@pytest.mark.slow
@needs_proc
def test_ctrl_c_and_errors_leave_nothing_behind(tmp_path, many_distinct):
    process = child(tmp_path, many_distinct, "128 MB")
    while process.poll() is None and not any((tmp_path / "tmp").glob("*/spill/*")):
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert "KeyboardInterrupt" in errors
    assert leftovers(tmp_path) == []
    (tmp_path / "again").mkdir()
    process = child(tmp_path / "again", many_distinct, "64 MB")
    _, errors = process.communicate()
    assert "TooLarge" in errors
    assert leftovers(tmp_path / "again") == []


def limited(n_bytes, code, *words):
    """Run Python with an address space of so many bytes."""
    import resource

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))

    return subprocess.run(
        [sys.executable, *code, *map(str, words)],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited on Linux only")
def test_the_default_sees_the_limits_of_the_process():
    code = "from unless.runtime.memory import parse_memory; print(parse_memory(None))"
    seen = int(limited(2**31, ["-c", code]).stdout)
    assert 2**26 <= seen <= 0.6 * 2**31


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited on Linux only")
@pytest.mark.parametrize("megabytes", [250, 900, 1_200])
def test_running_out_of_memory_is_one_sentence(tmp_path, megabytes):
    path = write(tmp_path / "t.csv", "a,b\n" + "x,1\ny,2\n" * 50)
    model = tmp_path / "m.unless"
    done = limited(megabytes * 2**20, ["-m", "unless"], "learn", path, "-o", model)
    if done.returncode:
        assert (done.returncode, model.exists()) == (2, False)
        assert re.search(r"There is not enough memory: ulimit -v leaves [\d.]+ [MK]iB", done.stderr)
        assert len(done.stderr.splitlines()) == 1
    else:
        assert model.exists()


def test_control_groups_of_both_versions_are_seen(tmp_path):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("123456789\n")
    assert _of_control_groups(tmp_path) == [123456789]
    (tmp_path / "memory.max").write_text("99\n")
    assert min(_of_control_groups(tmp_path)) == 99
