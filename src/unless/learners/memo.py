"""Answers by question: kept for one node, handed on to later ones, and counted once over all parts.

A question about {a, b} is asked at the visit of a or of b, and nowhere else. So the memo of a visit needs its
own answers and those that earlier visits found about this node; these wait in `Waiting`, on disk where they
are many. When the later of a and b has been visited, all questions about the pair are closed.
"""

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import IO, Self

import numpy as np
import numpy.typing as npt

from unless.data.memory import show_memory
from unless.errors import TooLarge
from unless.kernels.bitsets import Words
from unless.kernels.memo import Keys, Log, merge, sort_log
from unless.learners.shards import Pulse, n_workers, rows_of, run_shards
from unless.learners.workplace import Arrays, ShardFile

Begins = npt.NDArray[np.int64]
# A fixed seed: the keys only name questions, no answer depends on them.
_KEY_SEED = 20140
_BYTES_OF_AN_ANSWER = 16
_FEWEST_PLACES = 2**12
# Answers that are counted in one go, those read at a time where there are too many for that, and how finely
# counting is spread over workers.
_COUNTED_AT_ONCE = 2**16
_READ_AT_ONCE = 2**18
_LEAST_AT_ONCE = 2**20
# A memo that is widened, and what was read: more than any answer takes.
_BYTES_TO_COUNT = 256
_COUNTS_PER_WORKER = 4


def question_keys(n_conditions: int, n_variables: int) -> Keys:
    """Return the random words that questions are named by."""
    rng = np.random.default_rng(_KEY_SEED)
    words = rng.integers(0, 2**64, size=(n_conditions + n_variables, 2), dtype=np.uint64)
    return Keys(words[:n_conditions], words[n_conditions:])


def no_answers(room: int = 0) -> Words:
    """Return room for answers."""
    return np.zeros((room, 2), dtype=np.uint64)


def make_log(room: int) -> Log:
    """Make room for the answers of one call of a kernel."""
    return Log(np.empty((room, 2), dtype=np.uint64), np.empty(room, dtype=np.int32))


@dataclass
class Memo:
    """Answers by question, widened as they come, within a number of bytes."""

    max_bytes: int
    advice: str = "raise max_memory=, set max_blanket=, or learn blankets='independent', which asks fewer"
    places: Words = field(default_factory=lambda: no_answers(_FEWEST_PLACES))
    n_known: int = 0

    def begin(self, answers: Words) -> None:
        """Forget everything but these answers."""
        self.n_known = 0
        wanted = max(_FEWEST_PLACES, 1 << (4 * len(answers)).bit_length())
        if len(self.places) > 4 * wanted:
            # A wide memo is slow to empty, and slow to read.
            self.places = no_answers(wanted)
        self.places[:] = 0
        self.add(answers)

    def make_room(self, n_new: int) -> None:
        """Keep the places at most half full after `n_new` more answers."""
        wanted = 1 << (2 * (self.n_known + n_new) - 1).bit_length()
        if wanted <= len(self.places):
            return
        # While it is widened, the old places stand beside the new ones.
        need = (wanted + len(self.places)) * _BYTES_OF_AN_ANSWER
        if need > self.max_bytes:
            raise TooLarge(
                f"After {self.n_known:,} distinct questions the memo would need {show_memory(need)}, "
                f"more than the {show_memory(self.max_bytes)} left; {self.advice}."
            )
        # Twice as wide as needed, where that is allowed: each widening places every answer anew.
        roomy = 2 * wanted if 2 * need <= self.max_bytes else wanted
        wider = no_answers(roomy)
        merge(wider, self.places)
        self.places = wider

    def answers(self) -> Words:
        """Return the answers without the gaps between them."""
        return np.asarray(self.places[self.places[:, 1] & np.uint64(3) != 0])

    def add(self, answers: Words) -> None:
        """Take over answers, or the places of another memo."""
        self.make_room(len(answers))
        self.n_known += int(merge(self.places, answers))


def count_distinct(parts: Sequence[Words]) -> int:
    """Count the answers that are in several parts once; within a part all are distinct."""
    filled = [part for part in parts if len(part)]
    if len(filled) < 2:
        return sum(map(len, filled))
    places = no_answers(1 << (2 * sum(map(len, filled)) - 1).bit_length())
    return sum(int(merge(places, part)) for part in filled)


def count_parts(parts: Sequence[Arrays], n_jobs: int = 1, max_bytes: int = 2**30) -> int:
    """Count the questions that several parts asked once, each worker with about so much memory.

    Each part gives its `answers`, those of one kind after the other, and where each kind `begins`; answers of
    different kinds are different, so that workers count some kinds each.
    """
    if len(parts) == 1:
        return int(parts[0]["n_distinct"])
    begins = np.array([part["begins"] for part in parts])
    # A few tasks for each worker, of about as many answers.
    ends = begins.sum(axis=0)
    n_tasks = min(len(ends) - 1, _COUNTS_PER_WORKER * n_workers(n_jobs))
    cuts = np.unique(np.searchsorted(ends, np.linspace(0, ends[-1], n_tasks + 1)[1:-1]))
    ranges = zip([0, *cuts.tolist()], [*cuts.tolist(), len(ends) - 1], strict=True)
    at_most = max(_LEAST_AT_ONCE, max_bytes // _BYTES_TO_COUNT)
    tasks = [(parts, begins[:, first : last + 1], at_most) for first, last in ranges]
    # What is in this process's memory would be sent to others with every task.
    is_held = not isinstance(parts[0], ShardFile)
    counted = run_shards(_count_kinds, tasks, n_jobs=n_jobs, in_memory=is_held)
    return sum(int(done["n_distinct"]) for done in counted)


def _count_kinds(parts: Sequence[Arrays], begins: Begins, at_most: int, pulse: Pulse) -> Arrays:
    """Count the questions of some kinds, kind by kind: what is counted at a time should fit a cache."""
    ends = begins.sum(axis=0)
    total, first, last_kind = 0, 0, len(ends) - 1
    while first < last_kind:
        pulse.check()
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + _COUNTED_AT_ONCE, side="right")) - 1)
        places = begins[:, [first, last]].tolist()
        n_slices = -(-int(ends[last] - ends[first]) // at_most)
        if n_slices > 1:
            total += sum(_count_slice(parts, places, k, n_slices, pulse) for k in range(n_slices))
        else:
            total += count_distinct(
                [rows_of(part, "answers", *place) for part, place in zip(parts, places, strict=True)]
            )
        first = last
    return {"n_distinct": np.array(total)}


def _count_slice(
    parts: Sequence[Arrays], places: Sequence[Sequence[int]], number: int, n_slices: int, pulse: Pulse
) -> int:
    """Count the questions whose keys fall into one of several slices: all at once would not fit memory."""
    # Never refused: a slice has its share of the answers, as keys are random.
    memo = Memo(2**63)
    for part, (begin, end) in zip(parts, places, strict=True):
        for start in range(begin, end, _READ_AT_ONCE):
            pulse.check()
            answers = rows_of(part, "answers", start, min(start + _READ_AT_ONCE, end))
            # The high bits: low ones choose the place in a memo.
            memo.add(answers[(answers[:, 0] >> np.uint64(44)) % np.uint64(n_slices) == np.uint64(number)])
    return memo.n_known


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
        self.file = _nameless(folder)
        self.begins = np.zeros(n_nodes + 1, dtype=np.int64)
        held = list(batches)
        for node in range(n_nodes - 1, first - 1, -1):
            self.begins[node] = self.file.tell()
            for batch in held:
                self.file.write(batch.of(node).tobytes())
        self.end = self.file.tell()

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        for segment in self._segments:
            segment.file.close()

    def add(self, node: int, logs: Sequence[Log]) -> Words:
        """Keep what a visit found about later nodes, and return what it found about earlier ones."""
        answers = np.concatenate([no_answers(), *(log.answers for log in logs)])
        others = np.concatenate([np.zeros(0, dtype=np.int32), *(log.others for log in logs)])
        begins = np.empty(self.n_nodes + 1, dtype=np.int64)
        by_node = np.empty_like(answers)
        sort_log(Log(answers, others), len(answers), begins, by_node)
        middle = int(begins[node + 1])
        if middle < len(by_node):
            # A copy: a view would keep the first half in memory.
            self._batches.append(_Batch(by_node[middle:].copy(), np.maximum(begins - middle, 0)))
            self._limit(node + 1)
        return by_node[:middle]

    def take(self, node: int) -> Words:
        """Return the answers that wait for a node; nodes take theirs in order."""
        parts = [segment.take(node) for segment in self._segments]
        return np.concatenate([no_answers(), *parts, *(batch.of(node) for batch in self._batches)])

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


class Tally:
    """Counts the questions about each closed pair once, as soon as all parts have closed it.

    Used by threads: answers of a part that is ahead wait, in memory up to a number of bytes, then in a file.
    """

    def __init__(self, n_nodes: int, n_parts: int, max_bytes: int, folder: Path | None = None) -> None:
        self.n_distinct = 0
        self._n_parts, self._max_bytes, self._folder = n_parts, max_bytes, folder
        self._early: list[list[Words | tuple[int, int]]] = [[] for _ in range(n_nodes)]
        self._n_bytes = 0
        self._file: IO[bytes] | None = None
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        if self._file is not None:
            self._file.close()

    def close(self, node: int, answers: Words) -> None:
        """Take all answers of one part about pairs of this node and earlier ones."""
        with self._lock:
            early = self._early[node]
            if len(early) < self._n_parts - 1:
                early.append(self._keep(answers))
                return
            parts = [self._back(kept) for kept in early]
            self._early[node] = []
        n_distinct = count_distinct([answers, *parts])
        with self._lock:
            self.n_distinct += n_distinct

    def _keep(self, answers: Words) -> Words | tuple[int, int]:
        if self._n_bytes + answers.nbytes <= self._max_bytes:
            self._n_bytes += answers.nbytes
            return answers
        if self._file is None:
            self._file = _nameless(self._folder)
        place = self._file.seek(0, 2)
        self._file.write(answers.tobytes())
        return place, answers.nbytes

    def _back(self, kept: Words | tuple[int, int]) -> Words:
        if isinstance(kept, tuple):
            assert self._file is not None  # noqa: S101 (for type checkers)
            return _read(self._file, *kept)
        self._n_bytes -= kept.nbytes
        return kept
