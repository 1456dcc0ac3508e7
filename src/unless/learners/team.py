"""Threads that work on one thing at the same time, and wait for each other."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Self

from unless.learners.shards import Pulse, Stopped


class Team:
    """Members that do piece after piece together; the first of them is the thread that calls."""

    def __init__(self, n_members: int, pulse: Pulse) -> None:
        self.n_members, self._pulse = n_members, pulse
        self._others = ThreadPoolExecutor(n_members - 1) if n_members > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        if self._others is not None:
            self._others.shutdown()

    def together(self, work: Callable[[int], object]) -> None:
        """Call `work` with the number of each member at once, and return when all are done.

        What fails in one of them stops the others at their next pulse, and is raised here.
        """
        others: list[Future[object]] = []
        try:
            for member in range(1, self.n_members):
                assert self._others is not None  # noqa: S101 (for type checkers)
                others.append(self._others.submit(self._stopping, work, member))
            work(0)
            wait(others)
        except BaseException as error:
            # Also where Ctrl-C is heard while this thread waits for the others.
            self._pulse.stop()
            if isinstance(error, Stopped):
                _raise_cause(others)
            raise
        _raise_cause(others)

    def _stopping(self, work: Callable[[int], object], member: int) -> None:
        try:
            work(member)
        except BaseException:
            self._pulse.stop()
            raise


def _raise_cause(others: list[Future[object]]) -> None:
    """Raise what made others stop, if it was not one that was stopped itself."""
    wait(others)
    errors = [error for error in (other.exception() for other in others) if error is not None]
    for error in sorted(errors, key=lambda error: isinstance(error, Stopped)):
        raise error
