"""Answers by question: the memo of the nodes that are searched now, and answers deferred to later nodes.

A question about {a, b} is asked in the blanket search of a or of b, and nowhere else. So the memo of a search
needs its own answers and those that earlier searches found about this node. These are in `DeferredAnswers`,
on disk where they are many.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition, Lock
from typing import IO, Self

import numpy as np

from unless.errors import SettingError, TooLarge
from unless.kernels.bits import Words
from unless.kernels.memo import Keys, Log, count_log, merge, sort_log
from unless.runtime.memory import show_memory
from unless.typing import Integers

# A fixed seed: the keys only identify questions, no answer depends on them.
_KEY_SEED = 20140
_BYTES_OF_AN_ANSWER = 16
_FEWEST_SLOTS = 2**12
# How long a thread waits for others before it looks whether they were cancelled.
_SECONDS = 0.2
# Into so many pieces the work of threads that fill a memo is cut.
_PIECES = 8


def question_keys(n_conditions: int, n_variables: int) -> Keys:
    """Return the random words that identify questions."""
    rng = np.random.default_rng(_KEY_SEED)
    words = rng.integers(0, 2**64, size=(n_conditions + n_variables, 2), dtype=np.uint64)
    return Keys(words[:n_conditions], words[n_conditions:])


def no_answers(n_slots: int = 0) -> Words:
    """Return empty slots for answers."""
    return np.zeros((n_slots, 2), dtype=np.uint64)


def make_log(size: int) -> Log:
    """Make a buffer for answers in the order they come."""
    return Log(np.empty((size, 2), dtype=np.uint64), np.empty(size, dtype=np.int32))


def widened(log: Log, n_logged: int, n_more: int) -> Log:
    """Return a log with room for so many more answers, at most twice as large as it must be."""
    if n_logged + n_more <= len(log.others):
        return log
    wider = make_log(max(n_logged + n_more, 2 * len(log.others)))
    wider.answers[:n_logged], wider.others[:n_logged] = log.answers[:n_logged], log.others[:n_logged]
    return wider


@dataclass
class Reservation:
    """The slots that a thread reads and fills; it says how many answers it added."""

    slots: Words
    n_new: int = 0


@dataclass
class Memo:
    """A hash table of answers, widened as they come, within a number of bytes."""

    max_bytes: int
    advice: str = "raise max_memory=, set max_blanket=, or learn blankets='independent', which asks fewer"
    n_known: int = 0
    # Kept from node to node, as fresh memory is slow: one holds the slots, the other those they move to.
    _buffers: list[Words] = field(default_factory=lambda: [no_answers(_FEWEST_SLOTS), no_answers()])
    # Answers that are still to be put in, and how many threads put in some.
    _left: list[Sequence[Words]] = field(default_factory=list)
    _n_filling: int = 0
    _n_readers: int = 0
    _n_reserved: int = 0
    _change: Condition = field(default_factory=Condition)

    def __post_init__(self) -> None:
        self.slots = self._buffers[0]

    def begin(self, answers: Sequence[Words], n_new: int = 0) -> None:
        """Drop everything but these answers, and have room for `n_new` more."""
        self.make_room(answers, n_new)
        self.fill()

    def make_room(self, answers: Sequence[Words], n_new: int) -> None:
        """Drop everything, and have room for these answers, which `fill` puts in, and `n_new` more."""
        self.n_known = 0
        self.slots = no_answers()
        if sum(buffer.nbytes for buffer in self._buffers) > self.max_bytes // 4:
            self._buffers = [no_answers(), no_answers()]
        # The smaller first: the last and widest slots will be in the other.
        self._buffers.sort(key=len, reverse=True)
        n_answers = sum(map(len, answers))
        # As few as may be: many slots are slow to empty, and slow to read.
        n_slots = max(_FEWEST_SLOTS, 1 << (2 * (n_answers + n_new)).bit_length())
        if n_slots * _BYTES_OF_AN_ANSWER > self.max_bytes * 3 // 4:
            # Room is a wish, answers are not; a quarter may be kept in the other buffer.
            n_slots = 1 << (2 * n_answers).bit_length()
        self._move_to(n_slots, [])
        self._left = [some for some in (answers[k::_PIECES] for k in range(_PIECES)) if some]

    def fill(self, check: Callable[[], object] = lambda: None) -> None:
        """Put in the answers that there is room for; threads that do it at the same time share the work.

        They go on when all answers are there.
        """
        while (some := self._take()) is not None:
            n_new = 0
            try:
                n_new = sum(int(merge(self.slots, answers)) for answers in some)
            finally:
                with self._change:
                    self.n_known += n_new
                    self._n_filling -= 1
        while self._n_filling:
            # Others put in their last; give them the core.
            time.sleep(0)
            check()

    def _take(self) -> Sequence[Words] | None:
        """Return answers that nobody puts in so far, None where there are none."""
        with self._change:
            if not self._left:
                return None
            self._n_filling += 1
            return self._left.pop()

    @contextmanager
    def reserve(self, n_new: int, check: Callable[[], object] = lambda: None) -> Iterator[Reservation]:
        """Let a thread add up to `n_new` answers beside others; it is widened when no thread is at it.

        A thread that waits for others calls `check` now and then, which raises where they were cancelled.
        """
        with self._change:
            self._n_reserved += n_new
            try:
                while not self._fits(self._n_reserved):
                    if self._n_readers:
                        self._change.wait(_SECONDS)
                        check()
                    else:
                        self._widen(self._n_reserved)
            except BaseException:
                self._n_reserved -= n_new
                raise
            self._n_readers += 1
        reservation = Reservation(self.slots)
        try:
            yield reservation
        finally:
            with self._change:
                self._n_readers -= 1
                self._n_reserved -= n_new
                self.n_known += reservation.n_new
                self._change.notify_all()

    def _widen(self, n_new: int) -> None:
        """Keep the slots at most half full after `n_new` more answers."""
        wanted = 1 << (2 * (self.n_known + n_new) - 1).bit_length()
        # Twice as wide as needed, where that is allowed: each widening moves every answer.
        if 2 * self._bytes_beside(wanted) <= self.max_bytes:
            wanted *= 2
        self._move_to(wanted, [self.slots])

    def _move_to(self, n_slots: int, answers: Sequence[Words]) -> None:
        """Move these answers into other slots."""
        need = self._bytes_beside(n_slots)
        if need > self.max_bytes:
            raise TooLarge(
                f"After {self.n_known:,} distinct questions the memo would need {show_memory(need)}, "
                f"more than the {show_memory(self.max_bytes)} left; {self.advice}."
            )
        self._buffers.reverse()
        if len(self._buffers[0]) < n_slots:
            self._buffers[0] = no_answers(n_slots)
            self.slots = self._buffers[0]
        else:
            self.slots = self._buffers[0][:n_slots]
            # As bytes, which are emptied in less time.
            self.slots.view(np.uint8).fill(0)
        for some in answers:
            merge(self.slots, some)

    def _bytes_beside(self, n_slots: int) -> int:
        """Return what other slots need, beside those that answers are moved from."""
        return (n_slots + len(self.slots)) * _BYTES_OF_AN_ANSWER

    def _fits(self, n_new: int) -> bool:
        """Tell whether the slots would be at most half full after `n_new` more answers."""
        return 2 * (self.n_known + n_new) <= len(self.slots)


@dataclass(frozen=True)
class _SortedAnswers:
    """Answers sorted by the node they are for: those for node v begin at `begins[v]`."""

    answers: Words
    begins: Integers

    def of(self, node: int) -> Words:
        return self.answers[self.begins[node] : self.begins[node + 1]]


def _unnamed_file(folder: Path | None) -> IO[bytes]:
    return tempfile.TemporaryFile(dir=folder)


class SpillFile:
    """A file of answers: those for the last node first, so that it is cut off as they are taken."""

    def __init__(self, batches: list[_SortedAnswers], first: int, n_nodes: int, folder: Path | None) -> None:
        self.begins = np.zeros(n_nodes + 1, dtype=np.int64)
        try:
            self.file = _unnamed_file(folder)
            self._write(batches, first, n_nodes)
        except OSError as error:
            raise SettingError(
                f"Answers that memory does not hold cannot be written to {folder or 'a temporary file'} "
                f"({error.strerror}); make room there, or raise max_memory=."
            ) from None

    def _write(self, batches: list[_SortedAnswers], first: int, n_nodes: int) -> None:
        try:
            for node in range(n_nodes - 1, first - 1, -1):
                self.begins[node] = self.file.tell()
                for batch in batches:
                    self.file.write(batch.of(node).tobytes())
            self.end = self.file.tell()
            # Or a full disk would only be noticed when the answers are read.
            self.file.flush()
        except OSError:
            # Closing tries to write the rest again.
            with suppress(OSError):
                self.file.close()
            raise

    def take(self, node: int) -> Words:
        """Return the answers for a node, the first that is left."""
        begin, end = int(self.begins[node]), self.end
        answers = np.empty(((end - begin) // _BYTES_OF_AN_ANSWER, 2), dtype=np.uint64)
        self.file.seek(begin)
        self.file.readinto(answers.data)  # type: ignore[attr-defined]
        self.file.truncate(begin)
        self.end = begin
        return answers


class DeferredAnswers:
    """Answers for later nodes, in memory up to a number of bytes, then in unnamed files."""

    def __init__(self, n_nodes: int, max_bytes: int, folder: Path | None = None) -> None:
        self.n_nodes, self.max_bytes, self.folder = n_nodes, max_bytes, folder
        self._batches: list[_SortedAnswers] = []
        self._files: list[SpillFile] = []
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        for spilled in self._files:
            spilled.file.close()

    def add(self, node: int, log: Log) -> None:
        """Keep what searches up to a node found about later ones."""
        begins = np.empty(self.n_nodes + 1, dtype=np.int64)
        count_log(log, node, begins)
        if not begins[-1]:
            return
        late = no_answers(int(begins[-1]))
        sort_log(log, node, begins[:-1].copy(), late)
        with self._lock:
            self._batches.append(_SortedAnswers(late, begins))
            self._limit(node + 1)

    def take(self, node: int) -> list[Words]:
        """Return the answers for a node; nodes take theirs in order."""
        spilled = [file.take(node) for file in self._files]
        return [*spilled, *(batch.of(node) for batch in self._batches)]

    def _limit(self, first: int) -> None:
        """Drop what was taken, and move the rest into a file where it is too much."""
        if sum(batch.answers.nbytes for batch in self._batches) <= self.max_bytes:
            return
        left = [
            _SortedAnswers(
                batch.answers[batch.begins[first] :], np.maximum(batch.begins - batch.begins[first], 0)
            )
            for batch in self._batches
        ]
        if 2 * sum(batch.answers.nbytes for batch in left) <= self.max_bytes:
            self._batches = [_SortedAnswers(batch.answers.copy(), batch.begins) for batch in left]
            return
        self._files.append(SpillFile(left, first, self.n_nodes, self.folder))
        self._batches = []
