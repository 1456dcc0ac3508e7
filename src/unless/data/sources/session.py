"""The database that a table is read into: what a file format is given, and what it returns.

A format is a function `open_...(file: TableFile, session: DuckDBSession, how: Settings) -> Source` (a list of
files where it reads several). A session is one locked-down DuckDB connection for one reading, with a
temporary folder that is removed with it; a source is one relation of that database and the fields it holds,
whatever kind of table it came from.
"""

import errno
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock, local
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt

from unless.data.domain import Kind, shorten
from unless.data.settings import Settings
from unless.errors import DataError, TooLarge, UnlessError
from unless.runtime.child import ChildFailed, run_in_child
from unless.runtime.files import TemporaryFolder, room_in, too_large, writing_temporary
from unless.runtime.interrupts import interruptible
from unless.runtime.memory import check_columns, show_memory, threads_that_fit
from unless.runtime.progress import Bar

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# How the values of a field are written when they leave the database as text.
Form = Literal[
    "words",  # text of a file without types: spaces around it are layout, and some words mean "missing"
    "text",
    "integer",
    "float",
    "decimal",
    "boolean",
    "moment",
    "plain",  # any other type: its text is its label
    "json",
    "code",  # positions into `labels`, -1 where missing
    "unusable",
]


@dataclass(frozen=True)
class TableFile:
    """A file ready to be opened: its path, what messages call it, its ending and its format."""

    path: Path
    title: str
    suffix: str
    format: str
    compression: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a source: its name outside, its name inside, and how to read its values."""

    name: str
    column: str
    form: Form
    kind: Kind | None = None
    labels: tuple[str, ...] = ()
    levels: tuple[str, ...] | None = None
    levels_are_ordered: bool = True
    # Whether the table itself says that the order of the levels means something.
    is_ordered: bool = False


@dataclass(frozen=True)
class Source:
    """A relation the database can read as often as needed.

    `names` are all columns of the table; `fields` may leave out those that are not needed. `repair` gives the
    same table from a cleaned copy, or says in one sentence what is wrong with it.
    """

    title: str
    relation: str
    names: tuple[str, ...]
    fields: tuple[Field, ...]
    session: "DuckDBSession" = field(repr=False)
    nameless: bool = False
    notes: tuple[str, ...] = ()
    repair: Callable[[], "Source"] | None = None
    # How many rows of the table a row of the relation stands for, and which of them is the first.
    times: str = "1"
    row_number: str = "row_number() over ()"
    # Arrays and frames the database reads without a copy: they must live as long as the relation.
    keep_alive: tuple[object, ...] = field(default=(), repr=False)

    def field(self, name: str) -> Field:
        """Return the field of this name, which is known to be there."""
        return next(one for one in self.fields if one.name == name)

    def rows(self, wanted: str, rest: str = "") -> list[tuple[Any, ...]]:
        """Select something, in SQL, of all rows; `rest` says which, in what groups and in what order."""
        return self.session.rows(f"select {wanted} from {self.relation} {rest}")  # noqa: S608

    def row(self, wanted: str, rest: str = "") -> tuple[Any, ...]:
        """Select what is one row."""
        return self.rows(wanted, rest)[0]


def form_of(duck_type: str) -> tuple[Form, Kind | None]:
    """Say how a type of the database is read, and which kind of variable it makes."""
    base = duck_type.partition("(")[0].strip('"').upper()
    if duck_type.endswith("]") or base in {"STRUCT", "MAP", "UNION", "VARIANT", "BLOB", "BIT", "GEOMETRY"}:
        return "unusable", None
    if base.endswith(("INT", "INTEGER")):
        return "integer", "integer"
    if base.startswith("TIMESTAMP"):
        return "moment", "text"
    known: dict[str, tuple[Form, Kind | None]] = {
        "FLOAT": ("float", "float"),
        "DOUBLE": ("float", "float"),
        "DECIMAL": ("decimal", "float"),
        "BOOLEAN": ("boolean", "boolean"),
        "VARCHAR": ("text", "text"),
        "ENUM": ("text", "text"),
        "JSON": ("json", None),
    }
    return known.get(base, ("plain", "text"))


def nested(name: str) -> DataError:
    """Say that a column holds more than one value in a cell."""
    return DataError(
        f"Column {name!r} holds lists, records or bytes; give one plain value in each cell, or leave it out "
        "with exclude=."
    )


def aliased(relation: str, n_columns: int) -> str:
    """Name the columns of a relation by position: the database folds case, so the real names may clash."""
    return f"{relation} as t({', '.join(column_names(n_columns))})"


def column_names(n_columns: int) -> list[str]:
    """Return the inner names c0, c1, ..."""
    return [f"c{position}" for position in range(n_columns)]


def quoted(text: str) -> str:
    """Write a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def typed_fields(names: Sequence[str], types: Sequence[str]) -> list[Field]:
    """Return the fields of columns c0, c1, ... by their types in the database."""
    return [
        Field(name, f"c{position}", *form_of(kind))
        for position, (name, kind) in enumerate(zip(names, types, strict=True))
    ]


def check_width(names: Sequence[str], how: Settings) -> None:
    """Refuse a table with more columns than can be counted."""
    check_columns(len(names), sum(map(how.wants, names)), how.max_memory)


def table_names(
    names: Iterable[object], title: str, how: Settings, hint: str = "rename one of them"
) -> tuple[str, ...]:
    """Turn the names of a table into distinct texts; a column without a name is called by its number."""
    given = [str(name).strip() for name in names]
    named = tuple(name or f"column {number}" for number, name in enumerate(given, start=1))
    if len(set(named)) == len(named):
        check_width(named, how)
        return named
    twice = sorted(name for name, number in Counter(named).items() if number > 1)
    what = f"name {twice[0]!r} appears" if len(twice) == 1 else f"names {shorten(twice)} appear"
    raise DataError(f"Column {what} more than once in {title}; {hint}.")


Made = TypeVar("Made")
# The share of `max_memory` that the database gets. The rest is for the arrays that results are copied into
# while it still holds them.
DATABASE_SHARE = 0.8
# Of so many rows the database lists all values and looks at the list faster than it makes a table of the
# different ones, for which it clears 2 MiB.
SHORT = 10_000
# Seconds a query is given to end after Ctrl-C; nearly all take some milliseconds.
_GRACE = 0.5
# DuckDB fetches extensions from the network unless a setting forbids it.
_OFFLINE: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
_LOCKED = ("enable_external_access = false", "lock_configuration = true")
# Newer versions start threads for what is read from afar.
_NO_ASYNC = "async_threads = 0"
# A table is small with at most so many bytes and columns. The database takes some 4 MiB for each column whose
# values it lists, so what it may take is twice what it needs.
SMALL_BYTES, SMALL_COLUMNS = 2**20, 32
_SMALL_MEMORY = 2**28
_small_databases = local()


class DuckDBSession:
    """A fresh connection and a fresh folder; both are gone when the work is done, whatever happened."""

    def __init__(self, max_memory: int, bar: Bar | None = None) -> None:
        self.max_memory = max_memory
        self.bar = Bar() if bar is None else bar

    def __enter__(self) -> Self:
        self._n_paths = 0
        self.title = "The table"
        self._stage, self._is_counted = "opening", False
        self._lock, self._is_asked, self._is_left = Lock(), False, False
        self._owned: TemporaryFolder | None = None
        self._is_locked = False
        self._watched: dict[Path, tuple[str, tuple[int, ...]]] = {}
        # What to do about a table that the database refuses, and what else Ctrl-C has to stop.
        self.advice = "check that it is whole"
        self._interrupt: Callable[[], object] | None = None
        return self

    @cached_property
    def folder(self) -> Path:
        """The temporary folder, made when it is first needed."""
        self._owned = TemporaryFolder()
        return self._owned.path

    @cached_property
    def connection(self) -> "DuckDBPyConnection":
        """A database of our own, made when it is first needed, unless a small table came before."""
        import duckdb

        spill = str(self.folder / "spill")
        limit = f"{int(DATABASE_SHARE * self.max_memory) // 2**20}MiB"
        config = _OFFLINE | {"temp_directory": spill, "memory_limit": limit}
        most_threads = threads_that_fit()
        made = duckdb.connect(":memory:", config=config if most_threads is None else config | {"threads": 1})
        if most_threads is not None:
            _try_to_set(made, _NO_ASYNC)
            made.execute(f"set threads = {min(os.cpu_count() or 1, most_threads)}")
        _keep_quiet(made, is_watched=not self.bar.is_silent)
        return made

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._is_left = True
            if self._is_asked:
                # A query that does not stop at Ctrl-C closes the session when it ends.
                return
        self._close()

    def _close(self) -> None:
        try:
            if "connection" in vars(self):
                self.connection.close()
        finally:
            if self._owned is not None:
                self._owned.clean_up()

    def stage(self, name: str, n_steps: int | None = None) -> None:
        """Say what the next queries are for; without a number of steps, each shows how far it is."""
        self._stage, self._is_counted = name, n_steps is not None
        self.bar.begin(name, n_steps, counted=self._is_counted)

    def temporary_path(self, suffix: str) -> Path:
        """Return a new path inside the temporary folder."""
        self._n_paths += 1
        return self.folder / f"{self._n_paths}{suffix}"

    def attach_spool(self) -> None:
        """Attach a database file in the temporary folder, `spool`, for rows that can be fetched only once.

        Tables in a file are compressed, and do not count against the memory of the database.
        """
        self.connection.execute(f"attach {quoted(str(self.temporary_path('.duckdb')))} as spool")

    def write_in_child(
        self,
        work: str,
        arguments: dict[str, Any],
        *,
        stage: str,
        suffix: str = "",
        packages: tuple[str, ...] = (),
        memory: int,
        seconds: float,
        way_out: str,
    ) -> tuple[Path, Any]:
        """Let a child process write a temporary file; return its path and what the child answers.

        Whatever the child fails of becomes one sentence that ends with the way out.
        """
        target, title, folder = self.temporary_path(suffix), arguments["title"], self.folder
        self.stage(stage)
        try:
            with writing_temporary(folder):
                return target, run_in_child(
                    work,
                    {**arguments, "target": str(target)},
                    packages=packages,
                    memory=memory,
                    seconds=seconds,
                    n_bytes=room_in(folder),
                    look=lambda: self.bar.share(-1.0),
                )
        except ChildFailed as failure:
            if failure.want == "nothing":
                raise DataError(f"{title} is damaged: it cannot be opened; {way_out}") from None
            raise DataError(
                f"{title} takes more {failure.want} to open than a file of its size may; {way_out}"
            ) from None
        except OSError as error:
            if error.errno == errno.EFBIG:
                # The bound on what a child may write is the room on the disk.
                raise too_large(f"what {title} holds", folder) from None
            raise DataError(f"{title} cannot be opened ({error.strerror}); {way_out}") from None

    @contextmanager
    def interrupting(self, interrupt: Callable[[], object] | None) -> Iterator[None]:
        """Let Ctrl-C stop another database, too, while a query fetches rows from it."""
        self._interrupt = interrupt
        try:
            yield
        finally:
            self._interrupt = None

    def _stop(self) -> None:
        self.connection.interrupt()
        if self._interrupt is not None:
            self._interrupt()

    def watch(self, path: Path, title: str) -> None:
        """Note the state of a file before it is opened."""
        self._watched[path] = title, _state(path)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Refuse files that change while they are read: the rows read would be of two tables."""
        try:
            yield
        except (OSError, UnlessError):
            # A file that changed explains the error better than the error itself.
            self._check_watched()
            raise
        self._check_watched()

    def _check_watched(self) -> None:
        for path, (title, before) in self._watched.items():
            now = _state(path)
            if now != before:
                done = "changed" if now else "was removed"
                raise DataError(
                    f"{title} {done} while it was read; read it again once it is finished."
                ) from None

    def lock(self, files: Iterable[Path] = ()) -> None:
        """Allow these files and the temporary folder, nothing else, from now on."""
        if self._is_locked:
            return
        allowed = ", ".join(quoted(str(path)) for path in files)
        for setting in (
            f"allowed_directories = [{quoted(str(self.folder))}]",
            *([f"allowed_paths = [{allowed}]"] if allowed else []),
            # Labels of moments must not depend on where the machine stands.
            "TimeZone = 'UTC'",
            *_LOCKED,
        ):
            self.connection.execute(f"set {setting}")
        self._is_locked = True

    def register(self, name: str, table: object) -> None:
        """Let the database read an object in place."""
        may_take = DATABASE_SHARE * self.max_memory
        if "connection" not in vars(self) and may_take >= _SMALL_MEMORY and _is_small(table):
            self.connection, self._is_locked = _connect_to_small(), True
        with self._in_one_sentence():
            self.connection.register(name, table)

    def run(self, query: str) -> None:
        """Run a query that gives no answer."""
        self._ask(query, lambda _: None)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return all rows of a small answer."""
        return self._ask(query, lambda answer: answer.fetchall())

    def arrays(self, query: str) -> dict[str, npt.NDArray[Any]]:
        """Return an answer as arrays by name."""
        return self._ask(query, lambda answer: answer.fetchnumpy())

    def row(self, query: str) -> tuple[Any, ...]:
        """Return the only row of an answer."""
        return self.rows(query)[0]

    def value(self, query: str) -> Any:
        """Return the only value of an answer."""
        return self.row(query)[0]

    def _ask(self, query: str, fetch: Callable[[Any], Made]) -> Made:
        if not self._is_counted:
            self.bar.begin(self._stage, None, counted=False)

        def ask() -> Made:
            self._begin()
            try:
                return fetch(self.connection.execute(query))
            finally:
                self._end()

        with self._in_one_sentence():
            # The database looks for Ctrl-C between its tasks, which may take seconds.
            return interruptible(ask, look=self._look, stop=self._stop, grace=_GRACE)

    def _begin(self) -> None:
        with self._lock:
            if self._is_left:
                raise DataError(f"{self.title} was left before it was asked.")
            self._is_asked = True

    def _end(self) -> None:
        with self._lock:
            self._is_asked = False
            is_left = self._is_left
        if is_left:
            self._close()

    def _look(self) -> None:
        if not self._is_counted:
            # Below 0 where the database does not know.
            self.bar.share(self.connection.query_progress() / 100)

    @contextmanager
    def _in_one_sentence(self) -> Iterator[None]:
        import duckdb

        try:
            yield
        except duckdb.OutOfMemoryException:
            raise TooLarge(
                f"{self.title} does not fit into the {show_memory(self.max_memory)} allowed while its rows "
                "are collapsed; leave columns out with exclude=, merge levels with bins= or rare=, or raise "
                "max_memory=."
            ) from None
        except duckdb.NotImplementedException as error:
            raise DataError(
                f"{self.title} has a column of a type that cannot be read ({_reason(error)})."
            ) from None
        except duckdb.Error as error:
            raise DataError(f"{self.title} cannot be read ({_reason(error)}); {self.advice}.") from None


def _state(path: Path) -> tuple[int, ...]:
    """Return what changes when a file does; nothing where it is gone."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def connect_to_file(path: Path, session: DuckDBSession) -> "DuckDBPyConnection":
    """Open the file of a DuckDB database to read only; nothing else may be read from there."""
    import duckdb

    # Beside the database that the rows go to.
    limit = max(int((1 - DATABASE_SHARE) * session.max_memory) // 2**20, 64)
    config = _OFFLINE | {
        "temp_directory": str(session.folder / "spill of file"),
        "memory_limit": f"{limit}MiB",
    }
    made = duckdb.connect(str(path), read_only=True, config=config)
    for setting in _LOCKED:
        made.execute(f"set {setting}")
    return made


def _is_small(table: object) -> bool:
    if not isinstance(table, dict) or len(table) > SMALL_COLUMNS:
        return False
    columns = list(table.values())
    if any(not isinstance(column, np.ndarray) or column.dtype == object for column in columns):
        return False
    return int(sum(column.nbytes for column in columns)) <= SMALL_BYTES


def _connect_to_small() -> "DuckDBPyConnection":
    """Connect to a database that stays, where nothing can be read but what is registered.

    It takes some 20 ms to make one, most of what reading a small table would take. Each thread has its own,
    in which no other thread works: nothing is in the middle of anything when the process is forked. What a
    connection registers and makes is seen by no other and goes with it.
    """
    import duckdb

    if not hasattr(_small_databases, "database"):
        alone = {"threads": "1", "temp_directory": "", "memory_limit": f"{_SMALL_MEMORY // 2**20}MiB"}
        database = duckdb.connect(":memory:", config=_OFFLINE | alone)
        _try_to_set(database, _NO_ASYNC)
        database.execute("set global TimeZone = 'UTC'")
        # Cannot be taken back, nor does it let any path be allowed again.
        database.execute("set enable_external_access = false")
        _small_databases.database = database
    made: DuckDBPyConnection = _small_databases.database.cursor()
    _keep_quiet(made, is_watched=False)
    return made


def _try_to_set(connection: "DuckDBPyConnection", *settings: str) -> None:
    """Change settings that not every version of DuckDB knows, as far as this one does."""
    import duckdb

    with suppress(duckdb.Error):
        for one in settings:
            connection.execute(f"set {one}")


def _keep_quiet(connection: "DuckDBPyConnection", *, is_watched: bool) -> None:
    # Newer versions parse text as numbers while a file is read, even where a query only tries to (try_cast),
    # and fail at the first value that is none.
    _try_to_set(connection, "disabled_optimizers = 'type_pushdown'")
    # The bar would be drawn on standard output, which belongs to the caller; how far a query is can be asked.
    # A notebook without ipywidgets refuses both settings, and draws nothing: only the time can be shown then.
    bar = f"enable_progress_bar = {str(is_watched).lower()}"
    _try_to_set(connection, "enable_progress_bar_print = false", bar)


def _reason(error: Exception) -> str:
    line = str(error).strip().partition("\n")[0]
    # "Invalid Input Error: ..." names the class of the error and the path is known, so neither is repeated.
    head, _, tail = line.partition("Error: ")
    return re.sub(r' (?:in|while reading) file "[^"]*"', "", tail or head).strip(" .")[:200]
