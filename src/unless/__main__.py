"""The way in from a shell: hears Ctrl-C before anything that takes time is loaded."""

import atexit
import os
import signal
import sys
from contextlib import suppress
from types import FrameType

_STOPPED = 130
# Seconds until Ctrl-C is tried again.
_MOMENT = 0.01
# Callbacks whose exceptions Python prints and forgets, by module and name.
_CALLBACKS = {("importlib._bootstrap", "cb"), ("weakref", "remove"), ("_weakrefset", "_remove")}


def main() -> None:
    """Run the command, and exit as it does; if it is stopped there is no traceback, whenever that is."""
    codes: list[object] = []
    # What is registered first is called last.
    atexit.register(_leave, codes)
    # Whoever started it may want Ctrl-C to be ignored.
    is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if is_heard:
            signal.signal(signal.SIGINT, _stop)
        from unless.cli.program import main as program

        program()
    except SystemExit as leaving:
        _end_at_once(is_heard)
        codes.append(leaving.code)
        raise
    except KeyboardInterrupt:
        _end_at_once(is_heard)
        codes.append(_STOPPED)
        sys.stderr.write("Stopped.\n")
        sys.exit(_STOPPED)
    else:
        _end_at_once(is_heard)


def _end_at_once(is_heard: bool) -> None:
    """Let Ctrl-C end the process from now on: there is nobody any more to catch an exception."""
    if is_heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _stop(_: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, a moment later where it would be lost."""
    if hasattr(signal, "setitimer") and _is_lost_in(frame):
        signal.signal(signal.SIGALRM, _stop)
        signal.setitimer(signal.ITIMER_REAL, _MOMENT)
        return
    # What is left half done complains when it is taken down.
    sys.unraisablehook = _say_nothing
    raise KeyboardInterrupt


def _say_nothing(_: object) -> None:
    """Print nothing of an exception that nobody can catch."""


def _is_lost_in(frame: FrameType | None) -> bool:
    """Tell whether Python would print an exception here and go on."""
    while frame is not None:
        home, name = str(frame.f_globals.get("__name__")), frame.f_code.co_name
        # LLVM calls back when it loads a kernel, and what it was about to make is not whole yet.
        if (home, name) in _CALLBACKS or name == "__del__" or home.startswith("llvmlite.binding"):
            return True
        frame = frame.f_back
    return False


def _leave(codes: list[object]) -> None:
    """End a stopped process before Python takes down what it was in the middle of, and complains."""
    if codes == [_STOPPED]:
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):
                stream.flush()
        os._exit(_STOPPED)


if __name__ == "__main__":
    main()
