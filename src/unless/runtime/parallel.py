"""Independent parts of work, run by joblib on the backend that the user chose, and threads of one memory.

`run_shards` runs the parts of a learner: in threads, in processes or on a cluster. With a `CheckpointStore`
each finished part is a file, and a part that has its file is not computed again. How work is cut into parts
follows from the table alone, so that the number of workers never changes an answer.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from unless.errors import interrupt_in
from unless.runtime.checkpoints import Arrays, CheckpointStore, ShardFile
from unless.runtime.interrupts import Cancelled, CancelToken

Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class InMemory(Generic[Made]):
    """What all shards read, in the memory of this process."""

    value: Made

    def load(self) -> Made:
        """Return it."""
        return self.value


@dataclass(frozen=True)
class OnDisk(Generic[Made]):
    """What all shards read, made from a file once in every process."""

    path: str
    read: Callable[[Arrays], Any]
    make: Callable[..., Made]
    given: tuple[Any, ...]

    def load(self) -> Made:
        """Return it, made at the first call."""
        made: Made = _make_once(self)
        return made


@lru_cache(maxsize=1)
def _make_once(source: OnDisk[Any]) -> Any:
    return source.make(_read_once(source.path, source.read), *source.given)


@lru_cache(maxsize=1)
def _read_once(path: str, read: Callable[[Arrays], Any]) -> Any:
    # Apart from what is made of it: one file may serve several runs of shards.
    return read(ShardFile(Path(path)))


def share_input(
    made: Made, store: CheckpointStore | None, make: Callable[..., Made], data: Any, *given: Any
) -> InMemory[Made] | OnDisk[Made]:
    """Pass on `made`, which is `make(data, *given)`, to all shards.

    Workers that do not share this memory make it again, from a file of the data.
    """
    if store is None or shares_memory():
        return InMemory(made)
    return OnDisk(store.save_input(data), store.inputs.from_arrays, make, given)


def shares_memory() -> bool:
    """Tell whether joblib's workers, of the backend that the user chose, see this process's memory."""
    return "joblib" not in sys.modules or _backend_can("supports_sharedmem")


def _backend_can(name: str) -> bool:
    from joblib.parallel import get_active_backend

    return bool(getattr(get_active_backend(prefer="threads")[0], name, False))


@dataclass(frozen=True, eq=False)
class ShardJob:
    """One shard on its way to a worker.

    A class of its own, so that no cluster scatters its parts: what is scattered is lost with its workers.
    """

    work: Callable[..., Arrays]
    task: Sequence[Any]
    token: CancelToken
    store: CheckpointStore | None
    name: str

    def run(self) -> Arrays | None:
        """Compute the shard; return it, or write it to the store."""
        if self.store is None:
            return self.work(*self.task, self.token)
        # A cluster repeats a job that it takes for lost: the shard may be there.
        if not self.store.path(self.name).exists():
            self.store.save(self.name, self.work(*self.task, self.token))
        return None


def run_shards(
    work: Callable[..., Arrays],
    tasks: Sequence[Sequence[Any]],
    *,
    n_jobs: int | None,
    store: CheckpointStore | None = None,
    kind: str = "part",
    token: CancelToken | None = None,
    ticks: int = 1,
    in_memory: bool = False,
) -> Sequence[Arrays]:
    """Call `work(*task, token)` for every task and return the arrays it gives, in their order.

    With a store, shards that are there are not computed again, and each result is read when it is used.
    Work ticks the token `ticks` times a shard by itself. Work that is `in_memory` stays in this process, in
    threads, whatever the backend.
    """
    token = CancelToken() if token is None else token
    names = [f"{kind}-{number:05}-of-{len(tasks):05}" for number in range(len(tasks))]
    finished = set() if store is None else store.finished(names)
    jobs = [
        ShardJob(work, task, token, store, name)
        for name, task in zip(names, tasks, strict=True)
        if name not in finished
    ]
    try:
        token.tick(ticks * len(finished))
        done = _run(jobs, n_jobs, token, ticks, in_memory)
    except BaseException as error:
        # Threads that are still at work would go on to the end of theirs.
        token.cancel()
        if store is None or interrupt_in(error) is None:
            raise
        raise KeyboardInterrupt(store.how_to_resume()) from None
    return done if store is None else _StoredShards(store, names)


def _run(
    jobs: Sequence[ShardJob], n_jobs: int | None, token: CancelToken, ticks: int, in_memory: bool
) -> list[Any]:
    # A single one is done here: there is nothing to spread.
    if n_jobs == 1 or len(jobs) < 2:
        return [job.run() for job in jobs]
    from joblib import Parallel, delayed

    if in_memory or shares_memory():
        # A thread starts without the context of the one that made it.
        calls = (delayed(copy_context().run)(job.run) for job in jobs)
    else:
        calls = (delayed(job.run)() for job in jobs)
    if in_memory:
        return list(Parallel(n_jobs=n_jobs, require="sharedmem")(calls))
    # Threads share the table, kernels release the interpreter; the backend stays the user's choice.
    if shares_memory():
        return list(Parallel(n_jobs=n_jobs, prefer="threads")(calls))
    done = []
    # Ray and Spark give all results at the end only.
    comes = "generator" if _backend_can("supports_return_generator") else "list"
    for result in Parallel(n_jobs=n_jobs, prefer="threads", return_as=comes)(calls):
        done.append(result)
        token.tick(ticks)
    return done


@dataclass(frozen=True)
class _StoredShards(Sequence[Arrays]):
    """Shards in a store, read one at a time."""

    store: CheckpointStore
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, number: Any) -> Any:
        return self.store.shard(self.names[number])

    def __iter__(self) -> Iterator[Arrays]:
        return (self.store.shard(name) for name in self.names)


class Team:
    """Threads that do piece after piece of one work together; the first of them is the thread that calls."""

    def __init__(self, n_members: int, token: CancelToken) -> None:
        self.n_members, self._token = n_members, token
        self._others = ThreadPoolExecutor(n_members - 1) if n_members > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        if self._others is not None:
            self._others.shutdown()

    def together(self, work: Callable[[int], object]) -> None:
        """Call `work` with the number of each member at once, and return when all are done.

        What fails in one of them cancels the others, and is raised here.
        """
        others: list[Future[object]] = []
        try:
            for member in range(1, self.n_members):
                assert self._others is not None  # noqa: S101 (for type checkers)
                others.append(self._others.submit(copy_context().run, self._cancelling, work, member))
            work(0)
            for other in others:
                # Waits for it, in less time than `wait` does.
                other.exception()
        except BaseException as error:
            # Also where Ctrl-C comes while this thread waits for the others.
            self._token.cancel()
            if isinstance(error, Cancelled):
                _raise_cause(others)
            raise
        _raise_cause(others)

    def _cancelling(self, work: Callable[[int], object], member: int) -> None:
        try:
            work(member)
        except BaseException:
            self._token.cancel()
            raise


def _raise_cause(others: list[Future[object]]) -> None:
    """Raise what made others stop, in preference to the error of one that was cancelled."""
    errors = [error for error in [other.exception() for other in others] if error is not None]
    for error in sorted(errors, key=lambda error: isinstance(error, Cancelled)):
        raise error
