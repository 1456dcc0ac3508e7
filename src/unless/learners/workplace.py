"""A folder that keeps the finished shards of a learner's work, each in a file that is whole or not there."""

import json
import os
import stat
import warnings
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unless import __version__
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.errors import FileFormatError, SettingError, UnlessWarning, interrupt_in
from unless.formats.record import Record, load_record, save_record
from unless.formats.structures import Structure
from unless.learners.shard_files import UNREADABLE, ShardFile
from unless.runtime.files import replacing, try_writing
from unless.runtime.locks import holding, is_trusted
from unless.weights.priors import Prior

Arrays = Mapping[str, npt.NDArray[Any]]
# Raised whenever a shard would be cut, computed or written differently.
FORMAT = 6
# How the names of shards begin that are no part of the work, but tell how far it is, or its seed.
BOOKMARK = "bookmark-"
_SUFFIX = ".shard"
_ANSWER = "answer"


@dataclass(frozen=True)
class TableFile:
    """A table in a folder, for workers that do not share this process's memory."""

    path: str

    def load(self) -> Dataset:
        """Read the table."""
        content = ShardFile(Path(self.path))
        variables = json.loads(content["variables"].tobytes())
        domain = Domain(tuple(Variable(name, tuple(levels)) for name, levels in variables))
        return Dataset(domain, content["rows"], content["counts"])


@lru_cache(maxsize=1)
def load_once(table: TableFile) -> Dataset:
    """Read a table once in every process; of several, the one read last is kept."""
    return table.load()


@dataclass(frozen=True)
class Workplace:
    """The part of a folder that belongs to one piece of work: one table, one learner, its settings.

    Files carry `stamp`, the fingerprint of these, in their names and inside.
    """

    folder: Path
    stamp: str
    _told: set[str] = field(default_factory=set, compare=False)

    @classmethod
    def enter(
        cls, folder: object, resume: bool, work: str, data: Dataset, stay: ExitStack | None = None
    ) -> "Workplace":
        """Make the folder ready, or say in one sentence why it cannot be used.

        Until the end of `stay` no other process can enter it for the same work.
        """
        place = cls(_folder(folder), _fingerprint(work, data))
        if stay is not None:
            stay.enter_context(place._alone())
        own = place._files("*")
        if own and not resume:
            raise SettingError(
                f"work_dir={str(folder)!r} holds {place._kept()} of this very work; go on from there with "
                "resume=True, or choose another folder."
            )
        if resume and not own and any(place.folder.glob(f"*{_SUFFIX}")):
            raise SettingError(
                f"work_dir={str(folder)!r} holds shards of other work only (another table, learner, setting "
                "or version); there is nothing to resume: mend what differs, or begin without resume=True."
            )
        place._prepare()
        return place

    def path(self, name: str) -> Path:
        """Return where a shard is kept."""
        return self.folder / f"{self.stamp}-{name}{_SUFFIX}"

    def finished(self, names: Iterable[str]) -> set[str]:
        """Return which shards are there and whole; one that is spoiled is told, and goes."""
        there = [name for name in names if os.path.lexists(self.path(name))]
        sound = {name for name in there if self._is_sound(self.path(name))}
        for name in there:
            if name not in sound:
                # It would be taken for finished.
                try:
                    self.path(name).unlink(missing_ok=True)
                except OSError as error:
                    raise self._unwritable(error) from None
        return sound

    def keep(self, name: str, content: Arrays, *, lasting: bool = False) -> None:
        """Write a shard that is read again, or say in one sentence why that cannot be."""
        try:
            self._write(name, content, lasting)
        except OSError as error:
            raise SettingError(
                f"work_dir={str(self.folder)!r} cannot be written any more ({error.strerror}); mend that "
                "and go on with resume=True."
            ) from None

    def forget(self) -> None:
        """Remove all that is kept of this work, because the seed it was drawn from is lost, and tell so."""
        kept = self._kept()
        for path in self._files("*"):
            path.unlink(missing_ok=True)
        if kept:
            warnings.warn(
                f"work_dir={str(self.folder)!r} has lost the seed of {kept}; all of it is computed again.",
                UnlessWarning,
                stacklevel=3,
            )

    def try_to_keep(self, name: str, content: Arrays) -> bool:
        """Write a shard that only work which is stopped would need; tell once where that cannot be."""
        try:
            self._write(name, content)
        except OSError as error:
            self._go_on_without(error)
            return False
        return True

    def shard(self, name: str) -> ShardFile:
        """Return a shard to read from."""
        return ShardFile(self.path(name))

    def keep_answer(self, structure: Structure, results: Mapping[str, Any]) -> None:
        """Write a whole answer; where that cannot be, tell so."""
        record = Record(structure, settings={"stamp": self.stamp}, results=results)
        try:
            save_record(record, self.path(_ANSWER), follow_links=False)
        except OSError as error:
            self._go_on_without(error)

    def read_answer(self) -> Record | None:
        """Read a whole answer, if it is there."""
        path = self.path(_ANSWER)
        if not path.exists():
            return None
        if not _is_own_file(path):
            _tell(path, "is a link or another user's file")
            return None
        try:
            record = load_record(path)
        except FileFormatError:
            _tell(path, "is damaged")
            return None
        if record.settings.get("stamp") == self.stamp:
            return record
        _tell(path, "belongs to other work")
        return None

    def keep_table(self, data: Dataset) -> TableFile:
        """Write the table, unless it is there, for workers to load."""
        path = self.folder / f"{self.stamp}-table-{digest(data)[:8]}.npz"
        if _is_own_file(path):
            return TableFile(str(path))
        variables = json.dumps([[variable.name, variable.levels] for variable in data.domain])
        try:
            write_arrays(path, {"rows": data.rows, "counts": data.counts, "variables": _bytes(variables)})
        except OSError as error:
            raise self._unwritable(error) from None
        return TableFile(str(path))

    def how_to_go_on(self) -> str:
        """Say what is left of work that was stopped."""
        kept, folder = self._kept(), f"work_dir={str(self.folder)!r}"
        if not kept:
            return f"Stopped; nothing was finished yet in {folder}: begin again."
        return f"Stopped; {kept} kept in {folder}: go on with resume=True."

    def _kept(self) -> str:
        """Say in words what there is of this work."""
        n_files, n_bookmarks = len(self._files("*")), len(self._files(f"{BOOKMARK}*"))
        n_shards = n_files - n_bookmarks
        shards = [f"{n_shards:,} finished shard{'s' if n_shards != 1 else ''}"] if n_shards else []
        return " and ".join([*shards, *(["a bookmark"] if n_bookmarks else [])])

    def _write(self, name: str, content: Arrays, lasting: bool = False) -> None:
        path = self.path(name)
        # A spoiled one is noticed and computed again, so that no worker need wait for the disk.
        write_arrays(path, {**content, "stamp": _bytes(path.name)}, lasting=lasting)

    def _go_on_without(self, error: OSError) -> None:
        """Tell once that the disk is full, or gone: what was computed is worth more than its copy."""
        if str(error.strerror) not in self._told:
            self._told.add(str(error.strerror))
            warnings.warn(
                f"work_dir={str(self.folder)!r} cannot be written ({error.strerror}); the work goes on, but "
                "what is not kept there is lost if it is stopped.",
                UnlessWarning,
                stacklevel=3,
            )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep others out, and when the work is stopped, wherever that is, say how to go on."""
        lock = self.folder / f".{self.stamp}.lock"

        def in_use(by: str) -> SettingError:
            return SettingError(
                f"work_dir={str(self.folder)!r} is in use by {by}, which is doing this very work; wait for "
                "it and go on with resume=True, or choose another folder (if it is surely dead, delete "
                f"{lock.name} there)."
            )

        try:
            with holding(lock, in_use):
                yield
        except OSError as error:
            if error.filename is None or Path(str(error.filename)) != lock:
                raise
            raise self._unwritable(error) from None
        except BaseException as error:
            if interrupt_in(error) is None:
                raise
            raise KeyboardInterrupt(self.how_to_go_on()) from None

    def _unwritable(self, error: OSError) -> SettingError:
        return SettingError(
            f"work_dir={str(self.folder)!r} cannot be written ({error.strerror}); choose another folder."
        )

    def _files(self, name: str) -> list[Path]:
        return sorted(self.folder.glob(f"{self.stamp}-{name}{_SUFFIX}"))

    def _is_sound(self, path: Path) -> bool:
        if not _is_own_file(path):
            _tell(path, "is a link or another user's file")
            return False
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as content:
                if content["stamp"].tobytes().decode() != path.name:
                    fault = "belongs to other work"
                # Rows that are read alone cannot be proved then.
                elif content.zip.testzip() is None:
                    return True
                else:
                    fault = "is damaged"
        except UNREADABLE:
            fault = "is damaged"
        _tell(path, fault)
        return False

    def _prepare(self) -> None:
        try:
            # Also removes what a worker that was killed had begun to write; its fellows may live on.
            try_writing(self.path(_ANSWER), follow_links=False)
        except OSError as error:
            raise self._unwritable(error) from None


def check_work(work_dir: object, resume: object) -> None:
    """Refuse settings that are no folder, or nothing to resume from."""
    if work_dir is not None and (not isinstance(work_dir, str | os.PathLike) or not str(work_dir).strip()):
        raise SettingError(f"work_dir={work_dir!r} must be None or the path of a folder.")
    if not isinstance(resume, bool | np.bool_):
        raise SettingError(f"resume={resume!r} must be True or False.")
    if resume and work_dir is None:
        raise SettingError("resume=True needs the folder of the work to go on with; give it as work_dir=.")


def describe(learner: str, settings: Mapping[str, Any], beside: Iterable[Dataset]) -> str:
    """Write down what shapes an answer besides the table, the same text for the same settings."""
    tables = [digest(data) for data in beside]
    return json.dumps([FORMAT, __version__, learner, _plain(settings), tables])


def write_arrays(path: Path, content: Arrays, *, lasting: bool = True) -> None:
    """Write arrays to a file that appears whole or not at all."""
    # Others may write in the folder: no link of theirs is followed, and nobody but the owner reads rows.
    with replacing(path, lasting=lasting, private=True, follow_links=False) as stream:
        np.savez(stream, **dict[str, Any](content))


def _tell(path: Path, fault: str) -> None:
    warnings.warn(f"The shard {str(path)!r} {fault}; it is computed again.", UnlessWarning, stacklevel=3)


def _is_own_file(path: Path) -> bool:
    """Tell whether an ordinary file is there, no link, and not of a user who has no say in the folder."""
    try:
        info = os.lstat(path)
        return stat.S_ISREG(info.st_mode) and is_trusted(info, path.parent.stat())
    except FileNotFoundError:
        return False


def _folder(folder: object) -> Path:
    path = Path(os.path.expanduser(str(folder))).absolute()  # noqa: PTH111 (never raises)
    try:
        # A new one is for its owner alone: tables and shards hold rows.
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(
            f"work_dir={str(folder)!r} cannot be made a folder ({error.strerror}); choose another."
        ) from None
    return path


def _fingerprint(work: str, data: Dataset) -> str:
    return sha256(f"{work}{digest(data)}".encode()).hexdigest()[:20]


def digest(data: Dataset) -> str:
    """Return a fingerprint of a table."""
    names = json.dumps([[variable.name, variable.levels] for variable in data.domain])
    told = sha256(names.encode())
    told.update(np.ascontiguousarray(data.rows, dtype="<u2").data)
    told.update(np.ascontiguousarray(data.counts, dtype="<i8").data)
    return told.hexdigest()


def brief(value: Any) -> str:
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
    if isinstance(value, Prior) or not isinstance(value, Iterable):
        return repr(value)
    return [_plain(one) for one in value]


def _bytes(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8)
