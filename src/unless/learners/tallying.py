"""Questions counted once over all parts of the work that ask them.

A question that no other part can ask is counted where it is asked. Of the others each part keeps half of
the key, 8 bytes, by kind: the node after whose visit a question is closed, or the number of its conditions.
Half a key tells the questions of one kind apart: of 10 million, two are taken for one with probability below
3e-6.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unless.errors import TooLarge
from unless.kernels.bitsets import Words
from unless.kernels.memo import PRIVATE, Log, add_words, note_closed, note_common
from unless.runtime.checkpoints import Arrays, ShardFile
from unless.runtime.interrupts import CancelToken
from unless.runtime.memory import show_memory
from unless.runtime.parallel import n_workers, rows_of, run_shards

Begins = npt.NDArray[np.int64]
# Questions that are counted in one go, those read at a time where there are too many for that, and how finely
# counting is spread over workers.
_COUNTED_AT_ONCE = 2**16
_READ_AT_ONCE = 2**18
_LEAST_AT_ONCE = 2**20
# A set of words, half of it gaps and rounded up, and what was read.
_BYTES_TO_COUNT = 64
_COUNTS_PER_WORKER = 4
# Half a key.
_BYTES_OF_A_NOTE = 8
# Room for notes at first, 32 MB: what is not written to costs nothing, but to move does.
_FIRST_ROOM = 2**22
_LOW_BITS = np.uint64(2**20 - 1)


class Ledger:
    """The questions of a part that others may ask, too, noted kind after kind."""

    def __init__(self, n_kinds: int, max_bytes: int) -> None:
        self.n_kinds, self.max_bytes, self.n_noted = n_kinds, max_bytes, 0
        self._begins: list[int] = []
        self._words = np.empty(0, dtype=np.uint64)

    def begin_kind(self) -> None:
        """Begin the next kind: those before it are complete."""
        self._begins.append(self.n_noted)

    def add(self, answers: Words) -> None:
        """Note questions of the kind that was begun."""
        self._make_room(answers)
        self.n_noted = int(note_common(answers, self._words, self.n_noted))

    def add_closed(self, log: Log, node: int) -> None:
        """Note those questions of a visit that no later one will ask."""
        self._make_room(log.answers)
        self.n_noted = int(note_closed(log, node, self._words, self.n_noted))

    def hand_in(self, n_distinct: int) -> Arrays:
        """Return how many of all questions are private, and the others by kind."""
        left = self.n_kinds + 1 - len(self._begins)
        return {
            "n_private": np.array(n_distinct - self.n_noted),
            "questions": self._words[: self.n_noted],
            "begins": np.array(self._begins + [self.n_noted] * left, dtype=np.int64),
        }

    def _make_room(self, answers: Words) -> None:
        """Make room for the questions of these answers, and for some that come later if that is allowed."""
        if self.n_noted + len(answers) < len(self._words):
            return
        # Private ones are not noted, but for the last that is written, and written over.
        need = self.n_noted + int(np.count_nonzero((answers[:, 1] & PRIVATE) == 0)) + 1
        if need <= len(self._words):
            return
        moved = self.n_noted * _BYTES_OF_A_NOTE
        left, room = (self.max_bytes - moved) // _BYTES_OF_A_NOTE, max(4 * len(self._words), _FIRST_ROOM)
        # All that is left where there would not be much more the next time, beside what is moved then.
        room = max(need, left if 5 * room > left else room)
        need_bytes = room * _BYTES_OF_A_NOTE + moved
        if need_bytes > self.max_bytes:
            raise TooLarge(
                f"To count {need:,} questions once that other parts of the work may ask, too, would need "
                f"{show_memory(need_bytes)}, more than the {show_memory(self.max_bytes)} left for it; raise "
                "max_memory=, or learn with threads and without work_dir=, which needs no such count."
            )
        wider = np.empty(room, dtype=np.uint64)
        wider[: self.n_noted] = self._words[: self.n_noted]
        self._words = wider


def count_parts(parts: Sequence[Arrays], n_jobs: int = 1, max_bytes: int = 2**30) -> int:
    """Count the questions that several parts asked once, each worker with about so much memory.

    Questions of different kinds are different, so that workers count some kinds each.
    """
    n_private = sum(int(part["n_private"]) for part in parts)
    if len(parts) == 1:
        return n_private
    begins = np.array([part["begins"] for part in parts])
    # A few tasks for each worker, of about as many questions.
    ends = begins.sum(axis=0)
    n_tasks = min(len(ends) - 1, _COUNTS_PER_WORKER * n_workers(n_jobs))
    cuts = np.unique(np.searchsorted(ends, np.linspace(0, ends[-1], n_tasks + 1)[1:-1]))
    ranges = zip([0, *cuts.tolist()], [*cuts.tolist(), len(ends) - 1], strict=True)
    at_most = max(_LEAST_AT_ONCE, max_bytes // _BYTES_TO_COUNT)
    tasks = [(parts, begins[:, first : last + 1], at_most) for first, last in ranges]
    # What is in this process's memory would be sent to others with every task.
    is_held = not isinstance(parts[0], ShardFile)
    counted = run_shards(_count_kinds, tasks, n_jobs=n_jobs, in_memory=is_held)
    return n_private + sum(int(done["n_distinct"]) for done in counted)


class Tally:
    """Counts words that are in several parts once, with a set that is used again: fresh memory is slow."""

    def __init__(self) -> None:
        self._places = np.empty((0, 1), dtype=np.uint64)

    def count(self, parts: Sequence[Words]) -> int:
        """Count the words of all parts; within a part all are distinct."""
        filled = [part for part in parts if len(part)]
        if len(filled) < 2:
            return sum(map(len, filled))
        n_places = 1 << (2 * sum(map(len, filled)) - 1).bit_length()
        if len(self._places) < n_places:
            self._places = np.empty((n_places, 1), dtype=np.uint64)
        places = self._places[:n_places]
        places.fill(0)
        return sum(int(add_words(places, part)) for part in filled)


def _count_kinds(parts: Sequence[Arrays], begins: Begins, at_most: int, token: CancelToken) -> Arrays:
    """Count the questions of some kinds, kind by kind: what is counted at a time should fit a cache."""
    # Once: a file remembers where its questions begin.
    parts, ends, tally = list(parts), begins.sum(axis=0), Tally()
    total, first, last_kind = 0, 0, len(ends) - 1
    while first < last_kind:
        token.check()
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + _COUNTED_AT_ONCE, side="right")) - 1)
        places = begins[:, [first, last]].tolist()
        n_slices = -(-int(ends[last] - ends[first]) // at_most)
        if n_slices > 1:
            total += sum(tally.count(_read_slice(parts, places, k, n_slices, token)) for k in range(n_slices))
        else:
            total += tally.count(
                [rows_of(part, "questions", *place) for part, place in zip(parts, places, strict=True)]
            )
        first = last
    return {"n_distinct": np.array(total)}


def _read_slice(
    parts: Sequence[Arrays], places: Sequence[Sequence[int]], number: int, n_slices: int, token: CancelToken
) -> list[Words]:
    """Read the questions whose keys fall into one of several slices: all at once would not fit memory."""
    chosen = []
    for part, (begin, end) in zip(parts, places, strict=True):
        some = [np.zeros(0, dtype=np.uint64)]
        for start in range(begin, end, _READ_AT_ONCE):
            token.check()
            words = rows_of(part, "questions", start, min(start + _READ_AT_ONCE, end))
            # By the low bits, which do not choose the place in a set: it would fill up in some places.
            some.append(words[(words & _LOW_BITS) % np.uint64(n_slices) == np.uint64(number)])
        chosen.append(np.concatenate(some))
    return chosen
