"""The way in from a shell, as a process of its own."""

import signal
import subprocess
import sys

import pytest

# What happens when the first thing that takes time is loaded.
LOADING = """
import os, signal, sys, time

class Loading:
    def find_spec(self, name, *_):
        if name == "click":
            event()

class Dying:
    def __del__(self):
        interrupt()

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

def in_what_nobody_catches():
    Dying()
    time.sleep(5)

event = {event}
sys.meta_path.insert(0, Loading())
sys.argv = ["unless", "--version"]
from unless.__main__ import main
main()
"""


def start(event, signals=signal.default_int_handler):
    return subprocess.run(
        [sys.executable, "-c", LOADING.format(event=event)],
        capture_output=True,
        text=True,
        check=False,
        # A shell's background job would ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signals),
    )


@pytest.mark.parametrize("event", ["interrupt", "in_what_nobody_catches"])
def test_ctrl_c_while_loading_is_no_traceback(event):
    done = start(event)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Stopped.\n")


def test_who_ignores_ctrl_c_goes_on():
    done = start("interrupt", signal.SIG_IGN)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("unless ")


def test_the_library_leaves_signals_alone():
    code = """
import signal
before = signal.getsignal(signal.SIGINT)
import unless.cli.program
print(signal.getsignal(signal.SIGINT) is before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
