"""Unfinished work, kept in a folder (`work_dir=`) so that a later run can resume it.

A `CheckpointStore` is the part of the folder that belongs to one piece of work. It keeps finished shards and
stages, each a file of named arrays that is whole or not there, and a `Checkpoint` of how far a stage has got
that cannot be cut into shards. One run at a time uses a store; a file that is damaged, or belongs to other
work, is computed again with a warning.
"""

import json
import os
import stat
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from unless.errors import FileFormatError, SettingError, UnlessWarning, interrupt_in
from unless.runtime.files import is_trusted, locked, replacing, try_writing

Arrays = Mapping[str, npt.NDArray[Any]]
Made = TypeVar("Made")
# Raised whenever a shard would be cut, computed or written differently.
FORMAT = 8
# How the names of shards begin that are no part of the work, but say how far it is, or its seed.
_CHECKPOINT = "checkpoint-"
_SUFFIX = ".shard"
_ANSWER = "answer"
# The least number of seconds between two states that are saved, and how many times what it took to write the
# last: the larger of the two is what a kill loses at most, beside the step it was at.
SECONDS, _TIMES_LONGER = 2.0, 20
# What readers raise where a file is damaged, or not of this kind.
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)


class ShardFile(Mapping[str, npt.NDArray[Any]]):
    """The arrays of a file, each read, and checked by its checksum, when it is used."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        with self._open() as content:
            return np.asarray(content[name])

    def __iter__(self) -> Iterator[str]:
        with self._open() as content:
            return iter(content.files)

    def __len__(self) -> int:
        return len(list(iter(self)))

    @contextmanager
    def _open(self) -> Iterator[Any]:
        try:
            with self.path.open("rb") as stream, np.load(stream, allow_pickle=False) as content:
                yield content
        except _UNREADABLE as error:
            raise FileFormatError(
                f"{str(self.path)!r} is missing or damaged ({error}); delete it and go on with resume=True."
            ) from None


@dataclass(frozen=True)
class InputCodec:
    """How the input of shards is named, written as arrays and read again.

    Functions of a module each: a worker in another process finds them by name.
    """

    digest: Callable[[Any], str]
    to_arrays: Callable[[Any], Arrays]
    from_arrays: Callable[[Arrays], Any]


@dataclass(frozen=True)
class CheckpointStore:
    """The part of a folder that belongs to one piece of work.

    Its files carry `stamp`, the fingerprint of all that shapes the answer, in their names and inside.
    """

    folder: Path
    stamp: str
    inputs: InputCodec
    _warned: set[str] = field(default_factory=set, compare=False)

    @classmethod
    def enter(
        cls, folder: object, resume: bool, stamp: str, inputs: InputCodec, stack: ExitStack | None = None
    ) -> "CheckpointStore":
        """Make the folder ready, or say in one sentence why it cannot be used.

        Until the end of `stack` no other process can enter it for the same work.
        """
        store = cls(_make_folder(folder), stamp, inputs)
        if stack is not None:
            stack.enter_context(store._locked())
        own = store._files("*")
        if own and not resume:
            raise SettingError(
                f"work_dir={str(folder)!r} holds {store._content()} of this very work; go on from there with "
                "resume=True, or choose another folder."
            )
        if resume and not own and any(store.folder.glob(f"*{_SUFFIX}")):
            raise SettingError(
                f"work_dir={str(folder)!r} holds shards of other work only (another table, learner, setting "
                "or version); there is nothing to resume: mend what differs, or begin without resume=True."
            )
        try:
            # Also removes what a worker that was killed had begun to write.
            try_writing(store.path(_ANSWER), follow_links=False)
        except OSError as error:
            raise store._unwritable(error) from None
        return store

    def path(self, name: str) -> Path:
        """Return the file of a shard."""
        return self.folder / f"{self.stamp}-{name}{_SUFFIX}"

    def finished(self, names: Iterable[str]) -> set[str]:
        """Return which shards are there and whole; a damaged one is removed with a warning."""
        there = [name for name in names if os.path.lexists(self.path(name))]
        sound = {name for name in there if self._is_sound(self.path(name))}
        for name in there:
            if name not in sound:
                # A shard that is there counts as finished.
                try:
                    self.path(name).unlink(missing_ok=True)
                except OSError as error:
                    raise self._unwritable(error) from None
        return sound

    def shard(self, name: str) -> ShardFile:
        """Return a shard to read from."""
        return ShardFile(self.path(name))

    def save(self, name: str, content: Arrays, *, lasting: bool = False) -> None:
        """Write a shard that is read again, or say in one sentence why that cannot be."""
        try:
            self._write(name, content, lasting)
        except OSError as error:
            raise SettingError(
                f"work_dir={str(self.folder)!r} cannot be written any more ({error.strerror}); mend that "
                "and go on with resume=True."
            ) from None

    def try_save(self, name: str, content: Arrays) -> bool:
        """Write a shard that only a later run would need; warn once where that cannot be."""
        try:
            self._write(name, content)
        except OSError as error:
            self._warn_unwritable(error)
            return False
        return True

    def discard_all(self) -> None:
        """Remove all files of this work, because the seed they were drawn from is lost, with a warning."""
        content = self._content()
        for path in self._files("*"):
            path.unlink(missing_ok=True)
        if content:
            warnings.warn(
                f"work_dir={str(self.folder)!r} has lost the seed of {content}; all of it is computed again.",
                UnlessWarning,
                stacklevel=3,
            )

    def write_answer(self, write: Callable[[Path], object]) -> None:
        """Write a whole answer to its file; warn where that cannot be."""
        try:
            write(self.path(_ANSWER))
        except OSError as error:
            self._warn_unwritable(error)

    def read_answer(self, read: Callable[[Path], tuple[object, Made]]) -> Made | None:
        """Read a whole answer, if it is there; `read` gives the stamp in the file beside the answer."""
        path = self.path(_ANSWER)
        if not path.exists():
            return None
        if not _is_own_file(path):
            _warn_ignored(path, "is a link or another user's file")
            return None
        try:
            stamp, answer = read(path)
        except FileFormatError:
            _warn_ignored(path, "is damaged")
            return None
        if stamp == self.stamp:
            return answer
        _warn_ignored(path, "belongs to other work")
        return None

    def save_input(self, data: Any) -> str:
        """Write what shards read, unless it is there, for workers to load; return its path."""
        path = self.folder / f"{self.stamp}-table-{self.inputs.digest(data)[:8]}.npz"
        if not _is_own_file(path):
            try:
                _write_arrays(path, self.inputs.to_arrays(data))
            except OSError as error:
                raise self._unwritable(error) from None
        return str(path)

    def how_to_resume(self) -> str:
        """Say what there is of work that was stopped, and how to go on."""
        content, folder = self._content(), f"work_dir={str(self.folder)!r}"
        if not content:
            return f"Stopped; nothing was finished yet in {folder}: begin again."
        return f"Stopped; {content} kept in {folder}: go on with resume=True."

    def _content(self) -> str:
        """Say in words what there is of this work."""
        n_files, n_checkpoints = len(self._files("*")), len(self._files(f"{_CHECKPOINT}*"))
        n_shards = n_files - n_checkpoints
        shards = [f"{n_shards:,} finished shard{'s' if n_shards != 1 else ''}"] if n_shards else []
        return " and ".join([*shards, *(["a checkpoint"] if n_checkpoints else [])])

    def _write(self, name: str, content: Arrays, lasting: bool = False) -> None:
        path = self.path(name)
        # A damaged one is found and computed again, so that workers need not wait for the disk.
        _write_arrays(path, {**content, "stamp": text_array(path.name)}, lasting=lasting)

    def _warn_unwritable(self, error: OSError) -> None:
        """Warn once that the disk is full, or gone: what was computed is worth more than its copy."""
        if str(error.strerror) not in self._warned:
            self._warned.add(str(error.strerror))
            warnings.warn(
                f"work_dir={str(self.folder)!r} cannot be written ({error.strerror}); the work goes on, but "
                "what is not kept there is lost if it is stopped.",
                UnlessWarning,
                stacklevel=3,
            )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes out; after an interrupt, wherever it came, say how to resume."""
        lock = self.folder / f".{self.stamp}.lock"

        def in_use(by: str) -> SettingError:
            return SettingError(
                f"work_dir={str(self.folder)!r} is in use by {by}, which is doing this very work; wait for "
                "it and go on with resume=True, or choose another folder (if it is surely dead, delete "
                f"{lock.name} there)."
            )

        try:
            with locked(lock, in_use):
                yield
        except OSError as error:
            if error.filename is None or Path(str(error.filename)) != lock:
                raise
            raise self._unwritable(error) from None
        except BaseException as error:
            if interrupt_in(error) is None:
                raise
            raise KeyboardInterrupt(self.how_to_resume()) from None

    def _unwritable(self, error: OSError) -> SettingError:
        return SettingError(
            f"work_dir={str(self.folder)!r} cannot be written ({error.strerror}); choose another folder."
        )

    def _files(self, name: str) -> list[Path]:
        return sorted(self.folder.glob(f"{self.stamp}-{name}{_SUFFIX}"))

    def _is_sound(self, path: Path) -> bool:
        if not _is_own_file(path):
            _warn_ignored(path, "is a link or another user's file")
            return False
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as content:
                if content["stamp"].tobytes().decode() != path.name:
                    fault = "belongs to other work"
                # Rows that are read alone have no checksum of their own.
                elif content.zip.testzip() is None:
                    return True
                else:
                    fault = "is damaged"
        except _UNREADABLE:
            fault = "is damaged"
        _warn_ignored(path, fault)
        return False


class Checkpoint:
    """How far work has got, in one file that later states replace; without a store nothing is saved."""

    def __init__(self, store: CheckpointStore | None = None, name: str = "here") -> None:
        self._store, self._name, self._file = store, name, f"{_CHECKPOINT}{name}"
        self._due = monotonic() + SECONDS

    @property
    def is_saved(self) -> bool:
        """Whether there is a store for it."""
        return self._store is not None

    def part(self, name: str) -> "Checkpoint":
        """Return a checkpoint for a part of the same work."""
        return Checkpoint(self._store, f"{self._name}-{name}")

    def read(self) -> Arrays | None:
        """Return the last state, if one is there and whole."""
        if self._store is None or not self._store.finished([self._file]):
            return None
        return self._store.shard(self._file)

    def save(self, state: Callable[[], Arrays]) -> None:
        """Save a state in place of the last one, unless that was written a moment ago.

        Where it cannot be written the work goes on, and the next state is tried again.
        """
        began = monotonic()
        if self._store is None or began < self._due:
            return
        self._store.try_save(self._file, state())
        ended = monotonic()
        self._due = ended + max(SECONDS, _TIMES_LONGER * (ended - began))


class Iteration(Protocol):
    """Work in steps, each of which needs all before it, over a state that can be saved."""

    def step(self) -> bool:
        """Do one step; False where nothing is left to do."""

    def to_arrays(self) -> Arrays:
        """Return the state between two steps."""

    def from_arrays(self, saved: Arrays) -> None:
        """Go to a state that was saved."""


def iterate(work: Iteration, checkpoint: Checkpoint) -> Arrays:
    """Do all steps, from the last saved state on, save states on the way, and return the last one."""
    saved = checkpoint.read()
    if saved is not None:
        work.from_arrays(saved)
    while work.step():
        checkpoint.save(work.to_arrays)
    return work.to_arrays()


def once(
    store: CheckpointStore | None,
    name: str,
    make: Callable[[], Arrays],
    is_final: Callable[[Arrays], bool] = lambda _: True,
) -> Arrays:
    """Return the result of a stage of the work: made now and saved if it is final, or read from the store."""
    if store is None:
        return make()
    if not store.finished([name]):
        made = make()
        if not is_final(made) or not store.try_save(name, made):
            return made
    return store.shard(name)


def settled_seed(store: CheckpointStore | None, random_state: Any) -> Any:
    """Return a seed that is the same whenever the work is resumed, if none was given.

    What is saved later follows from it. Where the saved seed is lost, all else in the store is removed.
    """
    if store is None or random_state is not None:
        return random_state
    name = f"{_CHECKPOINT}seed"
    if not store.finished([name]):
        store.discard_all()
        # It cannot be computed again.
        store.save(name, {"words": np.random.default_rng().integers(0, 2**32, size=4)}, lasting=True)
    words: list[int] = store.shard(name)["words"].tolist()
    return words


def work_stamp(*parts: Any) -> str:
    """Return the fingerprint of all that shapes an answer: version, learner, settings, digests of tables."""
    work = json.dumps([FORMAT, *map(_plain, parts)])
    return sha256(work.encode()).hexdigest()[:20]


def settings_digest(value: Any) -> str:
    """Return a short fingerprint of settings, for the name of a file."""
    return sha256(json.dumps(_plain(value)).encode()).hexdigest()[:8]


def _plain(value: Any) -> Any:
    """Write a setting in values that JSON knows; sets have no order, and must not get one by chance."""
    if isinstance(value, Mapping):
        return [[name, _plain(one)] for name, one in sorted(value.items())]
    if isinstance(value, AbstractSet):
        return sorted((_plain(one) for one in value), key=repr)
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return [_plain(one) for one in value] if isinstance(value, Iterable) else repr(value)


def text_array(text: str) -> npt.NDArray[np.uint8]:
    """Return a text as an array, for a file of arrays."""
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _write_arrays(path: Path, content: Arrays, *, lasting: bool = True) -> None:
    # Others may write in the folder: no link of theirs is followed, and only the owner can read rows.
    with replacing(path, lasting=lasting, private=True, follow_links=False) as stream:
        np.savez(stream, **dict[str, Any](content))


def _warn_ignored(path: Path, fault: str) -> None:
    warnings.warn(f"The shard {str(path)!r} {fault}; it is computed again.", UnlessWarning, stacklevel=3)


def _is_own_file(path: Path) -> bool:
    """Tell whether an ordinary file is there, no link, and not of a user who has no say in the folder."""
    try:
        info = os.lstat(path)
        return stat.S_ISREG(info.st_mode) and is_trusted(info, path.parent.stat())
    except FileNotFoundError:
        return False


def _make_folder(folder: object) -> Path:
    path = Path(os.path.expanduser(str(folder))).absolute()  # noqa: PTH111 (never raises)
    try:
        # A new one is for its owner alone: tables and shards hold rows.
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(
            f"work_dir={str(folder)!r} cannot be made a folder ({error.strerror}); choose another."
        ) from None
    return path
