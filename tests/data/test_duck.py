"""The database's own ways are translated at its door."""

import os
import re
import signal
import threading
import time

import pytest

from unless.data.duck import Workshop
from unless.data.progress import progress

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
    with Workshop(2**26) as shop:
        shop.place(".csv").write_text("x")
        press_ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            shop.run(LONG)
    assert not shop.folder.exists()


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
    monkeypatch.setattr("unless.data.duck._GRACE", 0.1)
    with Workshop(2**26) as shop:
        shop.connection = Deaf(shop.connection)
        press_ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            shop.run("select 1")
    assert not closed.is_set()
    assert closed.wait(20)


def test_how_far_a_query_is_is_shown_after_a_while(capsys):
    with progress("Reading", True, after=0.01) as bar, Workshop(2**26, bar) as shop:
        shop.stage("grouping")
        seen = []

        def look():
            Workshop._look(shop)
            seen.append(shop.connection.query_progress())
            if seen[-1] > 0 and len(seen) > 1:
                raise KeyboardInterrupt

        shop._look = look
        with pytest.raises(KeyboardInterrupt):
            shop.run(LONG)
    said = capsys.readouterr()
    assert said.out == ""
    assert re.search(r"Reading, grouping: +\d+%\|.*<", said.err)


def test_the_folder_goes_with_the_workshop():
    with Workshop(2**26) as shop:
        shop.place(".csv").write_text("x")
        folder = shop.folder
    assert not folder.exists()
