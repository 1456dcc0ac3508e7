"""Work that Python cannot look into, done beside the main thread, which goes on hearing Ctrl-C."""

from collections.abc import Callable
from contextvars import copy_context
from threading import Event, Thread, current_thread, main_thread
from typing import TypeVar

Made = TypeVar("Made")
# Seconds between two looks, and between two calls to stop.
_LOOK, _CALL = 0.2, 0.05
# Steps that take about a tenth of a second.
_LONG = 2e7


def aside(
    work: Callable[[], Made],
    *,
    look: Callable[[], object] = lambda: None,
    stop: Callable[[], object],
    grace: float,
    daemon: bool = False,
) -> Made:
    """Call a function in a thread of its own and wait for it, looking in now and then.

    Python hears Ctrl-C in the main thread only, and not while that is in a kernel or a database. The work is
    then told to stop and given `grace` seconds to end; a `daemon` is left behind when the program ends.
    """
    if current_thread() is not main_thread():
        return work()
    made: list[Made] = []
    failed: list[BaseException] = []
    ended = Event()

    def run() -> None:
        try:
            made.append(work())
        except BaseException as error:
            # Raised again where it is waited for.
            failed.append(error)
        finally:
            ended.set()

    try:
        Thread(target=copy_context().run, args=(run,), daemon=daemon).start()
        while not ended.wait(_LOOK):
            look()
    except BaseException:
        # Called again and again: what is only about to begin does not hear it.
        for _ in range(max(1, round(grace / _CALL))):
            stop()
            if ended.wait(_CALL):
                break
        raise
    if failed:
        raise failed[0]
    return made[0]


def heard(kernel: Callable[[], Made], n_steps: float) -> Made:
    """Call a kernel that takes about so many steps; a long one beside the main thread.

    It has nothing to stop it: after Ctrl-C it is left to end by itself.
    """
    return kernel() if n_steps < _LONG else aside(kernel, stop=lambda: None, grace=0.0, daemon=True)
