"""Answers by question: kept for one node, and handed on to later ones.

A question about {a, b} is asked at the visit of a or of b, and nowhere else. So the memo of a visit needs its
own answers and those that earlier visits found about this node; these wait in `Waiting`, on disk where they
are many. When the later of a and b has been visited, all questions about the pair are closed.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition, Lock
from typing import IO, Self

import numpy as np
import numpy.typing as npt

from unless.errors import SettingError, TooLarge
from unless.kernels.bits import Words
from unless.kernels.memo import Keys, Log, count_log, merge, sort_log
from unless.runtime.memory import show_memory

Begins = npt.NDArray[np.int64]
# A fixed seed: the keys only name questions, no answer depends on them.
_KEY_SEED = 20140
_BYTES_OF_AN_ANSWER = 16
_FEWEST_PLACES = 2**12
# Seconds.
_A_WHILE = 0.2


def question_keys(n_conditions: int, n_variables: int) -> Keys:
    """Return the random words that questions are named by."""
    rng = np.random.default_rng(_KEY_SEED)
    words = rng.integers(0, 2**64, size=(n_conditions + n_variables, 2), dtype=np.uint64)
    return Keys(words[:n_conditions], words[n_conditions:])


def no_answers(room: int = 0) -> Words:
    """Return room for answers."""
    return np.zeros((room, 2), dtype=np.uint64)


def make_log(room: int) -> Log:
    """Make room for answers in the order they come."""
    return Log(np.empty((room, 2), dtype=np.uint64), np.empty(room, dtype=np.int32))


def widened(log: Log, n_logged: int, room: int) -> Log:
    """Return a log with room for so many more answers, at most twice as large as it must be."""
    if n_logged + room <= len(log.others):
        return log
    wider = make_log(max(n_logged + room, 2 * len(log.others)))
    wider.answers[:n_logged], wider.others[:n_logged] = log.answers[:n_logged], log.others[:n_logged]
    return wider


@dataclass
class Guest:
    """A thread that reads and fills a memo, and tells how many answers it added."""

    places: Words
    n_new: int = 0


@dataclass
class Memo:
    """Answers by question, widened as they come, within a number of bytes."""

    max_bytes: int
    advice: str = "raise max_memory=, set max_blanket=, or learn blankets='independent', which asks fewer"
    n_known: int = 0
    # Kept from node to node, as fresh memory is slow: one holds the places, the other those they move to.
    _rooms: list[Words] = field(default_factory=lambda: [no_answers(_FEWEST_PLACES), no_answers()])
    _n_guests: int = 0
    _n_wanted: int = 0
    _change: Condition = field(default_factory=Condition)

    def __post_init__(self) -> None:
        self.places = self._rooms[0]

    def begin(self, answers: Sequence[Words], n_new: int = 0) -> None:
        """Forget everything but these answers, and have room for `n_new` more."""
        self.n_known = 0
        self.places = no_answers()
        if sum(room.nbytes for room in self._rooms) > self.max_bytes // 4:
            self._rooms = [no_answers(), no_answers()]
        # The smaller first: the last and widest places will be in the other.
        self._rooms.sort(key=len, reverse=True)
        n_answers = sum(map(len, answers))
        # As narrow as may be: a wide memo is slow to empty, and slow to read.
        n_places = max(_FEWEST_PLACES, 1 << (2 * (n_answers + n_new)).bit_length())
        if n_places * _BYTES_OF_AN_ANSWER > self.max_bytes * 3 // 4:
            # Room is a wish, answers are not; a quarter may be kept in the other room.
            n_places = 1 << (2 * n_answers).bit_length()
        self._move_to(n_places, [])
        for some in answers:
            self.n_known += int(merge(self.places, some))

    def make_room(self, n_new: int) -> None:
        """Keep the places at most half full after `n_new` more answers."""
        if self._fits(n_new):
            return
        wanted = 1 << (2 * (self.n_known + n_new) - 1).bit_length()
        # Twice as wide as needed, where that is allowed: each widening places every answer anew.
        if 2 * self._bytes_beside(wanted) <= self.max_bytes:
            wanted *= 2
        self._move_to(wanted, [self.places])

    @contextmanager
    def room(self, n_new: int, check: Callable[[], object] = lambda: None) -> Iterator[Guest]:
        """Let a thread add up to `n_new` answers beside others; it is widened when no thread is at it.

        A thread that waits for others calls `check` now and then, to hear that they were stopped.
        """
        with self._change:
            self._n_wanted += n_new
            try:
                while not self._fits(self._n_wanted):
                    if self._n_guests:
                        self._change.wait(_A_WHILE)
                        check()
                    else:
                        self.make_room(self._n_wanted)
            except BaseException:
                self._n_wanted -= n_new
                raise
            self._n_guests += 1
        guest = Guest(self.places)
        try:
            yield guest
        finally:
            with self._change:
                self._n_guests -= 1
                self._n_wanted -= n_new
                self.n_known += guest.n_new
                self._change.notify_all()

    def _move_to(self, n_places: int, answers: Sequence[Words]) -> None:
        """Move these answers into other places."""
        need = self._bytes_beside(n_places)
        if need > self.max_bytes:
            raise TooLarge(
                f"After {self.n_known:,} distinct questions the memo would need {show_memory(need)}, "
                f"more than the {show_memory(self.max_bytes)} left; {self.advice}."
            )
        self._rooms.reverse()
        if len(self._rooms[0]) < n_places:
            self._rooms[0] = no_answers(n_places)
            self.places = self._rooms[0]
        else:
            self.places = self._rooms[0][:n_places]
            # As bytes, which are emptied in less time.
            self.places.view(np.uint8).fill(0)
        for some in answers:
            merge(self.places, some)

    def _bytes_beside(self, n_places: int) -> int:
        """Return what other places need, beside those that answers are moved from."""
        return (n_places + len(self.places)) * _BYTES_OF_AN_ANSWER

    def _fits(self, n_new: int) -> bool:
        """Tell whether the places would be at most half full after `n_new` more answers."""
        return 2 * (self.n_known + n_new) <= len(self.places)


@dataclass(frozen=True)
class _Batch:
    """Answers sorted by the node they wait for: those for node v begin at `begins[v]`."""

    answers: Words
    begins: Begins

    def of(self, node: int) -> Words:
        return self.answers[self.begins[node] : self.begins[node + 1]]


def _nameless(folder: Path | None) -> IO[bytes]:
    return tempfile.TemporaryFile(dir=folder)


def _read(file: IO[bytes], begin: int, n_bytes: int) -> Words:
    answers = np.empty((n_bytes // _BYTES_OF_AN_ANSWER, 2), dtype=np.uint64)
    file.seek(begin)
    file.readinto(answers.data)  # type: ignore[attr-defined]
    return answers


class _Segment:
    """A file of answers: those for the last node first, so that it is cut off as they are taken."""

    def __init__(self, batches: Iterable[_Batch], first: int, n_nodes: int, folder: Path | None) -> None:
        self.begins = np.zeros(n_nodes + 1, dtype=np.int64)
        try:
            self.file = _nameless(folder)
            self._write(list(batches), first, n_nodes)
        except OSError as error:
            raise SettingError(
                f"Answers that memory does not hold cannot be written to {folder or 'a temporary file'} "
                f"({error.strerror}); make room there, or raise max_memory=."
            ) from None

    def _write(self, batches: Sequence[_Batch], first: int, n_nodes: int) -> None:
        try:
            for node in range(n_nodes - 1, first - 1, -1):
                self.begins[node] = self.file.tell()
                for batch in batches:
                    self.file.write(batch.of(node).tobytes())
            self.end = self.file.tell()
            # Or the last of it would only fail when it is read.
            self.file.flush()
        except OSError:
            # To close it is to try and write the rest again.
            with suppress(OSError):
                self.file.close()
            raise

    def take(self, node: int) -> Words:
        """Return the answers for a node, the first that is left."""
        begin, end = int(self.begins[node]), self.end
        answers = _read(self.file, begin, end - begin)
        self.file.truncate(begin)
        self.end = begin
        return answers


class Waiting:
    """Answers that wait for later nodes, in memory up to a number of bytes, then in files of no name."""

    def __init__(self, n_nodes: int, max_bytes: int, folder: Path | None = None) -> None:
        self.n_nodes, self.max_bytes, self.folder = n_nodes, max_bytes, folder
        self._batches: list[_Batch] = []
        self._segments: list[_Segment] = []
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        for segment in self._segments:
            segment.file.close()

    def add(self, node: int, log: Log) -> None:
        """Keep what visits up to a node found about later ones."""
        begins = np.empty(self.n_nodes + 1, dtype=np.int64)
        count_log(log, node, begins)
        if not begins[-1]:
            return
        late = no_answers(int(begins[-1]))
        sort_log(log, node, begins[:-1].copy(), late)
        with self._lock:
            self._batches.append(_Batch(late, begins))
            self._limit(node + 1)

    def take(self, node: int) -> list[Words]:
        """Return the answers that wait for a node; nodes take theirs in order."""
        parts = [segment.take(node) for segment in self._segments]
        return [*parts, *(batch.of(node) for batch in self._batches)]

    def _limit(self, first: int) -> None:
        """Let go of what was taken, and move the rest into a file where it is too much."""
        if sum(batch.answers.nbytes for batch in self._batches) <= self.max_bytes:
            return
        left = [
            _Batch(batch.answers[batch.begins[first] :], np.maximum(batch.begins - batch.begins[first], 0))
            for batch in self._batches
        ]
        if 2 * sum(batch.answers.nbytes for batch in left) <= self.max_bytes:
            self._batches = [_Batch(batch.answers.copy(), batch.begins) for batch in left]
            return
        self._segments.append(_Segment(left, first, self.n_nodes, self.folder))
        self._batches = []
