"""One locked-down DuckDB connection for one reading, with a temporary folder that goes with it."""

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy.typing as npt

from unless.data.memory import show_memory
from unless.data.progress import Bar
from unless.data.source import quoted
from unless.data.waiting import aside
from unless.errors import DataError, TooLarge

Made = TypeVar("Made")
# The rest is for what is pulled out while the database still holds it: a fifth of what `check_rows` allows.
DATABASE_SHARE = 0.8
# Seconds a query is given to end after Ctrl-C; nearly all take some milliseconds.
_GRACE = 0.5


class Workshop:
    """A fresh connection and a fresh folder; both are gone when the work is done, whatever happened."""

    def __init__(self, max_memory: int, bar: Bar | None = None) -> None:
        self.max_memory = max_memory
        self.bar = Bar() if bar is None else bar

    def __enter__(self) -> Self:
        import duckdb

        self._n_places = 0
        self.title = "The table"
        self._stage, self._is_counted = "opening", False
        self._lock, self._is_asked, self._is_left = Lock(), False, False
        self._owned = tempfile.TemporaryDirectory(prefix="unless-", ignore_cleanup_errors=True)
        self.folder = Path(self._owned.name).resolve()
        self.connection: duckdb.DuckDBPyConnection = duckdb.connect(
            ":memory:",
            config={
                # DuckDB fetches extensions from the network unless told not to.
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "temp_directory": str(self.folder / "spill"),
                "memory_limit": f"{int(DATABASE_SHARE * self.max_memory) // 2**20}MiB",
            },
        )
        # It would be drawn on standard output, which belongs to the caller; how far a query is can be asked.
        self.connection.execute("set enable_progress_bar_print = false")
        self.connection.execute(f"set enable_progress_bar = {str(not self.bar.is_silent).lower()}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._is_left = True
            if self._is_asked:
                # A query that did not hear Ctrl-C closes the door behind it.
                return
        self._close()

    def _close(self) -> None:
        self.connection.close()
        self._owned.cleanup()

    def stage(self, name: str, n_steps: int | None = None) -> None:
        """Say what the next queries are for; without a number of steps, each shows how far it is."""
        self._stage, self._is_counted = name, n_steps is not None
        self.bar.begin(name, n_steps, counted=self._is_counted)

    def place(self, suffix: str) -> Path:
        """Return a new path inside the temporary folder."""
        self._n_places += 1
        return self.folder / f"{self._n_places}{suffix}"

    def lock(self, files: Iterable[Path] = ()) -> None:
        """Allow these files and the temporary folder, nothing else, from now on."""
        allowed = ", ".join(quoted(str(path)) for path in files)
        self.connection.execute(f"set allowed_directories = [{quoted(str(self.folder))}]")
        if allowed:
            self.connection.execute(f"set allowed_paths = [{allowed}]")
        # Labels of moments must not depend on where the machine stands.
        self.connection.execute("set TimeZone = 'UTC'")
        self.connection.execute("set enable_external_access = false")
        self.connection.execute("set lock_configuration = true")

    def register(self, name: str, table: object) -> None:
        """Let the database read an object in place."""
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
            return aside(ask, look=self._look, stop=self.connection.interrupt, grace=_GRACE)

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
            # Below 0 where the database cannot tell.
            self.bar.share(self.connection.query_progress() / 100)

    @contextmanager
    def _in_one_sentence(self) -> Iterator[None]:
        import duckdb

        try:
            yield
        except duckdb.OutOfMemoryException:
            raise self._too_large() from None
        except duckdb.NotImplementedException as error:
            raise DataError(
                f"{self.title} has a column of a type that cannot be read ({_reason(error)})."
            ) from None
        except duckdb.Error as error:
            reason = _reason(error)
            raise DataError(f"{self.title} cannot be read ({reason}); check that it is whole.") from None

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"{self.title} does not fit into the {show_memory(self.max_memory)} allowed while its rows are "
            "collapsed; choose fewer columns with columns=, merge levels with bins= or rare=, or raise "
            "max_memory=."
        )


def _reason(error: Exception) -> str:
    line = str(error).strip().partition("\n")[0]
    # "Invalid Input Error: ..." tells the class of the error and the path is known, so neither is repeated.
    head, _, tail = line.partition("Error: ")
    return re.sub(r' in file "[^"]*"', "", tail or head).strip(" .")[:200]
