"""The database's own ways are translated at its door."""

import gc
import os
import re
import signal
import threading
import time
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest

from unless import read
from unless.data.sources.session import SMALL_COLUMNS, DuckDBSession
from unless.errors import DataError
from unless.runtime.progress import progress

# Would take minutes.
LONG = "select sum(hash(a.range, b.range)) from range(100000) a, range(1000000) b"


@pytest.fixture
def press_ctrl_c():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    yield timer.start
    timer.join()
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_during_a_query_is_heard_and_nothing_stays(press_ctrl_c):
    with DuckDBSession(2**26) as session:
        session.temporary_path(".csv").write_text("x")
        press_ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            session.run(LONG)
    assert not session.folder.exists()


def test_a_query_that_does_not_hear_closes_the_door_behind_it(press_ctrl_c, monkeypatch):
    class Deaf:
        """A database that goes on for a while whatever happens."""

        def __init__(self, connection):
            self.connection = connection

        def execute(self, query):
            time.sleep(0.5)
            return self.connection.execute(query)

        def interrupt(self):
            pass

        def query_progress(self):
            return -1.0

        def close(self):
            self.connection.close()
            closed.set()

    closed = threading.Event()
    monkeypatch.setattr("unless.data.sources.session._GRACE", 0.1)
    with DuckDBSession(2**26) as session:
        session.connection = Deaf(session.connection)
        press_ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            session.run("select 1")
    assert not closed.is_set()
    assert closed.wait(20)


def test_how_far_a_query_is_is_shown_after_a_while(capsys):
    with progress("Reading", True, after=0.01) as bar, DuckDBSession(2**26, bar) as session:
        session.stage("grouping")
        seen = []

        def look():
            DuckDBSession._look(session)
            seen.append(session.connection.query_progress())
            if seen[-1] > 0 and len(seen) > 1:
                raise KeyboardInterrupt

        session._look = look
        with pytest.raises(KeyboardInterrupt):
            session.run(LONG)
    said = capsys.readouterr()
    assert said.out == ""
    assert re.search(r"Reading, grouping: +\d+%\|.*<", said.err)


def test_the_folder_goes_with_the_session():
    with DuckDBSession(2**26) as session:
        session.temporary_path(".csv").write_text("x")
        folder = session.folder
    assert not folder.exists()


RNG = np.random.default_rng(7)
SMALL = {
    "nasty": {
        "a": ["x", None, "y", "x"],
        "b": [1.5, float("nan"), 1.5, -0.0],
        "c": [True, False, True, True],
    },
    "one row": {"a": np.array([3], dtype=np.uint8), "b": ["only"]},
    "wide": {f"c{place}": RNG.permutation(64) / 7 for place in range(SMALL_COLUMNS)},
    "long": {"a": RNG.integers(0, 200, 2**16), "b": RNG.integers(0, 200, 2**16)},
    "moments": {
        "a": np.array(["2026-03-29T02:30", "2026-10-25"], dtype="datetime64[s]"),
        "b": [2**60, 2**60 + 1],
    },
}


@pytest.mark.parametrize("table", SMALL.values(), ids=SMALL)
def test_small_tables_are_read_as_large_ones_are(table, monkeypatch):
    monkeypatch.setattr(
        "unless.data.sources.session.DuckDBSession.folder", property(lambda _: pytest.fail("a database made"))
    )
    data = read(table, missing="level", max_levels=2000)
    monkeypatch.undo()
    monkeypatch.setattr("unless.data.sources.session.SMALL_BYTES", -1)
    monkeypatch.setattr(
        "unless.data.sources.session._connect_to_small", lambda: pytest.fail("not one of its own")
    )
    alone = read(table, missing="level", max_levels=2000)
    assert data == alone
    assert data.notes == alone.notes
    assert data.domain == alone.domain


def test_small_tables_leave_nothing_to_the_next_and_have_no_way_out(tmp_path):
    column = np.arange(3)
    readable = tmp_path / "readable.txt"
    readable.write_text("x")
    with DuckDBSession(2**30) as one, DuckDBSession(2**30) as other:
        one.register("given", {"a": column})
        other.register("something", {"b": np.arange(3)})
        one.run("create temp table made as select * from given")
        for table in ("given", "made"):
            with pytest.raises(DataError, match="does not exist"):
                other.rows(f"select * from {table}")
        for query in (
            f"copy made to '{tmp_path / 'x.csv'}'",
            f"select * from read_text('{readable}')",
            f"attach '{tmp_path / 'x.db'}'",
            "install httpfs",
            "set enable_external_access = true",
            f"set temp_directory = '{tmp_path}'",
            f"set allowed_directories = ['{tmp_path}']",
        ):
            with pytest.raises(DataError, match=r"disabled|while database is running"):
                one.run(query)
    held = weakref.ref(column)
    del column
    gc.collect()
    assert held() is None
    assert list(tmp_path.iterdir()) == [readable]


def test_the_database_of_small_tables_has_no_threads_and_survives_a_fork(monkeypatch):
    monkeypatch.setattr("unless.data.sources.session._small_databases", threading.local())
    threads = Path("/proc/self/task")
    before = set(threads.iterdir())
    with DuckDBSession(2**30) as session:
        session.register("given", {"a": np.arange(3)})
        assert set(threads.iterdir()) <= before
    table = {"a": ["x", "y"], "b": [1, 2]}
    data = read(table)
    with warnings.catch_warnings():
        # The runner of the tests has threads of its own.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        equal = False
        try:
            equal = read(table) == data
        finally:
            os._exit(not equal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
