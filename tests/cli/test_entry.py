"""The way in from a shell, as a process of its own."""

import os
import signal
import subprocess
import sys

import pytest

from unless import __main__ as entry

# What happens when the first thing that takes time is loaded.
LOADING = """
import os, signal, sys, time

class Loading:
    def find_spec(self, name, *_):
        if name == "click" and not events:
            events.append(name)
            event()

class Dying:
    def __del__(self):
        interrupt()

def interrupt():
    os.kill(os.getpid(), {number})

def in_what_nobody_catches():
    Dying()
    time.sleep(5)

def twice():
    try:
        interrupt()
        time.sleep(5)
    except KeyboardInterrupt:
        # Some programs send it to the process and to its group.
        interrupt()
        print("goes on", flush=True)

def once_more_after_a_while():
    try:
        interrupt()
        time.sleep(5)
    except KeyboardInterrupt:
        time.sleep({patience})
        interrupt()
        time.sleep(5)

event, events = {event}, []
sys.meta_path.insert(0, Loading())
sys.argv = ["unless", "--version"]
from unless.__main__ import main
main()
"""


SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])


def start(event, number=signal.SIGINT, handler=None):
    default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    code = LOADING.format(event=event, number=int(number), patience=entry._SAME + 0.1)
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        # A shell's background job would ignore the signal.
        preexec_fn=lambda: signal.signal(number, default if handler is None else handler),
    )


@SIGNALS
@pytest.mark.parametrize("event", ["interrupt", "in_what_nobody_catches"])
def test_a_signal_while_loading_is_no_traceback(event, number):
    done = start(event, number)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "Stopped.\n")


@SIGNALS
def test_who_ignores_a_signal_goes_on(number):
    done = start("interrupt", number, signal.SIG_IGN)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("unless ")


@SIGNALS
def test_a_signal_that_comes_twice_at_once_is_one(number):
    assert start("twice", number).stdout.startswith("goes on\n")


@SIGNALS
def test_a_second_signal_ends_at_once(number):
    assert start("once_more_after_a_while", number).returncode == -number


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (1, 2), (0, 1, 2)])
def test_streams_that_are_closed_end_no_command(closed, tmp_path):
    command = [sys.executable, "-m", "unless", "datasets", "titanic"]
    expected = subprocess.run(command, capture_output=True, check=True).stdout

    def close():
        for number in closed:
            os.close(number)

    for more in (["-o", str(tmp_path / "t.csv")], []):
        done = subprocess.run([*command, *more], capture_output=True, check=False, preexec_fn=close)
        assert (done.returncode, done.stderr) == (0, b"")
    # Nothing that is said on a stream went into the file that would have taken its place.
    assert (tmp_path / "t.csv").read_bytes() == expected


def test_the_library_leaves_signals_alone():
    code = """
import signal
numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
before = [signal.getsignal(number) for number in numbers]
import unless.cli.program
print([signal.getsignal(number) for number in numbers] == before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
