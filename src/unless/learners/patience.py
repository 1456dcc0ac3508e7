"""Work whose single steps may take long, done beside the main thread, which goes on hearing Ctrl-C."""

from collections.abc import Callable, Sequence
from contextvars import copy_context
from threading import Event, Thread, current_thread, main_thread
from typing import TypeVar

from unless.learners.shards import Pulse

Item = TypeVar("Item")
Made = TypeVar("Made")
# Seconds between two looks, and those that stopped work is given to end by itself.
_LOOK, _GRACE = 0.2, 0.3


def aside(work: Callable[[], Made], pulse: Pulse) -> Made:
    """Call a function in a thread of its own and wait for it.

    Python hears Ctrl-C in the main thread only, and not while that is in a kernel. What is left of the work
    ends when it next asks the pulse.
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

    # A daemon, or the program could not end before it.
    Thread(target=copy_context().run, args=(run,), daemon=True).start()
    try:
        while not ended.wait(_LOOK):
            pass
    except BaseException:
        pulse.stop()
        ended.wait(_GRACE)
        raise
    if failed:
        raise failed[0]
    return made[0]


def each_aside(
    work: Callable[[Item], Made], items: Sequence[Item], n_jobs: int | None, pulse: Pulse
) -> list[Made]:
    """Call a function for every item, in threads of this process, and return what it gives in their order."""
    from joblib import Parallel, delayed, effective_n_jobs

    def one(item: Item) -> Made:
        pulse.check()
        made = work(item)
        pulse.tick()
        return made

    try:
        if effective_n_jobs(n_jobs) == 1:
            return aside(lambda: [one(item) for item in items], pulse)
        return list(Parallel(n_jobs=n_jobs, require="sharedmem")(delayed(one)(item) for item in items))
    finally:
        # Threads that are still at work after Ctrl-C would go on to the end.
        pulse.stop()
