"""Work whose single steps may take long, done beside the main thread, which goes on hearing Ctrl-C."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from unless.data import waiting
from unless.learners.shards import Pulse

Item = TypeVar("Item")
Made = TypeVar("Made")
# Seconds that stopped work is given to end by itself.
_GRACE = 0.3


def aside(work: Callable[[], Made], pulse: Pulse) -> Made:
    """Call a function in a thread of its own and wait for it.

    What is left of the work after Ctrl-C ends when it next asks the pulse.
    """
    # A daemon, or the program could not end before it.
    return waiting.aside(work, stop=pulse.stop, grace=_GRACE, daemon=True)


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
