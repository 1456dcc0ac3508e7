"""Work cut into shards: run by joblib, kept in files where there is a folder for them, stopped at once."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from threading import Lock
from typing import Any, Generic, TypeVar

from unless.data.dataset import Dataset
from unless.errors import interrupt_in
from unless.learners.workplace import Arrays, TableFile, Workplace, load_once

Made = TypeVar("Made")
Step = Callable[[], object]


class Stopped(Exception):
    """Ends a part of work whose other parts were stopped, or failed."""


class Pulse:
    """What work calls between two calls of a kernel: it hears of a stop, and moves the bar.

    All parts together tick `n_ticks` times; the bar makes `n_steps` steps of it. In another process both do
    nothing: what was sent there goes on to the end of its shard.
    """

    def __init__(self, step: Step = lambda: None, n_steps: int = 0, n_ticks: int = 0) -> None:
        self._step, self._n_steps, self._n_ticks = step, n_steps, n_ticks
        self._ticks, self._lock = count(1), Lock()
        self._is_stopped = False

    def check(self) -> None:
        """Raise where the work was stopped."""
        if self._is_stopped:
            raise Stopped

    def tick(self, n_times: int = 1) -> None:
        """Move the bar."""
        self.check()
        if not self._n_ticks:
            return
        with self._lock:
            for _ in range(n_times):
                done = next(self._ticks)
                if done * self._n_steps // self._n_ticks > (done - 1) * self._n_steps // self._n_ticks:
                    self._step()

    def stop(self) -> None:
        """Let every part end at its next check."""
        self._is_stopped = True

    def __reduce__(self) -> tuple[type["Pulse"], tuple[()]]:
        return Pulse, ()


@dataclass(frozen=True, eq=False)
class Held(Generic[Made]):
    """What all shards read, in memory."""

    value: Made

    def load(self) -> Made:
        """Return it."""
        return self.value


@dataclass(frozen=True)
class Filed(Generic[Made]):
    """What all shards read, made from a table on disk once in every process."""

    table: TableFile
    make: Callable[..., Made]
    given: tuple[Any, ...]

    def load(self) -> Made:
        """Return it, made at the first call."""
        made: Made = _make_once(self)
        return made


@lru_cache(maxsize=1)
def _make_once(filed: Filed[Any]) -> Any:
    return filed.make(load_once(filed.table), *filed.given)


def within_reach(
    data: Dataset, place: Workplace | None, make: Callable[..., Made], *given: Any
) -> Held[Made] | Filed[Made]:
    """Make what all shards read: here, or from the table's file where workers do not share this memory."""
    if place is None or shares_memory():
        return Held(make(data, *given))
    return Filed(place.keep_table(data), make, given)


def n_workers(n_jobs: int | None) -> int:
    """Return how many workers joblib would use, here or on the cluster that the user chose."""
    from joblib import effective_n_jobs

    return max(1, int(effective_n_jobs(n_jobs)))


def shares_memory() -> bool:
    """Tell whether joblib's workers, of the backend that the user chose, see this process's memory."""
    return _backend_can("supports_sharedmem")


def _backend_can(name: str) -> bool:
    from joblib.parallel import get_active_backend

    return bool(getattr(get_active_backend(prefer="threads")[0], name, False))


@dataclass(frozen=True, eq=False)
class _Errand:
    """One shard on its way to a worker.

    A class of its own, so that no cluster scatters its parts: what is scattered is lost with its workers.
    """

    work: Callable[..., Arrays]
    task: Sequence[Any]
    pulse: Pulse
    place: Workplace | None
    name: str

    def run(self) -> Arrays | None:
        if self.place is None:
            return self.work(*self.task, self.pulse)
        # A cluster repeats what it believes lost: the shard may be there.
        if not self.place.path(self.name).exists():
            self.place.keep(self.name, self.work(*self.task, self.pulse))
        return None


def run_shards(
    work: Callable[..., Arrays],
    tasks: Sequence[Sequence[Any]],
    *,
    n_jobs: int | None,
    place: Workplace | None = None,
    kind: str = "part",
    pulse: Pulse | None = None,
    ticks: int = 1,
    in_memory: bool = False,
) -> Sequence[Arrays]:
    """Call `work(*task, pulse)` for every task and return the arrays it gives, in their order.

    In a folder, shards that are there are not computed again, and the results are read when they are asked
    for. Work ticks `ticks` times a shard by itself. What works `in_memory` stays in this process, in threads,
    whatever the backend.
    """
    pulse = Pulse() if pulse is None else pulse
    names = [f"{kind}-{number:05}-of-{len(tasks):05}" for number in range(len(tasks))]
    finished = set() if place is None else place.finished(names)
    errands = [
        _Errand(work, task, pulse, place, name)
        for name, task in zip(names, tasks, strict=True)
        if name not in finished
    ]
    try:
        pulse.tick(ticks * len(finished))
        done = _run(errands, n_jobs, pulse, ticks, in_memory)
    except BaseException as error:
        # Threads that are still at work would go on to the end of theirs.
        pulse.stop()
        if place is None or interrupt_in(error) is None:
            raise
        raise KeyboardInterrupt(place.how_to_go_on()) from None
    return done if place is None else _Results(place, names)


def _run(
    errands: Sequence[_Errand], n_jobs: int | None, pulse: Pulse, ticks: int, in_memory: bool
) -> list[Any]:
    from joblib import Parallel, delayed

    # A single one is done here: there is nothing to spread.
    if n_jobs == 1 or len(errands) < 2:
        return [errand.run() for errand in errands]
    calls = (delayed(errand.run)() for errand in errands)
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
        pulse.tick(ticks)
    return done


@dataclass(frozen=True)
class _Results(Sequence[Arrays]):
    """Shards in a folder, read one at a time."""

    place: Workplace
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, number: Any) -> Any:
        return self.place.shard(self.names[number])

    def __iter__(self) -> Iterator[Arrays]:
        return (self.place.shard(name) for name in self.names)
