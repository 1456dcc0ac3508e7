"""The way in from a shell: handles Ctrl-C, SIGTERM and SIGHUP before anything that takes time is loaded.

All three are raised as KeyboardInterrupt, so that whatever cleans up after Ctrl-C cleans up after the others.
"""

import atexit
import os
import signal
import sys
import time
from contextlib import suppress
from types import FrameType

# Exit codes of what was stopped are this and the number of the signal, as shells count.
_STOPPED_BY = 128
_CTRL_C = _STOPPED_BY + signal.SIGINT
# Seconds until a signal that would be lost is sent again.
_MOMENT = 0.01
# Seconds in which a second signal is taken for the first one: some programs send it to the process and then
# to its group. A later one ends the process at once.
_SAME = 0.5
# Callbacks whose exceptions Python prints and drops, by module and name.
_CALLBACKS = {("importlib._bootstrap", "cb"), ("weakref", "remove"), ("_weakrefset", "_remove")}


class _Stop:
    """The signals that stop the command, and which of them came first."""

    def __init__(self) -> None:
        # The parent process may have set some to be ignored, as nohup does.
        default = {signal.SIG_DFL, signal.default_int_handler}
        names = ("SIGINT", "SIGTERM", "SIGHUP")
        known = [getattr(signal, name) for name in names if hasattr(signal, name)]
        self._signals = [one for one in known if signal.getsignal(one) in default]
        self._first: int | None = None
        self._when = 0.0

    def listen(self) -> None:
        """Stop the command when a signal comes."""
        for one in self._signals:
            signal.signal(one, self._hear)

    def end_at_once(self) -> None:
        """Let signals end the process from now on: no code is left that would catch an exception."""
        for one in self._signals:
            signal.signal(one, signal.SIG_DFL)

    @property
    def code(self) -> int | None:
        """The exit code of a command that a signal stopped; None if there was none."""
        return None if self._first is None else _STOPPED_BY + self._first

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self._first is None:
            self._first, self._when = number, time.monotonic()
            self._raise(0, frame)
        elif time.monotonic() > self._when + _SAME:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _raise(self, _: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, a moment later where it would be lost."""
        if hasattr(signal, "setitimer") and _is_lost_in(frame):
            signal.signal(signal.SIGALRM, self._raise)
            signal.setitimer(signal.ITIMER_REAL, _MOMENT)
            return
        # Destructors of objects that the interrupt left half made may raise; Python would print that.
        sys.unraisablehook = _say_nothing
        raise KeyboardInterrupt


def main() -> None:
    """Run the command, and exit as it does; if it is stopped there is no traceback, whenever that is."""
    codes: list[int] = []
    # What is registered first is called last.
    atexit.register(_leave, codes)
    stop = _Stop()
    try:
        stop.listen()
        _open_streams()
        from unless.cli.program import main as program

        program()
    except SystemExit as leaving:
        stop.end_at_once()
        if leaving.code != _CTRL_C:
            raise
        codes.append(stop.code or _CTRL_C)
    except BaseException as error:
        stop.end_at_once()
        if stop.code is None and not isinstance(error, KeyboardInterrupt):
            raise
        # Also where saying so failed, because the terminal is gone.
        codes.append(stop.code or _CTRL_C)
        _say("Stopped.\n")
    else:
        stop.end_at_once()
    if codes:
        sys.exit(codes[0])


def _open_streams() -> None:
    """Let streams that are closed lead to nothing: the next file that is opened would take their place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, os.fdopen(nothing, "w", encoding="utf-8"))


def _say(text: str) -> None:
    # The reader closed the stream: there is nowhere to write to.
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(text)


def _say_nothing(_: object) -> None:
    """Print nothing of an exception that cannot be caught."""


def _is_lost_in(frame: FrameType | None) -> bool:
    """Tell whether Python would print an exception here and go on."""
    while frame is not None:
        home, name = str(frame.f_globals.get("__name__")), frame.f_code.co_name
        # LLVM calls back when it loads a kernel, and what it was about to make is not whole yet.
        if (home, name) in _CALLBACKS or name == "__del__" or home.startswith("llvmlite.binding"):
            return True
        frame = frame.f_back
    return False


def _leave(codes: list[int]) -> None:
    """End a stopped process before Python takes down what it was in the middle of, and complains."""
    for code in codes:
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):
                stream.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
