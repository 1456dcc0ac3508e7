"""Ctrl-C during long work: cancel tokens, and work in a thread so that the main thread can be interrupted.

Python raises KeyboardInterrupt in the main thread only, and not while that thread is inside a kernel or a
database. Work that calls kernels for some milliseconds at a time therefore checks a `CancelToken` between two
calls; a query or a long kernel runs in another thread (`interruptible`).
"""

import os
import sys
from collections.abc import Callable, Sequence
from contextvars import copy_context
from threading import Event, Lock, Thread, current_thread, main_thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Item = TypeVar("Item")
Made = TypeVar("Made")
Step = Callable[[], object]
# Seconds between two calls of `look`, and between two calls of `stop`.
_LOOK, _CALL = 0.2, 0.05
# Seconds that cancelled work is given to end by itself.
_GRACE = 0.3
# Steps that take about a tenth of a second.
_LONG = 2e7
# The thread that waits for the next work of the main thread, if there is one.
_idle: list["ThreadPoolExecutor"] = []


class Cancelled(Exception):
    """Ends a part of work that was cancelled, or whose other parts failed."""


class CancelToken:
    """What work calls between two calls of a kernel: it raises after a cancel, and moves the progress bar.

    All parts together tick `n_ticks` times; the bar makes `n_steps` steps of it. A copy in another process
    does nothing: a shard that was sent there runs to its end.
    """

    def __init__(self, step: Step = lambda: None, n_steps: int = 0, n_ticks: int = 0) -> None:
        self._step, self._n_steps, self._n_ticks = step, n_steps, n_ticks
        self._n_done, self._lock = 0, Lock()
        self._is_cancelled = False

    def check(self) -> None:
        """Raise `Cancelled` where the work was cancelled."""
        if self._is_cancelled:
            raise Cancelled

    def tick(self, n_times: int = 1) -> None:
        """Move the bar."""
        self.check()
        if not self._n_ticks:
            return
        with self._lock:
            before = self._n_done * self._n_steps // self._n_ticks
            self._n_done += n_times
            for _ in range(before, self._n_done * self._n_steps // self._n_ticks):
                self._step()

    def cancel(self) -> None:
        """Let every part end at its next check."""
        self._is_cancelled = True

    def __reduce__(self) -> tuple[type["CancelToken"], tuple[()]]:
        return CancelToken, ()


def interruptible(
    work: Callable[[], Made],
    *,
    look: Callable[[], object] = lambda: None,
    stop: Callable[[], object],
    grace: float,
    daemon: bool = False,
) -> Made:
    """Call a function in another thread and wait for it, calling `look` now and then.

    After Ctrl-C `stop` is called and the work has `grace` seconds to end; a `daemon` thread is left behind
    when the program ends. All other work shares one thread as long as it is not interrupted: the database
    gives memory back when a thread ends, and to ask for it again takes longer than most queries.
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
            # Raised again in the thread that waits.
            failed.append(error)
        finally:
            ended.set()

    context = copy_context()
    kept = None if daemon else _kept_thread()
    try:
        if kept is None:
            Thread(target=context.run, args=(run,), daemon=True).start()
        else:
            kept.submit(context.run, run)
        while not ended.wait(_LOOK):
            look()
    except BaseException:
        # Called several times: work that is only about to begin would miss a single call.
        for _ in range(max(1, round(grace / _CALL))):
            stop()
            if ended.wait(_CALL):
                break
        if kept is not None:
            kept.shutdown(wait=False)
        raise
    if kept is not None:
        _idle.append(kept)
    if failed:
        raise failed[0]
    return made[0]


def _kept_thread() -> "ThreadPoolExecutor":
    # Here, because it brings the package for logs.
    from concurrent.futures import ThreadPoolExecutor

    return _idle.pop() if _idle else ThreadPoolExecutor(1)


def interruptible_kernel(kernel: Callable[[], Made], n_steps: float) -> Made:
    """Call a kernel that takes about so many steps; a long one in a thread.

    A kernel cannot be stopped: after Ctrl-C its thread runs to its end, and what it returns is dropped.
    """
    return kernel() if n_steps < _LONG else interruptible(kernel, stop=lambda: None, grace=0.0, daemon=True)


def cancellable(work: Callable[[], Made], token: CancelToken) -> Made:
    """Call a function that checks a token, in a thread; Ctrl-C cancels the token."""
    # A daemon, or the program could not end before it.
    return interruptible(work, stop=token.cancel, grace=_GRACE, daemon=True)


def n_workers(n_jobs: int | None) -> int:
    """Return how many workers joblib would use, here or on the cluster that the user chose."""
    # Without joblib loaded no backend was chosen, and its import takes a while.
    if n_jobs in (None, 1) and "joblib" not in sys.modules:
        return 1
    from joblib import effective_n_jobs

    return max(1, int(effective_n_jobs(n_jobs)))


def cancellable_map(
    work: Callable[[Item], Made], items: Sequence[Item], n_jobs: int | None, token: CancelToken
) -> list[Made]:
    """Call a function for every item, in threads of this process, and return the results in their order."""

    def one(item: Item) -> Made:
        token.check()
        made = work(item)
        token.tick()
        return made

    try:
        if n_workers(n_jobs) == 1:
            return cancellable(lambda: [one(item) for item in items], token)
        from joblib import Parallel, delayed

        # A thread starts without the context of the one that made it.
        calls = (delayed(copy_context().run)(one, item) for item in items)
        return list(Parallel(n_jobs=n_jobs, require="sharedmem")(calls))
    finally:
        # Threads that are still at work after Ctrl-C would go on to the end.
        token.cancel()


# Of all threads only the one that forks is there in the child.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)
